//! C and C++ (DESIGN 10): the generated header, the exported symbols, and programs in C11, C++17 and C++20.

mod abi;
mod book;
mod clang_tidy;
mod cmake_prefix;
mod compilers;
mod examples;
mod exports;
mod header;
mod imports;
mod inputs;
mod install;
mod loading;
mod programs;
mod races;
mod symbols;
mod toolchain;
