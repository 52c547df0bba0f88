//! Inserts of new rows: one or many, with random ids or with ids of the caller.
//!
//! Invariant: the rows of one call are inserted in one transaction, all or none. Their `created_at` increases by a
//! microsecond from row to row, so that lists keep their order. An insert with an id and the content of a row that the
//! caller may change returns that row; any other id of a row is `AlreadyExists`, whoever owns the row. So a call in which
//! every row has an id of the caller is idempotent. (The insert policy of spaces refuses the ids of pages and of deleted
//! spaces.)

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    clock,
    database::{OWNER_USAGE, OwnerUsage, Read, Scope, Statement, Transaction, Value, Work},
    error::{Error, Result},
    policy::Table,
};

/// The number of fidgets of the space `$1`, at most `$2`. On PostgreSQL, it first waits for the transactions that have counted for
/// the same space, as `OWNER_USAGE` does for a user.
static COUNT_FIDGETS: Statement = Statement::new("SELECT fidgets FROM {space_fidgets $1 $2}");

/// The statements that insert a row of a table.
pub(super) struct Insert {
    pub(super) table: Table,
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

/// What limits the number of rows, checked after new ones were inserted.
#[derive(Clone, Copy)]
pub(super) enum Quota {
    /// The option `max_owner_spaces`.
    SpacesOf { owner_id: Uuid, limit: u64 },
    /// The option `max_space_fidgets`.
    FidgetsIn { space_id: Uuid, limit: u64 },
}

impl Quota {
    /// Checks the number of rows, in the transaction that inserted some of them. Other transactions that insert rows under the same
    /// quota wait until this one ends.
    async fn check(self, transaction: &mut Transaction<'_>) -> Result<()> {
        match self {
            Quota::SpacesOf { owner_id, limit } => {
                let usage = transaction.fetch_optional(&OWNER_USAGE, &[owner_id.into()], OwnerUsage::read).await?;
                let spaces = usage.unwrap_or_default().spaces;
                if spaces > limit {
                    return Err(Error::quota_exceeded(409, spaces, "spaces", "max_owner_spaces", limit));
                }
            }
            Quota::FidgetsIn { space_id, limit } => {
                // The service may have put many more into the space: the count ends at the first one that is too many.
                let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
                let values = [space_id.into(), most.into()];
                let count = transaction.fetch_optional(&COUNT_FIDGETS, &values, |row| row.get::<i64>(0)).await?;
                if count.unwrap_or_default().unsigned_abs() > limit {
                    let reason = format!(
                        "the space would have more than {limit} fidgets; the limit is the option max_space_fidgets"
                    );
                    return Err(Error::over_quota(409, reason));
                }
            }
        }
        Ok(())
    }
}

/// Inserts a row and returns it.
pub(super) async fn insert_one<T: Clone + Send + 'static>(
    scope: &Scope,
    insert: &'static Insert,
    row: NewRow<T>,
    quota: Option<Quota>,
    read: Read<T>,
) -> Result<T> {
    if row.given.is_none() && quota.is_none() {
        return scope.execute(&insert.insert, row.values, read).await?.ok_or_else(|| insert.table.insert_refused());
    }
    let work = write(scope, row.given.is_some(), move |transaction| {
        Box::pin(async move {
            let (row, is_new) = insert_row(transaction, insert, row, read).await?;
            if let Some(quota) = quota.filter(|_| is_new) {
                quota.check(transaction).await?;
            }
            Ok(row)
        })
    });
    work.await
}

/// Inserts rows and returns them in the same order. An error names the index of its row.
pub(super) async fn insert_all<T: Clone + Send + 'static>(
    scope: &Scope,
    insert: &'static Insert,
    rows: Vec<NewRow<T>>,
    quota: Option<Quota>,
    read: Read<T>,
) -> Result<Vec<T>> {
    let work = write(scope, rows.iter().all(|row| row.given.is_some()), move |transaction| {
        Box::pin(async move {
            let (mut inserted, mut has_new) = (Vec::with_capacity(rows.len()), false);
            for (index, row) in rows.into_iter().enumerate() {
                let row = insert_row(transaction, insert, row, read).await;
                let (row, is_new) = row.map_err(|error| error.at_row(index))?;
                inserted.push(row);
                has_new |= is_new;
            }
            if let Some(quota) = quota.filter(|_| has_new) {
                quota.check(transaction).await?;
            }
            Ok(inserted)
        })
    });
    work.await
}

/// Runs `work` in a transaction. It is idempotent if each row has an id of the caller.
async fn write<T: Send + 'static>(
    scope: &Scope,
    is_idempotent: bool,
    work: impl for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Clone + Send + 'static,
) -> Result<T> {
    if is_idempotent { scope.write_idempotent(work).await } else { scope.write(work).await }
}

/// Inserts a row. Returns it, or the row that is there already, and whether it is new.
async fn insert_row<T>(
    transaction: &mut Transaction<'_>,
    insert: &'static Insert,
    row: NewRow<T>,
    read: Read<T>,
) -> Result<(T, bool)> {
    if let Some(GivenId { id, is_same }) = row.given {
        if let Some(inserted) = transaction.fetch_optional(&insert.insert_if_new, &row.values, read).await? {
            return Ok((inserted, true));
        }
        if let Some(existing) = transaction.fetch_optional(&insert.get_own, &[id.into()], read).await?
            && is_same(&existing)
        {
            return Ok((existing, false));
        }
        // The id is taken, or the policy refuses the row: this insert fails with the error of its reason.
    }
    let inserted = transaction.fetch_optional(&insert.insert, &row.values, read).await?;
    Ok((inserted.ok_or_else(|| insert.table.insert_refused())?, true))
}

/// The `created_at` of each row of one call that is made at `now`.
pub(super) fn increasing_times(now: Timestamp) -> impl Iterator<Item = Timestamp> {
    (0..).map(move |index| clock::later(now, Duration::from_micros(index)))
}
