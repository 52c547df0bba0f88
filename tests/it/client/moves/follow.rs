//! Moves that follow their source while it is written (`MoveOptions::follow`): what was acknowledged is in the target, and the source
//! takes no further writes.

use std::{
    collections::BTreeMap,
    fs,
    ops::ControlFlow,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use townsquare::{
    Config, Error, ErrorKind, MoveOptions, MoveReport, Result, Uuid,
    blocking::Client,
    check::CheckDepth,
    spaces::{NewFidget, NewSpace, SpacePatch},
    storage::UploadOptions,
};
use townsquare_tests::{
    fixture::assert_kind,
    raw_sql::RawConnection,
    subprocess::{child, kill_after, name_of, role, run_child},
    temp_dir,
    test_database::{EmptyDatabase, Engine},
    wait::wait_until,
};

use super::{HOSTILE, PASSWORD, Remote, SIZES, Town, config, content, files, go_on, with_id};

const PAUSE: Duration = Duration::from_secs(10);

/// How often a test calls a move that gives up.
const MOVES: usize = 5;

fn following() -> MoveOptions {
    MoveOptions::new().follow(PAUSE)
}

/// Moves from `source` to `target`. A move gives up if a write or its own pause takes too long, as on a loaded machine: then the next
/// call continues it.
fn move_in_time(
    source: &Client,
    target: &Config,
    mut progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
) -> Result<MoveReport> {
    let has_given_up = |error: &Error| error.is_retryable() || error.kind() == ErrorKind::Conflict;
    let mut move_once = || source.move_to(target.clone(), following(), &mut progress);
    for _ in 1..MOVES {
        let moved = move_once();
        if !moved.as_ref().is_err_and(has_given_up) {
            return moved;
        }
    }
    move_once()
}

/// What a writer was told is written.
#[derive(Default)]
struct Acknowledged {
    spaces: Vec<(Uuid, String)>,
    fidgets: usize,
    files: BTreeMap<String, Vec<u8>>,
}

/// Writes until a write is refused, or until `stop`. Returns what was acknowledged, and the refusal.
fn write(service: &Client, writer: usize, stop: &AtomicBool, written: &AtomicUsize) -> (Acknowledged, Option<Error>) {
    let mut done = Acknowledged::default();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut write_one = || -> Result<()> {
            let id = Uuid::new_v4();
            let name = format!("{writer}-{number}");
            service.spaces().create_space(with_id(&name, id))?;
            done.spaces.push((id, name));
            service.fidgets().create_fidget(id, NewFidget::of_type("clock"))?;
            done.fidgets += 1;
            if let Some((id, name)) = done.spaces.get_mut(number / 2) {
                service.spaces().update_space(*id, SpacePatch::new().name("renamed"))?;
                *name = "renamed".to_owned();
            }
            if number % 5 == 0 {
                let path = format!("{writer}/{}", number % 15);
                let bytes = content(number, if number % 2 == 0 { 70_000 } else { 700 });
                service.storage().upload("assets", &path, bytes.clone(), UploadOptions::new())?;
                done.files.insert(path, bytes);
            }
            Ok(())
        };
        if let Err(error) = write_one() {
            return (done, Some(error));
        }
        written.fetch_add(1, Ordering::Relaxed);
    }
    (done, None)
}

