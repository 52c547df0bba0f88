//! Random operations that change fidgets.

use std::collections::BTreeMap;

use serde_json::Value;
use townsquare::{Change, FidgetPatch, NewFidget, Operation, Result, Uuid, blocking::wait};

use super::{Failure, MISSING, NO_FIELD, Run, Turn, set};

impl Run<'_> {
    fn new_fidget(&mut self) -> NewFidget {
        let mut new = NewFidget::default();
        new.kind = if self.random.percent(4) { None } else { Some(self.text()) };
        new.config = self.optional(Run::json);
        new.position = self.optional(Run::json);
        new
    }

    pub(super) fn create_fidgets(&mut self, turn: &Turn) {
        let space = self.a_space();
        let many = if self.random.percent(70) { 1 } else { 1 + self.random.below(3) };
        let new: Vec<_> = (0..many).map(|_| self.new_fidget()).collect();
        let due = new.iter().try_for_each(|new| self.world.check_fidget(turn.who, space, new));
        let (operation, made) = match &new[..] {
            [one] => {
                let made = wait(turn.client.fidgets().create_fidget(space, one.clone()));
                (Operation::CreateFidget, made.map(|made| vec![made]))
            }
            many => (Operation::CreateFidgets, wait(turn.client.fidgets().create_fidgets(space, many.to_vec()))),
        };
        if let Some((made, ())) = self.agree(turn, operation, made, due) {
            assert_eq!(made.len(), new.len());
            for (new, made) in new.into_iter().zip(&made) {
                self.world.take_fidget(space, new, made);
            }
        }
    }

    pub(super) fn update_fidget(&mut self, turn: &Turn) {
        let id = self.a_fidget();
        let mut patch = FidgetPatch::new();
        patch.kind = self.change(Run::text);
        patch.config = self.change(Run::json);
        patch.position = self.change(Run::json);
        let due = self.world.own_fidget(turn.who, id).cloned().and_then(|mut fidget| {
            if patch == FidgetPatch::new() {
                return Ok(fidget);
            }
            match patch.kind.clone() {
                Change::Clear => return Err(NO_FIELD),
                Change::Set(kind) => fidget.kind = kind,
                _ => {}
            }
            set(&mut fidget.config, patch.config.clone());
            set(&mut fidget.position, patch.position.clone());
            fidget.updated_at = self.world.later(fidget.updated_at);
            Ok(fidget)
        });
        let updated = wait(turn.client.fidgets().update_fidget(id, patch));
        if let Some((updated, fidget)) = self.agree(turn, Operation::UpdateFidget, updated, due) {
            assert_eq!(updated, fidget);
            self.world.fidgets.insert(id, fidget);
        }
    }

    pub(super) fn delete_fidget(&mut self, turn: &Turn) {
        let id = self.a_fidget();
        let due = self.world.own_fidget(turn.who, id).map(|_| ());
        if self.agree(turn, Operation::DeleteFidget, wait(turn.client.fidgets().delete_fidget(id)), due).is_some() {
            self.world.delete_fidget(id);
        }
    }

    pub(super) fn save_positions(&mut self, turn: &Turn) {
        let space = self.a_space();
        let mut positions: BTreeMap<Uuid, Option<Value>> = BTreeMap::new();
        for fidget in self.world.inside(space) {
            if self.random.percent(60) {
                let position = self.optional(Run::json);
                positions.insert(fidget.id, position);
            }
        }
        // One that is in another space, is gone, or never was.
        if positions.is_empty() || self.random.percent(10) {
            let strange = self.a_fidget();
            positions.insert(strange, None);
        }
        let moved = positions.iter().map(|(id, position)| {
            let fidget = self.world.own_fidget(turn.who, *id)?;
            let mut fidget = Some(fidget).filter(|fidget| fidget.space_id == Some(space)).ok_or(MISSING)?.clone();
            fidget.position.clone_from(position);
            fidget.updated_at = self.world.later(fidget.updated_at);
            Ok(fidget)
        });
        let due = moved.collect::<Result<Vec<_>, Failure>>().map(|mut moved| {
            moved.sort_by_key(|fidget| (fidget.created_at, fidget.id));
            moved
        });
        let saved = wait(turn.client.fidgets().save_positions(space, positions));
        if let Some((saved, moved)) = self.agree(turn, Operation::SavePositions, saved, due) {
            assert_eq!(saved, moved);
            self.world.fidgets.extend(moved.into_iter().map(|fidget| (fidget.id, fidget)));
        }
    }
}
