//! Spaces: row operations by id and the lists (SPEC 4.5).
//!
//! Invariant: as in every area, a method names a future of the core and hands it to the door.

use pyo3::prelude::*;
use townsquare::{DEFAULT_PAGE, NewSpace, Operation, SpacePatch};

use crate::{
    area::area,
    argument::{Id, Mappings, Members, Text, Update, Whole, optional},
    convert::{Count, Nothing},
    errors::Failure,
    space::{Full, Public, Space, Table},
};

/// The core's bound of a list.
const MOST: u32 = 1_000;

area! {
    "SpacesMethods",
    /// Spaces: `Client.spaces`.
    Spaces,
    /// Spaces: `AsyncClient.spaces`.
    AsyncSpaces
}

#[pymethods]
impl Methods {
    /// Inserts a space and returns it.
    #[pyo3(signature = (name, *, description = None, is_public = false, owner_id = None))]
    fn create_space<'py>(
        &self,
        py: Python<'py>,
        name: Option<Text>,
        description: Option<Text>,
        is_public: bool,
        owner_id: Option<Id>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let space = new_space("", name, description, is_public, owner_id);
        self.door.enter(py, Operation::CreateSpace, |handle| async move {
            Ok(Space(handle.client()?.spaces().create_space(space?).await?))
        })
    }

    /// Inserts spaces, all or none: a mapping of `create_space`'s arguments for each.
    fn create_spaces<'py>(&self, py: Python<'py>, spaces: Mappings<'py>) -> PyResult<Bound<'py, PyAny>> {
        let spaces = spaces.read("spaces", |members: &mut Members<'py>| {
            let is_public = members.take("is_public")?.unwrap_or(false);
            let (name, description, owner_id) =
                (members.take("name")?, members.take("description")?, members.take("owner_id")?);
            Ok(new_space(&members.path(""), name, description, is_public, owner_id))
        })?;
        self.door.enter(py, Operation::CreateSpaces, |handle| async move {
            let created = handle.client()?.spaces().create_spaces(spaces?).await?;
            Ok(created.into_iter().map(Space).collect::<Vec<_>>())
        })
    }

    /// One space by id.
    fn get_space<'py>(&self, py: Python<'py>, id: Id) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::GetSpace, |handle| async move {
            Ok(Space(handle.client()?.spaces().get_space(id.named("id")?).await?))
        })
    }

    /// Changes what is given, and nothing else, and returns the row.
    #[pyo3(signature = (id, *, name = Update::Keep, description = Update::Keep, is_public = Update::Keep))]
    #[pyo3(text_signature = "($self, id, *, name=..., description=..., is_public=...)")]
    fn update_space<'py>(
        &self,
        py: Python<'py>,
        id: Id,
        name: Update<Text>,
        description: Update<Text>,
        is_public: Update<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::UpdateSpace, |handle| async move {
            let mut patch = SpacePatch::new();
            patch.name = name.text("name")?;
            patch.description = description.text("description")?;
            patch.is_public = is_public.flag()?;
            Ok(Space(handle.client()?.spaces().update_space(id.named("id")?, patch).await?))
        })
    }

    /// Deletes a space and its fidgets.
    fn delete_space<'py>(&self, py: Python<'py>, id: Id) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::DeleteSpace, |handle| async move {
            handle.client()?.spaces().delete_space(id.named("id")?).await?;
            Ok(Nothing)
        })
    }

    /// A user's spaces with their fidgets, newest first.
    fn get_user_spaces<'py>(&self, py: Python<'py>, user_id: Id) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter_detached(py, Operation::GetUserSpaces, |handle| async move {
            let spaces = handle.client()?.spaces().get_user_spaces(user_id.named("user_id")?).await?;
            Ok(Table(spaces.into_iter().map(Full).collect()))
        })
    }

    /// Public spaces with their owners, newest first: rows `offset` to `offset + limit - 1`.
    #[pyo3(signature = (limit = Count::of(DEFAULT_PAGE), offset = Whole::of(0)))]
    #[pyo3(text_signature = "($self, limit=20, offset=0)")]
    fn get_public_spaces<'py>(&self, py: Python<'py>, limit: Count, offset: Whole<u64>) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter_detached(py, Operation::GetPublicSpaces, |handle| async move {
            let offset = offset.named("offset", "0 to 9223372036854775807")?;
            let spaces = handle.client()?.spaces().get_public_spaces(limit.get("limit", MOST)?, offset).await?;
            Ok(Table(spaces.into_iter().map(Public).collect()))
        })
    }

    /// One space with its fidgets; only a space that has a fidget matches.
    fn get_space_with_fidgets<'py>(&self, py: Python<'py>, id: Id) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter_detached(py, Operation::GetSpaceWithFidgets, |handle| async move {
            Ok(Full(handle.client()?.spaces().get_space_with_fidgets(id.named("id")?).await?))
        })
    }
}

/// `within` stands before the names of arguments in complaints.
fn new_space(
    within: &str,
    name: Option<Text>,
    description: Option<Text>,
    is_public: bool,
    owner_id: Option<Id>,
) -> Result<NewSpace, Failure> {
    let mut space = NewSpace::default();
    space.name = optional(name, &format!("{within}name"))?;
    space.description = optional(description, &format!("{within}description"))?;
    space.is_public = is_public;
    space.owner_id = owner_id.map(|id| id.named(&format!("{within}owner_id"))).transpose()?;
    Ok(space)
}
