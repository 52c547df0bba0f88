//! Types of single arguments: ids, strings, integers, times, and the changes of an update.
//!
//! Invariant: a value of the wrong *type* raises `TypeError` when the method is called. A value of the right type that
//! the core cannot hold fails as `InvalidInput`, naming the argument, when the result is returned or awaited.

use std::{marker::PhantomData, path::PathBuf, time::Duration};

use bytes::Bytes;
use jiff::SignedDuration;
use pyo3::{
    PyClass,
    exceptions::{PyOverflowError, PyTypeError},
    prelude::*,
    pybacked::PyBackedBytes,
    types::{
        PyByteArray, PyBytes, PyDateTime, PyDelta, PyDict, PyEllipsis, PyIterator, PyMapping, PyMemoryView, PyString,
        PyTzInfo,
    },
};
use townsquare::{Json, Timestamp, Uuid, spaces::Change};

use crate::{
    errors::{Failure, expected, shown, type_error},
    json::JsonArg,
    process,
};

/// The range of a `limit`, as the core names it for a limit that fits its type.
pub(crate) const LIMIT_RANGE: &str = "1 to 1000";
/// The default `limit` of the lists by key.
pub(crate) const LIST_PAGE: u32 = 100;
/// The offsets that a list takes.
pub(crate) const OFFSET_RANGE: &str = "0 or more";

/// An id: a `uuid.UUID` or its text.
pub(crate) struct IdArg(Result<Uuid, String>);

impl IdArg {
    /// # Errors
    /// `InvalidInput` for a string that is not a UUID.
    pub(crate) fn value(self, name: &str) -> Result<Uuid, Failure> {
        self.0.map_err(|shown| Failure::invalid_input(format!("{name} is not a UUID: {shown}")))
    }
}

impl<'py> FromPyObject<'_, 'py> for IdArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<IdArg> {
        if let Ok(text) = value.cast::<PyString>() {
            // `to_cow` fails for a lone surrogate, which is no part of a UUID either.
            let id = text.to_cow().ok().and_then(|text| Uuid::try_parse(&text).ok());
            return Ok(IdArg(id.ok_or_else(|| shown(&value))));
        }
        match value.extract::<Uuid>() {
            Ok(id) => Ok(IdArg(Ok(id))),
            Err(_) => Err(expected("a UUID or its text", &value)),
        }
    }
}

/// A record that has a key by which a list of all rows is ordered.
pub(crate) trait KeyedRecord: PyClass {
    /// The attribute with the key.
    const KEY: &'static str;
}

/// The position in a list by key: the last record of the page before, or its key.
pub(crate) struct AfterArg<R> {
    key: IdArg,
    record: PhantomData<fn(R)>,
}

impl<R> AfterArg<R> {
    /// # Errors
    /// `InvalidInput` for a string that is not a UUID.
    pub(crate) fn value(self) -> Result<Uuid, Failure> {
        self.key.value("after")
    }
}

impl<'py, R: KeyedRecord> FromPyObject<'_, 'py> for AfterArg<R> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<AfterArg<R>> {
        let key = match value.cast::<R>() {
            Ok(record) => record.as_any().getattr(R::KEY)?.extract()?,
            Err(_) => {
                value.extract().map_err(|_: PyErr| expected("a record of the list, a UUID or its text", &value))?
            }
        };
        Ok(AfterArg { key, record: PhantomData })
    }
}

/// A string.
pub(crate) struct TextArg(Result<String, ()>);

impl TextArg {
    /// # Errors
    /// `InvalidInput` for a string with a lone surrogate.
    pub(crate) fn value(self, name: &str) -> Result<String, Failure> {
        self.0.map_err(|()| Failure::invalid_input(format!("{name} has half a surrogate pair, which is not Unicode")))
    }
}

impl From<String> for TextArg {
    fn from(text: String) -> TextArg {
        TextArg(Ok(text))
    }
}

impl<'py> FromPyObject<'_, 'py> for TextArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<TextArg> {
        match value.cast::<PyString>() {
            Ok(text) => Ok(TextArg(text.extract().map_err(|_| ()))),
            Err(_) => Err(expected("a string", &value)),
        }
    }
}

/// [`TextArg::value`] of an argument that may be `None`.
pub(crate) fn optional_text(text: Option<TextArg>, name: &str) -> Result<Option<String>, Failure> {
    text.map(|text| text.value(name)).transpose()
}

/// The strings of an iterable. A single string is refused: `"games"` would otherwise mean `["g", "a", "m", …]`.
pub(crate) struct TextListArg(Vec<TextArg>);

impl TextListArg {
    pub(crate) const EMPTY: TextListArg = TextListArg(Vec::new());

    /// # Errors
    /// As [`TextArg::value`].
    pub(crate) fn value(self, name: &str) -> Result<Vec<String>, Failure> {
        self.0.into_iter().map(|text| text.value(name)).collect()
    }
}

impl<'py> FromPyObject<'_, 'py> for TextListArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<TextListArg> {
        if value.is_instance_of::<PyString>() {
            let message = format!("expected a list of strings, not a string; write [{}]", value.repr()?);
            return Err(type_error(value.py(), message));
        }
        items(&value, "a list of strings")?.map(|item| item?.extract()).collect::<PyResult<_>>().map(TextListArg)
    }
}

