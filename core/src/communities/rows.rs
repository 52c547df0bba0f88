//! Rows of communities, in the column order of the statements.

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{
    database::{Row, Value},
    error::{Error, ErrorKind, Result},
    model::{ActiveCommunityConfig, Change, CommunityConfig, CommunityDomain, CommunityPatch, SpaceRegistration},
};

/// What is bound to update a configuration, or else to insert it.
pub(super) struct ConfigValues {
    pub(super) update: Vec<Value<'static>>,
    pub(super) insert: Vec<Value<'static>>,
    /// Whether the patch names nothing.
    pub(super) is_empty: bool,
}

pub(super) fn patch_values(community_id: &str, patch: CommunityPatch, now: Timestamp) -> ConfigValues {
    let is_empty = patch == CommunityPatch::new();
    let mut update: Vec<Value<'static>> = vec![community_id.to_owned().into()];
    let mut insert: Vec<Value<'static>> = vec![Uuid::new_v4().into(), community_id.to_owned().into(), now.into()];
    let configs = [
        patch.brand_config,
        patch.assets_config,
        patch.community_config,
        patch.fidgets_config,
        patch.navigation_config,
        patch.ui_config,
    ];
    for config in configs {
        update.push((!config.is_keep()).into());
        let value: Value<'static> = config.into_set().into();
        update.push(value.clone());
        insert.push(value);
    }
    let keys = patch.admin_identity_public_keys;
    update.push((!keys.is_keep()).into());
    let keys: Value<'static> = keys.into_set().into();
    update.push(keys.clone());
    insert.push(keys);
    for (change, default) in [(patch.is_published, true), (patch.custom_domain_authorized, false)] {
        update.extend([(!change.is_keep()).into(), change.into_set().into()]);
        insert.push(match change {
            Change::Keep => default.into(),
            change => change.into_set().into(),
        });
    }
    update.push((!patch.admin_email.is_keep()).into());
    let email: Value<'static> = patch.admin_email.into_set().into();
    update.push(email.clone());
    insert.push(email);
    update.push(now.into());
    ConfigValues { update, insert, is_empty }
}

pub(super) fn id(row: &Row<'_>) -> Result<Uuid> {
    row.get(0)
}

pub(super) fn config(row: &Row<'_>) -> Result<CommunityConfig> {
    Ok(CommunityConfig {
        id: row.get(0)?,
        community_id: row.get(1)?,
        // The columns have defaults and take NULL from others all the same.
        updated_at: row.get_optional(2)?.unwrap_or_default(),
        brand_config: row.get(3)?,
        assets_config: row.get(4)?,
        community_config: row.get(5)?,
        fidgets_config: row.get(6)?,
        navigation_config: row.get_optional(7)?,
        ui_config: row.get_optional(8)?,
        admin_identity_public_keys: row.get_optional(9)?,
        is_published: row.get_optional(10)?.unwrap_or(false),
        custom_domain_authorized: row.get_optional(11)?.unwrap_or(false),
        admin_email: row.get_optional(12)?,
    })
}

pub(super) fn active_config(row: &Row<'_>) -> Result<ActiveCommunityConfig> {
    Ok(ActiveCommunityConfig {
        brand: row.get(0)?,
        assets: row.get(1)?,
        community: row.get(2)?,
        fidgets: row.get(3)?,
        navigation: row.get_optional(4)?.unwrap_or(Json::Null),
        ui: row.get_optional(5)?.unwrap_or(Json::Null),
    })
}

pub(super) fn domain(row: &Row<'_>) -> Result<CommunityDomain> {
    Ok(CommunityDomain {
        id: row.get(0)?,
        community_id: row.get(1)?,
        domain: row.get(2)?,
        domain_type: word(&row.get::<String>(3)?)?,
        created_at: row.get_optional(4)?.unwrap_or_default(),
        updated_at: row.get_optional(5)?.unwrap_or_default(),
    })
}

pub(super) fn registration(row: &Row<'_>) -> Result<SpaceRegistration> {
    Ok(SpaceRegistration {
        space_id: row.get(0)?,
        fid: row.get_optional::<i64>(1)?.and_then(|fid| i32::try_from(fid).ok()),
        space_name: row.get(2)?,
        space_type: word(&row.get::<String>(3)?)?,
        identity_public_key: row.get_optional(4)?,
        signature: row.get_optional(5)?,
        timestamp: row.get_optional(6)?.unwrap_or_default(),
    })
}

/// A word that the table's check let in.
fn word<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.parse()
        .map_err(|_| Error::database(Some("XX001"), ErrorKind::Internal, "a row holds a word its check refuses"))
}
