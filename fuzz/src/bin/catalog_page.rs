//! Runs the target `catalog_page` under libFuzzer.
#![no_main]

use std::cell::RefCell;

use townsquare_fuzz::{Target, catalog_page::CatalogPage};

thread_local! {
    static TARGET: RefCell<CatalogPage> = RefCell::new(CatalogPage::new());
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET.with_borrow_mut(|target| target.check(data)));
