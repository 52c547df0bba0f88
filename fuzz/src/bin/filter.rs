//! Runs the target `filter` under libFuzzer.
#![no_main]

use std::cell::RefCell;

use townsquare_fuzz::{Target, filter::Filter};

thread_local! {
    static TARGET: RefCell<Filter> = RefCell::new(Filter::new());
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET.with_borrow_mut(|target| target.check(data)));
