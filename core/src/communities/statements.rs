//! The SQL of communities, each statement once for both engines.

use crate::database::Statement;

macro_rules! config {
    () => {
        "id, community_id, updated_at, brand_config, assets_config, community_config, fidgets_config, \
         navigation_config, ui_config, admin_identity_public_keys, is_published, custom_domain_authorized, admin_email"
    };
}

pub(super) static GET_CONFIG: Statement =
    Statement::new(concat!("SELECT ", config!(), " FROM community_configs WHERE community_id = $1"));

pub(super) static UPDATE_CONFIG: Statement = Statement::new(concat!(
    "UPDATE community_configs SET
         brand_config = CASE WHEN $2 THEN $3 ELSE brand_config END,
         assets_config = CASE WHEN $4 THEN $5 ELSE assets_config END,
         community_config = CASE WHEN $6 THEN $7 ELSE community_config END,
         fidgets_config = CASE WHEN $8 THEN $9 ELSE fidgets_config END,
         navigation_config = CASE WHEN $10 THEN $11 ELSE navigation_config END,
         ui_config = CASE WHEN $12 THEN $13 ELSE ui_config END,
         admin_identity_public_keys = CASE WHEN $14 THEN $15 ELSE admin_identity_public_keys END,
         is_published = CASE WHEN $16 THEN $17 ELSE is_published END,
         custom_domain_authorized = CASE WHEN $18 THEN $19 ELSE custom_domain_authorized END,
         admin_email = CASE WHEN $20 THEN $21 ELSE admin_email END,
         updated_at = {community_configs.later $22}
     WHERE community_id = $1 AND {community_configs.update} RETURNING ",
    config!()
));

// The conflict is left to the update that follows: checks of required fields come before it.
pub(super) static INSERT_CONFIG: Statement = Statement::new(concat!(
    "INSERT INTO community_configs (",
    config!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     ON CONFLICT (community_id) DO NOTHING RETURNING ",
    config!()
));

pub(super) static UPDATE_NAVIGATION: Statement = Statement::new(concat!(
    "UPDATE community_configs SET navigation_config = $2, updated_at = {community_configs.later $3}
     WHERE community_id = $1 AND {community_configs.select} AND {community_configs.update} RETURNING ",
    config!()
));

pub(super) static GET_ACTIVE_CONFIG: Statement = Statement::new(
    "SELECT brand_config, assets_config, community_config, fidgets_config, navigation_config, ui_config
     FROM community_configs WHERE community_id = $1 AND is_published IS TRUE AND {community_configs.select}
     ORDER BY updated_at DESC LIMIT 1",
);

pub(super) static SAVE_DOMAIN: Statement = Statement::new(
    "INSERT INTO community_domains (id, community_id, domain, domain_type, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $5)
     ON CONFLICT (community_id, domain_type) DO UPDATE SET
         domain = excluded.domain, updated_at = {community_domains.later $5}
     RETURNING id, community_id, domain, domain_type, created_at, updated_at",
);

pub(super) static DELETE_DOMAIN: Statement =
    Statement::new("DELETE FROM community_domains WHERE domain = $1 AND {community_domains.delete} RETURNING id");

pub(super) static RESOLVE: Statement = Statement::new(
    "SELECT community_id FROM community_configs
     WHERE is_published IS TRUE AND {community_configs.select} AND community_id = COALESCE(
         (SELECT community_id FROM community_domains WHERE domain = $1), $1)",
);

pub(super) static REGISTER_SPACE: Statement = Statement::new(
    "INSERT INTO \"spaceRegistrations\"
         (\"spaceId\", fid, \"spaceName\", \"spaceType\", \"identityPublicKey\", signature, \"timestamp\")
     SELECT \"spaceId\", fid, \"spaceName\", \"spaceType\", \"identityPublicKey\", signature, \"timestamp\"
     FROM (SELECT $1 AS \"spaceId\", CAST($2 AS INTEGER) AS fid, $3 AS \"spaceName\", $4 AS \"spaceType\",
         $5 AS \"identityPublicKey\", $6 AS signature, $7 AS \"timestamp\") AS \"spaceRegistrations\"
     WHERE {spaceRegistrations.insert}
     RETURNING \"spaceId\", fid, \"spaceName\", \"spaceType\", \"identityPublicKey\", signature, \"timestamp\"",
);

pub(super) static GET_REGISTRATION: Statement = Statement::new(
    "SELECT \"spaceId\", fid, \"spaceName\", \"spaceType\", \"identityPublicKey\", signature, \"timestamp\"
     FROM \"spaceRegistrations\" WHERE \"spaceId\" = $1 AND {spaceRegistrations.select}",
);
