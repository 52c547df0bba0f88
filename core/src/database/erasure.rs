//! Erasing a deleted user from the change log (DESIGN 5). Of the user's row, and of the rows that were deleted with it, the log keeps
//! the keys and the columns that decide who gets the `DELETE`.
//!
//! Invariant: the transaction that deletes the user erases all that the log holds by then. What belongs to rows that were deleted
//! before is erased in steps before: the log can have a gigabyte of the user, and other writers of SQLite wait for a transaction.

use uuid::Uuid;

use super::{Engine, Scope, Transaction, change_log::Erasure};
use crate::error::Result;

/// The most entries that a step erases. Each may have a megabyte by default.
const STEP: i64 = 32;

impl Scope {
    /// Erases in steps what the change log holds of rows that a user owned and that are gone.
    pub(crate) async fn erase_in_steps(&self, user_id: Uuid) -> Result<()> {
        let erasure = self.erasure();
        let began = self.scan(&erasure.began, vec![user_id.into()], |row| row.get::<i64>(0)).await?;
        let mut next = began.last().copied().unwrap_or_default();
        loop {
            let from = vec![user_id.into(), next.into(), STEP.into()];
            let ids = self.scan(&erasure.next, from, |row| row.get::<i64>(0)).await?;
            let Some(last) = ids.last() else { return Ok(()) };
            next = last + 1;
            let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
            let step = self.write(move |transaction| {
                Box::pin(async move {
                    // In the order in which pruning locks: first the row with the count, then the entries.
                    transaction.execute(&erasure.recount, &[]).await?;
                    transaction.execute(&erasure.erase, &[user_id.into(), ids.into()]).await
                })
            });
            step.await?;
        }
    }

    fn erasure(&self) -> &'static Erasure {
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(_) => &super::sqlite::change_log::ERASURE,
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => &super::postgres::change_log::ERASURE,
        }
    }
}

impl Transaction<'_> {
    /// Erases what the change log still holds of a user whose row was deleted in this transaction.
    pub(crate) async fn erase_from_log(&mut self, user_id: Uuid) -> Result<()> {
        let erasure = self.erasure();
        self.execute(&erasure.recount, &[]).await?;
        let began = self.fetch_optional(&erasure.began, &[user_id.into()], |row| row.get::<i64>(0)).await?;
        self.execute(&erasure.erase_rest, &[user_id.into(), began.unwrap_or_default().into()]).await.map(drop)
    }
}
