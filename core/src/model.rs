//! The records of the tables (SPEC 2.2 to 2.7) and the inputs that create or change them. Plain values: no I/O.

mod change;
mod community;
mod space;
mod user;

pub use change::Change;
pub use community::{
    ActiveCommunityConfig, CommunityConfig, CommunityDomain, CommunityPatch, DomainType, NewRegistration,
    SpaceRegistration, SpaceType,
};
pub use space::{Fidget, FidgetPatch, NewFidget, NewSpace, Owner, PublicSpace, Space, SpacePatch, SpaceWithFidgets};
pub use user::{AuthEvent, Session, User, UserPatch};
