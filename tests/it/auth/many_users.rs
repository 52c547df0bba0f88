//! One client with ten thousand handles of different users (DESIGN 4).

use jiff::{SignedDuration, Timestamp};
use ring::digest::{SHA256, digest};
use townsquare::{Uuid, blocking::Client, spaces::NewSpace};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, TestDatabase},
};

const USERS: usize = 10_000;

/// Inserts sessions as the library stores them, because hashing ten thousand passwords would take minutes.
fn insert_sessions(db: &TestDatabase, users: &[Uuid]) {
    let rows = |row: &dyn Fn(Uuid) -> String| users.iter().map(|user| row(*user)).collect::<Vec<_>>().join(", ");
    let address = |user: Uuid| format!("('{user}', '{}@town.example')", user.simple());
    db.raw.run(&format!("INSERT INTO users (id, email) VALUES {}", rows(&address)));
    let (now, end) = (at(db.now()), at(db.now() + SignedDuration::from_hours(1)));
    let session = |user: Uuid| {
        let (access, refresh) = (hash(&token(user)), hash(&format!("refresh {user}")));
        format!("('{access}', '{user}', '{user}', '{refresh}', '{now}', '{end}', '{end}')")
    };
    let table = match db.engine {
        Engine::Sqlite => "townsquare_sessions",
        Engine::Postgres => "townsquare.sessions",
    };
    let columns = "access_hash, id, user_id, refresh_hash, created_at, access_expires_at, refresh_expires_at";
    db.raw.run(&format!("INSERT INTO {table} ({columns}) VALUES {}", rows(&session)));
}

fn token(user: Uuid) -> String {
    format!("tsa_{}", user.simple())
}

fn hash(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn at(time: Timestamp) -> String {
    format!("{time:.6}")
}

on_both_engines! {
    fn ten_thousand_handles_act_for_ten_thousand_users(db: &TestDatabase) {
        let users: Vec<_> = (1..=USERS).map(|number| Uuid::from_u128(number as u128)).collect();
        users.chunks(500).for_each(|users| insert_sessions(db, users));
        let handles: Vec<Client> =
            users.iter().map(|user| db.client.as_user(&token(*user)).expect("a handle")).collect();
        // Each handle acts for its user, in any order.
        for place in (0..USERS).step_by(97).chain([USERS - 1, 0, 5_000]) {
            let (user, handle) = (users[place], &handles[place]);
            let space = handle.spaces().create_space(NewSpace::named("mine")).expect("created");
            assert_eq!(space.owner_id, Some(user));
            let stranger = &handles[(place + 1) % USERS];
            assert!(stranger.spaces().get_space(space.id).is_err(), "{place}");
            assert_eq!(handle.auth().get_session().expect("asked").map(|held| held.user.id), Some(user));
        }
        // Ending one session ends no other.
        handles[7].auth().sign_out().expect("signed out");
        assert!(handles[7].spaces().get_public_spaces(1, 0).is_err());
        assert!(handles[8].spaces().get_public_spaces(1, 0).is_ok());
    }
}
