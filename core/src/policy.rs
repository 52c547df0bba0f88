//! The access policies of the tables, as data (SPEC 5.4, DESIGN 4).
//!
//! Invariant: each policy is written once, in [`rule`]. The conditions in statements, PostgreSQL's row-level security
//! policies and the decision on a row in memory are all generated from it. No policy applies to the service.

mod columns;
mod decide;
mod feed;
mod predicate;

use std::fmt;

use uuid::Uuid;

use crate::error::{Error, Result};

pub(crate) use crate::model::{Column, Readers};
pub(crate) use columns::{EMAIL, REFERENCES, RowKey, UNIQUES, columns_of_record};
#[cfg(test)]
pub(crate) use decide::RelatedRows;
pub(crate) use decide::RowImage;
pub(crate) use feed::may_see;
pub(crate) use predicate::{Predicate, SqlContext, quoted};

/// The party that a statement acts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// No user is signed in.
    Anonymous,
    /// The signed-in user with this id.
    User(Uuid),
    /// Trusted code of the host: no policy applies.
    Service,
}

impl Caller {
    /// The id that policies compare with. `None` equals no row.
    pub(crate) fn id(self) -> Option<Uuid> {
        match self {
            Caller::User(id) => Some(id),
            Caller::Anonymous | Caller::Service => None,
        }
    }

    /// Refuses every caller but the service, before any row is read.
    pub(crate) fn require_service(self, table: Table) -> Result<()> {
        match self {
            Caller::Service => Ok(()),
            Caller::Anonymous | Caller::User(_) => {
                Err(Error::service_required(table.name(), self == Caller::Anonymous))
            }
        }
    }

    /// The error of an operation that needs more rights than the caller has.
    pub(crate) fn permission_denied(self, table: Table) -> Error {
        Error::permission_denied(table.name(), self == Caller::Anonymous)
    }
}

crate::model::named! {
    /// A table with policies.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub(crate) enum Table {
        CommunityConfigs = "community_configs",
        CommunityDomains = "community_domains",
        SpaceRegistrations = "spaceRegistrations",
        Users = "users",
        Spaces = "spaces",
        Fidgets = "fidgets",
        /// The rows of files, in a table of the library itself. In statements its alias is `files`.
        Files = "files",
    }

    pub(crate) const ALL;

    /// The name in SPEC 2.
    pub(crate) fn name;
}

impl Table {
    /// The tables of SPEC 2, in an order in which a row comes after the rows that it references.
    pub(crate) fn public() -> impl Iterator<Item = Table> {
        Table::ALL.into_iter().filter(|table| table.is_public())
    }

    /// The table with this name in SPEC 2.
    pub(crate) fn from_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// The PostgreSQL schema.
    #[cfg(feature = "postgres")]
    pub(crate) const fn schema(self) -> &'static str {
        match self {
            Table::Files => "townsquare",
            _ => "public",
        }
    }

    /// Whether the table is one of SPEC 2.
    pub(crate) const fn is_public(self) -> bool {
        !matches!(self, Table::Files)
    }

    /// The error of a new row that the table's insert policy refuses.
    pub(crate) fn insert_refused(self) -> Error {
        Error::new_row_violates(self.name())
    }
}

crate::model::named! {
    /// An action that a policy allows on rows.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub(crate) enum Action {
        Select = "select",
        Insert = "insert",
        Update = "update",
        Delete = "delete",
    }

    pub(crate) const ALL;

    pub(crate) fn name;
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const OWN_SPACE: Predicate = Predicate::CallerIs("owner_id");
const VISIBLE_SPACE: Predicate = Predicate::AnyOf(&[OWN_SPACE, Predicate::IsTrueForPages("is_public")]);

const OWN_FOLDER: Predicate = Predicate::AllOf(&[
    Predicate::TextIs("access", "private"),
    Predicate::AnyOf(&[Predicate::CallerIsText("first_segment"), Predicate::CallerLinked("first_segment")]),
]);

const FILE_OF_OWN_SPACE: Predicate = Predicate::AllOf(&[
    Predicate::TextIs("access", "spaces"),
    Predicate::Related { column: "space_id", table: Table::Spaces, key: "id", predicate: &OWN_SPACE },
]);

const OWN_PUBLIC_FILE: Predicate =
    Predicate::AllOf(&[Predicate::TextIs("access", "public"), Predicate::CallerIs("owner_id")]);

/// The folders of SPEC 2.8 in `assets` are the service's. A file named like one would block the folder for everyone; on
/// some file systems upper and lower case do not matter.
const OUTSIDE_SHARED_FOLDERS: Predicate = Predicate::AnyOf(&[
    Predicate::TextIsNot("bucket", "assets"),
    Predicate::AllOf(&[
        Predicate::TextIsNot("first_segment", "images"),
        Predicate::TextIsNot("first_segment", "videos"),
    ]),
]);

