//! The check of a client: what it finds, what it leaves alone, and that it changes nothing.

mod database;
mod files;
mod fixture;
mod healthy;
mod host;
mod postgres;
mod replication;
