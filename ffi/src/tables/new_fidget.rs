//! Inputs that create, change or move a fidget.
//!
//! Invariant: a zeroed struct sets nothing. The core reports what is missing.

use std::collections::{BTreeMap, btree_map::Entry};

use townsquare::{
    Json, Uuid,
    spaces::{FidgetPatch, NewFidget},
};

use crate::boundary::{Failure, argument, change, inputs, tsq_str, tsq_str_change};

/// A fidget to be created. Zero it, then fill it in: `tsq_new_fidget fidget = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_new_fidget {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// Kind of widget; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    pub kind: tsq_str,
    /// Settings, as JSON; may be absent.
    pub config: tsq_str,
    /// Position, as JSON; may be absent.
    pub position: tsq_str,
    /// The id (a UUID), so that the call can be repeated: it returns the space's fidget of this id if the content is the
    /// same. Absent: a random id.
    pub id: tsq_str,
}

/// Changes of a fidget. Zeroed, it changes nothing: `tsq_fidget_patch patch = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_fidget_patch {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// Kind of widget; cleared, the call fails with `TSQ_FIELD_MISSING`.
    pub kind: tsq_str_change,
    /// Settings, as JSON.
    pub config: tsq_str_change,
    /// Position, as JSON.
    pub position: tsq_str_change,
}

inputs!(tsq_new_fidget: id, tsq_fidget_patch: position);

/// A new position of a fidget: a pair. This struct does not grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_position {
    /// The fidget (a UUID).
    pub fidget_id: tsq_str,
    /// The new position, as JSON; absent: no position.
    pub position: tsq_str,
}

impl tsq_new_fidget {
    /// The core's value. Failures name the member alone.
    ///
    /// # Safety
    /// All texts are as for [`argument::text`].
    pub(crate) unsafe fn read(&self) -> Result<NewFidget, Failure> {
        let mut fidget = NewFidget::default();
        // SAFETY: the caller's promise, passed on.
        unsafe {
            fidget.kind = argument::optional_string(self.kind, "kind")?;
            fidget.config = argument::optional_json(self.config, "config")?;
            fidget.position = argument::optional_json(self.position, "position")?;
            fidget.id = argument::optional_id(self.id, "id")?;
        }
        Ok(fidget)
    }
}

impl tsq_fidget_patch {
    /// The core's value. Failures name the member alone.
    ///
    /// # Safety
    /// All changes are initialised, all texts as for [`argument::text`].
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

/// Positions by fidget. A fidget that appears twice is an error.
///
/// # Safety
/// `positions` points at `count` structs, all texts are as for [`argument::text`].
pub(crate) unsafe fn positions(
    positions: *const tsq_position,
    count: usize,
) -> Result<BTreeMap<Uuid, Option<Json>>, Failure> {
    let mut by_fidget = BTreeMap::new();
    let read = |item: &tsq_position| {
        // SAFETY: the caller's promise, passed on.
        let (id, position) = unsafe {
            (argument::id(item.fidget_id, "fidget_id")?, argument::optional_json(item.position, "position")?)
        };
        match by_fidget.entry(id) {
            Entry::Vacant(entry) => entry.insert(position),
            Entry::Occupied(_) => return Err(Failure::invalid_input("Argument fidget_id was named before")),
        };
        Ok(())
    };
    // SAFETY: the caller's promise, passed on.
    unsafe { argument::structures(positions, count, "positions", read) }?;
    Ok(by_fidget)
}
