//! Users of the tests: sign-up and handles.

use townsquare::{auth::Session, blocking::Client};
use townsquare_tests::test_database::TestDatabase;

/// The password of every user.
pub(super) const PASSWORD: &str = "correct horse";

/// Signs up a user; returns a session and a handle that acts for it.
pub(super) fn sign_up(db: &TestDatabase, address: &str) -> (Session, Client) {
    db.service.auth().sign_up(address, PASSWORD).expect("signed up");
    handle(db, address)
}

/// Signs a user in; returns the session and a handle that acts for it.
pub(super) fn handle(db: &TestDatabase, address: &str) -> (Session, Client) {
    let session = db.service.auth().sign_in(address, PASSWORD).expect("a session to hand out");
    let client = db.client.as_user(&session.access_token).expect("a handle");
    (session, client)
}