/// The rows on which a caller other than the service may perform the action.
pub(crate) const fn rule(table: Table, action: Action) -> &'static Predicate {
    use Action::{Delete, Insert, Select, Update};
    use Predicate::{
        AllOf, AnyOf, CallerHoldsKey, CallerIs, CallerLinked, Everyone, IsClaimable, IsNull, IsTrue, Nobody, Related,
        TextIs,
    };

    match (table, action) {
        // By a known path; `listed` has the rule of lists.
        (Table::Files, Select) => &AnyOf(&[TextIs("access", "spaces"), TextIs("access", "public"), OWN_FOLDER]),
        // The owner of a new file is the caller.
        (Table::Files, Insert) => {
            &AnyOf(&[FILE_OF_OWN_SPACE, AllOf(&[OWN_PUBLIC_FILE, OUTSIDE_SHARED_FOLDERS]), OWN_FOLDER])
        }
        (Table::Files, Update | Delete) => &AnyOf(&[FILE_OF_OWN_SPACE, OWN_PUBLIC_FILE, OWN_FOLDER]),
        (Table::Spaces, Select) => &VISIBLE_SPACE,
        // The id of a registered page or of a deleted space cannot be claimed by another user.
        (Table::Spaces, Insert) => &AllOf(&[OWN_SPACE, IsClaimable("id")]),
        (Table::Spaces, Update | Delete) => &OWN_SPACE,
        (Table::Fidgets, Select) => {
            &Related { column: "space_id", table: Table::Spaces, key: "id", predicate: &VISIBLE_SPACE }
        }
        (Table::Fidgets, Insert | Update | Delete) => {
            &Related { column: "space_id", table: Table::Spaces, key: "id", predicate: &OWN_SPACE }
        }
        // get_public_spaces returns the owners of public spaces (SPEC 4.5).
        (Table::Users, Select) => &AnyOf(&[
            CallerIs("id"),
            Related { column: "id", table: Table::Spaces, key: "owner_id", predicate: &IsTrue("is_public") },
        ]),
        // The service signs users up, and changes and deletes them after it has checked the password.
        (Table::Users, Insert | Update | Delete) => &Nobody,
        (Table::CommunityConfigs, Select) => &IsTrue("is_published"),
        // `updatable` limits this to the navigation. An `UPDATE` of PostgreSQL without `WHERE` does not ask who may read the row.
        (Table::CommunityConfigs, Update) => {
            &AllOf(&[IsTrue("is_published"), CallerHoldsKey("admin_identity_public_keys")])
        }
        (Table::CommunityDomains | Table::SpaceRegistrations, Select) => &Everyone,
        // Readers take the columns of a registration for proven. A linked identity key is; the service alone can check a fid
        // and a signature.
        (Table::SpaceRegistrations, Insert) => &AllOf(&[
            Related { column: "spaceId", table: Table::Spaces, key: "id", predicate: &OWN_SPACE },
            IsNull("fid"),
            IsNull("signature"),
            AnyOf(&[IsNull("identityPublicKey"), CallerLinked("identityPublicKey")]),
        ]),
        (Table::CommunityConfigs, Insert | Delete)
        | (Table::CommunityDomains, Insert | Update | Delete)
        | (Table::SpaceRegistrations, Update | Delete) => &Nobody,
    }
}

/// The rows that an update by a caller other than the service may leave, if these are others than those it may change. A move
/// to a folder needs the right to add a file there.
#[cfg(feature = "postgres")]
pub(crate) const fn updated(table: Table) -> Option<&'static Predicate> {
    match table {
        Table::Files => Some(rule(table, Action::Insert)),
        _ => None,
    }
}

/// The rows that lists and the change feed show to a caller other than the service. A file of a space that is not public can be
/// read by everyone who knows its path, but its path is shown to the owner alone.
pub(crate) const fn listed(table: Table) -> &'static Predicate {
    use Predicate::{AllOf, AnyOf, Related, TextIs};

    match table {
        Table::Files => &AnyOf(&[
            AllOf(&[
                TextIs("access", "spaces"),
                Related { column: "space_id", table: Table::Spaces, key: "id", predicate: &VISIBLE_SPACE },
            ]),
            TextIs("access", "public"),
            OWN_FOLDER,
        ]),
        _ => rule(table, Action::Select),
    }
}

/// The columns that callers other than the service may update; `None` for all of them.
#[cfg(any(feature = "postgres", test))]
pub(crate) fn updatable(table: Table) -> Option<Vec<&'static str>> {
    match table {
        Table::CommunityConfigs => Some(vec!["navigation_config", "updated_at"]),
        // With another id, a space would own the files under it.
        Table::Spaces => {
            Some(table.columns().iter().filter(|column| !column.is_key).map(|column| column.name).collect())
        }
        _ => None,
    }
}
