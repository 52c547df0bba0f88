//! Keywords to configuration: every option goes to the core by its name, as text.
//!
//! Invariant: no option is known here. What `open` accepts is what the core's `OPTIONS` lists, and a new one needs no
//! line in this file. A value of a type that no option has is refused by the option's name.

use std::path::PathBuf;

use jiff::SignedDuration;
use pyo3::{
    prelude::*,
    types::{PyBool, PyDelta, PyDict, PyDictMethods, PyFloat, PyString},
};
use townsquare::{Config, ErrorKind, Operation};

use crate::errors::Failure;

/// The configuration that `open(data_dir, **options)` spells; `None` is an option not given.
pub(crate) fn configuration(
    py: Python<'_>,
    data_dir: Option<PathBuf>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Config> {
    let mut config = Config::new();
    if let Some(folder) = data_dir {
        config = config.data_dir(folder);
    }
    for (name, value) in options.into_iter().flat_map(PyDictMethods::iter) {
        if !value.is_none() {
            let name = name.extract::<String>()?;
            config = text(&name, &value)
                .and_then(|text| config.set(&name, &text).map_err(Failure::from))
                .map_err(|failure| failure.into_exception(py, Some(Operation::Open)))?;
        }
    }
    Ok(config)
}

/// A value in the words of [`Config::set`]. Seconds stay a plain decimal: no exponent, no unit.
fn text(name: &str, value: &Bound<'_, PyAny>) -> Result<String, Failure> {
    if let Ok(yes) = value.cast::<PyBool>() {
        return Ok(yes.is_true().to_string());
    }
    let text = if value.is_instance_of::<PyString>() {
        value.extract::<String>()
    } else if value.is_instance_of::<PyDelta>() {
        value.extract::<SignedDuration>().map(|wait| wait.as_secs_f64().to_string())
    } else if value.is_instance_of::<PyFloat>() {
        value.extract::<f64>().map(|number| number.to_string())
    } else if let Ok(number) = value.extract::<i128>() {
        Ok(number.to_string())
    } else {
        value.extract::<PathBuf>().and_then(|path| {
            path.into_os_string().into_string().map_err(|_| pyo3::exceptions::PyValueError::new_err("not UTF-8"))
        })
    };
    text.map_err(|_| {
        let class = value.get_type();
        let class = class.name().map_or_else(|_| "this".to_owned(), |name| name.to_string());
        Failure::own(ErrorKind::Config, format!("Option {name} takes no value of type {class}"))
    })
}
