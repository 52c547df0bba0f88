//! The tables and row operations (SPEC 2.2 to 2.7, 4.3, 4.5, 7, 8; UPSTREAM 4; DESIGN 3, 4, 9), on both engines.

mod callers;
mod communities;
mod domains;
mod errors;
mod fidgets;
mod hostile;
mod json;
mod paging;
mod registrations;
mod spaces;
