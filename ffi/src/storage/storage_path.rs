//! The bucket and path of each file of SPEC 2.8.

use townsquare::storage::{AssetPath, PrivatePath, SpacePath, StoragePath};

use crate::boundary::{Memory, Record, argument, call_handle, free, record, text, tsq_error, tsq_status, tsq_str};

/// A bucket and a path, for the `tsq_storage_` functions. A record (manual, RECORDS); freed with `tsq_storage_path_free`.
#[repr(C)]
pub struct tsq_storage_path {
    /// The bucket: `spaces`, `private` or `assets`.
    pub bucket: tsq_str,
    /// The path in the bucket.
    pub path: tsq_str,
}

impl Record for tsq_storage_path {
    type Source = StoragePath;

    fn new(path: &StoragePath, _: &mut Memory) -> tsq_storage_path {
        tsq_storage_path { bucket: text::view(path.bucket()), path: text::view(path.path()) }
    }
}

/// The path of the order of a space's tabs: `<space_id>/tabOrder` in `spaces`.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_path_tab_order(
    space_id: tsq_str,
    out: *mut *mut tsq_storage_path,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || Ok(record(SpacePath::tab_order(argument::id(space_id, "space_id")?)))) }
}

/// The path of a tab of a space: `<space_id>/tabs/<name>` in `spaces`. A tab's name consists of letters and digits of any
/// script, hyphens, underscores and spaces.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_path_tab(
    space_id: tsq_str,
    name: tsq_str,
    out: *mut *mut tsq_storage_path,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            Ok(record(SpacePath::tab(argument::id(space_id, "space_id")?, argument::text(name, "name")?)?))
        })
    }
}

/// The path of an asset of a space: `<space_id>/assets/<name>` in `spaces`. The name may contain folders.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_path_asset(
    space_id: tsq_str,
    name: tsq_str,
    out: *mut *mut tsq_storage_path,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            Ok(record(SpacePath::asset(argument::id(space_id, "space_id")?, argument::text(name, "name")?)?))
        })
    }
}

/// The path of the private space file: `<owner>/homebase` in `private`. The owner is a user's id or an identity key that the
/// user has linked.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_private_path_homebase(
    owner: tsq_str,
    out: *mut *mut tsq_storage_path,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || Ok(record(PrivatePath::homebase(argument::text(owner, "owner")?)?))) }
}

/// The path of a private tab: `<owner>/tabs/<name>` in `private`, with an owner as for `tsq_private_path_homebase` and a
/// name as for `tsq_space_path_tab`.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_private_path_tab(
    owner: tsq_str,
    name: tsq_str,
    out: *mut *mut tsq_storage_path,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            Ok(record(PrivatePath::tab(argument::text(owner, "owner")?, argument::text(name, "name")?)?))
        })
    }
}

/// The path of a shared image, which only the service may write: `images/<name>` in `assets`. The name may contain folders.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_asset_path_image(
    name: tsq_str,
    out: *mut *mut tsq_storage_path,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || Ok(record(AssetPath::image(argument::text(name, "name")?)?))) }
}

/// The path of a shared video, which only the service may write: `videos/<name>` in `assets`. The name may contain folders.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_asset_path_video(
    name: tsq_str,
    out: *mut *mut tsq_storage_path,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || Ok(record(AssetPath::video(argument::text(name, "name")?)?))) }
}

/// Frees a path. Takes `path`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_path_free(path: *mut tsq_storage_path) {
    // SAFETY: `path` is NULL or owned by the caller, by the manual.
    unsafe { free(path) }
}
