//! Runs the target `http` under libFuzzer.
#![no_main]

use std::cell::RefCell;

use townsquare_fuzz::{Target, http::Http};

thread_local! {
    static TARGET: RefCell<Http> = RefCell::new(Http::new());
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET.with_borrow_mut(|target| target.check(data)));
