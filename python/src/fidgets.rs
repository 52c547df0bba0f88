//! Fidgets: the widgets of a space and their positions (SPEC 2.7), and the record `Fidget`.

use std::{collections::BTreeMap, sync::Arc};

use pyo3::{prelude::*, types::PyMapping};
use townsquare::{
    Json, Operation, Uuid,
    spaces::{FidgetCursor, FidgetPatch, MAX_LIMIT, NewFidget},
};

use crate::{
    area::area,
    argument::{IdArg, IntArg, LIMIT_RANGE, TextArg, Update, optional_text},
    client_share::ProcessClient,
    errors::{Failure, expected},
    json::{JsonArg, PyJson},
    record::{PyTime, RecordValue, record},
    rows::{RowArg, RowsArg, check_length},
    run::{MethodResult, NoValue},
};

/// The new positions of fidgets, by the ids of the fidgets.
type Positions = BTreeMap<Uuid, Option<Json>>;

area! {
    "Fidgets",
    #[doc = text_of!(Fidgets)]
    Fidgets,
    #[doc = text_of!(AsyncFidgets)]
    AsyncFidgets
}

#[pymethods]
impl Methods {
    #[doc = text_of!(Fidgets.create_fidget)]
    #[pyo3(signature = (space_id, r#type, *, config = JsonArg::NONE, position = JsonArg::NONE, id = None))]
    #[pyo3(text_signature = "($self, space_id, type, *, config=None, position=None, id=None)")]
    fn create_fidget<'py>(
        &self,
        py: Python<'py>,
        space_id: IdArg,
        r#type: Option<TextArg>,
        config: JsonArg,
        position: JsonArg,
        id: Option<IdArg>,
    ) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::CreateFidget, |client| async move {
            let fidget = new_fidget("", r#type, config, position, id)?;
            let created = client.get()?.fidgets().create_fidget(space_id.value("space_id")?, fidget).await?;
            Ok(Fidget::from(created))
        })
    }

    #[doc = text_of!(Fidgets.create_fidgets)]
    fn create_fidgets<'py>(&self, py: Python<'py>, space_id: IdArg, fidgets: RowsArg<'py>) -> MethodResult<'py> {
        let fidgets = fidgets.read(self.runner.client(), "fidgets", |row: &mut RowArg<'py>| {
            let (config, position) = (row.take("config")?, row.take("position")?);
            let (kind, id) = (row.take("type")?, row.take("id")?);
            let or_null = |json: Option<JsonArg>| json.unwrap_or(JsonArg::NONE);
            Ok(new_fidget(&row.path(""), kind, or_null(config), or_null(position), id))
        })?;
        self.runner.run_write(py, Operation::CreateFidgets, |client| async move {
            let space_id = space_id.value("space_id")?;
            Ok(records(client.get()?.fidgets().create_fidgets(space_id, fidgets?).await?))
        })
    }

    #[doc = text_of!(Fidgets.save_positions)]
    fn save_positions<'py>(&self, py: Python<'py>, space_id: IdArg, positions: PositionsArg<'py>) -> MethodResult<'py> {
        let positions = positions.read(self.runner.client(), "positions")?;
        self.runner.run_write(py, Operation::SavePositions, |client| async move {
            let (space_id, positions) = (space_id.value("space_id")?, positions?);
            Ok(records(client.get()?.fidgets().save_positions(space_id, positions).await?))
        })
    }

    #[doc = text_of!(Fidgets.get_fidget)]
    fn get_fidget<'py>(&self, py: Python<'py>, id: IdArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetFidget, |client| async move {
            Ok(Fidget::from(client.get()?.fidgets().get_fidget(id.value("id")?).await?))
        })
    }

    #[doc = text_of!(Fidgets.update_fidget)]
    #[pyo3(signature = (id, *, r#type = Update::Keep, config = Update::Keep, position = Update::Keep))]
    #[pyo3(text_signature = "($self, id, *, type=..., config=..., position=...)")]
    fn update_fidget<'py>(
        &self,
        py: Python<'py>,
        id: IdArg,
        r#type: Update<TextArg>,
        config: Update<JsonArg>,
        position: Update<JsonArg>,
    ) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::UpdateFidget, |client| async move {
            let mut patch = FidgetPatch::new();
            patch.kind = r#type.text("type")?;
            patch.config = config.json("config")?;
            patch.position = position.json("position")?;
            Ok(Fidget::from(client.get()?.fidgets().update_fidget(id.value("id")?, patch).await?))
        })
    }

    #[doc = text_of!(Fidgets.delete_fidget)]
    fn delete_fidget<'py>(&self, py: Python<'py>, id: IdArg) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::DeleteFidget, |client| async move {
            client.get()?.fidgets().delete_fidget(id.value("id")?).await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Fidgets.get_space_fidgets)]
    #[pyo3(signature = (space_id, limit = None, *, after = None))]
    fn get_space_fidgets<'py>(
        &self,
        py: Python<'py>,
        space_id: IdArg,
        limit: Option<IntArg<u32>>,
        after: Option<AfterArg>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::GetSpaceFidgets, |client| async move {
            let space_id = space_id.value("space_id")?;
            let limit = limit.map(|limit| limit.value("limit", LIMIT_RANGE)).transpose()?;
            let after = after.map(AfterArg::value).transpose()?;
            let fidgets = client.get()?.fidgets();
            Ok(records(match (limit, after) {
                (None, None) => fidgets.get_space_fidgets(space_id).await?,
                (limit, after) => fidgets.get_space_fidgets_after(space_id, limit.unwrap_or(MAX_LIMIT), after).await?,
            }))
        })
    }
}

