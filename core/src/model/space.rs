//! Spaces, their fidgets, and what is given to make or change them (SPEC 2.6, 2.7, 4.5).

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::change::Change;

/// A row of `spaces`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Space {
    /// Primary key.
    pub id: Uuid,
    /// Display name.
    pub name: String,
    /// What it is about.
    pub description: Option<String>,
    /// The user it belongs to.
    pub owner_id: Option<Uuid>,
    /// Whether everyone may see it.
    pub is_public: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed; never goes back.
    pub updated_at: Timestamp,
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

/// A public space with its owner (SPEC 4.5).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PublicSpace {
    /// The space.
    #[serde(flatten)]
    pub space: Space,
    /// Whose it is; `None` for a space without an owner.
    pub owner: Option<Owner>,
}

/// The owner of a public space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Owner {
    /// The user's id.
    pub id: Uuid,
    /// The user's address; `None` where the client does not expose it.
    pub email: Option<String>,
}

/// A row of `fidgets`: a widget placed in a space.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Fidget {
    /// Primary key.
    pub id: Uuid,
    /// The space it is in.
    pub space_id: Option<Uuid>,
    /// What kind of widget it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its settings.
    pub config: Option<Value>,
    /// Where it is.
    pub position: Option<Value>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed; never goes back.
    pub updated_at: Timestamp,
}

macro_rules! derefs_to_space {
    ($($type:ty),*) => {$(
        impl std::ops::Deref for $type {
            type Target = Space;
            fn deref(&self) -> &Space {
                &self.space
            }
        }
    )*};
}

derefs_to_space!(SpaceWithFidgets, PublicSpace);

/// A space to be made.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct NewSpace {
    /// Display name; required by the table.
    pub name: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// Whether everyone may see it.
    pub is_public: bool,
    /// Whose it is; the caller when absent. Only the service may name somebody else.
    pub owner_id: Option<Uuid>,
}

impl NewSpace {
    /// A private space of the caller's.
    pub fn named(name: impl Into<String>) -> NewSpace {
        NewSpace { name: Some(name.into()), ..NewSpace::default() }
    }

    /// Says what it is about.
    pub fn description(mut self, description: impl Into<String>) -> NewSpace {
        self.description = Some(description.into());
        self
    }

    /// Lets everyone see it.
    pub fn public(mut self) -> NewSpace {
        self.is_public = true;
        self
    }

    /// Names its owner.
    pub fn owned_by(mut self, owner: Uuid) -> NewSpace {
        self.owner_id = Some(owner);
        self
    }
}

/// What changes of a space.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct SpacePatch {
    /// Display name; the table refuses to be without.
    pub name: Change<String>,
    /// What it is about.
    pub description: Change<String>,
    /// Whether everyone may see it.
    pub is_public: Change<bool>,
}

impl SpacePatch {
    /// A patch that changes nothing.
    pub fn new() -> SpacePatch {
        SpacePatch::default()
    }

    /// Renames it.
    pub fn name(mut self, name: impl Into<String>) -> SpacePatch {
        self.name = Change::Set(name.into());
        self
    }

    /// Sets or, with `None`, clears the description.
    pub fn description(mut self, description: Option<String>) -> SpacePatch {
        self.description = description.into();
        self
    }

    /// Shows it to everyone.
    pub fn published(mut self) -> SpacePatch {
        self.is_public = Change::Set(true);
        self
    }

    /// Hides it from everyone but its owner.
    pub fn hidden(mut self) -> SpacePatch {
        self.is_public = Change::Set(false);
        self
    }
}

/// A fidget to be made.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct NewFidget {
    /// What kind of widget it is; required by the table.
    pub kind: Option<String>,
    /// Its settings: any JSON value.
    pub config: Option<Value>,
    /// Where it is: any JSON value.
    pub position: Option<Value>,
}

impl NewFidget {
    /// A fidget of this type.
    pub fn of_type(kind: impl Into<String>) -> NewFidget {
        NewFidget { kind: Some(kind.into()), ..NewFidget::default() }
    }

    /// Gives it settings.
    pub fn config(mut self, config: impl Into<Value>) -> NewFidget {
        self.config = Some(config.into());
        self
    }

    /// Places it.
    pub fn position(mut self, position: impl Into<Value>) -> NewFidget {
        self.position = Some(position.into());
        self
    }
}

/// What changes of a fidget.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct FidgetPatch {
    /// What kind of widget it is; the table refuses to be without.
    pub kind: Change<String>,
    /// Its settings.
    pub config: Change<Value>,
    /// Where it is.
    pub position: Change<Value>,
}

impl FidgetPatch {
    /// A patch that changes nothing.
    pub fn new() -> FidgetPatch {
        FidgetPatch::default()
    }

    /// Makes it another kind of widget.
    pub fn kind(mut self, kind: impl Into<String>) -> FidgetPatch {
        self.kind = Change::Set(kind.into());
        self
    }

    /// Sets or, with `None`, clears its settings.
    pub fn config(mut self, config: Option<Value>) -> FidgetPatch {
        self.config = config.into();
        self
    }

    /// Moves it or, with `None`, takes its place away.
    pub fn position(mut self, position: Option<Value>) -> FidgetPatch {
        self.position = position.into();
        self
    }
}
