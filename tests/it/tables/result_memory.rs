//! A list of rows takes a bounded memory, whatever the rows hold: the peak of a process of its own.
//!
//! The rows are hostile: the JSON `[{"a":0},{"a":0},…]` takes eighty times the memory of its text once it is read.

use std::fs;

use townsquare::{ErrorKind, Uuid, blocking::Client, spaces::PublicSpace};
use townsquare_tests::{
    on_both_engines,
    skip::skip,
    subprocess::{name_of, role, run_child},
    test_database::{Engine, inherited},
};

const MIB: u64 = 1 << 20;

const FIDGETS: usize = 80;

/// Public spaces with a name of [`NAME`] bytes.
const SPACES: usize = 100;
const NAME: usize = 1 << 20;

/// The variable with the space of the child.
const SPACE: &str = "TOWNSQUARE_TEST_SPACE";

/// Returns a line of `/proc/self/status`, in bytes.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("a known line");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") * 1_024
}

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_that_reads_a_large_space() {
    if role().as_deref() != Some("read") {
        return;
    }
    let space: Uuid = std::env::var(SPACE).expect("a space").parse().expect("a uuid");
    let client = Client::open(inherited()).expect("opens");
    let idle = memory("VmRSS");
    let service = client.as_service();
    let owner = service.spaces().get_space(space).expect("a space").owner_id.expect("an owner");
    let wholes = [
        client.spaces().get_space_with_fidgets(space).map(drop),
        client.fidgets().get_space_fidgets(space).map(drop),
        client.spaces().get_user_spaces(owner).map(drop),
    ];
    for whole in wholes {
        let error = whole.expect_err("hundreds of MiB");
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert!(error.to_string().contains("64 MiB"), "{error}");
    }
    let (mut seen, mut pages, mut last) = (0, 0, None);
    loop {
        let page = client.fidgets().get_space_fidgets_after(space, 1_000, last).expect("a page");
        let Some(fidget) = page.last() else { break };
        (seen, pages, last) = (seen + page.len(), pages + 1, Some(fidget.into()));
    }
    assert_eq!(seen, FIDGETS);
    assert!((2..=FIDGETS).contains(&pages), "{pages} pages");
    #[allow(clippy::print_stderr, reason = "the figure of the test")]
    {
        eprintln!("{pages} pages: idle {} KiB, peak {} KiB", idle / 1_024, memory("VmHWM") / 1_024);
    }
    read_public_spaces(&client);
    let peak = memory("VmHWM");
    assert!(peak < idle + 320 * MIB, "the peak is {} MiB over the idle client", (peak - idle) / MIB);
    client.close();
}

/// Reads the public spaces with large names in pages, by cursor and by offset: none is left out.
fn read_public_spaces(client: &Client) {
    let (mut seen, mut pages, mut last) = (0, 0, None);
    loop {
        let page = match &last {
            Some(last) => client.spaces().get_public_spaces_after(1_000, last).expect("a page"),
            None => client.spaces().get_public_spaces(1_000, 0).expect("a page"),
        };
        let by_offset = ids(&client.spaces().get_public_spaces(1_000, seen as u64).expect("a page"));
        assert_eq!(by_offset, ids(&page));
        let Some(space) = page.last().cloned() else { break };
        (seen, pages, last) = (seen + page.len(), pages + 1, Some(space));
    }
    // The space of the fidgets is public, too.
    assert_eq!(seen, SPACES + 1);
    assert!((2..=SPACES).contains(&pages), "{pages} pages");
    assert_eq!(client.spaces().iter_public_spaces(1_000).filter_map(Result::ok).count(), SPACES + 1);
}

fn ids(spaces: &[PublicSpace]) -> Vec<Uuid> {
    spaces.iter().map(|space| space.id).collect()
}

on_both_engines! {
    fn the_fidgets_of_a_space_take_a_bounded_memory(db: &TestDatabase) {
        if !fs::exists("/proc/self/status").unwrap_or(false) {
            return skip("the memory of lists: there is no /proc");
        }
        let owner = db.user();
        let space = db.public_space(owner, "town");
        let config = match db.engine {
            Engine::Sqlite => r#"'[' || replace(hex(zeroblob(12000)), '00', '{"a":0},') || '0]'"#,
            Engine::Postgres => r#"('[' || repeat('{"a":0},', 12000) || '0]')::jsonb"#,
        };
        let row = format!("('{}', 'clock', {config})", space.id);
        db.raw.run(&format!("INSERT INTO fidgets (space_id, type, config) VALUES {}", vec![row; FIDGETS].join(", ")));
        let name = match db.engine {
            Engine::Sqlite => format!("replace(hex(zeroblob({})), '00', 'ab')", NAME / 2),
            Engine::Postgres => format!("repeat('ab', {})", NAME / 2),
        };
        for _ in 0..SPACES {
            db.raw.run(&format!("INSERT INTO spaces (owner_id, name, is_public) VALUES ('{owner}', {name}, true)"));
        }
        let test = name_of(&child_process_that_reads_a_large_space);
        // The allocator of glibc keeps freed memory for each thread that read, and which thread reads depends on the load.
        run_child(&mut db.child(test, "read", &[(SPACE, &space.id.to_string()), ("MALLOC_ARENA_MAX", "1")]));
    }
}
