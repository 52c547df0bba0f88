//! What is known about a stored file, and lists of files (SPEC 2.8, 4.4).

use townsquare::storage::FileInfo;

use crate::boundary::{
    Handle, Memory, Record, RecordList, call_handle, free, handle, json, read, text, tsq_error, tsq_status, tsq_str,
    tsq_string,
};

/// A name and its value in the metadata of a file. This struct does not grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_file_metadata {
    /// Name: letters, digits, hyphens and underscores, at most 64.
    pub name: tsq_str,
    /// Value: at most 1,024 bytes, no control character.
    pub value: tsq_str,
}

/// What is known about a file. A record (manual, RECORDS); freed with `tsq_file_info_free` where a call returns it
/// owned.
#[repr(C)]
pub struct tsq_file_info {
    /// The bucket: `spaces`, `private`, `assets`, or one of the option `buckets`.
    pub bucket: tsq_str,
    /// The path in the bucket.
    pub path: tsq_str,
    /// Size in bytes.
    pub size: u64,
    /// Media type: `application/json`, `image/png`, …
    pub content_type: tsq_str,
    /// How long a cache may keep the file, in seconds.
    pub cache_control: u32,
    /// The version: new with every write, also of the same bytes.
    pub etag: tsq_str,
    /// The metadata, sorted by name: an array.
    pub metadata: *const tsq_file_metadata,
    /// Number of names in the metadata.
    pub metadata_len: usize,
    /// The user who wrote it: a UUID; absent when the service wrote it or the user was deleted.
    pub owner_id: tsq_str,
    /// Time of the last write, in microseconds; it grows with every write of the path.
    pub updated_at: i64,
}

impl Record for tsq_file_info {
    type Source = FileInfo;

    fn new(info: &FileInfo, memory: &mut Memory) -> tsq_file_info {
        let pair =
            |(name, value): (&String, &String)| tsq_file_metadata { name: text::view(name), value: text::view(value) };
        let metadata: Vec<_> = info.metadata.iter().map(pair).collect();
        tsq_file_info {
            bucket: text::view(&info.bucket),
            path: text::view(&info.path),
            size: info.size,
            content_type: text::view(&info.content_type),
            cache_control: info.cache_control,
            etag: text::view(&info.etag),
            metadata_len: metadata.len(),
            metadata: memory.array(metadata),
            owner_id: memory.optional_id(info.owner_id),
            updated_at: info.updated_at.as_microsecond(),
        }
    }
}

/// A list of files, in the order of their paths. Freed with `tsq_file_list_free`.
pub struct tsq_file_list {
    _opaque: [u8; 0],
}

impl Handle for tsq_file_list {
    type Value = RecordList<tsq_file_info>;
}

/// The file as a JSON object: the members of the struct by their names, `metadata` as an object.
///
/// Borrows `file`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_info_json(
    file: *const tsq_file_info,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(file, "file")?)) }
}

/// Frees what a call returned owned; the file stays. Takes `file`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_info_free(file: *mut tsq_file_info) {
    // SAFETY: `file` is NULL or owned by the caller, by the manual.
    unsafe { free(file) }
}

/// The number of files; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_list_len(list: *const tsq_file_list) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The file at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_list_at(list: *const tsq_file_list, index: usize) -> *const tsq_file_info {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of the objects of `tsq_file_info_json`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_list_json(
    list: *const tsq_file_list,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list; the files stay. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_list_free(list: *mut tsq_file_list) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}
