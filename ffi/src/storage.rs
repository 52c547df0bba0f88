//! Operations on files (SPEC 2.8, 4.4).
//!
//! Invariant: each function is the core's method of the same name, after it converted the arguments.

pub(crate) mod file_info;

pub(crate) mod upload_options;

pub(crate) mod overwrite;

pub(crate) mod url_method;

pub(crate) mod url_options;

pub(crate) mod file_writer;

pub(crate) mod file_reader;

pub(crate) mod repair_report;

pub(crate) mod transfer;

pub(crate) mod file_response;

pub(crate) mod storage_path;

pub(crate) mod signed_file;

use std::mem::MaybeUninit;

use bytes::Bytes;
use townsquare::{Operation, blocking, storage::ListFiles};

use crate::{
    boundary::{
        Failure, Terminated, argument, call_count, call_handle, call_unit, call_wanted_handle, list, record,
        tsq_buffer, tsq_bytes, tsq_error, tsq_status, tsq_str, tsq_string,
    },
    client::{self, tsq_client},
    storage::{
        file_info::{tsq_file_info, tsq_file_list},
        file_reader::{ReaderState, tsq_file_reader},
        file_writer::{WriterState, tsq_file_writer},
        overwrite::tsq_overwrite,
        repair_report::tsq_repair_report,
        upload_options::tsq_upload_options,
        url_method::tsq_url_method,
        url_options::tsq_url_options,
    },
};

/// # Safety
/// `client` is NULL or lives for `'a`.
pub(crate) unsafe fn storage<'a>(client: *const tsq_client) -> Result<blocking::Storage<'a>, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { client::usable(client) }?.storage())
}

/// The bucket and the path of a file.
///
/// # Safety
/// Both texts are as for [`argument::text`].
pub(crate) unsafe fn place<'a>(bucket: tsq_str, path: tsq_str) -> Result<(&'a str, &'a str), Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { Ok((argument::text(bucket, "bucket")?, argument::text(path, "path")?)) }
}

/// Stores a file. The bytes are durable when the call returns. `options` NULL means a cache control of 3,600 seconds and
/// that an existing file is replaced.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_INVALID_INPUT` (status 400) for a malformed path,
/// option or, with `verify`, signature; `TSQ_UNAUTHORIZED` (401) for an anonymous caller and `TSQ_FORBIDDEN` (403) for a user
/// whom the policy refuses; `TSQ_NOT_FOUND` (404) for an unknown bucket; `TSQ_TOO_LARGE` (413) over the option
/// `max_file_size`; `TSQ_ALREADY_EXISTS` (409) for an existing file with `insert_only`, and when a file and a folder would
/// share a name; `TSQ_CONFLICT` (412) when `if_match` names another version; `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_upload(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    data: tsq_bytes,
    options: *const tsq_upload_options,
    out: *mut *mut tsq_file_info,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::Upload), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            let (data, options) = (argument::bytes(data, "data")?, upload_options::read(options)?);
            // Before the copy: a caller may pass a mapping that is larger than the memory.
            storage.check_upload_size(data.len() as u64, &options)?;
            Ok(record(storage.upload(bucket, path, Bytes::copy_from_slice(data), options)?))
        })
    }
}

/// Stores a file like `tsq_storage_upload` if the caller is the user `user_id`. The service may name any user.
///
/// Borrows all; returns owned in `out`, which may be NULL. For another user it fails with `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` and the sentence `Unauthorized file upload`, without prefix. Else it fails like `tsq_storage_upload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_secure_upload(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    data: tsq_bytes,
    user_id: tsq_str,
    options: *const tsq_upload_options,
    out: *mut *mut tsq_file_info,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::SecureUpload), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            let (data, options) = (argument::bytes(data, "data")?, upload_options::read(options)?);
            let user_id = argument::id(user_id, "user_id")?;
            storage.check_upload_size(data.len() as u64, &options)?;
            Ok(record(storage.secure_upload(bucket, path, Bytes::copy_from_slice(data), user_id, options)?))
        })
    }
}

