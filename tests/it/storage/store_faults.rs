//! Faults of an S3 store, each beside every call: errors, slow answers, cuts, a wrong clock, lost rights, listings that lag. No
//! acknowledged file is lost or torn, a call ends in time with the right error, and afterwards everything works without a restart.

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use tempfile::TempDir;
use townsquare::{
    Config, Error, ErrorKind,
    blocking::Client,
    check::{CheckDepth, FindingCode},
    spaces::NewSpace,
    storage::{ListFiles, Overwrite},
};
use townsquare_tests::{
    s3_proxy::{Call, Fault, Rule, S3Proxy},
    s3_server::{S3Server, SECRET_KEY},
    temp_dir,
    test_database::{Engine, TestDatabase},
    wait::{DEADLINE, wait_until, wait_up_to},
};

use super::fixture::{SMALL, bytes, put};

const SIZE: usize = 100_000;
/// An upload in two parts.
const LARGE: usize = 9 << 20;
/// An answer that is read in pieces.
const STREAMED: usize = 3_000_000;

/// How long a call that needs only the database may take while the store is away. A call of the store ends after 20 seconds.
const QUICK: Duration = Duration::from_secs(15);

/// How long after a fault the client may take to abort its uploads: a call that stalls, and the pause after it.
const ABORTS: Duration = Duration::from_secs(60);

/// A database with a store behind a proxy.
struct Town {
    engine: Engine,
    db: TestDatabase,
    url: String,
    proxy: S3Proxy,
    server: S3Server,
    folder: TempDir,
    copies: AtomicU32,
}

impl Town {
    /// `None` if the engine is not installed.
    fn on(engine: Engine) -> Option<Town> {
        let server = S3Server::start();
        let proxy = S3Proxy::to(server.address());
        let url = proxy.through(&server.url("objects"), server.address());
        let db = TestDatabase::with(engine, |config| with_store(config, &url))?;
        let town = Town { engine, db, url, proxy, server, folder: temp_dir(), copies: AtomicU32::new(0) };
        for path in ["get", "range", "from copy", "from move", "delete", "over"] {
            town.put(path, SIZE, 1).expect("uploaded");
        }
        town.put("streamed", STREAMED, 1).expect("uploaded");
        // The proxy keeps the listings for those that lag.
        town.db.service.storage().repair().expect("repaired");
        Some(town)
    }

    fn put(&self, path: &str, size: usize, seed: u8) -> Result<(), Error> {
        put(&self.db.service, "assets", path, bytes(size, seed)).map(drop)
    }

    fn open(&self) -> Result<Client, Error> {
        Client::open(with_store(self.db.config(), &self.url))
    }

    /// The bytes of a file. `None` if there is none.
    fn found(&self, path: &str) -> Option<Bytes> {
        match self.db.service.storage().download("assets", path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => Some(found.unwrap_or_else(|error| panic!("{path}: {error:?}"))),
        }
    }

    fn has(&self, path: &str, size: usize, seed: u8) -> bool {
        self.found(path).is_some_and(|found| found == bytes(size, seed))
    }

    /// Asserts that the file is there, or absent if the call failed.
    fn assert_new(&self, is_done: bool, path: &str, size: usize, seed: u8) {
        assert!(self.has(path, size, seed) || (!is_done && self.found(path).is_none()), "{path}");
    }

    /// The objects below a folder of the store.
    fn objects(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.server.folder().join("objects").join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn open_uploads(&self) -> usize {
        let entries = fs::read_dir(self.server.buckets()).expect("a folder").flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".upload-")).count()
    }

    /// Lets the staged objects be of yesterday, so that `repair` removes them.
    fn age_stages(&self) {
        let folder = self.server.folder().join("objects/.townsquare/staging");
        for stage in fs::read_dir(folder).into_iter().flatten().flatten() {
            let file = fs::File::options().write(true).open(stage.path());
            let yesterday = SystemTime::now() - Duration::from_secs(86_400);
            // The client may remove it meanwhile.
            let _ = file.and_then(|file| file.set_modified(yesterday));
        }
    }
}

fn with_store(config: Config, url: &str) -> Config {
    config.storage_url(url).inline_file_limit(SMALL)
}

/// What a call needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Store,
    Database,
    /// The store, if its id was not read lately: the object is removed later.
    Either,
}

/// A call, and what there is after it.
struct Way {
    name: &'static str,
    needs: Needs,
    run: fn(&Town) -> Result<(), Error>,
    /// Whether the call succeeded.
    check: fn(&Town, bool),
}

