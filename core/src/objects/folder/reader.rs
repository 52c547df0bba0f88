//! Reading an object of a folder from one open file.
//!
//! Invariant: the file stays the same while it is open, because an overwrite renames another file to its name.

use std::{fs::File, io, ops::Range, sync::Arc};

use bytes::Bytes;

use super::{Folder, failure::failed, version};
use crate::error::Result;

#[derive(Debug)]
pub(in crate::objects) struct FolderReader {
    folder: Folder,
    file: Arc<File>,
    pub(in crate::objects) size: u64,
    /// The version in the extended attribute of the file.
    pub(in crate::objects) version: Option<String>,
}

impl FolderReader {
    /// Reads from a file of this size.
    pub(super) fn new(folder: Folder, file: File, size: u64) -> FolderReader {
        let version = version::read(&file);
        FolderReader { folder, file: Arc::new(file), size, version }
    }

    /// Reads a range, which is clipped to the size.
    pub(in crate::objects) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let end = range.end.min(self.size);
        let (file, range) = (Arc::clone(&self.file), range.start.min(end)..end);
        self.folder.run(move |_| read_at(&file, range).map_err(failed)).await
    }
}

#[cfg(unix)]
fn read_at(file: &File, range: Range<u64>) -> io::Result<Bytes> {
    let length = length_of(&range)?;
    // `pread` fills memory that is not filled with zeros first, unlike `FileExt::read_at`.
    let mut buffer: Vec<u8> = Vec::with_capacity(length);
    while buffer.len() < length {
        let position = range.start + buffer.len() as u64;
        match rustix::io::pread(file, rustix::buffer::spare_capacity(&mut buffer), position) {
            Ok(0) => return Err(io::Error::other("the file changed its size while it was read")),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The vector may have more room than it was asked for.
    buffer.truncate(length);
    Ok(buffer.into())
}

#[cfg(not(unix))]
fn read_at(file: &File, range: Range<u64>) -> io::Result<Bytes> {
    let mut buffer = vec![0; length_of(&range)?];
    let file = cap_std::fs::File::from_std(file.try_clone()?);
    cap_std::fs::FileExt::read_exact_at(&file, &mut buffer, range.start)?;
    Ok(buffer.into())
}

fn length_of(range: &Range<u64>) -> io::Result<usize> {
    usize::try_from(range.end - range.start).map_err(|_| io::ErrorKind::OutOfMemory.into())
}
