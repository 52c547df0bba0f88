//! Clients: opening, sharing, callers, backup, closing.
//!
//! Invariant: a C handle is one reference to a handle of the core. Closing an opened client closes it for every handle;
//! closing a handle of another caller closes that handle only. Freeing frees the handle; freeing the last handle closes
//! the client. In a forked child every call on a handle of the parent fails with `TSQ_CLOSED`, except closing and freeing.

use std::{
    ffi::c_int,
    mem::MaybeUninit,
    sync::{Arc, Mutex, PoisonError},
};

use townsquare::{ErrorKind, Operation, Subscription, blocking};

use crate::{
    boundary::{
        Failure, Handle, ProcessOwned, Terminated, answer, argument, call_count, call_handle, call_unit, callback,
        free, handle, list, string, tsq_error, tsq_status, tsq_str, tsq_string,
    },
    config::{self, tsq_config},
    finding::{self, tsq_check_depth, tsq_findings},
    host_loop::{HostLoop, LoopHandle},
};

/// A handle of a client: a database, a catalog in memory and a caller. Owned, freed with `tsq_client_free`.
pub struct tsq_client {
    _opaque: [u8; 0],
}

impl Handle for tsq_client {
    type Value = ProcessClient;
}

/// A handle and the process that opened its client.
pub(crate) struct ProcessClient(ProcessOwned<ClientHandle>);

/// Dropped in this order: subscriptions end before their client.
struct ClientHandle {
    /// The loop of the host, if it has asked for one.
    host: Mutex<Option<Arc<LoopHandle>>>,
    /// The subscriptions whose callbacks run on threads of the library.
    subscriptions: OwnSubscriptions,
    client: blocking::Client,
}

/// The subscriptions that end when their handle is freed; `None` for handles of `tsq_client_shared`, which do not end them.
struct OwnSubscriptions(Option<Mutex<Vec<Subscription>>>);

impl OwnSubscriptions {
    fn add(&self, subscription: &Subscription) {
        if let Some(own) = &self.0 {
            let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
            // Before the list grows, so that each subscription costs the same.
            if own.len() == own.capacity() {
                own.retain(Subscription::is_alive);
            }
            own.push(subscription.clone());
        }
    }
}

impl Default for OwnSubscriptions {
    fn default() -> OwnSubscriptions {
        OwnSubscriptions(Some(Mutex::default()))
    }
}

impl Drop for OwnSubscriptions {
    fn drop(&mut self) {
        let own = self.0.take().map(|own| own.into_inner().unwrap_or_else(PoisonError::into_inner));
        own.iter().flatten().for_each(Subscription::unsubscribe);
    }
}

impl ClientHandle {
    fn host(&self) -> Option<Arc<LoopHandle>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another handle of the same client, on the same loop.
    fn derive(&self, client: blocking::Client) -> ProcessClient {
        let host = self.host().map(|known| Arc::new(LoopHandle::new(&known.host)));
        let (host, subscriptions) = (Mutex::new(host), OwnSubscriptions::default());
        ProcessClient(ProcessOwned::new(ClientHandle { host, subscriptions, client }))
    }
}

impl From<blocking::Client> for ProcessClient {
    fn from(client: blocking::Client) -> ProcessClient {
        let (host, subscriptions) = (Mutex::default(), OwnSubscriptions::default());
        ProcessClient(ProcessOwned::new(ClientHandle { host, subscriptions, client }))
    }
}

impl ProcessClient {
    /// A handle of the client that the whole process shares.
    fn shared(client: blocking::Client) -> ProcessClient {
        let (host, subscriptions) = (Mutex::default(), OwnSubscriptions(None));
        ProcessClient(ProcessOwned::new(ClientHandle { host, subscriptions, client }))
    }
}

/// Lets a subscription, whose callback runs on threads of the library, end with the handle that made it.
///
/// # Errors
/// As [`usable`].
///
/// # Safety
/// As [`usable`].
pub(crate) unsafe fn own_subscription(client: *const tsq_client, made: Subscription) -> Result<Subscription, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { usable_handle(client) }?.subscriptions.add(&made);
    Ok(made)
}

