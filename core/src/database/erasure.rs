//! Erasing a deleted user from the change log (DESIGN 5). Of the user's row, and of the rows that were deleted with it, the log keeps
//! the keys and the columns that decide who gets the `DELETE`.
//!
//! Invariant: no transaction reads the whole log, which can have a gigabyte: other writers of SQLite wait for a transaction. The
//! steps find the entries of the user and erase those of rows that are gone. The transaction that deletes the user erases the
//! entries of the rows that are gone by it: those that the steps found, and those after the last entry that the steps read. A row is
//! gone, too, if another row has its key since its deletion, which the log has.

use std::collections::HashMap;

use uuid::Uuid;

use super::{Engine, Row, Scope, Statement, Transaction, change_log::Erasure};
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

/// An entry of a user.
struct UserEntry {
    id: i64,
    /// Whether no row has its key.
    is_key_free: bool,
    /// The key of the row before the entry; `None` for an insert.
    old_key: Option<String>,
    /// The key of the row after the entry; `None` for a deletion.
    new_key: Option<String>,
}

/// The entries of a page whose rows are gone.
#[derive(Default)]
struct GoneEntries {
    /// Those whose keys no row had when the page was read.
    of_free_keys: Vec<i64>,
    /// Those whose rows were deleted, and whose keys other rows have.
    of_used_keys: Vec<i64>,
}

/// The entries read so far whose rows may exist, by the key of the row.
#[derive(Default)]
struct ExistingEntries(HashMap<String, Vec<i64>>);

impl ExistingEntries {
    /// Adds the next entries of the log, and takes out those whose rows are gone.
    fn add(&mut self, page: Vec<UserEntry>) -> GoneEntries {
        let mut gone = GoneEntries::default();
        for UserEntry { id, is_key_free, old_key, new_key } in page {
            if is_key_free {
                gone.of_free_keys.push(id);
                continue;
            }
            let mut ids = old_key.and_then(|key| self.0.remove(&key)).unwrap_or_default();
            ids.push(id);
            match new_key {
                Some(key) => self.0.entry(key).or_default().append(&mut ids),
                None => gone.of_used_keys.append(&mut ids),
            }
        }
        gone
    }

    fn into_ids(self) -> Vec<i64> {
        self.0.into_values().flatten().collect()
    }
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
        let mut existing = ExistingEntries::default();
        let mut next = began;
        loop {
            let from = vec![user_id.into(), next.into(), read_to.into(), PAGE.into()];
            let page = self.scan(&erasure.find, from, entry).await?;
            let Some(last) = page.last() else { return Ok(UserEntries { ids: existing.into_ids(), read_to }) };
            next = last.id + 1;
            let gone = existing.add(page);
            self.erase_entries(&erasure.erase, user_id, &gone.of_free_keys).await?;
            self.erase_entries(&erasure.erase_deleted, user_id, &gone.of_used_keys).await?;
        }
    }

    /// Erases entries in steps.
    async fn erase_entries(&self, erase: &'static Statement, user_id: Uuid, ids: &[i64]) -> Result<()> {
        let recount = &self.erasure().recount;
        for step in ids.chunks(STEP) {
            let ids = texts(step);
            let erase = self.write(move |transaction| {
                Box::pin(async move {
                    // In the order in which pruning locks: first the row with the count, then the entries.
                    transaction.execute(recount, &[]).await?;
                    transaction.execute(erase, &[user_id.into(), ids.into()]).await
                })
            });
            erase.await?;
        }
        Ok(())
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

/// Reads what [`Erasure::find`] returns.
fn entry(row: &Row<'_>) -> Result<UserEntry> {
    let (old_key, new_key) = (row.get_optional(2)?, row.get_optional(3)?);
    Ok(UserEntry { id: row.get(0)?, is_key_free: row.get(1)?, old_key, new_key })
}

/// Ids as the values of a list in a statement.
fn texts<'a>(ids: impl IntoIterator<Item = &'a i64>) -> Vec<String> {
    ids.into_iter().map(i64::to_string).collect()
}
