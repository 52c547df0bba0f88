//! The records of the tables and of files (SPEC 2.2 to 2.8) and the inputs that create or change them.
//!
//! Invariant: a column of a table is declared once, in a `record!`; statements, readers, bound values and input checks
//! come from that declaration.

#[macro_use]
mod record;

mod change;
mod column_type;
mod community;
mod credential;
mod file;
mod json_memory;
mod row_change;
mod space;
mod user;

pub use change::Change;
pub(crate) use column_type::{ColumnType, TypedColumn};
pub use community::{
    ActiveCommunityConfig, CommunityConfig, CommunityDomain, CommunityPatch, DomainType, NewRegistration,
    SpaceRegistration, SpaceType,
};
pub use credential::{ImportReport, NewCredential};
pub(crate) use file::StoredObject;
pub use file::{FileInfo, ListFiles, Overwrite, RepairReport, UploadOptions, UrlMethod, UrlOptions};
pub(crate) use json_memory::{memory_of, memory_of_map};
pub(crate) use record::{FromRow, ReadColumn, RecordColumn, RecordColumns, Validate, read_next};
pub use row_change::{EventType, RealtimeStats, RowChange};
pub(crate) use space::CursorTime;
pub use space::{
    Fidget, FidgetCursor, FidgetPatch, NewFidget, NewSpace, Owner, PublicSpace, PublicSpaceCursor, Space, SpacePatch,
    SpaceWithFidgets,
};
pub use user::{AuthEvent, Session, SignOutScope, User, UserPatch};

/// The records that the templates of statements may name.
pub(crate) static RECORDS: [RecordColumns; 6] = [
    CommunityConfig::COLUMNS,
    ActiveCommunityConfig::COLUMNS,
    CommunityDomain::COLUMNS,
    SpaceRegistration::COLUMNS,
    Space::COLUMNS,
    Fidget::COLUMNS,
];