/// "Borrows": the client of a handle.
///
/// # Errors
/// `InvalidInput` for NULL; `Closed` in a forked child of the process that opened the client.
///
/// # Safety
/// `client` is NULL or lives for `'a`.
pub(crate) unsafe fn usable<'a>(client: *const tsq_client) -> Result<&'a blocking::Client, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(&unsafe { usable_handle(client) }?.client)
}

/// # Errors
/// As [`usable`].
///
/// # Safety
/// As [`usable`].
unsafe fn usable_handle<'a>(client: *const tsq_client) -> Result<&'a ClientHandle, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { handle::required(client, "client") }?.0.get()
}

/// # Errors
/// As [`usable`]; `Closed` for a handle or a client that was closed.
///
/// # Safety
/// As [`usable`].
unsafe fn open_handle<'a>(client: *const tsq_client) -> Result<&'a ClientHandle, Failure> {
    // SAFETY: the caller's promise, passed on.
    let handle = unsafe { usable_handle(client) }?;
    handle.client.inner().require_open()?;
    Ok(handle)
}

/// The loop on which callbacks of the handle's subscriptions run; `None` if they run on threads of the library.
///
/// # Errors
/// As [`usable`].
///
/// # Safety
/// As [`usable`].
pub(crate) unsafe fn host_loop(client: *const tsq_client) -> Result<Option<Arc<LoopHandle>>, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { usable_handle(client) }?.host())
}

/// Opens a client. Creates the data folder and the database when they are missing.
///
/// Borrows `config` (NULL: no option is set), which may change afterwards; options that it does not set are read from the
/// environment variables `TOWNSQUARE_<NAME>`; returns owned in `out`. Fails with `TSQ_CONFIG`
/// for unusable options, and in a forked child if the parent had a SQLite database open; `TSQ_UNAVAILABLE` or
/// `TSQ_INTERNAL` when the database does not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_open(
    config: *const tsq_config,
    out: *mut *mut tsq_client,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::Open), out, err, || Ok(blocking::Client::open(config::snapshot(config))?.into()))
    }
}

/// Opens the shared client of the process. The first call opens it; later calls return further handles of the same
/// client.
///
/// Borrows `config`: NULL means the options of the environment in the first call and any options in later ones. Returns owned
/// in `out`.
/// Freeing all handles leaves the client open; `tsq_client_close` closes it, and the next call opens another. Fails
/// like `tsq_client_open`, and with `TSQ_CONFIG` if the first call had other options, and in a forked child if the
/// parent had the shared client open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_shared(
    config: *const tsq_config,
    out: *mut *mut tsq_client,
    err: *mut *mut tsq_error,
) -> tsq_status {
    let shared = || {
        if config.is_null() {
            return Ok(ProcessClient::shared(blocking::Client::shared()?));
        }
        // SAFETY: `config` is live, by the manual.
        Ok(ProcessClient::shared(blocking::Client::shared_with(unsafe { config::snapshot(config) })?))
    };
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(Some(Operation::Open), out, err, shared) }
}

/// Creates a handle of the same client that acts as the service, to which no policy applies. For trusted code.
///
/// Borrows `client` and does not change its caller; returns owned in `out`. `tsq_client_close` on the new handle closes that
/// handle only. Fails with `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_as_service(
    client: *const tsq_client,
    out: *mut *mut tsq_client,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            let handle = open_handle(client)?;
            Ok(handle.derive(handle.client.as_service()))
        })
    }
}

/// Creates a handle of the same client that acts for nobody, whoever signs in on the client: for the requests of a server that
/// have no credentials.
///
/// Borrows `client`, whose caller does not change; returns owned in `out`. `tsq_client_close` on the new handle closes that
/// handle only. Fails with `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_as_anonymous(
    client: *const tsq_client,
    out: *mut *mut tsq_client,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            let handle = open_handle(client)?;
            Ok(handle.derive(handle.client.as_anonymous()))
        })
    }
}

