//! The tables and row operations (SPEC 2.2 to 2.7, 4.3, 4.5, 7, 8; UPSTREAM 4; DESIGN 3, 4, 9), on both engines.

mod backup;
mod callers;
mod catalog;
mod communities;
mod concurrency;
mod connecting;
mod domains;
mod errors;
mod faults;
mod fidgets;
mod hostile;
mod json;
mod migrations;
mod model;
mod paging;
mod processes;
mod registrations;
mod spaces;
