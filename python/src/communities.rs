//! Communities: configurations, domains and registered spaces (SPEC 2.2 to 2.4, 4.3), and their records.

use pyo3::{prelude::*, types::PyDict};
use townsquare::{
    Operation,
    communities::{CommunityPatch, DomainType, NewRegistration, SpaceType},
};

use crate::{
    area::area,
    argument::{
        AfterArg, FlagUpdate, IdArg, IntArg, KeyedRecord, LIMIT_RANGE, LIST_PAGE, TextArg, TextListArg, Update,
        optional_text,
    },
    json::{JsonArg, PyJson},
    record::{PyTime, record},
    run::{MethodResult, NoValue},
};

area! {
    "Communities",
    #[doc = text_of!(Communities)]
    Communities,
    #[doc = text_of!(AsyncCommunities)]
    AsyncCommunities
}

#[pymethods]
impl Methods {
    #[doc = text_of!(Communities.save_community_config)]
    #[pyo3(signature = (
        community_id, *, brand_config = Update::Keep, assets_config = Update::Keep, community_config = Update::Keep,
        fidgets_config = Update::Keep, navigation_config = Update::Keep, ui_config = Update::Keep,
        admin_identity_public_keys = Update::Keep, is_published = FlagUpdate::KEEP,
        custom_domain_authorized = FlagUpdate::KEEP, admin_email = Update::Keep
    ))]
    #[pyo3(
        text_signature = "($self, community_id, *, brand_config=..., assets_config=..., community_config=..., fidgets_config=..., navigation_config=..., ui_config=..., admin_identity_public_keys=..., is_published=..., custom_domain_authorized=..., admin_email=...)"
    )]
    #[expect(clippy::too_many_arguments, reason = "one for each column, all by keyword")]
    fn save_community_config<'py>(
        &self,
        py: Python<'py>,
        community_id: TextArg,
        brand_config: Update<JsonArg>,
        assets_config: Update<JsonArg>,
        community_config: Update<JsonArg>,
        fidgets_config: Update<JsonArg>,
        navigation_config: Update<JsonArg>,
        ui_config: Update<JsonArg>,
        admin_identity_public_keys: Update<TextListArg>,
        is_published: FlagUpdate,
        custom_domain_authorized: FlagUpdate,
        admin_email: Update<TextArg>,
    ) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::SaveCommunityConfig, |client| async move {
            let mut patch = CommunityPatch::new();
            patch.brand_config = brand_config.json("brand_config")?;
            patch.assets_config = assets_config.json("assets_config")?;
            patch.community_config = community_config.json("community_config")?;
            patch.fidgets_config = fidgets_config.json("fidgets_config")?;
            patch.navigation_config = navigation_config.json("navigation_config")?;
            patch.ui_config = ui_config.json("ui_config")?;
            patch.admin_identity_public_keys =
                admin_identity_public_keys.change(|keys| keys.value("admin_identity_public_keys"))?;
            patch.is_published = is_published.0;
            patch.custom_domain_authorized = custom_domain_authorized.0;
            patch.admin_email = admin_email.text("admin_email")?;
            let community_id = community_id.value("community_id")?;
            Ok(CommunityConfig::from(client.get()?.communities().save_community_config(&community_id, patch).await?))
        })
    }

    #[doc = text_of!(Communities.get_active_community_config)]
    fn get_active_community_config<'py>(&self, py: Python<'py>, community_id: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetActiveCommunityConfig, |client| async move {
            let community_id = community_id.value("community_id")?;
            let config = client.get()?.communities().get_active_community_config(&community_id).await?;
            Ok(config.map(ActiveConfig))
        })
    }

    #[doc = text_of!(Communities.save_community_domain)]
    fn save_community_domain<'py>(
        &self,
        py: Python<'py>,
        community_id: TextArg,
        domain: TextArg,
        domain_type: TextArg,
    ) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::SaveCommunityDomain, |client| async move {
            let domain_type = domain_type.value("domain_type")?.parse::<DomainType>()?;
            let (community_id, domain) = (community_id.value("community_id")?, domain.value("domain")?);
            let communities = client.get()?.communities();
            Ok(CommunityDomain::from(communities.save_community_domain(&community_id, &domain, domain_type).await?))
        })
    }

    #[doc = text_of!(Communities.delete_community_domain)]
    fn delete_community_domain<'py>(&self, py: Python<'py>, domain: TextArg) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::DeleteCommunityDomain, |client| async move {
            client.get()?.communities().delete_community_domain(&domain.value("domain")?).await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Communities.update_navigation)]
    fn update_navigation<'py>(
        &self,
        py: Python<'py>,
        community_id: TextArg,
        navigation_config: JsonArg,
    ) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::UpdateNavigation, |client| async move {
            let community_id = community_id.value("community_id")?;
            let navigation = navigation_config.value("navigation_config")?;
            Ok(CommunityConfig::from(client.get()?.communities().update_navigation(&community_id, navigation).await?))
        })
    }

    #[doc = text_of!(Communities.resolve_community)]
    fn resolve_community<'py>(&self, py: Python<'py>, host: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::ResolveCommunity, |client| async move {
            Ok(client.get()?.communities().resolve_community(&host.value("host")?).await?)
        })
    }

    #[doc = text_of!(Communities.register_space)]
    #[pyo3(signature = (
        space_id, space_name, space_type, *, fid = None, identity_public_key = None, signature = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "one for each column, the optional ones by keyword")]
    fn register_space<'py>(
        &self,
        py: Python<'py>,
        space_id: IdArg,
        space_name: Option<TextArg>,
        space_type: TextArg,
        fid: Option<IntArg<i32>>,
        identity_public_key: Option<TextArg>,
        signature: Option<TextArg>,
    ) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::RegisterSpace, |client| async move {
            let space_type = space_type.value("space_type")?.parse::<SpaceType>()?;
            let mut row = NewRegistration::new(space_id.value("space_id")?, "", space_type);
            row.space_name = optional_text(space_name, "space_name")?;
            row.fid = fid.map(|fid| fid.value("fid", "-2147483648 to 2147483647")).transpose()?;
            row.identity_public_key = optional_text(identity_public_key, "identity_public_key")?;
            row.signature = optional_text(signature, "signature")?;
            Ok(SpaceRegistration::from(client.get()?.communities().register_space(row).await?))
        })
    }

    #[doc = text_of!(Communities.list_community_configs)]
    #[pyo3(signature = (limit = IntArg::of(LIST_PAGE), *, after = None))]
    #[pyo3(text_signature = "($self, limit=100, *, after=None)")]
    fn list_community_configs<'py>(
        &self,
        py: Python<'py>,
        limit: IntArg<u32>,
        after: Option<AfterArg<CommunityConfig>>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::ListCommunityConfigs, |client| async move {
            let (limit, after) = (limit.value("limit", LIMIT_RANGE)?, after.map(AfterArg::value).transpose()?);
            let rows = client.get()?.communities().list_community_configs(limit, after).await?;
            Ok(rows.into_iter().map(CommunityConfig::from).collect::<Vec<_>>())
        })
    }

    #[doc = text_of!(Communities.list_community_domains)]
    #[pyo3(signature = (limit = IntArg::of(LIST_PAGE), *, after = None))]
    #[pyo3(text_signature = "($self, limit=100, *, after=None)")]
    fn list_community_domains<'py>(
        &self,
        py: Python<'py>,
        limit: IntArg<u32>,
        after: Option<AfterArg<CommunityDomain>>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::ListCommunityDomains, |client| async move {
            let (limit, after) = (limit.value("limit", LIMIT_RANGE)?, after.map(AfterArg::value).transpose()?);
            let rows = client.get()?.communities().list_community_domains(limit, after).await?;
            Ok(rows.into_iter().map(CommunityDomain::from).collect::<Vec<_>>())
        })
    }

    #[doc = text_of!(Communities.list_space_registrations)]
    #[pyo3(signature = (limit = IntArg::of(LIST_PAGE), *, after = None))]
    #[pyo3(text_signature = "($self, limit=100, *, after=None)")]
    fn list_space_registrations<'py>(
        &self,
        py: Python<'py>,
        limit: IntArg<u32>,
        after: Option<AfterArg<SpaceRegistration>>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::ListSpaceRegistrations, |client| async move {
            let (limit, after) = (limit.value("limit", LIMIT_RANGE)?, after.map(AfterArg::value).transpose()?);
            let rows = client.get()?.communities().list_space_registrations(limit, after).await?;
            Ok(rows.into_iter().map(SpaceRegistration::from).collect::<Vec<_>>())
        })
    }

    #[doc = text_of!(Communities.get_space_registration)]
    fn get_space_registration<'py>(&self, py: Python<'py>, space_id: IdArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetSpaceRegistration, |client| async move {
            let row = client.get()?.communities().get_space_registration(space_id.value("space_id")?).await?;
            Ok(row.map(SpaceRegistration::from))
        })
    }
}

