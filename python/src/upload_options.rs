//! The keyword arguments of every method that stores a file.

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyDictMethods, PyMapping, PyString},
};
use townsquare::storage::UploadOptions;

use crate::{
    argument::{BytesArg, FlagArg, IntArg, TextArg, TextMapArg, optional_text},
    errors::{Failure, expected, in_argument},
};

/// The content of an upload: bytes, or what gives them in chunks (a file object or an iterable), which `townsquare._files` reads.
pub(crate) enum UploadArg {
    Bytes(BytesArg),
    Chunks(Py<PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for UploadArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<UploadArg> {
        if let Ok(bytes) = value.extract() {
            return Ok(UploadArg::Bytes(bytes));
        }
        let has_chunks = ["read", "__iter__", "__aiter__"].iter().any(|name| value.hasattr(*name).unwrap_or(false));
        if !has_chunks || value.is_instance_of::<PyString>() || value.cast::<PyMapping>().is_ok() {
            return Err(expected("bytes, a file object or an iterable of bytes", &value));
        }
        Ok(UploadArg::Chunks(value.to_owned().unbind()))
    }
}

/// The options of an upload. Each value has the type of its argument; [`value`](UploadArgs::value) checks them.
pub(crate) struct UploadArgs {
    cache_control: Option<IntArg<u32>>,
    upsert: Option<FlagArg>,
    content_type: Option<TextArg>,
    metadata: Option<TextMapArg>,
    if_match: Option<TextArg>,
    verify: Option<FlagArg>,
}

impl UploadArgs {
    /// Reads the keyword arguments of `method`.
    ///
    /// # Errors
    /// `TypeError` for an unknown name and for a value of a wrong type.
    pub(crate) fn read(method: &str, arguments: Option<&Bound<'_, PyDict>>) -> PyResult<UploadArgs> {
        const NAMES: [&str; 6] = ["cache_control", "upsert", "content_type", "metadata", "if_match", "verify"];
        for name in arguments.into_iter().flat_map(PyDictMethods::keys) {
            let name: String = name.extract()?;
            if !NAMES.contains(&name.as_str()) {
                let message = format!("{method}() got an unexpected keyword argument '{name}'");
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(UploadArgs {
            cache_control: given(arguments, "cache_control")?,
            upsert: given(arguments, "upsert")?,
            content_type: given(arguments, "content_type")?.flatten(),
            metadata: given(arguments, "metadata")?.flatten(),
            if_match: given(arguments, "if_match")?.flatten(),
            verify: given(arguments, "verify")?,
        })
    }

    /// # Errors
    /// The file error 400 for a value that the core cannot hold.
    pub(crate) fn value(self) -> Result<UploadOptions, Failure> {
        self.checked().map_err(Failure::of_file)
    }

    fn checked(self) -> Result<UploadOptions, Failure> {
        let mut options = UploadOptions::new();
        if let Some(seconds) = self.cache_control {
            options = options.cache_control(seconds.value("cache_control", "0 to 31536000")?);
        }
        if let Some(upsert) = self.upsert {
            options = options.upsert(upsert.0);
        }
        if let Some(content_type) = optional_text(self.content_type, "content_type")? {
            options = options.content_type(content_type);
        }
        for (name, value) in self.metadata.map_or(Ok(Vec::new()), |metadata| metadata.value("metadata"))? {
            options = options.metadata(name, value);
        }
        if let Some(etag) = optional_text(self.if_match, "if_match")? {
            options = options.if_match(unquoted(&etag));
        }
        Ok(options.verify(self.verify.is_some_and(|verify| verify.0)))
    }
}

/// An etag as a row has it. A header of HTTP has it in quotes.
fn unquoted(etag: &str) -> &str {
    etag.strip_prefix('"').and_then(|etag| etag.strip_suffix('"')).filter(|inner| !inner.is_empty()).unwrap_or(etag)
}

/// The value of an argument, if it was given. An `Option` takes `None` as a value.
fn given<'py, T>(arguments: Option<&Bound<'py, PyDict>>, name: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    let Some(value) = arguments.map(|arguments| arguments.get_item(name)).transpose()?.flatten() else {
        return Ok(None);
    };
    value.extract().map(Some).map_err(|error: PyErr| in_argument(value.py(), name, error))
}
