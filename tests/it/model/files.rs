//! Random operations on the files of all buckets, compared with a model of the files and of the rights of DESIGN 4.

use std::collections::BTreeMap;

use townsquare::{
    Config, ErrorKind, Operation, Uuid,
    storage::{FileInfo, ListFiles, Overwrite, UploadOptions},
};

use super::{Caller, Failure, Run, rights::Principal};

const INVISIBLE: Failure = (ErrorKind::NotFound, None, "File not found");
const ANONYMOUS: Failure = (ErrorKind::Unauthorized, None, "Unauthorized file access");
const DENIED: Failure = (ErrorKind::Forbidden, None, "Forbidden file access");
const INVALID: Failure = (ErrorKind::InvalidInput, None, "Invalid file or request");
const EXISTS: Failure = (ErrorKind::AlreadyExists, None, "Storage error: The file already exists");
const CHANGED: Failure = (ErrorKind::Conflict, None, "Storage error: The file has another version than if_match");
const NAME_TAKEN: Failure = (ErrorKind::AlreadyExists, None, "Storage error: A file and a folder cannot share a name");

/// The buckets, with their access: two declared ones have the rights of `assets` and `private`.
const BUCKETS: [(&str, Access); 5] = [
    ("spaces", Access::Spaces),
    ("private", Access::Private),
    ("assets", Access::Public),
    ("shared", Access::Public),
    ("vault", Access::Private),
];

/// Files up to this size are inline.
const INLINE: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Spaces,
    Private,
    Public,
}

