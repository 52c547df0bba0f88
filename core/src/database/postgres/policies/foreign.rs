//! Policies and grants of other programs on the library's tables (DESIGN 3a).
//!
//! Invariant: they change nothing for the library's callers. A permissive policy that applies to our roles gets restrictive
//! policies beside it; whatever cannot be made harmless is refused by name.

use sqlx::PgConnection;

use super::{
    super::{query::tuples, role_mode::Roles},
    capture::table_name,
};
use crate::{
    error::{Error, Result},
    policy::Table,
};

/// The policies of other programs on the tables `$1` that apply to the callers or to the service, which `$2` names.
const POLICIES: &str = "SELECT wanted.name, policy.polname::text, policy.polpermissive,
        EXISTS (SELECT 1 FROM unnest(policy.polroles) AS role WHERE role = 0 OR role = callers.oid) AS binds_callers
    FROM unnest($1::text[]) AS wanted (name)
    JOIN pg_catalog.pg_policy AS policy ON policy.polrelid = to_regclass(wanted.name)
    LEFT JOIN pg_catalog.pg_roles AS callers ON callers.rolname = ($2::text[])[1]
    LEFT JOIN pg_catalog.pg_roles AS service ON quote_ident(service.rolname) = ($2::text[])[2]
    WHERE policy.polname NOT LIKE 'townsquare\\_%' AND EXISTS (SELECT 1 FROM unnest(policy.polroles) AS role
        WHERE role = 0 OR role = callers.oid OR pg_has_role(service.oid, role, 'USAGE'))
    ORDER BY wanted.name, policy.polname";

/// The rights of PUBLIC on the tables `$1`.
const PUBLIC_RIGHTS: &str = "SELECT wanted.name, string_agg(DISTINCT rights.privilege_type, ', ')
    FROM unnest($1::text[]) AS wanted (name)
    JOIN pg_catalog.pg_class AS class ON class.oid = to_regclass(wanted.name),
    LATERAL (SELECT grantee, privilege_type FROM aclexplode(class.relacl) UNION ALL
        SELECT grantee, privilege_type FROM pg_catalog.pg_attribute, aclexplode(attacl) WHERE attrelid = class.oid) AS rights
    WHERE rights.grantee = 0 GROUP BY wanted.name ORDER BY wanted.name";

/// Returns the names of the tables that have permissive policies of other programs for our roles.
///
/// # Errors
/// `Config` for a restrictive policy that hides rows from our roles, and for rights of PUBLIC.
pub(in crate::database::postgres) async fn check(connection: &mut PgConnection, roles: &Roles) -> Result<Vec<String>> {
    let tables: Vec<String> = Table::ALL.into_iter().map(table_name).collect();
    let rights: Vec<(String, String)> = tuples(connection, PUBLIC_RIGHTS, &[&tables]).await?;
    if let Some((table, rights)) = rights.first() {
        return Err(Error::config(format!(
            "Option database_url: the table {table} grants {rights} to PUBLIC, which includes the role of the callers \
             (REVOKE ALL ON {table} FROM PUBLIC)"
        )));
    }
    let own = [roles.callers.clone(), roles.service.clone()];
    let policies: Vec<(String, String, bool, bool)> = tuples(connection, POLICIES, &[&tables, &own]).await?;
    let mut with_others: Vec<String> = Vec::new();
    for (table, policy, is_permissive, binds_callers) in policies {
        if is_permissive {
            with_others.push(table);
        } else if binds_callers || !roles.login_bypasses {
            return Err(Error::config(format!(
                "Option database_url: the restrictive policy {policy:?} of another program on the table {table} hides rows \
                 from this library (DROP POLICY, or name other roles in it)"
            )));
        }
    }
    with_others.dedup();
    Ok(with_others)
}
