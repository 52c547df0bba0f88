//! Operations on spaces (SPEC 2.6, 4.5).
//!
//! Invariant: each function is the core's method of the same name, after it converted the arguments.

use townsquare::{Operation, blocking, spaces::DEFAULT_PAGE};

use crate::{
    boundary::{
        Failure, argument, call_handle, call_unit, call_wanted_handle, handle,
        input::{input, input_array},
        list, record, tsq_error, tsq_status, tsq_str,
    },
    client::{self, tsq_client},
    tables::space::{tsq_new_space, tsq_space, tsq_space_list, tsq_space_patch},
};

/// The default page size of `tsq_spaces_get_public_spaces`.
pub const TSQ_DEFAULT_PAGE: u32 = 20;

const _: () = assert!(TSQ_DEFAULT_PAGE == DEFAULT_PAGE, "the default page size is the same in every language");

/// # Safety
/// `client` is NULL or lives for `'a`.
unsafe fn spaces<'a>(client: *const tsq_client) -> Result<blocking::Spaces<'a>, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { client::usable(client) }?.spaces())
}

/// Creates a space. Its owner is the caller; the service may name another owner.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` without a name,
/// `TSQ_REFERENCE_MISSING` for an unknown owner, `TSQ_FORBIDDEN` for another owner than the caller and for the id of a
/// page or of a deleted space, `TSQ_ALREADY_EXISTS` for an id that another space has, `TSQ_INVALID_INPUT`,
/// `TSQ_TOO_LARGE`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_create_space(
    client: *const tsq_client,
    space: *const tsq_new_space,
    out: *mut *mut tsq_space,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::CreateSpace), out, err, || {
            let spaces = spaces(client)?;
            let space = input(space, "space", |space: &tsq_new_space| space.read())?;
            Ok(record(spaces.create_space(space)?))
        })
    }
}

/// Creates spaces in one transaction: all or none.
///
/// Borrows all (`spaces` is an array of `spaces_len`, `item_size` is `sizeof(tsq_new_space)`); returns the rows, in the
/// order of `spaces`, owned in `out`, which may be NULL. `created_at` increases in this order. Fails like `tsq_spaces_create_space`, for the first item that
/// fails: `tsq_error_row` is its index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_create_spaces(
    client: *const tsq_client,
    spaces: *const tsq_new_space,
    spaces_len: usize,
    item_size: usize,
    out: *mut *mut tsq_space_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::CreateSpaces), out, err, || {
            let service = self::spaces(client)?;
            let rows = input_array(spaces, spaces_len, item_size, "spaces", |space: &tsq_new_space| space.read())?;
            Ok(list(service.create_spaces(rows)?))
        })
    }
}

/// Reads a space by its id.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when no visible space has this id,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_space(
    client: *const tsq_client,
    id: tsq_str,
    out: *mut *mut tsq_space,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetSpace), out, err, || {
            Ok(record(spaces(client)?.get_space(argument::id(id, "id")?)?))
        })
    }
}

/// Changes the columns that `patch` sets or clears. A zeroed patch changes nothing, not even `updated_at`.
///
/// Borrows all; returns the changed row owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` when the caller
/// owns no space with this id, `TSQ_FIELD_MISSING` when `name` or `is_public` is cleared, `TSQ_INVALID_INPUT`, `TSQ_TOO_LARGE`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_update_space(
    client: *const tsq_client,
    id: tsq_str,
    patch: *const tsq_space_patch,
    out: *mut *mut tsq_space,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::UpdateSpace), out, err, || {
            let (spaces, id) = (spaces(client)?, argument::id(id, "id")?);
            let patch = input(patch, "patch", |patch: &tsq_space_patch| patch.read())?;
            Ok(record(spaces.update_space(id, patch)?))
        })
    }
}

/// Deletes a space with its fidgets and files. If it has more than 32 fidgets or 100 files, they are deleted in steps before;
/// a call that fails may have deleted some of them, and can be repeated.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` when the caller owns no space with this id, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_delete_space(
    client: *const tsq_client,
    id: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::DeleteSpace), err, || Ok(spaces(client)?.delete_space(argument::id(id, "id")?)?))
    }
}

/// Lists the visible spaces of a user with their fidgets, newest first, then by id. The list of an unknown user is
/// empty.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_TOO_LARGE` when they take more than 64 MiB of
/// memory, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_user_spaces(
    client: *const tsq_client,
    user_id: tsq_str,
    out: *mut *mut tsq_space_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetUserSpaces), out, err, || {
            Ok(list(spaces(client)?.get_user_spaces(argument::id(user_id, "user_id")?)?))
        })
    }
}