/// Creates a handle like `client` with limits for one client of a server: the address of the peer, or a device that proves its
/// name. Sign-ins, password checks and the requests of `tsq_storage_handle_file` and `tsq_realtime_handle_events` count for
/// this client first. One client has at most 64 streams of events and 16 uploads at the same time; beyond them the answer is
/// 429. IPv6 addresses with the same first 64 bits are one client. White space around the key, and the port of an address, do
/// not count: `10.0.0.1:80` and `10.0.0.1` are one client.
///
/// Borrows all; returns owned in `out`. The new handle has the caller of `client` and closes as `client` does. Handles made
/// from it have the same client key. Fails with `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_with_client_key(
    client: *const tsq_client,
    client_key: tsq_str,
    out: *mut *mut tsq_client,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            let handle = open_handle(client)?;
            Ok(handle.derive(handle.client.with_client_key(argument::text(client_key, "client_key")?)))
        })
    }
}

/// Reads the position of everything that this client has written, and of what this handle was told by `tsq_client_read_after`. A
/// client of another process that is told this position reads all of it, also where a replica answers (option
/// `database_replica_url`). All handles of one client read what any of them has written without it. A short text without secrets:
/// a web server returns it with the response to a write, and the browser sends it with the next request.
///
/// Borrows `client`; returns owned in `out`. The text is empty if nothing was written, and on SQLite. Fails with `TSQ_CLOSED`, and
/// when the database fails: what was written is committed all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_read_position(
    client: *const tsq_client,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::ReadPosition), out, err, || Ok(Terminated::new(usable(client)?.read_position()?)))
    }
}

/// Has later reads of this handle see what was written before `position`, which `tsq_client_read_position` returned. A read waits
/// up to the option `database_replica_wait` until the replica has it, and is then answered by the server of `database_url`. Without
/// replicas, and with an empty position, nothing changes. The position of another database is not an error: the server of
/// `database_url` then answers the reads of this handle. So a position may come from outside, as in the header of a request.
///
/// Borrows all. Fails with `TSQ_INVALID_INPUT` for a text that is no position, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_read_after(
    client: *const tsq_client,
    position: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::ReadAfter), err, || {
            Ok(usable(client)?.read_after(argument::text(position, "position")?)?)
        })
    }
}

/// Creates a handle of the same client that acts as the user of a session, for servers with many users. Signing in or
/// out does not change its caller.
///
/// Borrows all; returns owned in `out`. `tsq_client_close` on the new handle closes that handle only. Fails with
/// `TSQ_UNAUTHORIZED` for a token that is unknown or expired, and after the end of its session; `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`. When the session ends later, every call for the user fails with `TSQ_UNAUTHORIZED`; calls that need no user,
/// such as those of the discovery, go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_as_user(
    client: *const tsq_client,
    access_token: tsq_str,
    out: *mut *mut tsq_client,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::AsUser), out, err, || {
            let handle = usable_handle(client)?;
            let user = handle.client.as_user(argument::text(access_token, "access_token")?);
            Ok(handle.derive(user?))
        })
    }
}

/// Returns a file descriptor for the host's own loop (poll, epoll, libuv, Qt): it is readable while callbacks wait. The host then
/// calls `tsq_client_dispatch`. See A LOOP OF THE HOST in the manual.
///
/// From this call on, the callbacks of subscriptions that this handle makes, and handles made from it, run inside
/// `tsq_client_dispatch` and nowhere else, except the last ones of a subscription that another thread ends: `on_close` and `destroy`,
/// and the events of sessions and of the catalog that happened before, run on the thread that calls `tsq_subscription_unsubscribe`.
/// A second call returns the same descriptor. The library owns it: the host only waits for
/// it, and does so no longer once it frees the last of these handles.
///
/// Borrows `client`. Sets `*out` to 0 after a failure. Fails with `TSQ_UNAVAILABLE` when the process has too many open files,
/// `TSQ_CLOSED`, and on Windows, which has no such descriptor, with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_poll_fd(
    client: *const tsq_client,
    out: *mut c_int,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_count(None, out, err, || {
            let handle = usable_handle(client)?;
            if handle.client.is_closed() {
                return Err(closed());
            }
            let mut host = handle.host.lock().unwrap_or_else(PoisonError::into_inner);
            let known = match &*host {
                Some(known) => known,
                None => {
                    host.insert(Arc::new(LoopHandle::new(&HostLoop::new().map_err(|error| no_descriptor(&error))?)))
                }
            };
            Ok(known.host.bell.fd())
        })
    }
}

