//! The registration of a space: what is given to make it, and its row (SPEC 2.4).
//!
//! Invariant: a record is complete when it is made: reading it is a view and allocates nothing. A zeroed
//! [`tsq_new_registration`] gives nothing.

use serde::Serialize;
use townsquare::{NewRegistration, SpaceRegistration};

use crate::{
    boundary::{free, produce, read, read_optional},
    error::{Failure, tsq_error},
    handle::{self, Handle},
    id::{self, Id},
    status::tsq_status,
    text::{self, tsq_str, tsq_string},
};

/// A registered space. Owned, ended with `tsq_space_registration_free`; all that is read from it lives as long as it. It
/// never changes and outlives its client.
pub struct tsq_space_registration {
    _opaque: [u8; 0],
}

impl Handle for tsq_space_registration {
    type Value = RegistrationRecord;
}

/// The value behind a [`tsq_space_registration`]; as JSON, the core's record.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct RegistrationRecord {
    registration: SpaceRegistration,
    #[serde(skip)]
    space_id: Id,
}

impl From<SpaceRegistration> for RegistrationRecord {
    fn from(registration: SpaceRegistration) -> RegistrationRecord {
        RegistrationRecord { space_id: registration.space_id.into(), registration }
    }
}

/// A registration to be made. Zero it, then fill in: `tsq_new_registration registration = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_new_registration {
    /// The space (a UUID); required.
    pub space_id: tsq_str,
    /// The space's name; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    pub space_name: tsq_str,
    /// `profile`, `token`, `proposal`, `channel` or `navPage`; required.
    pub space_type: tsq_str,
    /// Farcaster id; NULL for none.
    pub fid: *const i32,
    /// The key it is registered with; may be absent.
    pub identity_public_key: tsq_str,
    /// The registration's signature; may be absent.
    pub signature: tsq_str,
}

impl tsq_new_registration {
    /// The core's value; failures name the member alone.
    ///
    /// # Safety
    /// All texts are as for [`text::required`], `fid` is NULL or readable.
    pub(crate) unsafe fn read(&self) -> Result<NewRegistration, Failure> {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            let space_type = text::required(self.space_type, "space_type")?.parse()?;
            let space_id = id::required(self.space_id, "space_id")?;
            let mut registration = NewRegistration::new(space_id, "", space_type);
            registration.space_name = text::optional(self.space_name, "space_name")?.map(str::to_owned);
            registration.fid = self.fid.as_ref().copied();
            registration.identity_public_key =
                text::optional(self.identity_public_key, "identity_public_key")?.map(str::to_owned);
            registration.signature = text::optional(self.signature, "signature")?.map(str::to_owned);
            Ok(registration)
        }
    }
}

/// The space: a UUID; it need not exist any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_space_id(registration: *const tsq_space_registration) -> tsq_str {
    // SAFETY: `registration` is NULL or live, by the manual.
    unsafe { read(registration, |record| record.space_id.view()) }
}

/// Farcaster id: true and written to `out`, or false and `out` 0 for a registration without one. `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_fid(
    registration: *const tsq_space_registration,
    out: *mut i32,
) -> bool {
    // SAFETY: `registration` is NULL or live, `out` NULL or writable, by the manual.
    unsafe { read_optional(registration, out, |record| record.registration.fid) }
}

/// The space's name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_space_name(registration: *const tsq_space_registration) -> tsq_str {
    // SAFETY: `registration` is NULL or live, by the manual.
    unsafe { read(registration, |record| text::view(&record.registration.space_name)) }
}

/// `profile`, `token`, `proposal`, `channel` or `navPage`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_space_type(registration: *const tsq_space_registration) -> tsq_str {
    // SAFETY: `registration` is NULL or live, by the manual.
    unsafe { read(registration, |record| text::view(record.registration.space_type.as_str())) }
}

/// The key it was registered with; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_identity_public_key(
    registration: *const tsq_space_registration,
) -> tsq_str {
    // SAFETY: `registration` is NULL or live, by the manual.
    unsafe { read(registration, |record| text::optional_view(record.registration.identity_public_key.as_deref())) }
}

/// The registration's signature; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_signature(registration: *const tsq_space_registration) -> tsq_str {
    // SAFETY: `registration` is NULL or live, by the manual.
    unsafe { read(registration, |record| text::optional_view(record.registration.signature.as_deref())) }
}

/// When it was registered: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_timestamp(registration: *const tsq_space_registration) -> i64 {
    // SAFETY: `registration` is NULL or live, by the manual.
    unsafe { read(registration, |record| record.registration.timestamp.as_microsecond()) }
}

/// The registration as a JSON object: its columns by their names, camelCase.
///
/// Borrows `registration`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_json(
    registration: *const tsq_space_registration,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(registration, "registration")?)) }
}

/// Ends a registration. Takes `registration`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_free(registration: *mut tsq_space_registration) {
    // SAFETY: `registration` is NULL or owned by the caller, by the manual.
    unsafe { free(registration) }
}
