//! The pause at the end of a move that follows its source: a transaction beside which nobody writes the source.
//!
//! Invariant: while a [`WritePause`] lasts, no row of a table of the move changes, and every write that was acknowledged before can
//! be read. Writers wait; they fail only if their own time limits pass. A pause that is dropped, or whose process is killed, leaves
//! no mark; large uploads then wait for the end of a lease (`storage::upload_pause`). A pause that is [kept](WritePause::keep) commits
//! the mark and the triggers that refuse writes from then on, before the first waiting writer goes on.

#[cfg(feature = "postgres")]
use std::sync::LazyLock;
use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedRwLockWriteGuard, oneshot},
    task::JoinHandle,
};

#[cfg(feature = "postgres")]
use super::guard::INTENTS;
use super::{Scope, Statement, guard::Side, tables};
use crate::{
    database::Engine,
    error::{Error, ErrorKind, Result},
    threads::{self, RuntimeHandle},
};

/// How long the pause waits for the writes of its own client.
const GATE_WAIT: Duration = Duration::from_secs(2);

/// How long the pause waits for transactions of others on PostgreSQL: their successors wait behind it.
#[cfg(feature = "postgres")]
static SHORT_WAIT: Statement = Statement::new(
    "SELECT current_setting('statement_timeout'), set_config('lock_timeout', '2s', true),
        set_config('statement_timeout', '3s', true)",
);

/// Sets the time limit of a statement to what it was before.
#[cfg(feature = "postgres")]
static USUAL_WAIT: Statement = Statement::new("SELECT set_config('statement_timeout', $1, true)");

/// Waits for the transactions that have written, also those of uploads, and lets no other one write. SQLite needs no such lock: a
/// transaction that writes is alone there.
#[cfg(feature = "postgres")]
static LOCK: LazyLock<Statement> = LazyLock::new(|| {
    let names: Vec<_> = tables().iter().map(|table| table.in_template.as_str()).chain([INTENTS]).collect();
    Statement::made(format!("LOCK TABLE {} IN SHARE MODE", names.join(", ")))
});

static MARK: Statement = Statement::new(
    "INSERT INTO townsquare.moved_away (only_row, target, moved_at) VALUES (1, $1, $2)
     ON CONFLICT (only_row) DO UPDATE SET target = excluded.target, moved_at = excluded.moved_at",
);

static FIND_MARK: Statement = Statement::new("SELECT target FROM townsquare.moved_away");

static REMOVE_MARK: Statement = Statement::new("DELETE FROM townsquare.moved_away");

/// A pause of all writers.
pub(crate) struct WritePause {
    /// Takes the incarnation of the target. `None` once the time of the pause is over.
    end: Arc<Mutex<Option<oneshot::Sender<String>>>>,
    ended: JoinHandle<Result<()>>,
    timer: JoinHandle<()>,
    /// Writers of this process wait before they take a connection, which the reads of the move need.
    _gate: OwnedRwLockWriteGuard<()>,
}

