//! Random operations on accounts and identity keys.

use townsquare::{ErrorKind, Operation, Uuid, auth::identity_claim};

use super::{Caller, Failure, MISSING, NOT_SIGNED_IN, Run, TAKEN, rights::Principal};

const DENIED: &str = "Database error: permission denied for table users";

/// Number of identity keys.
const KEYS: usize = 6;

impl Run<'_> {
    pub(super) fn delete_user_without_right(&mut self, caller: &Caller) {
        let (id, expected): (Uuid, Result<(), Failure>) = match caller.principal {
            Principal::Anonymous => (self.user_id(), Err((ErrorKind::Unauthorized, Some("42501"), DENIED))),
            Principal::User(_) => (self.user_id(), Err((ErrorKind::Forbidden, Some("42501"), DENIED))),
            Principal::Service => (Uuid::from_u128(7), Err(MISSING)),
        };
        self.assert_same(caller, Operation::DeleteUser, caller.client.auth().delete_user(id), expected);
    }

    /// Picks an identity key: its seed and its public half.
    pub(super) fn key(&mut self) -> (String, String) {
        let seed = format!("{:064x}", 1 + self.random.usize(..KEYS));
        let claim = identity_claim(Uuid::nil(), &seed, "nowhere", self.model.now).expect("a valid seed");
        let public = claim["publicKey"].as_str().expect("a text").to_owned();
        (seed, public)
    }

    pub(super) fn link_identity(&mut self, caller: &Caller) {
        let (seed, public) = self.key();
        let me = match caller.principal {
            Principal::User(id) => id,
            Principal::Anonymous | Principal::Service => self.user_id(),
        };
        let audience = caller.client.auth().identity_audience().expect("an audience");
        let claim = identity_claim(me, &seed, &audience, self.model.now).expect("a valid seed");
        let expected = match (caller.principal, self.model.holders.get(&public)) {
            (Principal::Anonymous | Principal::Service, _) => Err(NOT_SIGNED_IN),
            (Principal::User(_), Some(holder)) if *holder != me => Err(TAKEN),
            (Principal::User(_), _) => Ok(()),
        };
        let linked = caller.client.auth().link_identity(&claim);
        if self.agree(caller, Operation::LinkIdentity, linked, expected).is_some() {
            self.model.holders.insert(public, me);
        }
    }
}
