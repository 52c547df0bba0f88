//! Runs statements on a PostgreSQL connection.

use std::future::poll_fn;

use sqlx::{
    AssertSqlSafe, Executor as _, FromRow, PgConnection, Row as _,
    postgres::{PgArguments, PgRow},
};
use uuid::Uuid;

use super::{connection::principal::Lifetime, dialect::Postgresql, errors::translate, types};
use crate::{
    database::{
        row::{Columns, Read, Rows, too_large},
        statement::{Bound, RESULT_MEMORY, Statement},
        value::Value,
    },
    error::{Error, Result},
    policy::Caller,
};

/// Begins a transaction. It states its isolation level, because the server, the database or the role may set another
/// default: then a transaction would see an older snapshot, or fail because of others. The level is in lower case, so that a
/// search for COMMIT in a log finds commits.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL read committed";

/// Runs SQL of the library's own bookkeeping and returns its rows as tuples. The SQL has no text from outside. The statement has
/// no name, which would stay on a server process that a pooler shares between clients.
pub(super) async fn tuples<T>(
    connection: &mut PgConnection,
    sql: impl Into<String>,
    texts: &[&[String]],
) -> Result<Vec<T>>
where
    T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
{
    let query = sqlx::query_as::<sqlx::Postgres, T>(AssertSqlSafe(sql.into())).persistent(false);
    let query = texts.iter().fold(query, |query, list| query.bind(list.to_vec()));
    query.fetch_all(connection).await.map_err(translate)
}

/// Does what [`tuples`] does, for SQL that returns one row with one value.
pub(super) async fn value<T>(connection: &mut PgConnection, sql: &str) -> Result<T>
where
    (T,): for<'r> FromRow<'r, PgRow>,
    T: Send + Unpin,
{
    let rows: Vec<(T,)> = tuples(connection, sql, &[]).await?;
    rows.into_iter().next().map(|(value,)| value).ok_or_else(Error::not_found)
}

/// Runs a statement for `caller` and returns its rows.
pub(in crate::database) async fn fetch(
    connection: &mut PgConnection,
    lifetime: Lifetime,
    caller: Caller,
    statement: &'static Statement,
    values: &[Value<'_>],
) -> Result<Vec<PgRow>> {
    let (sql, arguments) = render(caller, statement, values)?;
    let query = sqlx::query_with(sql, arguments).persistent(lifetime == Lifetime::Session);
    if statement.bound == Bound::None {
        return query.fetch_all(connection).await.map_err(translate);
    }
    // `read_rows` counts the memory of the values. Their bytes alone can be too many.
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut found = query.fetch(connection);
    while let Some(row) = poll_fn(|context| found.as_mut().poll_next(context)).await {
        let row = row.map_err(translate)?;
        let lengths =
            (0..row.len()).filter_map(|column| row.try_get_raw(column).ok()?.as_bytes().ok().map(<[u8]>::len));
        bytes += lengths.sum::<usize>();
        rows.push(row);
        if bytes > RESULT_MEMORY {
            match statement.bound {
                Bound::Whole => return Err(too_large()),
                Bound::None | Bound::Page => {
                    if rows.len() > 1 {
                        rows.pop();
                    }
                    break;
                }
            }
        }
    }
    Ok(rows)
}

/// Reads a record from each row.
pub(in crate::database) fn read_rows<T>(
    rows: &[PgRow],
    statement: &'static Statement,
    read: Read<T>,
) -> Result<Vec<T>> {
    let mut all = Rows::new(statement.bound);
    for row in rows {
        if !all.add(Columns::Postgres(row), read)? {
            break;
        }
    }
    Ok(all.into_rows())
}

/// Runs a statement for `caller` and returns the number of rows that it changed.
pub(in crate::database) async fn execute(
    connection: &mut PgConnection,
    lifetime: Lifetime,
    caller: Caller,
    statement: &'static Statement,
    values: &[Value<'_>],
) -> Result<u64> {
    let (sql, arguments) = render(caller, statement, values)?;
    let query = sqlx::query_with(sql, arguments).persistent(lifetime == Lifetime::Session);
    let done = query.execute(connection).await.map_err(translate)?;
    Ok(done.rows_affected())
}

/// Locks a path until the transaction ends; see [`Transaction::lock_path`](crate::database::Transaction::lock_path).
pub(in crate::database) async fn lock_path(
    connection: &mut PgConnection,
    lifetime: Lifetime,
    bucket: &str,
    folders: &[String],
    path: &str,
    space_id: Option<Uuid>,
) -> Result<()> {
    // Outermost first, so that two writers of files do not wait for each other. A writer and a deletion of its user, or of
    // several spaces, may; then PostgreSQL ends one transaction, which runs again.
    let sql = "SELECT count(pg_advisory_xact_lock_shared(townsquare.space_lock($4))) WHERE $4 IS NOT NULL
         UNION ALL SELECT count(pg_advisory_xact_lock_shared(townsquare.path_lock($1, folder)))
         FROM unnest($2::text[]) AS folder
         UNION ALL SELECT count(pg_advisory_xact_lock(townsquare.path_lock($1, $3)))";
    let query = sqlx::query(sql).bind(bucket).bind(folders).bind(path).bind(space_id);
    query.persistent(lifetime == Lifetime::Session).fetch_all(connection).await.map(drop).map_err(translate)
}

/// Locks the rights of a user in shared mode. `space_lock` makes the number of a lock of any id.
pub(in crate::database) async fn lock_rights(
    connection: &mut PgConnection,
    lifetime: Lifetime,
    user_id: Uuid,
) -> Result<()> {
    let query = sqlx::query("SELECT count(pg_advisory_xact_lock_shared(townsquare.space_lock($1)))").bind(user_id);
    query.persistent(lifetime == Lifetime::Session).fetch_all(connection).await.map(drop).map_err(translate)
}

/// Runs SQL without parameters, in one round trip. `sql` may hold several statements, and nothing from outside.
pub(super) async fn execute_batch(connection: &mut PgConnection, sql: &str) -> Result<()> {
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.map(drop).map_err(translate)
}

/// The SQL of a statement for `caller`, and its arguments.
fn render(caller: Caller, statement: &'static Statement, values: &[Value<'_>]) -> Result<(&'static str, PgArguments)> {
    let runnable = statement.for_postgres::<Postgresql>(caller);
    let mut arguments = PgArguments::default();
    for value in values {
        types::bind(&mut arguments, value)?;
    }
    if runnable.binds_caller {
        types::bind(&mut arguments, &caller.id().into())?;
    }
    Ok((runnable.sql, arguments))
}
