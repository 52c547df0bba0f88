//! The state of the target of a move.
//!
//! Invariant: the number of a state is its index in [`MoveTarget::ALL`] plus 1. Numbers are never reused or moved; new states
//! are added at the end.

use townsquare::MoveTarget;

use crate::boundary::text::{self, tsq_str};

/// The state of the target of a move: the result of `tsq_client_check_move`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum tsq_move_target {
    /// The call has failed: the move would be refused, or the target could not be read.
    #[default]
    TSQ_MOVE_TARGET_REFUSED = 0,
    /// There is no database yet, or it has no tables. The move makes them.
    TSQ_MOVE_TARGET_NEW = 1,
    /// A database without rows, and a store without files.
    TSQ_MOVE_TARGET_EMPTY = 2,
    /// An unfinished move from the same source, which the move continues.
    TSQ_MOVE_TARGET_UNFINISHED = 3,
}

use tsq_move_target::{TSQ_MOVE_TARGET_EMPTY, TSQ_MOVE_TARGET_NEW, TSQ_MOVE_TARGET_UNFINISHED};

/// The states in the order of [`MoveTarget::ALL`]. A new state in `ALL` does not compile until it is added here.
const STATES: [tsq_move_target; MoveTarget::ALL.len()] =
    [TSQ_MOVE_TARGET_NEW, TSQ_MOVE_TARGET_EMPTY, TSQ_MOVE_TARGET_UNFINISHED];

impl From<MoveTarget> for tsq_move_target {
    fn from(target: MoveTarget) -> tsq_move_target {
        let place = MoveTarget::ALL.iter().position(|known| *known == target);
        STATES[place.expect("ALL has every state")]
    }
}

/// The name of a state: `new`, `empty`, `unfinished`; absent for `TSQ_MOVE_TARGET_REFUSED` and for an unknown number.
///
/// Returns a view that lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn tsq_move_target_name(target: i32) -> tsq_str {
    let known = MoveTarget::ALL.into_iter().find(|known| tsq_move_target::from(*known) as i32 == target);
    text::optional_view(known.map(MoveTarget::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_order_of_the_states() {
        for (place, target) in MoveTarget::ALL.into_iter().enumerate() {
            let number = tsq_move_target::from(target);
            assert_eq!(number as usize, place + 1);
            assert_eq!(format!("{number:?}"), format!("TSQ_MOVE_TARGET_{}", target.as_str().to_uppercase()));
        }
        assert_eq!(tsq_move_target::default() as i32, 0);
    }
}
