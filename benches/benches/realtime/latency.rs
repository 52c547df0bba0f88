//! The time from the return of a write to the entry of the callback, with one writer.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use townsquare::{realtime::ChangeRequest, spaces::NewSpace};
use townsquare_benches::sized;

use crate::{NewDatabase, report, service_of};

/// The longest that a change may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Measures the library, then the floor.
pub(crate) fn run(engine: &str, database: NewDatabase<'_>, floor: &dyn Fn() -> (&'static str, Vec<Duration>)) {
    let service = service_of(&database());
    let (entered, entries) = mpsc::channel();
    let callback = move |_| {
        let _ = entered.send(Instant::now());
    };
    let subscription =
        service.realtime().subscribe("latency", ChangeRequest::table("spaces"), callback).expect("subscribed");
    let mut taken = Vec::new();
    for number in 0..sized(3_100, 20) {
        service.spaces().create_space(NewSpace::named("A space")).expect("a space");
        let returned = Instant::now();
        let entered = entries.recv_timeout(PATIENCE).expect("the change arrives");
        if number >= sized(100, 0) {
            taken.push(entered.saturating_duration_since(returned));
        }
    }
    subscription.unsubscribe();
    report(&format!("{engine}: commit returned to callback entered"), taken);
    let (name, taken) = floor();
    report(&format!("  floor: {name}"), taken);
    service.close();
}

/// The time until a thread that waits in a channel runs.
pub(crate) fn wake_ups() -> (&'static str, Vec<Duration>) {
    let (send, received) = mpsc::channel::<Instant>();
    let (answer, answers) = mpsc::channel();
    let waiting = thread::spawn(move || {
        while let Ok(sent) = received.recv() {
            let _ = answer.send(sent.elapsed());
        }
    });
    let wake = |_| {
        // The other thread falls asleep meanwhile, as during a commit.
        thread::sleep(Duration::from_micros(200));
        send.send(Instant::now()).expect("the thread runs");
        answers.recv_timeout(PATIENCE).expect("the thread answers")
    };
    let taken = (0..sized(3_000, 20)).map(wake).collect();
    drop(send);
    waiting.join().expect("no panic");
    ("a thread that waits in a channel is woken", taken)
}