/// The items of an iterable that is neither a string, nor bytes, nor a mapping.
pub(crate) fn items<'py>(value: &Bound<'py, PyAny>, wanted: &str) -> PyResult<Items<'py>> {
    if value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.cast::<PyMapping>().is_ok()
    {
        return Err(expected(wanted, value));
    }
    value.try_iter().map(Items).map_err(|_| expected(wanted, value))
}

/// The items of an iterator, which may be code of the program.
pub(crate) struct Items<'py>(Bound<'py, PyIterator>);

impl<'py> Iterator for Items<'py> {
    type Item = PyResult<Bound<'py, PyAny>>;

    fn next(&mut self) -> Option<Self::Item> {
        process::call_python(|| self.0.next()).flatten()
    }
}

/// Bytes: a `bytes` object, which is shared, or another object with the buffer protocol, which is copied because it may
/// change.
pub(crate) struct BytesArg(Option<PyBackedBytes>);

impl BytesArg {
    pub(crate) const EMPTY: BytesArg = BytesArg(None);

    /// The core's bytes, which keep the Python object alive.
    pub(crate) fn shared(self) -> Bytes {
        self.0.map_or_else(Bytes::new, Bytes::from_owner)
    }
}

impl AsRef<[u8]> for BytesArg {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<'py> FromPyObject<'_, 'py> for BytesArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<BytesArg> {
        if let Ok(bytes) = value.extract() {
            return Ok(BytesArg(Some(bytes)));
        }
        let Ok(view) = PyMemoryView::from(&value) else { return Err(expected("bytes", &value)) };
        Ok(BytesArg(Some(view.call_method0("tobytes")?.extract()?)))
    }
}

/// An integer of the core's type `T`.
pub(crate) struct IntArg<T>(Result<T, String>);

impl<T> IntArg<T> {
    pub(crate) const fn of(value: T) -> IntArg<T> {
        IntArg(Ok(value))
    }

    /// # Errors
    /// `InvalidInput`, naming the `range`, for an integer that `T` cannot hold.
    pub(crate) fn value(self, name: &str, range: &str) -> Result<T, Failure> {
        self.0.map_err(|shown| Failure::invalid_input(format!("{name} is {range}, not {shown}")))
    }
}

impl<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'_, 'py> for IntArg<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<IntArg<T>> {
        match value.extract::<T>() {
            Ok(number) => Ok(IntArg(Ok(number))),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                let huge = "an integer of more than 64 bits".to_owned();
                Ok(IntArg(Err(value.extract::<i64>().map_or(huge, |number| number.to_string()))))
            }
            Err(_) => Err(expected("an integer", &value)),
        }
    }
}

/// True or false.
#[derive(Clone, Copy)]
pub(crate) struct FlagArg(pub(crate) bool);

impl<'py> FromPyObject<'_, 'py> for FlagArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<FlagArg> {
        value.extract().map(FlagArg).map_err(|_: PyErr| expected("True or False", &value))
    }
}

/// A flag of a new row.
#[derive(Clone, Copy)]
pub(crate) struct NewFlag(Option<bool>);

impl NewFlag {
    pub(crate) const FALSE: NewFlag = NewFlag(Some(false));

    /// # Errors
    /// `FieldMissing` for `None`.
    pub(crate) fn value(self, name: &'static str) -> Result<bool, Failure> {
        self.0.ok_or_else(|| townsquare::Error::field_missing(name).into())
    }
}

impl<'py> FromPyObject<'_, 'py> for NewFlag {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<NewFlag> {
        if value.is_none() {
            return Ok(NewFlag(None));
        }
        value.extract().map(|FlagArg(flag)| NewFlag(Some(flag)))
    }
}

/// A path of the host: a string, bytes or an object with `__fspath__`.
pub(crate) struct PathArg(pub(crate) PathBuf);

impl<'py> FromPyObject<'_, 'py> for PathArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<PathArg> {
        value.extract().map(PathArg).map_err(|error: PyErr| match error.is_instance_of::<PyTypeError>(value.py()) {
            true => expected("a path", &value),
            false => error,
        })
    }
}

/// A time: an aware datetime of any time zone.
pub(crate) struct DateTimeArg(Result<Timestamp, String>);

impl DateTimeArg {
    /// # Errors
    /// `InvalidInput` for a time after the core's last one, a day before the end of the year 9999, and for one that
    /// Python cannot convert to UTC.
    pub(crate) fn value(self, name: &str) -> Result<Timestamp, Failure> {
        let range = "a time from year 1 to 9999-12-30T22:00 in UTC";
        self.0.map_err(|shown| Failure::invalid_input(format!("{name} is {range}, not {shown}")))
    }
}

