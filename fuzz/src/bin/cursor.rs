//! Runs the target `cursor` under libFuzzer.
#![no_main]

use std::cell::RefCell;

use townsquare_fuzz::{Target, cursor::Cursor};

thread_local! {
    static TARGET: RefCell<Cursor> = RefCell::new(Cursor::new());
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET.with_borrow_mut(|target| target.check(data)));
