//! The tables and their operations (SPEC 2.2 to 2.7, 4.3, 4.5, 7, 8; UPSTREAM 4; DESIGN 3, 4, 9), on both engines.

mod backup;
mod callers;
mod communities;
mod concurrency;
mod connections;
mod domains;
mod errors;
mod faults;
mod fidgets;
mod file_modes;
mod hostile_input;
mod json;
mod limits;
mod malformed_rows;
mod migrations;
mod new_rows;
mod old_shell;
mod outcome_unknown;
mod paging;
mod paging_after;
mod processes;
mod random_operations;
mod registrations;
mod reliability;
mod schema;
mod spaces;
