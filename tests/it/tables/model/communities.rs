//! Random operations on communities, their domains and registered spaces.

use std::time::Duration;

use serde_json::Value;
use townsquare::{Change, CommunityPatch, DomainType, NewRegistration, SpaceType, blocking::wait};

use super::{FORBIDDEN, MISSING, NO_FIELD, NO_REFERENCE, Run, TAKEN, UNAUTHORIZED, set};

impl Run<'_> {
    pub(super) fn community(&mut self) -> String {
        format!("town-{}", self.random.below(12))
    }

    pub(super) fn save_config(&mut self) {
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

    pub(super) fn domains(&mut self) {
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

    pub(super) fn register(&mut self) {
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