/// Lists public spaces with their owners, newest first, then by id: rows `offset` to `offset + limit - 1`.
/// `TSQ_DEFAULT_PAGE` and 0 are the first page. Every caller sees the e-mail addresses of the owners that the
/// option `expose_owner_email` names. For further pages prefer `tsq_spaces_get_public_spaces_after`: the database reads and
/// skips `offset` rows, and rows that come or go meanwhile shift the pages. A page has fewer rows when they take more than
/// 64 MiB of memory.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_public_spaces(
    client: *const tsq_client,
    limit: u32,
    offset: u64,
    out: *mut *mut tsq_space_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetPublicSpaces), out, err, || {
            Ok(list(spaces(client)?.get_public_spaces(limit, offset)?))
        })
    }
}

/// Lists the public spaces that follow `after`, the last space of an earlier page. Such pages contain no space twice and
/// leave none out, whatever is inserted or deleted meanwhile, and a page costs the same at any depth. NULL is the first
/// page. A page has fewer spaces when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// The position of a space from a page of public spaces stays valid when the space is deleted or unpublished. A space from
/// another call must be public now.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000 and for a space
/// from another call that is not public, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_public_spaces_after(
    client: *const tsq_client,
    limit: u32,
    after: *const tsq_space,
    out: *mut *mut tsq_space_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetPublicSpaces), out, err, || {
            let spaces = spaces(client)?;
            Ok(list(match handle::borrow(after) {
                Some(after) => spaces.get_public_spaces_after(limit, after.cursor())?,
                None => spaces.get_public_spaces(limit, 0)?,
            }))
        })
    }
}

/// Lists the public spaces that follow the public space with this id, like `tsq_spaces_get_public_spaces_after`: for a
/// position that came from outside, such as a parameter of a request.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for an id that names no public space and for a
/// limit outside 1 to 1,000, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_public_spaces_after_id(
    client: *const tsq_client,
    limit: u32,
    after: tsq_str,
    out: *mut *mut tsq_space_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetPublicSpaces), out, err, || {
            Ok(list(spaces(client)?.get_public_spaces_after(limit, argument::id(after, "after")?)?))
        })
    }
}

/// Reads a space with its fidgets, oldest first. A space without fidgets is not found.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when no visible space with a fidget has this id,
/// `TSQ_TOO_LARGE` when the fidgets take more than 64 MiB of memory, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_space_with_fidgets(
    client: *const tsq_client,
    id: tsq_str,
    out: *mut *mut tsq_space,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetSpaceWithFidgets), out, err, || {
            Ok(record(spaces(client)?.get_space_with_fidgets(argument::id(id, "id")?)?))
        })
    }
}

/// Reads a space with its fidgets, oldest first, of which there may be none.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when no visible space has this id, `TSQ_TOO_LARGE` when the
/// fidgets take more than 64 MiB of memory, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_get_space_with_any_fidgets(
    client: *const tsq_client,
    id: tsq_str,
    out: *mut *mut tsq_space,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetSpaceWithFidgets), out, err, || {
            Ok(record(spaces(client)?.get_space_with_any_fidgets(argument::id(id, "id")?)?))
        })
    }
}

/// Lists the `limit` spaces that follow `after`, by id; the first ones when `after` is absent. For the service. A page has
/// fewer rows when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all (`after` is the id of the last space of the page before); returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other
/// callers, `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_list_spaces(
    client: *const tsq_client,
    limit: u32,
    after: tsq_str,
    out: *mut *mut tsq_space_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::ListSpaces), out, err, || {
            Ok(list(spaces(client)?.list_spaces(limit, argument::optional_id(after, "after")?)?))
        })
    }
}

/// Changes the owner of a space and of its files. For the service. The quota of the new owner is not checked here.
///
/// Borrows all; returns the changed row owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` for an unknown space,
/// `TSQ_REFERENCE_MISSING` for an unknown user, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other callers, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_spaces_set_owner(
    client: *const tsq_client,
    id: tsq_str,
    owner_id: tsq_str,
    out: *mut *mut tsq_space,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::SetOwner), out, err, || {
            let (spaces, id) = (spaces(client)?, argument::id(id, "id")?);
            Ok(record(spaces.set_owner(id, argument::id(owner_id, "owner_id")?)?))
        })
    }
}