/// Moves from an open source to `target` while two threads write. Everything that was acknowledged is there, and the source is closed.
fn moves_under_writers(source: &Client, target: &Config) {
    let service = source.as_service();
    let (stop, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (report, writers) = thread::scope(|scope| {
        let writers = [1, 2].map(|number| {
            let (service, stop, written) = (&service, &stop, &written);
            scope.spawn(move || write(service, number, stop, written))
        });
        wait_until("the writers write", || written.load(Ordering::Relaxed) > 20);
        let report = move_in_time(source, target, go_on);
        // The writers end by themselves, if the source refuses them.
        stop.store(report.is_err(), Ordering::Relaxed);
        (report, writers.map(|writer| writer.join().expect("no panic")))
    });
    let report = report.expect("moved");
    let moved = Client::open(target.clone()).expect("opens");
    let target = moved.as_service();
    for (done, refusal) in &writers {
        let refusal = refusal.as_ref().expect("the source refuses writes");
        assert_eq!((refusal.kind(), refusal.code()), (ErrorKind::Unavailable, Some("25006")), "{refusal}");
        assert!(!refusal.is_retryable(), "{refusal}");
        assert!(refusal.to_string().contains("has moved to another place"), "{refusal}");
        assert!(done.spaces.len() > 3, "the test needs writes: {}", done.spaces.len());
        for (id, name) in &done.spaces {
            assert_eq!(&target.spaces().get_space(*id).expect("it was acknowledged").name, name);
        }
        for (path, bytes) in &done.files {
            let found = target.storage().download("assets", path).expect("it was acknowledged");
            assert!(found == *bytes, "{path}");
        }
    }
    let fidgets: usize = writers.iter().map(|(done, _)| done.fidgets).sum();
    assert!(report.rows["fidgets"] >= fidgets as u64, "{report:?}");
    assert!(files(&target) == files(&service), "files");
    moved.close();
}

/// Nobody writes the source: not its tables, not its accounts, not its files. Everybody reads it.
fn assert_closed(source: &Client, opened: &Client) {
    for client in [source, opened] {
        let service = client.as_service();
        let refused = [
            service.spaces().create_space(NewSpace::named("late")).map(drop),
            client.auth().sign_up("late@town.example", PASSWORD).map(drop),
            client.auth().create_session("ann@town.example", PASSWORD).map(drop),
            service.storage().upload("assets", "late", vec![1; 10], UploadOptions::new()).map(drop),
            service.storage().upload("assets", "late-large", vec![1; 100_000], UploadOptions::new()).map(drop),
        ];
        for refused in refused {
            let error = assert_kind(ErrorKind::Unavailable, refused);
            assert_eq!((error.code(), error.is_retryable()), (Some("25006"), false), "{error}");
            assert!(
                error.explanation().contains("the place to which the database has moved"),
                "{}",
                error.explanation()
            );
        }
        assert!(!service.spaces().get_public_spaces(10, 0).expect("read").is_empty());
    }
}

fn follows_and_closes(source: &Config, client: &Client, target: &Config) {
    client.auth().sign_up("ann@town.example", PASSWORD).expect("signed up");
    client.as_service().spaces().create_space(NewSpace::named("first").public()).expect("created");
    moves_under_writers(client, target);
    let opened = Client::open(source.clone()).expect("a source that moved opens");
    assert_closed(client, &opened);
    // The target is given up: the source is as it was.
    assert!(opened.reopen_for_writes().expect("reopened"));
    assert!(!client.reopen_for_writes().expect("it is open"));
    client.as_service().spaces().create_space(NewSpace::named("late")).expect("created");
    opened.auth().create_session("ann@town.example", PASSWORD).expect("signed in");
    opened.close();
}

#[test]
fn a_folder_that_is_written_moves_without_loss() {
    let (town, folder) = (Town::new(), temp_dir());
    follows_and_closes(&config(town.folder.path()), &town.client, &config(folder.path()));
}

#[test]
fn a_folder_that_is_written_moves_to_postgres_and_s3_and_back_without_loss() {
    let (Some(remote), folder) = (Remote::new(), temp_dir()) else { return };
    let town = Town::new();
    follows_and_closes(&config(town.folder.path()), &town.client, &remote.config());
    let source = Client::open(remote.config()).expect("opens");
    moves_under_writers(&source, &config(folder.path()));
    assert_closed(&source, &Client::open(remote.config()).expect("opens"));
    source.close();
}

/// Backups read the source, and repairs and checks settle its files, also while the writers wait.
#[test]
fn backups_and_repairs_go_on_beside_a_move_that_follows() {
    let (town, folder, copies) = (Town::new(), temp_dir(), temp_dir());
    let ended = AtomicBool::new(false);
    let backups = thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut backups = 0;
            while !ended.load(Ordering::Relaxed) {
                town.service.backup(copies.path().join(format!("{backups}.db"))).expect("a backup");
                town.service.storage().repair().expect("repaired");
                town.service.check(CheckDepth::Quick).expect("checked");
                backups += 1;
            }
            backups
        });
        moves_under_writers(&town.client, &config(folder.path()));
        ended.store(true, Ordering::Relaxed);
        beside.join().expect("no panic")
    });
    for number in 0..backups {
        let restored = temp_dir();
        Client::restore(copies.path().join(format!("{number}.db")), restored.path().join("town")).expect("restored");
    }
    assert!(backups > 0);
}

#[test]
fn a_pause_that_is_too_short_ends_and_the_writers_go_on() {
    let (town, folder) = (Town::new(), temp_dir());
    town.fill();
    let options = MoveOptions::new().follow(Duration::ZERO);
    let error = assert_kind(ErrorKind::Conflict, town.client.move_to(config(folder.path()), options, go_on));
    assert!(error.message().contains("in a pause of 0.0 s"), "{error}");
    town.service.spaces().create_space(NewSpace::named("late")).expect("created");
    assert_kind(ErrorKind::Config, Client::open(config(folder.path())));
    let report = move_in_time(&town.client, &config(folder.path()), go_on).expect("moved");
    assert!(report.resumed);
    assert_kind(ErrorKind::Unavailable, town.service.spaces().create_space(NewSpace::named("later")));
}

