//! What is given to make or change a space.
//!
//! Invariant: a zeroed struct is one that gives nothing; the core judges what is missing.

use townsquare::{NewSpace, SpacePatch};

use crate::{
    change::{self, tsq_bool_change, tsq_str_change},
    error::Failure,
    id,
    text::{self, tsq_str},
};

/// A space to be made. Zero it, then fill in: `tsq_new_space space = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_new_space {
    /// Display name; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    pub name: tsq_str,
    /// What it is about; may be absent.
    pub description: tsq_str,
    /// The user it belongs to (a UUID); absent: the caller. Only the service may name somebody else.
    pub owner_id: tsq_str,
    /// Whether everyone may see it.
    pub is_public: bool,
}

/// What changes of a space. Zeroed, it changes nothing: `tsq_space_patch patch = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_space_patch {
    /// Display name; cleared, the call fails with `TSQ_FIELD_MISSING`.
    pub name: tsq_str_change,
    /// What it is about.
    pub description: tsq_str_change,
    /// Whether everyone may see it.
    pub is_public: tsq_bool_change,
}

impl tsq_new_space {
    /// The core's value; failures name the member alone.
    ///
    /// # Safety
    /// All texts are as for [`text::required`].
    pub(crate) unsafe fn read(&self) -> Result<NewSpace, Failure> {
        let mut space = NewSpace::default();
        // SAFETY: the caller's promise, passed on.
        unsafe {
            space.name = text::optional(self.name, "name")?.map(str::to_owned);
            space.description = text::optional(self.description, "description")?.map(str::to_owned);
            space.owner_id = id::optional(self.owner_id, "owner_id")?;
        }
        space.is_public = self.is_public;
        Ok(space)
    }
}

impl tsq_space_patch {
    /// The core's value; failures name the member alone.
    ///
    /// # Safety
    /// All changes are initialised, all texts as for [`text::required`].
    pub(crate) unsafe fn read(&self) -> Result<SpacePatch, Failure> {
        let mut patch = SpacePatch::new();
        // SAFETY: the caller's promise, passed on.
        unsafe {
            patch.name = change::of_text(self.name, "name")?;
            patch.description = change::of_text(self.description, "description")?;
            patch.is_public = change::of_truth(self.is_public, "is_public")?;
        }
        Ok(patch)
    }
}
