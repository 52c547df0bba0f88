//! The tables as maps, with the rows that each caller sees and may change.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use townsquare::{
    ErrorKind, Result, Uuid,
    communities::{CommunityConfig, CommunityDomain, SpaceRegistration},
    spaces::{Fidget, NewFidget, NewSpace, Space},
};

use super::{Failure, MISSING, NO_FIELD, NO_REFERENCE, TAKEN, files::Files, rights::Principal};

const FOREIGN_SPACE: Failure = (
    ErrorKind::Forbidden,
    Some("42501"),
    "Database error: new row violates row-level security policy for table \"spaces\"",
);
const FOREIGN_FIDGET: Failure = (
    ErrorKind::Forbidden,
    Some("42501"),
    "Database error: new row violates row-level security policy for table \"fidgets\"",
);

/// The rows of all tables.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) now: Timestamp,
    /// E-mail addresses by user.
    pub(super) addresses: BTreeMap<Uuid, String>,
    pub(super) spaces: BTreeMap<Uuid, Space>,
    pub(super) fidgets: BTreeMap<Uuid, Fidget>,
    pub(super) communities: BTreeMap<String, CommunityConfig>,
    pub(super) domains: BTreeMap<(String, &'static str), CommunityDomain>,
    pub(super) registrations: BTreeMap<Uuid, SpaceRegistration>,
    pub(super) files: Files,
    /// Users by linked identity key.
    pub(super) holders: BTreeMap<String, Uuid>,
    /// The ids of all deleted spaces.
    pub(super) former_spaces: BTreeSet<Uuid>,
    /// Ids of the last 20 deleted rows.
    pub(super) deleted: Vec<Uuid>,
}

impl Tables {
    /// Returns the `updated_at` of a row changed now.
    pub(super) fn later(&self, old: Timestamp) -> Timestamp {
        self.now.max(old + Duration::from_micros(1))
    }

    pub(super) fn sees(&self, principal: Principal, space: &Space) -> bool {
        principal.sees_space(space.owner_id, Some(space.is_public))
    }

    pub(super) fn owns(&self, principal: Principal, space: Uuid) -> bool {
        self.spaces.get(&space).is_some_and(|space| principal.owns_space(space.owner_id))
    }

    /// Returns a space that the caller sees.
    pub(super) fn space(&self, principal: Principal, id: Uuid) -> Result<&Space, Failure> {
        self.spaces.get(&id).filter(|space| self.sees(principal, space)).ok_or(MISSING)
    }

    /// Returns a space that the caller may change.
    pub(super) fn own_space(&self, principal: Principal, id: Uuid) -> Result<&Space, Failure> {
        self.spaces.get(&id).filter(|_| self.owns(principal, id)).ok_or(MISSING)
    }

    pub(super) fn fidget(&self, principal: Principal, id: Uuid) -> Result<&Fidget, Failure> {
        let found = self.fidgets.get(&id).ok_or(MISSING)?;
        self.space(principal, found.space_id.ok_or(MISSING)?).map(|_| found)
    }

    pub(super) fn own_fidget(&self, principal: Principal, id: Uuid) -> Result<&Fidget, Failure> {
        let found = self.fidgets.get(&id).ok_or(MISSING)?;
        self.own_space(principal, found.space_id.ok_or(MISSING)?).map(|_| found)
    }

    /// Returns the fidgets of a space, oldest first.
    pub(super) fn fidgets_of(&self, space: Uuid) -> Vec<Fidget> {
        let mut found: Vec<_> = self.fidgets.values().filter(|row| row.space_id == Some(space)).cloned().collect();
        found.sort_by_key(|fidget| (fidget.created_at, fidget.id));
        found
    }

    /// Returns the spaces that pass, newest first.
    pub(super) fn spaces_where(&self, passes: impl Fn(&Space) -> bool) -> Vec<Space> {
        let mut found: Vec<_> = self.spaces.values().filter(|space| passes(space)).cloned().collect();
        found.sort_by_key(|space| (Reverse(space.created_at), space.id));
        found
    }

    /// Returns the owner of a new space: the named one, or the calling user.
    pub(super) fn owner_of(principal: Principal, new: &NewSpace) -> Option<Uuid> {
        match principal {
            Principal::User(me) => new.owner_id.or(Some(me)),
            Principal::Anonymous | Principal::Service => new.owner_id,
        }
    }

    /// DESIGN 4: whether an id without a space is that of a page or of a deleted space.
    fn is_claimed(&self, id: Uuid) -> bool {
        let was_there =
            || self.registrations.contains_key(&id) || self.files.has_folder(id) || self.former_spaces.contains(&id);
        !self.spaces.contains_key(&id) && was_there()
    }

