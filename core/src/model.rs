//! The records of the library: plain values without behaviour beyond reading themselves.
//!
//! Invariant: nothing here does I/O, and a record never changes after it was handed out.

mod change;
mod community;
mod mini_app;
mod space;
mod user;

pub use change::Change;
pub use community::{
    ActiveCommunityConfig, CommunityConfig, CommunityDomain, CommunityPatch, DomainType, NewRegistration,
    SpaceRegistration, SpaceType,
};
pub use mini_app::{
    Author, CatalogSource, DiscoveryStats, Engagement, MiniApp, MiniAppRecord, MiniApps, Texts, Timeframe,
};
pub(crate) use mini_app::{Fields, Publisher};
pub use space::{Fidget, FidgetPatch, NewFidget, NewSpace, Owner, PublicSpace, Space, SpacePatch, SpaceWithFidgets};
pub use user::{AuthEvent, Session, User, UserPatch};
