//! What a move copies, and what it has copied.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

/// What [`Client::move_to`](crate::Client::move_to) copies.
///
/// ```
/// use townsquare::MoveOptions;
///
/// let options = MoveOptions::new().sessions(false);
/// assert_ne!(options, MoveOptions::default());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MoveOptions {
    pub(crate) sessions: bool,
    pub(crate) longest_pause: Option<Duration>,
}

impl Default for MoveOptions {
    fn default() -> MoveOptions {
        MoveOptions { sessions: true, longest_pause: None }
    }
}

impl MoveOptions {
    /// Everything is copied.
    pub fn new() -> MoveOptions {
        MoveOptions::default()
    }

    /// Whether sessions are copied, so that the users stay signed in. A session that was copied is valid in both databases, in
    /// each until it ends there.
    #[must_use]
    pub fn sessions(mut self, sessions: bool) -> MoveOptions {
        self.sessions = sessions;
        self
    }

    /// Lets others write the source while it is copied. At the end their writes wait for the last copy and comparison, at most
    /// `longest_pause`; then the source takes no writes any more, because what is written there would not be in the target.
    /// [`reopen_for_writes`](crate::Client::reopen_for_writes) allows writes again.
    ///
    /// Choose a pause that is shorter than the `busy_timeout` (SQLite) or the `operation_timeout` (PostgreSQL) of the writers and of
    /// the source: a write that waits longer fails. Above 15 seconds, uploads of large files may fail, too. The pause takes
    /// about as long as reading all rows of both databases three times.
    ///
    /// ```
    /// use std::time::Duration;
    /// use townsquare::MoveOptions;
    ///
    /// let options = MoveOptions::new().follow(Duration::from_secs(10));
    /// assert_ne!(options, MoveOptions::new());
    /// ```
    #[must_use]
    pub fn follow(mut self, longest_pause: Duration) -> MoveOptions {
        self.longest_pause = Some(longest_pause);
        self
    }
}

crate::model::named! {
    /// What the target of a move is: the result of [`Client::check_move`](crate::Client::check_move).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum MoveTarget {
        /// There is no database yet, or it has no tables. The move makes them.
        New = "new",
        /// A database without rows, and a store without files.
        Empty = "empty",
        /// An unfinished move from the same source, which the move continues.
        Unfinished = "unfinished",
    }

    /// Every state that a move accepts.
    pub const ALL;

    /// The name of the state: `new`, `empty`, `unfinished`.
    ///
    /// ```
    /// assert_eq!(townsquare::MoveTarget::Unfinished.as_str(), "unfinished");
    /// ```
    pub fn as_str;
}

/// What a move has copied, as it was verified at its end. A resumed move counts what the calls before have copied, too.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MoveReport {
    /// The number of rows by table. The tables of the library itself have no prefix: `credentials`, `identities`, `sessions`, ….
    pub rows: BTreeMap<String, u64>,
    /// The number of files.
    pub files: u64,
    /// The bytes of the files.
    pub bytes: u64,
    /// How long this call took, in seconds.
    pub seconds: f64,
    /// Whether this call continued a move that an earlier call had begun.
    pub resumed: bool,
}
