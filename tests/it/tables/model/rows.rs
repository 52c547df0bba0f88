//! The tables as plain maps, and the rules that their rows keep.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use townsquare::{
    CommunityConfig, CommunityDomain, Fidget, NewFidget, NewSpace, Result, Space, SpaceRegistration, Uuid,
};

use super::{FORBIDDEN, Failure, MISSING, NO_FIELD, NO_REFERENCE};

/// What the tables hold.
#[derive(Default)]
pub(super) struct Model {
    pub(super) now: Timestamp,
    pub(super) users: Vec<Uuid>,
    pub(super) spaces: BTreeMap<Uuid, Space>,
    pub(super) fidgets: BTreeMap<Uuid, Fidget>,
    pub(super) configs: BTreeMap<String, CommunityConfig>,
    pub(super) domains: BTreeMap<(String, &'static str), CommunityDomain>,
    pub(super) registrations: BTreeMap<Uuid, SpaceRegistration>,
}

impl Model {
    /// The `updated_at` of a row that is changed now.
    pub(super) fn later(&self, old: Timestamp) -> Timestamp {
        self.now.max(old + Duration::from_micros(1))
    }

    pub(super) fn sees(&self, service: bool, space: Option<Uuid>) -> bool {
        service || space.and_then(|id| self.spaces.get(&id)).is_some_and(|space| space.is_public)
    }

    pub(super) fn space(&self, service: bool, id: Uuid) -> Result<&Space, Failure> {
        self.spaces.get(&id).filter(|_| self.sees(service, Some(id))).ok_or(MISSING)
    }

    pub(super) fn of_space(&self, id: Uuid) -> Vec<Fidget> {
        let mut found: Vec<_> = self.fidgets.values().filter(|fidget| fidget.space_id == Some(id)).cloned().collect();
        found.sort_by_key(|fidget| (fidget.created_at, fidget.id));
        found
    }

    /// Whether a space may be inserted.
    pub(super) fn check_space(&self, service: bool, new: &NewSpace) -> Result<(), Failure> {
        if !service {
            return Err(FORBIDDEN);
        }
        new.name.as_ref().ok_or(NO_FIELD)?;
        match new.owner_id {
            Some(owner) if !self.users.contains(&owner) => Err(NO_REFERENCE),
            _ => Ok(()),
        }
    }

    /// Takes over a space that was made from `new`.
    pub(super) fn take_space(&mut self, new: NewSpace, made: &Space) {
        let expected = (new.name.expect("checked"), new.description, new.owner_id, new.is_public);
        let found = (made.name.clone(), made.description.clone(), made.owner_id, made.is_public);
        assert_eq!(found, expected);
        assert_eq!((made.created_at, made.updated_at), (self.now, self.now));
        assert!(self.spaces.insert(made.id, made.clone()).is_none(), "ids are new");
    }

    pub(super) fn check_fidget(&self, service: bool, space: Uuid, new: &NewFidget) -> Result<(), Failure> {
        if !service {
            return Err(FORBIDDEN);
        }
        new.kind.as_ref().ok_or(NO_FIELD)?;
        if self.spaces.contains_key(&space) { Ok(()) } else { Err(NO_REFERENCE) }
    }

    pub(super) fn take_fidget(&mut self, space: Uuid, new: NewFidget, made: &Fidget) {
        let expected = (new.kind.expect("checked"), new.config, new.position, Some(space));
        let found = (made.kind.clone(), made.config.clone(), made.position.clone(), made.space_id);
        assert_eq!(found, expected);
        assert_eq!((made.created_at, made.updated_at), (self.now, self.now));
        assert!(self.fidgets.insert(made.id, made.clone()).is_none(), "ids are new");
    }

    pub(super) fn delete_space(&mut self, id: Uuid) {
        self.spaces.remove(&id);
        self.fidgets.retain(|_, fidget| fidget.space_id != Some(id));
    }
}
