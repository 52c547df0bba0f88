//! Binds values as statement arguments, and encodes timestamps and JSON for sqlx.

use std::{borrow::Cow, io};

use jiff::Timestamp;
use serde::Serialize as _;
use serde_json::{
    Serializer, Value as Json,
    ser::{CompactFormatter, Formatter},
};
use sqlx::{
    Arguments as _, Decode, Encode, Postgres, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::types::Oid,
    postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo, PgValueFormat, PgValueRef},
};

use super::errors::internal;
use crate::{database::value::Value, error::Result};

/// A `timestamptz`. The wire format is microseconds since 2000-01-01; the smallest and the largest number are
/// PostgreSQL's `-infinity` and `infinity`.
pub(in crate::database) struct Time(i64);

/// 2000-01-01T00:00:00Z in seconds since the Unix epoch.
const EPOCH: i64 = 946_684_800;

impl Type<Postgres> for Time {
    fn type_info() -> PgTypeInfo {
        // By number: a name would cost each new connection a query.
        PgTypeInfo::with_oid(Oid(1184))
    }
}

impl Time {
    /// The time.
    ///
    /// # Errors
    /// The first or the last time, if the time is out of range.
    pub(in crate::database) fn into_timestamp(self) -> Result<Timestamp, Timestamp> {
        let micros = self.0.checked_add(EPOCH * 1_000_000);
        let time = micros.and_then(|micros| Timestamp::from_microsecond(micros).ok());
        time.ok_or(if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }
}

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Time {
        // A page may go on after a row at `-infinity`. Beyond the last time, rows have several values.
        if time == Timestamp::MIN { Time(i64::MIN) } else { Time(time.as_microsecond() - EPOCH * 1_000_000) }
    }
}

impl Encode<'_, Postgres> for Time {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, Postgres>>::encode(self.0, buffer)
    }
}

impl<'r> Decode<'r, Postgres> for Time {
    fn decode(value: PgValueRef<'r>) -> Result<Time, BoxDynError> {
        if value.format() == PgValueFormat::Text {
            return Err("a prepared statement returned a timestamp as text".into());
        }
        <i64 as Decode<'_, Postgres>>::decode(value).map(Time)
    }
}

/// JSON for a `jsonb` column.
struct JsonText<'a>(&'a Json);

/// Writes a whole number of 10^16 and more in full. PostgreSQL stores `1e16` as an integer, which would be read back as an
/// integer, and of 2^53 to 2^64 as another number.
struct WholeFloats;

impl Formatter for WholeFloats {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        if value.fract() == 0.0 { write!(writer, "{value:.1}") } else { CompactFormatter.write_f64(writer, value) }
    }
}

impl Type<Postgres> for JsonText<'_> {
    fn type_info() -> PgTypeInfo {
        <sqlx::types::Json<()> as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for JsonText<'_> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        // The version of the wire format of `jsonb`; text follows.
        buffer.push(1);
        self.0.serialize(&mut Serializer::with_formatter(&mut **buffer, WholeFloats))?;
        Ok(IsNull::No)
    }
}

/// Binds `value` to the next `$n`.
pub(super) fn bind(arguments: &mut PgArguments, value: &Value<'_>) -> Result<()> {
    let added = match value {
        Value::Boolean(value) => arguments.add(*value),
        Value::Integer(value) => arguments.add(*value),
        Value::Text(value) => arguments.add(value.as_deref()),
        Value::Uuid(value) => arguments.add(*value),
        Value::Timestamp(value) => arguments.add(value.map(Time::from)),
        Value::Json(value) => arguments.add(value.as_deref().map(JsonText)),
        Value::Texts(value) => arguments.add(value.as_ref().map(Cow::as_ref)),
        Value::Bytes(value) => arguments.add(value.as_deref()),
    };
    added.map_err(internal)
}
