//! The functions for signed files (UPSTREAM 3): signing, verifying, encrypting and decrypting.

use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};
use townsquare::storage::{self, SignOptions};

use crate::{
    argument::{BytesArg, DateTimeArg, TextArg, optional_text},
    errors::Failure,
    json::{JsonObjectArg, PyJson},
};

#[doc = text_of!(sign_file)]
#[pyfunction]
#[pyo3(signature = (file_data, private_key, *, file_type = None, file_name = None, timestamp = None))]
#[pyo3(text_signature = "(file_data, private_key, *, file_type='json', file_name=None, timestamp=None)")]
pub(crate) fn sign_file<'py>(
    py: Python<'py>,
    file_data: TextArg,
    private_key: TextArg,
    file_type: Option<TextArg>,
    file_name: Option<TextArg>,
    timestamp: Option<DateTimeArg>,
) -> PyResult<Bound<'py, PyDict>> {
    let sign = || {
        let options = sign_options(file_type, file_name, timestamp)?;
        Ok(storage::sign_file(&file_data.value("file_data")?, &private_key.value("private_key")?, options)?)
    };
    Ok(PyJson(&raised(py, sign())?).into_pyobject(py)?.cast_into()?)
}

#[doc = text_of!(verify_file)]
#[pyfunction]
pub(crate) fn verify_file(signed: JsonObjectArg) -> bool {
    // A value that is no JSON is no signed file.
    signed.value("signed").is_ok_and(|signed| storage::verify_file(&signed))
}

#[doc = text_of!(encrypt_file)]
#[pyfunction]
#[pyo3(signature = (data, private_key, *, file_type = None, file_name = None, timestamp = None))]
#[pyo3(text_signature = "(data, private_key, *, file_type='json', file_name=None, timestamp=None)")]
pub(crate) fn encrypt_file<'py>(
    py: Python<'py>,
    data: BytesArg,
    private_key: TextArg,
    file_type: Option<TextArg>,
    file_name: Option<TextArg>,
    timestamp: Option<DateTimeArg>,
) -> PyResult<Bound<'py, PyDict>> {
    let data = data.shared();
    let signed = py.detach(|| {
        let options = sign_options(file_type, file_name, timestamp)?;
        Ok(storage::encrypt_file(&data, &private_key.value("private_key")?, options)?)
    });
    Ok(PyJson(&raised(py, signed)?).into_pyobject(py)?.cast_into()?)
}

#[doc = text_of!(decrypt_file)]
#[pyfunction]
pub(crate) fn decrypt_file<'py>(
    py: Python<'py>,
    signed: JsonObjectArg,
    private_key: TextArg,
) -> PyResult<Bound<'py, PyBytes>> {
    let data = py.detach(|| Ok(storage::decrypt_file(&signed.value("signed")?, &private_key.value("private_key")?)?));
    Ok(PyBytes::new(py, &raised(py, data)?))
}

fn sign_options(
    file_type: Option<TextArg>,
    file_name: Option<TextArg>,
    timestamp: Option<DateTimeArg>,
) -> Result<SignOptions, Failure> {
    let mut options = SignOptions::new();
    if let Some(file_type) = optional_text(file_type, "file_type")? {
        options = options.file_type(file_type);
    }
    if let Some(file_name) = optional_text(file_name, "file_name")? {
        options = options.file_name(file_name);
    }
    if let Some(timestamp) = timestamp {
        options = options.timestamp(timestamp.value("timestamp")?);
    }
    Ok(options)
}

fn raised<T>(py: Python<'_>, outcome: Result<T, Failure>) -> PyResult<T> {
    outcome.map_err(|failure| failure.into_exception(py, None))
}
