//! Tests of `record!` on a record of three columns.

use crate::{
    error::{Error, Result},
    model::{Change, FromRow as _, ReadColumn, Validate},
};

record! {
    /// A row.
    pub struct Note in "notes" {
        /// A required column.
        id: i64;
        /// An optional column.
        place as "position": Option<i64>, patch: Change<i64>;
        /// A column with a default.
        size: i64 = default_if_null, new: i64, patch: Change<i64> = 7;
    }
    new { /** A new row. */ pub struct NewNote; }
    patch { /** A patch. */ pub struct NotePatch; }
}

type Columns = [Option<i64>; 3];

impl ReadColumn<i64> for Columns {
    fn read_column(&self, index: usize) -> Result<i64> {
        self[index].ok_or_else(Error::not_found)
    }
}

impl ReadColumn<Option<i64>> for Columns {
    fn read_column(&self, index: usize) -> Result<Option<i64>> {
        Ok(self[index])
    }
}

impl Validate<()> for i64 {
    fn validate(&self, _: &str, (): &()) -> Result<()> {
        Ok(())
    }
}

impl Validate<()> for Change<i64> {
    fn validate(&self, _: &str, (): &()) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
enum Bound {
    Flag(bool),
    Number(Option<i64>),
}

impl From<bool> for Bound {
    fn from(flag: bool) -> Bound {
        Bound::Flag(flag)
    }
}

impl From<Option<i64>> for Bound {
    fn from(number: Option<i64>) -> Bound {
        Bound::Number(number)
    }
}

#[test]
fn null_reads_as_none_as_the_default_or_as_an_error() {
    let note = Note::from_row(&[Some(1), None, None], 0).expect("a row");
    assert_eq!(note, Note { id: 1, place: None, size: 0 });
    assert!(Note::from_row(&[None, None, None], 0).is_err());
}

#[test]
fn a_patch_binds_whether_a_column_changes_and_its_value() {
    use Bound::{Flag, Number};
    let patch = NotePatch { place: Change::Set(3), ..NotePatch::new() };
    assert!(!patch.is_empty() && NotePatch::new().is_empty() && patch.validate(&()).is_ok());
    let values = patch.clone().update_values([Number(Some(1))]);
    assert_eq!(values, [Number(Some(1)), Flag(true), Number(Some(3)), Flag(false), Number(None)]);
    assert_eq!(patch.insert_values::<Bound>([]), [Number(Some(3)), Number(Some(7))]);
    let cleared = NotePatch { size: Change::Clear, ..NotePatch::new() };
    assert_eq!(cleared.insert_values::<Bound>([]), [Number(None), Number(None)]);
}

#[test]
fn the_column_list_says_which_struct_has_a_column() {
    let columns = Note::COLUMNS.all.iter().map(|column| (column.name, column.is_new, column.is_patch));
    assert!(columns.eq([("id", false, false), ("position", false, true), ("size", true, true)]));
    let new = NewNote { size: 2 };
    assert!(new.validate(&()).is_ok());
    assert_eq!(new.insert_values::<i64>([1]), [1, 2]);
    assert_eq!(Note::COLUMNS.record, "notes");
}
