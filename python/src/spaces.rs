//! Spaces: rows and lists (SPEC 2.6, 4.5), and the records `Space`, `SpaceWithFidgets`, `PublicSpace` and `Owner`.

use std::sync::Arc;

use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList},
};
use townsquare::{
    Operation,
    spaces::{DEFAULT_PAGE, NewSpace, PublicSpaceCursor, PublicSpaces, SpacePatch},
};

use crate::{
    area::area,
    argument::{
        AfterArg, FlagArg, FlagUpdate, IdArg, IntArg, KeyedRecord, LIMIT_RANGE, LIST_PAGE, NewFlag, TextArg, Update,
        optional_text,
    },
    errors::{Failure, expected},
    fidgets::{self, Fidget},
    iteration::iteration,
    record::{PyTime, RecordValue, annotations, given, record},
    rows::{RowArg, RowsArg},
    run::{MethodResult, NoValue},
};

area! {
    "Spaces",
    #[doc = text_of!(Spaces)]
    Spaces,
    #[doc = text_of!(AsyncSpaces)]
    AsyncSpaces
}

#[pymethods]
impl Methods {
    #[doc = text_of!(Spaces.create_space)]
    #[pyo3(signature = (name, *, description = None, is_public = NewFlag::FALSE, owner_id = None, id = None))]
    #[pyo3(text_signature = "($self, name, *, description=None, is_public=False, owner_id=None, id=None)")]
    fn create_space<'py>(
        &self,
        py: Python<'py>,
        name: Option<TextArg>,
        description: Option<TextArg>,
        is_public: NewFlag,
        owner_id: Option<IdArg>,
        id: Option<IdArg>,
    ) -> MethodResult<'py> {
        let space = new_space("", name, description, is_public, owner_id, id);
        self.runner.run_write(py, Operation::CreateSpace, |client| async move {
            Ok(Space::from(client.get()?.spaces().create_space(space?).await?))
        })
    }

    #[doc = text_of!(Spaces.create_spaces)]
    fn create_spaces<'py>(&self, py: Python<'py>, spaces: RowsArg<'py>) -> MethodResult<'py> {
        let spaces = spaces.read(self.runner.client(), "spaces", |row: &mut RowArg<'py>| {
            let is_public = row.take_given("is_public")?.unwrap_or(NewFlag::FALSE);
            let (name, description) = (row.take("name")?, row.take("description")?);
            let (owner_id, id) = (row.take("owner_id")?, row.take("id")?);
            Ok(new_space(&row.path(""), name, description, is_public, owner_id, id))
        })?;
        self.runner.run_write(py, Operation::CreateSpaces, |client| async move {
            let created = client.get()?.spaces().create_spaces(spaces?).await?;
            Ok(created.into_iter().map(Space::from).collect::<Vec<_>>())
        })
    }

    #[doc = text_of!(Spaces.get_space)]
    fn get_space<'py>(&self, py: Python<'py>, id: IdArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetSpace, |client| async move {
            Ok(Space::from(client.get()?.spaces().get_space(id.value("id")?).await?))
        })
    }

    #[doc = text_of!(Spaces.update_space)]
    #[pyo3(signature = (id, *, name = Update::Keep, description = Update::Keep, is_public = FlagUpdate::KEEP))]
    #[pyo3(text_signature = "($self, id, *, name=..., description=..., is_public=...)")]
    fn update_space<'py>(
        &self,
        py: Python<'py>,
        id: IdArg,
        name: Update<TextArg>,
        description: Update<TextArg>,
        is_public: FlagUpdate,
    ) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::UpdateSpace, |client| async move {
            let mut patch = SpacePatch::new();
            patch.name = name.text("name")?;
            patch.description = description.text("description")?;
            patch.is_public = is_public.0;
            Ok(Space::from(client.get()?.spaces().update_space(id.value("id")?, patch).await?))
        })
    }

    #[doc = text_of!(Spaces.delete_space)]
    fn delete_space<'py>(&self, py: Python<'py>, id: IdArg) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::DeleteSpace, |client| async move {
            client.get()?.spaces().delete_space(id.value("id")?).await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Spaces.get_user_spaces)]
    fn get_user_spaces<'py>(&self, py: Python<'py>, user_id: IdArg) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::GetUserSpaces, |client| async move {
            let spaces = client.get()?.spaces().get_user_spaces(user_id.value("user_id")?).await?;
            Ok(PySpaceList(spaces.into_iter().map(PySpaceWithFidgets).collect()))
        })
    }

    #[doc = text_of!(Spaces.get_public_spaces)]
    #[pyo3(signature = (limit = IntArg::of(DEFAULT_PAGE), offset = IntArg::of(0), *, after = None))]
    #[pyo3(text_signature = "($self, limit=20, offset=0, *, after=None)")]
    fn get_public_spaces<'py>(
        &self,
        py: Python<'py>,
        limit: IntArg<u32>,
        offset: IntArg<u64>,
        after: Option<PublicSpaceArg>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::GetPublicSpaces, |client| async move {
            let offset = offset.value("offset", "0 to 9223372036854775807")?;
            let limit = limit.value("limit", LIMIT_RANGE)?;
            let spaces = client.get()?.spaces();
            let page = match after.map(PublicSpaceArg::value).transpose()? {
                Some(_) if offset != 0 => return Err(Failure::invalid_input("after and offset exclude each other")),
                Some(after) => spaces.get_public_spaces_after(limit, after).await?,
                None => spaces.get_public_spaces(limit, offset).await?,
            };
            Ok(PySpaceList(page.into_iter().map(PyPublicSpace).collect()))
        })
    }

    #[doc = text_of!(Spaces.iter_public_spaces)]
    #[pyo3(signature = (page_size = IntArg::of(ITERATION_PAGE)))]
    #[pyo3(text_signature = "($self, page_size=100)")]
    fn iter_public_spaces<'py>(&self, py: Python<'py>, page_size: IntArg<u32>) -> MethodResult<'py> {
        let spaces = || {
            let page_size = page_size.value("page_size", LIMIT_RANGE)?;
            Ok(self.runner.client().get()?.spaces().iter_public_spaces(page_size))
        };
        let spaces =
            spaces().map_err(|failure: Failure| failure.into_exception(py, Some(Operation::GetPublicSpaces)))?;
        NextSpace::iterator(py, spaces, &self.runner)
    }

    #[doc = text_of!(Spaces.get_space_with_fidgets)]
    #[pyo3(signature = (id, *, allow_empty = FlagArg(false)))]
    #[pyo3(text_signature = "($self, id, *, allow_empty=False)")]
    fn get_space_with_fidgets<'py>(&self, py: Python<'py>, id: IdArg, allow_empty: FlagArg) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::GetSpaceWithFidgets, move |client| async move {
            let (spaces, id) = (client.get()?.spaces(), id.value("id")?);
            Ok(PySpaceWithFidgets(if allow_empty.0 {
                spaces.get_space_with_any_fidgets(id).await?
            } else {
                spaces.get_space_with_fidgets(id).await?
            }))
        })
    }

    #[doc = text_of!(Spaces.list_spaces)]
    #[pyo3(signature = (limit = IntArg::of(LIST_PAGE), *, after = None))]
    #[pyo3(text_signature = "($self, limit=100, *, after=None)")]
    fn list_spaces<'py>(
        &self,
        py: Python<'py>,
        limit: IntArg<u32>,
        after: Option<AfterArg<Space>>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::ListSpaces, |client| async move {
            let (limit, after) = (limit.value("limit", LIMIT_RANGE)?, after.map(AfterArg::value).transpose()?);
            let rows = client.get()?.spaces().list_spaces(limit, after).await?;
            Ok(rows.into_iter().map(Space::from).collect::<Vec<_>>())
        })
    }

    #[doc = text_of!(Spaces.set_owner)]
    fn set_owner<'py>(&self, py: Python<'py>, id: IdArg, owner_id: IdArg) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::SetOwner, |client| async move {
            let (id, owner_id) = (id.value("id")?, owner_id.value("owner_id")?);
            Ok(Space::from(client.get()?.spaces().set_owner(id, owner_id).await?))
        })
    }
}

