//! The book in docs/: its blocks, links and tables, and its programs in Rust. Its programs in C are in `c::book`, those in Python
//! in tests/python/test_book.py.

mod blocks;
mod links;
mod pages;
mod programs;
mod restore;
mod supabase;
mod tables;
