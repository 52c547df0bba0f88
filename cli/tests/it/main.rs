//! The tests of the command: each runs `townsquare` as a process, with a SQLite database in a temporary folder; some with PostgreSQL.
#![forbid(unsafe_code)]

mod accounts;
mod admin;
#[cfg(unix)]
mod backups;
#[cfg(unix)]
mod bundle;
mod changes;
mod configuration;
mod directory;
mod files;
mod fixture;
mod host;
#[cfg(unix)]
mod large_moves;
#[cfg(unix)]
mod migrate;
mod moves;
#[cfg(unix)]
mod packaging;
#[cfg(unix)]
mod permissions;
mod progress;
#[cfg(unix)]
mod remote_backups;
mod rows;
mod serve;
#[cfg(unix)]
mod supabase;
mod usage;