/// Bytes that were read must be these.
fn whole(read: Result<Bytes, Error>, expected: &[u8]) -> Result<(), Error> {
    assert!(read? == expected, "the bytes are torn");
    Ok(())
}

fn check_and_expect_no_other_finding(town: &Town) -> Result<(), Error> {
    let findings = town.db.client.check(CheckDepth::Full)?;
    let others =
        |code| !matches!(code, FindingCode::StoreUnreachable | FindingCode::StoreMissing | FindingCode::ClockDiffers);
    assert!(!findings.iter().any(|finding| others(finding.code)), "{findings:?}");
    Ok(())
}

fn back_up_and_restore(town: &Town) -> Result<(), Error> {
    if town.engine == Engine::Postgres {
        // It has tools of its own.
        return Ok(());
    }
    let number = town.copies.fetch_add(1, Ordering::SeqCst);
    let copy = town.folder.path().join(format!("copy {number}"));
    town.db.client.backup(&copy)?;
    Client::restore(&copy, town.folder.path().join(format!("restored {number}")))
}

/// Small files and rows are in the database.
fn use_the_database_only(town: &Town) -> Result<(), Error> {
    let start = Instant::now();
    town.put("small", 1_000, 7)?;
    whole(town.db.service.storage().download("assets", "small"), &bytes(1_000, 7))?;
    town.db.service.spaces().create_space(NewSpace::named("Harbor"))?;
    town.db.service.storage().stat("assets", "get")?;
    assert!(start.elapsed() < QUICK, "{:?}", start.elapsed());
    Ok(())
}

static WAYS: [Way; 14] = [
    Way {
        name: "upload",
        needs: Needs::Store,
        run: |town| town.put("new", SIZE, 2),
        check: |town, is_done| town.assert_new(is_done, "new", SIZE, 2),
    },
    Way {
        name: "upload in parts",
        needs: Needs::Store,
        run: |town| town.put("large", LARGE, 3),
        check: |town, is_done| town.assert_new(is_done, "large", LARGE, 3),
    },
    Way {
        name: "overwrite",
        needs: Needs::Store,
        run: |town| town.put("over", SIZE, 4),
        check: |town, is_done| assert!(town.has("over", SIZE, 4) || (!is_done && town.has("over", SIZE, 1))),
    },
    Way {
        name: "download",
        needs: Needs::Store,
        run: |town| whole(town.db.service.storage().download("assets", "get"), &bytes(SIZE, 1)),
        check: |town, _| assert!(town.has("get", SIZE, 1)),
    },
    Way {
        name: "download of a range",
        needs: Needs::Store,
        run: |town| {
            let range = town.db.service.storage().download_range("assets", "range", 1_000..50_000);
            whole(range, &bytes(SIZE, 1)[1_000..50_000])
        },
        check: |town, _| assert!(town.has("range", SIZE, 1)),
    },
    Way {
        name: "download in pieces",
        needs: Needs::Store,
        run: |town| whole(town.db.service.storage().download("assets", "streamed"), &bytes(STREAMED, 1)),
        check: |town, _| assert!(town.has("streamed", STREAMED, 1)),
    },
    Way {
        name: "copy",
        needs: Needs::Store,
        run: |town| town.db.service.storage().copy("assets", "from copy", "copy", Overwrite::Replace).map(drop),
        check: |town, is_done| {
            assert!(town.has("from copy", SIZE, 1));
            town.assert_new(is_done, "copy", SIZE, 1);
        },
    },
    Way {
        name: "move",
        needs: Needs::Store,
        run: |town| match town.db.service.storage().move_file("assets", "from move", "moved", Overwrite::Replace) {
            // A call of unknown outcome succeeded.
            Err(error) if error.kind() == ErrorKind::NotFound && town.has("moved", SIZE, 1) => Ok(()),
            moved => moved.map(drop),
        },
        check: |town, is_done| {
            let places = (town.has("from move", SIZE, 1), town.has("moved", SIZE, 1));
            assert!(places == (false, true) || (!is_done && places == (true, false)), "{places:?}");
        },
    },
    Way {
        name: "delete",
        needs: Needs::Either,
        run: |town| match town.db.service.storage().delete("assets", "delete") {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            deleted => deleted,
        },
        check: |town, is_done| assert!(town.found("delete").is_none() || (!is_done && town.has("delete", SIZE, 1))),
    },
    Way {
        name: "list",
        needs: Needs::Database,
        run: |town| {
            let listed = town.db.service.storage().list("assets", ListFiles::new())?;
            assert!(listed.iter().any(|file| file.path == "get"));
            Ok(())
        },
        check: |_, _| {},
    },
    Way {
        name: "repair",
        needs: Needs::Store,
        run: |town| {
            let report = town.db.service.storage().repair()?;
            assert_eq!((report.rows_removed, &report.mismatched[..]), (0, &[][..]));
            Ok(())
        },
        check: |_, _| {},
    },
    Way { name: "check", needs: Needs::Database, run: check_and_expect_no_other_finding, check: |_, _| {} },
    Way { name: "back up and restore", needs: Needs::Database, run: back_up_and_restore, check: |_, _| {} },
    Way { name: "the database alone", needs: Needs::Database, run: use_the_database_only, check: |_, _| {} },
];

