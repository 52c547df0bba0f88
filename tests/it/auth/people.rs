//! People who sign up, and handles that act for them.

use townsquare::{Client, Session, blocking::wait};
use townsquare_tests::store::Store;

/// Everybody's.
pub(super) const PASSWORD: &str = "correct horse";

/// A new user: the session, and a handle that acts for it.
pub(super) fn sign_up(store: &Store, address: &str) -> (Session, Client) {
    wait(store.service.auth().sign_up(address, PASSWORD)).expect("signed up");
    handle(store, address)
}

/// A new session of a user, and a handle that acts for it.
pub(super) fn handle(store: &Store, address: &str) -> (Session, Client) {
    let session = wait(store.service.auth().sign_in(address, PASSWORD)).expect("a session to hand out");
    let client = wait(store.client.as_user(&session.access_token)).expect("a handle");
    (session, client)
}
