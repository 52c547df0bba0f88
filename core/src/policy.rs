//! Who may do what, as data (SPEC 5.4, DESIGN 4).
//!
//! Invariant: every rule is written once, in [`rule`], and nowhere repeated in words: the SQL of both engines
//! (a condition in a statement, a policy of PostgreSQL's) and the decision on a row at hand are all made from it. A table
//! or action without a rule is denied to everybody but the service.

// The change feed will decide by it; until then its tests hold it to the SQL.
#[cfg_attr(not(test), allow(dead_code, reason = "the change feed will decide by it"))]
mod decide;
mod predicate;

use std::fmt;

use uuid::Uuid;

use crate::error::{Error, Result};

#[cfg(test)]
pub(crate) use decide::{Image, Surroundings};
#[cfg(any(feature = "postgres", test))]
pub(crate) use predicate::quoted;
pub(crate) use predicate::{Predicate, Spell};

/// On whose behalf a statement runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// Nobody has signed in.
    Anonymous,
    /// The user with this id, signed in.
    User(Uuid),
    /// Trusted code, past every policy.
    Service,
}

impl Caller {
    /// The id that predicates compare with; nobody's compares with nothing.
    pub(crate) fn id(self) -> Option<Uuid> {
        match self {
            Caller::User(id) => Some(id),
            Caller::Anonymous | Caller::Service => None,
        }
    }

    /// Refuses everybody whom no policy lets do this, before anything is looked at.
    pub(crate) fn require_service(self, table: Table) -> Result<()> {
        match self {
            Caller::Service => Ok(()),
            Caller::Anonymous | Caller::User(_) => Err(self.denied(table)),
        }
    }

    /// What a caller hears whose rights do not reach that far.
    pub(crate) fn denied(self, table: Table) -> Error {
        Error::permission_denied(table.name(), self == Caller::Anonymous)
    }
}

/// A table with policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Table {
    CommunityConfigs,
    CommunityDomains,
    SpaceRegistrations,
    Users,
    Spaces,
    Fidgets,
}

impl Table {
    pub(crate) const ALL: [Table; 6] = [
        Table::CommunityConfigs,
        Table::CommunityDomains,
        Table::SpaceRegistrations,
        Table::Users,
        Table::Spaces,
        Table::Fidgets,
    ];

    /// Its name in SPEC 2.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Table::CommunityConfigs => "community_configs",
            Table::CommunityDomains => "community_domains",
            Table::SpaceRegistrations => "spaceRegistrations",
            Table::Users => "users",
            Table::Spaces => "spaces",
            Table::Fidgets => "fidgets",
        }
    }
}

/// What a policy allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Select,
    Insert,
    Update,
    Delete,
}

impl Action {
    pub(crate) const ALL: [Action; 4] = [Action::Select, Action::Insert, Action::Update, Action::Delete];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Action::Select => "select",
            Action::Insert => "insert",
            Action::Update => "update",
            Action::Delete => "delete",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The rows of a table that a caller other than the service may see or change, or may bring in.
pub(crate) const fn rule(table: Table, action: Action) -> &'static Predicate {
    use Action::{Delete, Insert, Select, Update};
    use Predicate::{AnyOf, CallerHoldsKey, CallerIs, Everyone, IsTrue, Nobody, Related};

    const OWN_SPACE: Predicate = CallerIs("owner_id");
    const VISIBLE_SPACE: Predicate = AnyOf(&[OWN_SPACE, IsTrue("is_public")]);

    match (table, action) {
        (Table::Spaces, Select) => &VISIBLE_SPACE,
        (Table::Spaces, Insert | Update | Delete) => &OWN_SPACE,
        (Table::Fidgets, Select) => {
            &Related { column: "space_id", table: Table::Spaces, key: "id", predicate: &VISIBLE_SPACE }
        }
        (Table::Fidgets, Insert | Update | Delete) => {
            &Related { column: "space_id", table: Table::Spaces, key: "id", predicate: &OWN_SPACE }
        }
        // The public list names the owners of public spaces (SPEC 4.5).
        (Table::Users, Select) => &AnyOf(&[
            CallerIs("id"),
            Related { column: "id", table: Table::Spaces, key: "owner_id", predicate: &IsTrue("is_public") },
        ]),
        // By sign-up alone.
        (Table::Users, Insert) => &Nobody,
        (Table::Users, Update | Delete) => &CallerIs("id"),
        (Table::CommunityConfigs, Select) => &IsTrue("is_published"),
        // Of the navigation alone: see `updatable`.
        (Table::CommunityConfigs, Update) => &CallerHoldsKey("admin_identity_public_keys"),
        (Table::CommunityDomains | Table::SpaceRegistrations, Select) => &Everyone,
        (Table::SpaceRegistrations, Insert) => {
            &Related { column: "spaceId", table: Table::Spaces, key: "id", predicate: &OWN_SPACE }
        }
        (Table::CommunityConfigs, Insert | Delete)
        | (Table::CommunityDomains, Insert | Update | Delete)
        | (Table::SpaceRegistrations, Update | Delete) => &Nobody,
    }
}

/// The columns of a table that callers other than the service may change; `None`: all of them.
#[cfg(any(feature = "postgres", test))]
pub(crate) const fn updatable(table: Table) -> Option<&'static [&'static str]> {
    match table {
        Table::CommunityConfigs => Some(&["navigation_config", "updated_at"]),
        _ => None,
    }
}
