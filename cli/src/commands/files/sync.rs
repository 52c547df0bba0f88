//! `files sync`: makes a bucket equal to a folder, or a folder equal to a bucket.
//!
//! Invariant: nothing is changed before both sides were read whole. Nothing is deleted before everything was copied, except files of the
//! bucket that are in the way: where a file is now a folder, or a folder a file. A download writes and deletes inside its folder only:
//! it goes through no symbolic link.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, BufReader, Read},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use townsquare::{ErrorKind, blocking::Client, storage::UploadOptions};

use super::{PAGE, Place, of_reader, place};
use crate::{
    context::Context,
    exit_code,
    failure::Failure,
    interrupt,
    output::note,
    progress::{Progress, Unit},
};

/// Whether the file systems of this platform usually take names in upper and in lower case for one. Not tested.
const IGNORES_CASE: bool = cfg!(any(windows, target_os = "macos"));

/// The begin of the names of the files and folders that the library and this command write before they rename or remove them.
const TEMPORARY: &str = ".townsquare-";

/// The bytes that are compared at a time.
const CHUNK: usize = 64 * 1024;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The folder of this machine.
    #[arg(value_name = "FOLDER")]
    local: PathBuf,
    /// The bucket, or BUCKET/PREFIX for the files below PREFIX/.
    #[arg(value_name = "BUCKET[/PREFIX]", value_parser = place)]
    remote: Place,
    /// Make the folder equal to the bucket, instead of the bucket to the folder.
    #[arg(long)]
    down: bool,
    /// Delete the files that the other side does not have. Asks first.
    #[arg(long)]
    delete: bool,
    /// Say what would be copied and deleted, and change nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// The files of one side by their path below the folder or the prefix, with their sizes.
type Files = BTreeMap<String, u64>;

/// The regular files of the folder. `left_out`: the paths of links and special files. A sync neither copies them nor deletes files
/// of the bucket at or below these paths.
struct LocalFiles {
    files: Files,
    left_out: BTreeSet<String>,
}

/// What is to be done.
struct Plan {
    /// Files of the bucket that a copied file cannot lie beside. They are deleted first.
    in_the_way: Vec<String>,
    copied: Vec<String>,
    /// The other files that are deleted.
    deleted: Vec<String>,
    unchanged: usize,
}

pub(super) fn run(client: &Client, arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let sync = FolderSync { client, local: &arguments.local, remote: &arguments.remote, down: arguments.down };
    let (local, remote) = (local_files(&arguments.local, arguments.down)?, sync.remote_files()?);
    let plan = sync.plan(&local, &remote, arguments.delete)?;
    if !arguments.dry_run {
        let all_deleted = || plan.in_the_way.iter().chain(&plan.deleted);
        if let Some(first) = all_deleted().next() {
            let count = all_deleted().count();
            let side = if arguments.down { "of the folder" } else { "of the bucket" };
            context.confirm(&format!("Delete {count} files {side}, such as {first}?"))?;
        }
        sync.carry_out(&plan, context)?;
    }
    let Plan { in_the_way, copied, deleted, unchanged } = plan;
    let deleted = [in_the_way, deleted].concat();
    if context.output.is_json {
        let value =
            json!({ "copied": copied, "deleted": deleted, "unchanged": unchanged, "dry_run": arguments.dry_run });
        return context.output.json(&value);
    }
    if arguments.dry_run {
        for (what, paths) in [("copy", &copied), ("delete", &deleted)] {
            for path in paths {
                context.output.line(&format!("{what} {path}"))?;
            }
        }
    }
    let would = if arguments.dry_run { "would be " } else { "" };
    note(&format!("{} {would}copied, {} {would}deleted, {unchanged} unchanged.", copied.len(), deleted.len()));
    Ok(())
}

struct FolderSync<'s> {
    client: &'s Client,
    local: &'s Path,
    remote: &'s Place,
    down: bool,
}

