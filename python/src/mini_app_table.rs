//! A list of mini apps as an Arrow table, which pyarrow, polars and DuckDB take without a Python object for each value.
//!
//! Invariant: the columns are the attributes of `MiniApp`, in their order and by their names.

use std::{borrow::Cow, ffi::CStr, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, ListArray, RecordBatch, RecordBatchIterator, StringArray, StructArray,
    TimestampMicrosecondArray, UInt32Array, UInt64Array,
    builder::{ListBuilder, StringBuilder},
    ffi_stream::FFI_ArrowArrayStream,
};
use arrow_schema::{ArrowError, Field, Fields, Schema};
use pyo3::{
    CastIntoError,
    exceptions::PyValueError,
    prelude::*,
    types::{PyCapsule, PyList},
};
use townsquare::{
    Timestamp,
    discovery::{Author, MiniApp as CoreApp, Texts},
};

use crate::{
    errors::{expected, in_argument},
    mini_app::MiniApp,
    record::RecordValue,
};

/// The name of a capsule with a stream, by the Arrow PyCapsule interface.
const STREAM: &CStr = c"arrow_array_stream";

/// The Arrow C stream of a list of mini apps: one batch.
#[pyfunction]
pub(crate) fn mini_apps_stream<'py>(apps: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyCapsule>> {
    let py = apps.py();
    let app = |(index, app): (usize, Bound<'py, PyAny>)| {
        let named = |other: CastIntoError<'_>| {
            in_argument(py, &format!("apps[{index}]"), expected("a MiniApp", &other.into_inner()))
        };
        app.cast_into::<MiniApp>().map_err(named)
    };
    let apps = apps.iter().enumerate().map(app).collect::<PyResult<Vec<_>>>()?;
    let columns = Columns(&apps).all()?;
    let fields = columns.iter().map(|(field, _)| field.clone()).collect::<Vec<_>>();
    let schema = Arc::new(Schema::new(fields));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|error| failed(&error))?;
    let batches = RecordBatchIterator::new([Ok(batch)], schema);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
}

fn failed(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The rows that columns are made of.
struct Columns<'a, 'py>(&'a [Bound<'py, MiniApp>]);

type Column = (Field, ArrayRef);

