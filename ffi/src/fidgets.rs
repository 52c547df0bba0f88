//! Fidgets: the widgets placed in spaces (SPEC 2.7).
//!
//! Invariant: each function is the core's method of the same name, with nothing before it but reading the arguments.

use townsquare::{Fidgets, Operation, blocking::wait};

use crate::{
    boundary::{act, produce, produce_if_wanted},
    client::tsq_client,
    error::{Failure, tsq_error},
    fidget::{FidgetRecord, tsq_fidget},
    fidget_list::tsq_fidget_list,
    handle, id,
    new_fidget::{self, tsq_fidget_patch, tsq_new_fidget, tsq_position},
    status::tsq_status,
    structs,
    text::tsq_str,
};

/// # Safety
/// `client` is NULL or lives for `'a`.
unsafe fn fidgets<'a>(client: *const tsq_client) -> Result<&'a Fidgets, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { handle::required(client, "client") }?.inner().fidgets())
}

/// Places a fidget in a space.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` without a kind,
/// `TSQ_REFERENCE_MISSING` for a space that does not exist (the service), `TSQ_FORBIDDEN` for a space that is not the
/// caller's, `TSQ_INVALID_INPUT` also for JSON deeper than 100, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_create_fidget(
    client: *const tsq_client,
    space_id: tsq_str,
    fidget: *const tsq_new_fidget,
    out: *mut *mut tsq_fidget,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::CreateFidget), out, err, || {
            let (fidgets, space) = (fidgets(client)?, id::required(space_id, "space_id")?);
            let fidget = structs::required(fidget, "fidget", |fidget: &tsq_new_fidget| fidget.read())?;
            Ok(wait(fidgets.create_fidget(space, fidget))?.into())
        })
    }
}

/// Places fidgets in a space in one transaction: all of them or none.
///
/// Borrows all (`items` is an array of `items_len`); returns the rows, in the order given, owned in `out`, which may be
/// NULL. Fails as `tsq_fidgets_create_fidget` does, for the first that fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_create_fidgets(
    client: *const tsq_client,
    space_id: tsq_str,
    items: *const tsq_new_fidget,
    items_len: usize,
    out: *mut *mut tsq_fidget_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::CreateFidgets), out, err, || {
            let (fidgets, space) = (fidgets(client)?, id::required(space_id, "space_id")?);
            let items = structs::each(items, items_len, "items", |fidget: &tsq_new_fidget| fidget.read())?;
            Ok(FidgetRecord::list(wait(fidgets.create_fidgets(space, items))?))
        })
    }
}

/// Saves the positions of a space's fidgets in one transaction, as after a drag.
///
/// Borrows all (`positions` is an array of `positions_len`); returns the fidgets that were named, oldest first, owned in
/// `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` when one of them is not a fidget of that space, or the space is
/// not the caller's; `TSQ_INVALID_INPUT`, also for a fidget named twice; `TSQ_CLOSED`. Nothing changes then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_save_positions(
    client: *const tsq_client,
    space_id: tsq_str,
    positions: *const tsq_position,
    positions_len: usize,
    out: *mut *mut tsq_fidget_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::SavePositions), out, err, || {
            let (fidgets, space) = (fidgets(client)?, id::required(space_id, "space_id")?);
            let positions = new_fidget::positions(positions, positions_len)?;
            Ok(FidgetRecord::list(wait(fidgets.save_positions(space, positions))?))
        })
    }
}

/// One fidget by its id.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when there is none that the caller may see,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_get_fidget(
    client: *const tsq_client,
    id: tsq_str,
    out: *mut *mut tsq_fidget,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::GetFidget), out, err, || {
            let fidgets = fidgets(client)?;
            Ok(wait(fidgets.get_fidget(id::required(id, "id")?))?.into())
        })
    }
}

/// Changes what `patch` names and nothing else; a patch of nothing changes nothing.
///
/// Borrows all; returns the row as it is now owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` when there is
/// no such fidget in a space of the caller's, `TSQ_FIELD_MISSING` when the kind is cleared, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_update_fidget(
    client: *const tsq_client,
    id: tsq_str,
    patch: *const tsq_fidget_patch,
    out: *mut *mut tsq_fidget,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::UpdateFidget), out, err, || {
            let (fidgets, id) = (fidgets(client)?, id::required(id, "id")?);
            let patch = structs::required(patch, "patch", |patch: &tsq_fidget_patch| patch.read())?;
            Ok(wait(fidgets.update_fidget(id, patch))?.into())
        })
    }
}

/// Takes a fidget out of its space.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` when there is no such fidget in a space of the caller's, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_delete_fidget(
    client: *const tsq_client,
    id: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        act(Some(Operation::DeleteFidget), err, || {
            let fidgets = fidgets(client)?;
            Ok(wait(fidgets.delete_fidget(id::required(id, "id")?))?)
        })
    }
}

/// The fidgets of a space, oldest first, those of one moment by id; none for a space that is missing or hidden.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidgets_get_space_fidgets(
    client: *const tsq_client,
    space_id: tsq_str,
    out: *mut *mut tsq_fidget_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::GetSpaceFidgets), out, err, || {
            let fidgets = fidgets(client)?;
            Ok(FidgetRecord::list(wait(fidgets.get_space_fidgets(id::required(space_id, "space_id")?))?))
        })
    }
}
