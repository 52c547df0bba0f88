//! Folders below the root: walking, creating, syncing and pruning them, one segment at a time.
//!
//! Invariant: no step follows a symbolic link. A link in the place of a folder is an error, and a link in the place of a
//! file is neither read nor written through. A folder that `create_parent` creates is durable when it returns.

use std::{io, path::Path};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::{
    ambient_authority,
    fs::{Dir, DirBuilder, File, OpenOptions},
};
use unicode_normalization::UnicodeNormalization;

/// The open folders from the bucket to the parent of an object, with their names.
pub(super) struct Chain(Vec<(String, Dir)>);

impl Chain {
    /// Opens the folders `names` below `root`.
    pub(super) fn open(root: &Dir, names: &[&str]) -> io::Result<Chain> {
        Chain::walk(root, names, Dir::open_dir_nofollow)
    }

    /// Opens the folders `names` below `root` and creates those that are missing.
    pub(super) fn create(root: &Dir, names: &[&str], ignores_case: bool) -> io::Result<Chain> {
        Chain::walk(root, names, |dir: &Dir, name: &str| match dir.open_dir_nofollow(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => create_folder(dir, name),
            opened => {
                if ignores_case {
                    refuse_other_spelling(dir, name)?;
                }
                opened
            }
        })
    }

    fn walk<'a>(root: &Dir, names: &[&'a str], open: impl Fn(&Dir, &'a str) -> io::Result<Dir>) -> io::Result<Chain> {
        let mut chain = Vec::with_capacity(names.len());
        for name in names.iter().copied() {
            let dir = open(chain.last().map_or(root, |(_, dir)| dir), name)?;
            chain.push((name.to_owned(), dir));
        }
        Ok(Chain(chain))
    }

    /// The parent of the object.
    pub(super) fn parent(&self) -> &Dir {
        &self.0.last().expect("a chain starts with the bucket").1
    }

    /// Removes the folders that are empty, from the parent upwards. Keeps the bucket.
    pub(super) fn prune(self) {
        let mut chain = self.0;
        while chain.len() > 1 {
            let Some((name, dir)) = chain.pop() else { return };
            drop(dir);
            let above = chain.last().map(|(_, dir)| dir.remove_dir(&name));
            if !matches!(above, Some(Ok(()))) {
                return;
            }
        }
    }
}

/// Opens the last of the folders `names` below `root`.
pub(super) fn open_folders(root: &Dir, names: &[&str]) -> io::Result<Dir> {
    names.iter().try_fold(root.try_clone()?, |dir, name| dir.open_dir_nofollow(name))
}

/// Creates the folder `name` for its owner only, makes it durable and opens it.
pub(super) fn create_folder(dir: &Dir, name: &str) -> io::Result<Dir> {
    #[allow(unused_mut, reason = "changed on Unix")]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    cap_std::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match dir.create_dir_with(name, &builder) {
        Ok(()) => sync(dir)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    dir.open_dir_nofollow(name)
}

/// Makes the entries of a folder durable.
pub(super) fn sync(dir: &Dir) -> io::Result<()> {
    // Other systems write entries of folders by themselves.
    if cfg!(unix) { dir.open_with(".", OpenOptions::new().read(true))?.sync_all() } else { Ok(()) }
}

/// Opens a regular file for reading. `None` for everything else: a link, a folder, a pipe, a device.
pub(super) fn open_file(dir: &Dir, name: &str) -> io::Result<Option<(std::fs::File, u64)>> {
    // To open a pipe would wait for its writer.
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    match dir.open_with(name, &options) {
        Ok(file) => {
            let metadata = file.metadata()?;
            Ok(metadata.is_file().then(|| (file.into_std(), metadata.len())))
        }
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => match dir.symlink_metadata(name) {
            Ok(metadata) if !metadata.is_file() => Ok(None),
            _ => Err(error),
        },
    }
}

/// Creates a file for its owner only. Fails if there is one.
pub(super) fn create_file(dir: &Dir, name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).follow(FollowSymlinks::No);
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    dir.open_with(name, &options)
}

/// Opens the file of a lock, and creates it if it is missing.
pub(super) fn open_lock_file(dir: &Dir, name: &str) -> io::Result<std::fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).follow(FollowSymlinks::No);
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    dir.open_with(name, &options).map(File::into_std)
}

/// Whether an error says that there is no such file: its name or one of its folders is missing, or the file system has no files of
/// such a name.
pub(super) fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename | InvalidInput)
}

/// Removes the folder `name` if it contains nothing but empty folders: those that a crash left.
pub(super) fn remove_empty_tree(dir: &Dir, name: &str) -> io::Result<()> {
    match dir.remove_dir(name) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
        outcome => return outcome,
    }
    let inner = dir.open_dir_nofollow(name)?;
    for entry in inner.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        match name.to_str() {
            Some(name) if entry.file_type()?.is_dir() => remove_empty_tree(&inner, name)?,
            _ => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
        }
    }
    dir.remove_dir(name)
}

/// Whether `dir` contains the file `other`: another spelling of a file in it, which only a file system that ignores case
/// finds.
pub(super) fn has_other_spelling(dir: &Dir, other: &str) -> bool {
    dir.symlink_metadata(other).is_ok()
}

/// Fails with `AlreadyExists` if `dir` contains `name` in another spelling, for a file system that does not tell them
/// apart.
pub(super) fn refuse_other_spelling(dir: &Dir, name: &str) -> io::Result<()> {
    let (folded, mut is_there) = (fold(name), false);
    for entry in dir.entries()? {
        let entry = entry?.file_name();
        let Some(entry) = entry.to_str() else { continue };
        if entry == name || entry.nfc().eq(name.chars()) {
            is_there = true;
        } else if fold(entry) == folded {
            let message = format!("This folder ignores case, and contains {entry:?}");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
    }
    // The file system may take more letters for equal than `fold`, such as the two forms of sigma.
    if !is_there && has_other_spelling(dir, name) {
        let message = format!("This folder contains {name:?} in another spelling");
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    Ok(())
}

fn fold(name: &str) -> String {
    name.nfc().flat_map(char::to_lowercase).collect()
}

/// Creates the root and the folders above it that are missing.
pub(super) fn create_root(path: &Path) -> io::Result<Dir> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    let dir = match Dir::open_ambient_dir(above, ambient_authority()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_root(above)?,
        opened => opened?,
    };
    create_folder(&dir, name)
}
