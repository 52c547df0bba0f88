//! Runs the target `c_calls` under libFuzzer: tests/c/call_sequences.c, which calls the functions of the C library.
#![no_main]

// Its functions are called by the C program alone.
use townsquare_ffi as _;

unsafe extern "C" {
    fn call_sequences_set_up();
    fn call_sequences_run(data: *const u8, size: usize);
}

// The set-up does not count as the time of an input.
libfuzzer_sys::fuzz_target!(
    // SAFETY: the function takes nothing, and is called once, before every input.
    init: unsafe { call_sequences_set_up() },
    // SAFETY: the function reads `data.len()` bytes and keeps no pointer to them.
    |data: &[u8]| unsafe { call_sequences_run(data.as_ptr(), data.len()) }
);
