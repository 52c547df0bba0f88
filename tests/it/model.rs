//! A reference model of the tables and of the rights on them, and random operations that compare the library with it.
//!
//! The model computes every result and every error itself and uses none of the library's policies. It copies only new
//! ids from the library, because the library chooses them at random.

mod accounts;
mod callers;
mod communities;
mod fidgets;
mod files;
mod reads;
pub(crate) mod rights;
mod spaces;
mod tables;

use std::{collections::BTreeMap, error::Error as _, path::Path};

use jiff::SignedDuration;
use serde_json::{Value, json};
use townsquare::{Config, ErrorKind, Operation, Result, Uuid, blocking::Client, config::Durability, spaces::Change};
use townsquare_tests::{
    Rng,
    setting::{seed, setting},
    temp_dir,
    test_database::{Engine, TestDatabase, without_reason},
};

use self::{callers::SignedUpUser, files::with_files, rights::Principal, tables::Tables};

/// The parts of an error that the tests compare: kind, SQLSTATE, message.
type Failure = (ErrorKind, Option<&'static str>, &'static str);

const MISSING: Failure = (ErrorKind::NotFound, None, "Record not found");
const NO_REFERENCE: Failure = (ErrorKind::ReferenceMissing, Some("23503"), "Referenced record not found");
const NO_FIELD: Failure = (ErrorKind::FieldMissing, Some("23502"), "Required field is missing");
const TAKEN: Failure = (ErrorKind::AlreadyExists, Some("23505"), "Record already exists");
const ENDED: Failure = (ErrorKind::Unauthorized, None, "Session has ended");
/// The same of a file operation (SPEC 7's status 401).
const ENDED_OF_FILES: Failure = (ErrorKind::Unauthorized, None, "Unauthorized file access");
const NOT_SIGNED_IN: Failure = (ErrorKind::Unauthorized, None, "Nobody is signed in");

/// Which operations a run consists of, and for whom.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mix {
    /// Operations on the tables, mostly by the service, some by anonymous callers.
    Tables,
    /// Operations by five users, anonymous callers, the service and ended sessions, accounts included.
    AllCallers,
}

/// The caller of one operation.
#[derive(Clone)]
struct Caller {
    principal: Principal,
    client: Client,
    /// Whether the handle's session has ended, so that every operation that needs the database fails.
    has_ended: bool,
}

/// A run of random operations: the model, the library and the random numbers.
struct Run<'a> {
    mix: Mix,
    model: Tables,
    db: &'a TestDatabase,
    users: Vec<SignedUpUser>,
    /// Handles whose session has ended, with their user.
    ended: Vec<(Uuid, Client)>,
    random: Rng,
    /// The folder of the objects.
    folder: &'a Path,
    steps: usize,
    /// Operations with their outcome (whether they succeeded).
    outcomes: BTreeMap<(&'static str, bool), u32>,
}

/// Whether the operation is one of the file store.
fn is_of_files(operation: Operation) -> bool {
    use Operation::{CopyFile, DeleteFile, Download, ListFiles, MoveFile, StatFile, Upload};
    matches!(operation, Upload | Download | DeleteFile | StatFile | ListFiles | CopyFile | MoveFile)
}

