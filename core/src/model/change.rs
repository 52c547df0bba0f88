//! What a partial update does to one column: leave it, set it, or set it to NULL.

/// A change of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Change<T> {
    /// The column stays as it is.
    #[default]
    Keep,
    /// The column becomes NULL.
    Clear,
    /// The column becomes this.
    Set(T),
}

impl<T> Change<T> {
    /// Whether the column stays as it is.
    pub fn is_keep(&self) -> bool {
        matches!(self, Change::Keep)
    }

    /// The new value, borrowed.
    pub fn as_set(&self) -> Option<&T> {
        match self {
            Change::Set(value) => Some(value),
            Change::Keep | Change::Clear => None,
        }
    }

    /// The new value; `None` when the column is cleared or kept.
    pub fn into_set(self) -> Option<T> {
        match self {
            Change::Set(value) => Some(value),
            Change::Keep | Change::Clear => None,
        }
    }
}

/// `None` clears.
impl<T> From<Option<T>> for Change<T> {
    fn from(value: Option<T>) -> Change<T> {
        value.map_or(Change::Clear, Change::Set)
    }
}
