//! `Client::metrics`: what happens is counted once, under names without a secret. With the feature `metrics`, it also arrives
//! at the recorder of the program.

use std::{
    collections::BTreeMap,
    io::Write as _,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use metrics_util::{
    MetricKind as RecordedKind,
    debugging::{DebugValue, DebuggingRecorder},
};
use parking_lot::RwLock;
use townsquare::{
    Config, ErrorKind,
    blocking::Client,
    discovery::Timeframe,
    metrics::{DESCRIPTIONS, MetricKind, Metrics, Value},
    realtime::ChangeRequest,
    spaces::NewSpace,
    storage::UploadOptions,
};
use townsquare_tests::{
    catalog::Catalog,
    fixture::{FIFTEEN_MINUTES, Fixture},
    on_both_engines, on_engine,
    subprocess::in_subprocess,
    temp_dir,
    test_database::Engine,
    wait::wait_until,
};

fn number(metrics: &Metrics, name: &str, labels: &[(&str, &str)]) -> f64 {
    match metrics.get(name, labels) {
        None => 0.0,
        Some(Value::Number(number)) => *number,
        Some(Value::Histogram(histogram)) => histogram.count as f64,
    }
}

fn calls(client: &Client, operation: &str, outcome: &str) -> f64 {
    let metrics = client.metrics().expect("open");
    number(&metrics, "townsquare_operations_total", &[("operation", operation), ("outcome", outcome)])
}

on_both_engines! {
    fn a_call_is_counted_under_its_operation_and_outcome(db: &TestDatabase) {
        let client = db.another();
        let owner = db.user();
        assert_eq!(calls(&client, "create_space", "ok"), 0.0);
        let space = client.as_service().spaces().create_space(NewSpace::named("Harbor").owned_by(owner)).expect("created");
        client.spaces().create_space(NewSpace::named("Harbor")).expect_err("anonymous");
        client.spaces().get_space(space.id).expect_err("hidden");
        client.as_service().spaces().get_space(space.id).expect("found");
        // Every handle counts for the client, and every handle tells.
        for handle in [&client, &client.as_service()] {
            assert_eq!(calls(handle, "create_space", "ok"), 1.0);
            assert_eq!(calls(handle, "create_space", "forbidden"), 1.0);
            assert_eq!((calls(handle, "get_space", "ok"), calls(handle, "get_space", "not_found")), (1.0, 1.0));
        }
        let metrics = client.metrics().expect("open");
        assert_eq!(number(&metrics, "townsquare_operation_seconds", &[("operation", "get_space")]), 2.0);
        // This call of `metrics` itself.
        assert_eq!(number(&metrics, "townsquare_operations_running", &[]), 1.0);
        assert_eq!(calls(&db.client, "create_space", "ok"), 0.0, "another client counts for itself");
        client.close();
        assert_eq!(client.metrics().expect_err("closed").kind(), ErrorKind::Closed);
    }

    fn a_call_that_hashes_a_password_is_one_call_also_if_it_is_refused_before(db: &TestDatabase) {
        let client = db.another();
        client.auth().sign_up("no address", "correct horse").expect_err("malformed");
        client.auth().sign_up("cat@town.example", "correct horse").expect("signed up");
        client.auth().sign_in("cat@town.example", "wrong password").expect_err("wrong");
        client.auth().sign_in("cat@town.example", "correct horse").expect("signed in");
        client.auth().delete_own_user("correct horse").expect("deleted");
        let outcomes = [("sign_up", "invalid_input"), ("sign_up", "ok"), ("sign_in", "unauthorized"), ("sign_in", "ok"), ("delete_user", "ok")];
        for (operation, outcome) in outcomes {
            assert_eq!(calls(&client, operation, outcome), 1.0, "{operation} {outcome}");
        }
    }

    fn the_gauges_show_what_the_client_does(db: &TestDatabase) {
        let client = db.another();
        let metrics = client.metrics().expect("open");
        let gauge = |name: &str| number(&metrics, name, &[]);
        assert_eq!((gauge("townsquare_feed_subscriptions"), gauge("townsquare_staged_bytes")), (0.0, 0.0));
        let is_sqlite = db.engine == Engine::Sqlite;
        assert_eq!(metrics.get("townsquare_database_writes_waiting", &[]).is_some(), is_sqlite);

        let stream = client.realtime().changes(ChangeRequest::table("spaces")).expect("a stream");
        let service = client.as_service();
        let mut writer = service.storage().writer("assets", "large", UploadOptions::new()).expect("a writer");
        writer.write_all(&[7; 300_000]).expect("written");
        let metrics = client.metrics().expect("open");
        let gauge = |name: &str| number(&metrics, name, &[]);
        assert_eq!((gauge("townsquare_feed_subscriptions"), gauge("townsquare_staged_bytes")), (1.0, 300_000.0));
        let connections = |state| number(&metrics, "townsquare_database_connections", &[("state", state)]);
        assert!(connections("busy") + connections("idle") >= 1.0);
        drop((stream, writer));
        wait_until("nothing is staged and nobody subscribes", || {
            let metrics = client.metrics().expect("open");
            number(&metrics, "townsquare_staged_bytes", &[]) == 0.0
                && number(&metrics, "townsquare_feed_subscriptions", &[]) == 0.0
        });
    }

    fn the_time_of_a_callback_is_measured(db: &TestDatabase) {
        let client = db.another();
        let (sender, receiver) = mpsc::channel();
        let subscription = client.realtime().subscribe("metrics", ChangeRequest::table("spaces"), move |_| sender.send(()).expect("the test waits"));
        let subscription = subscription.expect("subscribed");
        db.public_space(db.user(), "Harbor");
        receiver.recv().expect("a change");
        subscription.unsubscribe();
        let metrics = client.metrics().expect("open");
        assert_eq!(number(&metrics, "townsquare_callback_seconds", &[]), 1.0);
    }

    fn jobs_that_wait_for_a_thread_of_callbacks_and_changes_that_are_kept_are_counted(db: &TestDatabase) {
        let client = db.another();
        let gauge = |name: &str, labels: &[(&str, &str)]| number(&client.metrics().expect("open"), name, labels);
        let waiting = || gauge("townsquare_jobs_waiting", &[("pool", "callbacks")]);
        assert_eq!((waiting(), gauge("townsquare_jobs_waiting", &[("pool", "blocking")])), (0.0, 0.0));
        let gate = Arc::new(RwLock::new(()));
        let closed = gate.write();
        let subscribe = |_| {
            let gate = Arc::clone(&gate);
            let request = ChangeRequest::table("spaces");
            client.realtime().subscribe("metrics", request, move |_| drop(gate.read())).expect("subscribed")
        };
        // More than the pool has threads.
        let subscriptions: Vec<_> = (0..600).map(subscribe).collect();
        let kept = gauge("townsquare_feed_retained", &[]);
        db.public_space(db.user(), "Harbor");
        wait_until("callbacks wait for a thread", || waiting() > 0.0);
        assert!(gauge("townsquare_feed_retained", &[]) > kept);
        drop(closed);
        wait_until("no callback waits", || waiting() == 0.0);
        drop(subscriptions);
    }

    fn metrics_contain_no_text_of_a_user(db: &TestDatabase) {
        let client = db.another();
        client.auth().sign_up("planted-address@town.example", "planted-password").expect("signed up");
        let session = client.auth().sign_in("planted-address@town.example", "planted-password").expect("signed in");
        let space = client.spaces().create_space(NewSpace::named("planted-name")).expect("created");
        client.storage().upload("assets", "planted-path", "planted-bytes", UploadOptions::new()).expect("uploaded");
        client.auth().sign_in("planted-other@town.example", "planted-password").expect_err("unknown");
        let metrics = client.metrics().expect("open");
        let texts = [metrics.to_prometheus(), metrics.to_json().to_string()];
        let ids = [space.id.to_string(), session.user.id.to_string(), session.access_token];
        for planted in ids.iter().map(String::as_str).chain(["planted"]) {
            assert!(texts.iter().all(|text| !text.contains(planted)), "{planted}");
        }
    }
}

on_engine! { Sqlite in waiting;
    fn transactions_that_wait_for_the_writer_are_counted(db: &TestDatabase) {
        let waiting = || number(&db.client.metrics().expect("open"), "townsquare_database_writes_waiting", &[]);
        assert_eq!(waiting(), 0.0);
        db.raw.run("BEGIN IMMEDIATE");
        thread::scope(|scope| {
            let write = || db.service.spaces().create_space(NewSpace::named("x")).map(drop);
            let writers: Vec<_> = (0..4).map(|_| scope.spawn(write)).collect();
            // The first one is at the writer, which waits for the lock of the file.
            wait_until("three transactions wait", || waiting() == 3.0);
            db.raw.run("COMMIT");
            for writer in writers {
                writer.join().expect("no panic").expect("written");
            }
        });
        assert_eq!(waiting(), 0.0);
    }
}

#[test]
fn the_age_of_the_catalog_grows_until_it_is_stale_and_begins_again() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = Client::open(fixture.config()).expect("opens");
    let catalog = || {
        let metrics = client.metrics().expect("open");
        let value = |name: &str| match metrics.get(name, &[]) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        };
        (value("townsquare_catalog_apps"), value("townsquare_catalog_age_seconds"), value("townsquare_catalog_stale"))
    };
    let read = || client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).map(drop).expect("a list");
    assert_eq!((catalog().0, catalog().1), (Some(0.0), None), "before the first fetch there is no age");
    read();
    assert_eq!(catalog(), (Some(60.0), Some(0.0), Some(0.0)));
    fixture.clock.advance(Duration::from_secs(90));
    assert_eq!(catalog(), (Some(60.0), Some(90.0), Some(0.0)));
    fixture.clock.advance(FIFTEEN_MINUTES);
    assert_eq!(catalog(), (Some(60.0), Some(990.0), Some(1.0)));
    fixture.upstream.serve(Catalog::of(70).rows());
    read();
    wait_until("the catalog is new", || catalog() == (Some(70.0), Some(0.0), Some(0.0)));
    client.close();
}

