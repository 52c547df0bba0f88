//! Spaces and fidgets, and the inputs that create or change them (SPEC 2.6, 2.7, 4.5).

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{change::Change, time_text};

record! {
    /// A row of `spaces`.
    pub struct Space in "spaces" {
        /// The primary key. A new row with a given id can be created again: the call returns the existing row.
        id: Uuid [is_key: true], new: Option<Uuid>;
        /// The display name. The table requires one.
        name: String, new: Option<String>, patch: Change<String>;
        /// What the space is about.
        description: Option<String> [is_large: true], new: Option<String>, patch: Change<String>;
        /// The owner. A new space without one belongs to its caller; only the service may name another user.
        owner_id: Option<Uuid> [is_judged: true], new: Option<Uuid>;
        /// Whether every caller may see the space.
        is_public: bool = default_if_null [is_judged: true], new: bool, patch: Change<bool>;
        /// When the space was created.
        #[serde(serialize_with = "time_text::time")]
        created_at: Timestamp = default_if_null;
        /// When the row last changed; never goes back.
        #[serde(serialize_with = "time_text::time")]
        updated_at: Timestamp = default_if_null;
    }
    new {
        /// A space to create.
        ///
        /// ```
        /// use townsquare::spaces::NewSpace;
        ///
        /// let space = NewSpace::named("Chess").description("Openings and endgames").public();
        /// assert_eq!((space.name.as_deref(), space.is_public), (Some("Chess"), true));
        /// ```
        #[derive(Default)]
        pub struct NewSpace;
    }
    patch {
        /// Changes of a space.
        ///
        /// ```
        /// use townsquare::spaces::SpacePatch;
        ///
        /// let patch = SpacePatch::new().name("Chess club").description(None).published();
        /// assert!(!patch.is_empty());
        /// ```
        pub struct SpacePatch;
    }
}

record! {
    /// A row of `fidgets`: a widget placed in a space.
    pub struct Fidget in "fidgets" {
        /// The primary key. A new row with a given id can be created again: the call returns the existing row.
        id: Uuid [is_key: true], new: Option<Uuid>;
        /// The space that the fidget is in.
        space_id: Option<Uuid> [is_judged: true];
        /// The type of widget. The table requires one.
        #[serde(rename = "type")]
        kind as "type": String, new: Option<String>, patch: Change<String>;
        /// The settings: any JSON value.
        config: Option<Value> [is_large: true], new: Option<Value>, patch: Change<Value>;
        /// The position in the space: any JSON value.
        position: Option<Value> [is_large: true], new: Option<Value>, patch: Change<Value>;
        /// When the fidget was created.
        #[serde(serialize_with = "time_text::time")]
        created_at: Timestamp = default_if_null;
        /// When the row last changed; never goes back.
        #[serde(serialize_with = "time_text::time")]
        updated_at: Timestamp = default_if_null;
    }
    new {
        /// A fidget to create.
        ///
        /// ```
        /// use townsquare::spaces::NewFidget;
        ///
        /// let fidget = NewFidget::of_type("clock").position(vec![0, 0, 4, 2]);
        /// assert_eq!((fidget.kind.as_deref(), fidget.config), (Some("clock"), None));
        /// ```
        #[derive(Default)]
        pub struct NewFidget;
    }
    patch {
        /// Changes of a fidget.
        ///
        /// ```
        /// use townsquare::spaces::FidgetPatch;
        ///
        /// let patch = FidgetPatch::new().kind("calendar").config(None);
        /// assert!(patch.position.is_keep());
        /// ```
        pub struct FidgetPatch;
    }
}

/// A space with its fidgets, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SpaceWithFidgets {
    /// The space.
    #[serde(flatten)]
    pub space: Space,
    /// Its fidgets.
    pub fidgets: Vec<Fidget>,
}

/// A public space with its owner.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PublicSpace {
    /// The space.
    #[serde(flatten)]
    pub space: Space,
    /// The owner; `None` for a space without one.
    pub owner: Option<Owner>,
    /// Whether the table has no `created_at` for the space. Such spaces come first.
    #[serde(skip)]
    pub(crate) has_null_time: bool,
}

impl PublicSpace {
    /// The position after this space in the list of public spaces.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let page = client.spaces().get_public_spaces(20, 0)?;
    /// // A cursor is `Copy`, so the page need not be kept for the next call.
    /// let last = page.last().map(|space| space.cursor());
    /// # Ok(())
    /// # }
    /// ```
    pub fn cursor(&self) -> PublicSpaceCursor {
        let time = if self.has_null_time { CursorTime::Null } else { CursorTime::At(self.space.created_at) };
        PublicSpaceCursor { id: self.space.id, time }
    }
}