/// A position in the list of a space's fidgets: a `Fidget`, or the id of one.
enum AfterArg {
    Fidget(FidgetCursor),
    Id(IdArg),
}

impl AfterArg {
    /// # Errors
    /// `InvalidInput` for a string that is not a UUID.
    fn value(self) -> Result<FidgetCursor, Failure> {
        match self {
            AfterArg::Fidget(cursor) => Ok(cursor),
            AfterArg::Id(id) => Ok(id.value("after")?.into()),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for AfterArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<AfterArg> {
        if let Ok(fidget) = value.cast::<Fidget>() {
            return Ok(match &fidget.get().0 {
                RecordValue::Core(fidget) => AfterArg::Fidget((&**fidget).into()),
                RecordValue::Attributes(_) => AfterArg::Id(fidget.getattr("id")?.extract()?),
            });
        }
        let id = value.extract().map_err(|_: PyErr| expected("a Fidget, a UUID or its text", &value));
        id.map(AfterArg::Id)
    }
}

/// `prefix` precedes the argument's name in error messages: `fidgets[2].`.
fn new_fidget(
    prefix: &str,
    kind: Option<TextArg>,
    config: JsonArg,
    position: JsonArg,
    id: Option<IdArg>,
) -> Result<NewFidget, Failure> {
    let mut fidget = NewFidget::default();
    fidget.kind = optional_text(kind, &format!("{prefix}type"))?;
    fidget.config = config.value(&format!("{prefix}config"))?;
    fidget.position = position.value(&format!("{prefix}position"))?;
    fidget.id = id.map(|id| id.value(&format!("{prefix}id"))).transpose()?;
    Ok(fidget)
}

/// A mapping of fidget ids to positions. No item of a mapping that is too long is touched.
pub(crate) struct PositionsArg<'py>(Bound<'py, PyMapping>);

impl<'py> PositionsArg<'py> {
    /// # Errors
    /// `TypeError` for a key of a wrong type. The operation returns the inner error: `TooLarge` for more positions than the
    /// client's option `max_bulk_rows`; `InvalidInput` for a key that is not a UUID or is there twice, and for a position that
    /// is not JSON.
    fn read(self, client: &ProcessClient, name: &str) -> PyResult<Result<Positions, Failure>> {
        if let Err(failure) = check_length(client, name, &self.0)? {
            return Ok(Err(failure));
        }
        let items = self.0.items()?;
        let items = items.iter().map(|item| item.extract()).collect::<PyResult<_>>()?;
        Ok(positions(items, name))
    }
}

fn positions(items: Vec<(IdArg, JsonArg)>, name: &str) -> Result<Positions, Failure> {
    let mut positions = Positions::new();
    for (id, position) in items {
        let id = id.value(&format!("A key of {name}"))?;
        if positions.insert(id, position.value(&format!("{name}[{id}]"))?).is_some() {
            return Err(Failure::invalid_input(format!("{name} has {id} twice")));
        }
    }
    Ok(positions)
}

impl<'py> FromPyObject<'_, 'py> for PositionsArg<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<PositionsArg<'py>> {
        match value.cast::<PyMapping>() {
            Ok(mapping) => Ok(PositionsArg(mapping.to_owned())),
            Err(_) => Err(expected("a mapping", &value)),
        }
    }
}

record! {
    #[doc = text_of!(Fidget)]
    // Shared, so that a list of fidgets copies no JSON.
    Fidget(Arc<townsquare::spaces::Fidget>) [] as fidget, hash [id] => {
        /// Primary key.
        id: "UUID" = fidget.id,
        /// The space that holds the fidget.
        space_id: "Optional[UUID]" = fidget.space_id,
        /// The widget's type.
        r#type: "str" = &fidget.kind,
        /// Settings, as JSON. Each read returns a new value.
        config: "Any" = fidget.config.as_ref().map(PyJson),
        /// Position, as JSON. Each read returns a new value.
        position: "Any" = fidget.position.as_ref().map(PyJson),
        /// When the row was inserted, UTC.
        created_at: "datetime" = PyTime(fidget.created_at),
        /// When the row last changed, UTC.
        updated_at: "datetime" = PyTime(fidget.updated_at),
    }
}

impl From<townsquare::spaces::Fidget> for Fidget {
    fn from(fidget: townsquare::spaces::Fidget) -> Fidget {
        Fidget::from(Arc::new(fidget))
    }
}

/// The records of fidgets.
pub(crate) fn records(fidgets: Vec<townsquare::spaces::Fidget>) -> Vec<Fidget> {
    fidgets.into_iter().map(Fidget::from).collect()
}
