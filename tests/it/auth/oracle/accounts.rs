//! Random operations on accounts that are refused to most, and on identity keys.

use townsquare::{ErrorKind, Operation, Uuid, blocking::wait, identity_claim};

use super::{Failure, MISSING, NOBODY, Run, TAKEN, Turn, rights::Who};

const DENIED: &str = "Database error: permission denied for table users";

/// The public halves of the seeds that [`Run::key`] picks from, in their order.
const SEEDS: usize = 6;

impl Run<'_> {
    pub(super) fn ask_to_delete_a_user(&mut self, turn: &Turn) {
        let (id, due): (Uuid, Result<(), Failure>) = match turn.who {
            Who::Nobody => (self.a_user(), Err((ErrorKind::Unauthorized, Some("42501"), DENIED))),
            Who::User(_) => (self.a_user(), Err((ErrorKind::Forbidden, Some("42501"), DENIED))),
            Who::Service => (Uuid::from_u128(7), Err(MISSING)),
        };
        self.same(turn, Operation::DeleteUser, wait(turn.client.auth().delete_user(id)), due);
    }

    /// One of a few identity keys: the seed, and the public half.
    pub(super) fn key(&mut self) -> (String, String) {
        let seed = format!("{:064x}", 1 + self.random.below(SEEDS));
        let claim = identity_claim(Uuid::nil(), &seed, self.world.now).expect("a key");
        let public = claim["publicKey"].as_str().expect("a text").to_owned();
        (seed, public)
    }

    pub(super) fn link_identity(&mut self, turn: &Turn) {
        let (seed, public) = self.key();
        let me = match turn.who {
            Who::User(id) => id,
            Who::Nobody | Who::Service => self.a_user(),
        };
        let claim = identity_claim(me, &seed, self.world.now).expect("a key");
        let due = match (turn.who, self.world.holders.get(&public)) {
            (Who::Nobody | Who::Service, _) => Err(NOBODY),
            (Who::User(_), Some(holder)) if *holder != me => Err(TAKEN),
            (Who::User(_), _) => Ok(()),
        };
        let linked = wait(turn.client.auth().link_identity(&claim));
        if self.agree(turn, Operation::LinkIdentity, linked, due).is_some() {
            self.world.holders.insert(public, me);
        }
    }
}
