//! The SQL of communities, in the order of their operations; see `database/statement.rs` for the templates.

use crate::database::{KeyPages, Statement, key_pages};

/// The configuration that an empty patch leaves as it is.
pub(super) static GET_CONFIG: Statement =
    Statement::new("SELECT {community_configs.row} FROM community_configs WHERE community_id = $1");

pub(super) static UPDATE_CONFIG: Statement = Statement::new(
    "UPDATE community_configs SET {community_configs.set $3},
         updated_at = {community_configs.monotonic_updated_at $2}
     WHERE community_id = $1 AND {community_configs.update} RETURNING {community_configs.row}",
);

// DO NOTHING instead of DO UPDATE: the NOT NULL checks of the new row would fail before the conflict is found. SQLite
// needs the WHERE to tell ON CONFLICT from a join's ON.
pub(super) static INSERT_CONFIG: Statement = Statement::new(
    "INSERT INTO community_configs (id, community_id, updated_at, {community_configs.patch})
     SELECT $1, $2, $3, {community_configs.patch $4} WHERE TRUE
     ON CONFLICT (community_id) DO NOTHING RETURNING {community_configs.row}",
);

pub(super) static GET_ACTIVE_CONFIG: Statement = Statement::new(
    "SELECT {active_community_config.row} FROM community_configs
     WHERE community_id = $1 AND is_published IS TRUE AND {community_configs.select}
     ORDER BY updated_at DESC LIMIT 1",
)
.may_lag();

pub(super) static SAVE_DOMAIN: Statement = Statement::new(
    "INSERT INTO community_domains (id, community_id, domain, domain_type, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $5)
     ON CONFLICT (community_id, domain_type) DO UPDATE SET
         domain = excluded.domain, updated_at = {community_domains.monotonic_updated_at $5}
     RETURNING {community_domains.row}",
);

// A row that another program wrote may have its domain in another form, `$2`. It is not deleted in place of the row that has the
// normal form, nor the other way round.
pub(super) static DELETE_DOMAIN: Statement = Statement::new(
    "DELETE FROM community_domains
     WHERE domain = (SELECT COALESCE((SELECT same.domain FROM community_domains AS same WHERE same.domain = $2), $1))
        AND {community_domains.delete}
     RETURNING id",
);

pub(super) static UPDATE_NAVIGATION: Statement = Statement::new(
    "UPDATE community_configs SET
         navigation_config = $2, updated_at = {community_configs.monotonic_updated_at $3}
     WHERE community_id = $1 AND {community_configs.update}
     RETURNING {community_configs.readable}",
);

pub(super) static RESOLVE_COMMUNITY: Statement = Statement::new(
    "SELECT community_id FROM community_configs
     WHERE is_published IS TRUE AND {community_configs.select} AND community_id = (SELECT COALESCE(
         (SELECT community_id FROM community_domains WHERE domain = $1), $2))",
)
.may_lag();

// An INSERT selects its values from a subquery with the table's name, so that the insert policy can read the new row.
pub(super) static REGISTER_SPACE: Statement = Statement::new(
    "INSERT INTO \"spaceRegistrations\" (\"timestamp\", {spaceRegistrations.new})
     SELECT \"timestamp\", {spaceRegistrations.new}
     FROM (SELECT $1 AS \"timestamp\", {spaceRegistrations.new $2}) AS \"spaceRegistrations\"
     WHERE {spaceRegistrations.insert} RETURNING {spaceRegistrations.row}",
);

pub(super) static GET_REGISTRATION: Statement = Statement::new(
    "SELECT {spaceRegistrations.row} FROM \"spaceRegistrations\"
     WHERE \"spaceId\" = $1 AND {spaceRegistrations.select}",
)
.may_lag();

pub(super) static LIST_CONFIGS: KeyPages = key_pages!("community_configs", "id", "{community_configs.row}");

pub(super) static LIST_DOMAINS: KeyPages = key_pages!("community_domains", "id", "{community_domains.row}");

pub(super) static LIST_REGISTRATIONS: KeyPages =
    key_pages!("\"spaceRegistrations\"", "\"spaceId\"", "{spaceRegistrations.row}");
