//! Random operations that change spaces.

use townsquare::{Change, NewSpace, Operation, SpacePatch, blocking::wait};

use super::{NO_FIELD, Run, Turn, set};

impl Run<'_> {
    fn new_space(&mut self) -> NewSpace {
        let mut new = NewSpace::default();
        new.name = if self.random.percent(4) { None } else { Some(self.text()) };
        new.description = self.optional(Run::text);
        new.is_public = self.random.percent(40);
        new.owner_id = if self.random.percent(30) { Some(self.a_user()) } else { None };
        new
    }

    pub(super) fn create_spaces(&mut self, turn: &Turn) {
        let many = if self.random.percent(70) { 1 } else { 1 + self.random.below(3) };
        let new: Vec<_> = (0..many).map(|_| self.new_space()).collect();
        let due = new.iter().try_for_each(|new| self.world.check_space(turn.who, new));
        let (operation, made) = match &new[..] {
            [one] => {
                let made = wait(turn.client.spaces().create_space(one.clone()));
                (Operation::CreateSpace, made.map(|made| vec![made]))
            }
            many => (Operation::CreateSpaces, wait(turn.client.spaces().create_spaces(many.to_vec()))),
        };
        if let Some((made, ())) = self.agree(turn, operation, made, due) {
            assert_eq!(made.len(), new.len());
            for (new, made) in new.into_iter().zip(&made) {
                self.world.take_space(turn.who, new, made);
            }
        }
    }

    pub(super) fn update_space(&mut self, turn: &Turn) {
        let id = self.a_space();
        let mut patch = SpacePatch::new();
        patch.name = self.change(Run::text);
        patch.description = self.change(Run::text);
        patch.is_public = self.switch();
        let due = self.world.own_space(turn.who, id).cloned().and_then(|mut space| {
            if patch == SpacePatch::new() {
                return Ok(space);
            }
            match patch.name.clone() {
                Change::Clear => return Err(NO_FIELD),
                Change::Set(name) => space.name = name,
                _ => {}
            }
            set(&mut space.description, patch.description.clone());
            match patch.is_public {
                Change::Set(is_public) => space.is_public = is_public,
                // Neither true nor false is not public.
                Change::Clear => space.is_public = false,
                _ => {}
            }
            space.updated_at = self.world.later(space.updated_at);
            Ok(space)
        });
        let updated = wait(turn.client.spaces().update_space(id, patch));
        if let Some((updated, space)) = self.agree(turn, Operation::UpdateSpace, updated, due) {
            assert_eq!(updated, space);
            self.world.spaces.insert(id, space);
        }
    }

    pub(super) fn delete_space(&mut self, turn: &Turn) {
        let id = self.a_space();
        let due = self.world.own_space(turn.who, id).map(|_| ());
        if self.agree(turn, Operation::DeleteSpace, wait(turn.client.spaces().delete_space(id)), due).is_some() {
            self.world.delete_space(id);
        }
    }
}
