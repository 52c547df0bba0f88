//! Random operations that create, update and delete spaces.

use townsquare::{
    Operation,
    spaces::{Change, NewSpace, SpacePatch},
};

use super::{Caller, NO_FIELD, Run, set, set_flag};

impl Run<'_> {
    fn new_space(&mut self) -> NewSpace {
        let mut new = NewSpace::default();
        new.name = if self.percent(4) { None } else { Some(self.text()) };
        new.description = self.optional(Run::text);
        new.is_public = self.percent(45);
        new.owner_id = if self.percent(40) { Some(self.user_id()) } else { None };
        new
    }

    pub(super) fn create_spaces(&mut self, caller: &Caller) {
        let many = if self.percent(70) { 1 } else { self.random.usize(..4) };
        let mut new: Vec<_> = (0..many).map(|_| self.new_space()).collect();
        if let [new] = &mut new[..]
            && self.percent(20)
        {
            let id = self.space_id();
            new.id = Some(id);
            if let Some(taken) = self.model.spaces.get(&id).cloned()
                && self.percent(60)
            {
                (new.name, new.description) = (Some(taken.name), taken.description);
                (new.owner_id, new.is_public) = (taken.owner_id, taken.is_public);
            }
        }
        let expected = new.iter().try_for_each(|new| self.model.check_space(caller.principal, new));
        let (operation, made) = match &new[..] {
            [one] => {
                let made = caller.client.spaces().create_space(one.clone());
                (Operation::CreateSpace, made.map(|made| vec![made]))
            }
            many => (Operation::CreateSpaces, caller.client.spaces().create_spaces(many.to_vec())),
        };
        if let Some((made, ())) = self.agree(caller, operation, made, expected) {
            assert_eq!(made.len(), new.len());
            for ((index, new), made) in (0..).zip(new).zip(&made) {
                self.model.insert_space(caller.principal, index, new, made);
            }
        }
    }

    pub(super) fn update_space(&mut self, caller: &Caller) {
        let id = self.space_id();
        let mut patch = SpacePatch::new();
        patch.name = self.change(Run::text);
        patch.description = self.change(Run::text);
        patch.is_public = self.flag();
        let expected = self.model.own_space(caller.principal, id).cloned().and_then(|mut space| {
            if patch == SpacePatch::new() {
                return Ok(space);
            }
            match patch.name.clone() {
                Change::Clear => return Err(NO_FIELD),
                Change::Set(name) => space.name = name,
                _ => {}
            }
            set(&mut space.description, patch.description.clone());
            set_flag(&mut space.is_public, patch.is_public);
            space.updated_at = self.model.later(space.updated_at);
            Ok(space)
        });
        let updated = caller.client.spaces().update_space(id, patch);
        if let Some((updated, space)) = self.agree(caller, Operation::UpdateSpace, updated, expected) {
            assert_eq!(updated, space);
            self.model.spaces.insert(id, space);
        }
    }

    pub(super) fn delete_space(&mut self, caller: &Caller) {
        let id = self.space_id();
        let expected = self.model.own_space(caller.principal, id).map(|_| ());
        if self.agree(caller, Operation::DeleteSpace, caller.client.spaces().delete_space(id), expected).is_some() {
            self.model.delete_space(id);
        }
    }
}
