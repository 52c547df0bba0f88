//! Moves of a client's data to another place.

use std::ffi::c_void;

use townsquare::Operation;

use crate::{
    boundary::{call_count, call_wanted_handle, progress, record, tsq_error, tsq_progress_callback, tsq_status},
    client::{tsq_client, usable},
    config::{self, tsq_config},
    move_report::{self, tsq_move_options, tsq_move_report},
    move_target::tsq_move_target,
};

/// Copies everything into an empty database and file store: rows, users with their password hashes, linked identities, sessions,
/// files with versions, metadata and times, and the catalog. Compares every table and every file with one moment of the source
/// at the end. The engines and the kinds of stores may differ. `target` names the new place, by `data_dir` or `database_url` at
/// least. Calls `progress` (may be NULL) with the rows and files that are copied and the number of all; it may cancel.
///
/// A call that was cancelled, that failed, or whose process was killed is continued by the same call. Until it is complete, no
/// client opens the target, and one that has it open cannot write (25006). The source is only read; others must not write it meanwhile,
/// unless the move follows it (`follow_ms`). It is an operation of the host, not of a caller: every handle may move, and the target has
/// every row and file, also those that policies hide from the handle's caller.
/// The target refuses cursors and signed URLs of the source. Sessions are valid in both databases, in each until they end there.
///
/// Borrows all; `options` may be NULL; returns owned in `out`, which may be NULL. Fails with `TSQ_CONFIG` when the target is in memory, is the source,
/// has rows or files, or has an unfinished move from another source: then nothing is changed; `TSQ_CONFLICT` when the source
/// was written during the comparison: the message names the tables, and when the changes of a source that is followed cannot be copied
/// in the pause; `TSQ_INTERNAL`, naming the file, when its bytes are gone or
/// of another version; `TSQ_CANCELLED`, `TSQ_CLOSED`, `TSQ_UNAVAILABLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_move_to(
    client: *const tsq_client,
    target: *const tsq_config,
    options: *const tsq_move_options,
    progress: tsq_progress_callback,
    user_data: *mut c_void,
    out: *mut *mut tsq_move_report,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::MoveTo), out, err, || {
            let (client, target) = (usable(client)?, config::snapshot(target));
            let options = move_report::read(options)?;
            let moved = client.move_to(target, options, progress::progress(progress, user_data));
            Ok(record(moved?))
        })
    }
}

/// Accepts writes again after a move that followed this database. Sets `*out` to whether writes were refused. Call it if the target is given up: what is written from now on is in this database alone. It is an operation of the host,
/// not of a caller.
///
/// Borrows `client`. Fails with `TSQ_CLOSED`, and when the database fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_reopen_for_writes(
    client: *const tsq_client,
    out: *mut bool,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_count(Some(Operation::ReopenForWrites), out, err, || Ok(usable(client)?.reopen_for_writes()?)) }
}

/// Checks whether `tsq_client_move_to` would accept `target`, and says what it would find there. Writes nothing. It looks at the
/// target alone; `tsq_client_check` looks for faults of the source.
///
/// Borrows all. Sets `*out` to `TSQ_MOVE_TARGET_REFUSED` after a failure. Fails with `TSQ_CONFIG` when the move would be refused,
/// with the error of the move; `TSQ_INVALID_INPUT`, `TSQ_CLOSED`, and when the database or the store of the target fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_check_move(
    client: *const tsq_client,
    target: *const tsq_config,
    out: *mut tsq_move_target,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_count(Some(Operation::MoveTo), out, err, || {
            let (client, target) = (usable(client)?, config::snapshot(target));
            Ok(client.check_move(target)?.into())
        })
    }
}
