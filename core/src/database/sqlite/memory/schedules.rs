//! The gate of a database in memory in thousands of orders of its readers and its writer.
//!
//! These changes of `memory.rs` were made by hand, one at a time, and a test here failed for each:
//!
//! - a reader does not wait for a writer that has the gate;
//! - the writer does not wait for readers;
//! - a pass that is dropped notifies nobody, or one waiter alone.

use std::sync::atomic::{AtomicI32, Ordering};

use super::*;
use crate::threads::sync::{check, thread};

#[test]
fn readers_and_the_writer_exclude_each_other_and_all_of_them_pass() {
    check(|| {
        let gate = Arc::<Gate>::default();
        // How many readers have a pass; -1 for the writer.
        let inside = Arc::new(AtomicI32::new(0));
        let readers = [(); 3].map(|()| {
            let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
            thread::spawn(move || {
                for _ in 0..2 {
                    let _pass = gate.read();
                    assert!(inside.fetch_add(1, Ordering::SeqCst) >= 0, "no writer");
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            })
        });
        for _ in 0..2 {
            let _pass = gate.write();
            assert_eq!(inside.swap(-1, Ordering::SeqCst), 0, "nobody else");
            thread::yield_now();
            inside.store(0, Ordering::SeqCst);
        }
        readers.into_iter().for_each(|reader| reader.join().expect("no panic"));
    });
}
