//! Clients: opened, shared, acting as a user or as the service, backed up, closed, freed.
//!
//! Invariant: a handle is one reference to the core's client. `close` ends the client for every handle; `free` ends
//! the handle, and the client with it when no other handle is left.

use townsquare::{Client, Operation, blocking};

use crate::{
    boundary::{act, answer, free, produce},
    config::{self, tsq_config},
    error::tsq_error,
    handle::{self, Handle},
    status::tsq_status,
    text::{self, tsq_str},
};

/// An open client: a database, a catalog in memory and a caller. Owned, ended with `tsq_client_free`; used from any
/// number of threads at once.
pub struct tsq_client {
    _opaque: [u8; 0],
}

impl Handle for tsq_client {
    type Value = blocking::Client;
}

/// Opens a client; creates its folder and database when they are missing.
///
/// Borrows `config` (NULL: the defaults), which may be changed or freed afterwards; returns owned in `out`. Fails with
/// `TSQ_CONFIG` for options that cannot work, `TSQ_UNAVAILABLE` or `TSQ_INTERNAL` when the database does not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_open(
    config: *const tsq_config,
    out: *mut *mut tsq_client,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(Some(Operation::Open), out, err, || Ok(blocking::Client::open(config::snapshot(config))?)) }
}

/// The client of this process: the first call opens it, later calls return a further handle of the same one.
///
/// Borrows `config`: NULL means the defaults in the first call and "whatever it was opened with" later. Returns owned
/// in `out`; freeing all handles leaves the client open, `tsq_client_close` closes it. Fails as `tsq_client_open` does,
/// and with `TSQ_CONFIG` for other options than those of the first call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_shared(
    config: *const tsq_config,
    out: *mut *mut tsq_client,
    err: *mut *mut tsq_error,
) -> tsq_status {
    let shared = || {
        if config.is_null() {
            return Ok(blocking::Client::shared()?);
        }
        // SAFETY: `config` is live, by the manual.
        Ok(blocking::Client::shared_with(unsafe { config::snapshot(config) })?)
    };
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(Some(Operation::Open), out, err, shared) }
}

/// The same client past every policy, for trusted code: a further handle, with the service for its caller.
///
/// Borrows `client`, whose own caller stays who it is; returns owned in `out`. Closing either closes both.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_as_service(
    client: *const tsq_client,
    out: *mut *mut tsq_client,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || Ok(handle::required(client, "client")?.inner().as_service().into())) }
}

/// The same client as the user of a session, for servers with many users: a further handle, whose caller stays.
///
/// Borrows all; returns owned in `out`. Closing either closes both. Fails with `TSQ_UNAUTHORIZED` for a token that is none,
/// whose session has ended, or that has expired; `TSQ_INVALID_INPUT`, `TSQ_CLOSED`. A session that ends later makes every
/// call on the handle fail with `TSQ_UNAUTHORIZED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_as_user(
    client: *const tsq_client,
    access_token: tsq_str,
    out: *mut *mut tsq_client,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::AsUser), out, err, || {
            let client = handle::required(client, "client")?.inner();
            Ok(blocking::wait(client.as_user(text::required(access_token, "access_token")?))?.into())
        })
    }
}

/// Writes a consistent copy of the SQLite database to the file `target`, which must not exist, while writers go on.
///
/// Borrows all. Fails with `TSQ_INVALID_INPUT` when the target exists, or the database is PostgreSQL, which has tools of
/// its own for that; `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_backup(
    client: *const tsq_client,
    target: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        act(Some(Operation::Backup), err, || {
            let client = handle::required(client, "client")?.inner();
            Ok(blocking::wait(client.backup(text::required(target, "target")?))?)
        })
    }
}

/// Puts a copy made by `tsq_client_backup` into a data folder that has no database and that no client has open.
///
/// Borrows all. Fails with `TSQ_CONFIG` for a copy that is none of the library's, damaged, or of a newer version, and for
/// a folder that has a database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_restore(source: tsq_str, data_dir: tsq_str, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        act(Some(Operation::Restore), err, || {
            let (source, data_dir) = (text::required(source, "source")?, text::required(data_dir, "data_dir")?);
            Ok(Client::restore(source, data_dir)?)
        })
    }
}

/// Closes the client, for all its handles: calls off reads, finishes writes, ends its threads. Later calls on it
/// fail with `TSQ_CLOSED`; lists and other results stay. Closing again does nothing.
///
/// Borrows `client`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_close(client: *const tsq_client, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        act(None, err, || {
            handle::required(client, "client")?.close();
            Ok(())
        })
    }
}

/// Whether the client was closed. True for NULL.
///
/// Borrows `client`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_is_closed(client: *const tsq_client) -> bool {
    // SAFETY: `client` is NULL or live, by the manual.
    answer(|| unsafe { handle::borrow(client) }.is_none_or(|client| client.inner().is_closed()))
}

/// Ends a handle, and closes the client when it was the last one. Takes `client`; NULL is allowed. No other thread may
/// be inside a call with this handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_free(client: *mut tsq_client) {
    // SAFETY: `client` is NULL or owned by the caller, by the manual.
    unsafe { free(client) }
}