impl<'py> FromPyObject<'_, 'py> for DateTimeArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<DateTimeArg> {
        let zone = value.getattr("tzinfo").map_err(|_| expected("an aware datetime", &value))?;
        if zone.is_none() {
            return Err(type_error(value.py(), "expected an aware datetime, not a naive one".to_owned()));
        }
        // Python converts to UTC: it knows every kind of time zone.
        let time = value
            .call_method1("astimezone", (PyTzInfo::utc(value.py())?,))
            .and_then(|utc| utc.extract::<Timestamp>())
            .map_err(|_| shown(&value));
        Ok(DateTimeArg(time))
    }
}

/// A value of a column of any type. A UUID and a time become text; any other value is JSON.
pub(crate) enum ColumnArg {
    Id(Uuid),
    Time(DateTimeArg),
    Json(JsonArg),
}

impl ColumnArg {
    /// # Errors
    /// As [`DateTimeArg::value`] and [`JsonArg::value`].
    pub(crate) fn value(self, name: &str) -> Result<Json, Failure> {
        Ok(match self {
            ColumnArg::Id(id) => Json::String(id.to_string()),
            ColumnArg::Time(time) => Json::String(time.value(name)?.to_string()),
            ColumnArg::Json(json) => json.value(name)?.unwrap_or_default(),
        })
    }
}

impl<'py> FromPyObject<'_, 'py> for ColumnArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<ColumnArg> {
        if value.is_instance_of::<PyDateTime>() {
            return value.extract().map(ColumnArg::Time);
        }
        match value.extract::<Uuid>() {
            Ok(id) => Ok(ColumnArg::Id(id)),
            Err(_) => value.extract().map(ColumnArg::Json),
        }
    }
}

/// A length of time: seconds or a timedelta.
pub(crate) struct SecondsArg(Result<Duration, String>);

impl SecondsArg {
    pub(crate) const fn of(seconds: u64) -> SecondsArg {
        SecondsArg(Ok(Duration::from_secs(seconds)))
    }

    /// # Errors
    /// `InvalidInput` for a negative number and for one that is not finite.
    pub(crate) fn value(self, name: &str) -> Result<Duration, Failure> {
        self.0.map_err(|shown| Failure::invalid_input(format!("{name} is a number of seconds from 0, not {shown}")))
    }
}

impl<'py> FromPyObject<'_, 'py> for SecondsArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<SecondsArg> {
        let duration = if value.is_instance_of::<PyDelta>() {
            value.extract::<SignedDuration>()?.try_into().ok()
        } else {
            let seconds: f64 = value.extract().map_err(|_| expected("seconds or a timedelta", &value))?;
            Duration::try_from_secs_f64(seconds).ok()
        };
        Ok(SecondsArg(duration.ok_or_else(|| shown(&value))))
    }
}

/// A mapping from strings to strings.
pub(crate) struct TextMapArg(Vec<(TextArg, TextArg)>);

impl TextMapArg {
    /// # Errors
    /// As [`TextArg::value`].
    pub(crate) fn value(self, name: &str) -> Result<Vec<(String, String)>, Failure> {
        self.0.into_iter().map(|(key, value)| Ok((key.value(name)?, value.value(name)?))).collect()
    }
}

impl<'py> FromPyObject<'_, 'py> for TextMapArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<TextMapArg> {
        let Ok(mapping) = value.cast::<PyMapping>() else { return Err(expected("a mapping", &value)) };
        let members = PyDict::new(value.py());
        members.update(&mapping)?;
        members
            .iter()
            .map(|(key, value)| Ok((key.extract()?, value.extract()?)))
            .collect::<PyResult<_>>()
            .map(TextMapArg)
    }
}

/// A column in an update: `...` keeps it, `None` clears it, a value sets it.
pub(crate) enum Update<T> {
    Keep,
    Clear,
    Set(T),
}

impl<T> Update<T> {
    /// The core's change. `read` converts the value.
    pub(crate) fn change<U>(self, read: impl FnOnce(T) -> Result<U, Failure>) -> Result<Change<U>, Failure> {
        Ok(match self {
            Update::Keep => Change::Keep,
            Update::Clear => Change::Clear,
            Update::Set(value) => Change::Set(read(value)?),
        })
    }
}

impl Update<TextArg> {
    pub(crate) fn text(self, name: &str) -> Result<Change<String>, Failure> {
        self.change(|text| text.value(name))
    }
}

impl Update<JsonArg> {
    pub(crate) fn json(self, name: &str) -> Result<Change<Json>, Failure> {
        Ok(match self {
            Update::Keep => Change::Keep,
            Update::Clear => Change::Clear,
            Update::Set(value) => value.value(name)?.into(),
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

/// A column in an update that is true or false: `...` keeps it, `None` clears it, which the core refuses, a value sets it.
#[derive(Clone, Copy)]
pub(crate) struct FlagUpdate(pub(crate) Change<bool>);

impl FlagUpdate {
    pub(crate) const KEEP: FlagUpdate = FlagUpdate(Change::Keep);
}

impl<'py> FromPyObject<'_, 'py> for FlagUpdate {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<FlagUpdate> {
        if value.is_instance_of::<PyEllipsis>() {
            Ok(FlagUpdate::KEEP)
        } else if value.is_none() {
            Ok(FlagUpdate(Change::Clear))
        } else {
            value.extract().map(|FlagArg(flag)| FlagUpdate(Change::Set(flag)))
        }
    }
}
