//! The check that refuses a catalog which lost most of its apps at once: probably a failure of the upstream.

use crate::error::{Error, Result};

/// Compares the size of a list with its previous size. `list` names it in the error.
///
/// # Errors
/// `Unavailable` if the list has collapsed.
pub(super) fn refuse_collapse(list: &str, before: usize, after: usize) -> Result<()> {
    if !has_collapsed(before, after) {
        return Ok(());
    }
    Err(Error::unavailable(format!(
        "The {list} fell from {before} to {after} apps; the old one is kept, a forced refresh takes the new one"
    )))
}

/// True for a fall to zero, and for a fall to under half of 50 or more apps (DESIGN 6).
fn has_collapsed(before: usize, after: usize) -> bool {
    const MIN_GUARDED: usize = 50;
    (before > 0 && after == 0) || (before >= MIN_GUARDED && after * 2 < before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fall_under_half_of_fifty_or_to_zero_is_a_collapse() {
        assert!(has_collapsed(691, 99) && has_collapsed(50, 24) && has_collapsed(3, 0));
        assert!(!has_collapsed(50, 25) && !has_collapsed(49, 1) && !has_collapsed(0, 0));
    }
}
