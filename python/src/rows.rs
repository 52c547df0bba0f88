//! The argument of `create_spaces`, `create_fidgets`, `import_credentials` and `import_rows`: a list of mappings, one for each row.
//!
//! Invariant: an error names the mapping and its key: `spaces[2].name`. An unknown key is an error. No item of a list that is
//! too long is touched, because other threads wait for the GIL meanwhile.

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyMapping},
};
use serde_json::Map;
use townsquare::Json;

use crate::{
    argument::{ColumnArg, Items, items},
    client_share::ProcessClient,
    errors::{Failure, class_name, in_argument, shown},
};

/// A list of mappings. None is taken out of it before [`RowsArg::read`].
pub(crate) struct RowsArg<'py> {
    list: Bound<'py, PyAny>,
    items: Items<'py>,
}

impl<'py> RowsArg<'py> {
    /// Reads each mapping by `read`. `name` is the argument's name.
    ///
    /// # Errors
    /// `TypeError` for a value of a wrong type. The operation returns the inner error: `TooLarge` for more rows than the
    /// client's option `max_bulk_rows`, `InvalidInput` for an unknown key, or the error of `read`.
    pub(crate) fn read<T>(
        self,
        client: &ProcessClient,
        name: &str,
        mut read: impl FnMut(&mut RowArg<'py>) -> PyResult<Result<T, Failure>>,
    ) -> PyResult<Result<Vec<T>, Failure>> {
        if let Err(failure) = check_length(client, name, &self.list)? {
            return Ok(Err(failure));
        }
        let mut mappings = Vec::new();
        for mapping in self.items {
            mappings.push(mapping?);
            // An iterator has no length before, and perhaps no end.
            if let Err(failure) = client.check_rows(name, mappings.len()) {
                return Ok(Err(failure));
            }
        }
        let mut rows = Vec::with_capacity(mappings.len());
        for (index, mapping) in mappings.iter().enumerate() {
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
        let items = items(&value, "a list of mappings")?;
        Ok(RowsArg { list: value.to_owned(), items })
    }
}

/// Checks the number of rows of a list or a mapping without touching its items. What has no length passes.
///
/// # Errors
/// The error of `__len__`. The operation returns the inner error: `TooLarge` for more rows than the client's option
/// `max_bulk_rows`.
pub(crate) fn check_length(
    client: &ProcessClient,
    name: &str,
    list: &Bound<'_, PyAny>,
) -> PyResult<Result<(), Failure>> {
    match list.len() {
        Ok(count) => Ok(client.check_rows(name, count)),
        Err(error) if error.is_instance_of::<PyTypeError>(list.py()) => Ok(Ok(())),
        Err(error) => Err(error),
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
        value.extract().map(Some).map_err(|error: PyErr| in_argument(value.py(), &self.path(key), error))
    }

    /// Takes the values of all columns out. A key that is not text stays, and is refused as unknown.
    pub(crate) fn take_all(&mut self) -> PyResult<Result<Map<String, Json>, Failure>> {
        let mut columns = Map::new();
        for key in self.values.keys() {
            let Ok(column) = key.extract::<String>() else { continue };
            let Some(value) = self.take_given::<ColumnArg>(&column)? else { continue };
            match value.value(&self.path(&column)) {
                Ok(value) => drop(columns.insert(column, value)),
                Err(failure) => return Ok(Err(failure)),
            }
        }
        Ok(Ok(columns))
    }

    fn refuse_unknown_keys(&self) -> Result<(), Failure> {
        if self.values.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = self.values.keys().iter().map(|key| shown(&key)).collect();
        Err(Failure::invalid_input(format!("{} has unknown keys: {}", self.name, keys.join(", "))))
    }
}