#[test]
fn a_source_in_memory_is_not_followed() {
    let (source, folder) =
        (Client::open(Config::new().data_dir(":memory:").catalog_api_key("")).expect("opens"), temp_dir());
    let target = folder.path().join("target");
    let error = assert_kind(ErrorKind::Config, source.move_to(config(&target), following(), go_on));
    assert!(error.message().contains("in memory"), "{error}");
    assert!(!target.exists());
    source.close();
}

/// The source has the mark, and the process was killed before the target opened.
#[test]
fn a_repeated_move_completes_after_its_source_is_closed() {
    let (town, folder) = (Town::new(), temp_dir());
    town.fill();
    let mut calls = 0;
    let stopped = town.client.move_to(config(folder.path()), following(), |_, _| {
        calls += 1;
        if calls > 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_kind(ErrorKind::Cancelled, stopped);
    town.raw().run("INSERT INTO townsquare_moved_away VALUES (1, 'x', '2026-01-02T03:04:05.123456Z')");
    let other = temp_dir();
    for options in [MoveOptions::new(), following()] {
        let error = assert_kind(ErrorKind::Config, town.client.move_to(config(other.path()), options, go_on));
        assert!(error.message().contains("has moved to the database with the incarnation x"), "{error}");
        assert_kind(ErrorKind::Config, town.client.check_move(config(other.path())));
        assert!(fs::read_dir(other.path()).expect("a folder").next().is_none(), "a refused move makes no database");
    }
    let raw = RawConnection::sqlite(&folder.path().join("townsquare.db"));
    let target = raw.value("SELECT incarnation FROM townsquare_database");
    town.raw().run(&format!("UPDATE townsquare_moved_away SET target = '{target}'"));
    assert!(move_in_time(&town.client, &config(folder.path()), go_on).expect("moved").resumed);
    Client::open(config(folder.path())).expect("opens").close();
    let error = assert_kind(ErrorKind::Config, town.client.move_to(config(folder.path()), following(), go_on));
    assert!(error.message().contains("The move is complete"), "{error}");
}

/// The bytes of an object in the target are damaged after they were copied: its size is the same.
#[test]
fn a_move_that_follows_compares_the_bytes_of_objects() {
    let (town, folder) = (Town::new(), temp_dir());
    town.fill();
    let path = format!("files/assets/files/{}/{}", HOSTILE[4], SIZES[4]);
    let object = folder.path().join(path);
    let mut is_damaged = false;
    let moved = town.client.move_to(config(folder.path()), following(), |done, all| {
        if done == all && !is_damaged {
            is_damaged = true;
            fs::write(&object, vec![7; SIZES[4]]).expect("an object");
        }
        ControlFlow::Continue(())
    });
    let error = assert_kind(ErrorKind::Internal, moved);
    assert!(error.message().contains("The copy of the tables files differs"), "{error}");
    town.service.spaces().create_space(NewSpace::named("the source is open")).expect("created");
}

/// More writers than the client has connections.
#[test]
fn many_writers_of_the_same_client_wait_for_the_move() {
    let Some(database) = EmptyDatabase::on(Engine::Postgres) else { return };
    let (first, second) = (temp_dir(), temp_dir());
    let source = Config::new().database_url(database.url()).data_dir(first.path()).catalog_api_key("");
    let client = Client::open(source.max_connections(2)).expect("opens");
    let (service, target) = (client.as_service(), config(second.path()));
    let written = AtomicUsize::new(0);
    let report = thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                while service.spaces().create_space(NewSpace::named("town")).is_ok() {
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        wait_until("the writers write", || written.load(Ordering::Relaxed) > 20);
        move_in_time(&client, &target, go_on).expect("moved")
    });
    assert_eq!(report.rows["spaces"], written.into_inner() as u64);
    client.close();
}

/// The snapshot of a transaction is older than the end of the writes.
#[test]
fn a_transaction_with_an_old_snapshot_is_refused_after_the_move() {
    let Some(database) = EmptyDatabase::on(Engine::Postgres) else { return };
    let (first, second) = (temp_dir(), temp_dir());
    let source = Config::new().database_url(database.url()).data_dir(first.path()).catalog_api_key("");
    let client = Client::open(source).expect("opens");
    let raw = database.raw();
    raw.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(raw.value("SELECT count(*)::text FROM public.fidgets"), "0");
    move_in_time(&client, &config(second.path()), go_on).expect("moved");
    let refused = raw.try_rows("INSERT INTO spaces (name) VALUES ('late')").expect_err("refused");
    assert!(refused.contains("has moved to another place"), "{refused}");
    client.close();
}

/// A host that imports users from the callback of the move: the callback is not called while its writes would wait.
#[test]
fn a_callback_that_writes_the_source_does_not_wait_for_itself() {
    let (town, folder) = (Town::new(), temp_dir());
    town.fill();
    let mut written = 0_u64;
    let report = move_in_time(&town.client, &config(folder.path()), |_, _| {
        town.service.spaces().create_space(NewSpace::named("by the callback")).expect("written at once");
        written += 1;
        ControlFlow::Continue(())
    });
    let spaces = report.expect("moved").rows["spaces"];
    assert!(spaces >= written && written > 10, "{spaces} {written}");
}

/// Moves its source, until it is killed.
#[test]
#[allow(clippy::print_stdout, reason = "the parent waits for it")]
fn child_process_that_follows() {
    if role().as_deref() != Some("follow") {
        return;
    }
    let path = |name: &str| std::env::var(name).expect("a place");
    let source = Client::open(config(path("SOURCE").as_ref())).expect("opens");
    println!("moving");
    let moved = move_in_time(&source, &config(path("TARGET").as_ref()), go_on);
    // The one before may have been killed between its last step and its last word.
    let is_complete = |error: &Error| error.message().contains("The move is complete");
    assert!(moved.as_ref().err().is_none_or(is_complete), "{moved:?}");
    println!("moved");
    source.close();
}

#[test]
fn a_killed_move_leaves_its_source_to_the_writers_or_closed_for_good() {
    let town = Town::new();
    town.fill();
    let folder = temp_dir();
    let (source, target) = (town.folder.path().display().to_string(), folder.path().display().to_string());
    let service = &town.service;
    let (stop, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (done, refusal) = thread::scope(|scope| {
        let writer = scope.spawn(|| write(service, 1, &stop, &written));
        let mut random = fastrand::Rng::new();
        // The data grows meanwhile, so the last call is left to its end.
        for kill in 0..=12 {
            let variables = [("SOURCE", source.as_str()), ("TARGET", target.as_str())];
            let mut process = child(name_of(&child_process_that_follows), "follow", &variables);
            if kill == 12 {
                run_child(&mut process);
                break;
            }
            let delay = Duration::from_millis(random.u64(0..1_000));
            let said = kill_after(process.spawn().expect("it starts"), &["moving", "moved"], delay);
            if said.iter().any(|line| line.starts_with("moved")) {
                break;
            }
        }
        wait_until("the writer is refused", || writer.is_finished());
        writer.join().expect("no panic")
    });
    assert!(refusal.is_some(), "the writer was refused at the end");
    let moved = Client::open(config(folder.path())).expect("opens");
    for (id, name) in &done.spaces {
        assert_eq!(&moved.as_service().spaces().get_space(*id).expect("it was acknowledged").name, name);
    }
    assert!(files(&moved.as_service()) == files(service), "files");
    moved.close();
}

/// A program that writes a table for a long time holds the pause up, and the move says so.
#[test]
fn a_long_transaction_on_postgres_holds_the_pause_up() {
    let Some(database) = EmptyDatabase::on(Engine::Postgres) else { return };
    let (first, second) = (temp_dir(), temp_dir());
    let source = Config::new().database_url(database.url()).data_dir(first.path()).catalog_api_key("");
    let client = Client::open(source).expect("opens");
    let space = client.as_service().spaces().create_space(NewSpace::named("town")).expect("created");
    let (raw, other) = (database.raw(), database.raw());
    raw.run("BEGIN");
    raw.run("UPDATE spaces SET name = 'x'");
    let error = assert_kind(ErrorKind::Unavailable, client.move_to(config(second.path()), following(), go_on));
    assert_eq!(error.code(), Some("55P03"), "{error}");
    // A write of the same client waits for the row: the others do not wait for the move.
    let service = client.as_service();
    thread::scope(|scope| {
        let blocked = scope.spawn(|| service.spaces().update_space(space.id, SpacePatch::new().name("y")));
        let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        wait_until("the write waits", || other.count(waiting) == 1);
        let error = assert_kind(ErrorKind::Unavailable, client.move_to(config(second.path()), following(), go_on));
        assert!(error.to_string().contains("a write of this client to the source has not ended"), "{error}");
        raw.run("COMMIT");
        blocked.join().expect("no panic").expect("the write has waited");
    });
    let report = move_in_time(&client, &config(second.path()), go_on).expect("moved");
    assert!(report.resumed);
    client.close();
}
