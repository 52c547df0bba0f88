//! The attempts of an operation: which of them run again, and on which server they run.
//!
//! Invariant: a statement that changes rows runs again only if the server did not run it, or undid it, or if running it twice
//! has the effect of running it once. If an attempt may have been committed, no failure of a later one hides that, except the end of
//! its session.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::{
    Effect,
    errors::{is_conflict, is_lost, is_read_only, of_write, was_cut_off, was_disconnected},
};
use crate::error::{Error, ErrorKind};

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

/// The position of no server.
const NO_SERVER: usize = usize::MAX;

/// The attempts of one operation.
pub(in crate::database) struct Retries {
    /// The position of the server in the URL. The attempt sets it while another future watches the server.
    server: AtomicUsize,
    conflicts: u32,
    reconnects: u32,
    has_repeated: bool,
    has_lost_connection: bool,
    is_in_doubt: bool,
}

impl Retries {
    pub(in crate::database) fn new() -> Retries {
        Retries {
            server: AtomicUsize::new(NO_SERVER),
            conflicts: 0,
            reconnects: 0,
            has_repeated: false,
            has_lost_connection: false,
            is_in_doubt: false,
        }
    }

    /// The server on which the attempt runs; `None` while it has no connection.
    pub(in crate::database) fn server(&self) -> Option<usize> {
        Some(self.server.load(Ordering::Relaxed)).filter(|server| *server != NO_SERVER)
    }

    pub(in crate::database) fn set_server(&self, server: Option<usize>) {
        self.server.store(server.unwrap_or(NO_SERVER), Ordering::Relaxed);
    }

    /// Whether an attempt may have been committed.
    pub(in crate::database) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// The error of the operation, whose last attempt failed with `error`. That a session has ended stays: its handle signs in again.
    pub(in crate::database) fn outcome(&self, error: Error) -> Error {
        let hides_doubt = self.is_in_doubt && error.kind() != ErrorKind::Unauthorized && !error.is_outcome_unknown();
        if hides_doubt { Error::outcome_unknown().caused_by(error) } else { error }
    }

    /// Whether the last attempt lost its connection. A crash of the server ends its connections one after the other, so idle
    /// ones that still seem to work are likely to be lost next.
    pub(in crate::database) fn has_lost_connection(&self) -> bool {
        self.has_lost_connection
    }

    /// Whether a statement runs again after this failure.
    pub(in crate::database) fn allow(&mut self, failure: &Failure, effect: Effect, has_alternatives: bool) -> bool {
        self.has_lost_connection = is_lost(&failure.error);
        self.is_in_doubt |= effect.writes() && failure.was_sent && of_write(failure.error.clone()).is_outcome_unknown();
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
        self.is_in_doubt |= error.is_outcome_unknown();
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
