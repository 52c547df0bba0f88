//! Spaces: the rows that users own (SPEC 2.6, 4.5).
//!
//! Invariant: each function is the core's method of the same name, with nothing before it but reading the arguments.

use townsquare::{Operation, Spaces, blocking::wait};

use crate::{
    boundary::{act, produce, produce_if_wanted},
    client::tsq_client,
    error::{Failure, tsq_error},
    handle, id,
    new_space::{tsq_new_space, tsq_space_patch},
    space::{SpaceRecord, tsq_space},
    space_list::tsq_space_list,
    status::tsq_status,
    structs,
    text::tsq_str,
};

/// How many public spaces a page has when nothing else is said.
pub const TSQ_DEFAULT_PAGE: u32 = 20;

const _: () = assert!(TSQ_DEFAULT_PAGE == townsquare::DEFAULT_PAGE, "one default in every language");

/// # Safety
/// `client` is NULL or lives for `'a`.
unsafe fn spaces<'a>(client: *const tsq_client) -> Result<&'a Spaces, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { handle::required(client, "client") }?.inner().spaces())
}

/// Inserts a space. It belongs to the caller unless the service names somebody else.
///
/// Borrows `client` and `space`; returns the row owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` without
/// a name, `TSQ_REFERENCE_MISSING` for an owner who does not exist, `TSQ_FORBIDDEN` for a space that would not be the
/// caller's own, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_create_space(
    client: *const tsq_client,
    space: *const tsq_new_space,
    out: *mut *mut tsq_space,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::CreateSpace), out, err, || {
            let spaces = spaces(client)?;
            let space = structs::required(space, "space", |space: &tsq_new_space| space.read())?;
            Ok(wait(spaces.create_space(space))?.into())
        })
    }
}

/// Inserts spaces in one transaction: all of them or none.
///
/// Borrows `client` and `items` (an array of `items_len`); returns the rows, in the order given, owned in `out`, which
/// may be NULL. Fails as `tsq_spaces_create_space` does, for the first that fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_create_spaces(
    client: *const tsq_client,
    items: *const tsq_new_space,
    items_len: usize,
    out: *mut *mut tsq_space_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::CreateSpaces), out, err, || {
            let spaces = spaces(client)?;
            let items = structs::each(items, items_len, "items", |space: &tsq_new_space| space.read())?;
            Ok(SpaceRecord::list(wait(spaces.create_spaces(items))?))
        })
    }
}

/// One space by its id.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when there is none that the caller may see,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_space(
    client: *const tsq_client,
    id: tsq_str,
    out: *mut *mut tsq_space,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::GetSpace), out, err, || {
            let spaces = spaces(client)?;
            Ok(wait(spaces.get_space(id::required(id, "id")?))?.into())
        })
    }
}

/// Changes what `patch` names and nothing else; a patch of nothing changes nothing.
///
/// Borrows all; returns the row as it is now owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` when there is
/// no such space of the caller's, `TSQ_FIELD_MISSING` when the name is cleared, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_update_space(
    client: *const tsq_client,
    id: tsq_str,
    patch: *const tsq_space_patch,
    out: *mut *mut tsq_space,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::UpdateSpace), out, err, || {
            let (spaces, id) = (spaces(client)?, id::required(id, "id")?);
            let patch = structs::required(patch, "patch", |patch: &tsq_space_patch| patch.read())?;
            Ok(wait(spaces.update_space(id, patch))?.into())
        })
    }
}

/// Deletes a space and its fidgets.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` when there is no such space of the caller's, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_delete_space(
    client: *const tsq_client,
    id: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        act(Some(Operation::DeleteSpace), err, || {
            let spaces = spaces(client)?;
            Ok(wait(spaces.delete_space(id::required(id, "id")?))?)
        })
    }
}

/// The spaces of a user with their fidgets, newest first, those of one moment by id; an unknown user has none.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_user_spaces(
    client: *const tsq_client,
    user_id: tsq_str,
    out: *mut *mut tsq_space_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::GetUserSpaces), out, err, || {
            let spaces = spaces(client)?;
            Ok(SpaceRecord::list(wait(spaces.get_user_spaces(id::required(user_id, "user_id")?))?))
        })
    }
}

/// Public spaces with their owners, newest first, those of one moment by id: rows `offset` to `offset + limit - 1`.
/// `TSQ_DEFAULT_PAGE` and 0 are the first page. The owner's e-mail address is shown to every reader, unless the client
/// was opened not to.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for a limit that is not 1 to 1,000,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_public_spaces(
    client: *const tsq_client,
    limit: u32,
    offset: u64,
    out: *mut *mut tsq_space_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::GetPublicSpaces), out, err, || {
            Ok(SpaceRecord::list(wait(spaces(client)?.get_public_spaces(limit, offset))?))
        })
    }
}

/// One space with its fidgets, oldest first; only a space that has a fidget matches.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when there is none with a fidget that the caller may
/// see, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_space_with_fidgets(
    client: *const tsq_client,
    id: tsq_str,
    out: *mut *mut tsq_space,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::GetSpaceWithFidgets), out, err, || {
            let spaces = spaces(client)?;
            Ok(wait(spaces.get_space_with_fidgets(id::required(id, "id")?))?.into())
        })
    }
}
