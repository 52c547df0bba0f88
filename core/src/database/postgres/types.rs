//! Binds values as statement arguments, and encodes timestamps for sqlx.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use sqlx::{
    Arguments as _, Decode, Encode, Postgres, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo, PgValueFormat, PgValueRef},
    types::Json,
};

use super::errors::internal;
use crate::{database::value::Value, error::Result};

/// A `timestamptz`. The wire format is microseconds since 2000-01-01.
pub(in crate::database) struct Time(pub(in crate::database) Timestamp);

/// 2000-01-01T00:00:00Z in seconds since the Unix epoch.
const EPOCH: i64 = 946_684_800;

impl Type<Postgres> for Time {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("timestamptz")
    }
}

impl Encode<'_, Postgres> for Time {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let micros = self.0.as_microsecond() - EPOCH * 1_000_000;
        <i64 as Encode<'_, Postgres>>::encode(micros, buffer)
    }
}

impl<'r> Decode<'r, Postgres> for Time {
    fn decode(value: PgValueRef<'r>) -> Result<Time, BoxDynError> {
        if value.format() == PgValueFormat::Text {
            return Err("a prepared statement returned a timestamp as text".into());
        }
        let micros = <i64 as Decode<'_, Postgres>>::decode(value)?;
        let epoch = Timestamp::from_second(EPOCH)?;
        Ok(Time(epoch.checked_add(SignedDuration::from_micros(micros))?))
    }
}

/// Binds `value` to the next `$n`.
pub(super) fn bind(arguments: &mut PgArguments, value: &Value<'_>) -> Result<()> {
    let added = match value {
        Value::Boolean(value) => arguments.add(*value),
        Value::Integer(value) => arguments.add(*value),
        Value::Text(value) => arguments.add(value.as_deref()),
        Value::Uuid(value) => arguments.add(*value),
        Value::Timestamp(value) => arguments.add(value.map(Time)),
        Value::Json(value) => arguments.add(value.as_deref().map(Json)),
        Value::Texts(value) => arguments.add(value.as_ref().map(Cow::as_ref)),
    };
    added.map_err(internal)
}