/// The feature `metrics`: the recorder of the program gets what `Client::metrics` returns.
#[test]
fn the_recorder_of_the_program_gets_the_calls_under_the_listed_names() {
    in_subprocess(the_recorder_of_the_program_gets_the_calls_under_the_listed_names, || {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        recorder.install().expect("the first of this process");
        let folder = temp_dir();
        let client = Client::open(Config::new().data_dir(folder.path()).catalog_api_key("")).expect("opens");
        client.auth().sign_up("planted-address@town.example", "planted-password").expect("signed up");
        client.spaces().get_public_spaces(20, 0).expect("a list");
        client.spaces().get_public_spaces(20, 0).expect("a list");
        client.spaces().create_space(NewSpace::named("planted-name")).expect_err("anonymous");
        let (sender, receiver) = mpsc::channel();
        let send = move |_| sender.send(()).expect("the test waits");
        let subscription =
            client.realtime().subscribe("metrics", ChangeRequest::table("spaces"), send).expect("subscribed");
        client.as_service().spaces().create_space(NewSpace::named("planted-name").public()).expect("created");
        receiver.recv().expect("a change");
        subscription.unsubscribe();
        let asked = client.metrics().expect("open");
        client.close();

        let (mut counted, mut measured, mut gauges) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (recorded, _, _, value) in snapshotter.snapshot().into_vec() {
            let (kind, key) = recorded.into_parts();
            let listed = DESCRIPTIONS.iter().find(|metric| metric.name == key.name()).expect("a listed metric");
            let labels = key.labels().map(|label| (label.key(), label.value().to_owned()));
            let (labels, values): (Vec<_>, Vec<_>) = labels.unzip();
            assert_eq!(labels, listed.labels, "{}", listed.name);
            assert!(values.iter().all(|value| !value.contains("planted")), "{values:?}");
            match (value, listed.kind) {
                (DebugValue::Counter(number), MetricKind::Counter) => {
                    assert_eq!((kind, listed.name), (RecordedKind::Counter, "townsquare_operations_total"));
                    counted.insert(values.join(" "), number);
                }
                (DebugValue::Histogram(times), MetricKind::Histogram) => {
                    assert_eq!(kind, RecordedKind::Histogram);
                    assert!(times.iter().all(|time| (0.0..60.0).contains(&time.into_inner())), "{times:?}");
                    measured
                        .insert(if values.is_empty() { listed.name.to_owned() } else { values.join(" ") }, times.len());
                }
                (DebugValue::Gauge(number), MetricKind::Gauge) => {
                    assert_eq!(kind, RecordedKind::Gauge);
                    gauges.insert((listed.name, values), number.into_inner());
                }
                (value, _) => panic!("{} is {value:?}", listed.name),
            }
        }
        let pairs = |map: &[(&str, u64)]| map.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        let expected: BTreeMap<String, u64> = pairs(&[
            ("create_space forbidden", 1),
            ("create_space ok", 1),
            ("get_public_spaces ok", 2),
            ("metrics ok", 1),
            ("sign_up ok", 1),
            ("subscribe ok", 1),
        ]);
        assert_eq!(counted, expected);
        let measured: BTreeMap<_, _> = measured.into_iter().map(|(name, times)| (name, times as u64)).collect();
        let calls = [("create_space", 2), ("get_public_spaces", 2), ("metrics", 1), ("sign_up", 1), ("subscribe", 1)];
        assert_eq!(measured, pairs(&[&calls[..], &[("townsquare_callback_seconds", 1)]].concat()));
        // The gauges are those that `metrics` returned.
        let mut returned = BTreeMap::new();
        for (metric, samples) in asked.iter().filter(|(metric, _)| metric.kind == MetricKind::Gauge) {
            for sample in samples {
                let Value::Number(number) = sample.value else { panic!("{} is {:?}", metric.name, sample.value) };
                returned.insert((metric.name, sample.labels.iter().map(|&label| label.to_owned()).collect()), number);
            }
        }
        assert_eq!(gauges, returned);
        assert_eq!(gauges.get(&("townsquare_staged_bytes", Vec::new())), Some(&0.0));
    });
}
