//! Too few threads and too little memory: an error in time, never a hang, a panic or an abort.

use std::{
    pin::pin,
    sync::mpsc,
    task::{Context, Waker},
    time::{Duration, Instant},
};

use nix::{
    sys::resource::{Resource, getrlimit, setrlimit},
    unistd::{Uid, setuid},
};
use townsquare::{
    Config, ErrorKind,
    blocking::Client,
    realtime::{ChangeRequest, EventType, RowChange},
    spaces::NewSpace,
    threads::wait,
};
use townsquare_tests::{
    skip::skip,
    subprocess::{child, join_child, name_of, role, run_child},
    temp_dir, threads,
    wait::wait_until,
};

/// Users without other processes, one for each test: the limit on threads counts those of a user, and does not bind root.
const USER_WHO_OPENS: u32 = 54_321;
#[cfg(target_os = "linux")]
const USER_WHO_SUBSCRIBES: u32 = 54_323;
/// No operation takes this long, unless it hangs.
const SOON: Duration = Duration::from_secs(15);

/// Lowers the soft limit of a resource until it is dropped.
struct Limit {
    resource: Resource,
    before: (u64, u64),
}

impl Limit {
    fn lower(resource: Resource, to: u64) -> Limit {
        let before = getrlimit(resource).expect("a known resource");
        setrlimit(resource, to, before.1).expect("a lower limit");
        Limit { resource, before }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let _ = setrlimit(self.resource, self.before.0, self.before.1);
    }
}

/// Opens a client and uses each kind of thread. Returns the errors.
fn use_with_limit(config: Config, limit: u64) -> Vec<townsquare::Error> {
    let _limit = Limit::lower(Resource::RLIMIT_NPROC, limit);
    let client = match Client::open(config) {
        Ok(client) => client,
        Err(error) => return vec![error],
    };
    let mut errors = Vec::new();
    let address = format!("user-{limit}@town.example");
    errors.extend(client.auth().sign_up(&address, "correct horse").err());
    errors.extend(client.auth().sign_in(&address, "correct horse").err());
    errors.extend(client.discovery().search_mini_apps("chess", 5).err());
    errors.extend(client.as_service().spaces().get_public_spaces(5, 0).err());
    client.close();
    assert!(client.inner().is_closed());
    errors
}

