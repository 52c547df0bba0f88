//! The `record!` macro: one declaration of a table's columns, from which everything else about them is generated.
//!
//! Invariant: this module knows no database and no rule of validation. It declares traits for reading columns and for
//! validation ([`ReadColumn`], [`Validate`]), which `database` and `validate` implement.

use std::ops::RangeFrom;

use super::column::Column;
use crate::error::Result;

/// The columns of a record, for the templates of `database::Statement`.
pub(crate) struct RecordColumns {
    /// The record's name in templates: the table's.
    pub(crate) record: &'static str,
    /// Every column, in the order in which [`FromRow`] reads them.
    pub(crate) all: &'static [Column],
}

impl RecordColumns {
    /// The columns that the table has.
    pub(crate) const fn in_table(&self) -> &'static [Column] {
        match self.all {
            [own @ .., last] if last.is_joined => own,
            all => all,
        }
    }
}

/// Reads a column of a row as `T`. `Option<T>` reads NULL as `None`; any other type refuses NULL.
pub(crate) trait ReadColumn<T> {
    fn read_column(&self, index: usize) -> Result<T>;
}

/// A record that can be read from a row of type `R`.
pub(crate) trait FromRow<R>: Sized {
    /// Reads the record from the columns `first`, `first + 1`, ….
    fn from_row(row: &R, first: usize) -> Result<Self>;
}

/// Refuses a value that some engine cannot store, or that is larger than a limit of `L`. `column` is the SQL name, for
/// the message.
pub(crate) trait Validate<L> {
    fn validate(&self, column: &str, limits: &L) -> Result<()>;
}

/// Whether a value of a new row is the value of an existing row.
pub(crate) trait SameValue<T> {
    fn is_same(&self, existing: &T) -> bool;
}

impl<T: PartialEq> SameValue<T> for T {
    fn is_same(&self, existing: &T) -> bool {
        self == existing
    }
}

impl<T: PartialEq> SameValue<T> for Option<T> {
    fn is_same(&self, existing: &T) -> bool {
        self.as_ref() == Some(existing)
    }
}

impl SameValue<Option<i64>> for Option<i32> {
    fn is_same(&self, existing: &Option<i64>) -> bool {
        self.map(i64::from) == *existing
    }
}

pub(crate) fn read_next<T, R: ReadColumn<T>>(row: &R, columns: &mut RangeFrom<usize>) -> Result<T> {
    let index = columns.start;
    columns.start += 1;
    row.read_column(index)
}

