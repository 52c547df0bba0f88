//! Arguments of the table operations: ids, texts, changes, mappings.
//!
//! Invariant: a value of the wrong *type* is a `TypeError` where it is passed; one of the right type that the tables
//! cannot take is the library's `InvalidInputError` where the answer is awaited, and names the argument.

use pyo3::{
    exceptions::{PyOverflowError, PyTypeError},
    prelude::*,
    types::{PyByteArray, PyBytes, PyDict, PyEllipsis, PyMapping, PyString, PyTzInfo},
};
use townsquare::{Change, ErrorKind, Timestamp, Uuid};

use crate::{errors::Failure, json};

/// A refusal of an argument.
pub(crate) fn refused(message: String) -> Failure {
    Failure::own(ErrorKind::InvalidInput, message)
}

/// An id: a `uuid.UUID`, or its text.
pub(crate) struct Id(Result<Uuid, String>);

impl Id {
    /// # Errors
    /// An invalid input for a text that is no UUID.
    pub(crate) fn named(self, name: &str) -> Result<Uuid, Failure> {
        self.0.map_err(|shown| refused(format!("{name} is not a UUID: {shown}")))
    }
}

impl<'py> FromPyObject<'_, 'py> for Id {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Id> {
        if let Ok(text) = value.cast::<PyString>() {
            // What is not even Unicode is no UUID either.
            let id = text.to_cow().ok().and_then(|text| Uuid::try_parse(&text).ok());
            let shown = || {
                text.repr().map_or_else(|_| "?".to_owned(), |shown| shown.to_string_lossy().chars().take(60).collect())
            };
            return Ok(Id(id.ok_or_else(shown)));
        }
        match value.extract::<Uuid>() {
            Ok(id) => Ok(Id(Ok(id))),
            Err(_) => Err(expected("a UUID or its text", &value)),
        }
    }
}

/// A text.
pub(crate) struct Text(Result<String, ()>);

impl Text {
    /// # Errors
    /// An invalid input for a text with half a surrogate pair.
    pub(crate) fn named(self, name: &str) -> Result<String, Failure> {
        self.0.map_err(|()| refused(format!("{name} has half a surrogate pair, which is not Unicode")))
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Text> {
        match value.cast::<PyString>() {
            Ok(text) => Ok(Text(text.extract().map_err(|_| ()))),
            Err(_) => Err(expected("text", &value)),
        }
    }
}

/// [`Text::named`] of a text that may be absent.
pub(crate) fn optional(text: Option<Text>, name: &str) -> Result<Option<String>, Failure> {
    text.map(|text| text.named(name)).transpose()
}

/// Texts in a list.
pub(crate) struct Texts(Vec<Text>);

impl Texts {
    pub(crate) fn named(self, name: &str) -> Result<Vec<String>, Failure> {
        self.0.into_iter().map(|text| text.named(name)).collect()
    }
}

impl<'py> FromPyObject<'_, 'py> for Texts {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Texts> {
        items(&value, "a list of texts")?.map(|item| item?.extract()).collect::<PyResult<_>>().map(Texts)
    }
}

/// An integer of the type that the core has for it.
pub(crate) struct Whole<T>(Result<T, String>);

impl<T> Whole<T> {
    pub(crate) const fn of(value: T) -> Whole<T> {
        Whole(Ok(value))
    }

    /// # Errors
    /// An invalid input for an integer that the type cannot hold.
    pub(crate) fn named(self, name: &str, range: &str) -> Result<T, Failure> {
        self.0.map_err(|shown| refused(format!("{name} is {range}, not {shown}")))
    }
}

impl<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'_, 'py> for Whole<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Whole<T>> {
        match value.extract::<T>() {
            Ok(number) => Ok(Whole(Ok(number))),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                let huge = "an integer of more than 64 bits".to_owned();
                Ok(Whole(Err(value.extract::<i64>().map_or(huge, |number| number.to_string()))))
            }
            Err(error) => Err(error),
        }
    }
}

/// A moment: an aware datetime of any time zone.
pub(crate) struct Instant(pub(crate) Timestamp);

impl<'py> FromPyObject<'_, 'py> for Instant {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Instant> {
        let zone = value.getattr("tzinfo").map_err(|_| expected("an aware datetime", &value))?;
        if zone.is_none() {
            return Err(PyTypeError::new_err("expected an aware datetime, not a naive one"));
        }
        // By Python, which knows every kind of time zone.
        let utc = value.call_method1("astimezone", (PyTzInfo::utc(value.py())?,))?;
        utc.extract().map(Instant)
    }
}

/// What an update says of a column: nothing (`...`), None, or a value.
pub(crate) enum Update<T> {
    Keep,
    Clear,
    Set(T),
}

impl<T> Update<T> {
    /// The core's change, the value read on the way.
    pub(crate) fn change<U>(self, read: impl FnOnce(T) -> Result<U, Failure>) -> Result<Change<U>, Failure> {
        Ok(match self {
            Update::Keep => Change::Keep,
            Update::Clear => Change::Clear,
            Update::Set(value) => Change::Set(read(value)?),
        })
    }
}

impl Update<Text> {
    pub(crate) fn text(self, name: &str) -> Result<Change<String>, Failure> {
        self.change(|text| text.named(name))
    }
}

impl Update<bool> {
    pub(crate) fn flag(self) -> Result<Change<bool>, Failure> {
        self.change(Ok)
    }
}

