//! The users of a run, and the choice of a caller for each operation.

use townsquare::{Operation, Uuid, blocking::Client, config::Durability};

use super::{Caller, MISSING, Mix, Run, files::with_files, rights::Principal};

const PASSWORD: &str = "correct horse";

/// A user with an account and a handle.
pub(super) struct SignedUpUser {
    pub(super) id: Uuid,
    pub(super) client: Client,
    /// True for a client that signed in, false for an `as_user` handle.
    owns_client: bool,
}

impl Run<'_> {
    /// Creates five users: accounts that call, or for [`Mix::Tables`] rows that own spaces.
    pub(super) fn create_users(&mut self) {
        for number in 0..5 {
            match self.mix {
                Mix::Tables => {
                    let id = self.db.user();
                    self.model
                        .addresses
                        .insert(id, self.db.raw.value(&format!("SELECT email FROM users WHERE id = '{id}'")));
                }
                Mix::AllCallers => self.sign_up(number),
            }
        }
        if self.mix == Mix::AllCallers {
            self.sign_out(4);
        }
    }

    /// Signs up a user with the address of this number. A new user may get the address of a deleted one.
    fn sign_up(&mut self, number: usize) {
        let address = format!("user-{number}@town.example");
        let user = self.db.service.auth().sign_up(&address, PASSWORD).expect("signed up");
        assert!(self.model.addresses.insert(user.id, address.clone()).is_none(), "ids are new");
        let client = match self.users.get(number) {
            Some(user) if user.owns_client => user.client.clone(),
            // Two of the five have clients of their own.
            None if number < 2 => {
                let config = with_files(self.db.config().durability(Durability::Normal), self.folder);
                Client::open(config).expect("a valid database opens")
            }
            _ => self.as_user(&address),
        };
        let owns_client = number < 2;
        if owns_client {
            client.auth().sign_in(&address, PASSWORD).expect("signed in");
        }
        let user = SignedUpUser { id: user.id, client, owns_client };
        if number < self.users.len() {
            self.users[number] = user;
        } else {
            self.users.push(user);
        }
    }

    fn as_user(&self, address: &str) -> Client {
        let session = self.db.service.auth().sign_in(address, PASSWORD).expect("a session");
        self.db.client.as_user(&session.access_token).expect("a handle")
    }

    fn service(&self) -> Caller {
        Caller { principal: Principal::Service, client: self.db.service.clone(), has_ended: false }
    }

    fn anonymous(&self) -> Caller {
        Caller { principal: Principal::Anonymous, client: self.db.client.clone(), has_ended: false }
    }

    /// Returns all users, the anonymous caller and the service.
    pub(super) fn all_callers(&self) -> Vec<Caller> {
        let users = self.users.iter().map(|user| Caller {
            principal: Principal::User(user.id),
            client: user.client.clone(),
            has_ended: false,
        });
        users.chain([self.anonymous(), self.service()]).collect()
    }

    /// Picks a caller.
    pub(super) fn caller(&mut self) -> Caller {
        if self.mix == Mix::Tables {
            return if self.percent(85) { self.service() } else { self.anonymous() };
        }
        match self.random.u32(..100) {
            0..=11 => self.anonymous(),
            12..=32 => self.service(),
            33..=39 if !self.ended.is_empty() => {
                let (id, client) = &self.ended[self.random.usize(..self.ended.len())];
                Caller { principal: Principal::User(*id), client: client.clone(), has_ended: true }
            }
            _ => {
                let user = &self.users[self.random.usize(..self.users.len())];
                Caller { principal: Principal::User(user.id), client: user.client.clone(), has_ended: false }
            }
        }
    }

    /// Replaces two of three callers by the service, for operations that only the service may do.
    pub(super) fn mostly_service(&mut self, caller: Caller) -> Caller {
        if self.mix == Mix::Tables || self.percent(33) { caller } else { self.service() }
    }

    fn keep_ended(&mut self, id: Uuid, client: Client) {
        self.ended.push((id, client));
        if self.ended.len() > 3 {
            self.ended.remove(0);
        }
    }

    fn user(&self, number: usize) -> (Uuid, Client, bool) {
        let user = &self.users[number];
        (user.id, user.client.clone(), user.owns_client)
    }

    /// Ends a user's session: a client of its own becomes anonymous, a handle fails. Then signs the user in again.
    pub(super) fn sign_out(&mut self, number: usize) {
        let (id, client, owns_client) = self.user(number);
        client.auth().sign_out().expect("signed out");
        let principal = if owns_client { Principal::Anonymous } else { Principal::User(id) };
        self.read(&Caller { principal, client: client.clone(), has_ended: !owns_client });
        let address = self.model.addresses[&id].clone();
        if owns_client {
            client.auth().sign_in(&address, PASSWORD).expect("signed in");
        } else {
            self.keep_ended(id, client);
            self.users[number].client = self.as_user(&address);
        }
    }

    /// Deletes a user, by the service or by the user, and signs up another with the same address.
    pub(super) fn delete_user(&mut self) {
        let number = self.random.usize(..self.users.len());
        let (id, client, owns_client) = self.user(number);
        let service = self.service();
        let deleted = if owns_client && self.percent(50) {
            client.auth().delete_own_user(PASSWORD)
        } else {
            service.client.auth().delete_user(id)
        };
        self.assert_same(&service, Operation::DeleteUser, deleted, Ok(()));
        self.model.delete_user(id);
        if !owns_client {
            self.keep_ended(id, client);
        }
        // The new user must see nothing of the deleted one.
        self.sign_up(number);
        let again = service.client.auth().delete_user(id);
        self.assert_same(&service, Operation::DeleteUser, again, Err(MISSING));
    }
}
