//! The options that opening a database takes.

use std::time::Duration;

use crate::{
    clock::Clock,
    config::{DatabasePooler, Durability, Secret},
};

/// How a database is opened.
pub(crate) struct OpenOptions {
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "a PostgreSQL server sets its own durability"))]
    pub(crate) durability: Durability,
    /// SQLite: how long a statement waits for a lock.
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "PostgreSQL has `operation_timeout`"))]
    pub(crate) busy_timeout: Duration,
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite has no connections to a server"))]
    pub(crate) postgres: PostgresOptions,
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite has no replicas"))]
    pub(crate) replica: Option<ReplicaOptions>,
    /// Whether the database may be created or migrated.
    pub(crate) migrate: bool,
    /// Whether a move writes the database.
    pub(crate) is_move_target: bool,
    /// Whether the database is only read, for its [`MigrationPlan`](crate::MigrationPlan).
    pub(crate) is_plan: bool,
    pub(crate) clock: Clock,
}

/// The replica of a PostgreSQL database.
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite has no replicas"))]
pub(crate) struct ReplicaOptions {
    pub(crate) url: Secret,
    /// How long a read waits until the replica has replayed what its handle has written.
    pub(crate) wait: Duration,
    /// How old at most the answer of the replica may be.
    pub(crate) max_lag: Duration,
}

/// The options of a PostgreSQL database.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite has no connections to a server"))]
pub(crate) struct PostgresOptions {
    pub(crate) pooler: DatabasePooler,
    pub(crate) max_connections: u32,
    pub(crate) operation_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_lifetime: Duration,
    pub(crate) adopt: bool,
}
