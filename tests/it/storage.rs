//! Files (SPEC 2.8, 4.4, 5.5, 7; DESIGN 4, 7): one contract on every store, with every limit of inline files, on both
//! engines; files over HTTP; signed files.

mod backup;
mod claimed_ids;
mod conditions;
mod content;
mod copies;
mod database_copies;
mod deletion;
mod descriptors;
mod faults;
mod files;
mod fixture;
mod forged_rows;
mod handler;
mod host_files;
mod in_doubt;
mod kills;
mod memory;
mod moments;
mod overlaps;
mod paths;
mod policies;
mod power_loss;
mod quotas;
mod remote_writers;
mod repair;
mod requests;
mod restores;
mod router;
mod signed_files;
mod signed_urls;
mod sizes;
mod statuses;
mod store_id;
mod ticks;
mod writers;
