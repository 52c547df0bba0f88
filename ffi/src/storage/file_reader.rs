//! Files that are being read.
//!
//! Invariant: every byte is of the version that `tsq_file_reader_info` describes.

use std::sync::{PoisonError, RwLock};

use bytes::Bytes;
use townsquare::{Operation, blocking::FileReader};

use crate::{
    boundary::{
        Destination, Failure, Handle, Nested, OwnedRecord, ProcessOwned, argument, call_count, free, handle, read,
        record, tsq_error, tsq_status,
    },
    storage::file_info::tsq_file_info,
};

/// A file that is being read: one version from beginning to end, also while others overwrite or delete it. Owned, freed
/// with `tsq_file_reader_free`.
pub struct tsq_file_reader {
    _opaque: [u8; 0],
}

/// What the reader shows, and the core's reader.
pub(crate) struct ReaderState {
    info: Nested<OwnedRecord<tsq_file_info>>,
    position: ProcessOwned<RwLock<Position>>,
}

/// The core's reader at its position: the bytes of `chunk` come next.
struct Position {
    reader: FileReader,
    chunk: Bytes,
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<RwLock<Position>>();
};

impl ReaderState {
    pub(crate) fn new(reader: FileReader) -> ReaderState {
        let info = record(reader.info().clone()).into();
        ReaderState { info, position: ProcessOwned::new(RwLock::new(Position { reader, chunk: Bytes::new() })) }
    }
}

impl Position {
    fn read(&mut self, destination: &Destination) -> Result<usize, Failure> {
        // The chunk may have been read before the client was closed.
        self.reader.require_open()?;
        fill(&mut self.chunk, destination, || Ok(self.reader.next_chunk()?))
    }
}

/// Fills `destination` with what is left of `chunk`, else with the next chunk. Returns the number of bytes; 0 is the end.
pub(crate) fn fill(
    chunk: &mut Bytes,
    destination: &Destination,
    mut next: impl FnMut() -> Result<Option<Bytes>, Failure>,
) -> Result<usize, Failure> {
    while chunk.is_empty() && destination.len() > 0 {
        match next()? {
            Some(bytes) => *chunk = bytes,
            None => return Ok(0),
        }
    }
    let filled = destination.fill(chunk);
    drop(chunk.split_to(filled));
    Ok(filled)
}

impl Handle for tsq_file_reader {
    type Value = ReaderState;
}

/// What is known about the version that the reader gives; NULL for NULL.
///
/// Borrows `reader`; returns a view that lives as long as `reader`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_reader_info(reader: *const tsq_file_reader) -> *const tsq_file_info {
    // SAFETY: `reader` is NULL or live, by the manual.
    unsafe { read(reader, |reader| reader.info.view()) }
}

/// Reads the next bytes, up to `len`, into `buffer` and moves on. Writes their number to `out`; 0 is the end. A call may
/// give fewer bytes than `len` before the end.
///
/// Borrows all. Fails with `TSQ_UNAVAILABLE` or `TSQ_INTERNAL` when the file store fails, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_reader_read(
    reader: *mut tsq_file_reader,
    buffer: *mut u8,
    len: usize,
    out: *mut usize,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_count(Some(Operation::OpenReader), out, err, || {
            let reader = handle::required(reader.cast_const(), "reader")?;
            let destination = argument::destination(buffer, len, "buffer")?;
            reader.position.get()?.write().unwrap_or_else(PoisonError::into_inner).read(&destination)
        })
    }
}

/// Reads the bytes from `offset`, counted from 0, into `buffer`: `len` of them, or fewer at the end of the file. Writes their
/// number to `out`. The position of `tsq_file_reader_read` does not change.
///
/// Borrows all. Fails with `TSQ_INVALID_INPUT` for an offset beyond the size, and like `tsq_file_reader_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_reader_read_at(
    reader: *const tsq_file_reader,
    offset: u64,
    buffer: *mut u8,
    len: usize,
    out: *mut usize,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_count(Some(Operation::OpenReader), out, err, || {
            let reader = handle::required(reader, "reader")?;
            let destination = argument::destination(buffer, len, "buffer")?;
            let end = offset.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
            let position = reader.position.get()?.read().unwrap_or_else(PoisonError::into_inner);
            Ok(destination.fill(&position.reader.read_at(offset..end)?))
        })
    }
}

/// Frees a reader. Takes `reader`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_reader_free(reader: *mut tsq_file_reader) {
    // SAFETY: `reader` is NULL or owned by the caller, by the manual.
    unsafe { free(reader) }
}
