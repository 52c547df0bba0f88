//! Signed files: the format of tabs and of private files (UPSTREAM 3), as JSON text.

use std::mem::MaybeUninit;

use bytes::Bytes;
use townsquare::{
    Json, Timestamp,
    storage::{SignOptions, decrypt_file, encrypt_file, sign_file, verify_file},
};

use crate::boundary::{
    Failure, answer, argument, call_handle, change, input, inputs, json, tsq_buffer, tsq_bytes, tsq_error, tsq_status,
    tsq_str, tsq_string,
};

/// What a signed file says besides its data. Zeroed, and for NULL: type `json`, no name, the current time.
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_sign_options {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// The member `fileType`; absent: `json`.
    pub file_type: tsq_str,
    /// The member `fileName`; absent: none.
    pub file_name: tsq_str,
    /// Whether `timestamp` is given; any non-zero byte is true.
    pub has_timestamp: MaybeUninit<bool>,
    /// The member `timestamp`, in microseconds; whole milliseconds are kept. Not given: the current time.
    pub timestamp: i64,
}

inputs!(tsq_sign_options: timestamp);

/// Makes a signed file of the text `file_data`, usually JSON: the JSON object `{"publicKey", "fileData", "fileType",
/// "isEncrypted", "timestamp", "fileName", "signature"}`. `private_key` is the seed of an Ed25519 key in 64 hex digits.
/// Needs no client.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_signed_file_sign(
    file_data: tsq_str,
    private_key: tsq_str,
    options: *const tsq_sign_options,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            let file_data = argument::text(file_data, "file_data")?;
            let private_key = argument::text(private_key, "private_key")?;
            json(&sign_file(file_data, private_key, read(options)?)?)
        })
    }
}

/// Whether the JSON text `signed` is a signed file with a valid signature by its `publicKey`. False for every other text.
/// A signature says who signed, not who may write the file: compare `publicKey` with a key that you trust.
///
/// Borrows `signed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_signed_file_verify(signed: tsq_str) -> bool {
    answer(|| {
        // SAFETY: `signed` is a text, by the manual.
        let signed = unsafe { argument::optional_json(signed, "signed") };
        signed.ok().flatten().is_some_and(|signed| verify_file(&signed))
    })
}

/// Makes a signed file with encrypted data: only the same private key decrypts it. Needs no client.
///
/// Borrows all; returns the JSON text owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_signed_file_encrypt(
    data: tsq_bytes,
    private_key: tsq_str,
    options: *const tsq_sign_options,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            let data = argument::bytes(data, "data")?;
            let private_key = argument::text(private_key, "private_key")?;
            json(&encrypt_file(data, private_key, read(options)?)?)
        })
    }
}

/// Verifies the signed file of the JSON text `signed` and decrypts its data.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for text that is not JSON and for a file that does
/// not verify, is not encrypted, or is of another key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_signed_file_decrypt(
    signed: tsq_str,
    private_key: tsq_str,
    out: *mut *mut tsq_buffer,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            let signed = argument::optional_json(signed, "signed")?.unwrap_or(Json::Null);
            Ok(Bytes::from(decrypt_file(&signed, argument::text(private_key, "private_key")?)?))
        })
    }
}

/// The core's options; the defaults for NULL.
///
/// # Safety
/// `options` is NULL or an input as for [`input::input`] with all that it points at.
unsafe fn read(options: *const tsq_sign_options) -> Result<SignOptions, Failure> {
    // SAFETY: the caller's promise, passed on.
    let read = unsafe { input::optional_input(options, "options", |options| options.read()) };
    Ok(read?.unwrap_or_default())
}

impl tsq_sign_options {
    /// # Safety
    /// As for [`read`].
    unsafe fn read(&self) -> Result<SignOptions, Failure> {
        // SAFETY: the caller's promise, passed on.
        let (file_type, file_name, has_timestamp) = unsafe {
            (
                argument::optional_string(self.file_type, "file_type")?,
                argument::optional_string(self.file_name, "file_name")?,
                change::boolean(self.has_timestamp),
            )
        };
        let mut options = SignOptions::new();
        if let Some(file_type) = file_type {
            options = options.file_type(file_type);
        }
        if let Some(file_name) = file_name {
            options = options.file_name(file_name);
        }
        if has_timestamp {
            let timestamp = Timestamp::from_microsecond(self.timestamp)
                .map_err(|_| Failure::invalid_input("Argument timestamp is out of range"))?;
            options = options.timestamp(timestamp);
        }
        Ok(options)
    }
}
