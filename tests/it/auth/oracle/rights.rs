//! Who may do what, said once more in plain sentences: SPEC 5.4 and DESIGN 4, read by somebody who has not seen how the
//! library says it.

use townsquare::Uuid;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::auth) enum Who {
    Nobody,
    User(Uuid),
    Service,
}

impl Who {
    /// Whether this is the user with that id; a row without an owner is nobody's.
    pub(in crate::auth) fn is(self, user: Option<Uuid>) -> bool {
        matches!((self, user), (Who::User(me), Some(user)) if me == user)
    }

    /// SPEC 5.4: SELECT when the authenticated user id equals `owner_id`, and for everyone when `is_public` is true.
    pub(in crate::auth) fn sees_space(self, owner: Option<Uuid>, is_public: Option<bool>) -> bool {
        self == Who::Service || is_public == Some(true) || self.is(owner)
    }

    /// SPEC 5.4: UPDATE and DELETE when the authenticated user id equals `owner_id`; DESIGN 4 has INSERT alike. So it is
    /// with what is in the space.
    pub(in crate::auth) fn owns_space(self, owner: Option<Uuid>) -> bool {
        self == Who::Service || self.is(owner)
    }

    /// DESIGN 4: oneself, and the owners of public spaces.
    pub(in crate::auth) fn sees_user(self, user: Uuid, owns_a_public_space: bool) -> bool {
        self == Who::Service || self.is(Some(user)) || owns_a_public_space
    }

    /// DESIGN 4: everyone when published.
    pub(in crate::auth) fn sees_community(self, is_published: Option<bool>) -> bool {
        self == Who::Service || is_published == Some(true)
    }

    /// DESIGN 4: who has linked one of the community's keys, and may see it.
    pub(in crate::auth) fn sets_navigation(
        self,
        is_published: Option<bool>,
        keys: &[String],
        holder: impl Fn(&str) -> Option<Uuid>,
    ) -> bool {
        let holds_one = keys.iter().any(|key| self.is(holder(key)));
        self == Who::Service || (holds_one && self.sees_community(is_published))
    }
}
