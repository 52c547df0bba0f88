//! Live queries: the rows now, and every change after them.

use serde_json::{Map, Value};

use super::stream::ChangeStream;
use crate::policy::Table;

/// The rows of a table, and the changes after them: the result of [`Realtime::live`](super::Realtime::live).
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// use townsquare::realtime::LiveRequest;
///
/// let mut spaces = client.realtime().live(LiveRequest::table("spaces").filter("is_public=is.true")).await?;
/// println!("{} spaces", spaces.rows.len());
/// while let Some(change) = spaces.changes.next().await.transpose()? {
///     println!("{}", change.event_type);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct LiveQuery {
    /// The rows when the query began, in the form of [`RowChange::new`](super::RowChange::new) for its caller: spaces newest first,
    /// fidgets oldest first, other rows in the order of their keys.
    pub rows: Vec<Map<String, Value>>,
    /// Every change after them. It keeps the caller that the query began with, and ends with `Unauthorized` when that
    /// caller's session ends.
    pub changes: ChangeStream,
}

/// The rows of a table in the order of lists (DESIGN 4).
pub(super) fn in_order(table: Table, mut rows: Vec<Map<String, Value>>) -> Vec<Map<String, Value>> {
    let text = |row: &Map<String, Value>, column: &str| row.get(column).and_then(Value::as_str).map(str::to_owned);
    rows.sort_by_cached_key(|row| table.key().iter().map(|column| text(row, column)).collect::<Vec<_>>());
    match table {
        Table::Spaces => rows.sort_by_cached_key(|row| std::cmp::Reverse(text(row, "created_at"))),
        Table::Fidgets => rows.sort_by_cached_key(|row| text(row, "created_at")),
        _ => {}
    }
    rows
}
