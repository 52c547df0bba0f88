//! The changes of rows that the change feed delivers, and the feed's figures (SPEC 6, DESIGN 5).

use std::{fmt, str::FromStr, sync::Arc};

use jiff::Timestamp;
use serde::{Serialize, Serializer, ser::SerializeStruct as _};
use serde_json::{Map, Value};

use super::time_text;
use crate::error::Error;

crate::model::named! {
    /// What happened to a row, as a subscription sees it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum EventType {
        /// The row came into the subscription's view: it was created, or changed so that it fits now.
        Insert = "INSERT",
        /// The row changed and was in the view before and after.
        Update = "UPDATE",
        /// The row left the view: it was deleted, or changed so that it no longer fits.
        Delete = "DELETE",
    }

    /// Every event type.
    pub const ALL;

    /// The name in JSON: `INSERT`, `UPDATE`, `DELETE`.
    ///
    /// ```
    /// assert_eq!(townsquare::realtime::EventType::Insert.as_str(), "INSERT");
    /// ```
    pub fn as_str;
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventType {
    type Err = Error;

    /// Reads a name in any case.
    ///
    /// # Errors
    /// `InvalidInput` for any other text.
    fn from_str(text: &str) -> Result<EventType, Error> {
        let known = EventType::ALL.into_iter().find(|event| event.as_str().eq_ignore_ascii_case(text));
        known.ok_or_else(|| {
            let shortened: String = text.chars().take(60).collect();
            Error::invalid_input(format!("The event {shortened:?} is none of INSERT, UPDATE, DELETE and *"))
        })
    }
}

impl Serialize for EventType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A change of one row, as the subscription's caller may see it.
///
/// `new` and `old` map the table's columns to JSON values: uuids and times as text (times in RFC 3339, UTC, with six
/// decimal places), booleans and numbers as such, JSON columns as the JSON that they hold. Clones share
/// the values.
///
/// It serialises to an object with the keys `schema`, `table`, `eventType`, `new`, `old`, `commit_timestamp` and `cursor`.
///
/// ```
/// use townsquare::realtime::{EventType, RowChange};
///
/// fn show(change: &RowChange) {
///     match (change.event_type, &change.new) {
///         (EventType::Delete, _) => println!("gone: {:?}", change.old),
///         (_, Some(row)) => println!("{}: {}", change.table, row["name"]),
///         _ => {}
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RowChange {
    /// The schema: `public`.
    pub schema: &'static str,
    /// The table: `spaces`, or another that [`ChangeRequest::table`](crate::realtime::ChangeRequest::table) takes.
    pub table: &'static str,
    /// What happened.
    pub event_type: EventType,
    /// The row after the change; `None` for a row that left the view.
    pub new: Option<Arc<Map<String, Value>>>,
    /// The row before the change; `None` for a row that came into the view. After a `DELETE` it is the whole row if the row
    /// was deleted. It has the key only if the row still exists outside the view, if it was a row of a deleted user, and,
    /// for callers other than the service, if it was gone already when a subscription `since` a cursor read the change.
    pub old: Option<Arc<Map<String, Value>>>,
    /// When the change was made.
    pub commit_timestamp: Timestamp,
    /// The position after this change: a subscription `since` it continues with the next change.
    pub cursor: Arc<str>,
}

impl Serialize for RowChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("RowChange", 7)?;
        fields.serialize_field("schema", self.schema)?;
        fields.serialize_field("table", self.table)?;
        fields.serialize_field("eventType", &self.event_type)?;
        fields.serialize_field("new", &self.new.as_deref())?;
        fields.serialize_field("old", &self.old.as_deref())?;
        fields.serialize_field("commit_timestamp", &format_args!("{:.6}", self.commit_timestamp))?;
        fields.serialize_field("cursor", &*self.cursor)?;
        fields.end()
    }
}

/// The figures of the change feed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RealtimeStats {
    /// The subscriptions, streams and live queries of this client.
    pub subscriptions: u64,
    /// The changes that the feed keeps for subscriptions `since` a cursor.
    pub retained: u64,
    /// The time of the oldest of these changes.
    #[serde(serialize_with = "time_text::optional")]
    pub oldest: Option<Timestamp>,
    /// How far the feed is behind the last commit, in seconds; on PostgreSQL also because a transaction stays open.
    pub lag_seconds: f64,
}
