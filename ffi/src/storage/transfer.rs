//! Files that are streamed between the file store and the host: a file of the host, or callbacks.
//!
//! Invariant: a transfer that a callback cancels leaves nothing.

use std::ffi::c_void;

use townsquare::Operation;

use crate::{
    boundary::{
        ReadCallback, WriteCallback, argument, call_count, call_wanted_handle, progress, record, tsq_error,
        tsq_progress_callback, tsq_read_callback, tsq_status, tsq_str, tsq_write_callback,
    },
    client::tsq_client,
    storage::{
        file_info::tsq_file_info,
        upload_options::{self, tsq_upload_options},
    },
    storage::{place, storage},
};

/// The size of the buffer that a read callback fills.
const CHUNK: usize = 64 * 1024;

/// Stores the file `source` of the host, in bounded memory. Calls `progress` (may be NULL) with the bytes that were read
/// and the size of the source; it may cancel.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_INVALID_INPUT` (status 400) when `source` cannot
/// be read, `TSQ_CANCELLED`, and like `tsq_storage_upload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_upload_from(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    source: tsq_str,
    options: *const tsq_upload_options,
    progress: tsq_progress_callback,
    user_data: *mut c_void,
    out: *mut *mut tsq_file_info,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::UploadFrom), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            let (source, options) = (argument::text(source, "source")?, upload_options::read(options)?);
            let progress = progress::progress(progress, user_data);
            Ok(record(storage.upload_from(bucket, path, source, options, progress)?))
        })
    }
}

/// Stores what `source` gives, in bounded memory: calls it until it gives no bytes.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_CANCELLED`, and like `tsq_storage_upload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_upload_stream(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    source: tsq_read_callback,
    user_data: *mut c_void,
    options: *const tsq_upload_options,
    out: *mut *mut tsq_file_info,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::OpenWriter), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            let options = upload_options::read(options)?;
            let source = ReadCallback::new(source, user_data)?;
            let mut writer = storage.writer(bucket, path, options)?;
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = match source.read(&mut chunk) {
                    Ok(read) => read,
                    Err(failure) => {
                        writer.abort();
                        return Err(failure);
                    }
                };
                if read == 0 {
                    return Ok(record(writer.finish()?));
                }
                chunk.truncate(read);
                writer.write_chunk(chunk.into())?;
            }
        })
    }
}

/// Writes a file to `target` on the host, in bounded memory. `target` is whole and durable when the call returns; after a
/// failure it is as before. A new file is for its owner only; an existing file keeps its permissions; of a symbolic link,
/// the file that it names is replaced. Calls `progress` (may be NULL) with the bytes that were written and the size; it may
/// cancel.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_INVALID_INPUT` (status 400) when `target` cannot
/// be written, or is a folder, a device, a pipe, or a symbolic link to such or to nothing; `TSQ_CANCELLED`; and like
/// `tsq_storage_download`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_download_to(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    target: tsq_str,
    progress: tsq_progress_callback,
    user_data: *mut c_void,
    out: *mut *mut tsq_file_info,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::DownloadTo), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            let target = argument::text(target, "target")?;
            let progress = progress::progress(progress, user_data);
            Ok(record(storage.download_to(bucket, path, target, progress)?))
        })
    }
}

/// Gives a file to `target`, in bounded memory: one version of the file, in pieces and in order.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_CANCELLED`, and like `tsq_storage_download`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_download_stream(
    client: *const tsq_client,
    bucket: tsq_str,
    path: tsq_str,
    target: tsq_write_callback,
    user_data: *mut c_void,
    out: *mut *mut tsq_file_info,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::OpenReader), out, err, || {
            let (storage, (bucket, path)) = (storage(client)?, place(bucket, path)?);
            let target = WriteCallback::new(target, user_data)?;
            let mut reader = storage.reader(bucket, path)?;
            while let Some(chunk) = reader.next_chunk()? {
                target.write(&chunk)?;
            }
            Ok(record(reader.info().clone()))
        })
    }
}

/// Writes every file to `TARGET/BUCKET/PATH` on the host, for people and other tools, and their number to `out`: the files
/// of every bucket that was ever declared. For the service. Calls `progress` (may be NULL) with the files that were written and the number of all; it may cancel, which
/// leaves the files that were written.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for every other caller; `TSQ_INVALID_INPUT` (status 400)
/// when `target` is not a new or empty folder or cannot be written; `TSQ_INTERNAL` (status 500) when the bytes of files are
/// gone or of another size: the message names them, and all others are exported; `TSQ_CANCELLED`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_export_files(
    client: *const tsq_client,
    target: tsq_str,
    progress: tsq_progress_callback,
    user_data: *mut c_void,
    out: *mut u64,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_count(Some(Operation::ExportFiles), out, err, || {
            let (storage, target) = (storage(client)?, argument::text(target, "target")?);
            Ok(storage.export_files(target, progress::progress(progress, user_data))?)
        })
    }
}
