//! Keyword arguments of `open` as a configuration of the core.
//!
//! Invariant: this file names no option. Each keyword goes to [`Config::set`] with its value as text, so an option that
//! the core adds needs no change here.

use std::path::PathBuf;

use jiff::SignedDuration;
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBool, PyDelta, PyDict, PyDictMethods, PyFloat, PyMapping, PyString},
};
use townsquare::{Config, ErrorKind, Operation};

use crate::{
    argument::TextArg,
    errors::{Failure, class_name},
};

/// The scheme of a URL of options.
const URL_SCHEME: &str = "townsquare:";

/// The configuration of `open(data_dir, **options)`: see [`configuration_of`].
pub(crate) fn configuration(
    py: Python<'_>,
    data_dir: Option<PathBuf>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Config> {
    configuration_of(py, Operation::Open, data_dir, options)
}

/// The configuration of a call with a folder and options; `operation` is in its errors. An option that is `None` is left out. In place of the folder there may be
/// a URL of options.
pub(crate) fn configuration_of(
    py: Python<'_>,
    operation: Operation,
    data_dir: Option<PathBuf>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Config> {
    let refused = |failure: Failure| failure.into_exception(py, Some(operation));
    let mut config = match data_dir {
        None => Config::new(),
        Some(folder) => match folder.to_str().filter(|text| text.starts_with(URL_SCHEME)) {
            Some(url) => Config::from_url(url).map_err(|error| refused(error.into()))?,
            None => Config::new().data_dir(folder),
        },
    };
    for (name, value) in options.into_iter().flat_map(PyDictMethods::iter) {
        if !value.is_none() {
            let name = name.extract::<TextArg>()?;
            config = name
                .value("The name of an option")
                .and_then(|name| Ok((text(&name, &value)?, name)))
                .and_then(|(text, name)| config.set(&name, &text).map_err(Failure::from))
                .map_err(refused)?;
        }
    }
    Ok(config)
}

/// A value in the syntax of [`Config::set`]. Seconds are a plain decimal number, without exponent or unit. A mapping is
/// `KEY=VALUE,KEY=VALUE`.
fn text(name: &str, value: &Bound<'_, PyAny>) -> Result<String, Failure> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string());
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        return entries(name, mapping);
    }
    if value.is_instance_of::<PyString>() {
        return value.extract::<String>().map_err(|_| {
            let message = format!("Option {name} has half a surrogate pair, which is not Unicode");
            Failure::new(ErrorKind::Config, message)
        });
    }
    let text = if value.is_instance_of::<PyDelta>() {
        value.extract::<SignedDuration>().map(|wait| wait.as_secs_f64().to_string())
    } else if value.is_instance_of::<PyFloat>() {
        value.extract::<f64>().map(|number| number.to_string())
    } else if let Ok(number) = value.extract::<i128>() {
        Ok(number.to_string())
    } else {
        // The text of a path is absolute, so that no option takes it for another kind of value.
        value
            .extract::<PathBuf>()
            .and_then(|path| Ok(std::path::absolute(path)?))
            .and_then(|path| path.into_os_string().into_string().map_err(|_| PyValueError::new_err("not UTF-8")))
    };
    text.map_err(|_| {
        Failure::new(ErrorKind::Config, format!("Option {name} takes no value of type {}", class_name(value)))
    })
}

/// The text of an option that is a mapping.
fn entries(name: &str, mapping: &Bound<'_, PyMapping>) -> Result<String, Failure> {
    let refuse = |what: &str| Failure::new(ErrorKind::Config, format!("Option {name} is a mapping {what}"));
    let entries = mapping
        .items()
        .and_then(|items| items.extract::<Vec<(String, String)>>())
        .map_err(|_| refuse("from strings to strings"))?;
    if entries.iter().any(|(key, value)| format!("{key}{value}").contains([',', '='])) {
        return Err(refuse("whose strings contain no comma and no equals sign"));
    }
    Ok(entries.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","))
}
