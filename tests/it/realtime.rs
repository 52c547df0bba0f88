//! The change feed (SPEC 6, DESIGN 5), on both engines.

mod callbacks;
mod callers;
mod cursors;
mod delivery;
mod events;
mod fixture;
mod live;
mod oracle;
mod policies;
mod postgres_feed;
mod postgres_log;
mod processes;
mod retention;
mod views;