    /// Whether a space may be created. A space with the same id and content that the caller may change is created again.
    pub(super) fn check_space(&self, principal: Principal, new: &NewSpace) -> Result<(), Failure> {
        let owner = Tables::owner_of(principal, new);
        if !principal.owns_space(owner) {
            return Err(FOREIGN_SPACE);
        }
        if principal != Principal::Service && new.id.is_some_and(|id| self.is_claimed(id)) {
            return Err(FOREIGN_SPACE);
        }
        let name = new.name.as_ref().ok_or(NO_FIELD)?;
        if let Some(taken) = new.id.and_then(|id| self.spaces.get(&id)) {
            let is_same = (name, &new.description, owner, new.is_public)
                == (&taken.name, &taken.description, taken.owner_id, taken.is_public);
            return if is_same && self.owns(principal, taken.id) { Ok(()) } else { Err(TAKEN) };
        }
        match owner {
            Some(owner) if !self.addresses.contains_key(&owner) => Err(NO_REFERENCE),
            _ => Ok(()),
        }
    }

    /// Checks and inserts a space that the library created from `new`, the row `index` of its call.
    pub(super) fn insert_space(&mut self, principal: Principal, index: u64, new: NewSpace, made: &Space) {
        if let Some(taken) = new.id.and_then(|id| self.spaces.get(&id)) {
            assert_eq!(made, taken);
            return;
        }
        let owner = Tables::owner_of(principal, &new);
        let expected = (new.name.expect("checked"), new.description, owner, new.is_public);
        let found = (made.name.clone(), made.description.clone(), made.owner_id, made.is_public);
        assert_eq!(found, expected);
        let created_at = self.now + Duration::from_micros(index);
        assert_eq!((made.created_at, made.updated_at), (created_at, created_at));
        assert!(new.id.is_none_or(|id| id == made.id));
        assert!(self.spaces.insert(made.id, made.clone()).is_none(), "ids are new");
    }

    /// Whether a fidget may be created. A missing space fails like a space of another owner. A fidget with the same id and
    /// content that the caller may change is created again.
    pub(super) fn check_fidget(&self, principal: Principal, space: Uuid, new: &NewFidget) -> Result<(), Failure> {
        if principal != Principal::Service && !self.owns(principal, space) {
            return Err(FOREIGN_FIDGET);
        }
        let kind = new.kind.as_ref().ok_or(NO_FIELD)?;
        if let Some(taken) = new.id.and_then(|id| self.fidgets.get(&id)) {
            let is_same = (Some(space), kind, &new.config, &new.position)
                == (taken.space_id, &taken.kind, &taken.config, &taken.position);
            return if is_same { Ok(()) } else { Err(TAKEN) };
        }
        if self.spaces.contains_key(&space) { Ok(()) } else { Err(NO_REFERENCE) }
    }

    pub(super) fn insert_fidget(&mut self, space: Uuid, index: u64, new: NewFidget, made: &Fidget) {
        if let Some(taken) = new.id.and_then(|id| self.fidgets.get(&id)) {
            assert_eq!(made, taken);
            return;
        }
        let expected = (new.kind.expect("checked"), new.config, new.position, Some(space));
        let found = (made.kind.clone(), made.config.clone(), made.position.clone(), made.space_id);
        assert_eq!(found, expected);
        let created_at = self.now + Duration::from_micros(index);
        assert_eq!((made.created_at, made.updated_at), (created_at, created_at));
        assert!(new.id.is_none_or(|id| id == made.id));
        assert!(self.fidgets.insert(made.id, made.clone()).is_none(), "ids are new");
    }

    /// Deletes a space, its fidgets (SPEC 2.7) and its files, but not its registration.
    pub(super) fn delete_space(&mut self, id: Uuid) {
        self.spaces.remove(&id);
        self.former_spaces.insert(id);
        self.files.delete_space(id);
        self.remember_deleted(id);
        for fidget in self.fidgets_of(id) {
            self.delete_fidget(fidget.id);
        }
    }

    pub(super) fn delete_fidget(&mut self, id: Uuid) {
        self.fidgets.remove(&id);
        self.remember_deleted(id);
    }

    /// Deletes a user with all spaces (SPEC 2.6), private files and linked keys.
    pub(super) fn delete_user(&mut self, id: Uuid) {
        self.addresses.remove(&id);
        let keys: Vec<_> = self.holders.extract_if(.., |_, holder| *holder == id).map(|(key, _)| key).collect();
        let was_own_folder = |folder: &str| folder == id.to_string() || keys.iter().any(|key| key == folder);
        let is_held = |folder: &str| {
            let is_user = folder.parse().is_ok_and(|id: Uuid| self.addresses.contains_key(&id));
            is_user || self.holders.contains_key(folder)
        };
        self.files.delete_user(id, was_own_folder, is_held);
        self.remember_deleted(id);
        for space in self.spaces_where(|space| space.owner_id == Some(id)) {
            self.delete_space(space.id);
        }
    }

    fn remember_deleted(&mut self, id: Uuid) {
        self.deleted.push(id);
        if self.deleted.len() > 20 {
            self.deleted.remove(0);
        }
    }
}
