//! The watch for commits on a PostgreSQL server: a connection outside of the pool listens for the notifications of the
//! triggers. Behind a pooler in transaction mode, which passes no notifications on, the connection looks at the log instead.
//!
//! Invariant: a notification only says when to read the log, so a lost one delays the feed and loses nothing. The watch looks
//! at the log by itself, often while a transaction writes entries, and rarely otherwise: a transaction that was rolled back
//! may have notified in place of others. A connection that is lost is replaced, and then the log is read.

use std::{sync::Arc, time::Duration};

use sqlx::{
    Executor as _, PgConnection, Row as _,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    connection::{
        pool_state::Shared,
        principal::Lifetime,
        servers::{in_recovery, is_in_recovery},
    },
    errors::{no_server_answered, translate},
};
use crate::{
    database::change_log::{CommitWatch, OnCommit},
    error::{Error, Result},
    threads::RuntimeHandle,
};

/// The channel of the triggers' notifications.
const CHANNEL: &str = "townsquare_changes";

/// How often the watch looks at the log while nothing is written.
const IDLE_LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How often the watch looks at the log where it gets no notifications, and while a transaction is about to write.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// How soon after a notification the watch looks at the log. It doubles, up to [`IDLE_LOOK_INTERVAL`], while the same
/// transaction runs.
const FIRST_LOOK_DELAY: Duration = Duration::from_millis(2);

/// How often the watch tells the triggers that somebody listens. Triggers notify for three times as long.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(10);

/// How long the watch waits for the server before it opens another connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Sets a connection that listens, whatever the server, the database or the role sets.
const SET_NEW: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
     SET search_path = pg_catalog, public; SET statement_timeout = 0; SET lock_timeout = 0";

/// What the log looks like.
const HEAD: &str = "SELECT last, settled, has_writer FROM townsquare.feed_head()";

/// Does what [`HEAD`] does, in one message with its transaction: a pooler may give a statement that is prepared first to
/// another server process, which would run what another client has prepared there.
const HEAD_IN_TRANSACTION: &str = "BEGIN ISOLATION LEVEL read committed;
     SELECT last, settled, has_writer FROM townsquare.feed_head(); COMMIT";

