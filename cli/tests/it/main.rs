//! The tests of the command: each runs `townsquare` as a process, with a SQLite database in a temporary folder; one with PostgreSQL.
#![forbid(unsafe_code)]

mod accounts;
mod changes;
mod configuration;
mod directory;
mod files;
mod fixture;
mod host;
mod moves;
mod rows;
mod serve;

mod usage;
