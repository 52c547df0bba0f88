//! Accounts, sessions and rights (SPEC 5, DESIGN 4 and 8), on both engines.

mod accounts;
mod client_keys;
mod concurrent_callers;
mod ended_sessions;
mod erasure;
mod given_ids;
mod hidden_rows;
mod hostile_input;
mod identity_claims;
mod import;
mod limits;
mod lost_replies;
mod many_users;
mod postgres;
mod random_operations;
mod recovery;
mod secrets;
mod service_lists;
mod service_operations;
mod session_file;
mod sessions;
mod sessions_of;
mod spellings;
mod users;
