//! Several processes on one database: concurrent opens, concurrent writes, and a killed writer.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use townsquare::{
    Uuid,
    blocking::Client,
    spaces::{NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    Rng, on_both_engines,
    setting::{seed, setting},
    subprocess::{join_child, kill_after, name_of, role},
    test_database::{EmptyDatabase, Engine, child_on, inherited},
    wait::wait_until,
};

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_entry_point() {
    match role().as_deref() {
        Some("open") => {
            let client = Client::open(inherited()).expect("opens");
            client.as_service().spaces().create_space(NewSpace::named("x")).expect("created");
            client.close();
        }
        Some("write") => write_for_a_while(),
        Some("read") => read_for_a_while(),
        Some("acknowledge") => write_and_acknowledge(),
        _ => {}
    }
}

fn entry_point() -> &'static str {
    name_of(&child_process_entry_point)
}

fn eight_processes_open_a_new_database_at_once(engine: Engine) {
    let Some(empty) = EmptyDatabase::on(engine) else { return };
    let children: Vec<_> =
        (0..8).map(|_| child_on(&empty.url(), entry_point(), "open", &[]).spawn().expect("starts")).collect();
    for child in children {
        join_child(child);
    }
    assert_eq!(empty.raw().count("spaces"), 8);
    let db = empty.open();
    db.service.spaces().create_space(NewSpace::named("ninth")).expect("created");
}

#[test]
fn eight_processes_open_a_new_sqlite_file_at_once() {
    for _ in 0..3 {
        eight_processes_open_a_new_database_at_once(Engine::Sqlite);
    }
}

#[test]
fn eight_processes_open_a_new_postgres_database_at_once() {
    eight_processes_open_a_new_database_at_once(Engine::Postgres);
}

fn seconds() -> u64 {
    setting("TOWNSQUARE_TEST_SECONDS", 2)
}

fn write_for_a_while() {
    let client = Client::open(inherited()).expect("opens").as_service();
    let end = Instant::now() + Duration::from_secs(seconds());
    let mut written = 0;
    while Instant::now() < end {
        let space = client.spaces().create_space(NewSpace::named("x").public()).expect("created");
        let pair = vec![NewFidget::of_type("a"), NewFidget::of_type("b")];
        client.fidgets().create_fidgets(space.id, pair).expect("created");
        client.spaces().update_space(space.id, SpacePatch::new().name("y")).expect("updated");
        if written % 3 == 2 {
            client.spaces().delete_space(space.id).expect("deleted");
        }
        written += 1;
    }
    assert!(written > 0);
    client.close();
}

fn read_for_a_while() {
    let client = Client::open(inherited()).expect("opens");
    let end = Instant::now() + Duration::from_secs(seconds());
    while Instant::now() < end {
        for space in client.spaces().get_public_spaces(20, 0).expect("a page") {
            // It may be deleted by now, but never be incomplete.
            if let Ok(found) = client.spaces().get_space_with_fidgets(space.id) {
                assert_eq!(found.fidgets.len(), 2, "a pair is written in one transaction");
            }
        }
    }
    client.close();
}

/// Writes on four threads until the process is killed; prints each acknowledged write.
fn write_and_acknowledge() {
    let client = Client::open(inherited()).expect("opens").as_service();
    let acknowledge = |what: &str| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "ACK {what}").and_then(|()| out.flush()).expect("the parent listens");
    };
    thread::scope(|scope| {
        for writer in 0..4 {
            let (client, acknowledge) = (&client, &acknowledge);
            scope.spawn(move || {
                for number in 0.. {
                    let name = format!("{writer}/{number}");
                    let three = (0..3).map(|_| NewSpace::named(name.clone())).collect();
                    let made = client.spaces().create_spaces(three).expect("created");
                    acknowledge(&format!("made {name}"));
                    let space = made[0].id;
                    let pair = vec![NewFidget::of_type(name.clone()), NewFidget::of_type(name.clone())];
                    let pair = client.fidgets().create_fidgets(space, pair).expect("created");
                    let positions: BTreeMap<Uuid, _> =
                        pair.iter().map(|fidget| (fidget.id, Some(json!(number)))).collect();
                    client.fidgets().save_positions(space, positions).expect("saved");
                    acknowledge(&format!("placed {name}"));
                    client.spaces().delete_space(made[1].id).expect("deleted");
                    acknowledge(&format!("deleted {}", made[1].id));
                }
            });
        }
    });
}

