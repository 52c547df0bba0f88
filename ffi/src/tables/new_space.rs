//! Inputs that create or change a space.
//!
//! Invariant: a zeroed struct sets nothing. The core reports what is missing.

use std::mem::MaybeUninit;

use townsquare::spaces::{NewSpace, SpacePatch};

use crate::boundary::{
    argument,
    change::{self, tsq_bool_change, tsq_str_change},
    failure::Failure,
    text::tsq_str,
};

/// A space to be created. Zero it, then fill it in: `tsq_new_space space = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_new_space {
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
    /// Display name; cleared, the call fails with `TSQ_FIELD_MISSING`.
    pub name: tsq_str_change,
    /// Description.
    pub description: tsq_str_change,
    /// Whether every caller may see it; cannot be cleared.
    pub is_public: tsq_bool_change,
}

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