impl FolderSync<'_> {
    fn remote_files(&self) -> Result<Files, Failure> {
        let prefix = self.prefix();
        let mut files = Files::new();
        for file in self.client.storage().iter(&self.remote.bucket, &prefix, PAGE) {
            let file = file?;
            if let Some(path) = file.path.strip_prefix(&prefix).filter(|path| !path.split('/').any(is_temporary)) {
                files.insert(path.to_owned(), file.size);
            }
        }
        Ok(files)
    }

    /// Returns the prefix with a slash at its end, or an empty text for the whole bucket.
    fn prefix(&self) -> String {
        let prefix = self.remote.path.trim_end_matches('/');
        if prefix.is_empty() { String::new() } else { format!("{prefix}/") }
    }

    fn remote_path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix())
    }

    /// # Errors
    /// Usage if a path of the bucket has no place in the folder or leads through a link there. Usage if `deletes` would delete
    /// every file because the other side has none: a path is misspelt, or a disk is missing.
    fn plan(&self, local: &LocalFiles, remote: &Files, deletes: bool) -> Result<Plan, Failure> {
        let LocalFiles { files: local, left_out } = local;
        let (from, to) = if self.down { (remote, local) } else { (local, remote) };
        if self.down {
            must_fit(remote, local, IGNORES_CASE)?;
            for path in remote.keys() {
                self.local_path(path)?;
            }
        }
        if deletes && from.is_empty() && !to.is_empty() {
            let side = if self.down { "The bucket" } else { "The folder" };
            let sentence = format!("{side} has no files to copy, and --delete would delete all {} files", to.len());
            return Err(Failure::usage(sentence, "Check the folder and the prefix. `files rm` deletes files."));
        }
        let mut plan = Plan { in_the_way: Vec::new(), copied: Vec::new(), deleted: Vec::new(), unchanged: 0 };
        for (path, size) in from {
            stop_if_interrupted("Nothing was changed.")?;
            if to.get(path) == Some(size) && self.is_same(path)? {
                plan.unchanged += 1;
            } else {
                plan.copied.push(path.clone());
            }
        }
        if deletes {
            let is_left_out =
                |path: &str| left_out.contains(path) || folders_of(path).any(|folder| left_out.contains(folder));
            let superfluous = to.keys().filter(|path| !from.contains_key(*path) && !is_left_out(path));
            // A download is refused where a file and a folder have one name.
            let copied: BTreeSet<&str> = plan.copied.iter().map(String::as_str).collect();
            let folders: BTreeSet<&str> = copied.iter().flat_map(|path| folders_of(path)).collect();
            let is_in_the_way = |path: &&String| {
                folders.contains(path.as_str()) || folders_of(path).any(|folder| copied.contains(folder))
            };
            (plan.in_the_way, plan.deleted) = superfluous.cloned().partition(|path| is_in_the_way(&path));
        }
        Ok(plan)
    }

    /// Whether both sides have the same bytes.
    fn is_same(&self, path: &str) -> Result<bool, Failure> {
        let local = self.local.join(path);
        let of_local = |error: io::Error| Failure::of_file(&local, &error);
        let mut one = BufReader::with_capacity(CHUNK, File::open(&local).map_err(of_local)?);
        let mut other = self.client.storage().reader(&self.remote.bucket, &self.remote_path(path))?;
        let (mut chunk, mut expected) = (vec![0; CHUNK], vec![0; CHUNK]);
        loop {
            stop_if_interrupted("Nothing was changed.")?;
            let read = other.read(&mut chunk).map_err(of_reader)?;
            if read == 0 {
                return Ok(one.read(&mut expected[..1]).map_err(of_local)? == 0);
            }
            match one.read_exact(&mut expected[..read]) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                result => result.map_err(of_local)?,
            }
            if chunk[..read] != expected[..read] {
                return Ok(false);
            }
        }
    }

    fn carry_out(&self, plan: &Plan, context: &Context) -> Result<(), Failure> {
        let progress = Progress::new(&context.output, "files", Unit::Items);
        let all = (plan.in_the_way.len() + plan.copied.len() + plan.deleted.len()) as u64;
        let in_the_way = plan.in_the_way.iter().map(|path| (path, false));
        let copied = plan.copied.iter().map(|path| (path, true));
        let deleted = plan.deleted.iter().map(|path| (path, false));
        for (done, (path, is_copied)) in (1..).zip(in_the_way.chain(copied).chain(deleted)) {
            stop_if_interrupted("What was copied stays. Run the same command again.")?;
            match (is_copied, self.down) {
                (true, false) => self.upload(path),
                (true, true) => self.download(path),
                // Another program may have deleted it meanwhile.
                (false, false) => match self.client.storage().delete(&self.remote.bucket, &self.remote_path(path)) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                    deleted => deleted.map_err(Failure::from),
                },
                (false, true) => {
                    let local = self.local_path(path)?;
                    match fs::remove_file(&local) {
                        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                        deleted => deleted.map_err(|error| Failure::of_file(&local, &error)),
                    }
                }
            }
            .map_err(|failure| failure.at(path))?;
            // `stop_if_interrupted` looks for a signal before each file.
            let _ = progress.show(done, all);
        }
        Ok(())
    }

    fn upload(&self, path: &str) -> Result<(), Failure> {
        let (local, remote) = (self.local.join(path), self.remote_path(path));
        self.client.storage().upload_from(&self.remote.bucket, &remote, &local, UploadOptions::new(), until_signal)?;
        Ok(())
    }

    fn download(&self, path: &str) -> Result<(), Failure> {
        let local = self.local_path(path)?;
        if let Some(folder) = local.parent() {
            fs::create_dir_all(folder).map_err(|error| Failure::of_file(folder, &error))?;
        }
        self.client.storage().download_to(&self.remote.bucket, &self.remote_path(path), &local, until_signal)?;
        Ok(())
    }

    /// The path of a file in the folder.
    ///
    /// # Errors
    /// Usage if it would lead out of the folder.
    fn local_path(&self, path: &str) -> Result<PathBuf, Failure> {
        let mut local = self.local.to_owned();
        for segment in path.split('/') {
            // The library refuses such paths. Other programs may have written the rows.
            let is_name = !matches!(segment, "" | "." | "..") && Path::new(segment).components().count() == 1;
            if !is_name || segment.contains(std::path::is_separator) {
                return Err(Failure::usage(format!("{path} is not a valid path on this machine"), "Rename the file."));
            }
            local.push(segment);
            if fs::symlink_metadata(&local).is_ok_and(|metadata| metadata.is_symlink()) {
                let sentence = format!("{} is a symbolic link, and a download follows none", local.display());
                return Err(Failure::usage(sentence, "Remove the link, or sync to another folder."));
            }
        }
        Ok(local)
    }
}

