//! The service for communities: their configuration, their domains and their registered spaces.
//!
//! Invariant: only the service writes, with two exceptions: a space's owner may register the space, and a user who has
//! linked one of a community's identity keys may change its navigation. Every caller may read a published configuration.

pub(crate) mod domain;
mod list;
mod statements;

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use self::statements as sql;
pub use crate::model::{
    ActiveCommunityConfig, Change, CommunityConfig, CommunityDomain, CommunityPatch, DomainType, NewRegistration,
    SpaceRegistration, SpaceType,
};
use crate::{
    clock::Clock,
    database::{Scope, Transaction, call, record},
    error::{Error, Operation, Result},
    model::Validate as _,
    policy::{Caller, Table},
    validate::{self, Limits},
};

/// Operations on rows of `community_configs`, `community_domains` and `spaceRegistrations`.
///
/// Most examples use the [blocking client](crate::blocking::Client). With the async one, add `.await` to each call.
#[derive(Clone)]
pub struct Communities {
    scope: Scope,
    clock: Clock,
    limits: Limits,
}

impl Communities {
    pub(crate) fn new(scope: Scope, clock: Clock, limits: Limits) -> Communities {
        Communities { scope, clock, limits }
    }

    /// Creates a community's configuration, or changes the existing one; only for the service. An empty patch changes
    /// nothing in an existing configuration.
    ///
    /// # Errors
    /// `FieldMissing` for a new row without its four required configurations, and if the patch clears `is_published` or
    /// `custom_domain_authorized`; `InvalidInput` for an empty id, and (22001) for one of more than 50 characters; `TooLarge` for
    /// text over `max_text_size` or JSON over `max_json_size`; `Unauthorized` or `Forbidden` if the caller is not the service.
    ///
    /// # Examples
    /// ```
    /// use townsquare::{Json, communities::{Change, CommunityPatch}};
    /// # fn example(client: &townsquare::blocking::Client, brand: Json, assets: Json, community: Json, fidgets: Json)
    /// # -> townsquare::Result<()> {
    /// let mut patch = CommunityPatch::with_required(brand, assets, community, fidgets);
    /// patch.admin_email = Change::Set("ann@town.example".to_owned());
    /// let config = client.as_service().communities().save_community_config("town", patch)?;
    /// assert!(config.is_published);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn save_community_config(&self, community_id: &str, patch: CommunityPatch) -> Result<CommunityConfig> {
        call(&self.scope, Operation::SaveCommunityConfig, async {
            self.scope.current_principal().require_service(Table::CommunityConfigs)?;
            validate::community_id(community_id)?;
            patch.validate(&self.limits)?;
            let (community_id, now) = (community_id.to_owned(), self.clock.now());
            self.scope.write(move |transaction| Box::pin(upsert_config(transaction, community_id, patch, now))).await
        })
        .await
    }

    /// Returns the published configuration of a community in the form for its clients; `None` if there is none.
    ///
    /// # Errors
    /// Errors of the database only.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// if let Some(config) = client.communities().get_active_community_config("town")? {
    ///     println!("{}", config.brand);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_active_community_config(&self, community_id: &str) -> Result<Option<ActiveCommunityConfig>> {
        call(&self.scope, Operation::GetActiveCommunityConfig, async {
            self.limits.text("community_id", community_id)?;
            self.scope.fetch_optional(&sql::GET_ACTIVE_CONFIG, &[community_id.into()], record).await
        })
        .await
    }

    /// Saves a community's domain of this type in place of its previous one; only for the service. The domain is
    /// stored normalised: trimmed, in lower case, in its ASCII form, and without scheme, port, path, a leading `www.`
    /// and a dot at the end.
    ///
    /// # Errors
    /// `AlreadyExists` if another row has the domain; `ReferenceMissing` for an unknown community; `InvalidInput` for
    /// an empty domain or id; `Unauthorized` or `Forbidden` if the caller is not the service.
    ///
    /// # Examples
    /// ```
    /// use townsquare::communities::DomainType;
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let service = client.as_service();
    /// let domain = service.communities().save_community_domain("town", "WWW.Town.Example", DomainType::Custom)?;
    /// assert_eq!(domain.domain, "town.example");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn save_community_domain(
        &self,
        community_id: &str,
        domain: &str,
        domain_type: DomainType,
    ) -> Result<CommunityDomain> {
        call(&self.scope, Operation::SaveCommunityDomain, async {
            self.scope.current_principal().require_service(Table::CommunityDomains)?;
            validate::community_id(community_id)?;
            self.limits.text("domain", domain)?;
            let values = vec![
                Uuid::new_v4().into(),
                community_id.to_owned().into(),
                domain::required(domain)?.into(),
                domain_type.into(),
                self.clock.now().into(),
            ];
            self.scope.execute(&sql::SAVE_DOMAIN, values, record).await?.ok_or_else(Error::not_found)
        })
        .await
    }

    /// Deletes a domain of a community; only for the service. A row with exactly this text comes first, then the normal form: a row that
    /// another program wrote may have another form.
    ///
    /// # Errors
    /// `NotFound` if no community has the domain; `Unauthorized` or `Forbidden` if the caller is not the service.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// client.as_service().communities().delete_community_domain("town.example")?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_community_domain(&self, domain: &str) -> Result<()> {
        call(&self.scope, Operation::DeleteCommunityDomain, async {
            self.scope.current_principal().require_service(Table::CommunityDomains)?;
            self.limits.text("domain", domain)?;
            let values = vec![domain::normalised(domain).into(), domain.to_owned().into()];
            let deleted = self.scope.execute(&sql::DELETE_DOMAIN, values, |row| row.get::<Uuid>(0)).await?;
            deleted.map(drop).ok_or_else(Error::not_found)
        })
        .await
    }

    /// Sets a community's navigation and nothing else; `None` clears it. For the service, and for a user who has linked
    /// one of the community's `admin_identity_public_keys` and may see the community. The user gets the configuration without
    /// the columns that only the service reads: keys and address are missing, `custom_domain_authorized` is false.
    ///
    /// # Errors
    /// For the service, `NotFound` if the community does not exist. `Unauthorized` for an anonymous caller. `Forbidden`
    /// for a user who holds none of the keys, whether or not the community exists.
    ///
    /// # Examples
    /// ```
    /// use townsquare::Json;
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// client.communities().update_navigation("town", Some(Json::from(vec!["home", "chess"])))?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_navigation(&self, community_id: &str, navigation: Option<Json>) -> Result<CommunityConfig> {
        call(&self.scope, Operation::UpdateNavigation, async {
            let caller = self.scope.caller();
            if caller == Caller::Anonymous {
                return Err(caller.permission_denied(Table::CommunityConfigs));
            }
            validate::community_id(community_id)?;
            navigation.validate("navigation_config", &self.limits)?;
            let values = vec![community_id.to_owned().into(), navigation.into(), self.clock.now().into()];
            let updated = self.scope.execute(&sql::UPDATE_NAVIGATION, values, record).await?;
            updated.ok_or_else(|| match caller {
                Caller::Service => Error::not_found(),
                Caller::Anonymous | Caller::User(_) => caller.permission_denied(Table::CommunityConfigs),
            })
        })
        .await
    }

    /// Returns the id of the published community that answers at a host: the community with this domain, or with this
    /// id; `None` if there is none. `host` is an HTTP `Host` header. It is normalised as
    /// [`save_community_domain`](Communities::save_community_domain) normalises a domain.
    ///
    /// # Errors
    /// Errors of the database only.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let community_id = client.communities().resolve_community("www.town.example:443")?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resolve_community(&self, host: &str) -> Result<Option<String>> {
        call(&self.scope, Operation::ResolveCommunity, async {
            self.limits.text("host", host)?;
            let values = [domain::normalised(host).into(), domain::spelled(host).into()];
            self.scope.fetch_optional(&sql::RESOLVE_COMMUNITY, &values, |row| row.get(0)).await
        })
        .await
    }

    /// Registers a space, once. For the service and the space's owner.
    ///
    /// Readers take the columns of a registration for proven. So a user may name only an identity key that the user has
    /// [linked](crate::auth::Auth::link_identity). `fid` and `signature` are for the service, which checks them before it
    /// stores them; the library does not.
    ///
    /// # Errors
    /// `AlreadyExists` if the space is registered; `FieldMissing` without a name; `Forbidden` if the space is not the
    /// caller's, and for a user's registration with a `fid`, a `signature`, or an identity key that the user has not linked.
    ///
    /// # Examples
    /// ```
    /// use townsquare::communities::{NewRegistration, SpaceType};
    /// # fn example(client: &townsquare::blocking::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let registration = NewRegistration::new(space_id, "Chess", SpaceType::Profile);
    /// client.communities().register_space(registration)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn register_space(&self, registration: NewRegistration) -> Result<SpaceRegistration> {
        call(&self.scope, Operation::RegisterSpace, async {
            registration.validate(&self.limits)?;
            let values = registration.insert_values([self.clock.now().into()]);
            let inserted = self.scope.execute(&sql::REGISTER_SPACE, values, record).await?;
            inserted.ok_or_else(|| Table::SpaceRegistrations.insert_refused())
        })
        .await
    }

    /// Returns the registration of a space; `None` if the space is not registered.
    ///
    /// # Errors
    /// Errors of the database only.
    ///
    /// # Examples
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// if let Some(registration) = client.communities().get_space_registration(space_id)? {
    ///     println!("{} since {}", registration.space_name, registration.timestamp);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_space_registration(&self, space_id: Uuid) -> Result<Option<SpaceRegistration>> {
        let values = [space_id.into()];
        let registration = self.scope.fetch_optional(&sql::GET_REGISTRATION, &values, record);
        call(&self.scope, Operation::GetSpaceRegistration, registration).await
    }
}

crate::model::opaque!(Communities);

/// Updates the configuration, or inserts it. If another writer inserts it between the two statements, the second round
/// updates it.
async fn upsert_config(
    transaction: &mut Transaction<'_>,
    community_id: String,
    patch: CommunityPatch,
    now: Timestamp,
) -> Result<CommunityConfig> {
    if patch.is_empty() {
        let values = [community_id.as_str().into()];
        if let Some(config) = transaction.fetch_optional(&sql::GET_CONFIG, &values, record).await? {
            return Ok(config);
        }
    }
    let update = patch.clone().update_values([community_id.clone().into(), now.into()]);
    let insert = patch.insert_values([Uuid::new_v4().into(), community_id.into(), now.into()]);
    for _ in 0..2 {
        if let Some(config) = transaction.fetch_optional(&sql::UPDATE_CONFIG, &update, record).await? {
            return Ok(config);
        }
        if let Some(config) = transaction.fetch_optional(&sql::INSERT_CONFIG, &insert, record).await? {
            return Ok(config);
        }
    }
    Err(Error::not_found())
}
