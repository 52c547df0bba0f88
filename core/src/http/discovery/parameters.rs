//! The parameters of the endpoint: one table for the code that reads them and for the OpenAPI document.
//!
//! Invariant: a GET request and the JSON body of a POST request name, read and refuse a parameter alike. An empty parameter
//! is one that is not given.

use std::{borrow::Cow, str::FromStr};

use serde_json::{Map, Value, json};

use super::bad_request;
use crate::{
    catalog::{CATEGORIES, Selection, Timeframe},
    http::{
        refusal::HttpRefusal,
        target::{Query, Target},
    },
    validate,
};

/// A parameter of a route.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) kind: ParameterKind,
}

#[derive(Clone, Copy)]
pub(super) enum ParameterKind {
    /// Texts: repeated or separated by commas in a query, a text or an array in a body.
    List,
    Text,
    RequiredText,
    Timeframe,
    /// True if it is the word `true`, or in a body the value.
    Flag,
    /// A whole number from the first to the second value, and its default.
    Number(u32, u32, u32),
}

pub(super) static CATEGORY: Parameter =
    Parameter::new("category", "Apps of any of these categories.", ParameterKind::List);
pub(super) static NETWORKS: Parameter =
    Parameter::new("networks", "Apps that run on any of these networks.", ParameterKind::List);
pub(super) static TIME_WINDOW: Parameter =
    Parameter::new("timeWindow", "The time window of the trending order.", ParameterKind::Timeframe);
pub(super) static TRENDING: Parameter =
    Parameter::new("trending", "Echoed in `filters`; the order is the trending order either way.", ParameterKind::Flag);
pub(super) static LIMIT: Parameter =
    Parameter::new("limit", "The largest number of apps.", ParameterKind::Number(1, validate::MAX_LIMIT, 50));
pub(super) static OFFSET: Parameter = Parameter::new(
    "offset",
    "The number of apps to leave out before the first.",
    ParameterKind::Number(0, u32::MAX, 0),
);
pub(super) static COLLAPSE: Parameter = Parameter::new(
    "collapse",
    "Whether near-copies (apps with the same name and author) are listed once.",
    ParameterKind::Flag,
);
/// What is typed into a search box; nothing is suggested for an empty one.
pub(super) static TYPED: Parameter = Parameter::new("query", "The text in the search box.", ParameterKind::Text);
pub(super) static SUGGESTIONS: Parameter =
    Parameter::new("limit", "The largest number of suggestions.", ParameterKind::Number(1, 50, 8));
pub(super) static QUERY: Parameter = Parameter::new("query", "The words to search for.", ParameterKind::RequiredText);

/// The parameters of a request, from its query or its body.
pub(super) enum Input<'a> {
    Query(Query),
    Body(&'a Map<String, Value>),
}

impl Parameter {
    const fn new(name: &'static str, description: &'static str, kind: ParameterKind) -> Parameter {
        Parameter { name, description, kind }
    }

    /// The JSON schema of the parameter's values.
    pub(super) fn schema(&self) -> Value {
        match self.kind {
            ParameterKind::List if self.name == CATEGORY.name => {
                json!({"type": "array", "items": {"type": "string", "examples": CATEGORIES}})
            }
            ParameterKind::List => json!({"type": "array", "items": {"type": "string"}}),
            ParameterKind::Text | ParameterKind::RequiredText => json!({"type": "string"}),
            ParameterKind::Timeframe => json!({
                "type": "string",
                "enum": Timeframe::ALL.map(Timeframe::as_str),
                "default": Timeframe::default().as_str(),
            }),
            ParameterKind::Flag => json!({"type": "boolean", "default": false}),
            ParameterKind::Number(least, most, default) => {
                json!({"type": "integer", "minimum": least, "maximum": most, "default": default})
            }
        }
    }

    /// What a value of another type is refused with.
    fn refusal(&self) -> HttpRefusal {
        bad_request(match self.kind {
            ParameterKind::List => format!("{} is a text or a list of texts", self.name),
            ParameterKind::Flag => format!("{} is true or false", self.name),
            ParameterKind::Number(least, most, _) => {
                format!("{} is a whole number from {least} to {most}", self.name)
            }
            _ => format!("{} is a string", self.name),
        })
    }
}

impl<'a> Input<'a> {
    /// # Errors
    /// 400 for a malformed query.
    pub(super) fn of_query(target: &Target<'_>) -> Result<Input<'a>, HttpRefusal> {
        target.parameters().map(Input::Query).map_err(bad_request)
    }

    /// A text; `None` if it is absent or empty.
    ///
    /// # Errors
    /// 400 if a query has several, and for another value than a text.
    pub(super) fn text(&self, parameter: &Parameter) -> Result<Option<&str>, HttpRefusal> {
        let text = match self {
            Input::Query(query) => query.single(parameter.name).map_err(bad_request)?,
            Input::Body(body) => match body.get(parameter.name) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(text.as_str()),
                Some(_) => return Err(parameter.refusal()),
            },
        };
        Ok(text.filter(|text| !text.is_empty()))
    }

    pub(super) fn flag(&self, parameter: &Parameter) -> Result<bool, HttpRefusal> {
        if let Input::Body(body) = self
            && let Some(Value::Bool(value)) = body.get(parameter.name)
        {
            return Ok(*value);
        }
        Ok(self.text(parameter)? == Some("true"))
    }

    /// The items of a list.
    pub(super) fn list(&self, parameter: &Parameter) -> Result<Vec<String>, HttpRefusal> {
        let values: Vec<Cow<'_, str>> = match self {
            Input::Query(query) => query.all(parameter.name).map(Cow::Borrowed).collect(),
            Input::Body(body) => match body.get(parameter.name) {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::String(text)) => vec![text.into()],
                Some(Value::Array(items)) => {
                    let texts = items.iter().map(|item| item.as_str().map(Cow::Borrowed));
                    texts.collect::<Option<_>>().ok_or_else(|| parameter.refusal())?
                }
                Some(_) => return Err(parameter.refusal()),
            },
        };
        let items = values.iter().flat_map(|value| value.split(','));
        Ok(items.map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
    }

    /// A number, or its default.
    pub(super) fn number(&self, parameter: &Parameter) -> Result<u32, HttpRefusal> {
        let ParameterKind::Number(least, most, default) = parameter.kind else { return Err(parameter.refusal()) };
        let number = match self {
            Input::Query(query) => match query.single(parameter.name).map_err(bad_request)? {
                None => return Ok(default),
                // `parse` alone would accept a plus sign.
                Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
                Some(_) => None,
            },
            Input::Body(body) => match body.get(parameter.name) {
                None | Some(Value::Null) => return Ok(default),
                Some(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            },
        };
        number.filter(|number| (least..=most).contains(number)).ok_or_else(|| parameter.refusal())
    }

    pub(super) fn timeframe(&self) -> Result<Timeframe, HttpRefusal> {
        Ok(self.text(&TIME_WINDOW)?.map(Timeframe::from_str).transpose()?.unwrap_or_default())
    }

    /// The selection of a list.
    pub(super) fn selection(&self) -> Result<Selection, HttpRefusal> {
        let mut selection = Selection::first(self.number(&LIMIT)?).offset(self.number(&OFFSET)?.into());
        if self.flag(&COLLAPSE)? {
            selection = selection.collapsed();
        }
        Ok(selection.in_categories(self.list(&CATEGORY)?).on_networks(self.list(&NETWORKS)?))
    }
}
