//! Files of the host: `upload_from`, `download_to` and `export_files`.

use std::fs;

use townsquare::{ErrorKind, blocking::wait, storage::UploadOptions};

use super::town::{assert_refused, bytes, on_every_store, paths};

on_every_store! {
    fn files_of_the_host_are_streamed_with_progress(town: &Town) {
        let storage = town.db.service.storage();
        let (source, target) = (town.folder.path().join("source.png"), town.folder.path().join("target.png"));
        for size in [0usize, 10, 3_000_000] {
            fs::write(&source, bytes(size, 1)).expect("written");
            let mut steps = Vec::new();
            let uploaded =
                wait(storage.upload_from("assets", "a.png", &source, UploadOptions::new(), |done, all| steps.push((done, all))));
            let info = uploaded.expect("uploaded");
            assert_eq!((info.size, info.content_type.as_str()), (size as u64, "image/png"));
            assert!(steps.is_sorted() && steps.iter().all(|step| step.1 == size as u64), "{steps:?}");
            assert_eq!(steps.last().map_or(0, |step| step.0), size as u64);
            let mut steps = Vec::new();
            let downloaded = wait(storage.download_to("assets", "a.png", &target, |done, all| steps.push((done, all))));
            assert_eq!(downloaded.expect("downloaded"), info);
            assert!(fs::read(&target).expect("read") == bytes(size, 1));
            assert_eq!(steps.last().map_or(0, |step| step.0), size as u64);
        }
        let missing = town.folder.path().join("missing");
        let refused = wait(storage.upload_from("assets", "b", &missing, UploadOptions::new(), |_, _| {}));
        assert_refused(refused, ErrorKind::InvalidInput, 400, "Upload failed: Invalid file or request");
        let refused = wait(storage.download_to("assets", "a.png", missing.join("target"), |_, _| {}));
        assert_refused(refused, ErrorKind::InvalidInput, 400, "Download failed: Invalid file or request");
        let refused = wait(storage.download_to("assets", "none", &target, |_, _| {}));
        assert_refused(refused, ErrorKind::NotFound, 404, "Download failed: File not found");
        assert!(fs::read(&target).expect("read") == bytes(3_000_000, 1), "the target stays");
        let left: Vec<_> = fs::read_dir(town.folder.path()).expect("a folder").flatten().collect();
        assert!(!left.iter().any(|entry| entry.file_name().to_string_lossy().starts_with(".townsquare-")), "{left:?}");
        assert_eq!(paths(&town.db.service, "assets"), ["a.png"]);
    }

    fn an_export_has_the_layout_of_spec_2_8(town: &Town) {
        let files = [("assets", "images/a", 10), ("assets", "images/b c", 100_000), ("private", "x/homebase", 5),
            ("spaces", "s/tabs/Home", 70_000)];
        for (bucket, path, size) in files {
            town.put(bucket, path, bytes(size, 1));
        }
        let target = town.folder.path().join("exported");
        let mut steps = Vec::new();
        let exported = wait(town.db.service.storage().export_files(&target, |done, all| steps.push((done, all))));
        assert_eq!(exported.expect("exported"), 4);
        assert_eq!(steps, [(1, 4), (2, 4), (3, 4), (4, 4)]);
        for (bucket, path, size) in files {
            assert!(fs::read(target.join(bucket).join(path)).expect("exported") == bytes(size, 1));
        }
        let again = wait(town.db.service.storage().export_files(&target, |_, _| {}));
        assert_refused(again, ErrorKind::InvalidInput, 400, "Export files failed: Invalid file or request");
    }
}
