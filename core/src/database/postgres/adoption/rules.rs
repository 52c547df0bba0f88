//! The rules of SPEC 2 that an adoption adds to tables of another program.

/// Unique keys that the library relies on: table, columns, and the name of the index that is created if there is none.
pub(super) const KEYS: [(&str, &str, &str); 10] = [
    ("community_configs", "id", "community_configs_id_adopted"),
    ("community_configs", "community_id", "community_configs_community_id_adopted"),
    ("community_domains", "id", "community_domains_id_adopted"),
    ("community_domains", "domain", "community_domains_domain_adopted"),
    ("community_domains", "community_id,domain_type", "community_domains_type_adopted"),
    ("\"spaceRegistrations\"", "spaceId", "registrations_id_adopted"),
    ("users", "id", "users_id_adopted"),
    ("users", "email", "users_email_adopted"),
    ("spaces", "id", "spaces_id_adopted"),
    ("fidgets", "id", "fidgets_id_adopted"),
];

/// Foreign keys: table, column, what it references. They are added as NOT VALID: rows that break them stay.
pub(super) const REFERENCES: [(&str, &str, &str); 3] = [
    ("community_domains", "community_id", "community_configs (community_id)"),
    ("spaces", "owner_id", "users (id)"),
    ("fidgets", "space_id", "spaces (id)"),
];

/// Checks: table, name, condition. They are added as NOT VALID.
pub(super) const CHECKS: [(&str, &str, &str); 2] = [
    ("community_domains", "domain_type_adopted", "domain_type IN ('blank_subdomain', 'custom')"),
    (
        "\"spaceRegistrations\"",
        "space_type_adopted",
        "\"spaceType\" IN ('profile', 'token', 'proposal', 'channel', 'navPage')",
    ),
];