record! {
    #[doc = text_of!(CommunityConfig)]
    CommunityConfig(townsquare::communities::CommunityConfig) [] as config, hash [id] => {
        /// Primary key.
        id: "UUID" = config.id,
        /// The community's id, 1 to 50 characters.
        community_id: "str" = &config.community_id,
        /// When the row last changed, UTC.
        updated_at: "datetime" = PyTime(config.updated_at),
        /// Brand, as JSON.
        brand_config: "Any" = PyJson(&config.brand_config),
        /// Assets, as JSON.
        assets_config: "Any" = PyJson(&config.assets_config),
        /// The community itself, as JSON.
        community_config: "Any" = PyJson(&config.community_config),
        /// The fidgets that the community offers, as JSON.
        fidgets_config: "Any" = PyJson(&config.fidgets_config),
        /// Navigation, as JSON.
        navigation_config: "Any" = config.navigation_config.as_ref().map(PyJson),
        /// Appearance, as JSON.
        ui_config: "Any" = config.ui_config.as_ref().map(PyJson),
        /// Public keys of users who may change the navigation.
        admin_identity_public_keys: "Optional[list[str]]" = config.admin_identity_public_keys.as_deref(),
        /// Whether every caller may read the configuration.
        is_published: "bool" = config.is_published,
        /// Whether the community may have a custom domain.
        custom_domain_authorized: "bool" = config.custom_domain_authorized,
        /// The administrator's address.
        admin_email: "Optional[str]" = config.admin_email.as_deref(),
    }
}

