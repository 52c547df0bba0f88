//! Open files: the file objects of `Storage.open` read from them and write to them.
//!
//! Invariants: a read gives the requested number of bytes, unless the file ends. A file is discarded after an
//! interrupted write, because nobody knows how many bytes were written.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyOSError,
    prelude::*,
    types::{PyBytes, PyInt},
};
use tokio::sync::{Mutex, OwnedMutexGuard};
use townsquare::{
    ErrorKind, Operation,
    storage::{FileReader, FileWriter},
};

use crate::{
    argument::BytesArg,
    client_share::ProcessClient,
    errors::Failure,
    file_info::FileInfo,
    process::ProcessOwned,
    run::{MethodResult, Mode, NoValue, Runner},
};

/// How much a small read reads ahead, and the size from which a call releases the GIL at once.
const LARGE: u64 = 256 * 1_024;

/// The number of `EINVAL` on every system that Python runs on.
const INVALID_ARGUMENT: i32 = 22;

/// A file that is being read. `file` is dropped before `runner`, so that it does not hold the last share of the client.
#[pyclass(frozen, module = "townsquare._native")]
pub(crate) struct ReadHandle {
    info: townsquare::storage::FileInfo,
    file: Arc<Mutex<ReadFile>>,
    position: Arc<AtomicU64>,
    runner: Runner,
}

/// A reader with the bytes that it has read ahead: those from `ahead_start` on.
struct ReadFile {
    reader: ProcessOwned<FileReader>,
    ahead_start: u64,
    ahead: Bytes,
}

impl ReadFile {
    /// The bytes of a range inside the file.
    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, Failure> {
        let Some(reader) = self.reader.get_mut() else { return Err(discarded()) };
        // The bytes may have been read ahead before the client was closed.
        reader.require_open()?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let is_ahead = |ahead_start: u64, ahead: &Bytes| {
            range.start >= ahead_start && range.end <= ahead_start + ahead.len() as u64
        };
        if !is_ahead(self.ahead_start, &self.ahead) {
            if range.end - range.start >= LARGE {
                return Ok(reader.read_at(range).await?);
            }
            let end = reader.info().size.min(range.start + LARGE);
            self.ahead = reader.read_at(range.start..end).await?;
            self.ahead_start = range.start;
        }
        let slice = |position: u64| usize::try_from(position - self.ahead_start).unwrap_or(usize::MAX);
        Ok(self.ahead.slice(slice(range.start)..slice(range.end).min(self.ahead.len())))
    }
}

#[pymethods]
impl ReadHandle {
    /// What is known about the version that is read.
    #[getter]
    fn info(&self) -> FileInfo {
        FileInfo::from(self.info.clone())
    }

    /// Reads `size` bytes, or all that are left, and moves the position.
    fn read<'py>(&self, py: Python<'py>, size: Option<i64>) -> MethodResult<'py> {
        let wanted = size.and_then(|size| u64::try_from(size).ok()).unwrap_or(u64::MAX);
        self.read_at_position(py, wanted, true)
    }

    /// Returns bytes that follow the position, without moving it: none at the end, else at least one.
    fn peek<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.read_at_position(py, 1, false)
    }

    /// Moves the position as `io.IOBase.seek` does and returns it.
    fn seek(&self, offset: i64, whence: i64) -> PyResult<u64> {
        let base = match whence {
            0 => 0,
            1 => self.tell(),
            2 => self.info.size,
            _ => return Err(PyOSError::new_err((INVALID_ARGUMENT, "whence is 0, 1 or 2"))),
        };
        let Some(position) = base.checked_add_signed(offset) else {
            return Err(PyOSError::new_err((INVALID_ARGUMENT, "the position is before the beginning of the file")));
        };
        self.position.store(position, Ordering::SeqCst);
        Ok(position)
    }

    /// The position.
    fn tell(&self) -> u64 {
        self.position.load(Ordering::SeqCst)
    }

    /// Ends reading.
    fn close<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        let file = Arc::clone(&self.file);
        self.runner.run(py, "close", |client| async move {
            // In a child process the reader is the parent's.
            if client.get().is_ok() {
                drop(file.lock().await.reader.take());
            }
            Ok(NoValue)
        })
    }
}

impl ReadHandle {
    fn read_at_position<'py>(&self, py: Python<'py>, wanted: u64, moves: bool) -> MethodResult<'py> {
        let (file, position, size) = (Arc::clone(&self.file), Arc::clone(&self.position), self.info.size);
        let read = move |client: Arc<ProcessClient>| async move {
            // Fails in a child process.
            client.get()?;
            let mut file = file.lock_owned().await;
            let start = position.load(Ordering::SeqCst).min(size);
            if !moves {
                file.read(start..size.min(start + wanted)).await?;
                let ahead = usize::try_from(start - file.ahead_start).unwrap_or(usize::MAX);
                return Ok(ReadBytes { bytes: file.ahead.slice(ahead.min(file.ahead.len())..), moves: None });
            }
            let bytes = file.read(start..size.min(start.saturating_add(wanted))).await?;
            Ok(ReadBytes { bytes, moves: Some((position, file)) })
        };
        if wanted < LARGE {
            self.runner.run(py, Operation::OpenReader, read)
        } else {
            self.runner.run_detached(py, Operation::OpenReader, read)
        }
    }
}

