//! Random operations on communities, their domains and registered spaces.

use std::time::Duration;

use townsquare::{
    ErrorKind, Json, Operation, Uuid,
    communities::{ActiveCommunityConfig, CommunityPatch, DomainType, NewRegistration, SpaceType},
    spaces::Change,
};

use super::{
    Caller, Failure, MISSING, NO_FIELD, NO_REFERENCE, Run, TAKEN, rights::Principal, set, set_flag, set_required,
};

const FOREIGN_REGISTRATION: Failure = (
    ErrorKind::Forbidden,
    Some("42501"),
    "Database error: new row violates row-level security policy for table \"spaceRegistrations\"",
);

const CONFIGS: &str = "Database error: permission denied for table community_configs";
const DOMAINS: &str = "Database error: permission denied for table community_domains";

/// The error of callers other than the service.
fn service_only(principal: Principal, message: &'static str) -> Result<(), Failure> {
    match principal {
        Principal::Service => Ok(()),
        Principal::Anonymous => Err((ErrorKind::Unauthorized, Some("42501"), message)),
        Principal::User(_) => Err((ErrorKind::Forbidden, Some("42501"), message)),
    }
}

/// The values of an active configuration, in the order of [`Run::active`].
fn values(config: ActiveCommunityConfig) -> [Json; 6] {
    [config.brand, config.assets, config.community, config.fidgets, config.navigation, config.ui]
}