/// Runs the callbacks that wait, on the calling thread, and makes the descriptor of `tsq_client_poll_fd` not readable until others
/// wait. A subscription with many calls has some of them in each dispatch, and the descriptor stays readable. It does not wait. A
/// callback may call it, too: the loop of a dialog does.
///
/// Borrows `client`. Fails with `TSQ_INVALID_INPUT` if `tsq_client_poll_fd` was not called before; `TSQ_CLOSED` after the callbacks that
/// are told the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_dispatch(client: *const tsq_client, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(None, err, || {
            let handle = usable_handle(client)?;
            let own = handle.host().ok_or_else(|| {
                Failure::invalid_input("tsq_client_dispatch needs an earlier tsq_client_poll_fd on this handle")
            })?;
            // A callback may free the handle, which then ends its subscriptions.
            let (host, client) = (Arc::clone(&own.host), handle.client.clone());
            drop(own);
            host.dispatch();
            if client.is_closed() { Err(closed()) } else { Ok(()) }
        })
    }
}

fn closed() -> Failure {
    Failure::new(ErrorKind::Closed, "The client is closed")
}

fn no_descriptor(error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::Unsupported => {
            Failure::invalid_input("This system has no file descriptor for the loop of a program")
        }
        _ => Failure::new(ErrorKind::Unavailable, format!("Cannot make a file descriptor: {error}")),
    }
}

/// Writes a copy of the SQLite database and its files at one moment to the file `target`, which must not exist, and the
/// folder `<target>.files`. Other calls may write meanwhile. It is an operation of the host, not of a caller: every handle may
/// make a backup, and the copy has every row and file, also rows and files that policies hide from the handle's caller.
///
/// Borrows all. Fails with `TSQ_INVALID_INPUT` when the target exists, or for a PostgreSQL database (use pg_dump);
/// `TSQ_CONFIG` when the target cannot be written; `TSQ_UNAVAILABLE` when the disk is full; `TSQ_INTERNAL` when the bytes of
/// files are gone or of another size: the message names them, and there is no backup; `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_backup(
    client: *const tsq_client,
    target: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::Backup), err, || Ok(usable(client)?.backup(argument::text(target, "target")?)?))
    }
}

/// Says what is wrong, or will be: integrity of the database, migrations, policies, files against their rows, the object store,
/// the change feed, room on the disks, the clock and the modes of files. The list is empty if all is well, and has at most 100
/// findings of a code. It changes nothing. Writers go on meanwhile; what they write or delete is no finding. With
/// `TSQ_CHECK_FULL` it takes as long as reading every byte takes. It is an operation of the host, not of a caller: every handle
/// may call it, and findings name files and tables, also those that policies hide from the handle's caller.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for an unknown depth; `TSQ_CLOSED`. Every other
/// failure is a finding.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_check(
    client: *const tsq_client,
    depth: MaybeUninit<tsq_check_depth>,
    out: *mut *mut tsq_findings,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::Check), out, err, || {
            let (client, depth) = (usable(client)?, finding::read(depth)?);
            Ok(list(client.check(depth)?))
        })
    }
}

/// What the client has counted and measured since it was opened, as a JSON object: by the name of the metric its `kind` (`counter`,
/// `gauge`, `histogram`), its `unit` and its `samples`. A sample has its `labels` and a `value`, or, of a histogram, `count`, `sum`
/// and `buckets`: pairs of an upper bound and how many values were at most as large. The manual's METRICS lists them. Every handle of a client returns
/// the same. The figures are for the program: show them to no stranger.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_metrics_json(
    client: *const tsq_client,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(Some(Operation::Metrics), out, err, || string::json(&usable(client)?.metrics()?.to_json())) }
}

