//! Fidgets as records (SPEC 2.7).
//!
//! Invariant: a fidget shares its row; a space that lists its fidgets copies no configuration.

use std::sync::Arc;

use pyo3::{prelude::*, types::PyDict};

use crate::{
    json::Shown,
    record::{attributes, record},
};

record! {
    /// A widget placed in a space.
    Fidget(Arc<townsquare::Fidget>) as fidget, hashed by fidget.id, shown by [id, space_id, r#type] {
        /// Primary key.
        id: fidget.id,
        /// The space it is in.
        space_id: fidget.space_id,
        /// What kind of widget it is.
        r#type: &fidget.kind,
        /// Its settings: the JSON as Python values, new at every look.
        config: fidget.config.as_ref().map(Shown),
        /// Where it is: the JSON as Python values, new at every look.
        position: fidget.position.as_ref().map(Shown),
        /// When it was made, UTC.
        created_at: fidget.created_at,
        /// When it last changed, UTC.
        updated_at: fidget.updated_at,
    }
    also {
        /// The attributes by name.
        pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            attributes!(self, py, [id, space_id, r#type, config, position, created_at, updated_at])
        }
    }
}

impl From<townsquare::Fidget> for Fidget {
    fn from(fidget: townsquare::Fidget) -> Fidget {
        Fidget(Arc::new(fidget))
    }
}

/// Fidgets as a list of records.
pub(crate) fn list(fidgets: Vec<townsquare::Fidget>) -> Vec<Fidget> {
    fidgets.into_iter().map(Fidget::from).collect()
}