/// What a call does that needs the store.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Succeeds,
    /// It fails, or succeeds if it sends no request of the faulty kind.
    MayFail,
    /// `Unavailable`, with a retry that makes sense, or `08007`.
    Unavailable,
    /// `Internal` with this text.
    Denied(&'static str),
}

/// A fault and its effect.
struct Case {
    name: &'static str,
    rules: fn() -> Vec<Rule>,
    outcome: Outcome,
    /// How long a call may take.
    limit: Duration,
}

const CALLS: [Call; 10] = [
    Call::Get,
    Call::Head,
    Call::List,
    Call::Put,
    Call::Copy,
    Call::Delete,
    Call::BeginUpload,
    Call::PutPart,
    Call::CompleteUpload,
    Call::AbortUpload,
];

/// The first call of each kind has the fault.
fn once(fault: Fault) -> Vec<Rule> {
    CALLS.into_iter().map(|call| Rule::new(fault, call).times(1)).collect()
}

fn always(fault: Fault) -> Vec<Rule> {
    vec![Rule::new(fault, Call::Any)]
}

/// Faults that a call survives: they happen once to each kind of request.
static SHORT: [Case; 6] = [
    short("one 500", || once(Fault::Status(500, "InternalError"))),
    short("one 503", || once(Fault::Status(503, "SlowDown"))),
    short("one 429 with Retry-After", || {
        [Call::Get, Call::Put, Call::Copy].map(|call| Rule::new(Fault::RetryAfter(1), call).times(1)).into()
    }),
    short("one cut in a request", || {
        [Call::Put, Call::PutPart].map(|call| Rule::new(Fault::CutRequest, call).times(1)).into()
    }),
    short("one cut in an answer", || once(Fault::CutAnswer)),
    short("one lost answer", || once(Fault::LoseAnswer)),
];

const fn short(name: &'static str, rules: fn() -> Vec<Rule>) -> Case {
    Case { name, rules, outcome: Outcome::Succeeds, limit: Duration::from_secs(60) }
}

/// Faults that last longer than the retries of a call.
static LONG: [Case; 9] = [
    long("500", || always(Fault::Status(500, "InternalError")), Outcome::Unavailable, 60),
    long(
        "503 for ten seconds",
        || vec![Rule::new(Fault::Status(503, "SlowDown"), Call::Any).lasting(Duration::from_secs(10))],
        Outcome::MayFail,
        60,
    ),
    long("429 with Retry-After", || always(Fault::RetryAfter(1)), Outcome::Unavailable, 60),
    long(
        "cuts in requests",
        || [Call::Put, Call::PutPart].map(|call| Rule::new(Fault::CutRequest, call)).into(),
        Outcome::MayFail,
        60,
    ),
    long("cuts in answers", || always(Fault::CutAnswer), Outcome::Unavailable, 60),
    long("lost answers", || always(Fault::LoseAnswer), Outcome::Unavailable, 60),
    long("a wrong clock", || always(Fault::ClockSkew), Outcome::Denied("clock of this host"), 30),
    long("a lost right", || always(Fault::Status(403, "AccessDenied")), Outcome::Denied("denies the access"), 30),
    long("listings that lag", || vec![Rule::new(Fault::OldAnswer(60_000), Call::List)], Outcome::Succeeds, 60),
];

/// Faults that take a call a minute and longer.
static SLOW: [Case; 2] = [
    long("no answer", || always(Fault::Stall), Outcome::Unavailable, 70),
    long("a byte a second", || always(Fault::Drip), Outcome::MayFail, 90),
];

const fn long(name: &'static str, rules: fn() -> Vec<Rule>, outcome: Outcome, seconds: u64) -> Case {
    Case { name, rules, outcome, limit: Duration::from_secs(seconds) }
}

