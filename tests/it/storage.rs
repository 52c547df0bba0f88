//! Files (SPEC 2.8, 4.4, 5.5, 7; DESIGN 4, 7): one contract on every store, with every limit of inline files, on both
//! engines.

mod backup;
mod conditions;
mod copies;
mod deletion;
mod files;
mod host_files;
mod paths;
mod policies;
mod repair;
mod sizes;
mod statuses;
mod town;
