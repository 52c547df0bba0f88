//! The routes below the endpoint: one app, facets, suggestions, the OpenAPI document (SPEC 4.1).

use serde_json::{Value, json};
use townsquare::{Client, discovery::HttpResponse};
use townsquare_tests::{
    catalog::{Catalog, Row, full_frame},
    fixture::Fixture,
};

use super::endpoint::{APPS, PATH, header};

async fn fixture() -> (Fixture, Client) {
    let rows = Catalog::of(APPS).with_chains().rows().chain([full_frame("full.example").into()]);
    let fixture = Fixture::of(rows);
    let client = fixture.open().await;
    (fixture, client)
}

async fn get(client: &Client, route: &str) -> (HttpResponse, Value) {
    let response = client.discovery().handle("GET", &format!("{PATH}{route}"), b"", &[]).await.expect("open");
    let body = serde_json::from_slice(&response.body).expect("JSON");
    (response, body)
}

#[tokio::test]
async fn one_app_is_found_by_id_url_or_domain() {
    let (_fixture, client) = fixture().await;
    let (_, list) = get(&client, "?limit=1000").await;
    let expected = list["apps"].as_array().expect("a list").last().expect("an app").clone();
    assert_eq!(expected["id"], "full.example/home");
    for id in [
        "full.example/home",
        "full.example%2Fhome",
        "https%3A%2F%2FFULL.example%2Fhome%2F",
        "full.example",
        "full.example/home/",
    ] {
        let (response, body) = get(&client, &format!("/apps/{id}")).await;
        assert_eq!((response.status, &body["app"]), (200, &expected), "{id}");
        assert!(header(&response, "etag").is_some());
    }
    for (id, status) in [("nobody.example", 404), ("%zz", 400), ("%00", 400), ("", 404)] {
        let (response, body) = get(&client, &format!("/apps/{id}")).await;
        assert_eq!((response.status, &body["success"]), (status, &json!(false)), "{id}");
    }
}

#[tokio::test]
async fn facets_count_apps_within_the_other_filter() {
    let (_fixture, client) = fixture().await;
    let (_, all) = get(&client, "/categories").await;
    let (_, on_base) = get(&client, "/categories?networks=base").await;
    let count = |body: &Value| {
        body["categories"].as_array().expect("a list").iter().map(|facet| facet["count"].as_u64()).sum::<Option<u64>>()
    };
    assert!(count(&all) > count(&on_base) && count(&on_base) > Some(0));
    let games = all["categories"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|facet| facet["name"] == "games")
        .expect("games")
        .clone();
    let (response, _) = get(&client, "?category=games&limit=1").await;
    assert_eq!(header(&response, "x-total-count"), Some(games["count"].to_string().as_str()));
    let (_, networks) = get(&client, "/networks?category=games").await;
    assert!(networks["networks"].as_array().expect("a list").iter().any(|facet| facet["name"] == "base"));
    assert_eq!(get(&client, "/categories?networks=bitcoin").await.0.status, 400);
}

#[tokio::test]
async fn suggestions_follow_what_is_typed() {
    let (_fixture, client) = fixture().await;
    let (_, body) = get(&client, "/suggest?query=full+h").await;
    let first = &body["suggestions"][0];
    assert_eq!((&first["text"], &first["app"]["id"]), (&json!("Full House"), &json!("full.example/home")));
    assert_eq!(first["matches"], json!([[0, 6]]));
    assert_eq!(get(&client, "/suggest").await.1["suggestions"], json!([]), "an empty box has no suggestions");
    assert_eq!(get(&client, "/suggest?query=a&limit=51").await.0.status, 400);
}

#[tokio::test]
async fn pages_by_offset_are_the_whole_list() {
    let (_fixture, client) = fixture().await;
    let (_, all) = get(&client, "?limit=1000").await;
    let mut pages = Vec::new();
    for offset in (0..=APPS).step_by(60) {
        let (response, page) = get(&client, &format!("?limit=60&offset={offset}")).await;
        assert_eq!(header(&response, "x-total-count"), Some((APPS + 1).to_string().as_str()));
        pages.extend(page["apps"].as_array().expect("a list").clone());
    }
    assert_eq!(Value::from(pages), all["apps"]);
    assert_eq!(get(&client, "?offset=5000").await.1["apps"], json!([]));
    for bad in ["-1", "x", "99999999999"] {
        assert_eq!(get(&client, &format!("?offset={bad}")).await.0.status, 400, "{bad}");
    }
    let body = json!({"action": "trending", "limit": 10, "offset": 20}).to_string();
    let response = client.discovery().handle("POST", PATH, body.as_bytes(), &[]).await.expect("open");
    let page: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(page["apps"].as_array().expect("a list")[..], all["apps"].as_array().expect("a list")[20..30]);
}

