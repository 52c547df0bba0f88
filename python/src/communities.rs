//! Communities: their configuration, their domains, and the spaces registered with them (SPEC 2.2 to 2.4, 4.3).
//!
//! Invariant: as in every area, a method names a future of the core and hands it to the door.

use pyo3::prelude::*;
use townsquare::{CommunityPatch, DomainType, NewRegistration, Operation, SpaceType};

use crate::{
    area::area,
    argument::{Id, Text, Texts, Update, Whole, optional},
    community::{Active, CommunityConfig, CommunityDomain, SpaceRegistration},
    convert::Nothing,
    json::Given,
};

area! {
    "CommunitiesMethods",
    /// Communities: `Client.communities`.
    Communities,
    /// Communities: `AsyncClient.communities`.
    AsyncCommunities
}

#[pymethods]
impl Methods {
    /// Inserts a community's configuration, or updates what is given of it.
    #[pyo3(signature = (
        community_id, *, brand_config = Update::Keep, assets_config = Update::Keep, community_config = Update::Keep,
        fidgets_config = Update::Keep, navigation_config = Update::Keep, ui_config = Update::Keep,
        admin_identity_public_keys = Update::Keep, is_published = Update::Keep,
        custom_domain_authorized = Update::Keep, admin_email = Update::Keep
    ))]
    #[pyo3(
        text_signature = "($self, community_id, *, brand_config=..., assets_config=..., community_config=..., fidgets_config=..., navigation_config=..., ui_config=..., admin_identity_public_keys=..., is_published=..., custom_domain_authorized=..., admin_email=...)"
    )]
    #[expect(clippy::too_many_arguments, reason = "one for each column, all by keyword")]
    fn save_community_config<'py>(
        &self,
        py: Python<'py>,
        community_id: Text,
        brand_config: Update<Given>,
        assets_config: Update<Given>,
        community_config: Update<Given>,
        fidgets_config: Update<Given>,
        navigation_config: Update<Given>,
        ui_config: Update<Given>,
        admin_identity_public_keys: Update<Texts>,
        is_published: Update<bool>,
        custom_domain_authorized: Update<bool>,
        admin_email: Update<Text>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::SaveCommunityConfig, |handle| async move {
            let mut patch = CommunityPatch::new();
            patch.brand_config = brand_config.json("brand_config")?;
            patch.assets_config = assets_config.json("assets_config")?;
            patch.community_config = community_config.json("community_config")?;
            patch.fidgets_config = fidgets_config.json("fidgets_config")?;
            patch.navigation_config = navigation_config.json("navigation_config")?;
            patch.ui_config = ui_config.json("ui_config")?;
            patch.admin_identity_public_keys =
                admin_identity_public_keys.change(|keys| keys.named("admin_identity_public_keys"))?;
            patch.is_published = is_published.flag()?;
            patch.custom_domain_authorized = custom_domain_authorized.flag()?;
            patch.admin_email = admin_email.text("admin_email")?;
            let community_id = community_id.named("community_id")?;
            Ok(CommunityConfig(handle.client()?.communities().save_community_config(&community_id, patch).await?))
        })
    }

    /// The published configuration of a community, as its clients read it.
    fn get_active_community_config<'py>(&self, py: Python<'py>, community_id: Text) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::GetActiveCommunityConfig, |handle| async move {
            let community_id = community_id.named("community_id")?;
            Ok(handle.client()?.communities().get_active_community_config(&community_id).await?.map(Active))
        })
    }

    /// Sets a community's domain of a type.
    fn save_community_domain<'py>(
        &self,
        py: Python<'py>,
        community_id: Text,
        domain: Text,
        domain_type: Text,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::SaveCommunityDomain, |handle| async move {
            let domain_type = domain_type.named("domain_type")?.parse::<DomainType>()?;
            let (community_id, domain) = (community_id.named("community_id")?, domain.named("domain")?);
            let communities = handle.client()?.communities();
            Ok(CommunityDomain(communities.save_community_domain(&community_id, &domain, domain_type).await?))
        })
    }

    /// Takes a domain away from its community.
    fn delete_community_domain<'py>(&self, py: Python<'py>, domain: Text) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::DeleteCommunityDomain, |handle| async move {
            handle.client()?.communities().delete_community_domain(&domain.named("domain")?).await?;
            Ok(Nothing)
        })
    }

    /// Sets a community's navigation and nothing else of it.
    fn update_navigation<'py>(
        &self,
        py: Python<'py>,
        community_id: Text,
        navigation_config: Given,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::UpdateNavigation, |handle| async move {
            let community_id = community_id.named("community_id")?;
            let navigation = navigation_config.named("navigation_config")?;
            Ok(CommunityConfig(handle.client()?.communities().update_navigation(&community_id, navigation).await?))
        })
    }

    /// The community that answers at a host.
    fn resolve_community<'py>(&self, py: Python<'py>, host: Text) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::ResolveCommunity, |handle| async move {
            Ok(handle.client()?.communities().resolve_community(&host.named("host")?).await?)
        })
    }

    /// Registers a space, once.
    #[pyo3(signature = (
        space_id, space_name, space_type, *, fid = None, identity_public_key = None, signature = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "one for each column, the optional ones by keyword")]
    fn register_space<'py>(
        &self,
        py: Python<'py>,
        space_id: Id,
        space_name: Option<Text>,
        space_type: Text,
        fid: Option<Whole<i32>>,
        identity_public_key: Option<Text>,
        signature: Option<Text>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::RegisterSpace, |handle| async move {
            let space_type = space_type.named("space_type")?.parse::<SpaceType>()?;
            let mut row = NewRegistration::new(space_id.named("space_id")?, "", space_type);
            row.space_name = optional(space_name, "space_name")?;
            row.fid = fid.map(|fid| fid.named("fid", "-2147483648 to 2147483647")).transpose()?;
            row.identity_public_key = optional(identity_public_key, "identity_public_key")?;
            row.signature = optional(signature, "signature")?;
            Ok(SpaceRegistration(handle.client()?.communities().register_space(row).await?))
        })
    }

    /// The registration of a space.
    fn get_space_registration<'py>(&self, py: Python<'py>, space_id: Id) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::GetSpaceRegistration, |handle| async move {
            let found = handle.client()?.communities().get_space_registration(space_id.named("space_id")?).await?;
            Ok(found.map(SpaceRegistration))
        })
    }
}
