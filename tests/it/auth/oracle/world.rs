//! The tables as plain maps, and what each caller finds in them.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use townsquare::{
    CommunityConfig, CommunityDomain, ErrorKind, Fidget, NewFidget, NewSpace, Result, Space, SpaceRegistration, Uuid,
};

use super::{Failure, MISSING, NO_FIELD, NO_REFERENCE, rights::Who};

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

/// What the tables hold.
#[derive(Default)]
pub(super) struct World {
    pub(super) now: Timestamp,
    /// Users, with their addresses.
    pub(super) addresses: BTreeMap<Uuid, String>,
    pub(super) spaces: BTreeMap<Uuid, Space>,
    pub(super) fidgets: BTreeMap<Uuid, Fidget>,
    pub(super) communities: BTreeMap<String, CommunityConfig>,
    pub(super) domains: BTreeMap<(String, &'static str), CommunityDomain>,
    pub(super) registrations: BTreeMap<Uuid, SpaceRegistration>,
    /// Identity keys, with who has linked them.
    pub(super) holders: BTreeMap<String, Uuid>,
    /// Ids of rows that were deleted lately.
    pub(super) gone: Vec<Uuid>,
}

impl World {
    /// The `updated_at` of a row that is changed now.
    pub(super) fn later(&self, old: Timestamp) -> Timestamp {
        self.now.max(old + Duration::from_micros(1))
    }

    pub(super) fn sees(&self, who: Who, space: &Space) -> bool {
        who.sees_space(space.owner_id, Some(space.is_public))
    }

    pub(super) fn owns(&self, who: Who, space: Uuid) -> bool {
        self.spaces.get(&space).is_some_and(|space| who.owns_space(space.owner_id))
    }

    /// The space as who may see it finds it.
    pub(super) fn space(&self, who: Who, id: Uuid) -> Result<&Space, Failure> {
        self.spaces.get(&id).filter(|space| self.sees(who, space)).ok_or(MISSING)
    }

    /// The space as who may change it finds it.
    pub(super) fn own_space(&self, who: Who, id: Uuid) -> Result<&Space, Failure> {
        self.spaces.get(&id).filter(|_| self.owns(who, id)).ok_or(MISSING)
    }

    pub(super) fn fidget(&self, who: Who, id: Uuid) -> Result<&Fidget, Failure> {
        let found = self.fidgets.get(&id).ok_or(MISSING)?;
        self.space(who, found.space_id.ok_or(MISSING)?).map(|_| found)
    }

    pub(super) fn own_fidget(&self, who: Who, id: Uuid) -> Result<&Fidget, Failure> {
        let found = self.fidgets.get(&id).ok_or(MISSING)?;
        self.own_space(who, found.space_id.ok_or(MISSING)?).map(|_| found)
    }

    /// The fidgets of a space, oldest first.
    pub(super) fn inside(&self, space: Uuid) -> Vec<Fidget> {
        let mut found: Vec<_> = self.fidgets.values().filter(|row| row.space_id == Some(space)).cloned().collect();
        found.sort_by_key(|fidget| (fidget.created_at, fidget.id));
        found
    }

    /// The spaces that pass, newest first.
    pub(super) fn spaces_where(&self, passes: impl Fn(&Space) -> bool) -> Vec<Space> {
        let mut found: Vec<_> = self.spaces.values().filter(|space| passes(space)).cloned().collect();
        found.sort_by_key(|space| (Reverse(space.created_at), space.id));
        found
    }

    /// Whose a new space would be: the caller's, unless somebody is named.
    pub(super) fn owner_of(who: Who, new: &NewSpace) -> Option<Uuid> {
        match who {
            Who::User(me) => new.owner_id.or(Some(me)),
            Who::Nobody | Who::Service => new.owner_id,
        }
    }

    /// Whether a space may be inserted.
    pub(super) fn check_space(&self, who: Who, new: &NewSpace) -> Result<(), Failure> {
        let owner = World::owner_of(who, new);
        if !who.owns_space(owner) {
            return Err(FOREIGN_SPACE);
        }
        new.name.as_ref().ok_or(NO_FIELD)?;
        match owner {
            Some(owner) if !self.addresses.contains_key(&owner) => Err(NO_REFERENCE),
            _ => Ok(()),
        }
    }

    /// Takes over a space that was made from `new`.
    pub(super) fn take_space(&mut self, who: Who, new: NewSpace, made: &Space) {
        let owner = World::owner_of(who, &new);
        let due = (new.name.expect("checked"), new.description, owner, new.is_public);
        let found = (made.name.clone(), made.description.clone(), made.owner_id, made.is_public);
        assert_eq!(found, due);
        assert_eq!((made.created_at, made.updated_at), (self.now, self.now));
        assert!(self.spaces.insert(made.id, made.clone()).is_none(), "ids are new");
    }

    /// Whether a fidget may be inserted. Whether a space that is not the caller's is there at all stays untold.
    pub(super) fn check_fidget(&self, who: Who, space: Uuid, new: &NewFidget) -> Result<(), Failure> {
        if who != Who::Service && !self.owns(who, space) {
            return Err(FOREIGN_FIDGET);
        }
        new.kind.as_ref().ok_or(NO_FIELD)?;
        if self.spaces.contains_key(&space) { Ok(()) } else { Err(NO_REFERENCE) }
    }

    pub(super) fn take_fidget(&mut self, space: Uuid, new: NewFidget, made: &Fidget) {
        let due = (new.kind.expect("checked"), new.config, new.position, Some(space));
        let found = (made.kind.clone(), made.config.clone(), made.position.clone(), made.space_id);
        assert_eq!(found, due);
        assert_eq!((made.created_at, made.updated_at), (self.now, self.now));
        assert!(self.fidgets.insert(made.id, made.clone()).is_none(), "ids are new");
    }

    /// SPEC 2.7: the fidgets go with their space. Its registration stays.
    pub(super) fn delete_space(&mut self, id: Uuid) {
        self.spaces.remove(&id);
        self.bury(id);
        for fidget in self.inside(id) {
            self.delete_fidget(fidget.id);
        }
    }

    pub(super) fn delete_fidget(&mut self, id: Uuid) {
        self.fidgets.remove(&id);
        self.bury(id);
    }

    /// SPEC 2.6: the spaces go with their user; so do linked keys.
    pub(super) fn delete_user(&mut self, id: Uuid) {
        self.addresses.remove(&id);
        self.holders.retain(|_, holder| *holder != id);
        self.bury(id);
        for space in self.spaces_where(|space| space.owner_id == Some(id)) {
            self.delete_space(space.id);
        }
    }

    fn bury(&mut self, id: Uuid) {
        self.gone.push(id);
        if self.gone.len() > 20 {
            self.gone.remove(0);
        }
    }
}