/// A file that is being written. `writer` is dropped before `runner`, so that it does not hold the last share of the client.
#[pyclass(frozen, module = "townsquare._native")]
pub(crate) struct WriteHandle {
    writer: Arc<Mutex<ProcessOwned<FileWriter>>>,
    written: Arc<AtomicU64>,
    runner: Runner,
}

#[pymethods]
impl WriteHandle {
    /// Appends bytes and returns how many.
    fn write<'py>(&self, py: Python<'py>, data: BytesArg) -> MethodResult<'py> {
        let data = data.shared();
        let (writer, written, size) = (Arc::clone(&self.writer), Arc::clone(&self.written), data.len() as u64);
        let write = move |client: Arc<ProcessClient>| async move {
            // Fails in a child process.
            client.get()?;
            let mut slot = writer.lock_owned().await;
            // Cancelling the call drops the writer, which discards the file.
            let mut writer = slot.take().ok_or_else(discarded)?;
            match writer.write(data).await {
                Ok(()) => Ok(WrittenBytes { slot, writer, written, size }),
                Err(error) => {
                    slot.put(writer);
                    Err(error.into())
                }
            }
        };
        if size < LARGE {
            self.runner.run(py, Operation::OpenWriter, write)
        } else {
            self.runner.run_detached(py, Operation::OpenWriter, write)
        }
    }

    /// The number of bytes that were written.
    fn tell(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    /// Makes the written bytes the file.
    fn finish<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        let writer = Arc::clone(&self.writer);
        self.runner.run_write(py, Operation::OpenWriter, |client| async move {
            client.get()?;
            let writer = writer.lock().await.take().ok_or_else(discarded)?;
            Ok(FileInfo::from(writer.finish().await?))
        })
    }

    /// Discards the written bytes. A second call does nothing.
    fn discard<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        let writer = Arc::clone(&self.writer);
        self.runner.run_detached(py, Operation::OpenWriter, |client| async move {
            // In a child process the writer is the parent's.
            if client.get().is_ok()
                && let Some(writer) = writer.lock().await.take()
            {
                writer.abort().await;
            }
            Ok(NoValue)
        })
    }
}

/// The failure of a call on a file that was closed meanwhile, or that was discarded after an interrupted write.
fn discarded() -> Failure {
    Failure::new(ErrorKind::Closed, "The file is closed, or was discarded because a write was interrupted")
}

/// An open file that becomes the file object of its runner's mode.
pub(crate) enum NewFile {
    Reader(FileReader, Runner),
    Writer(FileWriter, Runner),
}

impl<'py> IntoPyObject<'py> for NewFile {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> MethodResult<'py> {
        let (handle, mode, names) = match self {
            NewFile::Reader(reader, runner) => {
                let (info, mode) = (reader.info().clone(), runner.mode());
                let file = ReadFile { reader: ProcessOwned::new(reader), ahead_start: 0, ahead: Bytes::new() };
                let (file, position) = (Arc::new(Mutex::new(file)), Arc::default());
                let handle = ReadHandle { info, file, position, runner };
                (handle.into_bound_py_any(py)?, mode, ["FileReader", "AsyncFileReader"])
            }
            NewFile::Writer(writer, runner) => {
                let mode = runner.mode();
                let writer = Arc::new(Mutex::new(ProcessOwned::new(writer)));
                let handle = WriteHandle { writer, written: Arc::default(), runner };
                (handle.into_bound_py_any(py)?, mode, ["FileWriter", "AsyncFileWriter"])
            }
        };
        let name = match mode {
            Mode::Sync => names[0],
            Mode::Async => names[1],
        };
        py.import("townsquare._files")?.getattr(name)?.call1((handle,))
    }
}

/// Bytes that were read. The position moves when the program gets them: a call that is cancelled reads nothing.
struct ReadBytes {
    bytes: Bytes,
    /// The position, and the file, which nobody else reads meanwhile.
    moves: Option<(Arc<AtomicU64>, OwnedMutexGuard<ReadFile>)>,
}

impl<'py> IntoPyObject<'py> for ReadBytes {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Self::Error> {
        if let Some((position, _)) = &self.moves {
            position.fetch_add(self.bytes.len() as u64, Ordering::SeqCst);
        }
        Ok(PyBytes::new(py, &self.bytes))
    }
}

/// Bytes that were written. The writer goes back when the program learns it: a call that is cancelled discards the file.
struct WrittenBytes {
    slot: OwnedMutexGuard<ProcessOwned<FileWriter>>,
    writer: FileWriter,
    written: Arc<AtomicU64>,
    size: u64,
}

impl<'py> IntoPyObject<'py> for WrittenBytes {
    type Target = PyInt;
    type Output = Bound<'py, PyInt>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Bound<'py, PyInt>, Self::Error> {
        let WrittenBytes { mut slot, writer, written, size } = self;
        slot.put(writer);
        written.fetch_add(size, Ordering::SeqCst);
        size.into_pyobject(py)
    }
}

/// The content of a file as a `bytes` object.
pub(crate) struct PyContent(pub(crate) Bytes);

impl<'py> IntoPyObject<'py> for PyContent {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Self::Error> {
        Ok(PyBytes::new(py, &self.0))
    }
}
