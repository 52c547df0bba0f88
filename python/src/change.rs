//! The records `Change` and `RealtimeStats` (SPEC 6).

use pyo3::{
    prelude::*,
    types::{PyDict, PyDictMethods},
};
use serde_json::Map;
use townsquare::{Json, realtime::RowChange};

use crate::{
    json::{PyJson, serialized},
    record::{PyTime, record},
    run::MethodResult,
};

record! {
    /// A change of one row, as the subscription's caller may see it.
    Change(RowChange) [] as change, hash &change.cursor => {
        /// The schema: `public`.
        schema: change.schema,
        /// The table: one of SPEC 2's six, or `files`.
        table: change.table,
        /// `INSERT`, `UPDATE` or `DELETE`.
        event_type: change.event_type.as_str(),
        /// The row after the change; None for a row that is gone.
        new: change.new.as_deref().map(PyRow),
        /// The row before the change; None for a new row. Of a row that left the view it has the key only.
        old: change.old.as_deref().map(PyRow),
        /// When the change was made, UTC.
        commit_timestamp: PyTime(change.commit_timestamp),
        /// The position after this change.
        cursor: &*change.cursor,
    }
    also {
        /// The change as JSON has it, by SPEC 6's names.
        pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
            serialized(py, &self.0)
        }
    }
}

record! {
    /// The figures of the change feed.
    RealtimeStats(townsquare::realtime::RealtimeStats) [] as stats, hash (stats.subscriptions, stats.retained) => {
        /// The subscriptions, streams and live queries of this client.
        subscriptions: stats.subscriptions,
        /// The changes that the feed keeps.
        retained: stats.retained,
        /// The time of the oldest of these changes, UTC.
        oldest: stats.oldest.map(PyTime),
        /// How far the feed is behind the last commit, in seconds.
        lag_seconds: stats.lag_seconds,
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
