//! The migrations of the library, and which of them a database has.

use townsquare::{MigrationPlan, Operation, blocking::Client};

use crate::{
    boundary::{
        Memory, Record, call_handle, free, handle, json, record, text, tsq_error, tsq_status, tsq_str, tsq_string,
    },
    config::{self, tsq_config},
};

/// A migration of the library. This struct does not grow.
#[repr(C)]
pub struct tsq_planned_migration {
    /// The name, such as `0005_files`.
    pub name: tsq_str,
    /// What the migration does.
    pub about: tsq_str,
    /// Whether the database has it.
    pub is_applied: bool,
}

/// What `tsq_client_open` would do to a database. A record (manual, RECORDS); freed with `tsq_migration_plan_free`.
#[repr(C)]
pub struct tsq_migration_plan {
    /// Every migration that this version of the library knows, in the order in which they are applied: an array.
    pub migrations: *const tsq_planned_migration,
    /// Number of the migrations.
    pub migrations_len: usize,
    /// Whether there is no database yet, or one without the tables of the library.
    pub is_new: bool,
    /// Whether `tsq_client_open` changes nothing. False also if only triggers, policies or roles are not those of this version.
    pub is_current: bool,
}

impl Record for tsq_migration_plan {
    type Source = MigrationPlan;

    fn new(plan: &MigrationPlan, memory: &mut Memory) -> tsq_migration_plan {
        let migrations = plan.migrations.iter().map(|migration| tsq_planned_migration {
            name: text::view(migration.name),
            about: text::view(migration.about),
            is_applied: migration.is_applied,
        });
        let migrations: Vec<_> = migrations.collect();
        tsq_migration_plan {
            migrations_len: migrations.len(),
            migrations: memory.array(migrations),
            is_new: plan.is_new,
            is_current: plan.is_current,
        }
    }
}

/// The plan as a JSON object: `migrations`, an array of the members of `tsq_planned_migration`, `is_new` and `is_current`.
///
/// Borrows `plan`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_migration_plan_json(
    plan: *const tsq_migration_plan,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(plan, "plan")?)) }
}

/// Frees a plan. Takes `plan`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_migration_plan_free(plan: *mut tsq_migration_plan) {
    // SAFETY: `plan` is NULL or owned by the caller, by the manual.
    unsafe { free(plan) }
}

/// Lists the migrations of this library, and which of them the database of `config` lacks. Changes nothing, and creates no
/// database. `tsq_client_open` applies the missing ones. The object store is not opened, and the option `migrate` has no effect.
///
/// Borrows `config` (NULL: no option is set); returns owned in `out`. Fails with `TSQ_CONFIG` if the file is no townsquare database,
/// if the database needs a newer version of the library, or if another build of this version made it; `TSQ_UNAVAILABLE` if the
/// server does not answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_plan_migrations(
    config: *const tsq_config,
    out: *mut *mut tsq_migration_plan,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::Open), out, err, || Ok(record(Client::plan_migrations(config::snapshot(config))?)))
    }
}
