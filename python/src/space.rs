//! Spaces as records (SPEC 2.6, 4.5).
//!
//! Invariant: `SpaceWithFidgets` and `PublicSpace` are a `Space` with one attribute more. As with dataclasses, records of
//! two classes are never equal, whatever they hold.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::{
    IntoPyObjectExt,
    basic::CompareOp,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList},
};

use crate::{
    fidget::{self, Fidget},
    record::{attributes, methods, record},
};

/// A row of `spaces`.
#[pyclass(frozen, subclass, module = "townsquare")]
pub(crate) struct Space(pub(crate) townsquare::Space);

methods! {
    Space as space, hashed by space.id, shown by [id, name, owner_id, is_public] {
        /// Primary key.
        id: space.id,
        /// Display name.
        name: &space.name,
        /// What it is about.
        description: space.description.as_deref(),
        /// The user it belongs to.
        owner_id: space.owner_id,
        /// Whether everyone may see it.
        is_public: space.is_public,
        /// When it was made, UTC.
        created_at: space.created_at,
        /// When it last changed, UTC.
        updated_at: space.updated_at,
    }
    also {
        fn __richcmp__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
            compared(this, other, op, |one, other| one.get().0 == other.get().0)
        }

        /// The attributes by name.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            attributes!(self, py, [id, name, description, owner_id, is_public, created_at, updated_at])
        }
    }
}

record! {
    /// The owner of a public space.
    Owner(townsquare::Owner) as owner, hashed by owner.id, shown by [id] {
        /// The user's id.
        id: owner.id,
        /// The user's address; None where the client does not expose it.
        email: owner.email.as_deref(),
    }
    also {
        /// The attributes by name.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            attributes!(self, py, [id, email])
        }
    }
}

/// Declares a record that is a space with one attribute more.
macro_rules! kind_of_space {
    ($(#[$about:meta])* $name:ident, $(#[doc = $doc:literal])* $field:ident: $held:ty, $dict:expr) => {
        $(#[$about])*
        #[pyclass(frozen, extends = Space, module = "townsquare")]
        pub(crate) struct $name($held);

        #[pymethods]
        impl $name {
            $(#[doc = $doc])*
            #[getter]
            fn $field(&self) -> $held {
                self.0.clone()
            }

            fn __richcmp__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
                compared(this, other, op, |one, other| {
                    one.get().0 == other.get().0 && one.as_super().get().0 == other.as_super().get().0
                })
            }

            fn __hash__(this: &Bound<'_, Self>) -> u64 {
                let mut hasher = DefaultHasher::new();
                this.as_super().get().0.id.hash(&mut hasher);
                hasher.finish()
            }

            fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
                let space = this.as_super().get().__repr__(this.py())?;
                let shown = this.getattr(stringify!($field))?.repr()?;
                let inside = space.strip_prefix("Space(").and_then(|space| space.strip_suffix(')')).unwrap_or_default();
                Ok(format!("{}({inside}, {}={shown})", stringify!($name), stringify!($field)))
            }

            /// The attributes by name, records within as dicts.
            fn to_dict<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
                let attributes = this.as_super().get().to_dict(this.py())?;
                let inner: fn(&$held, Python<'py>) -> PyResult<Bound<'py, PyAny>> = $dict;
                attributes.set_item(stringify!($field), inner(&this.get().0, this.py())?)?;
                Ok(attributes)
            }

            fn __copy__(this: Py<Self>) -> Py<Self> {
                this
            }

            fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
                this
            }
        }
    };
}

kind_of_space! {
    /// A space with its fidgets.
    SpaceWithFidgets,
    /// Its fidgets, oldest first.
    fidgets: Vec<Fidget>,
    |fidgets, py| {
        let dicts = fidgets.iter().map(|fidget| fidget.to_dict(py)).collect::<PyResult<Vec<_>>>()?;
        dicts.into_bound_py_any(py)
    }
}

kind_of_space! {
    /// A public space with its owner.
    PublicSpace,
    /// Whose it is; None for a space without an owner.
    owner: Option<Owner>,
    |owner, py| owner.as_ref().map(|owner| owner.to_dict(py)).transpose()?.into_bound_py_any(py)
}

/// `==` and `!=` of two records of the same class; Python knows what to do about the rest.
fn compared<'py, T: pyo3::PyClass>(
    this: &Bound<'py, T>,
    other: &Bound<'py, PyAny>,
    op: CompareOp,
    equal: impl FnOnce(&Bound<'py, T>, &Bound<'py, T>) -> bool,
) -> PyResult<Py<PyAny>> {
    let py = this.py();
    let same_class = this.as_any().get_type().is(other.get_type());
    match (op, other.cast::<T>()) {
        (CompareOp::Eq, Ok(other)) if same_class => equal(this, other).into_py_any(py),
        (CompareOp::Ne, Ok(other)) if same_class => (!equal(this, other)).into_py_any(py),
        _ => Ok(py.NotImplemented()),
    }
}

/// A space with its fidgets, on its way to Python.
pub(crate) struct Full(pub(crate) townsquare::SpaceWithFidgets);

impl<'py> IntoPyObject<'py> for Full {
    type Target = SpaceWithFidgets;
    type Output = Bound<'py, SpaceWithFidgets>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let fidgets = SpaceWithFidgets(fidget::list(self.0.fidgets));
        Bound::new(py, PyClassInitializer::from(Space(self.0.space)).add_subclass(fidgets))
    }
}

/// A public space, on its way to Python.
pub(crate) struct Public(pub(crate) townsquare::PublicSpace);

impl<'py> IntoPyObject<'py> for Public {
    type Target = PublicSpace;
    type Output = Bound<'py, PublicSpace>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let owner = PublicSpace(self.0.owner.map(Owner));
        Bound::new(py, PyClassInitializer::from(Space(self.0.space)).add_subclass(owner))
    }
}

/// Spaces on their way to Python: a `list` that shows itself as a table in a notebook.
pub(crate) struct Table<T>(pub(crate) Vec<T>);

impl<'py, T: IntoPyObject<'py>> IntoPyObject<'py> for Table<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static LIST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let spaces = PyList::empty(py);
        for space in self.0 {
            spaces.append(space)?;
        }
        LIST.import(py, "townsquare.notebook", "SpaceList")?.call1((spaces,))
    }
}
