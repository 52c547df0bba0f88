//! The tables of spaces and fidgets as maps, and the rights on their rows (SPEC 5.4), without the library's policies.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use townsquare::{
    ErrorKind, Timestamp, Uuid,
    spaces::{Change, Fidget, FidgetPatch, NewFidget, NewSpace, Space, SpacePatch},
};

/// Who an operation is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    Anonymous,
    User(Uuid),
    Service,
}

/// The rows.
pub(super) struct Tables {
    now: Timestamp,
    pub(super) users: [Uuid; 2],
    pub(super) spaces: BTreeMap<Uuid, Space>,
    pub(super) fidgets: BTreeMap<Uuid, Fidget>,
    /// The ids of deleted spaces, which only the service may use again.
    deleted: BTreeSet<Uuid>,
}

impl Caller {
    fn owns(self, owner: Option<Uuid>) -> bool {
        match self {
            Caller::Anonymous => false,
            Caller::User(me) => owner == Some(me),
            Caller::Service => true,
        }
    }
}

impl Tables {
    pub(super) fn new(now: Timestamp, users: [Uuid; 2]) -> Tables {
        Tables { now, users, spaces: BTreeMap::new(), fidgets: BTreeMap::new(), deleted: BTreeSet::new() }
    }

    fn later(&self, old: Timestamp) -> Timestamp {
        self.now.max(old + Duration::from_micros(1))
    }

    pub(super) fn space(&self, caller: Caller, id: Uuid) -> Result<&Space, ErrorKind> {
        let sees = |space: &&Space| space.is_public || caller.owns(space.owner_id);
        self.spaces.get(&id).filter(sees).ok_or(ErrorKind::NotFound)
    }

    pub(super) fn own_space(&self, caller: Caller, id: Uuid) -> Result<&Space, ErrorKind> {
        self.spaces.get(&id).filter(|space| caller.owns(space.owner_id)).ok_or(ErrorKind::NotFound)
    }

    pub(super) fn fidget(&self, caller: Caller, id: Uuid) -> Result<&Fidget, ErrorKind> {
        let fidget = self.fidgets.get(&id).ok_or(ErrorKind::NotFound)?;
        self.space(caller, fidget.space_id.ok_or(ErrorKind::NotFound)?).map(|_| fidget)
    }

    pub(super) fn own_fidget(&self, caller: Caller, id: Uuid) -> Result<&Fidget, ErrorKind> {
        let fidget = self.fidgets.get(&id).ok_or(ErrorKind::NotFound)?;
        self.own_space(caller, fidget.space_id.ok_or(ErrorKind::NotFound)?).map(|_| fidget)
    }

    /// The owner of a new space: the named one, or the calling user.
    fn owner_of(caller: Caller, new: &NewSpace) -> Option<Uuid> {
        match caller {
            Caller::User(me) => new.owner_id.or(Some(me)),
            Caller::Anonymous | Caller::Service => new.owner_id,
        }
    }

    /// Whether a space may be created; true if it is a repetition of an earlier call.
    pub(super) fn check_space(&self, caller: Caller, new: &NewSpace) -> Result<bool, ErrorKind> {
        let owner = Tables::owner_of(caller, new);
        let existing = new.id.and_then(|id| self.spaces.get(&id));
        let is_claimed = existing.is_none() && new.id.is_some_and(|id| self.deleted.contains(&id));
        if !caller.owns(owner) || (caller != Caller::Service && is_claimed) {
            return Err(ErrorKind::Forbidden);
        }
        let name = new.name.as_ref().ok_or(ErrorKind::FieldMissing)?;
        if let Some(taken) = existing {
            let is_same = (name, &new.description, owner, new.is_public)
                == (&taken.name, &taken.description, taken.owner_id, taken.is_public);
            return if is_same { Ok(true) } else { Err(ErrorKind::AlreadyExists) };
        }
        match owner {
            Some(owner) if !self.users.contains(&owner) => Err(ErrorKind::ReferenceMissing),
            _ => Ok(false),
        }
    }

    /// Checks and stores the space that the library returned.
    pub(super) fn insert_space(
        &mut self,
        caller: Caller,
        new: &NewSpace,
        made: &Space,
        expected: Result<bool, ErrorKind>,
    ) {
        let is_repeated = expected.unwrap_or_else(|kind| panic!("{new:?} by {caller:?} instead of {kind:?}"));
        if is_repeated {
            return assert_eq!(Some(made), self.spaces.get(&made.id));
        }
        assert_eq!((Some(made.id), Some(&made.name)), (new.id, new.name.as_ref()));
        assert_eq!((&made.description, made.is_public), (&new.description, new.is_public));
        assert_eq!(made.owner_id, Tables::owner_of(caller, new));
        assert_eq!((made.created_at, made.updated_at), (self.now, self.now));
        self.spaces.insert(made.id, made.clone());
    }

