//! Files (SPEC 2.8, 4.4, 5.5, 7; DESIGN 4, 7): one contract on every store, with every limit of inline files, on both
//! engines; files over HTTP; signed files.

mod backup;
mod conditions;
mod content;
mod copies;
mod deletion;
mod faults;
mod files;
mod fixture;
mod handler;
mod host_files;
mod kills;
mod memory;
mod overlaps;
mod paths;
mod policies;
mod power_loss;
mod repair;
mod requests;
mod router;
mod signed_files;
mod signed_urls;
mod sizes;
mod statuses;
mod store_id;
mod writers;
