//! The block memory of a password hash, which returns to the operating system when it is freed.
//!
//! Invariant: the memory has a capacity above glibc's largest mmap threshold. glibc maps such an allocation separately and
//! unmaps it on free; of smaller ones its heaps retain up to twice the largest freed so far. Pages of the capacity that
//! are never written take no memory.

use argon2::Block;

use crate::error::{Error, ErrorKind, Result};

/// glibc's `DEFAULT_MMAP_THRESHOLD_MAX` plus one page for the allocator's header.
const MMAP_THRESHOLD: usize = (32 << 20) + 4096;

/// Returns `count` blocks.
///
/// # Errors
/// `Unavailable` (53200) if the system has too little memory.
pub(super) fn blocks(count: usize) -> Result<Vec<Block>> {
    let capacity = count.max(MMAP_THRESHOLD / size_of::<Block>());
    let mut blocks = Vec::new();
    blocks.try_reserve_exact(capacity).map_err(|error| {
        let mebibytes = capacity.saturating_mul(size_of::<Block>()) >> 20;
        let message = format!("out of memory: cannot allocate {mebibytes} MiB");
        Error::database(Some("53200"), ErrorKind::Unavailable, message).caused_by(error)
    })?;
    blocks.resize(count, Block::default());
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_blocks_are_out_of_memory() {
        let error = blocks(usize::MAX / 2048).expect_err("no machine has that");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("53200")));
        assert!(blocks(1).expect("32 MiB").capacity() > 1 << 15);
    }
}
