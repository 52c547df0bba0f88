//! Large temporary buffers whose memory returns to the operating system when they are dropped.
//!
//! Invariant: a buffer of 1 MiB or more has a capacity above glibc's largest mmap threshold. glibc maps such an
//! allocation separately and unmaps it on free; of smaller ones its heaps retain up to twice the largest freed so
//! far. Pages of the capacity that are never written take no memory. With ordinary vectors, a catalog of 100,000 apps
//! takes 20 MB more.

use crate::error::{Error, ErrorKind, Result};

/// glibc's `DEFAULT_MMAP_THRESHOLD_MAX` plus one page for the allocator's header.
const MMAP_THRESHOLD: usize = (32 << 20) + 4096;
/// Smaller buffers are allocated normally.
const MIN_BYTES: usize = 1 << 20;

/// Returns an empty vector with room for at least `length` items.
///
/// # Errors
/// `Unavailable` (53200) if the system has too little memory.
pub(crate) fn large_buffer<T>(length: usize) -> Result<Vec<T>> {
    let is_small = length.saturating_mul(size_of::<T>()) < MIN_BYTES;
    let capacity = if is_small { length } else { length.max(MMAP_THRESHOLD / size_of::<T>()) };
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(capacity).map_err(|error| {
        let mebibytes = capacity.saturating_mul(size_of::<T>()) >> 20;
        let message = format!("out of memory: cannot allocate {mebibytes} MiB");
        Error::database(Some("53200"), ErrorKind::Unavailable, message).caused_by(error)
    })?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_large_a_buffer_is_out_of_memory() {
        let error = large_buffer::<u64>(usize::MAX / 16).expect_err("no machine has that");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("53200")));
        assert!(large_buffer::<u64>(1 << 20).expect("32 MiB").capacity() > 1 << 20);
    }
}