/// The first and the longest pause between two attempts to connect.
const CONNECT_PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// Ends the task of a watch.
struct Guard(JoinHandle<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the log looks like.
#[derive(Debug, Clone, Copy)]
struct LogState {
    last: i64,
    settled: i64,
    /// Whether a transaction holds the lock of writers. One that has no entry yet leaves the last id settled.
    has_writer: bool,
}

/// Where the connections of a watch go to.
struct WatchedServer {
    shared: Arc<Shared>,
    lifetime: Lifetime,
}

/// Starts a watch on `runtime`. When this returns, it listens.
pub(super) async fn start(
    shared: Arc<Shared>,
    lifetime: Lifetime,
    runtime: &RuntimeHandle,
    on_commit: OnCommit,
) -> Result<CommitWatch> {
    let (listens, is_listening) = oneshot::channel();
    let guard = Guard(runtime.spawn(watch(WatchedServer { shared, lifetime }, on_commit, listens)));
    is_listening.await.map_err(|_| Error::closed())??;
    Ok(CommitWatch::new(guard))
}

async fn watch(server: WatchedServer, on_commit: OnCommit, listens: oneshot::Sender<Result<()>>) {
    let mut connection = match Connection::open(&server).await {
        Ok(connection) => connection,
        // If nobody waits for the answer, nobody holds the watch.
        Err(error) => return drop(listens.send(Err(error))),
    };
    drop(listens.send(Ok(())));
    loop {
        let error = connection.watch(&on_commit).await;
        drop(connection);
        tracing::warn!(%error, "the connection that listens for changes was lost");
        connection = reconnect(&server).await;
        on_commit();
    }
}

async fn reconnect(server: &WatchedServer) -> Connection {
    let (mut pause, longest) = CONNECT_PAUSES;
    loop {
        match Connection::open(server).await {
            Ok(connection) => return connection,
            Err(error) => tracing::debug!(%error, "the server cannot be reached"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// A connection outside of the pool.
struct Connection {
    inner: WatchConnection,
    announced: Instant,
}

enum WatchConnection {
    Listening(PgListener),
    Polling(PgConnection),
}

impl Connection {
    async fn open(server: &WatchedServer) -> Result<Connection> {
        let (announced, limit) = (Instant::now(), server.shared.options.operation_timeout);
        if server.lifetime == Lifetime::Transaction {
            let mut connection = answered_in(limit, server.shared.servers.connect()).await?;
            if answered_in(limit, is_in_recovery(&mut connection)).await? {
                return Err(in_recovery());
            }
            return Ok(Connection { inner: WatchConnection::Polling(connection), announced });
        }
        // The name tells the operator which connection listens.
        let options = answered_in(limit, server.shared.servers.find()).await?.application_name("townsquare feed");
        let open = async {
            let pool = PgPoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
            let mut listener = PgListener::connect_with(&pool.connect_lazy_with(options)).await?;
            listener.ignore_pool_close_event(true);
            listener.eager_reconnect(false);
            listener.execute(sqlx::raw_sql(SET_NEW)).await?;
            listener.listen(CHANNEL).await?;
            Ok(listener)
        };
        let mut connection = Connection { inner: WatchConnection::Listening(answered(open).await?), announced };
        connection.announce().await?;
        Ok(connection)
    }

    /// Calls `on_commit` after each commit, until the connection is lost.
    async fn watch(&mut self, on_commit: &OnCommit) -> Error {
        let (mut before, mut pause) = (None, FIRST_LOOK_DELAY);
        loop {
            match &mut self.inner {
                WatchConnection::Polling(_) => sleep(pause.min(LOOK_INTERVAL)).await,
                WatchConnection::Listening(listener) => match timeout(pause, listener.try_recv()).await {
                    Ok(Ok(Some(_))) => {
                        while listener.next_buffered().is_some() {}
                        on_commit();
                        pause = FIRST_LOOK_DELAY;
                        continue;
                    }
                    Ok(Ok(None)) => return Error::closed(),
                    Ok(Err(error)) => return translate(error),
                    Err(_) => {}
                },
            }
            let state = match self.look().await {
                Ok(state) => state,
                Err(error) => return error,
            };
            let ids = (state.last, state.settled);
            let has_changed = before.replace(ids) != Some(ids);
            if has_changed {
                on_commit();
            }
            pause = match () {
                () if state.settled < state.last && has_changed => FIRST_LOOK_DELAY,
                () if state.settled < state.last => (pause * 2).min(IDLE_LOOK_INTERVAL),
                () if state.has_writer => LOOK_INTERVAL,
                () => IDLE_LOOK_INTERVAL,
            };
        }
    }

    /// Looks at the log, and tells the triggers from time to time that somebody listens.
    async fn look(&mut self) -> Result<LogState> {
        if self.announced.elapsed() >= ANNOUNCE_INTERVAL {
            self.announce().await?;
        }
        answered(async {
            let row = match &mut self.inner {
                WatchConnection::Listening(listener) => sqlx::query(HEAD).persistent(false).fetch_one(listener).await?,
                WatchConnection::Polling(connection) => {
                    connection.fetch_one(sqlx::raw_sql(HEAD_IN_TRANSACTION)).await?
                }
            };
            Ok(LogState { last: row.try_get(0)?, settled: row.try_get(1)?, has_writer: row.try_get(2)? })
        })
        .await
    }

    async fn announce(&mut self) -> Result<()> {
        let WatchConnection::Listening(listener) = &mut self.inner else { return Ok(()) };
        let sql =
            "SELECT setval('townsquare.listening_until', CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT) + 30)";
        answered(sqlx::query(sql).execute(listener)).await?;
        self.announced = Instant::now();
        Ok(())
    }
}

/// The connection that `connecting` makes, unless no server answers in time.
async fn answered_in<T>(limit: Duration, connecting: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(limit, connecting).await.unwrap_or_else(|_| Err(no_server_answered(limit)))
}

/// The result of `work`, unless the server does not answer in time.
async fn answered<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T> {
    timeout(ANSWER_TIMEOUT, work).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(translate)
}
