//! How values, errors and callbacks cross to C, and which process a handle belongs to.
//!
//! Invariant: a body of a C function runs behind a guard of [`guard`] or [`call`], so that no panic and no NULL gets through.

pub(crate) mod text;

pub(crate) mod version;

pub(crate) mod failure;

pub(crate) mod forks;

pub(crate) mod handle;

pub(crate) mod status;

pub(crate) mod guard;

pub(crate) mod string;

pub(crate) mod buffer;

pub(crate) mod error;

pub(crate) mod call;

pub(crate) mod argument;

pub(crate) mod change;

pub(crate) mod record;

pub(crate) mod callback;

pub(crate) mod bell;

pub(crate) mod progress;
