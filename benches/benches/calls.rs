//! Cost of the spans and counters of a call, on the cheapest call: one app by its id, out of memory.
//!
//! Without a subscriber of `tracing`, with one for the level INFO, which takes no span of a call, and with one that takes each span
//! and keeps nothing. The floor is the two looks at the clock that the time of a call needs. A call that nobody observes costs what
//! the first row is over its floor, less the look-up of the app.

#![deny(unsafe_code)]

use std::{hint::black_box, time::Instant};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use townsquare::discovery::Timeframe;
use townsquare_benches::{fixture::Fixture, once, sized};
use tracing::{Event, Level, Metadata, Subscriber, span, subscriber};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let fixture = Fixture::of(sized(1_000, 100));
    let discovery = fixture.client.inner().discovery();
    let first = fixture.client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a catalog");
    let id = first.iter().next().expect("an app").id().to_owned();
    let read = || once(discovery.get_mini_app(&id)).expect("the catalog answers").is_some();
    let mut group = criterion.benchmark_group("calls/get_mini_app");
    measure(&mut group, "nobody observes", read);
    subscriber::with_default(Observer(Level::INFO), || measure(&mut group, "a subscriber for INFO", read));
    subscriber::with_default(Observer(Level::DEBUG), || measure(&mut group, "a subscriber for spans", read));
    group.bench_function("floor: the clock twice", |bencher| bencher.iter(|| Instant::now().elapsed()));
    group.finish();
    fixture.client.close();
    criterion.final_summary();
}

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, read: impl Fn() -> bool) {
    group.bench_function(name, |bencher| bencher.iter(|| black_box(read())));
}

/// A subscriber that takes spans and events up to a level, and keeps nothing.
struct Observer(Level);

impl Subscriber for Observer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.0
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
