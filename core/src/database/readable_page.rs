//! Pages of rows, without the rows that cannot be read.

/// Reads a page again, each time with twice as many rows, while it has rows and none of them can be read: so an empty page
/// means that no readable row follows.
pub(crate) struct ReadablePage {
    limit: usize,
    /// How many rows the statement is to return at most.
    pub(crate) wanted: i64,
    /// How many rows it returned before.
    found: usize,
}

impl ReadablePage {
    pub(crate) fn new(limit: u32) -> ReadablePage {
        ReadablePage { limit: limit as usize, wanted: limit.into(), found: 0 }
    }

    /// Returns the readable rows of `rows`, in which `None` is a row that cannot be read. `None` if the page is to be read
    /// again.
    pub(crate) fn of<T>(&mut self, rows: Vec<Option<T>>) -> Option<Vec<T>> {
        let all_were_read = rows.len() == self.found;
        self.found = rows.len();
        self.wanted = self.wanted.saturating_mul(2);
        let readable: Vec<_> = rows.into_iter().flatten().take(self.limit).collect();
        (all_were_read || !readable.is_empty()).then_some(readable)
    }
}
