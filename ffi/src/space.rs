//! One space: its row, and with it its fidgets or its owner where the call asked for them.
//!
//! Invariant: a record is complete when it is made: reading it is a view and allocates nothing.

use std::ptr;

use serde::Serialize;
use townsquare::{PublicSpace, Space, SpaceWithFidgets};

use crate::{
    boundary::{free, produce, read},
    error::tsq_error,
    fidget::FidgetRecord,
    fidget_list::tsq_fidget_list,
    handle::{self, Handle},
    id::{self, Id},
    owner::{OwnerRecord, tsq_owner},
    status::tsq_status,
    text::{self, tsq_str, tsq_string},
};

/// One space. Owned where a call returns it by itself, and then ended with `tsq_space_free`; else a view into its list.
/// All that is read from it lives as long as the space or the list. It never changes and outlives its client.
pub struct tsq_space {
    _opaque: [u8; 0],
}

impl Handle for tsq_space {
    type Value = SpaceRecord;
}

/// The value behind a [`tsq_space`]; as JSON, the core's record.
#[derive(Serialize)]
pub(crate) struct SpaceRecord {
    #[serde(flatten)]
    space: Space,
    /// `None` where the call did not ask for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    fidgets: Option<Vec<FidgetRecord>>,
    /// `None` where the call did not ask; `Some(None)` for a space without an owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Option<OwnerRecord>>,
    #[serde(skip)]
    id: Id,
    #[serde(skip)]
    owner_id: Option<Id>,
}

impl SpaceRecord {
    /// The records of a list.
    pub(crate) fn list<T: Into<SpaceRecord>>(rows: Vec<T>) -> Vec<SpaceRecord> {
        rows.into_iter().map(Into::into).collect()
    }
}

impl From<Space> for SpaceRecord {
    fn from(space: Space) -> SpaceRecord {
        let (id, owner_id) = (space.id.into(), space.owner_id.map(Id::from));
        SpaceRecord { space, fidgets: None, owner: None, id, owner_id }
    }
}

impl From<SpaceWithFidgets> for SpaceRecord {
    fn from(row: SpaceWithFidgets) -> SpaceRecord {
        SpaceRecord { fidgets: Some(FidgetRecord::list(row.fidgets)), ..row.space.into() }
    }
}

impl From<PublicSpace> for SpaceRecord {
    fn from(row: PublicSpace) -> SpaceRecord {
        SpaceRecord { owner: Some(row.owner.map(OwnerRecord::from)), ..row.space.into() }
    }
}

/// The space's id: a UUID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_id(space: *const tsq_space) -> tsq_str {
    // SAFETY: `space` is NULL or live, by the manual.
    unsafe { read(space, |record| record.id.view()) }
}

/// Display name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_name(space: *const tsq_space) -> tsq_str {
    // SAFETY: `space` is NULL or live, by the manual.
    unsafe { read(space, |record| text::view(&record.space.name)) }
}

/// What it is about; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_description(space: *const tsq_space) -> tsq_str {
    // SAFETY: `space` is NULL or live, by the manual.
    unsafe { read(space, |record| text::optional_view(record.space.description.as_deref())) }
}

/// The user it belongs to: a UUID; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_owner_id(space: *const tsq_space) -> tsq_str {
    // SAFETY: `space` is NULL or live, by the manual.
    unsafe { read(space, |record| id::optional_view(record.owner_id.as_ref())) }
}

/// Whether everyone may see it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_is_public(space: *const tsq_space) -> bool {
    // SAFETY: `space` is NULL or live, by the manual.
    unsafe { read(space, |record| record.space.is_public) }
}

/// When it was made: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_created_at(space: *const tsq_space) -> i64 {
    // SAFETY: `space` is NULL or live, by the manual.
    unsafe { read(space, |record| record.space.created_at.as_microsecond()) }
}

/// When it last changed, never going back: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_updated_at(space: *const tsq_space) -> i64 {
    // SAFETY: `space` is NULL or live, by the manual.
    unsafe { read(space, |record| record.space.updated_at.as_microsecond()) }
}

/// Its fidgets, oldest first, from the calls that return spaces with them (`tsq_spaces_get_user_spaces`,
/// `tsq_spaces_get_space_with_fidgets`); NULL from the others.
///
/// Returns a view: it is not to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_fidgets(space: *const tsq_space) -> *const tsq_fidget_list {
    // SAFETY: `space` is NULL or live, by the manual.
    unsafe { read(space, |record| record.fidgets.as_ref().map_or(ptr::null(), handle::view)) }
}

/// Its owner, from `tsq_spaces_get_public_spaces`; NULL from other calls, and for a space without an owner.
///
/// Returns a view.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_owner(space: *const tsq_space) -> *const tsq_owner {
    // SAFETY: `space` is NULL or live, by the manual.
    unsafe { read(space, |record| record.owner.as_ref().and_then(Option::as_ref).map_or(ptr::null(), handle::view)) }
}

/// The space as a JSON object: its columns by their names, and `fidgets` or `owner` from the calls that return them.
///
/// Borrows `space`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_json(
    space: *const tsq_space,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(space, "space")?)) }
}

/// Ends a space that a call returned by itself. Takes `space`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_free(space: *mut tsq_space) {
    // SAFETY: `space` is NULL or owned by the caller, by the manual.
    unsafe { free(space) }
}
