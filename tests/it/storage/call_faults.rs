//! A system call fails: once, or each time from then on. No acknowledged operation is lost, none is half done, none happens whose error
//! does not say that it may (08007), and a client that is opened afterwards works.
//!
//! strace makes the calls of a child process fail. Its counts are per thread, so the n-th call fails in each thread that makes n.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use townsquare::{
    Config, Uuid,
    blocking::Client,
    check::CheckDepth,
    spaces::{NewSpace, SpacePatch},
    storage::{ListFiles, Overwrite},
};
use townsquare_tests::{
    setting::setting,
    skip::skip,
    subprocess::{child, name_of, role},
    temp_dir,
    wait::wait_until,
};

use super::{
    content::{content, id_of},
    fixture::{SMALL, put},
};

/// The id of the content of each path, and the number that the space is named.
type Content = BTreeMap<String, u64>;

const FOLDER: &str = "TOWNSQUARE_TEST_DATA_FOLDER";
const CALLS: &str = "TOWNSQUARE_TEST_CALLS";
const FAULT: &str = "TOWNSQUARE_TEST_FAULT";
const SIZES: [usize; 2] = [4_096, 300_000];
const THE_SPACE: &str = "the space";
const SPACE: Uuid = Uuid::from_u128(7);

/// The calls that fail together, and how. Not `write` and `read`: the threads of a runtime wake each other by them, which never
/// fails.
const FAULTS: [(&str, &str); 12] = [
    ("fsync,fdatasync", "EIO"),
    ("fsync,fdatasync", "EINTR"),
    ("pwrite64", "ENOSPC"),
    ("pwrite64", "EIO"),
    ("pread64", "EIO"),
    ("ftruncate,fallocate", "EIO"),
    ("rename,renameat,renameat2", "EIO"),
    ("link,linkat", "EIO"),
    ("unlink,unlinkat", "EIO"),
    ("openat,openat2", "EMFILE"),
    ("mkdir,mkdirat", "ENOSPC"),
    ("mmap", "ENOMEM"),
];

/// The largest number of a call that fails, unless `TOWNSQUARE_TEST_FAULTS` names another.
const LAST: usize = 89;

