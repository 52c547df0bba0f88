//! A page of a long list: the rows of one table in an order, each with a row of another table.
//!
//! Invariant: the rows and their order are the same on both engines. Only the form of the SQL differs.

#[cfg(feature = "postgres")]
use crate::validate::MAX_LIMIT;

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

/// Where a page begins in its list.
#[derive(Clone, Copy)]
pub(crate) enum PageStart {
    /// At the first row.
    First,
    /// After as many rows as the parameter says.
    Offset(&'static str),
}

impl Page {
    /// A page in one SELECT, for an engine to which joined rows before the page are cheap.
    pub(super) fn in_one_select(&self) -> String {
        let Page { table, condition, order, join, columns, limit, .. } = self;
        let offset = match self.start {
            PageStart::First => String::new(),
            PageStart::Offset(offset) => format!(" OFFSET {offset}"),
        };
        format!("SELECT {columns} FROM {table} {join} WHERE {condition} ORDER BY {order} LIMIT {limit}{offset}")
    }

    /// A page that is chosen before the join, in a form that PostgreSQL plans once and not at each call.
    ///
    /// The policy of a joined table may cost more than the row, so the rows before the page are not joined.
    ///
    /// To the planner a bound LIMIT or OFFSET is a constant in the plan of one call, and a tenth of the list in the plan of
    /// all calls. So the plan of all calls looks expensive and PostgreSQL plans each call. In a subquery the parameter is
    /// unknown to both plans, which then cost the same, and PostgreSQL keeps one.
    ///
    /// The innermost LIMIT is such a subquery, so the planner expects a tenth of the list, however many rows it expects of
    /// the conditions. A tenth of an index in the order of the list is cheaper than all rows of the list and a sort. The
    /// constant limit keeps the number of rows small that the planner expects to join: it looks them up. Each level repeats
    /// the order, so that no level sorts.
    #[cfg(feature = "postgres")]
    pub(super) fn before_the_join(&self) -> String {
        let Page { table, condition, order, join, columns, limit, .. } = self;
        let limit = format!("CAST({limit} AS BIGINT)");
        let (end, offset) = match self.start {
            PageStart::First => (limit.clone(), String::new()),
            PageStart::Offset(offset) => {
                let offset = format!("CAST({offset} AS BIGINT)");
                // The sum of the two must not overflow.
                (
                    format!("LEAST({offset}, {}) + {limit}", i64::MAX - i64::from(MAX_LIMIT)),
                    format!(" OFFSET (SELECT {offset})"),
                )
            }
        };
        let ordered =
            |rows: String, limit: String| format!("SELECT * FROM ({rows}) AS {table} ORDER BY {order} LIMIT {limit}");
        let rows =
            format!("SELECT {{{table}.columns}} FROM {table} WHERE {condition} ORDER BY {order} LIMIT (SELECT {end})");
        let page = ordered(ordered(rows, format!("{MAX_LIMIT}{offset}")), format!("(SELECT {limit})"));
        format!("SELECT {columns} FROM ({page}) AS {table} {join} ORDER BY {order}")
    }
}
