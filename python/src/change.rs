//! The records `Change` and `RealtimeStats` (SPEC 6).

use pyo3::{
    prelude::*,
    types::{PyDict, PyDictMethods},
};
use serde_json::Map;
use townsquare::{Json, realtime::RowChange};

use crate::{
    json::{PyJson, serialized},
    record::{PyTime, RecordValue, endpoint_dict, record},
    run::MethodResult,
};

record! {
    #[doc = text_of!(Change)]
    Change(RowChange) [] as change, hash [cursor] => {
        /// The schema: `public`.
        schema: "str" = change.schema,
        /// The table: `spaces`, or another that `subscribe` takes.
        table: "str" = change.table,
        /// `INSERT`, `UPDATE` or `DELETE`.
        event_type: "Literal['INSERT', 'UPDATE', 'DELETE']" = change.event_type.as_str(),
        /// The row after the change; None for a row that is gone.
        new: "Optional[dict[str, Any]]" = change.new.as_deref().map(PyRow),
        /// The row before the change; None for a row that came into the view. After a DELETE it is the whole row if the row
        /// was deleted. It has the key only if the row still exists outside the view, if it was a row of a deleted user,
        /// and, for callers other than the service, if it was gone already when a subscription `since` a cursor read the
        /// change.
        old: "Optional[dict[str, Any]]" = change.old.as_deref().map(PyRow),
        /// When the change was made, UTC.
        commit_timestamp: "datetime" = PyTime(change.commit_timestamp),
        /// The position after this change.
        cursor: "str" = &*change.cursor,
    }
    also {
        #[doc = text_of!(Change.to_dict)]
        fn to_dict<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
            match &this.get().0 {
                RecordValue::Core(change) => serialized(this.py(), change),
                RecordValue::Attributes(_) => endpoint_dict(this),
            }
        }
    }
}

record! {
    #[doc = text_of!(RealtimeStats)]
    RealtimeStats(townsquare::realtime::RealtimeStats) [] as stats, hash [subscriptions, retained] => {
        /// The subscriptions, streams and live queries of this client.
        subscriptions: "int" = stats.subscriptions,
        /// The changes that the feed keeps.
        retained: "int" = stats.retained,
        /// The time of the oldest of these changes, UTC.
        oldest: "Optional[datetime]" = stats.oldest.map(PyTime),
        /// How far the feed is behind the last commit, in seconds.
        lag_seconds: "float" = stats.lag_seconds,
    }
}

/// A row as a dict.
pub(crate) struct PyRow<'a>(pub(crate) &'a Map<String, Json>);

impl<'py> IntoPyObject<'py> for PyRow<'_> {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        for (column, value) in self.0 {
            row.set_item(column, PyJson(value))?;
        }
        Ok(row)
    }
}
