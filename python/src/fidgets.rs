//! Fidgets: the widgets of a space, and where they stand (SPEC 2.7).
//!
//! Invariant: as in every area, a method names a future of the core and hands it to the door.

use pyo3::prelude::*;
use townsquare::{FidgetPatch, NewFidget, Operation};

use crate::{
    area::area,
    argument::{Id, Mappings, Members, Places, Text, Update, optional},
    convert::Nothing,
    errors::Failure,
    fidget::{Fidget, list},
    json::Given,
};

area! {
    "FidgetsMethods",
    /// The fidgets of spaces: `Client.fidgets`.
    Fidgets,
    /// The fidgets of spaces: `AsyncClient.fidgets`.
    AsyncFidgets
}

#[pymethods]
impl Methods {
    /// Places a fidget in a space and returns it.
    #[pyo3(signature = (space_id, r#type, *, config = Given::NONE, position = Given::NONE))]
    #[pyo3(text_signature = "($self, space_id, type, *, config=None, position=None)")]
    fn create_fidget<'py>(
        &self,
        py: Python<'py>,
        space_id: Id,
        r#type: Option<Text>,
        config: Given,
        position: Given,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::CreateFidget, |handle| async move {
            let fidget = new_fidget("", r#type, config, position)?;
            let created = handle.client()?.fidgets().create_fidget(space_id.named("space_id")?, fidget).await?;
            Ok(Fidget::from(created))
        })
    }

    /// Places fidgets in a space, all or none: a mapping of `create_fidget`'s arguments for each.
    fn create_fidgets<'py>(
        &self,
        py: Python<'py>,
        space_id: Id,
        fidgets: Mappings<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fidgets = fidgets.read("fidgets", |members: &mut Members<'py>| {
            let (config, position) = (members.take("config")?, members.take("position")?);
            let kind = members.take("type")?;
            let or_none = |json: Option<Given>| json.unwrap_or(Given::NONE);
            Ok(new_fidget(&members.path(""), kind, or_none(config), or_none(position)))
        })?;
        self.door.enter(py, Operation::CreateFidgets, |handle| async move {
            let space_id = space_id.named("space_id")?;
            Ok(list(handle.client()?.fidgets().create_fidgets(space_id, fidgets?).await?))
        })
    }

    /// Saves the positions of a space's fidgets, all or none.
    fn save_positions<'py>(&self, py: Python<'py>, space_id: Id, positions: Places) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::SavePositions, |handle| async move {
            let (space_id, positions) = (space_id.named("space_id")?, positions.named("positions")?);
            Ok(list(handle.client()?.fidgets().save_positions(space_id, positions).await?))
        })
    }

    /// One fidget by id.
    fn get_fidget<'py>(&self, py: Python<'py>, id: Id) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::GetFidget, |handle| async move {
            Ok(Fidget::from(handle.client()?.fidgets().get_fidget(id.named("id")?).await?))
        })
    }

    /// Changes what is given, and nothing else, and returns the row.
    #[pyo3(signature = (id, *, r#type = Update::Keep, config = Update::Keep, position = Update::Keep))]
    #[pyo3(text_signature = "($self, id, *, type=..., config=..., position=...)")]
    fn update_fidget<'py>(
        &self,
        py: Python<'py>,
        id: Id,
        r#type: Update<Text>,
        config: Update<Given>,
        position: Update<Given>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::UpdateFidget, |handle| async move {
            let mut patch = FidgetPatch::new();
            patch.kind = r#type.text("type")?;
            patch.config = config.json("config")?;
            patch.position = position.json("position")?;
            Ok(Fidget::from(handle.client()?.fidgets().update_fidget(id.named("id")?, patch).await?))
        })
    }

    /// Takes a fidget out of its space.
    fn delete_fidget<'py>(&self, py: Python<'py>, id: Id) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::DeleteFidget, |handle| async move {
            handle.client()?.fidgets().delete_fidget(id.named("id")?).await?;
            Ok(Nothing)
        })
    }

    /// The fidgets of a space, oldest first.
    fn get_space_fidgets<'py>(&self, py: Python<'py>, space_id: Id) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter_detached(py, Operation::GetSpaceFidgets, |handle| async move {
            Ok(list(handle.client()?.fidgets().get_space_fidgets(space_id.named("space_id")?).await?))
        })
    }
}

/// `within` stands before the names of arguments in complaints.
fn new_fidget(within: &str, kind: Option<Text>, config: Given, position: Given) -> Result<NewFidget, Failure> {
    let mut fidget = NewFidget::default();
    fidget.kind = optional(kind, &format!("{within}type"))?;
    fidget.config = config.named(&format!("{within}config"))?;
    fidget.position = position.named(&format!("{within}position"))?;
    Ok(fidget)
}
