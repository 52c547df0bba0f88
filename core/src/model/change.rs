//! What a patch does to one column: keep it, set it, or set it to NULL.

/// The change of one column by a patch.
///
/// ```
/// use townsquare::spaces::{Change, SpacePatch};
///
/// let mut patch = SpacePatch::new().name("Chess");
/// patch.description = Change::Clear;
/// assert_eq!(patch.name, Change::Set("Chess".to_owned()));
/// assert_eq!(patch.is_public, Change::Keep);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Change<T> {
    /// The column keeps its value.
    #[default]
    Keep,
    /// The column becomes NULL.
    Clear,
    /// The column becomes this value.
    Set(T),
}

impl<T> Change<T> {
    /// Whether the column keeps its value.
    pub fn is_keep(&self) -> bool {
        matches!(self, Change::Keep)
    }

    /// A reference to the new value; `None` when the column is kept or cleared.
    pub fn as_set(&self) -> Option<&T> {
        match self {
            Change::Set(value) => Some(value),
            Change::Keep | Change::Clear => None,
        }
    }

    /// The new value; `None` when the column is kept or cleared.
    pub fn into_set(self) -> Option<T> {
        self.or_kept(None)
    }

    /// The column's new value, where `kept` is the present one; `None` is NULL.
    pub(crate) fn or_kept(self, kept: Option<T>) -> Option<T> {
        match self {
            Change::Keep => kept,
            Change::Clear => None,
            Change::Set(value) => Some(value),
        }
    }
}

/// `Some` sets the column, `None` clears it.
impl<T> From<Option<T>> for Change<T> {
    fn from(value: Option<T>) -> Change<T> {
        value.map_or(Change::Clear, Change::Set)
    }
}