/// Bucket and path.
type Name = (&'static str, String);

/// A file with its bytes.
#[derive(Debug, Clone)]
struct File {
    info: FileInfo,
    content: Vec<u8>,
}

/// The files of all buckets.
#[derive(Default)]
pub(super) struct Files(BTreeMap<Name, File>);

fn first_segment(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// Whether the path is in a folder of SPEC 2.8 in `assets`, or has the name of one: they are the service's.
fn is_shared_folder(bucket: &str, path: &str) -> bool {
    bucket == "assets" && ["images", "videos"].contains(&&*first_segment(path).to_lowercase())
}

fn access_of(bucket: &str) -> Access {
    BUCKETS.into_iter().find(|(name, _)| *name == bucket).expect("a known bucket").1
}

/// Adds the buckets and a folder for the objects to a configuration.
pub(super) fn with_files(config: Config, folder: &std::path::Path) -> Config {
    let config = config.storage_url(format!("file:{}", folder.display())).inline_file_limit(INLINE as u64);
    config.buckets("shared=public, vault=private")
}

impl Files {
    /// The number of files.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a space with this id would own a file.
    pub(super) fn has_folder(&self, id: Uuid) -> bool {
        self.0.keys().any(|(bucket, path)| *bucket == "spaces" && first_segment(path) == id.to_string())
    }

    /// Deletes the files of a deleted space.
    pub(super) fn delete_space(&mut self, id: Uuid) {
        self.0.retain(|(bucket, path), _| *bucket != "spaces" || first_segment(path) != id.to_string());
    }

    /// Deletes the private files of a deleted user: those in the folders that were the user's, and in nobody's folder those that
    /// the user owned. The other files have no owner any more.
    pub(super) fn delete_user(
        &mut self,
        id: Uuid,
        was_own_folder: impl Fn(&str) -> bool,
        is_held: impl Fn(&str) -> bool,
    ) {
        self.0.retain(|(bucket, path), file| {
            let folder = first_segment(path);
            let is_owned = file.info.owner_id == Some(id) && !is_held(folder);
            access_of(bucket) != Access::Private || !(was_own_folder(folder) || is_owned)
        });
        for file in self.0.values_mut().filter(|file| file.info.owner_id == Some(id)) {
            file.info.owner_id = None;
        }
    }

    /// Whether a file has the path of a folder of `name`, or lies inside its path.
    fn takes(&self, name: &Name) -> bool {
        let (bucket, path) = name;
        self.0.keys().any(|(other, file)| {
            let is_above =
                |above: &str, below: &str| below.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
            other == bucket && (is_above(file, path) || is_above(path, file))
        })
    }
}

impl Run<'_> {
    /// Whether the first segment is the caller's id, or a key that the caller has linked.
    fn is_own_folder(&self, principal: Principal, path: &str) -> bool {
        let segment = first_segment(path);
        let holder = self.model.holders.get(segment).copied();
        principal.is(holder) || matches!(principal, Principal::User(me) if segment == me.to_string())
    }

    fn sees_file(&self, principal: Principal, (bucket, path): &Name) -> bool {
        match access_of(bucket) {
            Access::Spaces | Access::Public => true,
            Access::Private => principal == Principal::Service || self.is_own_folder(principal, path),
        }
    }

    /// Whether lists show the file. They show the files of the spaces that the caller sees.
    fn lists_file(&self, principal: Principal, name: &Name) -> bool {
        if access_of(name.0) != Access::Spaces || principal == Principal::Service {
            return self.sees_file(principal, name);
        }
        let space = first_segment(&name.1).parse().ok();
        space.and_then(|id| self.model.spaces.get(&id)).is_some_and(|space| self.model.sees(principal, space))
    }

    /// Whether the caller may have a file with this owner there.
    fn writes_file(&self, principal: Principal, (bucket, path): &Name, owner: Option<Uuid>) -> bool {
        principal == Principal::Service
            || match access_of(bucket) {
                Access::Spaces => first_segment(path).parse().is_ok_and(|space| self.model.owns(principal, space)),
                Access::Private => self.is_own_folder(principal, path),
                Access::Public => principal.is(owner) && !is_shared_folder(bucket, path),
            }
    }

    /// Whether the caller may delete a file with this owner, or move it away.
    fn deletes_file(&self, principal: Principal, name: &Name, owner: Option<Uuid>) -> bool {
        let is_own = access_of(name.0) == Access::Public && principal.is(owner);
        is_own || self.writes_file(principal, name, owner)
    }

    fn denied(principal: Principal) -> Failure {
        if principal == Principal::Anonymous { ANONYMOUS } else { DENIED }
    }

    /// Returns a file that the caller sees.
    fn file(&self, principal: Principal, name: &Name) -> Result<File, Failure> {
        let file = self.model.files.0.get(name).filter(|_| self.sees_file(principal, name));
        file.cloned().ok_or(INVISIBLE)
    }

    /// Whether the caller may write a file with this owner.
    fn check_file(
        &self,
        principal: Principal,
        name: &Name,
        owner: Option<Uuid>,
        overwrite: Overwrite,
        if_match: Option<&str>,
    ) -> Result<(), Failure> {
        if !self.writes_file(principal, name, owner) {
            return Err(Run::denied(principal));
        }
        match (self.model.files.0.get(name), if_match) {
            (Some(old), _) if !self.writes_file(principal, name, old.info.owner_id) => Err(Run::denied(principal)),
            (Some(old), Some(version)) if old.info.etag != version => Err(CHANGED),
            (None, Some(version)) if !version.is_empty() => Err(CHANGED),
            (Some(_), _) if overwrite == Overwrite::Refuse => Err(EXISTS),
            _ if self.model.files.takes(name) => Err(NAME_TAKEN),
            _ => Ok(()),
        }
    }

    /// Checks a written file against the file before, and keeps it. `expected` has the columns that the write gives.
    fn keep(&mut self, name: Name, found: FileInfo, mut expected: FileInfo, content: Vec<u8>) {
        let old = self.model.files.0.get(&name);
        assert!(old.is_none_or(|old| old.info.updated_at < found.updated_at), "step {}: {name:?}", self.steps);
        assert!(self.model.files.0.values().all(|file| file.info.etag != found.etag), "every write has its own etag");
        (expected.bucket, expected.path) = (name.0.to_owned(), name.1.clone());
        (expected.etag, expected.updated_at) = (found.etag.clone(), found.updated_at);
        assert_eq!(found, expected, "step {}", self.steps);
        self.model.files.0.insert(name, File { info: found, content });
    }

    fn file_name(&mut self) -> Name {
        let (bucket, access) = self.pick(&BUCKETS);
        // An existing file in many cases.
        let existing: Vec<Name> = self.model.files.0.keys().filter(|name| name.0 == bucket).cloned().collect();
        if !existing.is_empty() && self.percent(50) {
            return existing[self.random.usize(..existing.len())].clone();
        }
        let path = match access {
            Access::Public => self
                .pick(&["a", "icons/a", "icons/b", "icons", "icons/a/b", "images/a", "Images", "żółć/o'clock %"])
                .to_owned(),
            Access::Spaces => {
                let space = if self.percent(90) { self.space_id().to_string() } else { "no-space".to_owned() };
                format!("{space}{}", self.pick(&["/tabOrder", "/tabs/Home", "/tabs", "", "x/tabs"]))
            }
            Access::Private => {
                let owner = if self.percent(50) { self.user_id().to_string() } else { self.key().1 };
                format!("{owner}{}", self.pick(&["/homebase", "/tabs/Notes", "", "x/homebase"]))
            }
        };
        (bucket, path)
    }

    /// A second path of the same bucket.
    fn other_path(&mut self, bucket: &str) -> String {
        loop {
            let (other, path) = self.file_name();
            if other == bucket {
                return path;
            }
        }
    }

    fn overwrite(&mut self) -> Overwrite {
        if self.percent(75) { Overwrite::Replace } else { Overwrite::Refuse }
    }

    pub(super) fn operate_on_files(&mut self, caller: &Caller) {
        match self.random.u32(..100) {
            0..=29 => self.upload(caller),
            30..=49 => self.download(caller),
            50..=59 => self.list_files(caller),
            60..=69 => self.delete_file(caller),
            70..=84 => self.copy_file(caller),
            _ => self.move_file(caller),
        }
    }

    fn upload(&mut self, caller: &Caller) {
        let name = self.file_name();
        let size = self.pick(&[0, 10, INLINE, INLINE + 1, 3_000]);
        let content: Vec<u8> = (0..size).map(|_| self.random.u8(..)).collect();
        let overwrite = self.overwrite();
        let mut options = UploadOptions::new().upsert(overwrite == Overwrite::Replace).content_type("text/x-test");
        let metadata: BTreeMap<String, String> =
            self.optional(|run| ("text".to_owned(), run.random.u32(..).to_string())).into_iter().collect();
        for (key, value) in &metadata {
            options = options.metadata(key, value);
        }
        let if_match = match self.random.u32(..10) {
            0 => Some(String::new()),
            1 => Some("another".to_owned()),
            2..=4 => self.model.files.0.get(&name).map(|file| file.info.etag.clone()),
            _ => None,
        };
        if let Some(version) = &if_match {
            options = options.if_match(version);
        }
        let owner_id = match caller.principal {
            Principal::User(id) => Some(id),
            Principal::Anonymous | Principal::Service => None,
        };
        let expected = self.check_file(caller.principal, &name, owner_id, overwrite, if_match.as_deref());
        let uploaded = caller.client.storage().upload(name.0, &name.1, content.clone(), options);
        if let Some((info, ())) = self.agree(caller, Operation::Upload, uploaded, expected) {
            let mut expected = info.clone();
            (expected.size, expected.owner_id, expected.metadata) = (size as u64, owner_id, metadata);
            (expected.content_type, expected.cache_control) = ("text/x-test".to_owned(), 3_600);
            self.keep(name.clone(), info, expected, content);
        }
        self.get_file(caller, &name);
    }

    fn download(&mut self, caller: &Caller) {
        let name = self.file_name();
        self.get_file(caller, &name);
        let (start, end) = (self.random.u64(..1_500), self.random.u64(..3_500));
        let expected = self.file(caller.principal, &name).and_then(|file| {
            let size = file.content.len() as u64;
            if start > end || start > size {
                return Err(INVALID);
            }
            Ok(file.content[start as usize..end.min(size) as usize].to_vec())
        });
        let found = caller.client.storage().download_range(name.0, &name.1, start..end).map(|bytes| bytes.to_vec());
        self.assert_same(caller, Operation::Download, found, expected);
    }

    /// Compares bytes and description of a file.
    fn get_file(&mut self, caller: &Caller, name: &Name) {
        let expected = self.file(caller.principal, name);
        let found = caller.client.storage().stat(name.0, &name.1);
        self.assert_same(caller, Operation::StatFile, found, expected.clone().map(|file| file.info));
        let found = caller.client.storage().download(name.0, &name.1).map(|bytes| bytes.to_vec());
        self.assert_same(caller, Operation::Download, found, expected.map(|file| file.content));
    }

    fn list_files(&mut self, caller: &Caller) {
        let (bucket, path) = self.file_name();
        let cut = self.random.usize(..=path.len());
        let prefix =
            if self.percent(40) && path.is_char_boundary(cut) { path[..cut].to_owned() } else { String::new() };
        let after = self.percent(40).then(|| self.other_path(bucket));
        let limit = self.random.u32(1..8);
        let is_listed = |name: &Name| {
            name.0 == bucket
                && name.1.starts_with(&prefix)
                && after.as_ref().is_none_or(|after| name.1 > *after)
                && self.lists_file(caller.principal, name)
        };
        let listed = self.model.files.0.iter().filter(|(name, _)| is_listed(name));
        let expected: Vec<_> = listed.map(|(_, file)| file.info.clone()).take(limit as usize).collect();
        let mut page = ListFiles::with_prefix(&prefix).limit(limit);
        if let Some(after) = &after {
            page = page.after(after);
        }
        let found = caller.client.storage().list(bucket, page);
        self.assert_same(caller, Operation::ListFiles, found, Ok(expected));
    }

    fn delete_file(&mut self, caller: &Caller) {
        let name = self.file_name();
        let expected = self.file(caller.principal, &name).and_then(|file| {
            let may_delete = self.deletes_file(caller.principal, &name, file.info.owner_id);
            if may_delete { Ok(()) } else { Err(Run::denied(caller.principal)) }
        });
        let deleted = caller.client.storage().delete(name.0, &name.1);
        if self.agree(caller, Operation::DeleteFile, deleted, expected).is_some() {
            self.model.files.0.remove(&name);
        }
        self.get_file(caller, &name);
    }

    fn copy_file(&mut self, caller: &Caller) {
        let source = self.file_name();
        let target = (source.0, self.other_path(source.0));
        let overwrite = self.overwrite();
        let owner_id = match caller.principal {
            Principal::User(id) => Some(id),
            Principal::Anonymous | Principal::Service => None,
        };
        let expected = if source == target {
            Err(INVALID)
        } else {
            self.file(caller.principal, &source)
                .and_then(|file| self.check_file(caller.principal, &target, owner_id, overwrite, None).map(|()| file))
        };
        let copied = caller.client.storage().copy(source.0, &source.1, &target.1, overwrite);
        let early = checked_early(caller, source == target);
        if let Some((info, mut file)) = self.agree(&early, Operation::CopyFile, copied, expected) {
            file.info.owner_id = owner_id;
            self.keep(target.clone(), info, file.info, file.content);
        }
        self.get_file(caller, &target);
    }

    fn move_file(&mut self, caller: &Caller) {
        let source = self.file_name();
        let target = (source.0, self.other_path(source.0));
        let overwrite = self.overwrite();
        let principal = caller.principal;
        let expected = if source == target {
            Err(INVALID)
        } else {
            self.file(principal, &source).and_then(|file| {
                if !self.deletes_file(principal, &source, file.info.owner_id) {
                    return Err(Run::denied(principal));
                }
                self.check_file(principal, &target, file.info.owner_id, overwrite, None).map(|()| file)
            })
        };
        let moved = caller.client.storage().move_file(source.0, &source.1, &target.1, overwrite);
        let early = checked_early(caller, source == target);
        if let Some((info, file)) = self.agree(&early, Operation::MoveFile, moved, expected) {
            self.model.files.0.remove(&source);
            self.keep(target.clone(), info, file.info, file.content);
        }
        self.get_file(caller, &source);
        self.get_file(caller, &target);
    }

    /// Reads every file as every caller.
    pub(super) fn read_all_files(&mut self) {
        let names: Vec<Name> = self.model.files.0.keys().cloned().collect();
        for caller in self.all_callers() {
            for name in &names {
                self.get_file(&caller, name);
            }
        }
        // The objects of deleted spaces and users are removed later than their rows.
        self.db.service.storage().repair().expect("repaired");
        let report = self.db.service.storage().repair().expect("repaired");
        assert_eq!((report.finished, report.orphans_removed, report.rows_removed), (0, 0, 0));
        assert!(report.mismatched.is_empty(), "{:?}", report.mismatched);
    }
}

/// The caller of an operation whose arguments are refused before the session is checked.
fn checked_early(caller: &Caller, is_refused: bool) -> Caller {
    Caller { has_ended: caller.has_ended && !is_refused, ..caller.clone() }
}
