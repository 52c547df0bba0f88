//! A page of a long list: the rows of one table in an order, each with a row of another table.
//!
//! Invariant: the rows and their order are the same on both engines. Only the form of the SQL differs.

#[cfg(feature = "postgres")]
use crate::validate::MAX_LIMIT;

/// A page reaches this many rows into its list at most if it is [`PageStart::Near`].
pub(crate) const NEAR_ROWS: i64 = 10_000;

/// A statement that reads a page. The texts are parts of a template.
pub(crate) struct Page {
    /// The table of the list, which has a record in `model`.
    pub(crate) table: &'static str,
    /// The condition of the list's rows.
    pub(crate) condition: &'static str,
    /// The order of the rows. No two rows are equal in it.
    pub(crate) order: &'static str,
    /// The `LEFT JOIN` that adds at most one row to each row.
    pub(crate) join: &'static str,
    /// The columns of the result.
    pub(crate) columns: &'static str,
    pub(crate) start: PageStart,
    /// The parameter with the number of rows, which is `MAX_LIMIT` at most.
    pub(crate) limit: &'static str,
}

/// Where a page begins in its list. The texts are the parameters with the number of rows before it.
#[derive(Clone, Copy)]
pub(crate) enum PageStart {
    /// At the first row.
    First,
    /// At an offset. The page ends within [`NEAR_ROWS`].
    Near(&'static str),
    /// At any offset.
    Far(&'static str),
}

impl Page {
    /// A page in one SELECT, for an engine to which joined rows before the page are cheap.
    pub(super) fn in_one_select(&self) -> String {
        let Page { table, condition, order, join, columns, limit, .. } = self;
        let offset = match self.start {
            PageStart::First => String::new(),
            PageStart::Near(offset) | PageStart::Far(offset) => format!(" OFFSET {offset}"),
        };
        format!("SELECT {columns} FROM {table} {join} WHERE {condition} ORDER BY {order} LIMIT {limit}{offset}")
    }

    /// A page that is chosen before the join, in a form that PostgreSQL plans once and not at each call.
    ///
    /// The policy of a joined table may cost more than the row, so the rows before the page are not joined.
    ///
    /// To the planner a bound LIMIT or OFFSET is a constant in the plan of one call, and a tenth of the list in the plan of
    /// all calls. So the plan of all calls looks expensive and PostgreSQL plans each call. In a subquery the parameter is
    /// unknown to both plans, which then cost the same, and PostgreSQL keeps one. The constant limits keep the tenth small:
    /// the plan follows the index of the order and looks up the joined rows. A far page is planned for its own offset.
    /// Each level repeats the order, so that no level sorts.
    #[cfg(feature = "postgres")]
    pub(super) fn before_the_join(&self) -> String {
        let Page { table, condition, order, join, columns, limit, .. } = self;
        let rows = format!("SELECT {{{table}.columns}} FROM {table} WHERE {condition} ORDER BY {order}");
        let rows = match self.start {
            PageStart::First => format!("{rows} LIMIT {MAX_LIMIT}"),
            PageStart::Near(offset) => format!(
                "SELECT * FROM ({rows} LIMIT {NEAR_ROWS}) AS {table}
                 ORDER BY {order} LIMIT {MAX_LIMIT} OFFSET (SELECT CAST({offset} AS BIGINT))"
            ),
            PageStart::Far(offset) => format!("{rows} LIMIT {MAX_LIMIT} OFFSET {offset}"),
        };
        format!(
            "SELECT {columns} FROM (
                SELECT * FROM ({rows}) AS {table} ORDER BY {order} LIMIT (SELECT CAST({limit} AS BIGINT))
             ) AS {table} {join} ORDER BY {order}"
        )
    }
}
