//! Which failed statements run again.
//!
//! Invariant: a statement that changes rows runs again only if the server did not run it, or undid it, or if running it twice
//! has the effect of running it once.

use super::super::{
    Effect,
    errors::{is_conflict, is_lost, is_read_only, was_cut_off, was_disconnected},
};
use crate::error::Error;

/// How often a transaction that other transactions got in the way of runs again.
const CONFLICTS: u32 = 5;

/// How often an operation connects again whose new connection the server ended before it was used.
const RECONNECTS: u32 = 3;

/// Why a statement failed.
pub(in crate::database) struct Failure {
    pub(in crate::database) error: Error,
    /// There was a connection for the statement.
    pub(in crate::database) was_begun: bool,
    /// The server may have committed the statement.
    pub(in crate::database) was_sent: bool,
    /// The connection was idle before, so the server may have closed it.
    pub(in crate::database) was_idle: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, was_begun: false, was_sent: false, was_idle: false }
    }
}

/// The retries of one operation.
pub(in crate::database) struct Retries {
    conflicts: u32,
    reconnects: u32,
    has_repeated: bool,
    has_lost_connection: bool,
}

impl Retries {
    pub(in crate::database) fn new() -> Retries {
        Retries { conflicts: 0, reconnects: 0, has_repeated: false, has_lost_connection: false }
    }

    /// Whether the last attempt lost its connection. A crash of the server ends its connections one after the other, so idle
    /// ones that still seem to work are likely to be lost next.
    pub(in crate::database) fn has_lost_connection(&self) -> bool {
        self.has_lost_connection
    }

    /// Whether a statement runs again after this failure.
    pub(in crate::database) fn allow(&mut self, failure: &Failure, effect: Effect, has_alternatives: bool) -> bool {
        self.has_lost_connection = is_lost(&failure.error);
        if self.allow_conflict(&failure.error) || !failure.was_begun && self.allow_reconnect(&failure.error) {
            return true;
        }
        let is_harmless = match effect {
            Effect::Reads | Effect::ReadsLog | Effect::IdempotentWrites => failure.was_begun && is_lost(&failure.error),
            Effect::Writes => failure.was_sent && failure.was_idle && was_disconnected(&failure.error),
        };
        let may_find_writer = has_alternatives && is_read_only(&failure.error);
        !std::mem::replace(&mut self.has_repeated, true) && (is_harmless || may_find_writer)
    }

    /// Whether a transaction runs again after this error: the server gave it up, or running it twice does no harm.
    pub(in crate::database) fn allow_transaction(&mut self, error: &Error, effect: Effect) -> bool {
        self.has_lost_connection = is_lost(error);
        let is_repeatable = effect == Effect::IdempotentWrites && self.has_lost_connection;
        self.allow_conflict(error) || is_repeatable && !std::mem::replace(&mut self.has_repeated, true)
    }

    /// Whether an operation connects again that got no connection for its statement: a server that crashes ends connections
    /// that it has just accepted. The next attempt waits until it has started again.
    pub(in crate::database) fn allow_reconnect(&mut self, error: &Error) -> bool {
        let is_allowed = was_cut_off(error) && self.reconnects < RECONNECTS;
        self.reconnects += u32::from(is_allowed);
        is_allowed
    }

    fn allow_conflict(&mut self, error: &Error) -> bool {
        let is_allowed = is_conflict(error) && self.conflicts < CONFLICTS;
        self.conflicts += u32::from(is_allowed);
        is_allowed
    }
}
