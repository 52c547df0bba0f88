//! The owner of a public space (SPEC 4.5).

use townsquare::spaces::Owner;

use crate::boundary::{Memory, Record, text, tsq_str};

/// The owner of a public space. A record (manual, RECORDS), always a member of a space.
#[repr(C)]
pub struct tsq_owner {
    /// The user's id: a UUID.
    pub id: tsq_str,
    /// The user's e-mail address; absent unless the option `expose_owner_email` shows it.
    pub email: tsq_str,
}

impl Record for tsq_owner {
    type Source = Owner;

    fn new(owner: &Owner, memory: &mut Memory) -> tsq_owner {
        tsq_owner { id: memory.id(owner.id), email: text::optional_view(owner.email.as_deref()) }
    }
}