/// A position in the list of public spaces: after one space. Converts from a [`PublicSpace`] and from an id.
///
/// The cursor of a [`PublicSpace`] stays valid when the space is deleted or unpublished. An id must name a space that is
/// public when the page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicSpaceCursor {
    pub(crate) id: Uuid,
    pub(crate) time: CursorTime,
}

/// The `created_at` of a cursor's space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CursorTime {
    At(Timestamp),
    Null,
    /// Only the id is known.
    Unknown,
}

impl From<&PublicSpace> for PublicSpaceCursor {
    fn from(space: &PublicSpace) -> PublicSpaceCursor {
        space.cursor()
    }
}

impl From<Uuid> for PublicSpaceCursor {
    fn from(id: Uuid) -> PublicSpaceCursor {
        PublicSpaceCursor { id, time: CursorTime::Unknown }
    }
}

/// A position in the list of a space's fidgets: after one fidget. Converts from a [`Fidget`] and from an id.
///
/// The cursor of a [`Fidget`] stays valid when the fidget is deleted. An id must name a fidget of the space when the page is
/// read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FidgetCursor {
    pub(crate) id: Uuid,
    /// `None` if only the id is known.
    pub(crate) created_at: Option<Timestamp>,
}

impl From<&Fidget> for FidgetCursor {
    fn from(fidget: &Fidget) -> FidgetCursor {
        FidgetCursor { id: fidget.id, created_at: Some(fidget.created_at) }
    }
}

impl From<Uuid> for FidgetCursor {
    fn from(id: Uuid) -> FidgetCursor {
        FidgetCursor { id, created_at: None }
    }
}

/// The owner of a public space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Owner {
    /// The user's id.
    pub id: Uuid,
    /// The user's e-mail address; `None` where the client does not expose it.
    pub email: Option<String>,
}

macro_rules! deref_to_space {
    ($($type:ty),*) => {$(
        impl std::ops::Deref for $type {
            type Target = Space;
            fn deref(&self) -> &Space {
                &self.space
            }
        }
    )*};
}

deref_to_space!(SpaceWithFidgets, PublicSpace);

impl NewSpace {
    /// A private space of the caller with this name.
    pub fn named(name: impl Into<String>) -> NewSpace {
        NewSpace { name: Some(name.into()), ..NewSpace::default() }
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> NewSpace {
        self.description = Some(description.into());
        self
    }

    /// Makes the space visible to every caller.
    pub fn public(mut self) -> NewSpace {
        self.is_public = true;
        self
    }

    /// Sets the owner.
    pub fn owned_by(mut self, owner: Uuid) -> NewSpace {
        self.owner_id = Some(owner);
        self
    }

    /// Sets the id, so that the call can be repeated. Only the service may take the id of a registered page, of a folder
    /// `spaces/<id>` that has files, or of a deleted space.
    pub fn with_id(mut self, id: Uuid) -> NewSpace {
        self.id = Some(id);
        self
    }
}

impl SpacePatch {
    /// Sets the name.
    pub fn name(mut self, name: impl Into<String>) -> SpacePatch {
        self.name = Change::Set(name.into());
        self
    }

    /// Sets the description; `None` clears it.
    pub fn description(mut self, description: Option<String>) -> SpacePatch {
        self.description = description.into();
        self
    }

    /// Makes the space visible to every caller.
    pub fn published(mut self) -> SpacePatch {
        self.is_public = Change::Set(true);
        self
    }

    /// Makes the space visible to its owner only.
    pub fn hidden(mut self) -> SpacePatch {
        self.is_public = Change::Set(false);
        self
    }
}

impl NewFidget {
    /// A fidget of this type.
    pub fn of_type(kind: impl Into<String>) -> NewFidget {
        NewFidget { kind: Some(kind.into()), ..NewFidget::default() }
    }

    /// Sets the settings.
    pub fn config(mut self, config: impl Into<Value>) -> NewFidget {
        self.config = Some(config.into());
        self
    }

    /// Sets the position.
    pub fn position(mut self, position: impl Into<Value>) -> NewFidget {
        self.position = Some(position.into());
        self
    }

    /// Sets the id, so that the call can be repeated.
    pub fn with_id(mut self, id: Uuid) -> NewFidget {
        self.id = Some(id);
        self
    }
}

impl FidgetPatch {
    /// Sets the type.
    pub fn kind(mut self, kind: impl Into<String>) -> FidgetPatch {
        self.kind = Change::Set(kind.into());
        self
    }

    /// Sets the settings; `None` clears them.
    pub fn config(mut self, config: Option<Value>) -> FidgetPatch {
        self.config = config.into();
        self
    }

    /// Sets the position; `None` clears it.
    pub fn position(mut self, position: Option<Value>) -> FidgetPatch {
        self.position = position.into();
        self
    }
}