/// Opens a file for writing, in bounded memory. The file changes when `tsq_file_writer_finish` returns, and not before.
///
/// Borrows all; returns owned in `out`. Fails like `tsq_storage_upload`, except for what depends on the bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_open_writer(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    options: *const tsq_upload_options,
    out: *mut *mut tsq_file_writer,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::OpenWriter), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            Ok(WriterState::new(storage.writer(bucket, path, upload_options::read(options)?)?))
        })
    }
}

/// Reads a file whole. For large files prefer `tsq_storage_open_reader`.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` (status 404) when no visible file has this path,
/// `TSQ_INVALID_INPUT` (400), `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_download(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    out: *mut *mut tsq_buffer,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::Download), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            Ok(storage.download(bucket, path)?)
        })
    }
}

/// Reads the bytes of a file from `start` to before `end`, counted from 0. An end beyond the file is the file's end;
/// `UINT64_MAX` means all the rest.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` (status 400) for a start after the end or beyond the
/// file. Else it fails like `tsq_storage_download`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_download_range(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    start: u64,
    end: u64,
    out: *mut *mut tsq_buffer,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::Download), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            Ok(storage.download_range(bucket, path, start..end)?)
        })
    }
}

/// Opens a file for reading, in bounded memory. The reader gives one version of the file.
///
/// Borrows all; returns owned in `out`. Fails like `tsq_storage_download`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_open_reader(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    out: *mut *mut tsq_file_reader,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::OpenReader), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            Ok(ReaderState::new(storage.reader(bucket, path)?))
        })
    }
}

/// Reads what is known about a file.
///
/// Borrows all; returns owned in `out`. Fails like `tsq_storage_download`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_stat(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    out: *mut *mut tsq_file_info,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::StatFile), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            Ok(record(storage.stat(bucket, path)?))
        })
    }
}

/// Writes to `out`, which may not be NULL, whether a visible file has this path; false after a failure.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` (status 404) for an unknown bucket, `TSQ_INVALID_INPUT` (400) for a malformed path,
/// `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_exists(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    out: *mut bool,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_count(Some(Operation::FileExists), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            Ok(storage.exists(bucket, path)?)
        })
    }
}

/// Lists the visible files of a bucket, ordered by the bytes of their paths: the files with a path that starts with `prefix`
/// (absent: all) and follows `after`, the last path of an earlier page (absent: the first page). The prefix may end within a name.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` (status 400) for a limit outside 1 to 1,000,
/// `TSQ_NOT_FOUND` (404) for an unknown bucket, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_list(
    client: *const tsq_client,
    bucket: tsq_str,
    prefix: tsq_str,
    limit: u32,
    after: tsq_str,
    out: *mut *mut tsq_file_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::ListFiles), out, err, || {
            let (storage, bucket) = (storage(client)?, argument::text(bucket, "bucket")?);
            let files = ListFiles::with_prefix(argument::text(prefix, "prefix")?).limit(limit);
            let files = match argument::optional_text(after, "after")? {
                Some(after) => files.after(after),
                None => files,
            };
            Ok(list(storage.list(bucket, files)?))
        })
    }
}

/// Copies a file within its bucket. The copy has the type, cache control and metadata of the source; its owner is the caller.
///
/// Borrows all; returns the copy owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` (status 404) when no visible
/// file has the path `source`; else, for `target`, like `tsq_storage_upload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_copy(
    client: *const tsq_client,
    bucket: tsq_str,
    source: tsq_str,
    target: tsq_str,
    overwrite: MaybeUninit<tsq_overwrite>,
    out: *mut *mut tsq_file_info,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::CopyFile), out, err, || {
            let (storage, bucket) = (storage(client)?, argument::text(bucket, "bucket")?);
            let (source, target) = (argument::text(source, "source")?, argument::text(target, "target")?);
            Ok(record(storage.copy(bucket, source, target, overwrite::read(overwrite)?)?))
        })
    }
}

