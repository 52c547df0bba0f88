//! Random operations of five users, nobody, the service, and sessions that ended, against a second statement of who may
//! do what (SPEC 5.4, DESIGN 4): the same results in the same order, the same errors, nothing seen or changed besides.
//!
//! The world takes over what the library alone can choose (new ids) and computes everything else; of the library's own
//! policies it uses nothing.

mod accounts;
mod communities;
mod fidgets;
mod people;
mod reads;
pub(super) mod rights;
mod spaces;
mod world;

use std::{collections::BTreeMap, error::Error as _};

use jiff::SignedDuration;
use serde_json::{Value, json};
use townsquare::{Change, Client, Config, Durability, ErrorKind, Operation, Result, Uuid};
use townsquare_tests::{
    random::Random,
    setting::setting,
    store::{Engine, Store},
    town::morning,
};

use self::{people::Person, rights::Who, world::World};

/// What a failure is compared by: kind, SQLSTATE, message.
type Failure = (ErrorKind, Option<&'static str>, &'static str);

const MISSING: Failure = (ErrorKind::NotFound, None, "Record not found");
const NO_REFERENCE: Failure = (ErrorKind::ReferenceMissing, Some("23503"), "Referenced record not found");
const NO_FIELD: Failure = (ErrorKind::FieldMissing, Some("23502"), "Required field is missing");
const TAKEN: Failure = (ErrorKind::AlreadyExists, Some("23505"), "Record already exists");
const ENDED: Failure = (ErrorKind::Unauthorized, None, "Session has ended");
const NOBODY: Failure = (ErrorKind::Unauthorized, None, "Nobody is signed in");

/// Who asks, and by which handle.
#[derive(Clone)]
struct Turn {
    who: Who,
    client: Client,
    /// Whether the handle's session is over: nothing that reaches the database is answered.
    has_ended: bool,
}

/// A run: the world as it should be, the library, and chance.
struct Run<'a> {
    world: World,
    store: &'a Store,
    people: Vec<Person>,
    /// Handles whose session has ended, with whose it was.
    ghosts: Vec<(Uuid, Client)>,
    random: Random,
    done: usize,
    did: BTreeMap<(&'static str, bool), u32>,
}

