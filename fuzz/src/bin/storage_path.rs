//! Runs the target `storage_path` under libFuzzer.
#![no_main]

use std::cell::RefCell;

use townsquare_fuzz::{Target, storage_path::StoragePath};

thread_local! {
    static TARGET: RefCell<StoragePath> = RefCell::new(StoragePath::new());
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET.with_borrow_mut(|target| target.check(data)));
