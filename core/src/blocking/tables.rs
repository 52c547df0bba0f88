//! Spaces, fidgets and communities without async.

use std::collections::BTreeMap;

use super::wait;
use crate::{
    error::Result,
    model::{
        ActiveCommunityConfig, CommunityConfig, CommunityDomain, CommunityPatch, DomainType, Fidget, FidgetCursor,
        FidgetPatch, NewFidget, NewRegistration, NewSpace, PublicSpace, PublicSpaceCursor, Space, SpacePatch,
        SpaceRegistration, SpaceWithFidgets,
    },
};
use serde_json::Value as Json;
use uuid::Uuid;

// For the links of the documentation.
#[cfg(doc)]
use {crate::error::Error, futures_core::Stream};

area! { Spaces:
    create_space(space: NewSpace) -> Space;
    create_spaces(spaces: Vec<NewSpace>) -> Vec<Space>;
    get_space(id: Uuid) -> Space;
    list_spaces(limit: u32, after: Option<Uuid>) -> Vec<Space>;
    set_owner(id: Uuid, owner_id: Uuid) -> Space;
    update_space(id: Uuid, patch: SpacePatch) -> Space;
    delete_space(id: Uuid) -> ();
    get_user_spaces(user_id: Uuid) -> Vec<SpaceWithFidgets>;
    get_public_spaces(limit: u32, offset: u64) -> Vec<PublicSpace>;
    get_public_spaces_after(limit: u32, after: impl Into<PublicSpaceCursor>) -> Vec<PublicSpace>;
    get_space_with_fidgets(id: Uuid) -> SpaceWithFidgets;
    get_space_with_any_fidgets(id: Uuid) -> SpaceWithFidgets;
}

impl Spaces<'_> {
    #[doc = text_of!(Spaces.iter_public_spaces)]
    ///
    /// ```
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// for public in client.spaces().iter_public_spaces(100) {
    ///     println!("{}", public?.space.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter_public_spaces(&self, page_size: u32) -> PublicSpaces {
        PublicSpaces(self.0.iter_public_spaces(page_size))
    }
}

/// The public spaces one by one: the result of [`Spaces::iter_public_spaces`].
#[derive(Debug)]
pub struct PublicSpaces(crate::spaces::PublicSpaces);

impl Iterator for PublicSpaces {
    type Item = Result<PublicSpace>;

    fn next(&mut self) -> Option<Result<PublicSpace>> {
        wait(self.0.next())
    }
}

area! { Fidgets:
    create_fidget(space_id: Uuid, fidget: NewFidget) -> Fidget;
    create_fidgets(space_id: Uuid, fidgets: Vec<NewFidget>) -> Vec<Fidget>;
    save_positions(space_id: Uuid, positions: BTreeMap<Uuid, Option<Json>>) -> Vec<Fidget>;
    get_fidget(id: Uuid) -> Fidget;
    update_fidget(id: Uuid, patch: FidgetPatch) -> Fidget;
    delete_fidget(id: Uuid) -> ();
    get_space_fidgets(space_id: Uuid) -> Vec<Fidget>;
    get_space_fidgets_after(space_id: Uuid, limit: u32, after: Option<FidgetCursor>) -> Vec<Fidget>;
}

area! { Communities:
    save_community_config(community_id: &str, patch: CommunityPatch) -> CommunityConfig;
    get_active_community_config(community_id: &str) -> Option<ActiveCommunityConfig>;
    save_community_domain(community_id: &str, domain: &str, domain_type: DomainType) -> CommunityDomain;
    delete_community_domain(domain: &str) -> ();
    update_navigation(community_id: &str, navigation: Option<Json>) -> CommunityConfig;
    resolve_community(host: &str) -> Option<String>;
    list_community_configs(limit: u32, after: Option<Uuid>) -> Vec<CommunityConfig>;
    list_community_domains(limit: u32, after: Option<Uuid>) -> Vec<CommunityDomain>;
    list_space_registrations(limit: u32, after: Option<Uuid>) -> Vec<SpaceRegistration>;
    register_space(registration: NewRegistration) -> SpaceRegistration;
    get_space_registration(space_id: Uuid) -> Option<SpaceRegistration>;
}