impl Run<'_> {
    /// Holds what the library said to what was due; the values when both say that it worked.
    fn agree<T, E>(
        &mut self,
        turn: &Turn,
        operation: Operation,
        found: Result<T>,
        due: Result<E, Failure>,
    ) -> Option<(T, E)> {
        let due = match due {
            // What no caller of this kind may do is refused before anything is looked at.
            Err(refused)
                if refused.2.starts_with("Database error: permission") && operation != Operation::UpdateNavigation =>
            {
                Err(refused)
            }
            _ if turn.has_ended => Err(ENDED),
            due => due,
        };
        *self.did.entry((operation.name(), due.is_ok())).or_default() += 1;
        let place = format!("step {}, {operation:?} by {:?}", self.done, turn.who);
        match (found, due) {
            (Ok(found), Ok(due)) => Some((found, due)),
            (Err(error), Err(due)) => {
                assert_eq!((error.kind(), error.code(), error.message()), due, "{place}: {error:?}");
                assert_eq!(error.operation(), Some(operation), "{place}: {error:?}");
                let is_refusal = [ErrorKind::NotFound, ErrorKind::Forbidden, ErrorKind::Unauthorized].contains(&due.0);
                assert!(!is_refusal || error.source().is_none(), "{place} tells more than it should: {error:?}");
                None
            }
            (Ok(_), Err(due)) => panic!("{place} worked, where {due:?} was due"),
            (Err(error), Ok(_)) => panic!("{place} failed, where it should have worked: {error:?}"),
        }
    }

    fn same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        turn: &Turn,
        operation: Operation,
        found: Result<T>,
        due: Result<T, Failure>,
    ) {
        if let Some((found, due)) = self.agree(turn, operation, found, due) {
            assert_eq!(found, due, "step {}, {operation:?} by {:?}", self.done, turn.who);
        }
    }

    /// A known id in most cases; one that is gone, or never was, in some.
    fn one_of(&mut self, known: impl Fn(&World) -> Vec<Uuid>) -> Uuid {
        let known = match self.random.below(100) {
            0 | 1 => Vec::new(),
            2..=4 => self.world.gone.clone(),
            _ => known(&self.world),
        };
        if known.is_empty() { Uuid::from_u128(7) } else { known[self.random.below(known.len())] }
    }

    fn a_space(&mut self) -> Uuid {
        self.one_of(|world| world.spaces.keys().copied().collect())
    }

    fn a_fidget(&mut self) -> Uuid {
        self.one_of(|world| world.fidgets.keys().copied().collect())
    }

    fn a_user(&mut self) -> Uuid {
        self.one_of(|world| world.addresses.keys().copied().collect())
    }

    fn text(&mut self) -> String {
        self.random.pick(&["", "Plaza", "o'clock", "żółć", "x' OR true --", "$1", "%"]).to_owned()
    }

    fn json(&mut self) -> Value {
        match self.random.below(4) {
            0 => Value::Null,
            1 => json!(self.random.next_u64()),
            2 => json!({"x": self.random.below(9), "text": self.text()}),
            _ => json!([true, self.text()]),
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

    fn switch(&mut self) -> Change<bool> {
        match self.random.below(6) {
            0 => Change::Set(true),
            1 => Change::Set(false),
            2 => Change::Clear,
            _ => Change::Keep,
        }
    }

    fn step(&mut self) {
        self.done += 1;
        let micros = self.random.below(50) as i64;
        match self.random.below(10) {
            0 => self.store.hands.step(SignedDuration::from_micros(-micros)),
            1..=4 => self.store.hands.step(SignedDuration::from_micros(micros)),
            _ => {}
        }
        self.world.now = self.store.hands.clock().now();
        let turn = self.turn();
        let crowded = self.world.spaces.len() > 120;
        match self.random.below(1_000) {
            0 | 1 => {
                let place = self.random.below(self.people.len());
                self.sign_out(place);
            }
            2 => self.delete_user(),
            3..=6 => self.ask_to_delete_a_user(&turn),
            7..=30 => self.link_identity(&turn),
            31..=140 if !crowded => self.create_spaces(&turn),
            141..=230 => self.update_space(&turn),
            31..=270 => self.delete_space(&turn),
            271..=370 => self.create_fidgets(&turn),
            371..=450 => self.update_fidget(&turn),
            451..=490 => self.delete_fidget(&turn),
            491..=540 => self.save_positions(&turn),
            541..=580 => {
                let turn = self.mostly_the_service(turn);
                self.save_config(&turn);
            }
            581..=630 => self.update_navigation(&turn),
            631..=670 => {
                let turn = self.mostly_the_service(turn);
                self.domains(&turn);
            }
            671..=710 => self.register(&turn),
            711..=730 => self.turn_pages(&turn),
            731 => self.look_at_everything(),
            _ => self.read(&turn),
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
    let mut run = Run {
        world: World { now: morning(), ..World::default() },
        store: &store,
        people: Vec::new(),
        ghosts: Vec::new(),
        random: Random::seeded(seed),
        done: 0,
        did: BTreeMap::new(),
    };
    for place in 0..5 {
        run.settle(place);
    }
    run.sign_out(4);
    for _ in 0..operations {
        run.step();
    }
    run.look_at_everything();
    let did = |what: &str, worked| run.did.keys().any(|done| *done == (what, worked));
    let mut both: Vec<_> =
        run.did.keys().map(|(what, _)| *what).filter(|what| did(what, true) && did(what, false)).collect();
    both.dedup();
    assert!(operations < 2_000 || both.len() >= 20, "every operation both worked and was refused: {both:?}");
    for (table, rows) in [
        ("users", run.world.addresses.len()),
        ("spaces", run.world.spaces.len()),
        ("fidgets", run.world.fidgets.len()),
        ("community_configs", run.world.communities.len()),
        ("community_domains", run.world.domains.len()),
        ("\"spaceRegistrations\"", run.world.registrations.len()),
    ] {
        assert_eq!(store.outside.count(table), rows, "{table}");
    }
    for person in &run.people {
        townsquare::blocking::wait(person.client.close());
    }
}

#[test]
fn random_operations_show_and_change_what_they_may_on_sqlite() {
    random_operations(Engine::Sqlite, 20_000);
}

#[test]
fn random_operations_show_and_change_what_they_may_on_postgres() {
    random_operations(Engine::Postgres, if cfg!(debug_assertions) { 3_000 } else { 10_000 });
}
