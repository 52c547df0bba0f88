//! Lists the objects of a bucket in a folder, in the order of the bytes of their paths.

use std::{io, vec::IntoIter};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use super::tree::is_missing;
use crate::objects::ListedObject;

/// A walk through a bucket. It holds the names of the folders that it is in.
#[derive(Debug, Default)]
pub(in crate::objects) struct FolderWalk(Vec<Level>);

#[derive(Debug)]
struct Level {
    dir: Dir,
    /// The path of `dir` in the bucket, with a slash at its end.
    prefix: String,
    names: IntoIter<String>,
}

impl FolderWalk {
    /// Starts a walk; an empty one if there is no such bucket.
    pub(super) fn new(root: &Dir, bucket: &str) -> io::Result<FolderWalk> {
        match root.open_dir_nofollow(bucket).and_then(|dir| Level::read(dir, String::new())) {
            Ok(level) => Ok(FolderWalk(vec![level])),
            Err(error) if is_missing(&error) => Ok(FolderWalk(Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// Returns up to `limit` further objects; none at the end.
    pub(super) fn next(&mut self, limit: usize) -> io::Result<Vec<ListedObject>> {
        let mut page = Vec::new();
        while page.len() < limit {
            let Some(level) = self.0.last_mut() else { break };
            let Some(name) = level.names.next() else {
                self.0.pop();
                continue;
            };
            let path = format!("{}{name}", level.prefix);
            if let Some(folder) = name.strip_suffix('/') {
                match level.dir.open_dir_nofollow(folder).and_then(|dir| Level::read(dir, path)) {
                    Ok(level) => self.0.push(level),
                    // It was removed meanwhile. The system also refuses to read a folder that was removed after it was opened.
                    Err(error) if is_missing(&error) => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            match level.dir.symlink_metadata(&name) {
                Ok(metadata) if metadata.is_file() => page.push(ListedObject { path, size: metadata.len() }),
                Ok(_) => {}
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(page)
    }
}

impl Level {
    /// Reads the names of files and folders. A folder's name ends with a slash, so that they sort like paths. Other
    /// entries, for example links, are no objects.
    fn read(dir: Dir, prefix: String) -> io::Result<Level> {
        let mut names = Vec::new();
        for entry in dir.entries()? {
            let entry = entry?;
            let Ok(mut name) = entry.file_name().into_string() else { continue };
            match entry.file_type()? {
                kind if kind.is_dir() => name.push('/'),
                kind if kind.is_file() => {}
                _ => continue,
            }
            names.push(name);
        }
        names.sort_unstable();
        Ok(Level { dir, prefix, names: names.into_iter() })
    }
}