/// The metrics of `tsq_client_metrics_json` in the text format of Prometheus, for an endpoint that it scrapes
/// (`text/plain; version=0.0.4`).
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_metrics_prometheus(
    client: *const tsq_client,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::Metrics), out, err, || {
            Ok(Terminated::new(usable(client)?.metrics()?.to_prometheus()))
        })
    }
}

/// Restores a copy made by `tsq_client_backup` into a data folder without a database. While it runs, `tsq_client_open` of the
/// folder fails with `TSQ_UNAVAILABLE`. Sessions of the backup, and its tokens of recovery and verification, stay valid in the
/// restored database until they end; signed URLs of the original are refused. Either everything is restored or nothing, also if
/// the process is killed: then call it again. Until then `tsq_client_open` of the folder fails with `TSQ_CONFIG`.
///
/// Borrows all. Fails with `TSQ_UNAVAILABLE` when the disk is full; `TSQ_CONFIG` for a file that is not such a copy, is
/// damaged or of a newer version, and for a folder with a database or with files in `files`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_restore(source: tsq_str, data_dir: tsq_str, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::Restore), err, || {
            let (source, data_dir) = (argument::text(source, "source")?, argument::text(data_dir, "data_dir")?);
            Ok(blocking::Client::restore(source, data_dir)?)
        })
    }
}

/// Closes the client for all its handles: cancels reads, finishes accepted writes, ends the library's threads. On PostgreSQL a write
/// that waits for the server fails with `TSQ_UNAVAILABLE` and the code 08007: it may happen. The call waits for
/// running callbacks, 10 seconds at most, and first lets the callbacks of sessions and of the catalog run for what happened before it.
/// Later calls fail with `TSQ_CLOSED`; results stay valid. Closing again does nothing.
///
/// A handle of `tsq_client_as_user` or `tsq_client_as_service` closes alone: later calls on it fail with `TSQ_CLOSED`, its
/// subscriptions end, and calls that run complete. The client and its other handles stay open. This waits for nothing and is
/// allowed inside a callback.
///
/// Borrows `client`. Fails with `TSQ_INVALID_INPUT` for an opened client inside a callback or a `destroy`, because it
/// would wait for its own caller; the client then stays open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_close(client: *const tsq_client, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(None, err, || {
            // In a forked child there is nothing to close.
            let Ok(handle) = handle::required(client, "client")?.0.get() else { return Ok(()) };
            let is_derived = handle.client.inner().is_derived();
            if callback::is_inside() && !is_derived {
                return Err(Failure::invalid_input("tsq_client_close was called inside a callback"));
            }
            handle.client.close();
            match handle.host() {
                Some(own) if is_derived => own.end(),
                Some(own) => own.host.end_all(),
                None => {}
            }
            Ok(())
        })
    }
}

/// Whether the handle or its client is closed. True for NULL, and in a forked child for a handle of its parent.
///
/// Borrows `client`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_is_closed(client: *const tsq_client) -> bool {
    // SAFETY: `client` is NULL or live, by the manual.
    let handle = unsafe { handle::borrow(client) };
    let is_open = |handle: &ProcessClient| handle.0.get().is_ok_and(|handle| !handle.client.is_closed());
    answer(|| !handle.is_some_and(is_open))
}

/// Frees a handle, and ends the subscriptions that it made (not those of `tsq_client_shared`) as `tsq_subscription_unsubscribe`
/// does: it waits for a callback of them that runs, and afterwards their callbacks do not run and their data is destroyed, unless this is
/// called inside a callback. So hold no lock that such a callback takes. Freeing the last handle closes the client without waiting for
/// its threads. Takes `client`; NULL is allowed. No other thread may be in a call with this handle. Allowed inside a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_free(client: *mut tsq_client) {
    // SAFETY: `client` is NULL or owned by the caller, by the manual.
    unsafe { free(client) }
}
