//! The options that opening a database takes.

use std::time::Duration;

use crate::{clock::Clock, config::Durability};

/// How a database is opened.
pub(crate) struct OpenOptions {
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "a PostgreSQL server sets its own durability"))]
    pub(crate) durability: Durability,
    /// SQLite: how long a statement waits for a lock. PostgreSQL: how long a call waits for a connection.
    pub(crate) busy_timeout: Duration,
    pub(crate) clock: Clock,
}
