//! Random operations on spaces and fidgets.

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;
use townsquare::{Change, FidgetPatch, Result, Space, SpacePatch, Uuid, blocking::wait};

use super::{Failure, MISSING, NO_FIELD, Run, set};

impl Run<'_> {
    pub(super) fn create_spaces(&mut self) {
        let many = if self.random.percent(70) { 1 } else { self.random.below(4) };
        let new: Vec<_> = (0..many).map(|_| self.new_space()).collect();
        let (client, service) = self.client();
        let made = match &new[..] {
            [one] => wait(client.spaces().create_space(one.clone())).map(|made| vec![made]),
            many => wait(client.spaces().create_spaces(many.to_vec())),
        };
        let expected = new.iter().try_for_each(|new| self.model.check_space(service, new));
        if let Some((made, ())) = self.agree("create spaces", made, expected) {
            assert_eq!(made.len(), new.len());
            for (new, made) in new.into_iter().zip(&made) {
                self.model.take_space(new, made);
            }
        }
    }

    pub(super) fn update_space(&mut self) {
        let id = self.a_space();
        let mut patch = SpacePatch::new();
        patch.name = self.change(Run::text);
        patch.description = self.change(Run::text);
        patch.is_public = match self.random.below(4) {
            0 => Change::Set(true),
            1 => Change::Set(false),
            _ => Change::Keep,
        };
        let (client, service) = self.client();
        let found = wait(client.spaces().update_space(id, patch.clone()));
        let expected = (|| {
            let mut space = self.model.spaces.get(&id).filter(|_| service).ok_or(MISSING)?.clone();
            if patch != SpacePatch::new() {
                match patch.name {
                    Change::Clear => return Err(NO_FIELD),
                    Change::Set(name) => space.name = name,
                    _ => {}
                }
                set(&mut space.description, patch.description);
                if let Change::Set(is_public) = patch.is_public {
                    space.is_public = is_public;
                }
                space.updated_at = self.model.later(space.updated_at);
            }
            Ok(space)
        })();
        if let Ok(space) = &expected {
            self.model.spaces.insert(id, space.clone());
        }
        self.same("update space", found, expected);
    }

    pub(super) fn delete_space(&mut self) {
        let id = self.a_space();
        let (client, service) = self.client();
        let found = wait(client.spaces().delete_space(id));
        let expected = self.model.spaces.get(&id).filter(|_| service).map(|_| ()).ok_or(MISSING);
        if expected.is_ok() {
            self.model.delete_space(id);
        }
        self.same("delete space", found, expected);
    }

    pub(super) fn create_fidgets(&mut self) {
        let space = self.a_space();
        let many = if self.random.percent(70) { 1 } else { self.random.below(4) };
        let new: Vec<_> = (0..many).map(|_| self.new_fidget()).collect();
        let (client, service) = self.client();
        let made = match &new[..] {
            [one] => wait(client.fidgets().create_fidget(space, one.clone())).map(|made| vec![made]),
            many => wait(client.fidgets().create_fidgets(space, many.to_vec())),
        };
        let expected = new.iter().try_for_each(|new| self.model.check_fidget(service, space, new));
        if let Some((made, ())) = self.agree("create fidgets", made, expected) {
            assert_eq!(made.len(), new.len());
            for (new, made) in new.into_iter().zip(&made) {
                self.model.take_fidget(space, new, made);
            }
        }
    }

    pub(super) fn update_fidget(&mut self) {
        let id = self.a_fidget();
        let mut patch = FidgetPatch::new();
        patch.kind = self.change(Run::text);
        patch.config = self.change(Run::json);
        patch.position = self.change(Run::json);
        let (client, service) = self.client();
        let found = wait(client.fidgets().update_fidget(id, patch.clone()));
        let expected = (|| {
            let mut fidget = self.model.fidgets.get(&id).filter(|_| service).ok_or(MISSING)?.clone();
            if patch != FidgetPatch::new() {
                match patch.kind {
                    Change::Clear => return Err(NO_FIELD),
                    Change::Set(kind) => fidget.kind = kind,
                    _ => {}
                }
                set(&mut fidget.config, patch.config);
                set(&mut fidget.position, patch.position);
                fidget.updated_at = self.model.later(fidget.updated_at);
            }
            Ok(fidget)
        })();
        if let Ok(fidget) = &expected {
            self.model.fidgets.insert(id, fidget.clone());
        }
        self.same("update fidget", found, expected);
    }

    pub(super) fn delete_fidget(&mut self) {
        let id = self.a_fidget();
        let (client, service) = self.client();
        let found = wait(client.fidgets().delete_fidget(id));
        let expected = self.model.fidgets.get(&id).filter(|_| service).map(|_| ()).ok_or(MISSING);
        if expected.is_ok() {
            self.model.fidgets.remove(&id);
        }
        self.same("delete fidget", found, expected);
    }

    pub(super) fn save_positions(&mut self) {
        let space = self.a_space();
        let mut positions: BTreeMap<Uuid, Option<Value>> = BTreeMap::new();
        for fidget in self.model.of_space(space) {
            if self.random.percent(60) {
                let position = self.optional(Run::json);
                positions.insert(fidget.id, position);
            }
        }
        if self.random.percent(10) {
            let strange = self.a_fidget();
            positions.insert(strange, None);
        }
        let (client, service) = self.client();
        let found = wait(client.fidgets().save_positions(space, positions.clone()));
        let expected = positions
            .iter()
            .map(|(id, position)| {
                let fidget = self.model.fidgets.get(id).filter(|fidget| service && fidget.space_id == Some(space));
                let mut fidget = fidget.ok_or(MISSING)?.clone();
                fidget.position.clone_from(position);
                fidget.updated_at = self.model.later(fidget.updated_at);
                Ok(fidget)
            })
            .collect::<Result<Vec<_>, Failure>>();
        let expected = expected.map(|mut moved| {
            moved.sort_by_key(|fidget| (fidget.created_at, fidget.id));
            self.model.fidgets.extend(moved.iter().map(|fidget| (fidget.id, fidget.clone())));
            moved
        });
        self.same("save positions", found, expected);
    }

    pub(super) fn read_spaces(&mut self) {
        let (id, fidget) = (self.a_space(), self.a_fidget());
        let users = self.model.users.clone();
        let user = self.one_of(&users);
        let (limit, offset) = (1 + self.random.below(20), self.random.below(30));
        let which = self.random.below(6);
        let (client, service) = self.client();
        let client = client.clone();
        let (spaces, fidgets) = (client.spaces(), client.fidgets());
        let newest_first = |found: &mut Vec<Space>| found.sort_by_key(|space| (Reverse(space.created_at), space.id));
        match which {
            0 => {
                let expected = self.model.space(service, id).cloned();
                self.same("get space", wait(spaces.get_space(id)), expected);
            }
            1 => {
                let expected = self.model.fidgets.get(&fidget).cloned();
                let expected = expected.filter(|fidget| self.model.sees(service, fidget.space_id)).ok_or(MISSING);
                self.same("get fidget", wait(fidgets.get_fidget(fidget)), expected);
            }
            2 => {
                let expected = if self.model.sees(service, Some(id)) { self.model.of_space(id) } else { Vec::new() };
                self.same("get space fidgets", wait(fidgets.get_space_fidgets(id)), Ok(expected));
            }
            3 => {
                let found = wait(spaces.get_space_with_fidgets(id)).map(|found| (found.space, found.fidgets));
                let expected = self.model.space(service, id).cloned().and_then(|space| {
                    let fidgets = self.model.of_space(id);
                    if fidgets.is_empty() { Err(MISSING) } else { Ok((space, fidgets)) }
                });
                self.same("get space with fidgets", found, expected);
            }
            4 => {
                let found = wait(spaces.get_user_spaces(user));
                let found = found.map(|found| found.into_iter().map(|found| (found.space, found.fidgets)).collect());
                let mut own: Vec<_> = self.model.spaces.values().cloned().collect();
                own.retain(|space| space.owner_id == Some(user) && (service || space.is_public));
                newest_first(&mut own);
                let own = own.into_iter().map(|space| (space.clone(), self.model.of_space(space.id)));
                let own: Vec<_> = own.collect();
                self.same("get user spaces", found, Ok(own));
            }
            _ => {
                let limit = u32::try_from(limit).expect("small");
                let found = wait(spaces.get_public_spaces(limit, offset as u64));
                let found = found.map(|page| {
                    page.into_iter().map(|space| (space.space, space.owner.map(|owner| owner.id))).collect()
                });
                let mut public: Vec<_> = self.model.spaces.values().filter(|space| space.is_public).cloned().collect();
                newest_first(&mut public);
                let page = public.into_iter().skip(offset).take(limit as usize);
                let page: Vec<_> = page.map(|space| (space.clone(), space.owner_id)).collect();
                self.same("get public spaces", found, Ok(page));
            }
        }
    }
}
