//! Records: read-only C structs that the library allocates, one for each row or result.
//!
//! Invariant: a C pointer to a record points at the start of an [`OwnedRecord`]. The struct's pointers lead to heap
//! memory that the same [`OwnedRecord`] owns and that nothing changes until it is freed, so they stay valid when it
//! moves.
//!
//! To add a column, add a member at the end of the record's struct and set it in that struct's [`Record::new`].

use std::{any::Any, ptr, rc::Rc};

use serde::{Serialize, Serializer};
use serde_json::Map;
use townsquare::{Json, Uuid};

use crate::boundary::{
    handle::{self, Handle},
    text::{self, tsq_str},
};

/// A `repr(C)` struct that shows a record of the core.
pub(crate) trait Record: Sized {
    /// The core's record. Serialised, it is the record's JSON.
    type Source;

    /// The struct of `source`. It may point at heap memory of `source`, at `memory`, and at statics, but not at
    /// `source` itself, which moves afterwards.
    fn new(source: &Self::Source, memory: &mut Memory) -> Self;
}

/// Owns the texts and arrays that a record points at but its source does not contain, such as ids as text.
#[derive(Default)]
pub(crate) struct Memory {
    texts: Vec<String>,
    arrays: Vec<Box<dyn Any>>,
}

impl Memory {
    /// An id as text: hyphenated, in lower case.
    pub(crate) fn id(&mut self, id: Uuid) -> tsq_str {
        self.text(id.hyphenated().encode_lower(&mut Uuid::encode_buffer()).to_owned())
    }

    /// An optional id as text.
    pub(crate) fn optional_id(&mut self, id: Option<Uuid>) -> tsq_str {
        id.map_or(tsq_str::ABSENT, |id| self.id(id))
    }

    /// A JSON value as text.
    pub(crate) fn json(&mut self, value: &Json) -> tsq_str {
        self.text(value.to_string())
    }

    /// An optional JSON value as text.
    pub(crate) fn optional_json(&mut self, value: Option<&Json>) -> tsq_str {
        value.map_or(tsq_str::ABSENT, |value| self.json(value))
    }

    /// A row of the change feed as a JSON object.
    pub(crate) fn optional_row(&mut self, row: Option<&Map<String, Json>>) -> tsq_str {
        let json = |row| serde_json::to_string(row).expect("a JSON object is JSON");
        row.map_or(tsq_str::ABSENT, |row| self.text(json(row)))
    }

    /// An array.
    pub(crate) fn array<T: 'static>(&mut self, items: Vec<T>) -> *const T {
        let first = items.as_ptr();
        self.arrays.push(Box::new(items));
        first
    }

    fn text(&mut self, text: String) -> tsq_str {
        let shown = text::view(&text);
        self.texts.push(text);
        shown
    }
}

/// A record with everything that its struct points at.
#[repr(C)]
pub(crate) struct OwnedRecord<R: Record> {
    /// First, so that a pointer to this value is a pointer to the struct.
    record: R,
    source: R::Source,
    _memory: Memory,
}

impl<R: Record> Handle for R {
    type Value = OwnedRecord<R>;
}

impl<R: Record> OwnedRecord<R> {
    /// The core's record.
    pub(crate) fn source(&self) -> &R::Source {
        &self.source
    }
}

impl<R: Record<Source: Serialize>> Serialize for OwnedRecord<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

/// Converts a result of the core to a record.
pub(crate) fn record<R: Record>(source: impl Into<R::Source>) -> OwnedRecord<R> {
    let (source, mut memory) = (source.into(), Memory::default());
    OwnedRecord { record: R::new(&source, &mut memory), source, _memory: memory }
}

/// An ordered list of records.
pub(crate) struct RecordList<R: Record>(Vec<OwnedRecord<R>>);

/// Converts a list of the core to a list of records.
pub(crate) fn list<R: Record>(rows: Vec<impl Into<R::Source>>) -> RecordList<R> {
    RecordList(rows.into_iter().map(record).collect())
}

impl<R: Record> RecordList<R> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// A view of the record at `index`; NULL beyond the end.
    pub(crate) fn at(&self, index: usize) -> *const R {
        self.0.get(index).map_or(ptr::null(), handle::view)
    }
}

impl<R: Record<Source: Serialize>> Serialize for RecordList<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A value inside a record's source that the record points at. `Rc`, because a `Box` may not move while raw pointers to
/// its value are in use.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Nested<T>(Rc<T>);

impl<T> From<T> for Nested<T> {
    fn from(value: T) -> Nested<T> {
        Nested(Rc::new(value))
    }
}

impl<T> Nested<T> {
    /// A view of the value, for a member of the record.
    pub(crate) fn view<H: Handle<Value = T>>(&self) -> *const H {
        handle::view(self.0.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::guard::free;

    #[repr(C)]
    struct tsq_pair {
        name: tsq_str,
        id: tsq_str,
    }

    impl Record for tsq_pair {
        type Source = (String, Uuid);

        fn new((name, id): &Self::Source, memory: &mut Memory) -> tsq_pair {
            tsq_pair { name: text::view(name), id: memory.id(*id) }
        }
    }

    fn read<'a>(text: tsq_str) -> &'a str {
        // SAFETY: the tests read texts of live records.
        unsafe { crate::boundary::argument::text(text, "text") }.ok().expect("UTF-8")
    }

    #[test]
    fn a_record_shows_its_source_and_serialises_as_it() {
        let pair = handle::give::<tsq_pair>(record(("Harbour".to_owned(), Uuid::nil())));
        // SAFETY: `pair` is owned here and freed once.
        unsafe {
            assert_eq!((read((*pair).name), read((*pair).id)), ("Harbour", Uuid::nil().to_string().as_str()));
            let value = handle::borrow(pair.cast_const()).expect("not NULL");
            assert_eq!(serde_json::to_string(value).expect("JSON"), format!(r#"["Harbour","{}"]"#, Uuid::nil()));
            free(pair);
        }
    }

    #[test]
    fn a_list_shows_its_records_and_null_beyond_the_end() {
        let rows = (0..100).map(|number| (number.to_string(), Uuid::from_u128(number))).collect();
        let pairs = list::<tsq_pair>(rows);
        assert_eq!(pairs.len(), 100);
        // SAFETY: the list lives on.
        assert_eq!(read(unsafe { (*pairs.at(99)).name }), "99");
        assert!(pairs.at(100).is_null());
    }
}
