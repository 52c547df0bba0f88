//! Operations on fidgets, the widgets placed in spaces (SPEC 2.7).
//!
//! Invariant: each function is the core's method of the same name, after it converted the arguments.

use townsquare::{Operation, blocking};

use crate::{
    boundary::{
        Failure, argument, call_handle, call_unit, call_wanted_handle, handle,
        input::{input, input_array},
        list, record, tsq_error, tsq_status, tsq_str,
    },
    client::{self, tsq_client},
    tables::{
        fidget::{tsq_fidget, tsq_fidget_list},
        new_fidget::{self, tsq_fidget_patch, tsq_new_fidget, tsq_position},
    },
};

/// # Safety
/// `client` is NULL or lives for `'a`.
unsafe fn fidgets<'a>(client: *const tsq_client) -> Result<blocking::Fidgets<'a>, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { client::usable(client) }?.fidgets())
}

/// Creates a fidget in a space.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` without a kind,
/// `TSQ_REFERENCE_MISSING` for an unknown space (as the service), `TSQ_FORBIDDEN` for a space that the caller does not
/// own, `TSQ_ALREADY_EXISTS` for an id that another fidget has, `TSQ_INVALID_INPUT` (also for JSON nested deeper than 100),
/// `TSQ_TOO_LARGE`, `TSQ_QUOTA_EXCEEDED` beyond the option max_space_fidgets (not as the service), `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_create_fidget(
    client: *const tsq_client,
    space_id: tsq_str,
    fidget: *const tsq_new_fidget,
    out: *mut *mut tsq_fidget,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::CreateFidget), out, err, || {
            let (fidgets, space) = (fidgets(client)?, argument::id(space_id, "space_id")?);
            let fidget = input(fidget, "fidget", |fidget: &tsq_new_fidget| fidget.read())?;
            Ok(record(fidgets.create_fidget(space, fidget)?))
        })
    }
}

/// Creates fidgets in a space in one transaction: all or none.
///
/// Borrows all (`fidgets` is an array of `fidgets_len`, `item_size` is `sizeof(tsq_new_fidget)`); returns the rows, in the
/// order of `fidgets`, owned in `out`, which may be NULL. `created_at` increases in this order. Fails like `tsq_fidgets_create_fidget`, for the first item that
/// fails: `tsq_error_row` is its index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_create_fidgets(
    client: *const tsq_client,
    space_id: tsq_str,
    fidgets: *const tsq_new_fidget,
    fidgets_len: usize,
    item_size: usize,
    out: *mut *mut tsq_fidget_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::CreateFidgets), out, err, || {
            let (service, space) = (self::fidgets(client)?, argument::id(space_id, "space_id")?);
            let rows =
                input_array(fidgets, fidgets_len, item_size, "fidgets", |fidget: &tsq_new_fidget| fidget.read())?;
            Ok(list(service.create_fidgets(space, rows)?))
        })
    }
}

/// Saves positions of a space's fidgets in one transaction: all or none.
///
/// Borrows all (`positions` is an array of `positions_len`); returns the moved fidgets, oldest first, owned in `out`,
/// which may be NULL. Fails with `TSQ_NOT_FOUND` when the caller does not own the space or a fidget is not in it;
/// `TSQ_INVALID_INPUT`, also when a fidget appears twice; `TSQ_TOO_LARGE`; `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_save_positions(
    client: *const tsq_client,
    space_id: tsq_str,
    positions: *const tsq_position,
    positions_len: usize,
    out: *mut *mut tsq_fidget_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::SavePositions), out, err, || {
            let (fidgets, space) = (fidgets(client)?, argument::id(space_id, "space_id")?);
            let positions = new_fidget::positions(positions, positions_len)?;
            Ok(list(fidgets.save_positions(space, positions)?))
        })
    }
}

/// Reads a fidget by its id.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when no visible fidget has this id,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_get_fidget(
    client: *const tsq_client,
    id: tsq_str,
    out: *mut *mut tsq_fidget,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetFidget), out, err, || {
            Ok(record(fidgets(client)?.get_fidget(argument::id(id, "id")?)?))
        })
    }
}

/// Changes the columns that `patch` sets or clears. A zeroed patch changes nothing, not even `updated_at`.
///
/// Borrows all; returns the changed row owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` when no space of
/// the caller contains the fidget, `TSQ_FIELD_MISSING` when the kind is cleared, `TSQ_INVALID_INPUT`, `TSQ_TOO_LARGE`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_update_fidget(
    client: *const tsq_client,
    id: tsq_str,
    patch: *const tsq_fidget_patch,
    out: *mut *mut tsq_fidget,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::UpdateFidget), out, err, || {
            let (fidgets, id) = (fidgets(client)?, argument::id(id, "id")?);
            let patch = input(patch, "patch", |patch: &tsq_fidget_patch| patch.read())?;
            Ok(record(fidgets.update_fidget(id, patch)?))
        })
    }
}

/// Deletes a fidget.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` when no space of the caller contains the fidget, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_delete_fidget(
    client: *const tsq_client,
    id: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::DeleteFidget), err, || Ok(fidgets(client)?.delete_fidget(argument::id(id, "id")?)?))
    }
}

/// Lists the fidgets of a space, oldest first, then by id. The list of a missing or hidden space is empty.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_TOO_LARGE` when they take more than 64 MiB of memory,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_get_space_fidgets(
    client: *const tsq_client,
    space_id: tsq_str,
    out: *mut *mut tsq_fidget_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetSpaceFidgets), out, err, || {
            Ok(list(fidgets(client)?.get_space_fidgets(argument::id(space_id, "space_id")?)?))
        })
    }
}

/// Lists at most `limit` fidgets of a space that follow `after`, the last fidget of an earlier page, which may be deleted
/// meanwhile. NULL is the first page. Such pages contain no fidget twice and leave none out, whatever is inserted or deleted
/// meanwhile. A page has fewer fidgets when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_get_space_fidgets_after(
    client: *const tsq_client,
    space_id: tsq_str,
    limit: u32,
    after: *const tsq_fidget,
    out: *mut *mut tsq_fidget_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetSpaceFidgets), out, err, || {
            let (fidgets, space_id) = (fidgets(client)?, argument::id(space_id, "space_id")?);
            let after = handle::borrow(after).map(|after| after.source().into());
            Ok(list(fidgets.get_space_fidgets_after(space_id, limit, after)?))
        })
    }
}
