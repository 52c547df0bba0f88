//! What the HTTP endpoints have in common (DESIGN 2, 7): discovery, files and events answer from one set of parts.

mod caller;
mod endpoints;
mod health;