impl Run<'_> {
    /// Compares an outcome with the expected one; returns both values when both succeeded.
    fn agree<T, E>(
        &mut self,
        caller: &Caller,
        operation: Operation,
        found: Result<T>,
        expected: Result<E, Failure>,
    ) -> Option<(T, E)> {
        let expected = match expected {
            // Table rights are checked before the session. `update_navigation` is exempt: the right to call it depends
            // on the community's row, which is read after the session check.
            Err(refused)
                if refused.2.starts_with("Database error: permission") && operation != Operation::UpdateNavigation =>
            {
                Err(refused)
            }
            _ if caller.has_ended => Err(if is_of_files(operation) { ENDED_OF_FILES } else { ENDED }),
            expected => expected,
        };
        *self.outcomes.entry((operation.name(), expected.is_ok())).or_default() += 1;
        let step = format!("step {}, {operation:?} by {:?}", self.steps, caller.principal);
        match (found, expected) {
            (Ok(found), Ok(expected)) => Some((found, expected)),
            (Err(error), Err(expected)) => {
                let message = without_reason(&error, error.message());
                assert_eq!((error.kind(), error.code(), message.as_str()), expected, "{step}: {error:?}");
                assert_eq!(error.operation(), Some(operation), "{step}: {error:?}");
                let is_refusal =
                    [ErrorKind::NotFound, ErrorKind::Forbidden, ErrorKind::Unauthorized].contains(&expected.0);
                // A file error of an ended session has the session's error as its source.
                let has_source = error.source().is_some() && !is_of_files(operation);
                assert!(!is_refusal || !has_source, "{step}: a refusal has a source: {error:?}");
                // A missing row or file and a hidden one have the same text.
                assert!(error.kind() != ErrorKind::NotFound || error.reason().is_none(), "{step}: {error:?}");
                None
            }
            (Ok(_), Err(expected)) => panic!("{step} succeeded instead of failing with {expected:?}"),
            (Err(error), Ok(_)) => panic!("{step} failed instead of succeeding: {error:?}"),
        }
    }

    /// Compares an outcome with the expected one, values included.
    fn assert_same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        caller: &Caller,
        operation: Operation,
        found: Result<T>,
        expected: Result<T, Failure>,
    ) {
        if let Some((found, expected)) = self.agree(caller, operation, found, expected) {
            assert_eq!(found, expected, "step {}, {operation:?} by {:?}", self.steps, caller.principal);
        }
    }

    fn percent(&mut self, percent: u32) -> bool {
        self.random.u32(..100) < percent
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.usize(..choices.len())]
    }

    /// Picks one of these ids in most cases, a deleted or unknown id in some.
    fn one_of(&mut self, ids: impl Fn(&Tables) -> Vec<Uuid>) -> Uuid {
        let ids = match self.random.u32(..100) {
            0 | 1 => Vec::new(),
            2..=4 => self.model.deleted.clone(),
            _ => ids(&self.model),
        };
        if ids.is_empty() { Uuid::from_u128(7) } else { self.pick(&ids) }
    }

    fn space_id(&mut self) -> Uuid {
        self.one_of(|model| model.spaces.keys().copied().collect())
    }

    fn fidget_id(&mut self) -> Uuid {
        self.one_of(|model| model.fidgets.keys().copied().collect())
    }

    fn user_id(&mut self) -> Uuid {
        self.one_of(|model| model.addresses.keys().copied().collect())
    }

    fn text(&mut self) -> String {
        let texts = ["", "a", "Plaza", "o'clock", "żółć", "🏘", "two\nlines", "x' OR true --", "$1", "%"];
        self.pick(&texts).to_owned()
    }

    fn json(&mut self) -> Value {
        match self.random.u32(..6) {
            0 => Value::Null,
            1 => json!(self.random.u64(..)),
            2 => json!(self.random.i64(..)),
            3 => json!({"x": self.random.u32(..9), "text": self.text()}),
            4 => json!([true, [], {}, self.text()]),
            _ => json!(self.text()),
        }
    }

    fn optional<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.percent(50) { Some(make(self)) } else { None }
    }

    fn change<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Change<T> {
        match self.random.u32(..8) {
            0 => Change::Clear,
            1..=3 => Change::Set(make(self)),
            _ => Change::Keep,
        }
    }

    fn flag(&mut self) -> Change<bool> {
        match self.random.u32(..6) {
            0 => Change::Set(true),
            1 => Change::Set(false),
            _ => Change::Keep,
        }
    }

    /// Moves the clock, back in a tenth of the cases, and runs one operation.
    fn step(&mut self) {
        self.steps += 1;
        let micros = self.random.i64(0..50);
        match self.random.u32(..10) {
            0 => self.db.clock.step(SignedDuration::from_micros(-micros)),
            1..=4 => self.db.clock.step(SignedDuration::from_micros(micros)),
            _ => {}
        }
        self.model.now = self.db.now();
        let caller = self.caller();
        match self.mix {
            Mix::Tables => self.operate_on_tables(&caller),
            Mix::AllCallers => self.operate(caller),
        }
    }

    fn operate_on_tables(&mut self, caller: &Caller) {
        match self.random.u32(..100) {
            0..=13 => self.create_spaces(caller),
            14..=21 => self.update_space(caller),
            22..=30 => self.delete_space(caller),
            31..=48 => self.create_fidgets(caller),
            49..=56 => self.update_fidget(caller),
            57..=61 => self.delete_fidget(caller),
            62..=66 => self.save_positions(caller),
            67..=84 => self.read(caller),
            85..=90 => self.save_config(caller),
            91..=95 => self.save_or_delete_domain(caller),
            _ => self.register_space(caller),
        }
    }

    fn operate(&mut self, caller: Caller) {
        // When the model is full, `delete_space` takes the share of `create_spaces`.
        let is_full = self.model.spaces.len() > 120;
        match self.random.u32(..1_000) {
            0 | 1 => {
                let user = self.random.usize(..self.users.len());
                self.sign_out(user);
            }
            2 => self.delete_user(),
            3..=6 => self.delete_user_without_right(&caller),
            7..=30 => self.link_identity(&caller),
            31..=140 if !is_full => self.create_spaces(&caller),
            141..=230 => self.update_space(&caller),
            31..=270 => self.delete_space(&caller),
            271..=370 => self.create_fidgets(&caller),
            371..=450 => self.update_fidget(&caller),
            451..=490 => self.delete_fidget(&caller),
            491..=540 => self.save_positions(&caller),
            541..=580 => {
                let caller = self.mostly_service(caller);
                self.save_config(&caller);
            }
            581..=630 => self.update_navigation(&caller),
            631..=670 => {
                let caller = self.mostly_service(caller);
                self.save_or_delete_domain(&caller);
            }
            671..=710 => self.register_space(&caller),
            711..=730 => self.read_all_pages(&caller),
            731 => self.read_everything(),
            732..=860 => self.operate_on_files(&caller),
            _ => self.read(&caller),
        }
    }

    /// Checks that at least 20 kinds of operation succeeded. For [`Mix::AllCallers`], at least 20 of these kinds must
    /// also have failed.
    fn assert_coverage(&self, operations: usize) {
        let succeeded: Vec<_> = self.outcomes.keys().filter(|(_, ok)| *ok).map(|(name, _)| *name).collect();
        let both: Vec<_> = succeeded.iter().filter(|name| self.outcomes.contains_key(&(**name, false))).collect();
        let (covered, least) = match self.mix {
            Mix::Tables => (succeeded.len(), 20),
            Mix::AllCallers => (both.len(), 20),
        };
        assert!(operations < 2_000 || covered >= least, "succeeded: {succeeded:?}, and also failed: {both:?}");
    }

    fn files_table(&self) -> &'static str {
        match self.db.engine {
            Engine::Sqlite => "townsquare_files",
            Engine::Postgres => "townsquare.files",
        }
    }

    /// Checks the number of rows of each table over a connection that bypasses the library.
    fn assert_row_counts(&self) {
        for (table, rows) in [
            ("users", self.model.addresses.len()),
            ("spaces", self.model.spaces.len()),
            ("fidgets", self.model.fidgets.len()),
            ("community_configs", self.model.communities.len()),
            ("community_domains", self.model.domains.len()),
            ("\"spaceRegistrations\"", self.model.registrations.len()),
            (self.files_table(), self.model.files.len()),
        ] {
            assert_eq!(self.db.raw.count(table), rows, "{table}");
        }
    }
}

