//! Configurations: options by name and text, as Python's keywords and the environment have them.
//!
//! Invariant: a failed `set` leaves the configuration as it was. Behind a lock, so that this handle, the only one that
//! changes, keeps the promise of all the others: any thread.

use std::sync::{Mutex, PoisonError};

use townsquare::Config;

use crate::{
    boundary::{act, answer, free, produce},
    error::tsq_error,
    handle::{self, Handle},
    status::tsq_status,
    text::{self, tsq_str},
};

/// How a client is opened. Owned by the caller, who ends it with `tsq_config_free`; clients keep a copy.
pub struct tsq_config {
    _opaque: [u8; 0],
}

impl Handle for tsq_config {
    type Value = Mutex<Config>;
}

/// A copy of the configuration, the defaults for NULL.
///
/// # Safety
/// `config` is NULL or live.
pub(crate) unsafe fn snapshot(config: *const tsq_config) -> Config {
    // SAFETY: the caller's promise, passed on.
    let config = unsafe { handle::borrow(config) };
    config.map_or_else(Config::new, |config| config.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// A configuration with every option at its default. Returns owned.
#[unsafe(no_mangle)]
pub extern "C" fn tsq_config_new() -> *mut tsq_config {
    answer(|| handle::give(Mutex::new(Config::new())))
}

/// The configuration that a URL spells: `townsquare:DATA_DIR`, `sqlite:PATH` or `postgres://…`, with options by name
/// in the query: `townsquare:/var/lib/town?durability=normal&refresh_interval=60`.
///
/// Borrows `url`; returns owned in `out`. Fails with `TSQ_CONFIG` for another scheme, an unknown option or a value
/// that does not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_config_from_url(
    url: tsq_str,
    out: *mut *mut tsq_config,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || Ok(Mutex::new(Config::from_url(text::required(url, "url")?)?))) }
}

/// Every option that has an environment variable `TOWNSQUARE_<NAME>`, from there.
///
/// Returns owned in `out`. Fails with `TSQ_CONFIG` naming the first variable whose value does not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_config_from_env(out: *mut *mut tsq_config, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || Ok(Mutex::new(Config::from_env()?))) }
}

/// Sets one option by its name; the manual's section OPTIONS lists them. Values are text: `"60"`, `"normal"`.
///
/// Borrows all. Fails with `TSQ_CONFIG` naming the option when it is unknown or the value does not fit; the
/// configuration is then as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_config_set(
    config: *mut tsq_config,
    name: tsq_str,
    value: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        act(None, err, || {
            let config = handle::required(config, "config")?;
            let (name, value) = (text::required(name, "name")?, text::required(value, "value")?);
            let mut config = config.lock().unwrap_or_else(PoisonError::into_inner);
            *config = config.clone().set(name, value)?;
            Ok(())
        })
    }
}

/// Ends a configuration. Takes `config`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_config_free(config: *mut tsq_config) {
    // SAFETY: `config` is NULL or owned by the caller, by the manual.
    unsafe { free(config) }
}
