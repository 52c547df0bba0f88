//! A subscription beside filters that were made to take long: patterns with `_` on a long text, as an anonymous request can
//! choose them.

use std::{sync::mpsc, thread, time::Duration};

use townsquare::{
    Uuid,
    blocking::Client,
    realtime::ChangeRequest,
    spaces::{NewSpace, SpacePatch},
    storage::UploadOptions,
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

/// An upload beside anonymous streams that go on from an old cursor, each with such a filter.
pub(crate) fn run_replays(url: &str) {
    let client = open(url);
    let service = client.as_service();
    let start = service.realtime().cursor().expect("a cursor");
    let entries = sized(20_000, 50);
    let description = "a".repeat(1_000);
    for number in 0..entries {
        let space = NewSpace::named(number.to_string()).public().description(&description);
        service.spaces().create_space(space).expect("a space");
    }
    let upload = |number: usize| {
        let content = vec![0; sized(1 << 20, 1 << 10)];
        service.storage().upload("assets", &number.to_string(), content, UploadOptions::new()).expect("uploaded");
    };
    let measure = || median((0..sized(50, 3)).map(|number| timed(|| upload(number)).as_secs_f64() * 1e3).collect());
    let alone = measure();
    let filter = hostile().replace('%', "%25").replace('&', "%26");
    let target = format!("/events?table=spaces&since={start}&filter={filter}");
    let open_stream = |_| client.realtime().handle_events(&target, &[]).expect("a response").body;
    let streams: Vec<_> = (0..sized(64, 4)).map(open_stream).collect();
    let (count, closers) =
        (streams.len(), streams.iter().filter_map(townsquare::blocking::EventBody::closer).collect::<Vec<_>>());
    let readers: Vec<_> = streams.into_iter().map(|stream| thread::spawn(move || stream.for_each(drop))).collect();
    let among = measure();
    closers.iter().for_each(townsquare::http::BodyCloser::close);
    readers.into_iter().for_each(|reader| reader.join().expect("no panic"));
    println!("SQLite: an upload of 1 MiB: {alone:.1} ms alone");
    println!(
        "  beside {count} anonymous patterns that replay {entries} entries: {among:.1} ms, {:.2} times",
        among / alone
    );
    client.close();
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
