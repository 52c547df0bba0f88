//! Configurations: options by name, with values as text.
//!
//! Invariant: a failed `tsq_config_set` changes nothing. The configuration is the only handle that changes; a mutex
//! makes it usable from any thread.

use std::sync::{Mutex, PoisonError};

use townsquare::Config;

use crate::boundary::{Handle, answer, argument, call_handle, call_unit, free, handle, tsq_error, tsq_status, tsq_str};

/// Options for opening a client. Owned by the caller, who frees it with `tsq_config_free`; clients keep a copy.
pub struct tsq_config {
    _opaque: [u8; 0],
}

impl Handle for tsq_config {
    type Value = Mutex<Config>;
}

/// A copy of the configuration; the defaults for NULL.
///
/// # Safety
/// `config` is NULL or live.
pub(crate) unsafe fn snapshot(config: *const tsq_config) -> Config {
    // SAFETY: the caller's promise, passed on.
    let config = unsafe { handle::borrow(config) };
    config.map_or_else(Config::new, |config| config.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// Creates a configuration that sets no option: clients read each from the environment, and else take its default. Returns
/// owned.
#[unsafe(no_mangle)]
pub extern "C" fn tsq_config_new() -> *mut tsq_config {
    answer(|| handle::give(Mutex::new(Config::new())))
}

/// Reads a configuration from a URL: `townsquare:DATA_DIR`, `sqlite:PATH` or `postgres://…`, with options by name in
/// the query: `townsquare:/var/lib/town?durability=normal&refresh_interval=60`.
///
/// Borrows `url`; returns owned in `out`. Fails with `TSQ_CONFIG` for another scheme, an unknown option, an invalid value, and
/// an option that is given twice with different values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_config_from_url(
    url: tsq_str,
    out: *mut *mut tsq_config,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || Ok(Mutex::new(Config::from_url(argument::text(url, "url")?)?))) }
}

/// Reads options from the environment variables `TOWNSQUARE_<NAME>`; options without a variable have their defaults.
/// `tsq_client_open` does that by itself for the options that its configuration does not set.
///
/// Returns owned in `out`. Fails with `TSQ_CONFIG` naming the first variable with an invalid value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_config_from_env(out: *mut *mut tsq_config, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || Ok(Mutex::new(Config::from_env()?))) }
}

/// Sets an option by its name; the section OPTIONS of the manual lists them. Values are text: `"60"`, `"normal"`.
///
/// Borrows all. Fails with `TSQ_CONFIG` naming the option when it is unknown, when the value is not of its type, and when the URL of
/// `tsq_config_from_url` gives the option another value; the configuration then does not change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_config_set(
    config: *mut tsq_config,
    name: tsq_str,
    value: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(None, err, || {
            let config = handle::required(config, "config")?;
            let (name, value) = (argument::text(name, "name")?, argument::text(value, "value")?);
            let mut config = config.lock().unwrap_or_else(PoisonError::into_inner);
            *config = config.clone().set(name, value)?;
            Ok(())
        })
    }
}

/// Frees a configuration. Takes `config`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_config_free(config: *mut tsq_config) {
    // SAFETY: `config` is NULL or owned by the caller, by the manual.
    unsafe { free(config) }
}
