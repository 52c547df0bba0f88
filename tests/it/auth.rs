//! Sign-in, sessions and what they open (SPEC 5, DESIGN 4 and 8), on both engines.

mod accounts;
mod claims;
mod hidden;
mod hostile;
mod keeping;
mod many;
mod mixed;
mod oracle;
mod people;
mod postgres;
mod secrets;
mod sessions;
