//! The OpenAPI 3.1 document of the endpoint, made from the tables of routes, actions and parameters, and from `schemas.json`.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{
    parameters::{Parameter, ParameterKind},
    routes::{ACTIONS, Action, ROUTES, Route},
};

/// The schemas of the bodies.
const SCHEMAS: &str = include_str!("schemas.json");

/// The document.
pub(super) static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

fn document() -> Value {
    let schemas: Value = serde_json::from_str(SCHEMAS).expect("schemas.json is JSON");
    let paths: Map<String, Value> =
        ROUTES.iter().map(|route| (route.name.path().to_owned(), path_item(route))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Mini app discovery",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

fn path_item(route: &Route) -> Value {
    let mut parameters: Vec<Value> = route.parameters.iter().map(|parameter| query_parameter(parameter)).collect();
    if route.name.path().ends_with("{id}") {
        parameters.push(json!({
            "name": "id", "in": "path", "required": true, "schema": {"type": "string"},
            "description": "The id, the home URL or the domain of an app.",
        }));
    }
    let operation_id = |method: &str| format!("{method}{:?}", route.name);
    let mut item = json!({
        "get": {
            "operationId": operation_id("get"),
            "summary": route.summary,
            "parameters": parameters,
            "responses": responses(&[route.answer], true),
        },
    });
    if route.has_actions {
        let (bodies, answers): (Vec<_>, Vec<_>) =
            ACTIONS.iter().map(|action| (action_body(action), action.answer)).unzip();
        item["post"] = json!({
            "operationId": operation_id("post"),
            "summary": "Searches, lists or refreshes.",
            "requestBody": {"required": true, "content": {"application/json": {"schema": {"oneOf": bodies}}}},
            "responses": responses(&answers, false),
        });
    }
    item
}

fn query_parameter(parameter: &Parameter) -> Value {
    let mut object = json!({
        "name": parameter.name,
        "in": "query",
        "description": parameter.description,
        "required": matches!(parameter.kind, ParameterKind::RequiredText),
        "schema": parameter.schema(),
    });
    if matches!(parameter.kind, ParameterKind::List) {
        (object["style"], object["explode"]) = (json!("form"), json!(false));
    }
    object
}

fn action_body(action: &Action) -> Value {
    let described = |parameter: &&Parameter| {
        let mut schema = parameter.schema();
        schema["description"] = json!(parameter.description);
        (parameter.name.to_owned(), schema)
    };
    let mut properties: Map<String, Value> = action.parameters.iter().map(described).collect();
    properties.insert("action".to_owned(), json!({"const": action.word}));
    let required = action.parameters.iter().filter(|parameter| matches!(parameter.kind, ParameterKind::RequiredText));
    let required: Vec<_> = ["action"].into_iter().chain(required.map(|parameter| parameter.name)).collect();
    json!({"type": "object", "description": action.summary, "properties": properties, "required": required})
}

/// The responses of an operation that is answered with one of these schemas.
fn responses(answers: &[&str], is_cacheable: bool) -> Value {
    let answers: Vec<_> = answers.iter().map(|name| json!({"$ref": format!("#/components/schemas/{name}")})).collect();
    let schema = if let [answer] = &answers[..] { answer.clone() } else { json!({"oneOf": answers}) };
    let mut responses = Map::new();
    responses.insert("200".to_owned(), response("The answer.", &schema));
    if is_cacheable {
        responses.insert("304".to_owned(), json!({"description": "The caller has this version."}));
    }
    let error = json!({"$ref": "#/components/schemas/Error"});
    for (status, description) in [
        ("400", "A parameter or the body is not valid."),
        ("403", "The action is switched off."),
        ("404", "There is no such path or app."),
        ("413", "The body is too large."),
        ("429", "Too many requests; `Retry-After` tells when to try again."),
        ("503", "There is no catalog, or a refresh failed; `Retry-After` tells when to try again."),
        ("500", "An error of the server."),
    ] {
        responses.insert(status.to_owned(), response(description, &error));
    }
    Value::Object(responses)
}

fn response(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}