/// The default `page_size` of `iter_public_spaces`.
const ITERATION_PAGE: u32 = 100;

/// A position in the list of public spaces: a `PublicSpace`, or the id of one.
enum PublicSpaceArg {
    Space(PublicSpaceCursor),
    Id(IdArg),
}

impl PublicSpaceArg {
    /// # Errors
    /// `InvalidInput` for a string that is not a UUID.
    fn value(self) -> Result<PublicSpaceCursor, Failure> {
        match self {
            PublicSpaceArg::Space(cursor) => Ok(cursor),
            PublicSpaceArg::Id(id) => Ok(id.value("after")?.into()),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for PublicSpaceArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<PublicSpaceArg> {
        if let Ok(space) = value.cast::<PublicSpace>() {
            return Ok(match space.get().cursor {
                Some(cursor) => PublicSpaceArg::Space(cursor),
                None => PublicSpaceArg::Id(space.getattr("id")?.extract()?),
            });
        }
        let id = value.extract().map_err(|_: PyErr| expected("a PublicSpace, a UUID or its text", &value));
        id.map(PublicSpaceArg::Id)
    }
}

iteration!(
    NextSpace: PublicSpaces as townsquare::spaces::PublicSpace, Operation::GetPublicSpaces, PyPublicSpace, PublicSpaceIterator,
    AsyncPublicSpaceIterator
);

/// `prefix` precedes the argument's name in error messages: `spaces[2].`.
fn new_space(
    prefix: &str,
    name: Option<TextArg>,
    description: Option<TextArg>,
    is_public: NewFlag,
    owner_id: Option<IdArg>,
    id: Option<IdArg>,
) -> Result<NewSpace, Failure> {
    let mut space = NewSpace::default();
    space.name = optional_text(name, &format!("{prefix}name"))?;
    space.description = optional_text(description, &format!("{prefix}description"))?;
    space.is_public = is_public.value("is_public")?;
    space.owner_id = owner_id.map(|id| id.value(&format!("{prefix}owner_id"))).transpose()?;
    space.id = id.map(|id| id.value(&format!("{prefix}id"))).transpose()?;
    Ok(space)
}

record! {
    #[doc = text_of!(Space)]
    Space(townsquare::spaces::Space) [subclass] as space, hash [id] => {
        /// Primary key.
        id: "UUID" = space.id,
        /// Display name.
        name: "str" = &space.name,
        /// Description.
        description: "Optional[str]" = space.description.as_deref(),
        /// The user who owns the space.
        owner_id: "Optional[UUID]" = space.owner_id,
        /// Whether every caller sees the space.
        is_public: "bool" = space.is_public,
        /// When the row was inserted, UTC.
        created_at: "datetime" = PyTime(space.created_at),
        /// When the row last changed, UTC.
        updated_at: "datetime" = PyTime(space.updated_at),
    }
}

record! {
    #[doc = text_of!(Owner)]
    Owner(townsquare::spaces::Owner) [] as owner, hash [id] => {
        /// The user's id.
        id: "UUID" = owner.id,
        /// The user's address; None when `expose_owner_email` is off.
        email: "Optional[str]" = owner.email.as_deref(),
    }
}

/// Declares a subclass of `Space` with one more attribute. It has the methods of `Space`, which read its attributes too.
macro_rules! space_with {
    (
        $(#[$about:meta])* $name:ident,
        $(#[doc = $doc:literal])* $field:ident: $python_type:literal = $value:ty $(, without attribute $hidden:ident: $type:ty)?
    ) => {
        $(#[$about])*
        #[pyclass(frozen, extends = Space, module = "townsquare")]
        pub(crate) struct $name {
            $field: RecordValue<$value>,
            $($hidden: Option<$type>,)?
        }

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (id, name, description, owner_id, is_public, created_at, updated_at, $field))]
            #[expect(clippy::too_many_arguments, reason = "one for each field")]
            fn __new__(
                id: Py<PyAny>,
                name: Py<PyAny>,
                description: Py<PyAny>,
                owner_id: Py<PyAny>,
                is_public: Py<PyAny>,
                created_at: Py<PyAny>,
                updated_at: Py<PyAny>,
                $field: Py<PyAny>,
            ) -> PyClassInitializer<$name> {
                let space = Space::__new__(id, name, description, owner_id, is_public, created_at, updated_at);
                let $field = RecordValue::Attributes(Arc::new([$field]));
                PyClassInitializer::from(space).add_subclass($name { $field, $($hidden: None)? })
            }

            #[classattr]
            fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                Space::__match_args__(py)?.add((stringify!($field),))
            }

            #[classattr]
            fn __annotations__(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
                annotations(py, &[(stringify!($field), $python_type)])
            }

            $(#[doc = $doc])*
            #[getter]
            fn $field<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
                match &self.$field {
                    RecordValue::Core(value) => value.clone().into_bound_py_any(py),
                    RecordValue::Attributes(attributes) => {
                        Ok(given(py, attributes, &[stringify!($field)], stringify!($field)))
                    }
                }
            }
        }
    };
}

space_with! {
    #[doc = text_of!(SpaceWithFidgets)]
    SpaceWithFidgets,
    /// The space's fidgets, oldest first.
    fidgets: "list[Fidget]" = Vec<Fidget>
}

space_with! {
    #[doc = text_of!(PublicSpace)]
    PublicSpace,
    /// The owner; None for a space without one.
    owner: "Optional[Owner]" = Option<Owner>,
    without attribute cursor: PublicSpaceCursor
}

/// Converts to a `SpaceWithFidgets` object.
struct PySpaceWithFidgets(townsquare::spaces::SpaceWithFidgets);

impl<'py> IntoPyObject<'py> for PySpaceWithFidgets {
    type Target = SpaceWithFidgets;
    type Output = Bound<'py, SpaceWithFidgets>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let fidgets = SpaceWithFidgets { fidgets: RecordValue::Core(fidgets::records(self.0.fidgets)) };
        Bound::new(py, PyClassInitializer::from(Space::from(self.0.space)).add_subclass(fidgets))
    }
}

/// Converts to a `PublicSpace` object.
struct PyPublicSpace(townsquare::spaces::PublicSpace);

impl<'py> IntoPyObject<'py> for PyPublicSpace {
    type Target = PublicSpace;
    type Output = Bound<'py, PublicSpace>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let cursor = Some(self.0.cursor());
        let public = PublicSpace { owner: RecordValue::Core(self.0.owner.map(Owner::from)), cursor };
        Bound::new(py, PyClassInitializer::from(Space::from(self.0.space)).add_subclass(public))
    }
}

/// Converts to a `SpaceList`, which a notebook shows as a table.
struct PySpaceList<T>(Vec<T>);

impl<'py, T: IntoPyObject<'py>> IntoPyObject<'py> for PySpaceList<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> MethodResult<'py> {
        static LIST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let spaces = PyList::empty(py);
        for space in self.0 {
            spaces.append(space)?;
        }
        LIST.import(py, "townsquare.notebook", "SpaceList")?.call1((spaces,))
    }
}

impl KeyedRecord for Space {
    const KEY: &'static str = "id";
}
