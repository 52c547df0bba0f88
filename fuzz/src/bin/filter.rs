//! Runs the target `filter` under libFuzzer.
#![no_main]

use std::cell::RefCell;

use townsquare_fuzz::{Target, filter::Filter};

thread_local! {
    static TARGET: RefCell<Filter> = RefCell::new(Filter::new());
}

// The set-up does not count as the time of an input.
libfuzzer_sys::fuzz_target!(init: TARGET.with_borrow(|_| ()), |data: &[u8]| {
    TARGET.with_borrow_mut(|target| target.check(data))
});
