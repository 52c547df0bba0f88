//! Communities: their configuration, domains and registered spaces (SPEC 2.2 to 2.4, 4.3).

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::change::Change;
use crate::error::Error;

/// A row of `community_configs`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CommunityConfig {
    /// Primary key.
    pub id: Uuid,
    /// The community, at most 50 characters.
    pub community_id: String,
    /// When it last changed; never goes back.
    pub updated_at: Timestamp,
    /// Brand.
    pub brand_config: Value,
    /// Assets.
    pub assets_config: Value,
    /// The community itself.
    pub community_config: Value,
    /// Fidgets it offers.
    pub fidgets_config: Value,
    /// Navigation.
    pub navigation_config: Option<Value>,
    /// Look.
    pub ui_config: Option<Value>,
    /// Public keys whose holders may edit the navigation.
    pub admin_identity_public_keys: Option<Vec<String>>,
    /// Whether everyone may see it.
    pub is_published: bool,
    /// Whether it may have a domain of its own.
    pub custom_domain_authorized: bool,
    /// Whom to write to.
    pub admin_email: Option<String>,
}

/// What is saved of a community's configuration: what is not given stays as it is or, in a new row, takes the
/// table's default (SPEC 2.2).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct CommunityPatch {
    /// Brand; required in a new row.
    pub brand_config: Change<Value>,
    /// Assets; required in a new row.
    pub assets_config: Change<Value>,
    /// The community itself; required in a new row.
    pub community_config: Change<Value>,
    /// Fidgets it offers; required in a new row.
    pub fidgets_config: Change<Value>,
    /// Navigation.
    pub navigation_config: Change<Value>,
    /// Look.
    pub ui_config: Change<Value>,
    /// Public keys whose holders may edit the navigation.
    pub admin_identity_public_keys: Change<Vec<String>>,
    /// Whether everyone may see it; true in a new row.
    pub is_published: Change<bool>,
    /// Whether it may have a domain of its own; false in a new row.
    pub custom_domain_authorized: Change<bool>,
    /// Whom to write to.
    pub admin_email: Change<String>,
}

impl CommunityPatch {
    /// A patch that changes nothing.
    pub fn new() -> CommunityPatch {
        CommunityPatch::default()
    }

    /// A patch with the four configurations that a new row needs.
    pub fn with_required(brand: Value, assets: Value, community: Value, fidgets: Value) -> CommunityPatch {
        CommunityPatch {
            brand_config: Change::Set(brand),
            assets_config: Change::Set(assets),
            community_config: Change::Set(community),
            fidgets_config: Change::Set(fidgets),
            ..CommunityPatch::default()
        }
    }
}

/// What `get_active_community_config` returns (SPEC 4.3).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ActiveCommunityConfig {
    /// From `brand_config`.
    pub brand: Value,
    /// From `assets_config`.
    pub assets: Value,
    /// From `community_config`.
    pub community: Value,
    /// From `fidgets_config`.
    pub fidgets: Value,
    /// From `navigation_config`.
    pub navigation: Value,
    /// From `ui_config`.
    pub ui: Value,
}

/// A row of `community_domains`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CommunityDomain {
    /// Primary key.
    pub id: Uuid,
    /// The community it leads to.
    pub community_id: String,
    /// The domain, normalised.
    pub domain: String,
    /// Whether it is a subdomain or the community's own.
    pub domain_type: DomainType,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed; never goes back.
    pub updated_at: Timestamp,
}

/// A row of `spaceRegistrations`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SpaceRegistration {
    /// The space; it need not exist any more.
    pub space_id: Uuid,
    /// Farcaster id.
    pub fid: Option<i32>,
    /// The space's name.
    pub space_name: String,
    /// What kind of space it is.
    pub space_type: SpaceType,
    /// The key it was registered with.
    pub identity_public_key: Option<String>,
    /// The registration's signature.
    pub signature: Option<String>,
    /// When it was registered.
    pub timestamp: Timestamp,
}

/// A registration to be made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NewRegistration {
    /// The space.
    pub space_id: Uuid,
    /// The space's name; required by the table.
    pub space_name: Option<String>,
    /// What kind of space it is.
    pub space_type: SpaceType,
    /// Farcaster id.
    pub fid: Option<i32>,
    /// The key it is registered with.
    pub identity_public_key: Option<String>,
    /// The registration's signature.
    pub signature: Option<String>,
}

impl NewRegistration {
    /// A registration with what the table requires.
    pub fn new(space_id: Uuid, space_name: impl Into<String>, space_type: SpaceType) -> NewRegistration {
        let space_name = Some(space_name.into());
        NewRegistration { space_id, space_name, space_type, fid: None, identity_public_key: None, signature: None }
    }
}

/// An enum of the words that a column takes.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal, $column:literal: $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every one.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word in the table.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = Error;

            /// # Errors
            /// [`InvalidInput`](crate::ErrorKind::InvalidInput) with SQLSTATE 23514, as the table's check has it.
            fn from_str(text: &str) -> Result<$name, Error> {
                $name::ALL.iter().copied().find(|word| word.as_str() == text).ok_or_else(|| {
                    Error::check_violation($what, $column, &[$($word,)*])
                })
            }
        }
    };
}

words! {
    /// The kind of a community's domain (SPEC 2.3).
    DomainType, "community_domains", "domain_type":
    /// `blank_subdomain`
    BlankSubdomain = "blank_subdomain",
    /// `custom`
    Custom = "custom",
}

words! {
    /// The kind of a registered space (SPEC 2.4).
    SpaceType, "spaceRegistrations", "spaceType":
    /// `profile`
    Profile = "profile",
    /// `token`
    Token = "token",
    /// `proposal`
    Proposal = "proposal",
    /// `channel`
    Channel = "channel",
    /// `navPage`
    NavPage = "navPage",
}
