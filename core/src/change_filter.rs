//! Filters of subscriptions: conditions `column=op.value` on the rows of a table, joined by `&` (SPEC 6, DESIGN 5).

use crate::{
    error::{Error, Result},
    policy::{RowImage, Table},
};

/// The conditions that a row must fulfil to be in the view of a subscription.
#[derive(Debug, Clone)]
pub(crate) struct ChangeFilter;

impl ChangeFilter {
    /// Reads a filter on `table`. An empty text is a filter that every row fulfils.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown column or operator, and for a value that the column cannot have.
    pub(crate) fn parse(_table: Table, text: &str) -> Result<ChangeFilter> {
        if text.is_empty() { Ok(ChangeFilter) } else { Err(Error::invalid_input("Filters do not exist yet")) }
    }

    /// Whether the row fulfils every condition.
    pub(crate) fn matches(&self, _row: &RowImage) -> bool {
        true
    }

    /// A condition `column=eq.value` that every matching row fulfils, if there is one on a column of uuids, texts, integers
    /// or booleans. The value is written as the row image has it: a text as itself, anything else as JSON.
    pub(crate) fn equality(&self) -> Option<(&'static str, &str)> {
        None
    }
}
