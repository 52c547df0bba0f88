//! Reads of spaces, fidgets and registrations, one at a time, page by page, and all of them by everybody.

use townsquare::{ErrorKind, Operation, PublicSpace, Space, Uuid, blocking::wait};

use super::{Failure, MISSING, Run, Turn, rights::Who};

/// A public space with its owner's id and address.
type Shown = (Space, Option<(Uuid, Option<String>)>);

fn shown(page: Vec<PublicSpace>) -> Vec<Shown> {
    page.into_iter().map(|space| (space.space, space.owner.map(|owner| (owner.id, owner.email)))).collect()
}

impl Run<'_> {
    pub(super) fn read(&mut self, turn: &Turn) {
        match self.random.below(8) {
            0 => {
                let id = self.a_space();
                self.get_space(turn, id);
            }
            1 => {
                let id = self.a_fidget();
                let due = self.world.fidget(turn.who, id).cloned();
                self.same(turn, Operation::GetFidget, wait(turn.client.fidgets().get_fidget(id)), due);
            }
            2 => {
                let id = self.a_space();
                let due = self.world.space(turn.who, id).map(|space| self.world.inside(space.id));
                let found = wait(turn.client.fidgets().get_space_fidgets(id));
                self.same(turn, Operation::GetSpaceFidgets, found, Ok(due.unwrap_or_default()));
            }
            3 => {
                let id = self.a_space();
                let found = wait(turn.client.spaces().get_space_with_fidgets(id));
                let due = self.world.space(turn.who, id).cloned().and_then(|space| {
                    let fidgets = self.world.inside(id);
                    if fidgets.is_empty() { Err(MISSING) } else { Ok((space, fidgets)) }
                });
                let found = found.map(|found| (found.space, found.fidgets));
                self.same(turn, Operation::GetSpaceWithFidgets, found, due);
            }
            4 => {
                let user = self.a_user();
                self.get_user_spaces(turn, user);
            }
            5 => {
                let (limit, offset) = (self.random.below(20) as u32, self.random.below(40) as u64);
                self.get_public_spaces(turn, limit, offset);
            }
            6 => {
                let id = self.a_space();
                let due = self.world.registrations.get(&id).cloned();
                let found = wait(turn.client.communities().get_space_registration(id));
                self.same(turn, Operation::GetSpaceRegistration, found, Ok(due));
            }
            _ => self.read_community(turn),
        }
    }

    fn get_space(&mut self, turn: &Turn, id: Uuid) {
        let due = self.world.space(turn.who, id).cloned();
        self.same(turn, Operation::GetSpace, wait(turn.client.spaces().get_space(id)), due);
    }

    fn get_user_spaces(&mut self, turn: &Turn, user: Uuid) {
        let own = self.world.spaces_where(|space| space.owner_id == Some(user) && self.world.sees(turn.who, space));
        let due: Vec<_> = own.into_iter().map(|space| (space.clone(), self.world.inside(space.id))).collect();
        let found = wait(turn.client.spaces().get_user_spaces(user));
        let found = found.map(|found| found.into_iter().map(|found| (found.space, found.fidgets)).collect());
        self.same(turn, Operation::GetUserSpaces, found, Ok(due));
    }

    /// What everybody finds in the public list.
    fn public(&self) -> Vec<Shown> {
        let with_owner = |space: Space| {
            let owner = space.owner_id.map(|id| (id, self.world.addresses.get(&id).cloned()));
            (space, owner)
        };
        self.world.spaces_where(|space| space.is_public).into_iter().map(with_owner).collect()
    }

    fn get_public_spaces(&mut self, turn: &Turn, limit: u32, offset: u64) {
        const NO_LIMIT: Failure = (ErrorKind::InvalidInput, None, "limit is 1 to 1000, not 0");
        let found = wait(turn.client.spaces().get_public_spaces(limit, offset)).map(shown);
        let due: Vec<_> = self.public().into_iter().skip(offset as usize).take(limit as usize).collect();
        if limit == 0 {
            // Refused before the session is asked for.
            let turn = Turn { has_ended: false, ..turn.clone() };
            return self.same(&turn, Operation::GetPublicSpaces, found, Err(NO_LIMIT));
        }
        self.same(turn, Operation::GetPublicSpaces, found, Ok(due));
    }

    /// All pages of one size together are the list.
    pub(super) fn turn_pages(&mut self, turn: &Turn) {
        if turn.has_ended {
            return;
        }
        let limit = 1 + self.random.below(12);
        let mut all = Vec::new();
        loop {
            let page = wait(turn.client.spaces().get_public_spaces(limit as u32, all.len() as u64)).expect("a page");
            let is_last = page.len() < limit;
            all.extend(shown(page));
            if is_last {
                break;
            }
        }
        assert_eq!(all, self.public(), "pages of {limit} by {:?}", turn.who);
    }

    /// Everybody asks for everything.
    pub(super) fn look_at_everything(&mut self) {
        let people = self.people.iter().map(|person| (Who::User(person.id), person.client.clone()));
        let everybody = [(Who::Nobody, self.store.client.clone()), (Who::Service, self.store.service.clone())];
        let everybody: Vec<_> = people.chain(everybody).collect();
        for (who, client) in everybody {
            let turn = Turn { who, client, has_ended: false };
            for user in self.world.addresses.keys().copied().collect::<Vec<_>>() {
                self.get_user_spaces(&turn, user);
            }
            let all = self.world.spaces.keys().chain(&self.world.gone).copied().collect::<Vec<_>>();
            for id in all {
                self.get_space(&turn, id);
            }
            self.get_public_spaces(&turn, 1_000, 0);
        }
    }
}
