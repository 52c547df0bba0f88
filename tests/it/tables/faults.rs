//! Stub of the fault tests, to be filled in.
