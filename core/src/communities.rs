//! Communities: their configuration, their domains, and the spaces registered with them (SPEC 2.2 to 2.4, 4.3).
//!
//! Invariant: only the service writes here, but for a registration, which the space's owner may make too, and the
//! navigation, which those may set who hold one of the community's identity keys; what is published may be read by
//! everyone.

pub(crate) mod domain;
mod rows;
mod statements;

use serde_json::Value as Json;
use uuid::Uuid;

use self::statements as sql;
pub use crate::model::{
    ActiveCommunityConfig, Change, CommunityConfig, CommunityDomain, CommunityPatch, DomainType, NewRegistration,
    SpaceRegistration, SpaceType,
};
use crate::{
    clock::Clock,
    database::{Scope, Transaction},
    error::{Error, Operation, Result, WithOperation},
    policy::{Caller, Table},
    validate,
};

/// Rows of `community_configs`, `community_domains` and `spaceRegistrations`.
#[derive(Clone)]
pub struct Communities {
    scope: Scope,
    clock: Clock,
}

impl Communities {
    pub(crate) fn new(scope: Scope, clock: Clock) -> Communities {
        Communities { scope, clock }
    }

    /// Inserts a community's configuration, or updates the one with that `community_id`; the service only. What the
    /// patch does not name stays as it is, or takes SPEC 2.2's default in a new row.
    ///
    /// # Errors
    /// `FieldMissing` for a new row without its four required configurations, `InvalidInput` (22001) for an id of more
    /// than 50 characters, `Unauthorized` or `Forbidden` for anybody but the service.
    pub async fn save_community_config(&self, community_id: &str, patch: CommunityPatch) -> Result<CommunityConfig> {
        let save = async {
            self.scope.caller().require_service(Table::CommunityConfigs)?;
            validate::community_id(community_id)?;
            check(&patch)?;
            let values = rows::patch_values(community_id, patch, self.clock.now());
            let save = self.scope.write(move |transaction| Box::pin(upsert(transaction, values)));
            save.await
        };
        save.await.with_operation(Operation::SaveCommunityConfig)
    }

    /// The published configuration of a community as its clients read it (SPEC 4.3); `None` when there is none.
    ///
    /// # Errors
    /// Those of the database alone.
    pub async fn get_active_community_config(&self, community_id: &str) -> Result<Option<ActiveCommunityConfig>> {
        let select = async {
            validate::text("community_id", Some(&community_id))?;
            let values = [community_id.into()];
            Ok(self.scope.fetch(&sql::GET_ACTIVE_CONFIG, &values, rows::active_config).await?.pop())
        };
        select.await.with_operation(Operation::GetActiveCommunityConfig)
    }

    /// Sets a community's domain of a type, normalised (UPSTREAM 4), in place of the one it had; the service only.
    ///
    /// # Errors
    /// `AlreadyExists` for a domain that is taken, `ReferenceMissing` for an unknown community, `InvalidInput` for a
    /// domain that is empty, `Unauthorized` or `Forbidden` for anybody but the service.
    pub async fn save_community_domain(
        &self,
        community_id: &str,
        domain: &str,
        domain_type: DomainType,
    ) -> Result<CommunityDomain> {
        let save = async {
            self.scope.caller().require_service(Table::CommunityDomains)?;
            validate::community_id(community_id)?;
            let domain = domain::required(domain)?;
            let values = vec![
                Uuid::new_v4().into(),
                community_id.to_owned().into(),
                domain.into(),
                domain_type.as_str().into(),
                self.clock.now().into(),
            ];
            self.scope.execute(&sql::SAVE_DOMAIN, values, rows::domain).await?.ok_or_else(Error::not_found)
        };
        save.await.with_operation(Operation::SaveCommunityDomain)
    }

    /// Takes a domain away from its community; the service only.
    ///
    /// # Errors
    /// `NotFound` for a domain that nobody has, `Unauthorized` or `Forbidden` for anybody but the service.
    pub async fn delete_community_domain(&self, domain: &str) -> Result<()> {
        let delete = async {
            self.scope.caller().require_service(Table::CommunityDomains)?;
            let domain = domain::required(domain)?;
            let deleted = self.scope.change(&sql::DELETE_DOMAIN, vec![domain.into()], rows::id).await?;
            deleted.first().map(|_| ()).ok_or_else(Error::not_found)
        };
        delete.await.with_operation(Operation::DeleteCommunityDomain)
    }

