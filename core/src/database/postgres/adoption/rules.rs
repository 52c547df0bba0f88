//! The rules of SPEC 2 that an adoption adds to tables of another program.

use crate::policy::{Table, UNIQUES};

/// Unique keys that the library relies on: table and columns.
pub(super) fn keys() -> impl Iterator<Item = (Table, &'static [&'static str])> {
    let uniques = |of: Table| UNIQUES.into_iter().filter(move |(table, _)| *table == of);
    Table::public().flat_map(move |table| std::iter::once((table, table.key())).chain(uniques(table)))
}

/// Checks: table, name, condition. They are added as NOT VALID.
pub(super) const CHECKS: [(Table, &str, &str); 2] = [
    (Table::CommunityDomains, "domain_type_adopted", "domain_type IN ('blank_subdomain', 'custom')"),
    (
        Table::SpaceRegistrations,
        "space_type_adopted",
        "\"spaceType\" IN ('profile', 'token', 'proposal', 'channel', 'navPage')",
    ),
];
