//! How much memory a JSON value takes: the budgets of results count it, because the text of a value says little about it.
//! `[{"a":0},{"a":0}]` takes eighty times the memory of its text.

use serde_json::{Map, Value as Json};

/// What a map takes besides its keys and values: a node of its tree has room for eleven of them.
const MAP_NODE: usize = 640;

/// The least that an allocation takes.
const ALLOCATION: usize = 32;

/// About the memory of a value, with what it contains.
pub(crate) fn memory_of(value: &Json) -> usize {
    size_of::<Json>()
        + match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => 0,
            Json::String(text) => text.len() + ALLOCATION,
            Json::Array(values) => ALLOCATION + values.iter().map(memory_of).sum::<usize>(),
            Json::Object(map) => memory_of_map(map),
        }
}

/// About the memory of an object.
pub(crate) fn memory_of_map(map: &Map<String, Json>) -> usize {
    let nodes = if map.is_empty() { 0 } else { MAP_NODE };
    nodes + map.iter().map(|(name, value)| name.len() + ALLOCATION + memory_of(value)).sum::<usize>()
}