/// Declares a record: the public struct of a table's row and, if wanted, of a new row and of a patch.
///
/// ```text
/// record! {
///     /// A row of `fidgets`.
///     pub struct Fidget in "fidgets" {
///         /// One line of documentation, shared by the structs.
///         kind as "type": String, new: Option<String>, patch: Change<String>;
///         /// …
///         config: Option<Value> [is_large: true], new: Option<Value>, patch: Change<Value>;
///         /// …
///         created_at: Timestamp = default_if_null;
///     }
///     new { /** A fidget to create. */ pub struct NewFidget; }
///     patch { /** Changes of a fidget. */ pub struct FidgetPatch; }
/// }
/// ```
///
/// - `as "type"`: the SQL name, where it is not the field's.
/// - The type says how NULL is read: `Option<T>` as `None`, `T = default_if_null` as `T::default()`, `T` as an error.
/// - `[is_key: true]`: members of the [`Column`], for what is not usual about it.
/// - `new: T`: the `new` struct has this column too, with this type.
/// - `patch: Change<T>`: the `patch` struct has this column too.
/// - `patch: Change<T> = value`: an insert writes `value` for [`Change::Keep`]; without `= value` it writes NULL.
///
/// [`Change::Keep`]: super::Change::Keep
macro_rules! record {
    (
        $(#[$meta:meta])* pub struct $Row:ident in $record:literal $columns:tt
        $(new $new:tt)?
        $(patch $patch:tt)?
    ) => {
        record! { @row [$(#[$meta])*] $Row $record $columns }
        $(record! { @new $Row $new $columns })?
        $(record! { @patch $patch $columns })?
    };

    (@row [$($meta:tt)*] $Row:ident $record:literal { $(
        #[doc = $doc:literal] $(#[serde $serde:tt])?
        $field:ident $(as $column:literal)?: $type:ty $(= $default:ident)? $([$($member:ident: $value:expr),*])?
        $(, new: $new:ty)? $(, patch: Change<$patch:ty> $(= $insert:expr)?)?;
    )* }) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[non_exhaustive]
        $($meta)*
        pub struct $Row {
            $(#[doc = $doc] $(#[serde $serde])? pub $field: $type,)*
        }

        impl $Row {
            pub(crate) const COLUMNS: $crate::model::RecordColumns = $crate::model::RecordColumns {
                record: $record,
                all: &[$(
                    $crate::model::Column {
                        is_new: record!(@is_given $($new)?),
                        is_patch: record!(@is_given $($patch)?),
                        $($($member: $value,)*)?
                        ..$crate::model::Column::new(
                            record!(@name $field $($column)?),
                            <$type as $crate::model::TypedColumn>::COLUMN_TYPE,
                            !(<$type as $crate::model::TypedColumn>::READS_NULL || record!(@is_given $($default)?)),
                        )
                    },
                )*],
            };
        }

        impl<R> $crate::model::FromRow<R> for $Row
        where
            $(R: $crate::model::ReadColumn<record!(@read_as $type $(, $default)?)>,)*
        {
            fn from_row(row: &R, first: usize) -> $crate::error::Result<$Row> {
                let mut columns = first..;
                Ok($Row { $($field: record!(@read row columns $type $(, $default)?),)* })
            }
        }
    };

    (@new $Row:ident { $(#[$meta:meta])* pub struct $New:ident; } { $(
        #[doc = $doc:literal] $(#[serde $serde:tt])?
        $field:ident $(as $column:literal)?: $type:ty $(= $default:ident)? $([$($member:ident: $value:expr),*])?
        $(, new: $new:ty)? $(, patch: Change<$patch:ty> $(= $insert:expr)?)?;
    )* }) => {
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        $(#[$meta])*
        pub struct $New {
            $($(#[doc = $doc] pub $field: $new,)?)*
        }

        impl $New {
            /// Refuses what some engine cannot store, or what is larger than a limit.
            pub(crate) fn validate<L>(&self, limits: &L) -> $crate::error::Result<()>
            where
                $($($new: $crate::model::Validate<L>,)?)*
            {
                $(record!(@validate [$($new)?] limits self $field $($column)?);)*
                Ok(())
            }

            /// Whether an existing row has the content of this one.
            #[allow(dead_code, reason = "a row without a given id is not created again")]
            pub(crate) fn is_same(&self, existing: &$Row) -> bool {
                $($(<$new as $crate::model::SameValue<$type>>::is_same(&self.$field, &existing.$field) &&)?)* true
            }

            /// `first`, then the values of the template `{record.new $n}`.
            pub(crate) fn insert_values<V>(self, first: impl IntoIterator<Item = V>) -> Vec<V>
            where
                $($(V: From<$new>,)?)*
            {
                let mut values: Vec<V> = first.into_iter().collect();
                $($(values.push(<V as From<$new>>::from(self.$field));)?)*
                values
            }
        }
    };

    (@patch { $(#[$meta:meta])* pub struct $Patch:ident; } { $(
        #[doc = $doc:literal] $(#[serde $serde:tt])?
        $field:ident $(as $column:literal)?: $type:ty $(= $default:ident)? $([$($member:ident: $value:expr),*])?
        $(, new: $new:ty)? $(, patch: Change<$patch:ty> $(= $insert:expr)?)?;
    )* }) => {
        #[derive(Debug, Clone, PartialEq, Default)]
        #[non_exhaustive]
        $(#[$meta])*
        pub struct $Patch {
            $($(#[doc = $doc] pub $field: $crate::model::Change<$patch>,)?)*
        }

        impl $Patch {
            /// A patch that changes nothing.
            pub fn new() -> $Patch {
                $Patch::default()
            }

            /// Whether the patch changes nothing.
            pub fn is_empty(&self) -> bool {
                true $($(&& $crate::model::Change::<$patch>::is_keep(&self.$field))?)*
            }

            /// Refuses what some engine cannot store, or what is larger than a limit.
            pub(crate) fn validate<L>(&self, limits: &L) -> $crate::error::Result<()>
            where
                $($($crate::model::Change<$patch>: $crate::model::Validate<L>,)?)*
            {
                $(record!(@validate [$($patch)?] limits self $field $($column)?);)*
                Ok(())
            }

            /// `first`, then the values of the template `{record.set $n}`.
            pub(crate) fn update_values<V>(self, first: impl IntoIterator<Item = V>) -> Vec<V>
            where
                V: From<bool> $($(+ From<Option<$patch>>)?)*
            {
                let mut values: Vec<V> = first.into_iter().collect();
                $($(
                    values.push((!self.$field.is_keep()).into());
                    values.push(<V as From<Option<$patch>>>::from(self.$field.into_set()));
                )?)*
                values
            }

            /// `first`, then the values of the template `{record.patch $n}`.
            #[allow(dead_code, reason = "a record with a `new` struct is inserted from that")]
            pub(crate) fn insert_values<V>(self, first: impl IntoIterator<Item = V>) -> Vec<V>
            where
                $($(V: From<Option<$patch>>,)?)*
            {
                let mut values: Vec<V> = first.into_iter().collect();
                $($(
                    let kept = record!(@inserted $($insert)?);
                    values.push(<V as From<Option<$patch>>>::from(self.$field.or_kept(kept)));
                )?)*
                values
            }
        }
    };

    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $column:literal) => { $column };
    (@is_given) => { false };
    (@is_given $type:ty) => { true };
    (@read_as $type:ty) => { $type };
    (@read_as $type:ty, default_if_null) => { Option<$type> };
    (@read $row:ident $columns:ident $type:ty) => { $crate::model::read_next::<$type, R>($row, &mut $columns)? };
    (@read $row:ident $columns:ident $type:ty, default_if_null) => {
        $crate::model::read_next::<Option<$type>, R>($row, &mut $columns)?.unwrap_or_default()
    };
    (@validate [] $($field:tt)*) => {};
    (@validate [$type:ty] $limits:ident $self:ident $field:ident $($column:literal)?) => {
        $crate::model::Validate::validate(&$self.$field, record!(@name $field $($column)?), $limits)?;
    };
    (@inserted) => { None };
    (@inserted $value:expr) => { Some($value) };
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the structs that `record!` declares are public")]
mod tests;