impl<'a> Columns<'a, '_> {
    fn all(&self) -> PyResult<Vec<Column>> {
        Ok(vec![
            self.text("id", |app| app.id())?,
            self.text("domain", |app| app.domain())?,
            self.text("name", |app| app.name())?,
            self.optional_text("description", |app| app.description())?,
            self.text("icon_url", |app| app.icon_url())?,
            self.text("home_url", |app| app.home_url())?,
            self.optional_text("category", |app| app.category())?,
            self.texts("networks", |app| app.networks())?,
            self.texts("tags", |app| app.tags())?,
            self.author()?,
            self.engagement()?,
            self.texts("screenshots", |app| app.screenshots())?,
            self.optional_text("hero_image_url", |app| app.hero_image_url())?,
            self.optional_text("tagline", |app| app.tagline())?,
            self.optional_text("subtitle", |app| app.subtitle())?,
            self.text("version", |app| app.version())?,
            self.optional_text("button_title", |app| app.button_title())?,
            self.optional_text("image_url", |app| app.image_url())?,
            self.optional_text("splash_image_url", |app| app.splash_image_url())?,
            self.optional_text("splash_background_color", |app| app.splash_background_color())?,
            self.time("last_fetched", |app| app.last_fetched())?,
            self.time("first_seen", |app| app.first_seen())?,
        ])
    }

    /// The values of a column. `of_core` reads an app of the library; the attributes at `path` are those of an app that Python
    /// code made.
    fn values<T, U>(&self, path: &[&str], of_core: impl Fn(&'a CoreApp) -> Option<T>) -> PyResult<Vec<Option<T>>>
    where
        T: From<U>,
        U: for<'b, 'p> FromPyObject<'b, 'p, Error: Into<PyErr>>,
    {
        let of_attributes = |app: &Bound<'_, PyAny>| {
            let mut found = app.clone();
            for name in path {
                if found.is_none() {
                    break;
                }
                found = found.getattr(*name)?;
            }
            found.extract::<Option<U>>().map_err(Into::into)
        };
        let value = |(index, app): (usize, &'a Bound<'_, MiniApp>)| match &app.get().0 {
            RecordValue::Core(app) => Ok(of_core(app)),
            RecordValue::Attributes(_) => {
                let named = |error| in_argument(app.py(), &format!("apps[{index}].{}", path.join(".")), error);
                Ok(of_attributes(app).map_err(named)?.map(T::from))
            }
        };
        self.0.iter().enumerate().map(value).collect()
    }

    fn optional_text(&self, name: &str, read: impl Fn(&'a CoreApp) -> Option<&'a str>) -> PyResult<Column> {
        let texts = self.values::<Cow<'a, str>, String>(&[name], |app| read(app).map(Cow::Borrowed))?;
        Ok(column(name, StringArray::from_iter(texts), true))
    }

    fn text(&self, name: &str, read: impl Fn(&'a CoreApp) -> &'a str) -> PyResult<Column> {
        let (field, texts) = self.optional_text(name, |app| Some(read(app)))?;
        Ok((field.with_nullable(false), texts))
    }

    fn texts(&self, name: &str, read: impl Fn(&'a CoreApp) -> Texts<'a>) -> PyResult<Column> {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for texts in
            self.values::<Vec<String>, Vec<String>>(&[name], |app| Some(read(app).map(str::to_owned).collect()))?
        {
            lists.append_option(texts.map(|texts| texts.into_iter().map(Some)));
        }
        let lists: ListArray = lists.finish();
        Ok(column(name, lists, false))
    }

    fn time(&self, name: &str, read: impl Fn(&'a CoreApp) -> Timestamp) -> PyResult<Column> {
        let times = self.values::<Timestamp, Timestamp>(&[name], |app| Some(read(app)))?;
        let times = times.into_iter().map(|time| time.map(Timestamp::as_microsecond));
        Ok(column(name, TimestampMicrosecondArray::from_iter(times).with_timezone("UTC"), false))
    }

    fn author(&self) -> PyResult<Column> {
        let of_author = |name| ["author", name];
        let text = |name, read: fn(Author<'a>) -> Option<&'a str>| {
            let texts =
                self.values::<Cow<'a, str>, String>(&of_author(name), |app| read(app.author()?).map(Cow::Borrowed))?;
            PyResult::Ok(column(name, StringArray::from_iter(texts), true))
        };
        let number = |name, read: fn(Author<'a>) -> u64| {
            let numbers = self.values::<u64, u64>(&of_author(name), |app| app.author().map(read))?;
            PyResult::Ok(column(name, UInt64Array::from_iter(numbers), true))
        };
        let scores = self.values::<f64, f64>(&of_author("score"), |app| app.author()?.score)?;
        let flags = self.values::<bool, bool>(&of_author("is_power_user"), |app| Some(app.author()?.is_power_user))?;
        let ids = number("fid", |author| author.fid)?;
        let has_author = ids.1.nulls().cloned();
        let fields = vec![
            ids,
            text("username", |author| Some(author.username))?,
            text("display_name", |author| author.display_name)?,
            text("pfp_url", |author| author.pfp_url)?,
            number("follower_count", |author| author.follower_count)?,
            column("score", Float64Array::from_iter(scores), true),
            column("is_power_user", BooleanArray::from_iter(flags), true),
        ];
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = fields.into_iter().unzip();
        let authors =
            StructArray::try_new(Fields::from(fields), columns, has_author).map_err(|error| failed(&error))?;
        Ok(column("author", authors, true))
    }

    fn engagement(&self) -> PyResult<Column> {
        let path = |name| ["engagement", name];
        let followers =
            self.values::<u64, u64>(&path("follower_count"), |app| Some(app.engagement().follower_count))?;
        let ranks = self.values::<u32, u32>(&path("trending_rank"), |app| app.engagement().trending_rank)?;
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = [
            column("follower_count", UInt64Array::from_iter(followers), false),
            column("trending_rank", UInt32Array::from_iter(ranks), true),
        ]
        .into_iter()
        .unzip();
        let engagements = StructArray::try_new(Fields::from(fields), columns, None).map_err(|error| failed(&error))?;
        Ok(column("engagement", engagements, false))
    }
}

fn column(name: &str, values: impl Array + 'static, is_nullable: bool) -> Column {
    (Field::new(name, values.data_type().clone(), is_nullable), Arc::new(values))
}
