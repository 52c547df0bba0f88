//! Reads of single rows, of lists, of all pages, and of everything by every caller.

use townsquare::{
    ErrorKind, Operation, Uuid,
    spaces::{PublicSpace, Space},
};

use super::{Caller, Failure, MISSING, Run};

/// A public space with its owner's id and address.
type Listed = (Space, Option<(Uuid, Option<String>)>);

fn listed(page: Vec<PublicSpace>) -> Vec<Listed> {
    page.into_iter().map(|space| (space.space, space.owner.map(|owner| (owner.id, owner.email)))).collect()
}

impl Run<'_> {
    pub(super) fn read(&mut self, caller: &Caller) {
        match self.random.usize(..8) {
            0 => {
                let id = self.space_id();
                self.get_space(caller, id);
            }
            1 => {
                let id = self.fidget_id();
                let expected = self.model.fidget(caller.principal, id).cloned();
                self.assert_same(caller, Operation::GetFidget, caller.client.fidgets().get_fidget(id), expected);
            }
            2 => {
                let id = self.space_id();
                let expected = self.model.space(caller.principal, id).map(|space| self.model.fidgets_of(space.id));
                let found = caller.client.fidgets().get_space_fidgets(id);
                self.assert_same(caller, Operation::GetSpaceFidgets, found, Ok(expected.unwrap_or_default()));
            }
            3 => {
                let id = self.space_id();
                let found = caller.client.spaces().get_space_with_fidgets(id);
                let expected = self.model.space(caller.principal, id).cloned().and_then(|space| {
                    let fidgets = self.model.fidgets_of(id);
                    if fidgets.is_empty() { Err(MISSING) } else { Ok((space, fidgets)) }
                });
                let found = found.map(|found| (found.space, found.fidgets));
                self.assert_same(caller, Operation::GetSpaceWithFidgets, found, expected);
            }
            4 => {
                let user = self.user_id();
                self.get_user_spaces(caller, user);
            }
            5 => {
                let (limit, offset) = (self.random.u32(..21), self.random.u64(..40));
                self.get_public_spaces(caller, limit, offset);
            }
            6 => {
                let id = self.space_id();
                self.get_registration(caller, id);
            }
            _ => self.read_community(caller),
        }
    }

    fn get_space(&mut self, caller: &Caller, id: Uuid) {
        let expected = self.model.space(caller.principal, id).cloned();
        self.assert_same(caller, Operation::GetSpace, caller.client.spaces().get_space(id), expected);
    }

    fn get_user_spaces(&mut self, caller: &Caller, user: Uuid) {
        let own =
            self.model.spaces_where(|space| space.owner_id == Some(user) && self.model.sees(caller.principal, space));
        let expected: Vec<_> = own.into_iter().map(|space| (space.clone(), self.model.fidgets_of(space.id))).collect();
        let found = caller.client.spaces().get_user_spaces(user);
        let found = found.map(|found| found.into_iter().map(|found| (found.space, found.fidgets)).collect());
        self.assert_same(caller, Operation::GetUserSpaces, found, Ok(expected));
    }

    /// Returns the list of public spaces, which is the same for every caller.
    fn public_spaces(&self) -> Vec<Listed> {
        let with_owner = |space: Space| {
            let owner = space.owner_id.map(|id| (id, self.model.addresses.get(&id).cloned()));
            (space, owner)
        };
        self.model.spaces_where(|space| space.is_public).into_iter().map(with_owner).collect()
    }

    fn get_public_spaces(&mut self, caller: &Caller, limit: u32, offset: u64) {
        const NO_LIMIT: Failure = (ErrorKind::InvalidInput, None, "limit is 1 to 1000, not 0");
        let found = caller.client.spaces().get_public_spaces(limit, offset).map(listed);
        let expected: Vec<_> = self.public_spaces().into_iter().skip(offset as usize).take(limit as usize).collect();
        if limit == 0 {
            // The limit is checked before the session.
            let caller = Caller { has_ended: false, ..caller.clone() };
            return self.assert_same(&caller, Operation::GetPublicSpaces, found, Err(NO_LIMIT));
        }
        self.assert_same(caller, Operation::GetPublicSpaces, found, Ok(expected));
    }

    /// Checks that the pages of one size together are the whole list.
    pub(super) fn read_all_pages(&mut self, caller: &Caller) {
        if caller.has_ended {
            return;
        }
        let limit = self.random.usize(1..13);
        let mut all = Vec::new();
        loop {
            let page = caller.client.spaces().get_public_spaces(limit as u32, all.len() as u64).expect("a page");
            let is_last = page.len() < limit;
            all.extend(listed(page));
            if is_last {
                break;
            }
        }
        assert_eq!(all, self.public_spaces(), "pages of {limit} by {:?}", caller.principal);
    }

    /// Reads all spaces, by id and in lists, as every caller.
    pub(super) fn read_everything(&mut self) {
        for caller in self.all_callers() {
            for user in self.model.addresses.keys().copied().collect::<Vec<_>>() {
                self.get_user_spaces(&caller, user);
            }
            let all = self.model.spaces.keys().chain(&self.model.deleted).copied().collect::<Vec<_>>();
            for id in all {
                self.get_space(&caller, id);
            }
            self.get_public_spaces(&caller, 1_000, 0);
        }
    }
}
