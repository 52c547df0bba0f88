//! The rows of the tables: spaces, fidgets, communities, domains and registrations.
//!
//! Invariant: as of the crate: a function converts, calls the core once, and converts the result.

pub(crate) mod fidget;

pub(crate) mod owner;

pub(crate) mod space;

pub(crate) mod spaces;

pub(crate) mod new_fidget;

pub(crate) mod fidgets;

pub(crate) mod community_config;

pub(crate) mod community_domain;

pub(crate) mod space_registration;

pub(crate) mod community_patch;

pub(crate) mod communities;
