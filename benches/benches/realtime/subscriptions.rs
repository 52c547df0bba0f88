//! Many subscriptions at once: on other rows, and all on one row.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use townsquare::{
    Uuid,
    blocking::Client,
    realtime::{ChangeRequest, Subscription},
    spaces::{NewSpace, SpacePatch},
};
use townsquare_benches::sized;

use crate::{median, service_of, timed};

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(url: &str) {
    let service = service_of(url);
    let id = service.spaces().create_space(NewSpace::named("watched")).expect("a space").id;
    others(&service, id);
    matching(&service, id);
    service.close();
}

fn watch(service: &Client, id: Uuid, mut callback: impl FnMut() + Send + 'static) -> Subscription {
    let request = ChangeRequest::table("spaces").filter(format!("id=eq.{id}"));
    service.realtime().subscribe("watch", request, move |_| callback()).expect("subscribed")
}

fn rename(service: &Client, id: Uuid, number: usize) {
    service.spaces().update_space(id, SpacePatch::new().name(number.to_string())).expect("a space");
}

/// Compares a change that one subscription gets with the same change beside many subscriptions to other rows.
fn others(service: &Client, id: Uuid) {
    let many = sized(10_000, 50);
    let (entered, entries) = mpsc::channel();
    let watched = watch(service, id, move || {
        let _ = entered.send(());
    });
    let change = |number: usize| {
        rename(service, id, number);
        entries.recv_timeout(PATIENCE).expect("the change arrives");
    };
    let measure = || median((0..sized(1_000, 5)).map(|number| timed(|| change(number)).as_secs_f64() * 1e6).collect());
    let (mut alone, mut among) = (Vec::new(), Vec::new());
    for _ in 0..sized(5, 1) {
        alone.push(measure());
        let others: Vec<_> = (0..many).map(|_| watch(service, Uuid::new_v4(), || ())).collect();
        among.push(measure());
        others.iter().for_each(Subscription::unsubscribe);
    }
    let ratios = among.iter().zip(&alone).map(|(among, alone)| among / alone).collect();
    println!("SQLite: a durable update until its callback has run: {:.1} us with one subscription", median(alone));
    println!("  beside {many} on other rows: {:.1} us, {:.2} times", median(among), median(ratios));
    watched.unsubscribe();
}

/// Counts the deliveries a second to many subscriptions on one row, beside a loop that calls as many closures with shared
/// values.
fn matching(service: &Client, id: Uuid) {
    let (many, changes) = (sized(10_000, 50), sized(300, 2));
    let delivered = Arc::new(AtomicUsize::new(0));
    let count = || {
        let delivered = Arc::clone(&delivered);
        move || {
            delivered.fetch_add(1, Ordering::Relaxed);
        }
    };
    let subscriptions: Vec<_> = (0..many).map(|_| watch(service, id, count())).collect();
    let mut rates = Vec::new();
    for _ in 0..sized(5, 1) {
        let before = delivered.load(Ordering::Relaxed);
        let start = Instant::now();
        for number in 0..changes {
            rename(service, id, number);
            // The feed takes the changes one by one, as from a program that waits for its callbacks.
            while delivered.load(Ordering::Relaxed) < before + (number + 1) * many {
                assert!(start.elapsed() < PATIENCE, "{} of {many}", delivered.load(Ordering::Relaxed) - before);
                thread::sleep(Duration::from_micros(50));
            }
        }
        rates.push((many * changes) as f64 / start.elapsed().as_secs_f64());
    }
    subscriptions.iter().for_each(Subscription::unsubscribe);
    println!("SQLite: {:.0} deliveries a second to {many} subscriptions that all match", median(rates));
    let mut callbacks: Vec<Box<dyn FnMut(Arc<str>)>> = (0..many)
        .map(|_| {
            let count = count();
            Box::new(move |_| count()) as _
        })
        .collect();
    let value: Arc<str> = "shared".into();
    let taken = timed(|| {
        for _ in 0..changes {
            callbacks.iter_mut().for_each(|callback| callback(Arc::clone(&value)));
        }
    });
    println!("  floor: {:.0} calls of as many closures on one thread", (many * changes) as f64 / taken.as_secs_f64());
}
