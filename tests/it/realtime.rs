//! The change feed (SPEC 6, DESIGN 5).

mod events;
mod postgres_log;
