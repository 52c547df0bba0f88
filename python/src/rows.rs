//! The argument of `create_spaces` and `create_fidgets`: a list of mappings, one for each new row.
//!
//! Invariant: an error names the mapping and its key: `spaces[2].name`. An unknown key is an error.

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyMapping},
};

use crate::{
    argument::items,
    errors::{Failure, class_name, shown},
};

/// A list of mappings.
pub(crate) struct RowsArg<'py>(Vec<Bound<'py, PyAny>>);

impl<'py> RowsArg<'py> {
    /// Reads each mapping by `read`. `name` is the argument's name.
    ///
    /// # Errors
    /// `TypeError` for a value of a wrong type. The operation returns the inner error: `InvalidInput` for an unknown
    /// key, or the error of `read`.
    pub(crate) fn read<T>(
        self,
        name: &str,
        mut read: impl FnMut(&mut RowArg<'py>) -> PyResult<Result<T, Failure>>,
    ) -> PyResult<Result<Vec<T>, Failure>> {
        let mut rows = Vec::with_capacity(self.0.len());
        for (index, mapping) in self.0.iter().enumerate() {
            let Ok(entries) = mapping.cast::<PyMapping>() else {
                let class = class_name(mapping);
                return Err(PyTypeError::new_err(format!("{name}[{index}] is a mapping, not {class}")));
            };
            let mut row = RowArg { name: format!("{name}[{index}]"), values: PyDict::new(mapping.py()) };
            row.values.update(entries)?;
            match read(&mut row)?.and_then(|new| row.refuse_unknown_keys().map(|()| new)) {
                Ok(new) => rows.push(new),
                Err(failure) => return Ok(Err(failure.at_row(index))),
            }
        }
        Ok(Ok(rows))
    }
}

impl<'py> FromPyObject<'_, 'py> for RowsArg<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<RowsArg<'py>> {
        items(&value, "a list of mappings")?.collect::<PyResult<_>>().map(RowsArg)
    }
}

/// One mapping. Each value is taken out by its key.
pub(crate) struct RowArg<'py> {
    name: String,
    values: Bound<'py, PyDict>,
}

impl<'py> RowArg<'py> {
    /// The name of a value in an error message: `spaces[2].name`. An empty key gives the prefix.
    pub(crate) fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.name)
    }

    /// Takes a value out. Returns `None` for a missing key and for Python's `None`.
    pub(crate) fn take<T>(&self, key: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
    {
        Ok(self.take_given::<Option<T>>(key)?.flatten())
    }

    /// Takes a value out. Returns `None` for a missing key only.
    pub(crate) fn take_given<T>(&self, key: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
    {
        let Some(value) = self.values.get_item(key)? else { return Ok(None) };
        self.values.del_item(key)?;
        value.extract().map(Some).map_err(|error: PyErr| {
            if error.is_instance_of::<PyTypeError>(value.py()) {
                PyTypeError::new_err(format!("{}: {}", self.path(key), error.value(value.py())))
            } else {
                error
            }
        })
    }

    fn refuse_unknown_keys(&self) -> Result<(), Failure> {
        if self.values.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = self.values.keys().iter().map(|key| shown(&key)).collect();
        Err(Failure::invalid_input(format!("{} has unknown keys: {}", self.name, keys.join(", "))))
    }
}
