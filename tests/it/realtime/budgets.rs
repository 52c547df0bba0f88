//! What subscriptions and live queries cost while nobody reads them, in bytes: the peak of a process of its own.
//!
//! The rows are hostile: the JSON `[{"a":0},{"a":0},…]` takes eighty times the memory of its text once it is read.

use std::fs;

use townsquare::{
    ErrorKind,
    blocking::{ChangeStream, Client},
    realtime::{ChangeRequest, LiveRequest},
    spaces::NewSpace,
};
use townsquare_tests::{
    on_both_engines,
    skip::skip,
    subprocess::{join_child, name_of, role},
    test_database::{Engine, TestDatabase, inherited},
    wait::wait_until,
};

use super::fixture::{next, short, stream};

const MIB: u64 = 1 << 20;

/// The objects in the JSON of a row: 100 kB of text.
const OBJECTS: usize = 12_000;

/// The changes that the parent makes.
const CHANGES: usize = 60;

/// The streams that nobody reads, of each kind.
const STREAMS: usize = 20;

/// Returns a line of `/proc/self/status`, in bytes.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("a known line");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") * 1_024
}

/// The SQL of hostile JSON.
fn hostile(engine: Engine) -> String {
    match engine {
        Engine::Sqlite => format!(r#"'[' || replace(hex(zeroblob({OBJECTS})), '00', '{{"a":0}},') || '0]'"#),
        Engine::Postgres => format!(r#"('[' || repeat('{{"a":0}},', {OBJECTS}) || '0]')::jsonb"#),
    }
}

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_with_little_memory() {
    match role().as_deref() {
        Some("streams") => unread_streams(),
        Some("live") => live_queries(),
        _ => {}
    }
}

fn entry_point() -> &'static str {
    name_of(&child_process_with_little_memory)
}

/// Opens streams and reads none of them while the parent writes. Then reads one of each kind to its end.
fn unread_streams() {
    let client = Client::open(inherited()).expect("opens");
    let service = client.as_service();
    let cursor = service.realtime().cursor().expect("a cursor");
    let request = |filter: &str| ChangeRequest::table("fidgets").filter(filter);
    let pattern = "type=like.%c_o_k%";
    let mut streams: Vec<ChangeStream> = Vec::new();
    for filter in ["", pattern] {
        streams.extend((0..STREAMS).map(|_| stream(&client, request(filter))));
    }
    // The log readers of both kinds of filters.
    let mut marks =
        ["", "name=like.m_rk%"].map(|filter| stream(&service, ChangeRequest::table("spaces").filter(filter)));
    service.spaces().create_space(NewSpace::named("ready")).expect("created");
    assert_eq!(short(&next(&mut marks[0])), "INSERT ready");
    let (idle, before) = (memory("VmRSS"), memory("VmHWM"));
    assert!(before < idle + 32 * MIB, "opening the client hides the peak: {before} of {idle}");
    for marks in &mut marks {
        assert_eq!(short(&next(marks)), "INSERT mark");
    }
    let events = &client;
    let events = |since: &str| {
        let target = format!("/events?table=fidgets&filter={pattern}&since={since}").replace('%', "%25");
        let mut response = events.realtime().handle_events(&target, &[]).expect("a response");
        assert_eq!(response.status, 200);
        // The first lines, and the first events of a client that then reads no more.
        (response.body.next().expect("a chunk"), response.body.next().expect("a chunk"), response.body)
    };
    let since: Vec<_> = (0..STREAMS).map(|_| events(&cursor)).collect();
    let mut replays: Vec<_> = (0..STREAMS).map(|_| stream(&client, request("").since(cursor.clone()))).collect();
    let read: Vec<_> = replays.iter_mut().map(next).collect();
    assert!(read.iter().all(|change| change.new.is_some()));
    drop(read.into_iter().skip(1));
    let peak = memory("VmHWM");
    let subscribers = 4 * STREAMS as u64;
    // Each subscriber, what one thread has while it reads rows, and the changes that this test holds.
    let limit = idle + subscribers * MIB + 128 * MIB;
    #[allow(clippy::print_stderr, reason = "the figure of the test")]
    {
        eprintln!("{subscribers} unread: idle {} KiB, peak {} KiB", idle / 1_024, peak / 1_024);
    }
    assert!(peak < limit, "the peak is {} MiB over the idle client", (peak - idle) / MIB);
    drop(since);
    // Nothing was lost.
    for place in [0, STREAMS] {
        for number in 0..CHANGES {
            let change = next(&mut streams[place]);
            assert_eq!(short(&change), if number == 0 { "INSERT clock" } else { "UPDATE clock" });
            let row = change.new.expect("a row");
            assert_eq!(row["config"].as_array().map(Vec::len), Some(OBJECTS + 1));
            assert_eq!(row["position"], number);
        }
    }
    assert!((1..CHANGES).all(|number| next(&mut replays[0]).new.expect("a row")["position"] == number));
    client.close();
}

/// Begins a live query on a table with few visible rows, and one with too many.
fn live_queries() {
    let client = Client::open(inherited()).expect("opens");
    let service = client.as_service();
    let live = |client: &Client, filter: &str| client.realtime().live(LiveRequest::table("fidgets").filter(filter));
    assert_eq!(live(&service, "type=eq.small").expect("a live query").rows.len(), 1);
    let idle = memory("VmRSS");
    assert_eq!(live(&client, "").expect("a live query").rows.len(), 0, "the space is private");
    let error = live(&service, "").expect_err("hundreds of MiB");
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(error.to_string().contains("64 MiB"), "{error}");
    let few = live(&service, "position=is.null&type=neq.small").expect("a live query");
    assert_eq!(few.rows.len(), 2);
    let peak = memory("VmHWM");
    assert!(peak < idle + 160 * MIB, "the peak is {} MiB over the idle client", (peak - idle) / MIB);
    client.close();
}

fn run(db: &TestDatabase, role: &str, meanwhile: impl FnOnce()) {
    // With more arenas glibc keeps freed memory for each thread, and which threads work depends on the load.
    let child = db.child(entry_point(), role, &[("MALLOC_ARENA_MAX", "1")]).spawn().expect("starts");
    meanwhile();
    join_child(child);
}

on_both_engines! {
    fn streams_that_nobody_reads_cost_a_mebibyte_each(db: &TestDatabase) {
        if !fs::exists("/proc/self/status").unwrap_or(false) {
            return skip("the memory of streams: there is no /proc");
        }
        let owner = db.user();
        let space = db.public_space(owner, "town");
        run(db, "streams", || {
            wait_until("the child has its streams", || db.raw.count("spaces WHERE name = 'ready'") == 1);
            let config = hostile(db.engine);
            db.raw.run(&format!(
                "INSERT INTO fidgets (space_id, type, config, position) VALUES ('{}', 'clock', {config}, '0')",
                space.id
            ));
            for number in 1..CHANGES {
                db.raw.run(&format!("UPDATE fidgets SET position = '{number}'"));
            }
            db.raw.run("INSERT INTO spaces (name) VALUES ('mark')");
        });
    }

    fn a_live_query_holds_what_its_caller_sees_within_a_bound(db: &TestDatabase) {
        if !fs::exists("/proc/self/status").unwrap_or(false) {
            return skip("the memory of live queries: there is no /proc");
        }
        let space = db.space();
        db.fidget(space.id, "small");
        let config = hostile(db.engine);
        for position in ["'1'", "'2'", "NULL"] {
            let rows: Vec<_> = (0..if position == "NULL" { 2 } else { 15 })
                .map(|_| format!("('{}', 'clock', {config}, {position})", space.id))
                .collect();
            db.raw.run(&format!("INSERT INTO fidgets (space_id, type, config, position) VALUES {}", rows.join(", ")));
        }
        run(db, "live", || ());
    }
}
