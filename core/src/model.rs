//! The records of the tables and of files (SPEC 2.2 to 2.8) and the inputs that create or change them.
//!
//! Invariant: a column of a table is declared once, in a `record!`. Column lists of statements, readers of rows, bound values,
//! input checks, the triggers of the change log, grants, and the columns that an adopted table needs come from that declaration.

/// Implements `Debug` for a type that shows nothing of its content.
macro_rules! opaque {
    ($type:ident) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use opaque;

/// Declares an enum whose variants have names: the enum itself, the list of its variants in their order, and the function that
/// returns the name of one.
macro_rules! named {
    (
        $(#[$about:meta])*
        $visible:vis enum $type:ident { $($(#[$about_variant:meta])* $variant:ident = $name:literal,)* }

        $(#[$about_all:meta])*
        $visible_all:vis const ALL;

        $(#[$about_name:meta])*
        $visible_name:vis fn $name_of:ident;
    ) => {
        $(#[$about])*
        $visible enum $type { $($(#[$about_variant])* $variant,)* }

        impl $type {
            $(#[$about_all])*
            $visible_all const ALL: [$type; [$($name),*].len()] = [$($type::$variant),*];

            $(#[$about_name])*
            $visible_name const fn $name_of(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }
        }
    };
}
pub(crate) use named;

#[macro_use]
mod record;

mod change;
mod column;
mod community;
mod credential;
mod file;
mod finding;
mod json_memory;
mod migration_plan;
mod move_report;
mod row_change;
mod space;
#[cfg(feature = "postgres")]
mod supabase_report;
mod table_row;
mod time_text;
mod user;

pub use change::Change;
pub(crate) use column::{Column, ColumnType, Readers, TypedColumn};
pub use community::{
    ActiveCommunityConfig, CommunityConfig, CommunityDomain, CommunityPatch, DomainType, NewRegistration,
    SpaceRegistration, SpaceType,
};
pub use credential::{ImportReport, NewCredential};
pub(crate) use file::StoredObject;
pub use file::{FileInfo, ListFiles, Overwrite, RepairReport, UploadOptions, UrlMethod, UrlOptions};
pub(crate) use finding::Findings;
pub use finding::{CheckDepth, Finding, FindingCode, Severity};
pub(crate) use json_memory::{memory_of, memory_of_map};
pub use migration_plan::{MigrationPlan, PlannedMigration};
pub use move_report::{MoveOptions, MoveReport, MoveTarget};
pub(crate) use record::{FromRow, ReadColumn, RecordColumns, SameValue, Validate, read_next};
pub use row_change::{EventType, RealtimeStats, RowChange};
pub(crate) use space::CursorTime;
pub use space::{
    Fidget, FidgetCursor, FidgetPatch, NewFidget, NewSpace, Owner, PublicSpace, PublicSpaceCursor, Space, SpacePatch,
    SpaceWithFidgets,
};
#[cfg(feature = "postgres")]
pub use supabase_report::{SupabaseCheck, SupabaseReport, SupabaseSkipped};
pub use table_row::{
    ImportOptions, RowColumn, RowImportReport, RowProblem, RowProblemKind, RowTable, TableRow, ValueKind,
};
pub(crate) use time_text::timestamp_text;
pub use user::{AuthEvent, Session, SessionInfo, SignOutScope, User, UserPatch};
