//! The change feed (SPEC 6, DESIGN 5).

mod oracle;
mod policies;
mod postgres_feed;
mod postgres_log;
