//! A child process with many subscriptions. It judges what they got.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use townsquare::{
    blocking::Client,
    realtime::{ChangeRequest, RowChange, Subscription},
};

use crate::{
    config,
    process::next_command,
    rows::{self, Caller, PASSWORD, Table, USERS, Wanted, address},
    usage,
};

/// Threads that make subscriptions.
const THREADS: usize = 4;

/// How long after the last change a change may come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The callback of a subscription: its number, the number of the change, and the time.
type Entry = (u32, u32, u64);

/// Nanoseconds since 1970: the processes of a machine have the same clock.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    u64::try_from(since.as_nanos()).expect("a time before 2554")
}

/// The number that the writer put into a row; `None` before its first change.
fn number_of(change: &RowChange) -> Option<u32> {
    let row = change.new.as_ref()?;
    match row.get("config") {
        Some(config) => config.as_u64().and_then(|number| number.try_into().ok()),
        None => row["name"].as_str()?.parse().ok(),
    }
}

/// Answers: the seconds, and the MB before and after; then, at a command with the number of changes: how many came, were missed,
/// came twice, and came to a subscription that must not get them, and this process's CPU seconds. Writes the times to `output`.
#[allow(clippy::print_stdout, reason = "the parent reads the answers")]
pub(crate) fn run(url: &str, folder: &Path, process: usize, count: usize, spaces: usize) {
    let client = Client::open(config(url, &folder.join(process.to_string()))).expect("the client opens");
    let session = |user: usize| client.auth().create_session(&address(user), PASSWORD).expect("a session");
    let users: Vec<_> = (0..USERS).map(|user| client.as_user(&session(user).access_token).expect("a user")).collect();
    let (service, anonymous) = (client.as_service(), client.as_anonymous());
    service.realtime().cursor().expect("the feed is on");
    // The memory of the password hashes is given back meanwhile.
    thread::sleep(Duration::from_secs(6));
    let before = usage::megabytes_of(std::process::id());
    let (send, received) = mpsc::channel::<Entry>();
    let start = Instant::now();
    let subscribe = |number: usize| {
        let Wanted { caller, table, filter, .. } = Wanted::new(number, process, spaces);
        let of_caller = match caller {
            Caller::Service => &service,
            Caller::Anonymous => &anonymous,
            Caller::User(user) => &users[user],
        };
        let request = ChangeRequest::table(if table == Table::Spaces { "spaces" } else { "fidgets" });
        let request = if filter.is_empty() { request } else { request.filter(filter) };
        let (send, number_of_subscription) =
            (send.clone(), u32::try_from(number).expect("fewer than four thousand million"));
        let callback = move |change: RowChange| {
            if let Some(change) = number_of(&change) {
                let _ = send.send((number_of_subscription, change, now()));
            }
        };
        of_caller.realtime().subscribe("drill", request, callback).expect("subscribed")
    };
    let part = |first: usize| (first..count).step_by(THREADS).map(&subscribe).collect::<Vec<_>>();
    let subscriptions: Vec<Subscription> = thread::scope(|scope| {
        let part = &part;
        let threads: Vec<_> = (0..THREADS).map(|first| scope.spawn(move || part(first))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    println!("{} {before} {}", start.elapsed().as_secs_f64(), usage::megabytes_of(std::process::id()));
    let Some(command) = next_command() else { return };
    let changes: usize = command.parse().expect("a number of changes");
    let wanted: Vec<_> = (0..count).map(|number| Wanted::new(number, process, spaces)).collect();
    let expected = expected(&wanted, changes, spaces);
    let (end, mut entries) = (Instant::now() + PATIENCE, Vec::with_capacity(expected.len()));
    while entries.len() < expected.len() {
        match received.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(entry) => entries.push(entry),
            Err(_) => break,
        }
    }
    let cpu = usage::own_cpu();
    // For a change that comes twice.
    thread::sleep(Duration::from_secs(1));
    entries.extend(received.try_iter());
    subscriptions.iter().for_each(Subscription::unsubscribe);
    let mut got = HashMap::with_capacity(entries.len());
    entries.iter().for_each(|(subscription, change, _)| *got.entry((*subscription, *change)).or_insert(0) += 1);
    let missed = expected.iter().filter(|pair| !got.contains_key(*pair)).count();
    let doubled = got.values().filter(|count| **count > 1).count();
    let foreign = got.len() + missed - expected.len();
    let bytes: Vec<u8> =
        entries.iter().flat_map(|(_, change, at)| [u64::from(*change), *at]).flat_map(u64::to_le_bytes).collect();
    fs::write(folder.join(format!("times-{process}")), bytes).expect("the folder is writable");
    println!("{} {missed} {doubled} {foreign} {cpu}", entries.len());
    next_command();
}

/// The changes that each subscription gets.
fn expected(wanted: &[Wanted], changes: usize, spaces: usize) -> Vec<(u32, u32)> {
    let mut of_row: HashMap<(bool, usize), Vec<usize>> = HashMap::new();
    let mut broad = Vec::new();
    for (number, wanted) in wanted.iter().enumerate() {
        match wanted.of() {
            Some(of) => of_row.entry((wanted.table == Table::Spaces, of)).or_default().push(number),
            None => broad.push(number),
        }
    }
    let mut expected = Vec::new();
    for number in 0..changes {
        let change = rows::change(number, spaces);
        let narrow = of_row.get(&(change.0 == Table::Spaces, change.1)).into_iter().flatten();
        let of_change = narrow.chain(&broad).filter(|subscription| wanted[**subscription].gets(change));
        let pair = |subscription: &usize| u32::try_from(*subscription).ok().zip(u32::try_from(number).ok());
        expected.extend(of_change.filter_map(pair));
    }
    expected
}
