//! The registration of a space: the struct of its row, and the input that creates it (SPEC 2.4).

use townsquare::communities::{NewRegistration, SpaceRegistration};

use crate::boundary::{
    Failure, Handle, Memory, Record, RecordList, argument, call_handle, free, handle, inputs, json, read, text,
    tsq_error, tsq_status, tsq_str, tsq_string,
};

/// A registered space. A record (manual, RECORDS); freed with `tsq_space_registration_free`.
#[repr(C)]
pub struct tsq_space_registration {
    /// The space: a UUID; the space may be deleted.
    pub space_id: tsq_str,
    /// Whether `fid` has a value.
    pub has_fid: bool,
    /// Farcaster id; 0 without one.
    pub fid: i64,
    /// The space's name.
    pub space_name: tsq_str,
    /// `profile`, `token`, `proposal`, `channel` or `navPage`; `other` for another word, which an adopted database may hold.
    pub space_type: tsq_str,
    /// The key that registered the space; may be absent.
    pub identity_public_key: tsq_str,
    /// The registration's signature; may be absent.
    pub signature: tsq_str,
    /// Time of the registration, in microseconds.
    pub timestamp: i64,
}

impl Record for tsq_space_registration {
    type Source = SpaceRegistration;

    fn new(registration: &SpaceRegistration, memory: &mut Memory) -> tsq_space_registration {
        tsq_space_registration {
            space_id: memory.id(registration.space_id),
            has_fid: registration.fid.is_some(),
            fid: registration.fid.unwrap_or_default(),
            space_name: text::view(&registration.space_name),
            space_type: text::view(registration.space_type.as_str()),
            identity_public_key: text::optional_view(registration.identity_public_key.as_deref()),
            signature: text::optional_view(registration.signature.as_deref()),
            timestamp: registration.timestamp.as_microsecond(),
        }
    }
}

/// A registration to be created. Zero it, then fill it in: `tsq_new_registration registration = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_new_registration {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// The space: a UUID; required.
    pub space_id: tsq_str,
    /// The space's name; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    pub space_name: tsq_str,
    /// `profile`, `token`, `proposal`, `channel` or `navPage`; required.
    pub space_type: tsq_str,
    /// Farcaster id; NULL for none.
    pub fid: *const i32,
    /// The key that registers the space; may be absent.
    pub identity_public_key: tsq_str,
    /// The registration's signature; may be absent.
    pub signature: tsq_str,
}

inputs!(tsq_new_registration: signature);

impl tsq_new_registration {
    /// The core's value. Failures name the member alone.
    ///
    /// # Safety
    /// All texts are as for [`argument::text`], `fid` is NULL or readable.
    pub(crate) unsafe fn read(&self) -> Result<NewRegistration, Failure> {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            let space_type = argument::text(self.space_type, "space_type")?.parse()?;
            let space_id = argument::id(self.space_id, "space_id")?;
            let mut registration = NewRegistration::new(space_id, "", space_type);
            registration.space_name = argument::optional_string(self.space_name, "space_name")?;
            registration.fid = self.fid.as_ref().copied();
            registration.identity_public_key =
                argument::optional_string(self.identity_public_key, "identity_public_key")?;
            registration.signature = argument::optional_string(self.signature, "signature")?;
            Ok(registration)
        }
    }
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
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(registration, "registration")?)) }
}

/// Frees a registration. Takes `registration`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_free(registration: *mut tsq_space_registration) {
    // SAFETY: `registration` is NULL or owned by the caller, by the manual.
    unsafe { free(registration) }
}

/// A list of registrations. Freed with `tsq_space_registration_list_free`.
pub struct tsq_space_registration_list {
    _opaque: [u8; 0],
}

impl Handle for tsq_space_registration_list {
    type Value = RecordList<tsq_space_registration>;
}

/// The number of registrations; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_list_len(list: *const tsq_space_registration_list) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The registration at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_list_at(
    list: *const tsq_space_registration_list,
    index: usize,
) -> *const tsq_space_registration {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of the objects of `tsq_space_registration_json`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_list_json(
    list: *const tsq_space_registration_list,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list with its registrations. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_registration_list_free(list: *mut tsq_space_registration_list) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}