fn set<T>(column: &mut Option<T>, change: Change<T>) {
    match change {
        Change::Clear => *column = None,
        Change::Set(value) => *column = Some(value),
        _ => {}
    }
}

/// Sets a column that is never null.
fn set_required<T>(column: &mut T, change: Change<T>) {
    if let Change::Set(value) = change {
        *column = value;
    }
}

/// Sets a flag; a cleared flag is false.
fn set_flag(column: &mut bool, change: Change<bool>) {
    match change {
        Change::Clear => *column = false,
        Change::Set(value) => *column = value,
        _ => {}
    }
}

/// Runs `TOWNSQUARE_TEST_OPERATIONS` random operations, `operations` by default, on a new database.
pub(crate) fn random_operations(mix: Mix, engine: Engine, operations: usize) {
    let operations = setting("TOWNSQUARE_TEST_OPERATIONS", operations);
    // The test asks for results, not for durability.
    let folder = temp_dir();
    let options = |config: Config| with_files(config.durability(Durability::Normal), folder.path());
    let Some(db) = TestDatabase::with(engine, options) else { return };
    let mut run = Run {
        mix,
        model: Tables { now: db.now(), ..Tables::default() },
        db: &db,
        users: Vec::new(),
        ended: Vec::new(),
        random: Rng::with_seed(seed(1)),
        folder: folder.path(),
        steps: 0,
        outcomes: BTreeMap::new(),
    };
    run.create_users();
    for _ in 0..operations {
        run.step();
    }
    run.read_everything();
    run.read_all_files();
    run.assert_coverage(operations);
    run.assert_row_counts();
    for user in &run.users {
        user.client.close();
    }
}
