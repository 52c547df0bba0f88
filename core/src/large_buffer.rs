//! Large temporary buffers whose memory returns to the operating system when they are dropped.
//!
//! Invariant: a buffer of 1 MiB or more has a capacity above glibc's largest mmap threshold. glibc maps such an
//! allocation separately and unmaps it on free; of smaller ones its heaps retain up to twice the largest freed so
//! far. Pages of the capacity that are never written take no memory.

/// glibc's `DEFAULT_MMAP_THRESHOLD_MAX` plus one page for the allocator's header.
const MMAP_THRESHOLD: usize = (32 << 20) + 4096;
/// Smaller buffers are allocated normally.
const MIN_BYTES: usize = 1 << 20;

/// Returns an empty vector with room for at least `length` items.
pub(crate) fn large_buffer<T>(length: usize) -> Vec<T> {
    let is_small = length.saturating_mul(size_of::<T>()) < MIN_BYTES;
    Vec::with_capacity(if is_small { length } else { length.max(MMAP_THRESHOLD / size_of::<T>()) })
}