impl Run<'_> {
    fn community_id(&mut self) -> String {
        format!("town-{}", self.random.u32(..12))
    }

    pub(super) fn save_config(&mut self, caller: &Caller) {
        let id = self.community_id();
        let mut patch = CommunityPatch::new();
        let is_known = self.model.communities.contains_key(&id);
        let required = |run: &mut Self| if is_known { run.change(Run::json) } else { Change::Set(run.json()) };
        patch.brand_config = required(self);
        patch.assets_config = required(self);
        patch.community_config = required(self);
        patch.fidgets_config = required(self);
        patch.navigation_config = self.change(Run::json);
        patch.ui_config = self.change(Run::json);
        patch.admin_email = self.change(Run::text);
        patch.admin_identity_public_keys = self.change(|run| vec![run.key().1, run.text(), run.key().1]);
        patch.is_published = match self.random.u32(..12) {
            0..=2 => Change::Set(false),
            3..=7 => Change::Set(true),
            _ => Change::Keep,
        };
        if self.percent(5) {
            patch.brand_config = Change::Clear;
        }
        let lacks = [&patch.brand_config, &patch.assets_config, &patch.community_config, &patch.fidgets_config]
            .iter()
            .any(|change| matches!(change, Change::Clear));
        let expected = service_only(caller.principal, CONFIGS).and(if lacks { Err(NO_FIELD) } else { Ok(()) });
        let saved = caller.client.communities().save_community_config(&id, patch.clone());
        if let Some((saved, ())) = self.agree(caller, Operation::SaveCommunityConfig, saved, expected) {
            let mut row = self.model.communities.get(&id).cloned().unwrap_or_else(|| {
                let mut new = saved.clone();
                (new.navigation_config, new.ui_config, new.admin_email) = (None, None, None);
                (new.admin_identity_public_keys, new.is_published, new.updated_at) = (None, true, self.model.now);
                new.updated_at -= Duration::from_micros(1);
                new
            });
            if patch != CommunityPatch::new() {
                set_required(&mut row.brand_config, patch.brand_config);
                set_required(&mut row.assets_config, patch.assets_config);
                set_required(&mut row.community_config, patch.community_config);
                set_required(&mut row.fidgets_config, patch.fidgets_config);
                set(&mut row.navigation_config, patch.navigation_config);
                set(&mut row.ui_config, patch.ui_config);
                set(&mut row.admin_email, patch.admin_email);
                set(&mut row.admin_identity_public_keys, patch.admin_identity_public_keys);
                set_flag(&mut row.is_published, patch.is_published);
                row.updated_at = self.model.later(row.updated_at);
            }
            assert_eq!(saved, row, "step {}", self.steps);
            self.model.communities.insert(id.clone(), row);
        }
        self.get_active_config(caller, &id);
    }

    pub(super) fn update_navigation(&mut self, caller: &Caller) {
        let (id, navigation) = (self.community_id(), self.optional(Run::json));
        let row = self.model.communities.get(&id).filter(|row| {
            let keys = row.admin_identity_public_keys.as_deref().unwrap_or_default();
            let holder = |key: &str| self.model.holders.get(key).copied();
            caller.principal.sets_navigation(Some(row.is_published), keys, holder)
        });
        let expected = match row.cloned() {
            Some(mut row) => {
                row.navigation_config.clone_from(&navigation);
                row.updated_at = self.model.later(row.updated_at);
                Ok(row)
            }
            // For other callers than the service, a missing community fails like one that they may not change.
            None => service_only(caller.principal, CONFIGS).and(Err(MISSING)),
        };
        let updated = caller.client.communities().update_navigation(&id, navigation);
        if let Some((updated, row)) = self.agree(caller, Operation::UpdateNavigation, updated, expected) {
            let mut readable = row.clone();
            if caller.principal != Principal::Service {
                (readable.admin_email, readable.admin_identity_public_keys) = (None, None);
                readable.custom_domain_authorized = false;
            }
            assert_eq!(updated, readable);
            self.model.communities.insert(id, row);
        }
    }

    pub(super) fn read_community(&mut self, caller: &Caller) {
        let (id, host) = (self.community_id(), self.host());
        self.get_active_config(caller, &id);
        self.resolve(caller, &host);
    }

    fn get_active_config(&mut self, caller: &Caller, id: &str) {
        let published = self.model.communities.get(id).filter(|row| row.is_published).cloned();
        let expected = published.map(|row| {
            let [navigation, ui] = [row.navigation_config, row.ui_config].map(Option::unwrap_or_default);
            [row.brand_config, row.assets_config, row.community_config, row.fidgets_config, navigation, ui]
        });
        let found = caller.client.communities().get_active_community_config(id).map(|found| found.map(values));
        self.assert_same(caller, Operation::GetActiveCommunityConfig, found, Ok(expected));
    }

    fn host(&mut self) -> String {
        format!("h{}.example", self.random.u32(..12))
    }

    fn resolve(&mut self, caller: &Caller, host: &str) {
        let holder = self.model.domains.values().find(|row| row.domain == host).map(|row| row.community_id.clone());
        let expected = holder.filter(|id| self.model.communities.get(id).is_some_and(|row| row.is_published));
        let found = caller.client.communities().resolve_community(host);
        self.assert_same(caller, Operation::ResolveCommunity, found, Ok(expected));
    }

    pub(super) fn save_or_delete_domain(&mut self, caller: &Caller) {
        let (id, host) = (self.community_id(), self.host());
        let kind = self.pick(DomainType::ALL);
        let key = (id.clone(), kind.as_str());
        let holder = self.model.domains.iter().find(|(_, row)| row.domain == host).map(|(key, _)| key.clone());
        let right = service_only(caller.principal, DOMAINS);
        if self.percent(25) {
            let expected = right.and_then(|()| holder.ok_or(MISSING));
            let deleted = caller.client.communities().delete_community_domain(&host);
            if let Some(((), holder)) = self.agree(caller, Operation::DeleteCommunityDomain, deleted, expected) {
                self.model.domains.remove(&holder);
            }
        } else {
            let expected = right.and_then(|()| match holder {
                Some(holder) if holder != key => Err(TAKEN),
                _ if !self.model.communities.contains_key(&id) => Err(NO_REFERENCE),
                _ => Ok(()),
            });
            let spelling = if self.percent(50) { host.clone() } else { format!("https://WWW.{host}/") };
            let saved = caller.client.communities().save_community_domain(&id, &spelling, kind);
            if let Some((saved, ())) = self.agree(caller, Operation::SaveCommunityDomain, saved, expected) {
                let mut row = saved.clone();
                (row.created_at, row.updated_at) = match self.model.domains.get(&key) {
                    Some(old) => (old.created_at, self.model.later(old.updated_at)),
                    None => (self.model.now, self.model.now),
                };
                (row.community_id, row.domain, row.domain_type) = (id, host.clone(), kind);
                assert_eq!(saved, row);
                self.model.domains.insert(key, row);
            }
        }
        self.resolve(caller, &host);
    }

    pub(super) fn register_space(&mut self, caller: &Caller) {
        let registered = self.percent(30) && !self.model.registrations.is_empty();
        let id = if registered {
            self.one_of(|model| model.registrations.keys().copied().collect())
        } else {
            self.space_id()
        };
        let mut new = NewRegistration::new(id, self.text(), self.pick(SpaceType::ALL));
        if caller.principal == Principal::Service || self.percent(20) {
            new.fid = self.optional(|run| run.random.i32(..));
            new.signature = self.optional(Run::text);
        }
        if self.percent(4) {
            new.space_name = None;
        }
        let is_unproven = new.fid.is_some() || new.signature.is_some();
        let is_refused = is_unproven || !self.model.owns(caller.principal, id);
        let expected = if caller.principal != Principal::Service && is_refused {
            Err(FOREIGN_REGISTRATION)
        } else if new.space_name.is_none() {
            Err(NO_FIELD)
        } else if self.model.registrations.contains_key(&id) {
            Err(TAKEN)
        } else {
            Ok(())
        };
        let made = caller.client.communities().register_space(new.clone());
        if let Some((made, ())) = self.agree(caller, Operation::RegisterSpace, made, expected) {
            let fields =
                (made.space_id, Some(made.space_name.clone()), made.space_type, made.fid, made.signature.clone());
            assert_eq!(fields, (id, new.space_name, new.space_type, new.fid.map(i64::from), new.signature));
            assert_eq!(made.timestamp, self.model.now);
            self.model.registrations.insert(id, made);
        }
        self.get_registration(caller, id);
    }

    pub(super) fn get_registration(&mut self, caller: &Caller, id: Uuid) {
        let expected = self.model.registrations.get(&id).cloned();
        let found = caller.client.communities().get_space_registration(id);
        self.assert_same(caller, Operation::GetSpaceRegistration, found, Ok(expected));
    }
}
