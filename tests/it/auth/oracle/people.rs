//! The users of a run, and by which handles they ask.

use townsquare::{Client, Config, Durability, Operation, Uuid, blocking::wait};

use super::{MISSING, Run, Turn, rights::Who};

const PASSWORD: &str = "correct horse";

/// A user with a handle.
pub(super) struct Person {
    pub(super) id: Uuid,
    pub(super) client: Client,
    /// Whether it is a client of their own that signed in, or a handle of a session (`as_user`).
    owns_client: bool,
}

impl Run<'_> {
    /// Has a new user move in at this place. Addresses come back: whoever had one before is somebody else.
    pub(super) fn settle(&mut self, place: usize) {
        let address = format!("person-{place}@town.example");
        let user = wait(self.store.service.auth().sign_up(&address, PASSWORD)).expect("signed up");
        assert!(self.world.addresses.insert(user.id, address.clone()).is_none(), "ids are new");
        let client = match self.people.get(place) {
            Some(person) if person.owns_client => person.client.clone(),
            // Two of the five have clients of their own.
            None if place < 2 => {
                let config: Config = self.store.config().durability(Durability::Normal);
                wait(Client::open(config)).expect("a good database opens")
            }
            _ => self.handle_of(&address),
        };
        let owns_client = place < 2;
        if owns_client {
            wait(client.auth().sign_in(&address, PASSWORD)).expect("signed in");
        }
        let person = Person { id: user.id, client, owns_client };
        if place < self.people.len() {
            self.people[place] = person;
        } else {
            self.people.push(person);
        }
    }

    fn handle_of(&self, address: &str) -> Client {
        let session = wait(self.store.service.auth().sign_in(address, PASSWORD)).expect("a session to hand out");
        wait(self.store.client.as_user(&session.access_token)).expect("a handle")
    }

    /// Somebody, by one of their handles.
    pub(super) fn turn(&mut self) -> Turn {
        let (who, client, has_ended) = match self.random.below(100) {
            0..=11 => (Who::Nobody, self.store.client.clone(), false),
            12..=32 => (Who::Service, self.store.service.clone(), false),
            33..=39 if !self.ghosts.is_empty() => {
                let (id, client) = &self.ghosts[self.random.below(self.ghosts.len())];
                (Who::User(*id), client.clone(), true)
            }
            _ => {
                let person = &self.people[self.random.below(self.people.len())];
                (Who::User(person.id), person.client.clone(), false)
            }
        };
        Turn { who, client, has_ended }
    }

    /// What is the service's alone is asked by it more often than not, or there would be little to see.
    pub(super) fn mostly_the_service(&mut self, turn: Turn) -> Turn {
        match self.random.below(3) {
            0 => turn,
            _ => Turn { who: Who::Service, client: self.store.service.clone(), has_ended: false },
        }
    }

    fn haunt(&mut self, id: Uuid, client: Client) {
        self.ghosts.push((id, client));
        if self.ghosts.len() > 3 {
            self.ghosts.remove(0);
        }
    }

    /// A session ends; a client of one's own is nobody's then, a handle is of no use. Then the user comes back.
    pub(super) fn sign_out(&mut self, place: usize) {
        let (id, client, owns_client) = {
            let person = &self.people[place];
            (person.id, person.client.clone(), person.owns_client)
        };
        wait(client.auth().sign_out()).expect("signed out");
        let who = if owns_client { Who::Nobody } else { Who::User(id) };
        self.read(&Turn { who, client: client.clone(), has_ended: !owns_client });
        let address = self.world.addresses[&id].clone();
        if owns_client {
            wait(client.auth().sign_in(&address, PASSWORD)).expect("signed in");
        } else {
            self.haunt(id, client);
            self.people[place].client = self.handle_of(&address);
        }
    }

    /// A user is deleted, by the service or by themselves; somebody else moves in.
    pub(super) fn delete_user(&mut self) {
        let place = self.random.below(self.people.len());
        let (id, client, owns_client) = {
            let person = &self.people[place];
            (person.id, person.client.clone(), person.owns_client)
        };
        let turn = Turn { who: Who::Service, client: self.store.service.clone(), has_ended: false };
        let deleted = if owns_client && self.random.percent(50) {
            wait(client.auth().delete_own_user(PASSWORD))
        } else {
            wait(turn.client.auth().delete_user(id))
        };
        self.same(&turn, Operation::DeleteUser, deleted, Ok(()));
        self.world.delete_user(id);
        if !owns_client {
            self.haunt(id, client);
        }
        // The address is free again: who takes it gets nothing of what was the other's.
        self.settle(place);
        let again = wait(turn.client.auth().delete_user(id));
        self.same(&turn, Operation::DeleteUser, again, Err(MISSING));
    }
}
