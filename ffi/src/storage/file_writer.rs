//! Files that are being written.
//!
//! Invariant: the file changes in `tsq_file_writer_finish` and not before. A writer that is freed without it leaves
//! nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use townsquare::{Operation, blocking::FileWriter};

use crate::{
    boundary::{
        Failure, Handle, ProcessOwned, argument, call_unit, call_wanted_handle, free, handle, read, record, tsq_bytes,
        tsq_error, tsq_status,
    },
    storage::file_info::tsq_file_info,
};

/// A file that is being written. Owned, freed with `tsq_file_writer_free`.
pub struct tsq_file_writer {
    _opaque: [u8; 0],
}

/// The core's writer; `None` after it was finished or aborted.
pub(crate) struct WriterState(ProcessOwned<Mutex<Option<FileWriter>>>);

impl WriterState {
    pub(crate) fn new(writer: FileWriter) -> WriterState {
        WriterState(ProcessOwned::new(Mutex::new(Some(writer))))
    }

    /// # Errors
    /// `Closed` in a forked child.
    fn lock(&self) -> Result<MutexGuard<'_, Option<FileWriter>>, Failure> {
        Ok(self.0.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Handle for tsq_file_writer {
    type Value = WriterState;
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<WriterState>();
};

fn ended() -> Failure {
    Failure::invalid_input("The writer is finished or aborted")
}

/// Appends bytes.
///
/// Borrows all. Fails with `TSQ_TOO_LARGE` over the option `max_file_size`, `TSQ_UNAVAILABLE` when the disk is full,
/// `TSQ_INVALID_INPUT` after the writer was finished or aborted. After a failure `tsq_file_writer_finish` fails too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_writer_write(
    writer: *mut tsq_file_writer,
    data: tsq_bytes,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::OpenWriter), err, || {
            let writer = handle::required(writer.cast_const(), "writer")?;
            let data = Bytes::copy_from_slice(argument::bytes(data, "data")?);
            let mut writer = writer.lock()?;
            Ok(writer.as_mut().ok_or_else(ended)?.write_chunk(data)?)
        })
    }
}

/// Makes the written bytes the file: durable and whole when the call returns. The writer then only remains to be freed.
///
/// Borrows `writer`; returns owned in `out`, which may be NULL. Fails like `tsq_storage_upload`, and then leaves the file
/// as it was; `TSQ_UNAUTHORIZED` (401) if another user has signed in to the client since the writer was opened, or nobody is signed
/// in any more; `TSQ_INVALID_INPUT` after the writer was finished or aborted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_writer_finish(
    writer: *mut tsq_file_writer,
    out: *mut *mut tsq_file_info,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::OpenWriter), out, err, || {
            let writer = handle::required(writer.cast_const(), "writer")?.lock()?.take().ok_or_else(ended)?;
            Ok(record(writer.finish()?))
        })
    }
}

/// Discards the written bytes: the file stays as it was. Does nothing after the writer was finished or aborted.
///
/// Borrows `writer`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_writer_abort(writer: *mut tsq_file_writer) {
    // SAFETY: `writer` is NULL or live, by the manual.
    unsafe {
        read(writer.cast_const(), |writer| {
            if let Some(writer) = writer.lock().ok().and_then(|mut writer| writer.take()) {
                writer.abort();
            }
        });
    }
}

/// Frees a writer; aborts it unless it was finished. Takes `writer`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_writer_free(writer: *mut tsq_file_writer) {
    // SAFETY: `writer` is NULL or owned by the caller, by the manual.
    unsafe {
        tsq_file_writer_abort(writer);
        free(writer);
    }
}