/// Runs a call during a fault. True if it succeeded.
fn run(town: &Town, case: &Case, way: &Way) -> bool {
    let start = Instant::now();
    let result = (way.run)(town);
    let context = format!("{:?}, {}, {}, after {:?}: {result:?}", town.engine, case.name, way.name, start.elapsed());
    assert!(start.elapsed() < case.limit, "{context}");
    let Err(error) = result else {
        let may_succeed = matches!(case.outcome, Outcome::Succeeds | Outcome::MayFail) || way.needs != Needs::Store;
        assert!(may_succeed, "{context}");
        return true;
    };
    let text = format!("{error:?} {error}");
    assert!(!text.contains(SECRET_KEY), "{context}");
    let is_right = match case.outcome {
        Outcome::Succeeds => false,
        Outcome::MayFail | Outcome::Unavailable => {
            error.kind() == ErrorKind::Unavailable && (error.is_retryable() || error.code() == Some("08007"))
        }
        Outcome::Denied(reason) => {
            matches!(error.kind(), ErrorKind::Internal | ErrorKind::Config)
                && !error.is_retryable()
                && error.to_string().contains(reason)
        }
    };
    assert!(is_right && way.needs != Needs::Database, "{context}");
    false
}

/// After the fault: what was acknowledged is there, every call works, and nothing is left.
fn assert_healed(town: &Town, case: &Case, done: &[bool]) {
    for (way, is_done) in WAYS.iter().zip(done) {
        (way.check)(town, *is_done);
    }
    for way in &WAYS {
        (way.run)(town).unwrap_or_else(|error| panic!("{}, then {}: {error:?}", case.name, way.name));
        (way.check)(town, true);
    }
    town.open().unwrap_or_else(|error| panic!("{}: {error:?}", case.name)).close();
    town.age_stages();
    town.db.service.storage().repair().expect("repaired");
    assert_eq!(town.objects(".townsquare/staging"), [""; 0], "{}", case.name);
    let files = ["copy", "from copy", "get", "large", "moved", "new", "over", "range", "streamed"];
    assert_eq!(town.objects("assets"), files, "{}", case.name);
    // An answer that is lost or late may have had the name of an upload, which nobody knows then.
    if !["lost answer", "answers", "an answer", "a byte a second"].iter().any(|name| case.name.contains(name)) {
        wait_up_to(ABORTS, "the uploads are aborted", || town.open_uploads() == 0);
    }
    check_and_expect_no_other_finding(town).expect("checked");
}

/// Each call meets the fault.
fn try_short(engine: Engine, case: &Case) {
    let Some(town) = Town::on(engine) else { return };
    let done: Vec<_> = WAYS
        .iter()
        .map(|way| {
            town.proxy.heal();
            (case.rules)().into_iter().for_each(|rule| town.proxy.inject(rule));
            run(&town, case, way)
        })
        .collect();
    town.proxy.heal();
    assert_healed(&town, case, &done);
}

/// All calls at once meet the fault.
fn try_long(engine: Engine, case: &Case) {
    let Some(town) = Town::on(engine) else { return };
    (case.rules)().into_iter().for_each(|rule| town.proxy.inject(rule));
    let done: Vec<bool> = thread::scope(|scope| {
        let town = &town;
        let calls: Vec<_> = WAYS.iter().map(|way| scope.spawn(move || run(town, case, way))).collect();
        let opened = scope.spawn(move || {
            let start = Instant::now();
            let opened = town.open().map(|client| client.close());
            assert!(start.elapsed() < case.limit, "{}: {opened:?}", case.name);
            let may_be = |kind| matches!(kind, ErrorKind::Unavailable | ErrorKind::Config);
            assert!(opened.as_ref().err().is_none_or(|error| may_be(error.kind())), "{}: {opened:?}", case.name);
        });
        let done = calls.into_iter().map(|call| call.join().expect("no panic")).collect();
        opened.join().expect("no panic");
        done
    });
    if case.name.contains("for ten seconds") {
        wait_up_to(3 * DEADLINE, "the store is back", || town.db.service.storage().download("assets", "get").is_ok());
    } else {
        town.proxy.heal();
    }
    assert_healed(&town, case, &done);
}

fn each(cases: &[Case], engine: Engine, test: impl Fn(Engine, &Case) + Sync) {
    let test = &test;
    thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || test(engine, case));
        }
    });
}

#[test]
fn a_short_fault_of_the_store_fails_no_call() {
    each(&SHORT, Engine::Sqlite, try_short);
}

#[test]
fn a_short_fault_of_the_store_fails_no_call_on_postgres() {
    each(&SHORT[4..], Engine::Postgres, try_short);
}

