//! Stub of the model test, to be filled in.