/// Moves a file within its bucket. It keeps its owner, type, cache control and metadata.
///
/// Borrows all; returns the moved file owned in `out`, which may be NULL. Fails like `tsq_storage_copy` and
/// `tsq_storage_delete`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_move(
    client: *const tsq_client,
    bucket: tsq_str,
    source: tsq_str,
    target: tsq_str,
    overwrite: MaybeUninit<tsq_overwrite>,
    out: *mut *mut tsq_file_info,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::MoveFile), out, err, || {
            let (storage, bucket) = (storage(client)?, argument::text(bucket, "bucket")?);
            let (source, target) = (argument::text(source, "source")?, argument::text(target, "target")?);
            Ok(record(storage.move_file(bucket, source, target, overwrite::read(overwrite)?)?))
        })
    }
}

/// Deletes a file. Also cancels an upload of the caller that ended with code 08007, so that it adds no file later.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` (status 404) when no visible file has this path, `TSQ_UNAUTHORIZED` (401) for an
/// anonymous caller and `TSQ_FORBIDDEN` (403) for a user whom the policy refuses, `TSQ_INVALID_INPUT` (400), `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_delete(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::DeleteFile), err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            Ok(storage.delete(bucket, path)?)
        })
    }
}

/// Deletes the visible files of a bucket that have a path that starts with `prefix` (absent: all). Deletes 100 files at a time, in
/// the order of their paths: all of them or, if the caller may not delete one of them, none of them. Then the call fails, and
/// the files before these 100 are deleted. Writes the number of files to `out`, which may not be NULL; 0 after a failure.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` (status 401) or `TSQ_FORBIDDEN` (403) when the caller may not delete a visible
/// file, `TSQ_NOT_FOUND` (404) for an unknown bucket, `TSQ_INVALID_INPUT` (400), `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_delete_prefix(
    client: *const tsq_client,
    bucket: tsq_str,
    prefix: tsq_str,
    out: *mut u64,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_count(Some(Operation::DeletePrefix), out, err, || {
            let (storage, bucket) = (storage(client)?, argument::text(bucket, "bucket")?);
            Ok(storage.delete_prefix(bucket, argument::text(prefix, "prefix")?)?)
        })
    }
}

/// Signs a target for `tsq_storage_handle_file` that needs no session: `/BUCKET/PATH?…`. It acts for the caller of this call.
/// It ends after `expires_in_ms` (1 ms to 7 days) or up to a second later, with the caller's right, when the user gets a new
/// password or signs out everywhere, and with `tsq_storage_rotate_url_key`. `options` limits the file that a PUT may store; NULL
/// sets no limit.
///
/// Borrows all; returns owned in `out`. Fails like `tsq_storage_download` for `TSQ_URL_GET` and like `tsq_storage_upload` for
/// `TSQ_URL_PUT`: a URL is only for what the caller may do; `TSQ_INVALID_INPUT` (status 400) for another time, and for
/// `options` that set a limit with `TSQ_URL_GET`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_signed_url(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    method: MaybeUninit<tsq_url_method>,
    expires_in_ms: u64,
    options: *const tsq_url_options,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::SignUrl), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            let (method, options) = (url_method::read(method)?, url_options::read(options, expires_in_ms)?);
            Ok(Terminated::new(storage.signed_url(bucket, path, method, options)?))
        })
    }
}

/// Replaces the key of signed URLs: every URL that was signed before is refused from now on. A request that has
/// begun goes on. For the service.
///
/// Borrows `client`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for every other caller, `TSQ_INVALID_INPUT` if the key is
/// the option `url_signing_key`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_rotate_url_key(client: *const tsq_client, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_unit(Some(Operation::RotateUrlKey), err, || Ok(storage(client)?.rotate_url_key()?)) }
}

/// Finishes writes that a crash interrupted, removes bytes without a row and rows without bytes, and reports files with bytes
/// of another size or version than their row says. For the service. `tsq_client_open` finishes unfinished writes too.
///
/// Bytes that a killed writer staged are removed by the next `tsq_client_open`, if the store is a folder that no other client
/// uses; else by a repair when they are an hour old. Nothing is removed while the id in the store's `.townsquare/store` is
/// not the id that the database has recorded.
///
/// Borrows `client`; returns owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for every
/// other caller, `TSQ_CONFIG` for another object store, `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_repair(
    client: *const tsq_client,
    out: *mut *mut tsq_repair_report,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_wanted_handle(Some(Operation::Repair), out, err, || Ok(record(storage(client)?.repair()?))) }
}