/// One step of the child.
#[derive(Debug, Clone, Copy)]
enum Step {
    Put(&'static str, u64, usize),
    Move(&'static str, &'static str),
    Delete(&'static str),
    /// Creates the space, or changes its name to the number.
    Name(u64),
}

use Step::{Delete, Move, Name, Put};

const STEPS: [Step; 14] = [
    Put("a", 1, 0),
    Put("b", 2, 1),
    Name(3),
    Put("b", 4, 1),
    Put("a", 5, 1),
    Move("b", "sub/c"),
    Put("d", 6, 0),
    Name(7),
    Move("d", "a"),
    Delete("sub/c"),
    Put("e", 8, 1),
    Put("e", 9, 0),
    Put("sub/c", 10, 1),
    Name(11),
];

impl Step {
    fn run(self, client: &Client) -> Result<(), townsquare::Error> {
        let storage = client.storage();
        match self {
            Put(path, id, size) => put(client, "assets", path, content(id, SIZES[size])).map(drop),
            Move(from, to) => storage.move_file("assets", from, to, Overwrite::Replace).map(drop),
            Delete(path) => storage.delete("assets", path),
            Name(3) => client.spaces().create_space(NewSpace::named("3").with_id(SPACE)).map(drop),
            Name(name) => client.spaces().update_space(SPACE, SpacePatch::new().name(name.to_string())).map(drop),
        }
    }

    /// The files and the name of the space after the step; `None` if the step cannot succeed on them.
    fn after(self, mut files: Content) -> Option<Content> {
        match self {
            Put(path, id, _) => drop(files.insert(path.to_owned(), id)),
            Move(from, to) => {
                let id = files.remove(from)?;
                files.insert(to.to_owned(), id);
            }
            Delete(path) => drop(files.remove(path)?),
            Name(name) => {
                if name != 3 && !files.contains_key(THE_SPACE) {
                    return None;
                }
                files.insert(THE_SPACE.to_owned(), name);
            }
        }
        Some(files)
    }
}

/// Tells the parent, by a call that never fails.
struct Reports(UnixDatagram, PathBuf);

impl Reports {
    fn say(&self, what: &str) {
        self.0.send_to(what.as_bytes(), &self.1).expect("the parent listens");
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("the parent sets the variable")
}

fn open(folder: &Path) -> Result<Client, townsquare::Error> {
    let config = Config::new().data_dir(folder.join("town")).catalog_api_key("").inline_file_limit(SMALL);
    Client::open(config).map(|client| client.as_service())
}

/// Lets strace make calls of this process fail. `None` if it may not.
fn attach() -> Option<Child> {
    let (calls, process) = (variable(CALLS), std::process::id());
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", &format!("{}/trace", variable(FOLDER)), "-e", &format!("trace={calls}")]);
    strace.args(["-e", &format!("inject={calls}:{}", variable(FAULT)), "-p", &process.to_string()]);
    let mut tracer = strace.spawn().ok()?;
    let is_traced = || {
        let threads = fs::read_dir("/proc/self/task").expect("threads").flatten();
        let status = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        threads.map(status).all(|status| !status.contains("TracerPid:\t0\n"))
    };
    let mut has_ended = false;
    wait_until("strace attaches, or may not", || {
        has_ended = tracer.try_wait().expect("a child").is_some();
        has_ended || is_traced()
    });
    (!has_ended).then_some(tracer)
}

/// Runs the part of the child process; does nothing in the parent.
#[test]
fn child_process_whose_calls_fail() {
    if role().as_deref() != Some("calls fail") {
        return;
    }
    let reports = Reports(UnixDatagram::unbound().expect("a socket"), format!("{}/reports", variable(FOLDER)).into());
    let Some(mut tracer) = attach() else { return reports.say("UNTRACED") };
    match open(variable(FOLDER).as_ref()) {
        Ok(client) => {
            for (number, step) in STEPS.into_iter().enumerate() {
                match step.run(&client) {
                    Ok(()) => reports.say(&format!("DONE {number}")),
                    Err(error) if error.code() == Some("08007") => reports.say(&format!("DOUBT {number} {error}")),
                    Err(error) => reports.say(&format!("FAILED {number} {error}")),
                }
                read_whole(&client, &reports);
            }
            client.close();
        }
        Err(error) => reports.say(&format!("UNOPENED {error}")),
    }
    reports.say("END");
    tracer.kill().and_then(|()| tracer.wait()).expect("strace ends");
}

/// Reads every file. A read may fail. It never returns other bytes.
fn read_whole(client: &Client, reports: &Reports) {
    let Ok(listed) = client.storage().list("assets", ListFiles::new()) else { return };
    for file in listed {
        if let Ok(bytes) = client.storage().download("assets", &file.path) {
            let is_whole = std::panic::catch_unwind(|| id_of(&bytes, &SIZES)).is_ok();
            if !is_whole {
                reports.say(&format!("TORN {}", file.path));
            }
        }
    }
}

/// What the child said, whether it came to its end, and whether a call failed.
struct Run {
    reports: Vec<String>,
    is_complete: bool,
    has_fault: bool,
}

/// Runs the child with a fault. `None` if strace may not do it here.
fn run(folder: &Path, calls: &str, fault: &str) -> Option<Run> {
    let (socket, trace) = (folder.join("reports"), folder.join("trace"));
    let reports = UnixDatagram::bind(&socket).expect("a socket");
    reports.set_read_timeout(Some(Duration::from_secs(1))).expect("set");
    let mut command = child(name_of(&child_process_whose_calls_fail), "calls fail", &[]);
    command.env(FOLDER, folder).env(CALLS, calls).env(FAULT, fault);
    let mut child = command.spawn().expect("the program starts");
    let (mut said, mut buffer, mut silent_seconds, mut is_traced) = (Vec::new(), vec![0; 65_536], 0, true);
    let is_complete = loop {
        // A call may fail without which a process cannot go on.
        let has_ended = child.try_wait().expect("a child").is_some();
        match reports.recv(&mut buffer).map(|length| String::from_utf8_lossy(&buffer[..length]).into_owned()) {
            Ok(report) if report == "END" => break true,
            Ok(report) if report == "UNTRACED" => {
                is_traced = false;
                break false;
            }
            Ok(report) => said.push(report),
            Err(_) if has_ended => break false,
            Err(_) => silent_seconds += 1,
        }
        assert!(silent_seconds < 120, "{calls} {fault}: the child hangs: {said:?}");
    };
    // The harness of the child may fail: its own calls do.
    child.wait_with_output().expect("it ends");
    if !is_traced {
        return None;
    }
    let has_fault = fs::read_to_string(&trace).expect("a trace").contains("(INJECTED)");
    Some(Run { reports: said, is_complete, has_fault })
}

/// What there can be after this run.
fn possible(run: &Run) -> BTreeSet<Content> {
    let after = |states: &BTreeSet<Content>, step: Step| -> Vec<Content> {
        states.iter().filter_map(|content| step.after(content.clone())).collect()
    };
    let mut states = BTreeSet::from([Content::new()]);
    let mut steps = STEPS.into_iter();
    for report in &run.reports {
        let outcome = report.split(' ').next().expect("a word");
        if !["DONE", "DOUBT", "FAILED"].contains(&outcome) {
            continue;
        }
        let changed = after(&states, steps.next().expect("each step is reported once"));
        match outcome {
            "DONE" => states = changed.into_iter().collect(),
            "DOUBT" => states.extend(changed),
            _ => {}
        }
    }
    // The child ended within this step, or before it could report it.
    if let (Some(step), false) = (steps.next(), run.is_complete) {
        states.extend(after(&states, step));
    }
    states
}

/// What there is. Each file is whole.
fn found(client: &Client) -> Content {
    let storage = client.storage();
    let listed = storage.list("assets", ListFiles::new()).expect("a list");
    let read = |path: String| {
        let bytes = storage.download("assets", &path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let id = id_of(&bytes, &SIZES);
        (path, id)
    };
    let mut found: Content = listed.into_iter().map(|file| read(file.path)).collect();
    if let Ok(space) = client.spaces().get_space(SPACE) {
        found.insert(THE_SPACE.to_owned(), space.name.parse().expect("a number"));
    }
    found
}

/// Makes the n-th calls fail, alone and with all later ones, in a new folder each time.
fn fail_each(calls: &str, error: &str, numbers: &[usize]) {
    // A call that is interrupted each time is made again forever.
    let onwards: &[&str] = if error == "EINTR" { &[""] } else { &["", "+"] };
    for onwards in onwards {
        for number in numbers {
            let (folder, fault) = (temp_dir(), format!("error={error}:when={number}{onwards}"));
            let Some(run) = run(folder.path(), calls, &fault) else {
                return skip("system calls that fail: strace may not trace here");
            };
            let context = || format!("{calls} {fault}: {:#?}", run.reports);
            assert!(!run.reports.iter().any(|report| report.starts_with("TORN")), "{}", context());
            let client = open(folder.path()).unwrap_or_else(|error| panic!("{error}: {}", context()));
            let (found, possible) = (found(&client), possible(&run));
            assert!(possible.contains(&found), "{found:?} is none of {possible:?}: {}", context());
            client.storage().repair().unwrap_or_else(|error| panic!("{error}: {}", context()));
            let findings = client.check(CheckDepth::Full).expect("checked");
            assert!(findings.is_empty(), "{findings:?}: {}", context());
            assert_eq!(self::found(&client), found, "repair changes nothing: {}", context());
            for step in STEPS {
                let _ = step.run(&client);
            }
            assert_eq!(self::found(&client), expected(), "the client works: {}", context());
            client.close();
            if !run.has_fault {
                // No thread makes as many calls.
                break;
            }
        }
    }
}

/// What there is after all steps.
fn expected() -> Content {
    STEPS.into_iter().fold(Content::new(), |content, step| step.after(content).expect("each step succeeds"))
}

/// 1, 2, 3, 5, 8 and so on, or each number up to `TOWNSQUARE_TEST_FAULTS`.
fn numbers() -> Vec<usize> {
    let last = setting("TOWNSQUARE_TEST_FAULTS", 0);
    if last > 0 {
        return (1..=last).collect();
    }
    let pairs = std::iter::successors(Some((1, 2)), |(one, other)| Some((*other, one + other)));
    pairs.map(|(number, _)| number).take_while(|number| *number <= LAST).collect()
}

#[test]
fn failing_calls_lose_nothing_and_leave_nothing_half_done() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skip("system calls that fail: there is no strace");
    }
    for (calls, error) in FAULTS {
        fail_each(calls, error, &numbers());
    }
}
