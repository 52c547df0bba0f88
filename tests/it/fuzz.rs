//! The corpus of the fuzz targets, replayed: each input keeps what its target checks. `fuzz/README.md` says how to find further inputs.

#[path = "../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "the file is also the library of the fuzz binaries")]
mod targets;

use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
};

use townsquare_tests::paths::workspace;

use self::targets::Target;

/// The target in C: `tests/c/call_sequences.c` replays its corpus.
const C_CALLS: &str = "c_calls";

/// Checks the inputs of one target. The failure names the file.
fn replay<T: Target>() {
    let folder = workspace().join("fuzz/corpus").join(T::NAME);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file of the corpus").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has inputs", folder.display());
    let mut target = T::new();
    for file in files {
        let input = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let checked = catch_unwind(AssertUnwindSafe(|| target.check(&input)));
        assert!(checked.is_ok(), "the input {} fails", file.display());
    }
}

macro_rules! targets {
    ($($name:ident: $target:ident;)*) => {
        $(
            #[test]
            fn $name() {
                replay::<targets::$name::$target>();
            }
        )*

        /// Each target has a binary and a corpus, and each of them has a target.
        #[test]
        fn every_target_has_a_binary_and_a_corpus() {
            let mut names: BTreeSet<String> = [$(targets::$name::$target::NAME),*].map(str::to_owned).into();
            assert_eq!(names, [$(stringify!($name)),*].map(str::to_owned).into());
            names.insert(C_CALLS.to_owned());
            for folder in ["fuzz/corpus", "fuzz/src/bin"] {
                let entries = fs::read_dir(workspace().join(folder)).expect("a folder of the repository").flatten();
                let found: BTreeSet<String> = entries
                    .map(|entry| entry.path().file_stem().unwrap_or_default().to_string_lossy().into_owned())
                    .collect();
                assert_eq!(found, names, "{folder}");
            }
        }
    };
}

targets! {
    catalog_page: CatalogPage;
    claim: Claim;
    config_url: ConfigUrl;
    cursor: Cursor;
    filter: Filter;
    http: Http;
    search: Search;
    signed_json: SignedJson;
    signed_url: SignedUrl;
    storage_path: StoragePath;
    tables: TableOperations;
}
