//! What is given to make, change or move a fidget.
//!
//! Invariant: a zeroed struct is one that gives nothing; the core judges what is missing.

use std::collections::{BTreeMap, btree_map::Entry};

use townsquare::{FidgetPatch, Json, NewFidget, Uuid};

use crate::{
    change::{self, tsq_str_change},
    error::Failure,
    id, json_text, structs,
    text::{self, tsq_str},
};

/// A fidget to be made. Zero it, then fill in: `tsq_new_fidget fidget = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_new_fidget {
    /// What kind of widget it is; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    pub kind: tsq_str,
    /// Its settings: any JSON, as text; may be absent.
    pub config: tsq_str,
    /// Where it is: any JSON, as text; may be absent.
    pub position: tsq_str,
}

/// What changes of a fidget. Zeroed, it changes nothing: `tsq_fidget_patch patch = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_fidget_patch {
    /// What kind of widget it is; cleared, the call fails with `TSQ_FIELD_MISSING`.
    pub kind: tsq_str_change,
    /// Its settings: any JSON, as text.
    pub config: tsq_str_change,
    /// Where it is: any JSON, as text.
    pub position: tsq_str_change,
}

/// A new place of a fidget.
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_position {
    /// The fidget (a UUID).
    pub fidget_id: tsq_str,
    /// Where it is from now on: any JSON, as text; absent: nowhere.
    pub position: tsq_str,
}

impl tsq_new_fidget {
    /// The core's value; failures name the member alone.
    ///
    /// # Safety
    /// All texts are as for [`text::required`].
    pub(crate) unsafe fn read(&self) -> Result<NewFidget, Failure> {
        let mut fidget = NewFidget::default();
        // SAFETY: the caller's promise, passed on.
        unsafe {
            fidget.kind = text::optional(self.kind, "kind")?.map(str::to_owned);
            fidget.config = json_text::optional(self.config, "config")?;
            fidget.position = json_text::optional(self.position, "position")?;
        }
        Ok(fidget)
    }
}

impl tsq_fidget_patch {
    /// The core's value; failures name the member alone.
    ///
    /// # Safety
    /// All changes are initialised, all texts as for [`text::required`].
    pub(crate) unsafe fn read(&self) -> Result<FidgetPatch, Failure> {
        let mut patch = FidgetPatch::new();
        // SAFETY: the caller's promise, passed on.
        unsafe {
            patch.kind = change::of_text(self.kind, "kind")?;
            patch.config = change::of_json(self.config, "config")?;
            patch.position = change::of_json(self.position, "position")?;
        }
        Ok(patch)
    }
}

/// Positions by fidget. An array can say what a map cannot, one fidget twice: that is refused, for either place might
/// be the one that was meant.
///
/// # Safety
/// `positions` points at `count` structs, all texts are as for [`text::required`].
pub(crate) unsafe fn positions(
    positions: *const tsq_position,
    count: usize,
) -> Result<BTreeMap<Uuid, Option<Json>>, Failure> {
    let mut places = BTreeMap::new();
    let read = |item: &tsq_position| {
        // SAFETY: the caller's promise, passed on.
        let (id, place) =
            unsafe { (id::required(item.fidget_id, "fidget_id")?, json_text::optional(item.position, "position")?) };
        match places.entry(id) {
            Entry::Vacant(entry) => entry.insert(place),
            Entry::Occupied(_) => return Err(Failure::invalid_input("Argument fidget_id was named before")),
        };
        Ok(())
    };
    // SAFETY: the caller's promise, passed on.
    unsafe { structs::each(positions, count, "positions", read) }?;
    Ok(places)
}
