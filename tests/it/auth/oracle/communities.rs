//! Random operations on communities, their domains and registered spaces.

use std::time::Duration;

use serde_json::Value;
use townsquare::{
    Change, CommunityPatch, DomainType, ErrorKind, NewRegistration, Operation, SpaceType, blocking::wait,
};

use super::{Failure, MISSING, NO_FIELD, NO_REFERENCE, Run, TAKEN, Turn, rights::Who, set};

const FOREIGN_REGISTRATION: Failure = (
    ErrorKind::Forbidden,
    Some("42501"),
    "Database error: new row violates row-level security policy for table \"spaceRegistrations\"",
);

const CONFIGS: &str = "Database error: permission denied for table community_configs";
const DOMAINS: &str = "Database error: permission denied for table community_domains";

/// What somebody hears who asks for what is the service's.
fn service_only(who: Who, words: &'static str) -> Result<(), Failure> {
    match who {
        Who::Service => Ok(()),
        Who::Nobody => Err((ErrorKind::Unauthorized, Some("42501"), words)),
        Who::User(_) => Err((ErrorKind::Forbidden, Some("42501"), words)),
    }
}

impl Run<'_> {
    fn community(&mut self) -> String {
        format!("town-{}", self.random.below(10))
    }

    pub(super) fn save_config(&mut self, turn: &Turn) {
        let id = self.community();
        let mut patch = CommunityPatch::new();
        let known = self.world.communities.contains_key(&id);
        let required = |run: &mut Self| if known { run.change(Run::json) } else { Change::Set(run.json()) };
        patch.brand_config = required(self);
        patch.assets_config = required(self);
        patch.community_config = required(self);
        patch.fidgets_config = required(self);
        patch.navigation_config = self.change(Run::json);
        patch.admin_email = self.change(Run::text);
        patch.admin_identity_public_keys = self.change(|run| vec![run.key().1, run.text(), run.key().1]);
        patch.is_published = match self.random.below(12) {
            0 | 1 => Change::Set(false),
            2 => Change::Clear,
            3..=7 => Change::Set(true),
            _ => Change::Keep,
        };
        let lacks = [&patch.brand_config, &patch.assets_config, &patch.community_config, &patch.fidgets_config]
            .iter()
            .any(|change| matches!(change, Change::Clear));
        let due = service_only(turn.who, CONFIGS).and(if lacks { Err(NO_FIELD) } else { Ok(()) });
        let saved = wait(turn.client.communities().save_community_config(&id, patch.clone()));
        let Some((saved, ())) = self.agree(turn, Operation::SaveCommunityConfig, saved, due) else { return };
        let mut row = self.world.communities.get(&id).cloned().unwrap_or_else(|| {
            let mut new = saved.clone();
            (new.navigation_config, new.ui_config, new.admin_email) = (None, None, None);
            (new.admin_identity_public_keys, new.is_published, new.updated_at) = (None, true, self.world.now);
            new.updated_at -= Duration::from_micros(1);
            new
        });
        if patch != CommunityPatch::new() {
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
            set(&mut row.admin_email, patch.admin_email);
            set(&mut row.admin_identity_public_keys, patch.admin_identity_public_keys);
            match patch.is_published {
                Change::Set(is_published) => row.is_published = is_published,
                // Neither true nor false is not published.
                Change::Clear => row.is_published = false,
                _ => {}
            }
            row.updated_at = self.world.later(row.updated_at);
        }
        assert_eq!(saved, row, "step {}", self.done);
        self.world.communities.insert(id, row);
    }

    pub(super) fn update_navigation(&mut self, turn: &Turn) {
        let (id, navigation) = (self.community(), self.optional(Run::json));
        let may = self.world.communities.get(&id).filter(|row| {
            let keys = row.admin_identity_public_keys.as_deref().unwrap_or_default();
            turn.who.sets_navigation(Some(row.is_published), keys, |key| self.world.holders.get(key).copied())
        });
        let due = match (may.cloned(), turn.who) {
            (Some(mut row), _) => {
                row.navigation_config.clone_from(&navigation);
                row.updated_at = self.world.later(row.updated_at);
                Ok(row)
            }
            (None, Who::Service) => Err(MISSING),
            // Whether there is such a community stays untold.
            (None, Who::Nobody) => Err((ErrorKind::Unauthorized, Some("42501"), CONFIGS)),
            (None, Who::User(_)) => Err((ErrorKind::Forbidden, Some("42501"), CONFIGS)),
        };
        let updated = wait(turn.client.communities().update_navigation(&id, navigation));
        if let Some((updated, row)) = self.agree(turn, Operation::UpdateNavigation, updated, due) {
            assert_eq!(updated, row);
            self.world.communities.insert(id, row);
        }
    }

    pub(super) fn read_community(&mut self, turn: &Turn) {
        let id = self.community();
        let found = wait(turn.client.communities().get_active_community_config(&id));
        let published = self.world.communities.get(&id).filter(|row| row.is_published);
        let due = published.map(|row| {
            let navigation = row.navigation_config.clone().unwrap_or(Value::Null);
            (row.brand_config.clone(), row.fidgets_config.clone(), navigation)
        });
        let found = found.map(|found| found.map(|found| (found.brand, found.fidgets, found.navigation)));
        self.same(turn, Operation::GetActiveCommunityConfig, found, Ok(due));
        let host = self.host();
        self.resolve(turn, &host);
    }

    fn host(&mut self) -> String {
        format!("h{}.example", self.random.below(10))
    }

    fn resolve(&mut self, turn: &Turn, host: &str) {
        let holder = self.world.domains.values().find(|row| row.domain == host).map(|row| row.community_id.clone());
        let due = holder.filter(|id| self.world.communities.get(id).is_some_and(|row| row.is_published));
        let found = wait(turn.client.communities().resolve_community(host));
        self.same(turn, Operation::ResolveCommunity, found, Ok(due));
    }

    pub(super) fn domains(&mut self, turn: &Turn) {
        let (id, host) = (self.community(), self.host());
        let kind = self.random.pick(DomainType::ALL);
        let key = (id.clone(), kind.as_str());
        let holder = self.world.domains.iter().find(|(_, row)| row.domain == host).map(|(key, _)| key.clone());
        if self.random.percent(25) {
            let due = service_only(turn.who, DOMAINS).and_then(|()| holder.ok_or(MISSING));
            let deleted = wait(turn.client.communities().delete_community_domain(&host));
            if let Some(((), holder)) = self.agree(turn, Operation::DeleteCommunityDomain, deleted, due) {
                self.world.domains.remove(&holder);
            }
        } else {
            let due = service_only(turn.who, DOMAINS).and_then(|()| match holder {
                Some(holder) if holder != key => Err(TAKEN),
                _ if !self.world.communities.contains_key(&id) => Err(NO_REFERENCE),
                _ => Ok(()),
            });
            let saved = wait(turn.client.communities().save_community_domain(&id, &host, kind));
            if let Some((saved, ())) = self.agree(turn, Operation::SaveCommunityDomain, saved, due) {
                let mut row = saved.clone();
                (row.created_at, row.updated_at) = match self.world.domains.get(&key) {
                    Some(old) => (old.created_at, self.world.later(old.updated_at)),
                    None => (self.world.now, self.world.now),
                };
                (row.community_id, row.domain, row.domain_type) = (id, host.clone(), kind);
                assert_eq!(saved, row);
                self.world.domains.insert(key, row);
            }
        }
        self.resolve(turn, &host);
    }

    pub(super) fn register(&mut self, turn: &Turn) {
        let id = self.a_space();
        let mut new = NewRegistration::new(id, self.text(), self.random.pick(SpaceType::ALL));
        new.fid = self.optional(|run| run.random.next_u64() as i32);
        new.signature = self.optional(Run::text);
        if self.random.percent(4) {
            new.space_name = None;
        }
        let due = if turn.who != Who::Service && !self.world.owns(turn.who, id) {
            Err(FOREIGN_REGISTRATION)
        } else if new.space_name.is_none() {
            Err(NO_FIELD)
        } else if self.world.registrations.contains_key(&id) {
            Err(TAKEN)
        } else {
            Ok(())
        };
        let made = wait(turn.client.communities().register_space(new.clone()));
        if let Some((made, ())) = self.agree(turn, Operation::RegisterSpace, made, due) {
            let fields =
                (made.space_id, Some(made.space_name.clone()), made.space_type, made.fid, made.signature.clone());
            assert_eq!(fields, (id, new.space_name, new.space_type, new.fid, new.signature));
            assert_eq!(made.timestamp, self.world.now);
            self.world.registrations.insert(id, made);
        }
    }
}