    /// Sets a community's navigation and nothing else of it; the service, or a user who linked one of the community's
    /// `admin_identity_public_keys` and may see it. `None` clears it.
    ///
    /// # Errors
    /// `NotFound` for an unknown community; `Unauthorized` for nobody, `Forbidden` for a user who holds none of its keys, whether or
    /// not there is such a community.
    pub async fn update_navigation(&self, community_id: &str, navigation: Option<Json>) -> Result<CommunityConfig> {
        let update = async {
            let caller = self.scope.caller();
            if caller == Caller::Anonymous {
                return Err(caller.denied(Table::CommunityConfigs));
            }
            validate::community_id(community_id)?;
            validate::json("navigation_config", navigation.as_ref())?;
            let values = vec![community_id.to_owned().into(), navigation.into(), self.clock.now().into()];
            let updated = self.scope.change(&sql::UPDATE_NAVIGATION, values, rows::config).await?.pop();
            updated.ok_or_else(|| match caller {
                Caller::Service => Error::not_found(),
                _ => caller.denied(Table::CommunityConfigs),
            })
        };
        update.await.with_operation(Operation::UpdateNavigation)
    }

    /// The community that answers at a host, as an HTTP `Host` header has it (UPSTREAM 4): by its domain, or by its
    /// own id; `None` when nothing published answers there.
    ///
    /// # Errors
    /// Those of the database alone.
    pub async fn resolve_community(&self, host: &str) -> Result<Option<String>> {
        let select = async {
            validate::text("host", Some(&host))?;
            let host = domain::normalised(host);
            Ok(self.scope.fetch(&sql::RESOLVE, &[host.into()], |row| row.get(0)).await?.pop())
        };
        select.await.with_operation(Operation::ResolveCommunity)
    }

    /// Registers a space, once; the service or the space's owner.
    ///
    /// # Errors
    /// `AlreadyExists` for a space that is registered, `FieldMissing` without a name, `Forbidden` for somebody else's
    /// space.
    pub async fn register_space(&self, registration: NewRegistration) -> Result<SpaceRegistration> {
        let insert = async {
            validate::text("space_name", registration.space_name.as_ref())?;
            validate::text("identity_public_key", registration.identity_public_key.as_ref())?;
            validate::text("signature", registration.signature.as_ref())?;
            let values = vec![
                registration.space_id.into(),
                registration.fid.into(),
                registration.space_name.into(),
                registration.space_type.as_str().into(),
                registration.identity_public_key.into(),
                registration.signature.into(),
                self.clock.now().into(),
            ];
            let inserted = self.scope.change(&sql::REGISTER_SPACE, values, rows::registration).await?;
            inserted.into_iter().next().ok_or_else(|| Error::new_row_violates(Table::SpaceRegistrations.name()))
        };
        insert.await.with_operation(Operation::RegisterSpace)
    }

    /// The registration of a space; `None` for one that is not registered.
    ///
    /// # Errors
    /// Those of the database alone.
    pub async fn get_space_registration(&self, space_id: Uuid) -> Result<Option<SpaceRegistration>> {
        let found = self.scope.fetch(&sql::GET_REGISTRATION, &[space_id.into()], rows::registration).await;
        found.map(|mut rows| rows.pop()).with_operation(Operation::GetSpaceRegistration)
    }
}

/// Updates the row, or inserts it; another writer may come between the two, and then the row is there to update.
async fn upsert(transaction: &mut Transaction<'_>, values: rows::ConfigValues) -> Result<CommunityConfig> {
    if values.is_empty {
        let id = &values.update[..1];
        if let Some(row) = transaction.fetch(&sql::GET_CONFIG, id, rows::config).await?.pop() {
            return Ok(row);
        }
    }
    for _ in 0..2 {
        if let Some(row) = transaction.fetch(&sql::UPDATE_CONFIG, &values.update, rows::config).await?.pop() {
            return Ok(row);
        }
        if let Some(row) = transaction.fetch(&sql::INSERT_CONFIG, &values.insert, rows::config).await?.pop() {
            return Ok(row);
        }
    }
    Err(Error::not_found())
}

fn check(patch: &CommunityPatch) -> Result<()> {
    validate::json("brand_config", patch.brand_config.as_set())?;
    validate::json("assets_config", patch.assets_config.as_set())?;
    validate::json("community_config", patch.community_config.as_set())?;
    validate::json("fidgets_config", patch.fidgets_config.as_set())?;
    validate::json("navigation_config", patch.navigation_config.as_set())?;
    validate::json("ui_config", patch.ui_config.as_set())?;
    validate::text("admin_email", patch.admin_email.as_set())?;
    for key in patch.admin_identity_public_keys.as_set().into_iter().flatten() {
        validate::text("admin_identity_public_keys", Some(key))?;
    }
    Ok(())
}