/// Whether a file or a folder is left out of both sides, because of its name: another program may be writing it, or was killed.
fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY)
}

/// The folders above a path, the outermost first.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(move |(end, _)| &path[..end])
}

/// Checks that each file of the bucket has a place of its own in the folder.
///
/// # Errors
/// Usage for a path below a file and for a path of a folder with files. With `ignores_case` also for two paths that differ only in
/// case.
fn must_fit(remote: &Files, local: &Files, ignores_case: bool) -> Result<(), Failure> {
    let refuse = |path: &str, other: &str| {
        let sentence = format!("{path} of the bucket and {other} cannot both be in the folder");
        Err(Failure::usage(sentence, "Rename or delete one of them."))
    };
    let mut by_lower_case: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    if ignores_case {
        for path in local.keys().chain(remote.keys()) {
            by_lower_case.entry(path.to_lowercase()).or_default().insert(path);
        }
    }
    for path in remote.keys() {
        if let Some(file) = folders_of(path).find(|folder| local.contains_key(*folder) || remote.contains_key(*folder))
        {
            return refuse(path, file);
        }
        let below = format!("{path}/");
        if let Some((file, _)) = local.range(below.clone()..).next().filter(|(file, _)| file.starts_with(&below)) {
            return refuse(path, file);
        }
        let same = by_lower_case.get(&path.to_lowercase());
        if let Some(other) = same.and_then(|same| same.iter().find(|other| **other != path)) {
            return refuse(path, other);
        }
    }
    Ok(())
}

/// Ends a transfer at a signal.
fn until_signal(_done: u64, _all: u64) -> ControlFlow<()> {
    if interrupt::is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn stop_if_interrupted(advice: &str) -> Result<(), Failure> {
    if interrupt::is_requested() { Err(Failure::interrupted(advice)) } else { Ok(()) }
}

/// The files of a folder. Symbolic links and other files that are not regular are left out, with a note.
///
/// # Errors
/// Those of the host; usage for a name that is not UTF-8. `may_be_missing`: a folder that is missing has no files.
fn local_files(folder: &Path, may_be_missing: bool) -> Result<LocalFiles, Failure> {
    let (mut files, mut left_out) = (Files::new(), BTreeSet::new());
    let mut folders = vec![String::new()];
    while let Some(inner) = folders.pop() {
        let path = folder.join(&inner);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && may_be_missing && inner.is_empty() => {
                return Ok(LocalFiles { files, left_out });
            }
            entries => entries.map_err(|error| Failure::of_file(&path, &error))?,
        };
        for entry in entries {
            let entry = entry.map_err(|error| Failure::of_file(&path, &error))?;
            if entry.file_name().to_str().is_some_and(is_temporary) {
                continue;
            }
            let metadata = entry.metadata().map_err(|error| Failure::of_file(&entry.path(), &error))?;
            let name = entry.file_name().into_string().map_err(|_| {
                let sentence = format!("{} is not UTF-8", entry.path().display());
                Failure::new(exit_code::USAGE, sentence, "Rename the file, or move it out of the folder.")
            })?;
            let name = if inner.is_empty() { name } else { format!("{inner}/{name}") };
            // The metadata is that of a link, not of its target.
            if metadata.is_dir() {
                folders.push(name);
            } else if metadata.is_file() {
                files.insert(name, metadata.len());
            } else {
                note(&format!("{name} is left out: it is no regular file."));
                left_out.insert(name);
            }
        }
    }
    Ok(LocalFiles { files, left_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Files {
        paths.iter().map(|path| ((*path).to_owned(), 1)).collect()
    }

    #[test]
    fn the_folders_of_a_path_are_above_it() {
        assert_eq!(folders_of("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(folders_of("a").count(), 0);
    }

    #[test]
    fn each_file_of_a_bucket_has_a_place_of_its_own() {
        // The paths of the bucket, those of the folder, whether case is ignored, and whether both fit.
        let table: [(&[&str], &[&str], bool, bool); 10] = [
            (&["a/b", "a.b", "c"], &["a/b", "d"], true, true),
            (&["a/b"], &["a"], false, false),
            (&["a/b", "a"], &[], false, false),
            (&["a"], &["a/b"], false, false),
            (&["a"], &["a.b", "ab"], false, true),
            (&["A", "a"], &[], false, true),
            (&["A", "a"], &[], true, false),
            (&["a"], &["A"], false, true),
            (&["a"], &["A"], true, false),
            (&["a"], &["A", "a"], true, false),
        ];
        for (remote, local, ignores_case, fits) in table {
            let checked = must_fit(&files(remote), &files(local), ignores_case);
            assert_eq!(checked.is_ok(), fits, "{remote:?} {local:?} {ignores_case}");
        }
    }
}