/// Kills a writing child after `delay`; returns the writes that it acknowledged.
fn acknowledged_before_kill(child: Child, delay: Duration) -> BTreeSet<String> {
    let lines = kill_after(child, &["ACK "], delay);
    lines.iter().filter_map(|line| line.strip_prefix("ACK ")).map(str::to_owned).collect()
}

fn names_and_counts(rows: Vec<Vec<Option<String>>>) -> impl Iterator<Item = (String, u32)> {
    rows.into_iter().map(|row| {
        let mut row = row.into_iter().flatten();
        let name = row.next().expect("a name");
        (name, row.next().and_then(|count| count.parse().ok()).expect("a count"))
    })
}

on_both_engines! {
    fn two_clients_see_each_others_writes(db: &TestDatabase) {
        let other = db.another().as_service();
        let space = db.space();
        assert_eq!(other.spaces().get_space(space.id).expect("seen"), space);
        let renamed = other.spaces().update_space(space.id, SpacePatch::new().name("renamed")).expect("updated");
        assert_eq!(db.service.spaces().get_space(space.id).expect("seen"), renamed);
        thread::scope(|scope| {
            for client in [&db.service, &other] {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..25 {
                            client.fidgets().create_fidget(space.id, NewFidget::of_type("x")).expect("created");
                            client.spaces().update_space(space.id, SpacePatch::new().published())
                                .expect("updated");
                        }
                    });
                }
            }
        });
        assert_eq!(other.fidgets().get_space_fidgets(space.id).expect("a list").len(), 200);
        let last = db.service.spaces().get_space(space.id).expect("read");
        // With a stopped clock, each of the 201 updates adds a microsecond.
        assert_eq!(last.updated_at.duration_since(space.updated_at).as_micros(), 201);
        other.close();
    }

    fn writers_and_readers_in_six_processes_do_not_fail(db: &TestDatabase) {
        let variables = [("TOWNSQUARE_TEST_SECONDS", seconds().to_string())];
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let children: Vec<_> = ["write", "write", "read", "read", "read", "read"]
            .map(|role| db.child(entry_point(), role, &variables).spawn().expect("starts"))
            .into();
        for child in children {
            // A child panics on `database is locked`.
            join_child(child);
        }
        assert!(db.raw.count("spaces") > 0);
    }

    fn acknowledged_writes_survive_a_kill(db: &TestDatabase) {
        let usual = if db.engine == Engine::Sqlite { 20 } else { 5 };
        let rounds = setting("TOWNSQUARE_TEST_KILLS", usual);
        let mut random = Rng::with_seed(seed(9));
        for round in 0..rounds {
            db.wait_for_transactions();
            wait_until("the rows of the last round are deleted", || {
                db.raw.try_rows("DELETE FROM fidgets; DELETE FROM spaces").is_ok()
            });
            let child = db.child(entry_point(), "acknowledge", &[]).spawn().expect("starts");
            let acknowledged = acknowledged_before_kill(child, Duration::from_micros(random.u64(..40_000)));
            let rows = db.raw.rows("SELECT name, count(*) FROM spaces GROUP BY name");
            let spaces: BTreeMap<_, _> = names_and_counts(rows).collect();
            let placed: BTreeMap<_, _> =
                names_and_counts(db.raw.rows("SELECT type, count(position) FROM fidgets GROUP BY type")).collect();
            let ids: BTreeSet<_> = db.raw.rows("SELECT id FROM spaces").into_iter().flatten().flatten().collect();
            assert!(acknowledged.iter().any(|what| what.starts_with("made")), "round {round}: something was written");
            for what in &acknowledged {
                let (done, name) = what.split_once(' ').expect("two words");
                match done {
                    "made" => assert!(spaces.contains_key(name), "round {round}: {what} is lost"),
                    "placed" => assert_eq!(placed.get(name), Some(&2), "round {round}: {what} is lost"),
                    _ => assert!(!ids.contains(name), "round {round}: {what} is undone"),
                }
            }
            for (name, count) in &spaces {
                assert!([2, 3].contains(count), "round {round}: {name} is half there: {count}");
            }
            for (name, count) in &placed {
                assert!([0, 2].contains(count), "round {round}: {name} is half placed: {count}");
            }
            let per_space = db.raw.rows("SELECT type, count(*) FROM fidgets GROUP BY type");
            assert!(names_and_counts(per_space).all(|(_, count)| count == 2), "round {round}: half a pair");
            let errors = db.integrity_errors();
            assert!(errors.is_empty(), "round {round}: {errors:?}");
        }
    }
}
