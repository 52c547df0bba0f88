//! The rights of SPEC 5.4 and DESIGN 4, stated without the library's policies.

use townsquare::Uuid;

/// The caller of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Principal {
    Anonymous,
    User(Uuid),
    Service,
}

impl Principal {
    /// Whether this is the user with that id. A row without an owner has no such user.
    pub(crate) fn is(self, user: Option<Uuid>) -> bool {
        matches!((self, user), (Principal::User(me), Some(user)) if me == user)
    }

    /// SPEC 5.4: SELECT when the authenticated user id equals `owner_id`, and for everyone when `is_public` is true.
    pub(crate) fn sees_space(self, owner: Option<Uuid>, is_public: Option<bool>) -> bool {
        self == Principal::Service || is_public == Some(true) || self.is(owner)
    }

    /// SPEC 5.4: UPDATE and DELETE when the authenticated user id equals `owner_id`; DESIGN 4: INSERT too. The fidgets
    /// of a space have the rights of the space.
    pub(crate) fn owns_space(self, owner: Option<Uuid>) -> bool {
        self == Principal::Service || self.is(owner)
    }

    /// DESIGN 4: a user sees themselves and the owners of public spaces.
    pub(crate) fn sees_user(self, user: Uuid, owns_a_public_space: bool) -> bool {
        self == Principal::Service || self.is(Some(user)) || owns_a_public_space
    }

    /// DESIGN 4: everyone sees published communities.
    pub(crate) fn sees_community(self, is_published: Option<bool>) -> bool {
        self == Principal::Service || is_published == Some(true)
    }

    /// DESIGN 4: the navigation is set by users who linked one of the community's keys and see the community.
    pub(crate) fn sets_navigation(
        self,
        is_published: Option<bool>,
        keys: &[String],
        holder: impl Fn(&str) -> Option<Uuid>,
    ) -> bool {
        let holds_one = keys.iter().any(|key| self.is(holder(key)));
        self == Principal::Service || (holds_one && self.sees_community(is_published))
    }
}
