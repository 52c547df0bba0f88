//! Large room for a while: what an index is built in, or a password hashed.
//!
//! Invariant: large room goes back to the system when it is dropped. glibc takes what is larger than 32 MiB from the
//! system each time and gives it back; of all that is smaller it may keep as much as the largest piece it ever saw
//! freed, twice over, with every thread's heap. So large room is asked for in pieces above that size: what is not
//! touched of it takes no memory.

/// glibc's `DEFAULT_MMAP_THRESHOLD_MAX`, and a page for what an allocator adds.
const GIVEN_BACK: usize = (32 << 20) + 4096;
/// Less than this is not worth a thought.
const SMALL: usize = 1 << 20;

/// An empty vector with room for `length`, and perhaps for more.
pub(crate) fn large_buffer<T>(length: usize) -> Vec<T> {
    let is_small = length.saturating_mul(size_of::<T>()) < SMALL;
    Vec::with_capacity(if is_small { length } else { length.max(GIVEN_BACK / size_of::<T>()) })
}
