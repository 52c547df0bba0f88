//! The C and C++ face (DESIGN 10): the header tells the truth, the library exports what it says, and programs in C11
//! and C++17 get from it what this suite expects of the core.

mod header;
mod programs;
mod symbols;
mod toolchain;