    pub(super) fn updated_space(&self, caller: Caller, id: Uuid, patch: &SpacePatch) -> Result<Space, ErrorKind> {
        // The flag is checked before the row is read, the name after it.
        if patch.is_public == Change::Clear {
            return Err(ErrorKind::FieldMissing);
        }
        let mut space = self.own_space(caller, id)?.clone();
        if patch.is_empty() {
            return Ok(space);
        }
        set_required(&mut space.name, &patch.name)?;
        set(&mut space.description, &patch.description);
        if let Change::Set(is_public) = patch.is_public {
            space.is_public = is_public;
        }
        space.updated_at = self.later(space.updated_at);
        Ok(space)
    }

    /// Deletes a space and its fidgets.
    pub(super) fn delete_space(&mut self, id: Uuid) {
        self.spaces.remove(&id);
        self.deleted.insert(id);
        self.fidgets.retain(|_, fidget| fidget.space_id != Some(id));
    }

    /// Whether a fidget may be created; true if it is a repetition of an earlier call.
    pub(super) fn check_fidget(&self, caller: Caller, space: Uuid, new: &NewFidget) -> Result<bool, ErrorKind> {
        if caller != Caller::Service && self.own_space(caller, space).is_err() {
            return Err(ErrorKind::Forbidden);
        }
        let kind = new.kind.as_ref().ok_or(ErrorKind::FieldMissing)?;
        if let Some(taken) = new.id.and_then(|id| self.fidgets.get(&id)) {
            let is_same = (Some(space), kind, &new.config, &new.position)
                == (taken.space_id, &taken.kind, &taken.config, &taken.position);
            return if is_same { Ok(true) } else { Err(ErrorKind::AlreadyExists) };
        }
        if self.spaces.contains_key(&space) { Ok(false) } else { Err(ErrorKind::ReferenceMissing) }
    }

    /// Checks and stores the fidget that the library returned.
    pub(super) fn insert_fidget(
        &mut self,
        space: Uuid,
        new: &NewFidget,
        made: &Fidget,
        expected: Result<bool, ErrorKind>,
    ) {
        let is_repeated = expected.unwrap_or_else(|kind| panic!("{new:?} in {space} instead of {kind:?}"));
        if is_repeated {
            return assert_eq!(Some(made), self.fidgets.get(&made.id));
        }
        assert_eq!((Some(made.id), Some(&made.kind), made.space_id), (new.id, new.kind.as_ref(), Some(space)));
        assert_eq!((&made.config, &made.position), (&new.config, &new.position));
        assert_eq!((made.created_at, made.updated_at), (self.now, self.now));
        self.fidgets.insert(made.id, made.clone());
    }

    pub(super) fn updated_fidget(&self, caller: Caller, id: Uuid, patch: &FidgetPatch) -> Result<Fidget, ErrorKind> {
        let mut fidget = self.own_fidget(caller, id)?.clone();
        if patch.is_empty() {
            return Ok(fidget);
        }
        set_required(&mut fidget.kind, &patch.kind)?;
        set(&mut fidget.config, &patch.config);
        set(&mut fidget.position, &patch.position);
        fidget.updated_at = self.later(fidget.updated_at);
        Ok(fidget)
    }

    /// The fidgets of a space, oldest first.
    pub(super) fn fidgets_of(&self, space: Uuid) -> Vec<Fidget> {
        let mut found: Vec<_> = self.fidgets.values().filter(|row| row.space_id == Some(space)).cloned().collect();
        found.sort_by_key(|fidget| (fidget.created_at, fidget.id));
        found
    }

    /// The public spaces, newest first.
    pub(super) fn public_spaces(&self) -> Vec<Space> {
        let mut found: Vec<_> = self.spaces.values().filter(|space| space.is_public).cloned().collect();
        found.sort_by_key(|space| (Reverse(space.created_at), space.id));
        found
    }

    /// The spaces of a user that a caller sees, with their fidgets, newest first.
    pub(super) fn spaces_of(&self, caller: Caller, user: Uuid) -> Vec<(Space, Vec<Fidget>)> {
        let own = self.spaces.values().filter(|space| space.owner_id == Some(user));
        let mut found: Vec<_> = own.filter(|space| self.space(caller, space.id).is_ok()).cloned().collect();
        found.sort_by_key(|space| (Reverse(space.created_at), space.id));
        found.into_iter().map(|space| (space.clone(), self.fidgets_of(space.id))).collect()
    }
}

fn set<T: Clone>(column: &mut Option<T>, change: &Change<T>) {
    match change {
        Change::Clear => *column = None,
        Change::Set(value) => *column = Some(value.clone()),
        _ => {}
    }
}

fn set_required<T: Clone>(column: &mut T, change: &Change<T>) -> Result<(), ErrorKind> {
    match change {
        Change::Clear => return Err(ErrorKind::FieldMissing),
        Change::Set(value) => column.clone_from(value),
        _ => {}
    }
    Ok(())
}
