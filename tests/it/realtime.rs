//! The change feed (SPEC 6, DESIGN 5), on both engines.

mod budgets;
mod callbacks;
mod callers;
mod capture;
mod cursors;
mod delivery;
mod erasure;
mod events;
mod filters;
mod fixture;
mod foreign_json;
mod history;
mod live;
mod log_size;
mod oracle;
mod policies;
mod postgres_feed;
mod postgres_log;
mod processes;
mod readers;
mod replay;
mod retention;
mod views;
