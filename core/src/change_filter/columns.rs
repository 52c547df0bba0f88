//! The columns that a filter may name, with their types (SPEC 2). Those of `files` are FileInfo's.

use crate::policy::Table;

/// How a column's values are written in a filter and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Uuid,
    Text,
    Boolean,
    Integer,
    Timestamp,
    /// JSON, and lists of texts.
    Json,
}

impl ColumnType {
    /// The name in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            ColumnType::Uuid => "a uuid",
            ColumnType::Text => "text",
            ColumnType::Boolean => "true or false",
            ColumnType::Integer => "an integer",
            ColumnType::Timestamp => "a time of RFC 3339 with an offset",
            ColumnType::Json => "JSON",
        }
    }
}

/// Returns the columns of a table with their types, in SPEC's order.
pub(crate) const fn columns(table: Table) -> &'static [(&'static str, ColumnType)] {
    use ColumnType::{Boolean, Integer, Json, Text, Timestamp, Uuid};
    match table {
        Table::CommunityConfigs => &[
            ("id", Uuid),
            ("community_id", Text),
            ("updated_at", Timestamp),
            ("brand_config", Json),
            ("assets_config", Json),
            ("community_config", Json),
            ("fidgets_config", Json),
            ("navigation_config", Json),
            ("ui_config", Json),
            ("admin_identity_public_keys", Json),
            ("is_published", Boolean),
            ("custom_domain_authorized", Boolean),
            ("admin_email", Text),
        ],
        Table::CommunityDomains => &[
            ("id", Uuid),
            ("community_id", Text),
            ("domain", Text),
            ("domain_type", Text),
            ("created_at", Timestamp),
            ("updated_at", Timestamp),
        ],
        Table::SpaceRegistrations => &[
            ("spaceId", Uuid),
            ("fid", Integer),
            ("spaceName", Text),
            ("spaceType", Text),
            ("identityPublicKey", Text),
            ("signature", Text),
            ("timestamp", Timestamp),
        ],
        Table::Users => &[("id", Uuid), ("email", Text), ("created_at", Timestamp), ("updated_at", Timestamp)],
        Table::Spaces => &[
            ("id", Uuid),
            ("name", Text),
            ("description", Text),
            ("owner_id", Uuid),
            ("is_public", Boolean),
            ("created_at", Timestamp),
            ("updated_at", Timestamp),
        ],
        Table::Fidgets => &[
            ("id", Uuid),
            ("space_id", Uuid),
            ("type", Text),
            ("config", Json),
            ("position", Json),
            ("created_at", Timestamp),
            ("updated_at", Timestamp),
        ],
        Table::Files => &[
            ("bucket", Text),
            ("path", Text),
            ("size", Integer),
            ("content_type", Text),
            ("cache_control", Integer),
            ("etag", Text),
            ("metadata", Json),
            ("owner_id", Uuid),
            ("updated_at", Timestamp),
        ],
    }
}
