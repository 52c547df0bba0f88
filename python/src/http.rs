//! HTTP without a server: the body of a request and the response of an endpoint (SPEC 4.1).

use pyo3::{
    prelude::*,
    pybacked::PyBackedBytes,
    types::{PyBytes, PyDict},
};

use crate::{errors::expected, record::record};

/// The body of a request: `bytes`, or an object that can be copied into `bytes`.
pub(crate) struct BodyArg(Option<PyBackedBytes>);

impl BodyArg {
    pub(crate) const EMPTY: BodyArg = BodyArg(None);
}

impl AsRef<[u8]> for BodyArg {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<'py> FromPyObject<'_, 'py> for BodyArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<BodyArg> {
        if let Ok(bytes) = value.extract() {
            return Ok(BodyArg(Some(bytes)));
        }
        // memoryview, array, mmap and the like.
        if value.hasattr("__buffer__")? || value.hasattr("tobytes")? {
            let bytes = value.py().get_type::<PyBytes>().call1((value,))?;
            return Ok(BodyArg(Some(bytes.extract()?)));
        }
        Err(expected("bytes", &value))
    }
}

record! {
    /// A response, for a web framework to send.
    HttpResponse(townsquare::discovery::HttpResponse) [] as response, hash (response.status, &response.body),
    repr [status, headers, body] {
        /// The HTTP status.
        status: response.status,
        /// Header names in lower case, with their values.
        headers: Headers(&response.headers),
        /// The body: JSON in UTF-8, or empty.
        body: Body(&response.body),
    }
}

struct Headers<'a>(&'a [(&'static str, String)]);

impl<'py> IntoPyObject<'py> for Headers<'_> {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let headers = PyDict::new(py);
        for (name, value) in self.0 {
            headers.set_item(name, value)?;
        }
        Ok(headers)
    }
}

struct Body<'a>(&'a [u8]);

impl<'py> IntoPyObject<'py> for Body<'_> {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Self::Error> {
        Ok(PyBytes::new(py, self.0))
    }
}
