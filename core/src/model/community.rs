//! Communities: configurations, domains and registered spaces (SPEC 2.2 to 2.4, 4.3).

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    change::Change,
    column::{ColumnType, Readers, TypedColumn},
    time_text,
};
use crate::error::Error;

record! {
    /// A row of `community_configs`.
    pub struct CommunityConfig in "community_configs" {
        /// The primary key.
        id: Uuid [is_key: true];
        /// The community's id: at most 50 characters.
        community_id: String [max_chars: Some(50)];
        /// When the row last changed; never goes back.
        #[serde(serialize_with = "time_text::time")]
        updated_at: Timestamp = default_if_null;
        /// The brand. A new row requires it.
        brand_config: Value [is_large: true], patch: Change<Value>;
        /// The assets. A new row requires them.
        assets_config: Value [is_large: true], patch: Change<Value>;
        /// The community itself. A new row requires it.
        community_config: Value [is_large: true], patch: Change<Value>;
        /// The fidgets that the community offers. A new row requires them.
        fidgets_config: Value [is_large: true], patch: Change<Value>;
        /// The navigation.
        navigation_config: Option<Value> [is_large: true], patch: Change<Value>;
        /// The look.
        ui_config: Option<Value> [is_large: true], patch: Change<Value>;
        /// The identity keys of users who may change the navigation.
        admin_identity_public_keys: Option<Vec<String>> [readers: Readers::Service], patch: Change<Vec<String>>;
        /// Whether every caller may see the configuration; true in a new row.
        is_published: bool = default_if_null [is_judged: true], patch: Change<bool> = true;
        /// Whether the community may have its own domain; false in a new row.
        custom_domain_authorized: bool = default_if_null [readers: Readers::Service], patch: Change<bool> = false;
        /// The e-mail address of the community's administrator.
        admin_email: Option<String> [readers: Readers::Service], patch: Change<String>;
    }
    patch {
        /// Changes of a community's configuration. In a new row, a column that the patch keeps takes its default: true
        /// for `is_published`, false for `custom_domain_authorized`, NULL for an optional column.
        ///
        /// ```
        /// use townsquare::{Json, communities::{Change, CommunityPatch}};
        ///
        /// let mut patch = CommunityPatch::new();
        /// patch.ui_config = Change::Set(Json::from("dark"));
        /// patch.admin_email = Change::Clear;
        /// assert!(patch.brand_config.is_keep());
        /// ```
        pub struct CommunityPatch;
    }
}

impl CommunityPatch {
    /// A patch that sets the four configurations that a new row requires.
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

record! {
    /// The result of `get_active_community_config`.
    pub struct ActiveCommunityConfig in "active_community_config" {
        /// `brand_config`
        brand as "brand_config": Value;
        /// `assets_config`
        assets as "assets_config": Value;
        /// `community_config`
        community as "community_config": Value;
        /// `fidgets_config`
        fidgets as "fidgets_config": Value;
        /// `navigation_config`; JSON's null for NULL
        navigation as "navigation_config": Value = default_if_null;
        /// `ui_config`; JSON's null for NULL
        ui as "ui_config": Value = default_if_null;
    }
}

record! {
    /// A row of `community_domains`.
    pub struct CommunityDomain in "community_domains" {
        /// The primary key.
        id: Uuid [is_key: true];
        /// The community that answers at the domain.
        community_id: String [max_chars: Some(50)];
        /// The domain, normalised.
        domain: String;
        /// Whether the domain is a subdomain or the community's own.
        domain_type: DomainType;
        /// When the row was created.
        #[serde(serialize_with = "time_text::time")]
        created_at: Timestamp = default_if_null;
        /// When the row last changed; never goes back.
        #[serde(serialize_with = "time_text::time")]
        updated_at: Timestamp = default_if_null;
    }
}

record! {
    /// A row of `spaceRegistrations`.
    #[serde(rename_all = "camelCase")]
    pub struct SpaceRegistration in "spaceRegistrations" {
        /// The space. The registration outlives it.
        space_id as "spaceId": Uuid [is_key: true], new: Uuid;
        /// The Farcaster id. One beyond 32 bits is read from an adopted database, and never written.
        fid: Option<i64>, new: Option<i32>;
        /// The space's name. The table requires one.
        space_name as "spaceName": String, new: Option<String>;
        /// The kind of space.
        space_type as "spaceType": SpaceType, new: SpaceType;
        /// The identity key that the space is registered with.
        identity_public_key as "identityPublicKey": Option<String>, new: Option<String>;
        /// The signature of the registration.
        signature: Option<String>, new: Option<String>;
        /// When the space was registered.
        #[serde(serialize_with = "time_text::time")]
        timestamp: Timestamp = default_if_null;
    }
    new {
        /// The registration of a space, to create.
        ///
        /// ```
        /// use townsquare::{Uuid, communities::{NewRegistration, SpaceType}};
        ///
        /// let mut registration = NewRegistration::new(Uuid::new_v4(), "Chess", SpaceType::Profile);
        /// registration.fid = Some(42);
        /// ```
        pub struct NewRegistration;
    }
}

impl NewRegistration {
    /// A registration with the columns that the table requires.
    pub fn new(space_id: Uuid, space_name: impl Into<String>, space_type: SpaceType) -> NewRegistration {
        let space_name = Some(space_name.into());
        NewRegistration { space_id, space_name, space_type, fid: None, identity_public_key: None, signature: None }
    }
}

/// Declares an enum of the words that a text column may hold.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $table:literal, $column:literal: $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)*
            /// Another word, which an adopted database may hold. It cannot be written.
            #[serde(rename = "other")]
            Other,
        }

        impl $name {
            /// Every value that can be written.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word in the column; `other` for [`Other`](Self::Other).
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* $name::Other => "other" }
            }
        }

        impl TypedColumn for $name {
            const COLUMN_TYPE: ColumnType = ColumnType::Text;
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = Error;

            /// # Errors
            /// [`InvalidInput`](crate::ErrorKind::InvalidInput) with SQLSTATE 23514, the code of the column's CHECK.
            fn from_str(text: &str) -> Result<$name, Error> {
                $name::ALL.iter().copied().find(|word| word.as_str() == text).ok_or_else(|| {
                    Error::check_violation($table, $column, &[$($word,)*])
                })
            }
        }
    };
}

words! {
    /// The kind of a community's domain.
    DomainType, "community_domains", "domain_type":
    /// `blank_subdomain`
    BlankSubdomain = "blank_subdomain",
    /// `custom`
    Custom = "custom",
}

words! {
    /// The kind of a registered space.
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