impl Update<json::Given> {
    pub(crate) fn json(self, name: &str) -> Result<Change<townsquare::Json>, Failure> {
        Ok(match self {
            Update::Keep => Change::Keep,
            Update::Clear => Change::Clear,
            Update::Set(value) => value.named(name)?.into(),
        })
    }
}

impl<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'_, 'py> for Update<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Update<T>> {
        if value.is_instance_of::<PyEllipsis>() {
            return Ok(Update::Keep);
        }
        if value.is_none() { Ok(Update::Clear) } else { value.extract().map(Update::Set) }
    }
}

/// The mappings in a list, each read by `read`, which is told its place for a complaint.
pub(crate) struct Mappings<'py>(Vec<Bound<'py, PyAny>>);

impl<'py> Mappings<'py> {
    /// # Errors
    /// Python's own for a value of a wrong type. The inner result is for who awaits the answer.
    pub(crate) fn read<T>(
        self,
        what: &str,
        mut read: impl FnMut(&mut Members<'py>) -> PyResult<Result<T, Failure>>,
    ) -> PyResult<Result<Vec<T>, Failure>> {
        let mut all = Vec::with_capacity(self.0.len());
        for (place, mapping) in self.0.iter().enumerate() {
            let mut members = Members { what: format!("{what}[{place}]"), dict: PyDict::new(mapping.py()) };
            members.dict.update(mapping.cast::<PyMapping>()?)?;
            match read(&mut members)?.and_then(|row| members.end().map(|()| row)) {
                Ok(row) => all.push(row),
                Err(failure) => return Ok(Err(failure)),
            }
        }
        Ok(Ok(all))
    }
}

impl<'py> FromPyObject<'_, 'py> for Mappings<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Mappings<'py>> {
        let mut all = Vec::new();
        for item in items(&value, "a list of mappings")? {
            let item = item?;
            if item.cast::<PyMapping>().is_err() {
                return Err(expected("a list of mappings; one of them is", &item));
            }
            all.push(item);
        }
        Ok(Mappings(all))
    }
}

/// One mapping: the arguments of a call, taken by name.
pub(crate) struct Members<'py> {
    what: String,
    dict: Bound<'py, PyDict>,
}

impl<'py> Members<'py> {
    /// The name of a member in complaints: `spaces[2].name`.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.what)
    }

    /// Takes a member out; None for one that is not there.
    pub(crate) fn take<T>(&self, name: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
    {
        let Some(value) = self.dict.get_item(name)? else { return Ok(None) };
        self.dict.del_item(name)?;
        if value.is_none() {
            return Ok(None);
        }
        value.extract().map(Some).map_err(|error: PyErr| {
            if error.is_instance_of::<PyTypeError>(value.py()) {
                PyTypeError::new_err(format!("{}: {}", self.path(name), error.value(value.py())))
            } else {
                error
            }
        })
    }

    /// Refuses what nobody took.
    fn end(&self) -> Result<(), Failure> {
        if self.dict.is_empty() {
            return Ok(());
        }
        let names =
            self.dict.keys().iter().map(|key| key.repr().map_or_else(|_| "?".into(), |shown| shown.to_string()));
        let names: Vec<String> = names.map(|name| name.chars().take(60).collect()).collect();
        Err(refused(format!("{} has unknown keys: {}", self.what, names.join(", "))))
    }
}

/// The items of any iterable that is no text.
fn items<'py>(
    value: &Bound<'py, PyAny>,
    wanted: &str,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>> + use<'py>> {
    if value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.cast::<PyMapping>().is_ok()
    {
        return Err(expected(wanted, value));
    }
    value.try_iter().map_err(|_| expected(wanted, value))
}

/// The complaint about a value of another type.
pub(crate) fn expected(wanted: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let class = value.get_type();
    let class = class.name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {wanted}, not {class}"))
}

/// A mapping as a JSON object.
pub(crate) struct Object(json::Given);

impl Object {
    /// # Errors
    /// An invalid input for what is not JSON.
    pub(crate) fn named(self, name: &str) -> Result<townsquare::Json, Failure> {
        Ok(self.0.named(name)?.unwrap_or_default())
    }
}

impl<'py> FromPyObject<'_, 'py> for Object {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Object> {
        let Ok(mapping) = value.cast::<PyMapping>() else { return Err(expected("a mapping", &value)) };
        let members = PyDict::new(value.py());
        members.update(&mapping)?;
        members.extract().map(Object)
    }
}

/// A mapping of ids to JSON.
pub(crate) struct Places(Vec<(Id, json::Given)>);

impl Places {
    /// # Errors
    /// An invalid input for an id that is none or stands there twice, and for what is not JSON.
    pub(crate) fn named(
        self,
        name: &str,
    ) -> Result<std::collections::BTreeMap<Uuid, Option<townsquare::Json>>, Failure> {
        let mut places = std::collections::BTreeMap::new();
        for (id, place) in self.0 {
            let id = id.named(&format!("A key of {name}"))?;
            if places.insert(id, place.named(&format!("{name}[{id}]"))?).is_some() {
                return Err(refused(format!("{name} has {id} twice")));
            }
        }
        Ok(places)
    }
}

impl<'py> FromPyObject<'_, 'py> for Places {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Places> {
        let Ok(mapping) = value.cast::<PyMapping>() else { return Err(expected("a mapping", &value)) };
        let members = mapping.items()?;
        let read = |member: Bound<'py, PyAny>| member.extract::<(Id, json::Given)>();
        members.iter().map(read).collect::<PyResult<_>>().map(Places)
    }
}
