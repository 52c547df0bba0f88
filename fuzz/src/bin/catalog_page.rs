//! Runs the target `catalog_page` under libFuzzer.
#![no_main]

use std::cell::RefCell;

use townsquare_fuzz::{Target, catalog_page::CatalogPage};

thread_local! {
    static TARGET: RefCell<CatalogPage> = RefCell::new(CatalogPage::new());
}

// The set-up does not count as the time of an input.
libfuzzer_sys::fuzz_target!(init: TARGET.with_borrow(|_| ()), |data: &[u8]| {
    TARGET.with_borrow_mut(|target| target.check(data))
});
