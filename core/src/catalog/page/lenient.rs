//! Lenient JSON values: each accepts any JSON and keeps only a value of the right type.
//!
//! Invariant: deserializing fails only for text that is not JSON; a value of another type is skipped. Strings are
//! borrowed from the text unless they contain escapes.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

/// A text, number, boolean or list; `Other` for null and objects.
#[derive(Default)]
pub(super) enum Lenient<'a> {
    #[default]
    Other,
    Text(Cow<'a, str>),
    Unsigned(u64),
    Number(f64),
    Bool(bool),
    /// The texts of a list, without its other items.
    Texts(Vec<Cow<'a, str>>),
}

impl<'a> Lenient<'a> {
    pub(super) fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Lenient::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn into_texts(self) -> Option<Vec<Cow<'a, str>>> {
        match self {
            Lenient::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// A non-negative integer, also if written as `7.0`.
    pub(super) fn as_count(&self) -> Option<u64> {
        match *self {
            Lenient::Unsigned(count) => Some(count),
            // Below 2^53 every integer has an exact f64.
            Lenient::Number(number) if number.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&number) => {
                Some(number as u64)
            }
            _ => None,
        }
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        match *self {
            Lenient::Unsigned(count) => Some(count as f64),
            Lenient::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        match *self {
            Lenient::Bool(value) => Some(value),
            _ => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Lenient<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Any<'a> {
            type Value = Lenient<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Lenient<'a>, E> {
                Ok(Lenient::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Lenient<'a>, E> {
                Ok(Lenient::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Lenient<'a>, E> {
                Ok(Lenient::Unsigned(number))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Lenient<'a>, E> {
                Ok(Lenient::Number(number as f64))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Lenient<'a>, E> {
                Ok(Lenient::Number(number))
            }
            fn visit_bool<E>(self, flag: bool) -> Result<Lenient<'a>, E> {
                Ok(Lenient::Bool(flag))
            }
            fn visit_unit<E>(self) -> Result<Lenient<'a>, E> {
                Ok(Lenient::Other)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Lenient<'a>, A::Error> {
                let mut texts = Vec::new();
                while let Some(item) = list.next_element::<Lenient<'a>>()? {
                    texts.extend(item.into_text());
                }
                Ok(Lenient::Texts(texts))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Lenient<'a>, A::Error> {
                IgnoredAny.visit_map(map).map(|_| Lenient::Other)
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// An object deserialized as `T`; `None` if the value is not an object.
pub(super) struct Object<T>(pub(super) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Object<T> {
        Object(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|object| Object(Some(object)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Object<T>, A::Error> {
                IgnoredAny.visit_seq(list).map(|_| Object(None))
            }
            fn visit_str<E: Error>(self, _: &str) -> Result<Object<T>, E> {
                Ok(Object(None))
            }
            fn visit_u64<E: Error>(self, _: u64) -> Result<Object<T>, E> {
                Ok(Object(None))
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<Object<T>, E> {
                Ok(Object(None))
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<Object<T>, E> {
                Ok(Object(None))
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Object<T>, E> {
                Ok(Object(None))
            }
            fn visit_unit<E: Error>(self) -> Result<Object<T>, E> {
                Ok(Object(None))
            }
        }
        deserializer.deserialize_any(Map(PhantomData))
    }
}
