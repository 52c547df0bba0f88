//! Writers in other processes and in the shell, and subscribers that are killed.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use townsquare::{blocking::Client, realtime::ChangeRequest, spaces::NewSpace};
use townsquare_tests::{
    Rng, on_both_engines,
    setting::{seed, setting},
    subprocess::{join_child, name_of, role},
    temp_dir,
    test_database::{Engine, inherited},
    wait::wait_until,
};

use super::fixture::{next, next_short, stream};

/// The variable with the folder in which a child stores what it saw.
const FOLDER: &str = "TOWNSQUARE_TEST_FOLDER";

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_entry_point() {
    match role().as_deref() {
        Some("write") => {
            let client = Client::open(inherited()).expect("opens");
            for number in 0..20 {
                client.as_service().spaces().create_space(NewSpace::named(format!("{number}"))).expect("created");
            }
            client.close();
        }
        Some("follow") => follow_until_killed(),
        _ => {}
    }
}

fn entry_point() -> &'static str {
    name_of(&child_process_entry_point)
}

/// Appends the name of each change and its cursor to a file, in one write, and goes on from the last whole line.
fn follow_until_killed() {
    let path = Path::new(&std::env::var(FOLDER).expect("a folder")).join("seen");
    let client = Client::open(inherited()).expect("opens").as_service();
    let stored = fs::read_to_string(&path).expect("the file exists");
    let whole = stored.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let (_, cursor) = whole.rsplit_once(' ').expect("a first cursor");
    let changes = client.realtime().changes(ChangeRequest::table("spaces").since(cursor)).expect("a stream");
    let mut file = fs::OpenOptions::new().append(true).open(&path).expect("the file opens");
    // A write that was cut off leaves a part of a line, which the next process ends and ignores.
    if !stored.ends_with('\n') {
        file.set_len(whole.len() as u64 + 1).expect("cut");
    }
    for change in changes {
        let change = change.expect("a change");
        let line = format!("{} {}\n", change.new.expect("a row")["name"].as_str().expect("a name"), change.cursor);
        file.write_all(line.as_bytes()).expect("written");
    }
}

on_both_engines! {
    fn another_process_writes_and_its_changes_are_delivered(db: &TestDatabase) {
        let mut changes = stream(&db.service, ChangeRequest::table("spaces"));
        let child = db.child(entry_point(), "write", &[]).spawn().expect("starts");
        let expected: Vec<_> = (0..20).map(|number| format!("INSERT {number}")).collect();
        assert_eq!(next_short(&mut changes, 20), expected);
        join_child(child);
    }

    fn plain_sql_is_delivered_soon(db: &TestDatabase) {
        let mut changes = stream(&db.service, ChangeRequest::table("spaces"));
        let mut arrives_soon = |number: i32| {
            let begin = Instant::now();
            db.raw.run(&format!("INSERT INTO spaces (name) VALUES ('{number}')"));
            assert_eq!(next(&mut changes).new.expect("a row")["name"], format!("{number}"));
            begin.elapsed() < Duration::from_millis(20)
        };
        // A loaded machine may delay most of them, but not each.
        assert!((0..1_000).any(&mut arrives_soon), "none of 1,000 changes arrived within 20 ms");
    }

    fn a_subscriber_that_is_killed_goes_on_from_its_cursor(db: &TestDatabase) {
        let rounds = setting("TOWNSQUARE_TEST_KILLS", if db.engine == Engine::Sqlite { 10 } else { 4 });
        let folder = temp_dir();
        let seen = folder.path().join("seen");
        let cursor = db.service.realtime().cursor().expect("a cursor");
        fs::write(&seen, format!("start {cursor}\n")).expect("written");
        let variables = [(FOLDER, folder.path().to_str().expect("UTF-8"))];
        let mut random = Rng::with_seed(seed(5));
        let mut written = 0;
        let lines = || fs::read_to_string(&seen).expect("readable").matches('\n').count();
        for _ in 0..rounds {
            let mut child = db.child(entry_point(), "follow", &variables).stderr(Stdio::null()).spawn().expect("starts");
            let before = lines();
            let target = written + random.usize(20..60);
            while written < target {
                db.service.spaces().create_space(NewSpace::named(format!("{written}"))).expect("created");
                written += 1;
            }
            wait_until("the child has seen some", || lines() > before + random.usize(..15));
            child.kill().expect("killed");
            child.wait().expect("dead");
        }
        let mut child = db.child(entry_point(), "follow", &variables).spawn().expect("starts");
        wait_until("the child has seen all", || lines() > written);
        child.kill().expect("killed");
        child.wait().expect("dead");
        let text = fs::read_to_string(&seen).expect("readable");
        let names: Vec<_> = text.lines().filter_map(|line| line.split_once(' ')).map(|(name, _)| name).skip(1).collect();
        let expected: Vec<_> = (0..written).map(|number| number.to_string()).collect();
        assert_eq!(names, expected, "each change once, in order");
    }
}

mod shell {
    //! The sqlite3 module of Python, whose SQLite is another one.

    use super::{ChangeRequest, Command, next_short, stream};
    use townsquare_tests::{on_engine, skip::skip};

    const PROGRAM: &str = "
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
space = '6f2c1f4e-7d1a-4a53-9d55-0c1f3a4b5c6d'
database.execute('INSERT INTO spaces (id, name) VALUES (?, ?)', [space, 'by hand'])
database.execute('INSERT INTO fidgets (space_id, type) VALUES (?, ?)', [space, 'clock'])
# Without recursive_triggers no trigger fires for the row that is replaced.
database.execute('INSERT OR REPLACE INTO spaces (id, name) VALUES (?, ?)', [space, 'replaced'])
# Foreign keys are off: the fidget outlives its space.
database.execute('DELETE FROM spaces')
database.execute('DELETE FROM fidgets')
";

    on_engine! { Sqlite in sqlite;
        fn a_shell_without_foreign_keys_is_followed(db: &TestDatabase) {
            let mut spaces = stream(&db.service, ChangeRequest::table("spaces"));
            let mut fidgets = stream(&db.service, ChangeRequest::table("fidgets"));
            let Ok(output) = Command::new("python3").args(["-c", PROGRAM]).arg(db.file()).output() else {
                return skip("python3");
            };
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(next_short(&mut spaces, 3), ["INSERT by hand", "INSERT replaced", "DELETE replaced"]);
            assert_eq!(next_short(&mut fidgets, 2), ["INSERT clock", "DELETE clock"]);
        }
    }
}
