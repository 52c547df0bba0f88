//! Every operation on tables of 1/100 of a size and of the full size on PostgreSQL: times, pages read, and plans.
//!
//! `large_tables [USERS] [--plans FILE] [--only TEXT]`; a user has 10 spaces, a space 10 fidgets. 100,000 users, so 1,000,000 spaces,
//! 10,000,000 fidgets, 1,000,000 files and 1,000,000 entries of the change log, by default. The sizes take turns, call by call, so that
//! other load on the machine affects both. The pages are those of tables and indexes that the statements of the calls and of their
//! preparations read: unlike the times, no other load changes them.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

mod fill;
mod operations;
mod plans;

use std::{
    env,
    time::{Duration, Instant},
};

use townsquare::{Config, Uuid, auth::Session, blocking::Client};
use townsquare_benches::comparison::percentile;
use townsquare_tests::{
    TempDir,
    postgres::{APP_ROLE, Server},
    temp_dir,
};

use crate::{
    fill::{PASSWORD, Sample, address},
    operations::Operation,
    plans::Plans,
};

/// How many times larger one database is than the other.
const RATIO: usize = 100;

/// The ratio of times or pages beyond which an operation is a finding.
const FLAT: f64 = 3.0;

/// The spaces that the calls take in turn.
const SAMPLES: usize = 1_000;

/// A filled database with the clients of three callers.
pub(crate) struct Filled {
    url: String,
    database: String,
    folder: TempDir,
    users: usize,
    client: Client,
    anonymous: Client,
    user: Client,
    service: Client,
    user_id: Uuid,
    access_token: String,
    refresh_token: String,
    public: Vec<Sample>,
    own: Vec<Sample>,
    calls: usize,
    users_taken: usize,
}

impl Filled {
    fn new(server: &Server, users: usize) -> Filled {
        let (database, folder) = (server.new_database(), temp_dir());
        let url = server.socket_url(APP_ROLE, &database);
        let client = Client::open(config(&url, &folder)).expect("the client opens");
        client.as_service().realtime().start().expect("the feed starts");
        client.as_service().auth().sign_up("first@town.example", PASSWORD).expect("a user");
        let raw = server.administrator(&database);
        let seconds =
            fill::fill(server, &database, users, &raw.value("SELECT password_hash FROM townsquare.credentials"));
        let size = raw.value("SELECT pg_size_pretty(pg_database_size(current_database()))");
        println!("{users} users, {} spaces: filled in {seconds:.0} s, {size}", users * fill::EACH);
        let session = client.auth().create_session(&address(0), PASSWORD).expect("a session");
        let mut filled = Filled {
            user: client.as_user(&session.access_token).expect("a user"),
            anonymous: client.as_anonymous(),
            service: client.as_service(),
            user_id: session.user.id,
            access_token: String::new(),
            refresh_token: String::new(),
            public: fill::samples(&raw, users, SAMPLES, None),
            own: fill::samples(&raw, users, 8, Some(0)),
            calls: 0,
            users_taken: 0,
            url,
            database,
            folder,
            users,
            client,
        };
        let other = filled.client.auth().create_session(&address(0), PASSWORD).expect("a session");
        filled.take(&other);
        filled
    }

    pub(crate) fn config(&self) -> Config {
        config(&self.url, &self.folder)
    }

    /// Returns another number at each call.
    pub(crate) fn next(&mut self) -> usize {
        self.calls += 1;
        self.calls
    }

    /// Returns the number of a user who was not returned before.
    pub(crate) fn next_user(&mut self) -> usize {
        self.users_taken += 1;
        self.users - self.users_taken
    }

    /// Returns a session of a user who had none by this program.
    pub(crate) fn other_session(&mut self) -> Session {
        let email = address(self.next_user());
        self.client.auth().create_session(&email, PASSWORD).expect("a session")
    }

    /// Keeps the tokens of a session.
    pub(crate) fn take(&mut self, session: &Session) {
        self.access_token.clone_from(&session.access_token);
        self.refresh_token.clone_from(&session.refresh_token);
    }
}

