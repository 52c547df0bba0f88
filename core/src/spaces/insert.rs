//! Inserts of new rows: one or many, with random ids or with ids of the caller.
//!
//! Invariant: the rows of one call are inserted in one transaction, all or none. Their `created_at` increases by a
//! microsecond from row to row, so that lists keep their order. An insert with an id and the content of a row that the
//! caller may change returns that row; any other taken id is `AlreadyExists`, whoever owns the row. So a call in which
//! every row has an id of the caller is idempotent.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    clock,
    database::{Read, Scope, Statement, Transaction, Value},
    error::Result,
    policy::Table,
};

/// The statements that insert a row of a table.
pub(super) struct Insert {
    /// Fails if the id is taken.
    pub(super) insert: Statement,
    /// Does nothing if the id is taken.
    pub(super) insert_if_new: Statement,
    /// The row with this id, if the caller may change it.
    pub(super) get_own: Statement,
}

/// A row to insert.
#[derive(Clone)]
pub(super) struct NewRow<T> {
    /// The values of [`Insert::insert`].
    pub(super) values: Vec<Value<'static>>,
    /// Set if the caller gave the id.
    pub(super) given: Option<GivenId<T>>,
}

/// The id that the caller gave, and whether an existing row has the content of the new one.
#[derive(Clone)]
pub(super) struct GivenId<T> {
    pub(super) id: Uuid,
    pub(super) is_same: Arc<dyn Fn(&T) -> bool + Send + Sync>,
}

/// Inserts a row and returns it.
pub(super) async fn insert_one<T: Clone + Send + 'static>(
    scope: &Scope,
    insert: &'static Insert,
    table: Table,
    row: NewRow<T>,
    read: Read<T>,
) -> Result<T> {
    if row.given.is_none() {
        return scope.execute(&insert.insert, row.values, read).await?.ok_or_else(|| table.insert_refused());
    }
    scope.write_idempotent(move |transaction| Box::pin(insert_row(transaction, insert, table, row, read))).await
}

/// Inserts rows and returns them in the same order. An error names the index of its row.
pub(super) async fn insert_all<T: Clone + Send + 'static>(
    scope: &Scope,
    insert: &'static Insert,
    table: Table,
    rows: Vec<NewRow<T>>,
    read: Read<T>,
) -> Result<Vec<T>> {
    if rows.iter().all(|row| row.given.is_some()) {
        let work =
            scope.write_idempotent(move |transaction| Box::pin(insert_rows(transaction, insert, table, rows, read)));
        return work.await;
    }
    scope.write(move |transaction| Box::pin(insert_rows(transaction, insert, table, rows, read))).await
}

async fn insert_rows<T>(
    transaction: &mut Transaction<'_>,
    insert: &'static Insert,
    table: Table,
    rows: Vec<NewRow<T>>,
    read: Read<T>,
) -> Result<Vec<T>> {
    let mut inserted = Vec::with_capacity(rows.len());
    for (index, row) in rows.into_iter().enumerate() {
        let row = insert_row(transaction, insert, table, row, read).await;
        inserted.push(row.map_err(|error| error.at_row(index))?);
    }
    Ok(inserted)
}

async fn insert_row<T>(
    transaction: &mut Transaction<'_>,
    insert: &'static Insert,
    table: Table,
    row: NewRow<T>,
    read: Read<T>,
) -> Result<T> {
    if let Some(GivenId { id, is_same }) = row.given {
        if let Some(inserted) = transaction.fetch_optional(&insert.insert_if_new, &row.values, read).await? {
            return Ok(inserted);
        }
        if let Some(existing) = transaction.fetch_optional(&insert.get_own, &[id.into()], read).await?
            && is_same(&existing)
        {
            return Ok(existing);
        }
        // The id is taken, or the policy refuses the row: this insert fails with the error of its reason.
    }
    transaction.fetch_optional(&insert.insert, &row.values, read).await?.ok_or_else(|| table.insert_refused())
}

/// The `created_at` of each row of one call that is made at `now`.
pub(super) fn increasing_times(now: Timestamp) -> impl Iterator<Item = Timestamp> {
    (0..).map(move |index| clock::later(now, Duration::from_micros(index)))
}
