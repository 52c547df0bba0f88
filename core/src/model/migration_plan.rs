//! The migrations of the library, and which of them a database has.

use serde::Serialize;

/// What [`Client::open`](crate::Client::open) would do to a database: the result of
/// [`Client::plan_migrations`](crate::Client::plan_migrations).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MigrationPlan {
    /// Every migration that this version of the library knows, in the order in which they are applied.
    pub migrations: Vec<PlannedMigration>,
    /// Whether there is no database yet, or one without the tables of the library.
    pub is_new: bool,
    /// Whether `open` changes nothing. False also if only triggers, policies or roles are not those of this version.
    pub is_current: bool,
}

/// A migration of the library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlannedMigration {
    /// The name, such as `0005_files`.
    pub name: &'static str,
    /// What the migration does.
    pub about: &'static str,
    /// Whether the database has it.
    pub is_applied: bool,
}

impl MigrationPlan {
    /// The migrations that the database lacks.
    pub fn missing(&self) -> impl Iterator<Item = &PlannedMigration> {
        self.migrations.iter().filter(|migration| !migration.is_applied)
    }
}