fn config(url: &str, folder: &TempDir) -> Config {
    Config::new().database_url(url).data_dir(folder.path()).catalog_api_key("").change_retention_rows(100_000_000)
}

fn main() {
    let mut arguments = env::args().skip(1);
    let (mut users, mut output, mut only) = (100_000, None, String::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--plans" => output = arguments.next(),
            "--only" => only = arguments.next().expect("a text"),
            number => users = number.parse().expect("a number of users"),
        }
    }
    assert!(users >= 12_000, "the smaller database has a hundredth of the users: at least 12000");
    let settings: Vec<_> = plans::SETTINGS.into_iter().chain(["max_wal_size=4GB"]).collect();
    let Some(server) = Server::with_settings(&settings) else { return };
    let mut databases = [users / RATIO, users].map(|users| Filled::new(&server, users));
    let mut plans = Plans::new(&server, output.as_deref());
    println!(
        "{:<58} {:>23} {:>8} {:>23} {:>8} {:>17}",
        "", "1/100: p50, p99 us", "pages", "full: p50, p99 us", "pages", "ratios"
    );
    let wanted = |operation: &Operation| operation.name.contains(&only);
    let mut flagged = 0;
    for operation in operations::all().iter().filter(|operation| wanted(operation)) {
        flagged += usize::from(!is_flat(operation, &mut databases, &mut plans));
    }
    prune(&databases);
    println!("{flagged} operations with findings; load {}", load());
}

/// Measures an operation on both databases. Returns false if its time or its pages grow, or a statement visits many rows.
fn is_flat(operation: &Operation, databases: &mut [Filled; 2], plans: &mut Plans<'_>) -> bool {
    // The server plans a prepared statement anew for its first calls.
    let warm = operation.rounds.min(12);
    databases.iter_mut().for_each(|filled| (0..warm).for_each(|_| _ = (operation.run)(filled)));
    plans.forget();
    let mut taken = [const { Vec::new() }; 2];
    for _ in 0..operation.rounds {
        for (filled, taken) in databases.iter_mut().zip(&mut taken) {
            taken.push(u64::try_from((operation.run)(filled).as_nanos()).unwrap_or(u64::MAX));
        }
    }
    let rounds = operation.rounds as f64;
    let [few_pages, pages] = [0, 1].map(|place| plans.pages(&databases[place].database) / rounds);
    taken.iter_mut().for_each(|taken| taken.sort_unstable());
    let at = |place: usize, share: f64| percentile(&taken[place], share) as f64 / 1e3;
    let (p50, p99, page_ratio) = (at(1, 0.5) / at(0, 0.5), at(1, 0.99) / at(0, 0.99), pages / few_pages.max(1.0));
    let found = plans.of(&operation.name, || _ = (operation.run)(&mut databases[1]));
    let is_flat = p50 <= FLAT && p99 <= FLAT && page_ratio <= FLAT && found.is_empty();
    println!(
        "{:<58} {:>11.0} {:>11.0} {few_pages:>8.0} {:>11.0} {:>11.0} {pages:>8.0} {p50:>5.2} {p99:>5.2} {page_ratio:>5.2}{}",
        operation.name,
        at(0, 0.5),
        at(0, 0.99),
        at(1, 0.5),
        at(1, 0.99),
        if is_flat { "" } else { "  !" }
    );
    found.iter().for_each(|found| println!("    {found}"));
    is_flat
}

/// Measures how long a client takes to prune a tenth of each log.
fn prune(databases: &[Filled; 2]) {
    for filled in databases {
        let retained = || filled.service.realtime().stats().expect("statistics").retained;
        let (before, start) = (retained(), Instant::now());
        let limit = before - before / 10;
        let client = Client::open(filled.config().change_retention_rows(limit)).expect("the client opens");
        client.as_service().realtime().cursor().expect("a cursor");
        while retained() > limit && start.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("pruned {} of {before} entries, {seconds:.2} s after the client opened", before - retained());
        client.close();
    }
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
