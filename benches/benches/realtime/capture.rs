//! The cost of a durable write with the feed in use, compared with the same write to a database whose feed was never used.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use townsquare::{
    Uuid,
    blocking::Client,
    realtime::ChangeRequest,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_benches::sized;
use townsquare_tests::raw_sql::RawConnection;

use crate::{NewDatabase, median, service_of};

type Write = Arc<dyn Fn(&Client, Uuid, usize) + Send + Sync>;

/// What is compared. The first one is what the others are divided by.
const NAMES: [&str; 4] = ["never used", "its triggers dropped", "captured", "captured, one subscription"];

pub(crate) fn run(engine: &str, database: NewDatabase<'_>, writers: &[usize]) {
    let urls = NAMES.map(|_| database());
    let [never, dropped, captured, subscribed] = urls.clone().map(|url| service_of(&url));
    drop_triggers(&urls[1]);
    captured.realtime().cursor().expect("a cursor");
    let subscription =
        subscribed.realtime().subscribe("capture", ChangeRequest::table("spaces"), drop).expect("subscribed");
    let clients = [never, dropped, captured, subscribed];
    let insert: Write = Arc::new(|client, _, number| {
        let space = NewSpace::named(format!("Space {number}")).description("What it is about, in a few words");
        client.spaces().create_space(space).expect("a space");
    });
    let update: Write = Arc::new(|client, id, number| {
        let patch = SpacePatch::new().name(format!("Space {number}"));
        client.spaces().update_space(id, patch).expect("a space");
    });
    for count in writers {
        for (name, write) in [("insert", &insert), ("update by key", &update)] {
            let rounds: Vec<_> =
                (0..sized(11, 1)).map(|_| clients.each_ref().map(|client| cost(client, *count, write))).collect();
            println!("{engine}: {name}, {count} writers (medians of {} rounds)", rounds.len());
            for (place, contender) in NAMES.iter().enumerate() {
                let times = median(rounds.iter().map(|round| round[place]).collect());
                let ratios = median(rounds.iter().map(|round| round[place] / round[0]).collect());
                println!("  {contender:<28} {times:>8.1} us a write, {ratios:>5.2} times");
            }
        }
    }
    subscription.unsubscribe();
    clients.iter().for_each(Client::close);
}

/// Drops the feed's triggers on spaces.
fn drop_triggers(url: &str) {
    if let Some(file) = url.strip_prefix("sqlite:") {
        let raw = RawConnection::sqlite(file.as_ref());
        let triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'spaces'
            AND name LIKE 'townsquare_change%'";
        for name in raw.rows(triggers).into_iter().flatten().flatten() {
            raw.run(&format!("DROP TRIGGER {name}"));
        }
    } else {
        let raw = RawConnection::postgres(url).expect("the server runs");
        let triggers =
            "SELECT tgname FROM pg_trigger WHERE tgrelid = 'spaces'::regclass AND tgname LIKE 'townsquare_capture%'";
        for name in raw.rows(triggers).into_iter().flatten().flatten() {
            raw.run(&format!("DROP TRIGGER {name} ON spaces"));
        }
    }
}

/// Microseconds per write of all writers together.
fn cost(client: &Client, writers: usize, write: &Write) -> f64 {
    let spaces = (0..writers).map(|_| NewSpace::named("x")).collect();
    let ids = client.spaces().create_spaces(spaces).expect("spaces");
    let span = sized(Duration::from_millis(300), Duration::from_millis(20));
    let start = Instant::now();
    let threads: Vec<_> = ids
        .into_iter()
        .map(|space| {
            let (client, write) = (client.clone(), Arc::clone(write));
            thread::spawn(move || {
                let mut written = 0;
                while start.elapsed() < span {
                    write(&client, space.id, written);
                    written += 1;
                }
                written
            })
        })
        .collect();
    let written: usize = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
    start.elapsed().as_secs_f64() * 1e6 / written as f64
}
