//! The floor of the latency on PostgreSQL: an insert that notifies, and a thread that listens, both by sqlx.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use sqlx::{Connection as _, Executor as _, PgConnection, postgres::PgListener};
use tokio::runtime::{Builder, Runtime};
use townsquare_benches::sized;

use crate::latency::PATIENCE;

fn alone() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The time from the return of the commit to the notification.
pub(crate) fn run(url: &str) -> (&'static str, Vec<Duration>) {
    let runtime = alone();
    let mut connection = runtime.block_on(PgConnection::connect(url)).expect("the server runs");
    runtime.block_on(connection.execute("CREATE TABLE floor (name TEXT)")).expect("a table");
    let (notified, notifications) = mpsc::channel();
    let (ready, is_ready) = mpsc::channel();
    let url = url.to_owned();
    let rounds = sized(3_000, 20);
    let listening = thread::spawn(move || {
        alone().block_on(async {
            let mut listener = PgListener::connect(&url).await.expect("the server runs");
            listener.listen("floor").await.expect("it listens");
            ready.send(()).expect("the bench waits");
            for _ in 0..rounds {
                listener.recv().await.expect("a notification");
                notified.send(Instant::now()).expect("the bench waits");
            }
        });
    });
    is_ready.recv_timeout(PATIENCE).expect("it listens");
    let insert = "WITH row AS (INSERT INTO floor (name) VALUES ('A space') RETURNING name)
        SELECT pg_notify('floor', '') FROM row";
    let taken = (0..rounds)
        .map(|_| {
            runtime.block_on(sqlx::query(insert).execute(&mut connection)).expect("a row");
            let returned = Instant::now();
            notifications.recv_timeout(PATIENCE).expect("a notification").saturating_duration_since(returned)
        })
        .collect();
    listening.join().expect("no panic");
    ("sqlx: an insert that notifies, a thread that listens", taken)
}
