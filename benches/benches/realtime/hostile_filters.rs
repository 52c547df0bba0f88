//! A subscription beside filters that were made to take long: patterns with `_` on a long text, as an anonymous request can
//! choose them.

use std::{sync::mpsc, time::Duration};

use townsquare::{
    Uuid,
    blocking::Client,
    realtime::ChangeRequest,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_benches::{sized, spaces::open};

use crate::{median, timed};

const PATIENCE: Duration = Duration::from_secs(60);

/// Eight conditions within the limits of a filter. No row fulfils the last one.
fn hostile() -> String {
    let like = |end: &str| format!("description=like.%{}_{end}%", "a".repeat(90));
    let mut conditions = vec![like("a"); 7];
    conditions.push(like("b"));
    conditions.join("&")
}

pub(crate) fn run(url: &str) {
    let client = open(url);
    let service = client.as_service();
    let space = NewSpace::named("watched").public().description("a".repeat(sized(1_000, 100)));
    let id = service.spaces().create_space(space).expect("a space").id;
    let (entered, entries) = mpsc::channel();
    let request = ChangeRequest::table("spaces").filter(format!("id=eq.{id}"));
    let good = service.realtime().subscribe("good", request, move |_| {
        let _ = entered.send(());
    });
    let good = good.expect("subscribed");
    let change = |number: usize| {
        rename(&service, id, number);
        entries.recv_timeout(PATIENCE).expect("the change arrives");
    };
    let measure = || median((0..sized(200, 5)).map(|number| timed(|| change(number)).as_secs_f64() * 1e6).collect());
    let many = sized(10_000, 50);
    let (mut alone, mut among) = (Vec::new(), Vec::new());
    for _ in 0..sized(5, 1) {
        alone.push(measure());
        let filter = hostile();
        let streams: Vec<_> = (0..many)
            .map(|_| client.realtime().changes(ChangeRequest::table("spaces").filter(&filter)).expect("a stream"))
            .collect();
        among.push(measure());
        drop(streams);
    }
    let ratios = among.iter().zip(&alone).map(|(among, alone)| among / alone).collect();
    println!("SQLite: a durable update until its callback has run: {:.1} us with one subscription", median(alone));
    println!("  beside {many} anonymous patterns: {:.1} us, {:.2} times", median(among), median(ratios));
    good.unsubscribe();
    client.close();
}

fn rename(service: &Client, id: Uuid, number: usize) {
    service.spaces().update_space(id, SpacePatch::new().name(number.to_string())).expect("a space");
}
