//! Runs the target `search` under libFuzzer.
#![no_main]

use std::cell::RefCell;

use townsquare_fuzz::{Target, search::Search};

thread_local! {
    static TARGET: RefCell<Search> = RefCell::new(Search::new());
}

// The set-up does not count as the time of an input.
libfuzzer_sys::fuzz_target!(init: TARGET.with_borrow(|_| ()), |data: &[u8]| {
    TARGET.with_borrow_mut(|target| target.check(data))
});
