//! The argument `headers`: a mapping or pairs, as web frameworks have them.

use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::{
    argument::{TextArg, items},
    errors::{Failure, expected},
};

/// The headers of a request: a mapping (or another object with `items`), or pairs of names and values. A name may come twice.
/// Names and values are strings or, as in ASGI, bytes in Latin-1.
#[derive(Default)]
pub(crate) struct HeadersArg(Vec<(TextArg, TextArg)>);

impl From<Vec<(String, String)>> for HeadersArg {
    fn from(headers: Vec<(String, String)>) -> HeadersArg {
        HeadersArg(headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl HeadersArg {
    /// # Errors
    /// As [`TextArg::value`].
    pub(crate) fn value(self, name: &str) -> Result<Vec<(String, String)>, Failure> {
        self.0.into_iter().map(|(key, value)| Ok((key.value(name)?, value.value(name)?))).collect()
    }
}

impl<'py> FromPyObject<'_, 'py> for HeadersArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<HeadersArg> {
        let pairs = match value.cast::<PyDict>() {
            Ok(headers) => headers.items().into_any(),
            Err(_) if value.hasattr("items")? => value.call_method0("items")?,
            Err(_) => value.to_owned(),
        };
        let wanted = "a mapping or pairs of names and values";
        items(&pairs, wanted)?.map(|pair| header(&pair?)).collect::<PyResult<_>>().map(HeadersArg)
    }
}

fn header(pair: &Bound<'_, PyAny>) -> PyResult<(TextArg, TextArg)> {
    let wanted = "pairs of names and values";
    let parts = items(pair, wanted)?.collect::<PyResult<Vec<_>>>()?;
    match parts.as_slice() {
        [name, value] => Ok((text(name)?, text(value)?)),
        _ => Err(expected(wanted, pair)),
    }
}

fn text(value: &Bound<'_, PyAny>) -> PyResult<TextArg> {
    match value.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes().iter().map(|byte| char::from(*byte)).collect::<String>().into()),
        Err(_) => value.extract(),
    }
}