#[tokio::test]
async fn near_copies_are_shown_once_when_asked() {
    let hosts = ["full.example", "play.full.example", "other.test"];
    let fixture = Fixture::of(hosts.map(|host| {
        let mut frame = full_frame(host);
        frame["author"]["fid"] = json!(if host == "other.test" { 2 } else { 1 });
        Row::from(frame)
    }));
    let client = fixture.open().await;
    let shown = |response: &HttpResponse, list: &str| -> (Vec<String>, Option<String>) {
        let body: Value = serde_json::from_slice(&response.body).expect("JSON");
        let apps = body[list].as_array().expect("a list").iter();
        let domains = apps.map(|app| app["domain"].as_str().expect("a host").to_owned()).collect();
        (domains, header(response, "x-total-count").map(str::to_owned))
    };
    let all = (hosts.map(str::to_owned).to_vec(), Some("3".to_owned()));
    let once = (["full.example", "other.test"].map(str::to_owned).to_vec(), Some("2".to_owned()));
    for (query, expected) in [("", &all), ("?collapse=false", &all), ("?collapse=1", &all), ("?collapse=true", &once)] {
        assert_eq!(&shown(&get(&client, query).await.0, "apps"), expected, "{query}");
    }
    for (action, list) in [("search", "results"), ("trending", "apps")] {
        for (collapse, expected) in
            [(json!(null), &all), (json!(false), &all), (json!(true), &once), (json!("true"), &once)]
        {
            let body = json!({"action": action, "query": "full house", "collapse": collapse}).to_string();
            let response = client.discovery().handle("POST", PATH, body.as_bytes(), &[]).await.expect("open");
            assert_eq!(&shown(&response, list), expected, "{action} {collapse}");
        }
        let body = json!({"action": action, "query": "full house", "collapse": 1}).to_string();
        let response = client.discovery().handle("POST", PATH, body.as_bytes(), &[]).await.expect("open");
        assert_eq!(response.status, 400, "{action}");
    }
    for host in hosts {
        assert_eq!(get(&client, &format!("/apps/{host}")).await.1["app"]["domain"], host, "every app has its place");
    }
}

#[tokio::test]
async fn the_other_routes_take_get_only() {
    let (_fixture, client) = fixture().await;
    for route in ["/apps/full.example", "/categories", "/networks", "/suggest", "/openapi.json"] {
        for (method, status) in [("HEAD", 200), ("OPTIONS", 204), ("POST", 405), ("DELETE", 405)] {
            let response = client.discovery().handle(method, &format!("{PATH}{route}"), b"", &[]).await.expect("open");
            assert_eq!(response.status, status, "{method} {route}");
            if status != 200 {
                assert_eq!(header(&response, "allow"), Some("GET, HEAD, OPTIONS"), "{method} {route}");
            }
        }
    }
}

#[tokio::test]
async fn the_document_describes_every_route_and_parameter() {
    let (_fixture, client) = fixture().await;
    let (_, document) = get(&client, "/openapi.json").await;
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("an object");
    for route in ["", "/apps/{id}", "/categories", "/networks", "/suggest", "/openapi.json"] {
        assert!(paths.contains_key(&format!("{PATH}{route}")), "{route}");
    }
    let names = |parameters: &Value| -> Vec<String> {
        let parameters = parameters.as_array().expect("a list");
        parameters.iter().map(|parameter| parameter["name"].as_str().expect("a name").to_owned()).collect()
    };
    let list = &paths[PATH];
    assert_eq!(
        names(&list["get"]["parameters"]),
        ["category", "networks", "timeWindow", "trending", "limit", "offset", "collapse"]
    );
    let bodies =
        list["post"]["requestBody"]["content"]["application/json"]["schema"]["oneOf"].as_array().expect("a list");
    assert_eq!(bodies.len(), 3);
}
