//! Spaces: the struct of a row with its fidgets or its owner, lists of rows, and the inputs that create or change a space
//! (SPEC 2.6, 4.5).
//!
//! Invariant: a zeroed input sets nothing. The core reports what is missing.

use std::{mem::MaybeUninit, ptr};

use serde::Serialize;
use townsquare::spaces::{NewSpace, PublicSpace, PublicSpaceCursor, Space, SpacePatch, SpaceWithFidgets};

use crate::{
    boundary::{
        Failure, Handle, Memory, Nested, OwnedRecord, Record, RecordList, argument, call_handle, change, free, handle,
        inputs, json, read, record, text, tsq_bool_change, tsq_error, tsq_status, tsq_str, tsq_str_change, tsq_string,
    },
    tables::{
        fidget::{tsq_fidget, tsq_fidget_list},
        owner::tsq_owner,
    },
};

/// A space. A record (manual, RECORDS); freed with `tsq_space_free` where a call returns it owned.
#[repr(C)]
pub struct tsq_space {
    /// Primary key: a UUID.
    pub id: tsq_str,
    /// Display name.
    pub name: tsq_str,
    /// Description; may be absent.
    pub description: tsq_str,
    /// The user who owns it: a UUID; may be absent.
    pub owner_id: tsq_str,
    /// Whether every caller may see it.
    pub is_public: bool,
    /// Creation time, in microseconds.
    pub created_at: i64,
    /// Time of the last change, in microseconds; never goes back.
    pub updated_at: i64,
    /// Its fidgets, oldest first, in results of `tsq_spaces_get_user_spaces` and `tsq_spaces_get_space_with_fidgets`;
    /// else NULL.
    pub fidgets: *const tsq_fidget_list,
    /// Its owner, in results of `tsq_spaces_get_public_spaces`; NULL there for a space without an owner, and elsewhere.
    pub owner: *const tsq_owner,
}

/// The core's row; as JSON, with what the call returned beside it.
#[derive(Serialize)]
pub(crate) struct SpaceRow {
    #[serde(flatten)]
    space: Space,
    /// `None` where the call does not return fidgets.
    #[serde(skip_serializing_if = "Option::is_none")]
    fidgets: Option<Nested<RecordList<tsq_fidget>>>,
    /// `None` where the call does not return the owner; `Some(None)` for a space without an owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Option<Nested<OwnedRecord<tsq_owner>>>>,
    /// The position in the list of public spaces.
    #[serde(skip)]
    cursor: PublicSpaceCursor,
}

impl OwnedRecord<tsq_space> {
    /// The position after this space in the list of public spaces.
    pub(crate) fn cursor(&self) -> PublicSpaceCursor {
        self.source().cursor
    }
}

impl From<Space> for SpaceRow {
    fn from(space: Space) -> SpaceRow {
        SpaceRow { cursor: space.id.into(), space, fidgets: None, owner: None }
    }
}

impl From<SpaceWithFidgets> for SpaceRow {
    fn from(row: SpaceWithFidgets) -> SpaceRow {
        let fidgets = record::list(row.fidgets).into();
        SpaceRow { fidgets: Some(fidgets), ..row.space.into() }
    }
}

impl From<PublicSpace> for SpaceRow {
    fn from(row: PublicSpace) -> SpaceRow {
        let cursor = row.cursor();
        let owner = row.owner.map(|owner| record(owner).into());
        SpaceRow { owner: Some(owner), cursor, ..row.space.into() }
    }
}

impl Record for tsq_space {
    type Source = SpaceRow;

    fn new(row: &SpaceRow, memory: &mut Memory) -> tsq_space {
        let space = &row.space;
        tsq_space {
            id: memory.id(space.id),
            name: text::view(&space.name),
            description: text::optional_view(space.description.as_deref()),
            owner_id: memory.optional_id(space.owner_id),
            is_public: space.is_public,
            created_at: space.created_at.as_microsecond(),
            updated_at: space.updated_at.as_microsecond(),
            fidgets: row.fidgets.as_ref().map_or(ptr::null(), Nested::view),
            owner: row.owner.as_ref().and_then(Option::as_ref).map_or(ptr::null(), Nested::view),
        }
    }
}

/// A space to be created. Zero it, then fill it in: `tsq_new_space space = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_new_space {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// Display name; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    pub name: tsq_str,
    /// Description; may be absent.
    pub description: tsq_str,
    /// The owner (a UUID); absent: the caller. Only the service may name another user.
    pub owner_id: tsq_str,
    /// Whether every caller may see it; any non-zero byte is true.
    pub is_public: MaybeUninit<bool>,
    /// The id (a UUID), so that the call can be repeated: it returns the caller's space of this id if the content is the
    /// same. Absent: a random id.
    pub id: tsq_str,
}

/// Changes of a space. Zeroed, it changes nothing: `tsq_space_patch patch = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_space_patch {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// Display name; cleared, the call fails with `TSQ_FIELD_MISSING`.
    pub name: tsq_str_change,
    /// Description.
    pub description: tsq_str_change,
    /// Whether every caller may see it; cannot be cleared.
    pub is_public: tsq_bool_change,
}

inputs!(tsq_new_space: id, tsq_space_patch: is_public);

impl tsq_new_space {
    /// The core's value. Failures name the member alone.
    ///
    /// # Safety
    /// All texts are as for [`argument::text`], and `is_public` is initialised.
    pub(crate) unsafe fn read(&self) -> Result<NewSpace, Failure> {
        let mut space = NewSpace::default();
        // SAFETY: the caller's promise, passed on.
        unsafe {
            space.name = argument::optional_string(self.name, "name")?;
            space.description = argument::optional_string(self.description, "description")?;
            space.owner_id = argument::optional_id(self.owner_id, "owner_id")?;
            space.is_public = change::boolean(self.is_public);
            space.id = argument::optional_id(self.id, "id")?;
        }
        Ok(space)
    }
}

impl tsq_space_patch {
    /// The core's value. Failures name the member alone.
    ///
    /// # Safety
    /// All changes are initialised, all texts as for [`argument::text`].
    pub(crate) unsafe fn read(&self) -> Result<SpacePatch, Failure> {
        let mut patch = SpacePatch::new();
        // SAFETY: the caller's promise, passed on.
        unsafe {
            patch.name = change::of_text(self.name, "name")?;
            patch.description = change::of_text(self.description, "description")?;
            patch.is_public = change::of_bool(self.is_public, "is_public")?;
        }
        Ok(patch)
    }
}

/// A list of spaces, in the order that the call's documentation states. Freed with `tsq_space_list_free`.
pub struct tsq_space_list {
    _opaque: [u8; 0],
}

impl Handle for tsq_space_list {
    type Value = RecordList<tsq_space>;
}

/// The space as a JSON object: its columns by their names, and `fidgets` or `owner` where the call returns them.
///
/// Borrows `space`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_json(
    space: *const tsq_space,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(space, "space")?)) }
}

/// Frees a space that a call returned owned. Takes `space`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_free(space: *mut tsq_space) {
    // SAFETY: `space` is NULL or owned by the caller, by the manual.
    unsafe { free(space) }
}

/// The number of spaces; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_list_len(list: *const tsq_space_list) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The space at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_list_at(list: *const tsq_space_list, index: usize) -> *const tsq_space {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of the objects of `tsq_space_json`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_list_json(
    list: *const tsq_space_list,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list with its spaces. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_list_free(list: *mut tsq_space_list) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}
