//! Connections to a PostgreSQL server: the servers of a URL, the pool, and what a connection is set to.

pub(super) mod attempt;
mod drain;
pub(super) mod pool;
pub(super) mod pool_state;
pub(super) mod pooler;
pub(in crate::database) mod principal;
pub(super) mod server_url;
pub(super) mod servers;
mod silence;
