//! Tells of commits on a PostgreSQL server: a connection outside of the pool that listens for the notifications of the
//! triggers.
//!
//! Invariant: a notification only says when to read the log, so a lost one delays the feed and loses nothing. The watch looks
//! at the log by itself, often while a transaction that has written entries runs, and rarely otherwise: a transaction that
//! was rolled back may have notified in place of others. A connection that is lost is replaced, and what was committed
//! in between is told of.

use std::time::{Duration, Instant};

use sqlx::{
    Row as _,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::errors::translate;
use crate::{
    database::change_log::{CommitWatch, OnCommit},
    error::{Error, Result},
};

/// The channel of the triggers' notifications.
const CHANNEL: &str = "townsquare_changes";

/// How often the watch looks at the log while nothing is written.
const IDLE: Duration = Duration::from_millis(100);

/// How soon after a notification the watch looks at the log. It doubles, up to [`IDLE`], while the same transaction runs.
const BUSY: Duration = Duration::from_millis(2);

/// How often the watch tells the triggers that somebody listens. Triggers notify for three times as long.
const ANNOUNCE: Duration = Duration::from_secs(10);

/// How long the watch waits for the server before it opens another connection.
const ANSWER: Duration = Duration::from_secs(10);

/// The first and the longest pause between two attempts to connect.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// Ends the task of a watch.
struct Guard(JoinHandle<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the log looks like: the last id, and the last settled one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogState {
    last: i64,
    settled: i64,
}

/// Starts a watch on `runtime`. When this returns, it listens.
pub(super) async fn start(connect: &PgConnectOptions, runtime: &Handle, on_commit: OnCommit) -> Result<CommitWatch> {
    let (listens, is_listening) = oneshot::channel();
    // The name tells the operator which connection listens.
    let connect = connect.clone().application_name("townsquare feed");
    let guard = Guard(runtime.spawn(watch(connect, on_commit, listens)));
    is_listening.await.map_err(|_| Error::closed())??;
    Ok(CommitWatch::new(guard))
}

async fn watch(connect: PgConnectOptions, on_commit: OnCommit, listens: oneshot::Sender<Result<()>>) {
    let mut connection = match Connection::open(&connect).await {
        Ok(connection) => connection,
        // If nobody waits for the answer, nobody holds the watch.
        Err(error) => return drop(listens.send(Err(error))),
    };
    drop(listens.send(Ok(())));
    loop {
        let error = connection.watch(&on_commit).await;
        drop(connection);
        tracing::warn!(%error, "the connection that listens for changes was lost");
        connection = reconnect(&connect).await;
        on_commit();
    }
}

async fn reconnect(connect: &PgConnectOptions) -> Connection {
    let (mut pause, longest) = RETRY;
    loop {
        match Connection::open(connect).await {
            Ok(connection) => return connection,
            Err(error) => tracing::debug!(%error, "the server cannot be reached"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// A connection that listens.
struct Connection {
    listener: PgListener,
    announced: Instant,
}

impl Connection {
    async fn open(connect: &PgConnectOptions) -> Result<Connection> {
        let open = async {
            let pool = PgPoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
            let mut listener = PgListener::connect_with(&pool.connect_lazy_with(connect.clone())).await?;
            listener.ignore_pool_close_event(true);
            listener.eager_reconnect(false);
            listener.listen(CHANNEL).await?;
            Ok(Connection { listener, announced: Instant::now() })
        };
        let mut connection = answered(open).await?;
        connection.announce().await?;
        Ok(connection)
    }

    /// Calls `on_commit` after each commit, until the connection is lost.
    async fn watch(&mut self, on_commit: &OnCommit) -> Error {
        let (mut before, mut pause) = (None, BUSY);
        loop {
            match timeout(pause, self.listener.try_recv()).await {
                Ok(Ok(Some(_))) => {
                    while self.listener.next_buffered().is_some() {}
                    on_commit();
                    pause = BUSY;
                    continue;
                }
                Ok(Ok(None)) => return Error::closed(),
                Ok(Err(error)) => return translate(error),
                Err(_) => {}
            }
            let state = match self.look().await {
                Ok(state) => state,
                Err(error) => return error,
            };
            let has_changed = before.replace(state) != Some(state);
            if has_changed {
                on_commit();
            }
            pause = match () {
                () if state.settled == state.last => IDLE,
                () if has_changed => BUSY,
                () => (pause * 2).min(IDLE),
            };
        }
    }

    /// Looks at the log, and tells the triggers from time to time that somebody listens.
    async fn look(&mut self) -> Result<LogState> {
        if self.announced.elapsed() >= ANNOUNCE {
            self.announce().await?;
        }
        let look = sqlx::query("SELECT last, settled FROM townsquare.feed_head()").fetch_one(&mut self.listener);
        answered(async move {
            let row = look.await?;
            Ok(LogState { last: row.try_get(0)?, settled: row.try_get(1)? })
        })
        .await
    }

    async fn announce(&mut self) -> Result<()> {
        let sql =
            "SELECT setval('townsquare.listening_until', CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT) + 30)";
        answered(sqlx::query(sql).execute(&mut self.listener)).await?;
        self.announced = Instant::now();
        Ok(())
    }
}

/// The result of `work`, unless the server does not answer in time.
async fn answered<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T> {
    timeout(ANSWER, work).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(translate)
}
