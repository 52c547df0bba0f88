//! The owner of a public space (SPEC 4.5).
//!
//! Invariant: a `tsq_owner` is a view of an owner inside a list of spaces, never owned.

use serde::Serialize;
use townsquare::Owner;

use crate::{
    boundary::read,
    handle::Handle,
    id::Id,
    text::{self, tsq_str},
};

/// The owner of a public space: a view into its list.
pub struct tsq_owner {
    _opaque: [u8; 0],
}

impl Handle for tsq_owner {
    type Value = OwnerRecord;
}

/// The value behind a [`tsq_owner`]; as JSON, the core's record.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct OwnerRecord {
    owner: Owner,
    #[serde(skip)]
    id: Id,
}

impl From<Owner> for OwnerRecord {
    fn from(owner: Owner) -> OwnerRecord {
        OwnerRecord { id: owner.id.into(), owner }
    }
}

/// The user's id: a UUID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_owner_id(owner: *const tsq_owner) -> tsq_str {
    // SAFETY: `owner` is NULL or live, by the manual.
    unsafe { read(owner, |record| record.id.view()) }
}

/// The user's e-mail address; absent where the client does not expose it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_owner_email(owner: *const tsq_owner) -> tsq_str {
    // SAFETY: `owner` is NULL or live, by the manual.
    unsafe { read(owner, |record| text::optional_view(record.owner.email.as_deref())) }
}
