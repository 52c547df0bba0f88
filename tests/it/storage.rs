//! Files (SPEC 2.8, 4.4, 5.5, 7; DESIGN 7).

mod handler;
mod requests;
mod router;
mod signed_files;
mod signed_urls;
