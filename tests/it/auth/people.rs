//! People who sign up, and handles that act for them.

use townsquare::{Client, auth::Session, blocking::wait};
use townsquare_tests::test_database::TestDatabase;

/// Everybody's.
pub(super) const PASSWORD: &str = "correct horse";

/// A new user: the session, and a handle that acts for it.
pub(super) fn sign_up(db: &TestDatabase, address: &str) -> (Session, Client) {
    wait(db.service.auth().sign_up(address, PASSWORD)).expect("signed up");
    handle(db, address)
}

/// A new session of a user, and a handle that acts for it.
pub(super) fn handle(db: &TestDatabase, address: &str) -> (Session, Client) {
    let session = wait(db.service.auth().sign_in(address, PASSWORD)).expect("a session to hand out");
    let client = wait(db.client.as_user(&session.access_token)).expect("a handle");
    (session, client)
}
