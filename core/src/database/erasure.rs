//! Erasing a deleted user from the change log (DESIGN 5). Of the user's row, and of the rows that were deleted with it, the log keeps
//! the keys and the columns that decide who gets the `DELETE`.
//!
//! Invariant: no transaction reads the whole log, which can have a gigabyte: other writers of SQLite wait for a transaction. The
//! steps find the entries of the user and erase those of rows that are gone. The transaction that deletes the user erases the
//! entries of the rows that are gone by it: those that the steps found, and those after the last entry that the steps read.

use uuid::Uuid;

use super::{Engine, Row, Scope, Transaction, change_log::Erasure};
use crate::error::Result;

/// The most entries that a step erases. Each may have a megabyte by default.
const STEP: usize = 32;

/// The most entries that a step looks for.
const PAGE: i64 = 1000;

/// What the change log holds of a user whose row exists.
#[derive(Clone)]
pub(crate) struct UserEntries {
    /// The entries up to `read_to` whose rows exist.
    ids: Vec<i64>,
    /// Every entry up to this id was read.
    read_to: i64,
}

impl UserEntries {
    /// Whether one transaction can erase the entries.
    pub(crate) fn is_small(&self) -> bool {
        self.ids.len() <= 4 * STEP
    }
}

impl Scope {
    /// Erases in steps what the change log holds of rows that a user owned and that are gone. Returns the other entries of the user.
    pub(crate) async fn erase_in_steps(&self, user_id: Uuid) -> Result<UserEntries> {
        let erasure = self.erasure();
        let id = |row: &Row<'_>| row.get::<i64>(0);
        let read_to = self.scan(&erasure.head, Vec::new(), id).await?.last().copied().unwrap_or_default();
        let began = self.scan(&erasure.began, vec![user_id.into()], id).await?.last().copied().unwrap_or_default();
        let mut entries = UserEntries { ids: Vec::new(), read_to };
        let mut next = began;
        loop {
            let from = vec![user_id.into(), next.into(), read_to.into(), PAGE.into()];
            let page = self.scan(&erasure.find, from, |row| Ok((row.get::<i64>(0)?, row.get::<bool>(1)?))).await?;
            let Some((last, _)) = page.last() else { return Ok(entries) };
            next = last + 1;
            let (gone, existing): (Vec<_>, Vec<_>) = page.into_iter().partition(|(_, is_gone)| *is_gone);
            entries.ids.extend(existing.iter().map(|(id, _)| *id));
            for step in gone.chunks(STEP) {
                let ids = texts(step.iter().map(|(id, _)| id));
                let erase = self.write(move |transaction| {
                    Box::pin(async move {
                        // In the order in which pruning locks: first the row with the count, then the entries.
                        transaction.execute(&erasure.recount, &[]).await?;
                        transaction.execute(&erasure.erase, &[user_id.into(), ids.into()]).await
                    })
                });
                erase.await?;
            }
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
    pub(crate) async fn erase_from_log(&mut self, user_id: Uuid, entries: &UserEntries) -> Result<()> {
        let erasure = self.erasure();
        self.execute(&erasure.recount, &[]).await?;
        self.execute(&erasure.erase, &[user_id.into(), texts(&entries.ids).into()]).await?;
        self.execute(&erasure.erase_rest, &[user_id.into(), entries.read_to.into()]).await.map(drop)
    }
}

/// Ids as the values of a list in a statement.
fn texts<'a>(ids: impl IntoIterator<Item = &'a i64>) -> Vec<String> {
    ids.into_iter().map(i64::to_string).collect()
}
