//! Random operations that create, update, move and delete fidgets.

use std::collections::BTreeMap;

use serde_json::Value;
use townsquare::{
    Operation, Result, Uuid,
    spaces::{Change, FidgetPatch, NewFidget},
};

use super::{Caller, Failure, MISSING, NO_FIELD, Run, set};

impl Run<'_> {
    fn new_fidget(&mut self) -> NewFidget {
        let mut new = NewFidget::default();
        new.kind = if self.percent(4) { None } else { Some(self.text()) };
        new.config = self.optional(Run::json);
        new.position = self.optional(Run::json);
        new
    }

    pub(super) fn create_fidgets(&mut self, caller: &Caller) {
        let mut space = self.space_id();
        let many = if self.percent(70) { 1 } else { self.random.usize(..4) };
        let mut new: Vec<_> = (0..many).map(|_| self.new_fidget()).collect();
        if let [new] = &mut new[..]
            && self.percent(20)
        {
            let id = self.fidget_id();
            new.id = Some(id);
            if let Some(taken) = self.model.fidgets.get(&id).cloned()
                && self.percent(60)
            {
                (new.kind, new.config, new.position) = (Some(taken.kind), taken.config, taken.position);
                space = taken.space_id.unwrap_or(space);
            }
        }
        let expected = new.iter().try_for_each(|new| self.model.check_fidget(caller.principal, space, new));
        let (operation, made) = match &new[..] {
            [one] => {
                let made = caller.client.fidgets().create_fidget(space, one.clone());
                (Operation::CreateFidget, made.map(|made| vec![made]))
            }
            many => (Operation::CreateFidgets, caller.client.fidgets().create_fidgets(space, many.to_vec())),
        };
        if let Some((made, ())) = self.agree(caller, operation, made, expected) {
            assert_eq!(made.len(), new.len());
            for ((index, new), made) in (0..).zip(new).zip(&made) {
                self.model.insert_fidget(space, index, new, made);
            }
        }
    }

    pub(super) fn update_fidget(&mut self, caller: &Caller) {
        let id = self.fidget_id();
        let mut patch = FidgetPatch::new();
        patch.kind = self.change(Run::text);
        patch.config = self.change(Run::json);
        patch.position = self.change(Run::json);
        let expected = self.model.own_fidget(caller.principal, id).cloned().and_then(|mut fidget| {
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
            fidget.updated_at = self.model.later(fidget.updated_at);
            Ok(fidget)
        });
        let updated = caller.client.fidgets().update_fidget(id, patch);
        if let Some((updated, fidget)) = self.agree(caller, Operation::UpdateFidget, updated, expected) {
            assert_eq!(updated, fidget);
            self.model.fidgets.insert(id, fidget);
        }
    }

    pub(super) fn delete_fidget(&mut self, caller: &Caller) {
        let id = self.fidget_id();
        let expected = self.model.own_fidget(caller.principal, id).map(|_| ());
        if self.agree(caller, Operation::DeleteFidget, caller.client.fidgets().delete_fidget(id), expected).is_some() {
            self.model.delete_fidget(id);
        }
    }

    pub(super) fn save_positions(&mut self, caller: &Caller) {
        let space = self.space_id();
        let mut positions: BTreeMap<Uuid, Option<Value>> = BTreeMap::new();
        for fidget in self.model.fidgets_of(space) {
            if self.percent(60) {
                let position = self.optional(Run::json);
                positions.insert(fidget.id, position);
            }
        }
        // A fidget of another space, a deleted or an unknown one.
        if positions.is_empty() || self.percent(10) {
            let foreign = self.fidget_id();
            positions.insert(foreign, None);
        }
        let moved = positions.iter().map(|(id, position)| {
            let fidget = self.model.own_fidget(caller.principal, *id)?;
            let mut fidget = Some(fidget).filter(|fidget| fidget.space_id == Some(space)).ok_or(MISSING)?.clone();
            fidget.position.clone_from(position);
            fidget.updated_at = self.model.later(fidget.updated_at);
            Ok(fidget)
        });
        let expected = moved.collect::<Result<Vec<_>, Failure>>().map(|mut moved| {
            moved.sort_by_key(|fidget| (fidget.created_at, fidget.id));
            moved
        });
        let saved = caller.client.fidgets().save_positions(space, positions);
        if let Some((saved, moved)) = self.agree(caller, Operation::SavePositions, saved, expected) {
            assert_eq!(saved, moved);
            self.model.fidgets.extend(moved.into_iter().map(|fidget| (fidget.id, fidget)));
        }
    }
}