impl Scope {
    /// Lets nobody write this database until the pause ends, at most for the time `longest`. On PostgreSQL it also ends when an
    /// operation takes too long.
    ///
    /// # Errors
    /// `Unavailable` if a transaction of another program takes too long; the errors of the database.
    pub(crate) async fn pause_writes(&self, runtime: &RuntimeHandle, longest: Duration) -> Result<WritePause> {
        let gate = self.close_write_gate(runtime).await?;
        let now = self.now().await?;
        let (begin, begun) = oneshot::channel();
        let (end, ends) = oneshot::channel::<String>();
        // The work runs again if the server gives the transaction up while it waits for the locks.
        let channels = Arc::new(Mutex::new(Some((begin, ends))));
        let scope = self.clone();
        let pause = async move {
            let paused = scope.write_alone(move |transaction| {
                Box::pin(async move {
                    #[cfg(feature = "postgres")]
                    if !transaction.is_sqlite() {
                        let usual = transaction.fetch(&SHORT_WAIT, &[], |row| row.get::<String>(0)).await?;
                        transaction.execute(&LOCK, &[]).await?;
                        let usual = usual.into_iter().next().unwrap_or_default();
                        transaction.fetch(&USUAL_WAIT, &[usual.into()], |_| Ok(())).await?;
                    }
                    let Some((begin, ends)) = channels.lock().take() else { return Err(lost()) };
                    // The move may have ended meanwhile: then `ends` is closed, too.
                    let _ = begin.send(());
                    let Some(target) = transaction.hold(ends).await else { return Err(Error::cancelled()) };
                    transaction.execute(&MARK, &[target.into(), now.into()]).await?;
                    Side::Source.raise(transaction).await
                })
            });
            paused.await
        };
        let ended = runtime.tokio.spawn(pause);
        match begun.await {
            Ok(()) => {
                let end = Arc::new(Mutex::new(Some(end)));
                let of_timer = Arc::clone(&end);
                let timer = runtime.tokio.spawn(async move {
                    tokio::time::sleep(longest).await;
                    // Ends the transaction.
                    drop(of_timer.lock().take());
                });
                Ok(WritePause { end, ended, timer, _gate: gate })
            }
            Err(_) => Err(ended.await.unwrap_or_else(|_| Err(threads::panicked())).err().unwrap_or_else(lost)),
        }
    }

    /// Lets no write of this client take a connection, and waits for those that have one.
    ///
    /// # Errors
    /// `Unavailable` (55P03) if one of them takes long: the others would wait for it, beyond the time of the pause.
    async fn close_write_gate(&self, runtime: &RuntimeHandle) -> Result<OwnedRwLockWriteGuard<()>> {
        let gate = Arc::clone(&self.database.write_gate);
        let closed = runtime.tokio.spawn(async move { tokio::time::timeout(GATE_WAIT, gate.write_owned()).await });
        let closed = closed.await.map_err(|_| threads::panicked())?;
        closed.map_err(|_| {
            let message = "a write of this client to the source has not ended";
            Error::database(Some("55P03"), ErrorKind::Unavailable, message)
        })
    }

    /// Whether the database can be read while its writers pause.
    pub(crate) fn can_pause_writes(&self) -> bool {
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => !sqlite.is_in_memory(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => true,
        }
    }

    /// The incarnation of the database to which this one has moved for good.
    pub(crate) async fn moved_to(&self) -> Result<Option<String>> {
        self.fetch_optional(&FIND_MARK, &[], |row| row.get(0)).await
    }

    /// Removes the mark of a move: writers may write again. Returns whether there was one.
    pub(crate) async fn reopen_for_writes(&self) -> Result<bool> {
        let removed = self
            .write_idempotent(move |transaction| Box::pin(async move { transaction.execute(&REMOVE_MARK, &[]).await }));
        let was_moved = removed.await? > 0;
        self.lower(Side::Source).await;
        Ok(was_moved)
    }

    /// Drops the triggers of a side, whose mark is gone.
    pub(super) async fn lower(&self, side: Side) {
        // At most one transaction for each table, and one for the intents.
        for number in 0..=tables().len() + 1 {
            let lower = self.write(move |transaction| Box::pin(side.lower(transaction, number)));
            match lower.await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => tracing::info!(%error, "a trigger of the move stays, which refuses nothing any more"),
            }
        }
    }
}

impl WritePause {
    /// Ends the pause, and refuses every write from now on, because the database is `target` from now on. Returns false if the time
    /// of the pause was over: then others may have written.
    ///
    /// # Errors
    /// `Unavailable` if the server has ended the pause. Those of a commit.
    pub(crate) async fn keep(mut self, target: String) -> Result<bool> {
        let Some(end) = self.end.lock().take() else { return Ok(false) };
        // If the transaction has ended, its error says why.
        let _ = end.send(target);
        (&mut self.ended).await.unwrap_or_else(|_| Err(threads::panicked()))?;
        Ok(true)
    }
}

impl Drop for WritePause {
    fn drop(&mut self) {
        self.timer.abort();
        drop(self.end.lock().take());
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Unavailable, "The server ended the pause of the writers")
}