#[test]
fn after_a_long_fault_of_the_store_everything_works_and_nothing_is_lost() {
    each(&LONG, Engine::Sqlite, try_long);
}

#[test]
fn after_a_long_fault_of_the_store_everything_works_and_nothing_is_lost_on_postgres() {
    each(&LONG[3..], Engine::Postgres, try_long);
}

#[test]
#[ignore = "takes three minutes"]
fn after_a_store_that_did_not_answer_everything_works_and_nothing_is_lost() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        each(&SLOW, engine, try_long);
    }
}

/// The most requests of one call of the store: the first and four retries.
const MOST_REQUESTS: usize = 5;

#[test]
fn a_call_is_repeated_a_few_times_and_a_denied_one_is_not() {
    let Some(town) = Town::on(Engine::Sqlite) else { return };
    let failed_reads = |fault| {
        town.proxy.heal();
        let before = town.proxy.count(Call::Any, "assets/get");
        town.proxy.inject(Rule::new(fault, Call::Any));
        town.db.service.storage().download("assets", "get").expect_err("the store fails");
        town.db.service.storage().download_range("assets", "get", 10..20).expect_err("the store fails");
        town.proxy.count(Call::Any, "assets/get") - before
    };
    assert_eq!(failed_reads(Fault::Status(503, "SlowDown")), 2 * MOST_REQUESTS);
    assert_eq!(failed_reads(Fault::Status(403, "AccessDenied")), 2);
    assert_eq!(failed_reads(Fault::ClockSkew), 2);
    town.proxy.heal();
    let start = Instant::now();
    town.proxy.inject(Rule::new(Fault::RetryAfter(2), Call::Get).times(1));
    town.db.service.storage().download("assets", "get").expect("the second request succeeds");
    assert!(start.elapsed() >= Duration::from_secs(2), "the store asked for two seconds");
}

#[test]
fn a_store_without_conditional_writes_takes_the_first_large_file() {
    let server = S3Server::start();
    let proxy = S3Proxy::to(server.address());
    let url = proxy.through(&server.url("objects"), server.address());
    let db = TestDatabase::with(Engine::Sqlite, |config| with_store(config, &url)).expect("SQLite is always there");
    proxy.inject(Rule::new(Fault::Status(501, "NotImplemented"), Call::Put).path("/.townsquare/store").times(1));
    put(&db.service, "assets", "a", bytes(SIZE, 1)).expect("uploaded");
    assert_eq!(proxy.count(Call::Put, "/.townsquare/store"), 2, "refused, and then written");
    assert!(db.service.storage().download("assets", "a").expect("read") == bytes(SIZE, 1));
}

#[test]
fn a_slow_answer_ends_a_download_in_time() {
    let Some(town) = Town::on(Engine::Sqlite) else { return };
    town.proxy.inject(Rule::new(Fault::Drip, Call::Get).path("assets/get"));
    let start = Instant::now();
    let error = town.db.service.storage().download("assets", "get").expect_err("a byte a second");
    assert_eq!((error.kind(), error.status()), (ErrorKind::Unavailable, 504), "{error:?}");
    assert!((20..60).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

#[test]
fn many_calls_to_a_store_that_is_away_slow_down_no_call_of_the_database() {
    const CALLS_AT_ONCE: u8 = 100;
    let Some(town) = Town::on(Engine::Sqlite) else { return };
    town.proxy.inject(Rule::new(Fault::Stall, Call::Any));
    thread::scope(|scope| {
        let town = &town;
        for number in 0..CALLS_AT_ONCE {
            scope.spawn(move || match number % 2 {
                0 => town.put(&format!("many/{number}"), SIZE, number).expect_err("no answer"),
                _ => town.db.service.storage().download("assets", "get").expect_err("no answer"),
            });
        }
        wait_until("many calls wait", || town.proxy.connections() >= usize::from(CALLS_AT_ONCE) / 2);
        for _ in 0..20 {
            use_the_database_only(town).expect("the database is there");
        }
        assert!(town.proxy.connections() <= 2 * usize::from(CALLS_AT_ONCE), "{}", town.proxy.connections());
    });
    town.proxy.heal();
    for number in (0..CALLS_AT_ONCE).step_by(2) {
        town.put(&format!("many/{number}"), SIZE, number).expect("the store is back");
    }
    wait_until("the connections of the calls are closed", || {
        town.proxy.connections() < usize::from(CALLS_AT_ONCE) && town.open_uploads() == 0
    });
    assert!(town.db.client.check(CheckDepth::Full).expect("checked").is_empty());
}
