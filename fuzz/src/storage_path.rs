//! Paths of files. A path is accepted exactly if it keeps the documented rule. An accepted one downloads what was uploaded, is listed
//! under the same text, and leaves nothing outside the folder of the store.

use std::{fs, path::PathBuf};

use tempfile::TempDir;
use townsquare::{
    ErrorKind, Uuid,
    blocking::Client,
    storage::{ListFiles, PrivatePath, SpacePath, UploadOptions},
};
use unicode_normalization::is_nfc;

use super::{Target, fixture};

/// See the module.
pub struct StoragePath {
    in_memory: Client,
    in_folder: Client,
    folder: TempDir,
}

impl Target for StoragePath {
    const NAME: &'static str = "storage_path";

    fn new() -> StoragePath {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let url = format!("file:{}", folder.path().join("store").display());
        let in_folder = fixture::in_memory().database_url("sqlite::memory:").storage_url(url).inline_file_limit(0);
        StoragePath {
            in_memory: fixture::open(fixture::in_memory()).as_service(),
            in_folder: fixture::open(in_folder).as_service(),
            folder,
        }
    }

    fn check(&mut self, data: &[u8]) {
        let text = fixture::text(data);
        check_names(&text);
        check_file(&self.in_memory, &text);
        // An upload to a folder takes a hundred times as long.
        if fixture::is_one_of(128, data) {
            check_file(&self.in_folder, &text);
            let names = fs::read_dir(self.folder.path()).expect("the folder of the test").flatten();
            let names: Vec<PathBuf> = names.map(|entry| entry.file_name().into()).collect();
            // The first upload makes the folder of the store.
            assert!(
                names.iter().all(|name| name.as_os_str() == "store"),
                "{text:?} left the folder of the store: {names:?}"
            );
        }
    }
}

/// The documented rule of new paths, written once more.
fn is_valid(path: &str) -> bool {
    let is_bad = |character: char| {
        let is_direction = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        character.is_control() || character == '\\' || is_direction
    };
    let segments: Vec<&str> = path.split('/').collect();
    path.len() <= 1_024
        && segments.len() <= 32
        && segments.iter().all(|segment| (1..=255).contains(&segment.len()) && !matches!(*segment, "." | ".."))
        && !path.contains(is_bad)
        && is_nfc(path)
}

fn check_file(service: &Client, path: &str) {
    let storage = service.storage();
    let content = path.as_bytes().to_vec();
    let uploaded = storage.upload("assets", path, content.clone(), UploadOptions::new().content_type("text/plain"));
    assert_eq!(uploaded.is_ok(), is_valid(path), "{path:?}: {uploaded:?}");
    match uploaded {
        Ok(info) => {
            assert_eq!((info.path.as_str(), info.size), (path, content.len() as u64));
            assert_eq!(storage.download("assets", path).expect("the file was uploaded"), content);
            let listed = storage.list("assets", ListFiles::with_prefix(path)).expect("the path is a prefix");
            assert_eq!(listed.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), [path]);
            storage.delete("assets", path).expect("the file was uploaded");
            assert!(!storage.exists("assets", path).expect("the path is valid"), "{path:?} is still there");
        }
        Err(error) => {
            assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidInput, 400), "{path:?}: {error}");
            let kind = storage.download("assets", path).expect_err("there is no file").kind();
            assert!(matches!(kind, ErrorKind::InvalidInput | ErrorKind::NotFound), "{path:?}: {kind:?}");
        }
    }
}

/// The paths that are made of names: they are valid, and stay in the folder of their space or owner.
fn check_names(name: &str) {
    let id = Uuid::from_u128(7);
    for (made, folder) in [
        (SpacePath::tab(id, name), format!("{id}/tabs/")),
        (SpacePath::asset(id, name), format!("{id}/assets/")),
        (PrivatePath::tab(&id.to_string(), name), format!("{id}/tabs/")),
        (PrivatePath::homebase(name), format!("{name}/homebase")),
    ] {
        match made {
            Ok(path) => assert!(is_valid(path.path()) && path.path().starts_with(&folder), "{path}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}"),
        }
    }
}
