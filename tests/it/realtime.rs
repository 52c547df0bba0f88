//! The change feed (SPEC 6, DESIGN 5).

mod postgres_log;
