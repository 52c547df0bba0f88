//! Runs the target `signed_json` under libFuzzer.
#![no_main]

use std::cell::RefCell;

use townsquare_fuzz::{Target, signed_json::SignedJson};

thread_local! {
    static TARGET: RefCell<SignedJson> = RefCell::new(SignedJson::new());
}

// The set-up does not count as the time of an input.
libfuzzer_sys::fuzz_target!(init: TARGET.with_borrow(|_| ()), |data: &[u8]| {
    TARGET.with_borrow_mut(|target| target.check(data))
});
