//! Random operations against a plain in-memory model: the same rows, the same errors, on both engines.
//!
//! The model takes over what the library alone can choose (new ids) and computes everything else.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    env,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use townsquare::{
    Change, Client, CommunityConfig, CommunityDomain, CommunityPatch, Config, DomainType, Durability, ErrorKind,
    Fidget, FidgetPatch, NewFidget, NewRegistration, NewSpace, Result, Space, SpacePatch, SpaceRegistration, SpaceType,
    Uuid, blocking::wait,
};
use townsquare_tests::{
    random::Random,
    store::{Engine, Store},
    town::morning,
};

/// What a failure is compared by.
type Failure = (ErrorKind, Option<&'static str>);

const MISSING: Failure = (ErrorKind::NotFound, None);
const NO_REFERENCE: Failure = (ErrorKind::ReferenceMissing, Some("23503"));
const NO_FIELD: Failure = (ErrorKind::FieldMissing, Some("23502"));
const TAKEN: Failure = (ErrorKind::AlreadyExists, Some("23505"));
const FORBIDDEN: Failure = (ErrorKind::Forbidden, Some("42501"));
const UNAUTHORIZED: Failure = (ErrorKind::Unauthorized, Some("42501"));

/// What the tables hold.
#[derive(Default)]
struct Model {
    now: Timestamp,
    users: Vec<Uuid>,
    spaces: BTreeMap<Uuid, Space>,
    fidgets: BTreeMap<Uuid, Fidget>,
    configs: BTreeMap<String, CommunityConfig>,
    domains: BTreeMap<(String, &'static str), CommunityDomain>,
    registrations: BTreeMap<Uuid, SpaceRegistration>,
}

impl Model {
    /// The `updated_at` of a row that is changed now.
    fn later(&self, old: Timestamp) -> Timestamp {
        self.now.max(old + Duration::from_micros(1))
    }

    fn sees(&self, service: bool, space: Option<Uuid>) -> bool {
        service || space.and_then(|id| self.spaces.get(&id)).is_some_and(|space| space.is_public)
    }

    fn space(&self, service: bool, id: Uuid) -> Result<&Space, Failure> {
        self.spaces.get(&id).filter(|_| self.sees(service, Some(id))).ok_or(MISSING)
    }

    fn of_space(&self, id: Uuid) -> Vec<Fidget> {
        let mut found: Vec<_> = self.fidgets.values().filter(|fidget| fidget.space_id == Some(id)).cloned().collect();
        found.sort_by_key(|fidget| (fidget.created_at, fidget.id));
        found
    }

    /// Whether a space may be inserted.
    fn check_space(&self, service: bool, new: &NewSpace) -> Result<(), Failure> {
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
    fn take_space(&mut self, new: NewSpace, made: &Space) {
        let expected = (new.name.expect("checked"), new.description, new.owner_id, new.is_public);
        let found = (made.name.clone(), made.description.clone(), made.owner_id, made.is_public);
        assert_eq!(found, expected);
        assert_eq!((made.created_at, made.updated_at), (self.now, self.now));
        assert!(self.spaces.insert(made.id, made.clone()).is_none(), "ids are new");
    }

    fn check_fidget(&self, service: bool, space: Uuid, new: &NewFidget) -> Result<(), Failure> {
        if !service {
            return Err(FORBIDDEN);
        }
        new.kind.as_ref().ok_or(NO_FIELD)?;
        if self.spaces.contains_key(&space) { Ok(()) } else { Err(NO_REFERENCE) }
    }

    fn take_fidget(&mut self, space: Uuid, new: NewFidget, made: &Fidget) {
        let expected = (new.kind.expect("checked"), new.config, new.position, Some(space));
        let found = (made.kind.clone(), made.config.clone(), made.position.clone(), made.space_id);
        assert_eq!(found, expected);
        assert_eq!((made.created_at, made.updated_at), (self.now, self.now));
        assert!(self.fidgets.insert(made.id, made.clone()).is_none(), "ids are new");
    }

    fn delete_space(&mut self, id: Uuid) {
        self.spaces.remove(&id);
        self.fidgets.retain(|_, fidget| fidget.space_id != Some(id));
    }
}

/// A run: the model, the library, and chance.
struct Run<'a> {
    model: Model,
    store: &'a Store,
    random: Random,
    did: BTreeMap<(&'static str, bool), u32>,
}

impl Run<'_> {
    /// Compares what the library said with what the model expects; the value when both agree that it worked.
    fn agree<T, E>(&mut self, what: &'static str, found: Result<T>, expected: Result<E, Failure>) -> Option<(T, E)> {
        *self.did.entry((what, expected.is_ok())).or_default() += 1;
        match (found, expected) {
            (Ok(found), Ok(expected)) => Some((found, expected)),
            (Err(error), Err(expected)) => {
                assert_eq!((error.kind(), error.code()), expected, "{what}: {error:?}");
                None
            }
            (Ok(_), Err(expected)) => panic!("{what} worked, where {expected:?} was due"),
            (Err(error), Ok(_)) => panic!("{what} failed, where it should have worked: {error:?}"),
        }
    }

    fn same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &'static str,
        found: Result<T>,
        expected: Result<T, Failure>,
    ) {
        if let Some((found, expected)) = self.agree(what, found, expected) {
            assert_eq!(found, expected, "{what}");
        }
    }

    fn client(&mut self) -> (&Client, bool) {
        let service = !self.random.percent(15);
        (if service { &self.store.service } else { &self.store.client }, service)
    }

    /// A known id in most cases, an unknown one in some.
    fn one_of(&mut self, known: Vec<Uuid>) -> Uuid {
        if known.is_empty() || self.random.percent(4) {
            Uuid::from_u128(7)
        } else {
            known[self.random.below(known.len())]
        }
    }

    fn a_space(&mut self) -> Uuid {
        let known = self.model.spaces.keys().copied().collect();
        self.one_of(known)
    }

    fn a_fidget(&mut self) -> Uuid {
        let known = self.model.fidgets.keys().copied().collect();
        self.one_of(known)
    }

    fn text(&mut self) -> String {
        self.random.pick(&["", "a", "Plaza", "o'clock", "żółć", "🏘", "two\nlines", "%"]).to_owned()
    }

    fn json(&mut self) -> Value {
        match self.random.below(6) {
            0 => Value::Null,
            1 => json!(self.random.next_u64()),
            2 => json!(self.random.next_u64().cast_signed()),
            3 => json!({"x": self.random.below(9), "text": self.text()}),
            4 => json!([true, [], {}, self.text()]),
            _ => json!(self.text()),
        }
    }

    fn optional<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.random.percent(50) { Some(make(self)) } else { None }
    }

    fn change<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Change<T> {
        match self.random.below(8) {
            0 => Change::Clear,
            1..=3 => Change::Set(make(self)),
            _ => Change::Keep,
        }
    }

    fn new_space(&mut self) -> NewSpace {
        let mut new = NewSpace::default();
        new.name = if self.random.percent(4) { None } else { Some(self.text()) };
        new.description = self.optional(Run::text);
        new.is_public = self.random.percent(50);
        let users = self.model.users.clone();
        new.owner_id = self.optional(|run| run.one_of(users));
        new
    }

    fn new_fidget(&mut self) -> NewFidget {
        let mut new = NewFidget::default();
        new.kind = if self.random.percent(4) { None } else { Some(self.text()) };
        new.config = self.optional(Run::json);
        new.position = self.optional(Run::json);
        new
    }

    fn step(&mut self) {
        let micros = self.random.below(50) as i64;
        match self.random.below(10) {
            0 => self.store.hands.step(SignedDuration::from_micros(-micros)),
            1..=4 => self.store.hands.step(SignedDuration::from_micros(micros)),
            _ => {}
        }
        self.model.now = self.store.hands.clock().now();
        match self.random.below(100) {
            0..=13 => self.create_spaces(),
            14..=21 => self.update_space(),
            22..=30 => self.delete_space(),
            31..=48 => self.create_fidgets(),
            49..=56 => self.update_fidget(),
            57..=61 => self.delete_fidget(),
            62..=66 => self.save_positions(),
            67..=84 => self.read_spaces(),
            85..=90 => self.save_config(),
            91..=95 => self.domains(),
            _ => self.register(),
        }
    }

    fn create_spaces(&mut self) {
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

    fn update_space(&mut self) {
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
                    Change::Keep => {}
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

    fn delete_space(&mut self) {
        let id = self.a_space();
        let (client, service) = self.client();
        let found = wait(client.spaces().delete_space(id));
        let expected = self.model.spaces.get(&id).filter(|_| service).map(|_| ()).ok_or(MISSING);
        if expected.is_ok() {
            self.model.delete_space(id);
        }
        self.same("delete space", found, expected);
    }

    fn create_fidgets(&mut self) {
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

    fn update_fidget(&mut self) {
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
                    Change::Keep => {}
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

    fn delete_fidget(&mut self) {
        let id = self.a_fidget();
        let (client, service) = self.client();
        let found = wait(client.fidgets().delete_fidget(id));
        let expected = self.model.fidgets.get(&id).filter(|_| service).map(|_| ()).ok_or(MISSING);
        if expected.is_ok() {
            self.model.fidgets.remove(&id);
        }
        self.same("delete fidget", found, expected);
    }

    fn save_positions(&mut self) {
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

    fn read_spaces(&mut self) {
        let (id, fidget) = (self.a_space(), self.a_fidget());
        let users = self.model.users.clone();
        let user = self.one_of(users);
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

    fn community(&mut self) -> String {
        format!("town-{}", self.random.below(12))
    }

    fn save_config(&mut self) {
        let id = self.community();
        let mut patch = CommunityPatch::new();
        let known = self.model.configs.contains_key(&id);
        let required = |run: &mut Self| if known { run.change(Run::json) } else { Change::Set(run.json()) };
        patch.brand_config = required(self);
        patch.assets_config = required(self);
        patch.community_config = required(self);
        patch.fidgets_config = required(self);
        patch.navigation_config = self.change(Run::json);
        patch.ui_config = self.change(Run::json);
        patch.admin_email = self.change(Run::text);
        patch.admin_identity_public_keys = self.change(|run| vec![run.text(), run.text()]);
        if self.random.percent(30) {
            patch.is_published = Change::Set(self.random.percent(70));
        }
        if self.random.percent(10) {
            patch.brand_config = Change::Clear;
        }
        let (client, service) = self.client();
        let client = client.clone();
        let found = wait(client.communities().save_community_config(&id, patch.clone()));
        let is_empty = patch == CommunityPatch::new();
        let lacks = [&patch.brand_config, &patch.assets_config, &patch.community_config, &patch.fidgets_config]
            .iter()
            .any(|change| matches!(change, Change::Clear));
        let expected = if !service {
            Err(UNAUTHORIZED)
        } else if lacks {
            Err(NO_FIELD)
        } else {
            Ok(())
        };
        if let Some((saved, ())) = self.agree("save config", found, expected) {
            let mut row = self.model.configs.get(&id).cloned().unwrap_or_else(|| {
                let mut new = saved.clone();
                (new.navigation_config, new.ui_config, new.admin_email) = (None, None, None);
                (new.admin_identity_public_keys, new.is_published, new.updated_at) = (None, true, self.model.now);
                new.updated_at -= Duration::from_micros(1);
                new
            });
            if !is_empty {
                let configs = [
                    (&mut row.brand_config, patch.brand_config),
                    (&mut row.assets_config, patch.assets_config),
                    (&mut row.community_config, patch.community_config),
                    (&mut row.fidgets_config, patch.fidgets_config),
                ];
                for (column, change) in configs {
                    if let Change::Set(value) = change {
                        *column = value;
                    }
                }
                set(&mut row.navigation_config, patch.navigation_config);
                set(&mut row.ui_config, patch.ui_config);
                set(&mut row.admin_email, patch.admin_email);
                set(&mut row.admin_identity_public_keys, patch.admin_identity_public_keys);
                if let Change::Set(is_published) = patch.is_published {
                    row.is_published = is_published;
                }
                row.updated_at = self.model.later(row.updated_at);
            }
            assert_eq!(saved, row, "save config");
            self.model.configs.insert(id.clone(), row);
        }
        let found = wait(client.communities().get_active_community_config(&id));
        let found = found.map(|found| found.map(|found| (found.brand, found.navigation, found.ui)));
        let active = self.model.configs.get(&id).filter(|row| row.is_published).map(|row| {
            let or_null = |value: &Option<Value>| value.clone().unwrap_or(Value::Null);
            (row.brand_config.clone(), or_null(&row.navigation_config), or_null(&row.ui_config))
        });
        self.same("get active config", found, Ok(active));
    }

    fn domains(&mut self) {
        let (id, host) = (self.community(), format!("h{}.example", self.random.below(12)));
        let kind = self.random.pick(DomainType::ALL);
        let deletes = self.random.percent(25);
        let (client, service) = self.client();
        let client = client.clone();
        let communities = client.communities();
        let key = (id.clone(), kind.as_str());
        let holder = self.model.domains.iter().find(|(_, row)| row.domain == host).map(|(key, _)| key.clone());
        if deletes {
            let expected = if service { holder.clone().ok_or(MISSING) } else { Err(UNAUTHORIZED) };
            if let Some(((), holder)) =
                self.agree("delete domain", wait(communities.delete_community_domain(&host)), expected)
            {
                self.model.domains.remove(&holder);
            }
        } else {
            let found = wait(communities.save_community_domain(&id, &format!("https://WWW.{host}/"), kind));
            let expected = if !service {
                Err(UNAUTHORIZED)
            } else if holder.is_some_and(|holder| holder != key) {
                Err(TAKEN)
            } else if !self.model.configs.contains_key(&id) {
                Err(NO_REFERENCE)
            } else {
                Ok(())
            };
            if let Some((saved, ())) = self.agree("save domain", found, expected) {
                let mut row = saved.clone();
                (row.created_at, row.updated_at) = match self.model.domains.get(&key) {
                    Some(old) => (old.created_at, self.model.later(old.updated_at)),
                    None => (self.model.now, self.model.now),
                };
                (row.community_id, row.domain, row.domain_type) = (id, host.clone(), kind);
                assert_eq!(saved, row, "save domain");
                self.model.domains.insert(key, row);
            }
        }
        let holder = self.model.domains.values().find(|row| row.domain == host).map(|row| row.community_id.clone());
        let answer = holder.filter(|id| self.model.configs.get(id).is_some_and(|config| config.is_published));
        self.same("resolve", wait(communities.resolve_community(&host)), Ok(answer));
    }

    fn register(&mut self) {
        let known: Vec<_> = self.model.registrations.keys().copied().collect();
        let id = if self.random.percent(30) { self.one_of(known) } else { self.a_space() };
        let mut new = NewRegistration::new(id, self.text(), self.random.pick(SpaceType::ALL));
        new.fid = self.optional(|run| run.random.next_u64() as i32);
        new.signature = self.optional(Run::text);
        if self.random.percent(4) {
            new.space_name = None;
        }
        let (client, service) = self.client();
        let client = client.clone();
        let found = wait(client.communities().register_space(new.clone()));
        let expected = if !service {
            Err(FORBIDDEN)
        } else if new.space_name.is_none() {
            Err(NO_FIELD)
        } else if self.model.registrations.contains_key(&id) {
            Err(TAKEN)
        } else {
            Ok(())
        };
        if let Some((made, ())) = self.agree("register", found, expected) {
            let fields =
                (made.space_id, Some(made.space_name.clone()), made.space_type, made.fid, made.signature.clone());
            assert_eq!(fields, (id, new.space_name, new.space_type, new.fid, new.signature));
            assert_eq!(made.timestamp, self.model.now);
            self.model.registrations.insert(id, made);
        }
        let expected = self.model.registrations.get(&id).cloned();
        self.same("get registration", wait(client.communities().get_space_registration(id)), Ok(expected));
    }
}

fn set<T>(column: &mut Option<T>, change: Change<T>) {
    match change {
        Change::Keep => {}
        Change::Clear => *column = None,
        Change::Set(value) => *column = Some(value),
    }
}

fn random_operations(engine: Engine, usual: usize) {
    let read = |variable: &str| env::var(variable).ok().and_then(|value| value.parse::<usize>().ok());
    let operations = read("TOWNSQUARE_TEST_OPERATIONS").unwrap_or(usual);
    let seed = read("TOWNSQUARE_TEST_SEED").unwrap_or(1);
    // What is asked here is not what a commit survives.
    let Some(store) = Store::with(engine, |config: Config| config.durability(Durability::Normal)) else { return };
    let users = (0..5).map(|_| store.user()).collect();
    let model = Model { now: morning(), users, ..Model::default() };
    let mut run = Run { model, store: &store, random: Random::seeded(seed as u64), did: BTreeMap::new() };
    for _ in 0..operations {
        run.step();
    }
    let kinds: BTreeSet<_> = run.did.keys().map(|(what, _)| *what).collect();
    assert!(kinds.len() >= 18, "every kind of operation was done: {kinds:?}");
    for (table, rows) in [
        ("spaces", run.model.spaces.len()),
        ("fidgets", run.model.fidgets.len()),
        ("community_configs", run.model.configs.len()),
        ("community_domains", run.model.domains.len()),
        ("\"spaceRegistrations\"", run.model.registrations.len()),
    ] {
        assert_eq!(store.outside.count(table), rows, "{table}");
    }
}

#[test]
fn random_operations_agree_with_the_model_on_sqlite() {
    random_operations(Engine::Sqlite, if cfg!(debug_assertions) { 10_000 } else { 100_000 });
}

#[test]
fn random_operations_agree_with_the_model_on_postgres() {
    random_operations(Engine::Postgres, if cfg!(debug_assertions) { 2_000 } else { 10_000 });
}