record! {
    #[doc = text_of!(CommunityDomain)]
    CommunityDomain(townsquare::communities::CommunityDomain) [] as domain, hash [id] => {
        /// Primary key.
        id: "UUID" = domain.id,
        /// The community that answers at the domain.
        community_id: "str" = &domain.community_id,
        /// The domain, normalised.
        domain: "str" = &domain.domain,
        /// `blank_subdomain` or `custom`.
        domain_type: "Literal['blank_subdomain', 'custom', 'other']" = domain.domain_type.as_str(),
        /// When the row was inserted, UTC.
        created_at: "datetime" = PyTime(domain.created_at),
        /// When the row last changed, UTC.
        updated_at: "datetime" = PyTime(domain.updated_at),
    }
}

record! {
    #[doc = text_of!(SpaceRegistration)]
    SpaceRegistration(townsquare::communities::SpaceRegistration) [] as row, hash [space_id] => {
        /// The space's id. The space may have been deleted.
        space_id: "UUID" = row.space_id,
        /// Farcaster id.
        fid: "Optional[int]" = row.fid,
        /// The space's name.
        space_name: "str" = &row.space_name,
        /// `profile`, `token`, `proposal`, `channel` or `navPage`.
        space_type: "Literal['profile', 'token', 'proposal', 'channel', 'navPage', 'other']" = row.space_type.as_str(),
        /// The public key that signed the registration.
        identity_public_key: "Optional[str]" = row.identity_public_key.as_deref(),
        /// The registration's signature.
        signature: "Optional[str]" = row.signature.as_deref(),
        /// When the space was registered, UTC.
        timestamp: "datetime" = PyTime(row.timestamp),
    }
}

/// Converts a published configuration (SPEC 4.3) to a `dict`.
struct ActiveConfig(townsquare::communities::ActiveCommunityConfig);

impl<'py> IntoPyObject<'py> for ActiveConfig {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = PyDict::new(py);
        config.set_item("brand", PyJson(&self.0.brand))?;
        config.set_item("assets", PyJson(&self.0.assets))?;
        config.set_item("community", PyJson(&self.0.community))?;
        config.set_item("fidgets", PyJson(&self.0.fidgets))?;
        config.set_item("navigation", PyJson(&self.0.navigation))?;
        config.set_item("ui", PyJson(&self.0.ui))?;
        Ok(config)
    }
}

impl KeyedRecord for CommunityConfig {
    const KEY: &'static str = "id";
}

impl KeyedRecord for CommunityDomain {
    const KEY: &'static str = "id";
}

impl KeyedRecord for SpaceRegistration {
    const KEY: &'static str = "space_id";
}
