//! Which failed statements run again.
//!
//! Invariant: a statement that changes rows runs again only if the server did not run it, or undid it, or if running it twice
//! has the effect of running it once.

use super::{
    Effect,
    errors::{is_conflict, is_lost, is_read_only, was_disconnected},
};
use crate::error::Error;

/// How often a transaction that other transactions got in the way of runs again.
const CONFLICTS: u32 = 5;

/// Why a statement failed.
pub(super) struct Failure {
    pub(super) error: Error,
    /// There was a connection for the statement.
    pub(super) was_begun: bool,
    /// The server may have committed the statement.
    pub(super) was_sent: bool,
    /// The connection was idle before, so the server may have closed it.
    pub(super) was_idle: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, was_begun: false, was_sent: false, was_idle: false }
    }
}

/// The retries of one operation.
pub(super) struct Retries {
    conflicts: u32,
    has_reconnected: bool,
}

impl Retries {
    pub(super) fn new() -> Retries {
        Retries { conflicts: 0, has_reconnected: false }
    }

    /// Whether a statement runs again after this failure.
    pub(super) fn allow(&mut self, failure: &Failure, effect: Effect, has_alternatives: bool) -> bool {
        if self.allow_conflict(&failure.error) {
            return true;
        }
        let is_harmless = match effect {
            // What found no connection has tried a new one already.
            Effect::Reads | Effect::IdempotentWrites => failure.was_begun && is_lost(&failure.error),
            Effect::Writes => failure.was_sent && failure.was_idle && was_disconnected(&failure.error),
        };
        let may_find_writer = has_alternatives && is_read_only(&failure.error);
        !std::mem::replace(&mut self.has_reconnected, true) && (is_harmless || may_find_writer)
    }

    /// Whether a transaction runs again after this error: the server gave it up, or running it twice does no harm.
    pub(super) fn allow_transaction(&mut self, error: &Error, effect: Effect) -> bool {
        let is_repeatable = effect == Effect::IdempotentWrites && is_lost(error);
        self.allow_conflict(error) || is_repeatable && !std::mem::replace(&mut self.has_reconnected, true)
    }

    fn allow_conflict(&mut self, error: &Error) -> bool {
        let is_allowed = is_conflict(error) && self.conflicts < CONFLICTS;
        self.conflicts += u32::from(is_allowed);
        is_allowed
    }
}