#[test]
fn open_with_too_few_threads_fails_in_time_and_names_threads() {
    let test = open_with_too_few_threads_fails_in_time_and_names_threads;
    let Some(before) = threads::count() else { return skip("counting threads: there is no /proc") };
    if !Uid::effective().is_root() {
        return skip("a limit on threads: only root may become a user without other processes");
    }
    if role().is_none() {
        let name = name_of(&test);
        let mut process = child(name, "limited", &[]).spawn().expect("the test binary starts");
        let begun = Instant::now();
        while process.try_wait().expect("a child").is_none() {
            if begun.elapsed() > 10 * SOON {
                let _ = process.kill();
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        join_child(process);
        return;
    }
    setuid(Uid::from_raw(USER_WHO_OPENS)).expect("root may become any user");
    let folder = temp_dir();
    let catalog = folder.path().join("catalog.json");
    std::fs::write(&catalog, r#"{"frames": [], "next": {"cursor": null}}"#).expect("a file");
    let config =
        || Config::new().data_dir(folder.path().join("town")).catalog_url(format!("file://{}", catalog.display()));
    Client::open(config()).expect("opens without a limit").close();
    wait_until("its threads have ended", || threads::count() == Some(before));
    let mut outcomes = Vec::new();
    for more in 0..=14 {
        let begun = Instant::now();
        let errors = use_with_limit(config(), (before + more) as u64);
        assert!(begun.elapsed() < SOON, "{more} more threads: {:?}", begun.elapsed());
        for error in &errors {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{more} more threads: {error:?}");
            assert!(error.to_string().contains("thread"), "{more} more threads: {error}");
        }
        wait_until("the threads have ended", || threads::count() == Some(before));
        outcomes.push(errors.is_empty());
    }
    assert_eq!((outcomes[0], outcomes[14]), (false, true), "{outcomes:?}");
}

/// Whether the process has a thread of this name.
#[cfg(target_os = "linux")]
fn has_thread(name: &str) -> bool {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux has /proc").flatten();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.into_iter().any(|found| found.trim_end() == name)
}

/// A subscription that reads the log itself needs a thread, and nobody wakes it later.
#[cfg(target_os = "linux")]
#[test]
fn changes_wait_for_a_thread_and_are_not_lost() {
    if !Uid::effective().is_root() {
        return skip("a limit on threads: only root may become a user without other processes");
    }
    if role().is_none() {
        let name = name_of(&changes_wait_for_a_thread_and_are_not_lost);
        run_child(&mut child(name, "limited", &[]));
        return;
    }
    setuid(Uid::from_raw(USER_WHO_SUBSCRIBES)).expect("root may become any user");
    let folder = temp_dir();
    let client = Client::open(Config::new().data_dir(folder.path().join("town"))).expect("opens");
    let service = client.as_service();
    let feed = service.inner().realtime();
    let cursor = service.realtime().cursor().expect("a cursor");
    let subscribe = |request| {
        let (called, calls) = mpsc::channel();
        let call = move |change: RowChange| called.send(change.event_type).expect("the test receives");
        (wait(feed.subscribe("names", request, call)).expect("it needs no thread to begin"), calls)
    };
    // Keeps the watch for commits, which has a thread of its own. After its call, the log reader has nothing to do.
    let (other, calls) = subscribe(ChangeRequest::table("spaces"));
    service.spaces().create_space(NewSpace::named("harbor")).expect("created");
    assert_eq!(calls.recv_timeout(SOON), Ok(EventType::Insert));
    let request = || ChangeRequest::table("spaces").since(&*cursor);
    let mut stream = wait(feed.changes(request())).expect("a stream");
    wait_until("the idle threads end", || !has_thread("townsquare-call") && !has_thread("townsquare-read"));
    let limit = Limit::lower(Resource::RLIMIT_NPROC, threads::count().expect("Linux has /proc") as u64);
    let first = pin!(stream.next()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(first.is_pending(), "it waits for a thread: {first:?}");
    let (subscription, calls) = subscribe(request());
    assert!(calls.recv_timeout(Duration::from_millis(300)).is_err(), "there is no thread");
    // It waits until its events are delivered, unless nobody can deliver them.
    client.auth().on_auth_state_change(|_, _| {}).unsubscribe();
    drop(limit);
    assert_eq!(calls.recv_timeout(SOON), Ok(EventType::Insert));
    let change = wait(stream.next()).expect("it has not ended").expect("a change");
    assert_eq!(change.event_type, EventType::Insert);
    subscription.unsubscribe();
    other.unsubscribe();
    client.close();
}

#[cfg(target_os = "linux")]
#[test]
fn open_without_file_descriptors_says_to_raise_their_limit() {
    let name = name_of(&open_without_file_descriptors_says_to_raise_their_limit);
    if role().is_none() {
        run_child(&mut child(name, "limited", &[]));
        return;
    }
    let before = threads::count().expect("Linux has /proc");
    let folder = temp_dir();
    let config = || Config::new().data_dir(folder.path().join("town")).catalog_url("sample:");
    Client::open(config()).expect("opens without a limit").close();
    let _limit = Limit::lower(Resource::RLIMIT_NOFILE, 100);
    let mut is_open = Vec::new();
    for free in 0..60 {
        // A thread that ends later would free descriptors of its own.
        wait_until("the threads have ended", || threads::count() == Some(before));
        let mut taken: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        taken.truncate(taken.len().saturating_sub(free));
        match Client::open(config()) {
            Ok(client) => {
                drop(taken);
                client.close();
                is_open.push(true);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{free} free: {error:?}");
                assert!(error.explanation().contains("ulimit -n"), "{free} free: {error:?}");
                is_open.push(false);
            }
        }
    }
    assert_eq!((is_open[0], is_open[59]), (false, true), "{is_open:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_password_hash_without_memory_is_unavailable() {
    let name = name_of(&a_password_hash_without_memory_is_unavailable);
    if role().is_none() {
        // With more arenas glibc reserves memory before the limit is set.
        run_child(&mut child(name, "limited", &[("MALLOC_ARENA_MAX", "1")]));
        return;
    }
    let folder = temp_dir();
    let client = Client::open(Config::new().data_dir(folder.path().join("town"))).expect("opens");
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("a size");
    let kibibytes: u64 = size.trim().trim_end_matches(" kB").parse().expect("a number");
    // Enough for a thread, not for the 32 MiB of a hash.
    let limit = Limit::lower(Resource::RLIMIT_AS, (kibibytes + 20_000) * 1024);
    let error = client.auth().sign_up("ann@town.example", "correct horse").expect_err("no memory");
    drop(limit);
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("53200")), "{error}");
    assert!(error.is_retryable() && error.to_string().contains("out of memory"), "{error}");
    client.auth().sign_up("ann@town.example", "correct horse").expect("memory again");
    client.close();
}
