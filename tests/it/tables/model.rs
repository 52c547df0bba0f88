//! Random operations against a plain in-memory model: the same rows, the same errors, on both engines.
//!
//! The model takes over what the library alone can choose (new ids) and computes everything else.

mod communities;
mod rows;
mod spaces;

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use serde_json::{Value, json};
use townsquare::{Change, Client, Config, Durability, ErrorKind, NewFidget, NewSpace, Result, Uuid};
use townsquare_tests::{
    random::Random,
    setting::setting,
    store::{Engine, Store},
    town::morning,
};

use self::rows::Model;

/// What a failure is compared by.
type Failure = (ErrorKind, Option<&'static str>);

const MISSING: Failure = (ErrorKind::NotFound, None);
const NO_REFERENCE: Failure = (ErrorKind::ReferenceMissing, Some("23503"));
const NO_FIELD: Failure = (ErrorKind::FieldMissing, Some("23502"));
const TAKEN: Failure = (ErrorKind::AlreadyExists, Some("23505"));
const FORBIDDEN: Failure = (ErrorKind::Forbidden, Some("42501"));
const UNAUTHORIZED: Failure = (ErrorKind::Unauthorized, Some("42501"));

/// A run: the model, the library, and chance.
struct Run<'a> {
    model: Model,
    store: &'a Store,
    random: Random,
    did: BTreeMap<(&'static str, bool), u32>,
}

impl Run<'_> {
    /// Compares what the library said with what the model expects; the value when both agree that it worked.
    fn agree<T, E>(&mut self, what: &'static str, found: Result<T>, expected: Result<E, Failure>) -> Option<(T, E)> {
        *self.did.entry((what, expected.is_ok())).or_default() += 1;
        match (found, expected) {
            (Ok(found), Ok(expected)) => Some((found, expected)),
            (Err(error), Err(expected)) => {
                assert_eq!((error.kind(), error.code()), expected, "{what}: {error:?}");
                None
            }
            (Ok(_), Err(expected)) => panic!("{what} worked, where {expected:?} was due"),
            (Err(error), Ok(_)) => panic!("{what} failed, where it should have worked: {error:?}"),
        }
    }

    fn same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &'static str,
        found: Result<T>,
        expected: Result<T, Failure>,
    ) {
        if let Some((found, expected)) = self.agree(what, found, expected) {
            assert_eq!(found, expected, "{what}");
        }
    }

    fn client(&mut self) -> (&Client, bool) {
        let service = !self.random.percent(15);
        (if service { &self.store.service } else { &self.store.client }, service)
    }

    /// A known id in most cases, an unknown one in some.
    fn one_of(&mut self, known: &[Uuid]) -> Uuid {
        if known.is_empty() || self.random.percent(4) {
            Uuid::from_u128(7)
        } else {
            known[self.random.below(known.len())]
        }
    }

    fn a_space(&mut self) -> Uuid {
        let known: Vec<_> = self.model.spaces.keys().copied().collect();
        self.one_of(&known)
    }

    fn a_fidget(&mut self) -> Uuid {
        let known: Vec<_> = self.model.fidgets.keys().copied().collect();
        self.one_of(&known)
    }

    fn text(&mut self) -> String {
        self.random.pick(&["", "a", "Plaza", "o'clock", "żółć", "🏘", "two\nlines", "%"]).to_owned()
    }

    fn json(&mut self) -> Value {
        match self.random.below(6) {
            0 => Value::Null,
            1 => json!(self.random.next_u64()),
            2 => json!(self.random.next_u64().cast_signed()),
            3 => json!({"x": self.random.below(9), "text": self.text()}),
            4 => json!([true, [], {}, self.text()]),
            _ => json!(self.text()),
        }
    }

    fn optional<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.random.percent(50) { Some(make(self)) } else { None }
    }

    fn change<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Change<T> {
        match self.random.below(8) {
            0 => Change::Clear,
            1..=3 => Change::Set(make(self)),
            _ => Change::Keep,
        }
    }

    fn new_space(&mut self) -> NewSpace {
        let mut new = NewSpace::default();
        new.name = if self.random.percent(4) { None } else { Some(self.text()) };
        new.description = self.optional(Run::text);
        new.is_public = self.random.percent(50);
        let users = self.model.users.clone();
        new.owner_id = self.optional(|run| run.one_of(&users));
        new
    }

    fn new_fidget(&mut self) -> NewFidget {
        let mut new = NewFidget::default();
        new.kind = if self.random.percent(4) { None } else { Some(self.text()) };
        new.config = self.optional(Run::json);
        new.position = self.optional(Run::json);
        new
    }

    fn step(&mut self) {
        let micros = self.random.below(50) as i64;
        match self.random.below(10) {
            0 => self.store.hands.step(SignedDuration::from_micros(-micros)),
            1..=4 => self.store.hands.step(SignedDuration::from_micros(micros)),
            _ => {}
        }
        self.model.now = self.store.hands.clock().now();
        match self.random.below(100) {
            0..=13 => self.create_spaces(),
            14..=21 => self.update_space(),
            22..=30 => self.delete_space(),
            31..=48 => self.create_fidgets(),
            49..=56 => self.update_fidget(),
            57..=61 => self.delete_fidget(),
            62..=66 => self.save_positions(),
            67..=84 => self.read_spaces(),
            85..=90 => self.save_config(),
            91..=95 => self.domains(),
            _ => self.register(),
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

fn random_operations(engine: Engine, usual: usize) {
    let operations = setting("TOWNSQUARE_TEST_OPERATIONS", usual);
    let seed = setting("TOWNSQUARE_TEST_SEED", 1);
    // What is asked here is not what a commit survives.
    let Some(store) = Store::with(engine, |config: Config| config.durability(Durability::Normal)) else { return };
    let users = (0..5).map(|_| store.user()).collect();
    let model = Model { now: morning(), users, ..Model::default() };
    let mut run = Run { model, store: &store, random: Random::seeded(seed), did: BTreeMap::new() };
    for _ in 0..operations {
        run.step();
    }
    let kinds: BTreeSet<_> = run.did.keys().map(|(what, _)| *what).collect();
    assert!(kinds.len() >= 18, "every kind of operation was done: {kinds:?}");
    for (table, rows) in [
        ("spaces", run.model.spaces.len()),
        ("fidgets", run.model.fidgets.len()),
        ("community_configs", run.model.configs.len()),
        ("community_domains", run.model.domains.len()),
        ("\"spaceRegistrations\"", run.model.registrations.len()),
    ] {
        assert_eq!(store.outside.count(table), rows, "{table}");
    }
}

#[test]
fn random_operations_agree_with_the_model_on_sqlite() {
    random_operations(Engine::Sqlite, if cfg!(debug_assertions) { 10_000 } else { 100_000 });
}

#[test]
fn random_operations_agree_with_the_model_on_postgres() {
    random_operations(Engine::Postgres, if cfg!(debug_assertions) { 2_000 } else { 10_000 });
}
