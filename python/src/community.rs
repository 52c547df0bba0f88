//! Communities as records (SPEC 2.2 to 2.4).
//!
//! Invariant: JSON is read into Python values when an attribute is asked for, anew each time.

use pyo3::{prelude::*, types::PyDict};

use crate::{
    json::Shown,
    record::{attributes, record},
};

record! {
    /// A row of `community_configs`.
    CommunityConfig(townsquare::CommunityConfig) as config, hashed by config.id,
    shown by [id, community_id, is_published, updated_at] {
        /// Primary key.
        id: config.id,
        /// The community, at most 50 characters.
        community_id: &config.community_id,
        /// When it last changed, UTC.
        updated_at: config.updated_at,
        /// Brand.
        brand_config: Shown(&config.brand_config),
        /// Assets.
        assets_config: Shown(&config.assets_config),
        /// The community itself.
        community_config: Shown(&config.community_config),
        /// Fidgets it offers.
        fidgets_config: Shown(&config.fidgets_config),
        /// Navigation.
        navigation_config: config.navigation_config.as_ref().map(Shown),
        /// Look.
        ui_config: config.ui_config.as_ref().map(Shown),
        /// Public keys whose holders may edit the navigation.
        admin_identity_public_keys: config.admin_identity_public_keys.as_deref(),
        /// Whether everyone may see it.
        is_published: config.is_published,
        /// Whether it may have a domain of its own.
        custom_domain_authorized: config.custom_domain_authorized,
        /// Whom to write to.
        admin_email: config.admin_email.as_deref(),
    }
    also {
        /// The attributes by name.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            attributes!(self, py, [
                id, community_id, updated_at, brand_config, assets_config, community_config, fidgets_config,
                navigation_config, ui_config, admin_identity_public_keys, is_published, custom_domain_authorized,
                admin_email
            ])
        }
    }
}

record! {
    /// A row of `community_domains`.
    CommunityDomain(townsquare::CommunityDomain) as domain, hashed by domain.id,
    shown by [id, community_id, domain, domain_type] {
        /// Primary key.
        id: domain.id,
        /// The community it leads to.
        community_id: &domain.community_id,
        /// The domain, normalised.
        domain: &domain.domain,
        /// `blank_subdomain` or `custom`.
        domain_type: domain.domain_type.as_str(),
        /// When it was made, UTC.
        created_at: domain.created_at,
        /// When it last changed, UTC.
        updated_at: domain.updated_at,
    }
    also {
        /// The attributes by name.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            attributes!(self, py, [id, community_id, domain, domain_type, created_at, updated_at])
        }
    }
}

record! {
    /// A row of `spaceRegistrations`.
    SpaceRegistration(townsquare::SpaceRegistration) as row, hashed by row.space_id,
    shown by [space_id, space_name, space_type, fid] {
        /// The space; it need not exist any more.
        space_id: row.space_id,
        /// Farcaster id.
        fid: row.fid,
        /// The space's name.
        space_name: &row.space_name,
        /// `profile`, `token`, `proposal`, `channel` or `navPage`.
        space_type: row.space_type.as_str(),
        /// The key it was registered with.
        identity_public_key: row.identity_public_key.as_deref(),
        /// The registration's signature.
        signature: row.signature.as_deref(),
        /// When it was registered, UTC.
        timestamp: row.timestamp,
    }
    also {
        /// The attributes by name.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            attributes!(self, py, [
                space_id, fid, space_name, space_type, identity_public_key, signature, timestamp
            ])
        }
    }
}

/// What a community's clients read (SPEC 4.3), as a `dict`.
pub(crate) struct Active(pub(crate) townsquare::ActiveCommunityConfig);

impl<'py> IntoPyObject<'py> for Active {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = PyDict::new(py);
        config.set_item("brand", Shown(&self.0.brand))?;
        config.set_item("assets", Shown(&self.0.assets))?;
        config.set_item("community", Shown(&self.0.community))?;
        config.set_item("fidgets", Shown(&self.0.fidgets))?;
        config.set_item("navigation", Shown(&self.0.navigation))?;
        config.set_item("ui", Shown(&self.0.ui))?;
        Ok(config)
    }
}
