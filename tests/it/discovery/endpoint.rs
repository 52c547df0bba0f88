//! The endpoint without a server (SPEC 4.1, UPSTREAM 2): `handle(method, target, body)`.

use std::time::Duration;

use serde_json::{Value, json};
use townsquare::{
    Client, ErrorKind,
    discovery::{HttpResponse, Timeframe},
};
use townsquare_tests::{
    catalog::{Catalog, FREQUENT_WORD, full_frame},
    fixture::{FIFTEEN_MINUTES, Fixture, assert_kind},
    upstream::Reply,
};

pub(super) const PATH: &str = "/api/miniapp-discovery";
pub(super) const APPS: usize = 200;

pub(super) async fn fixture() -> (Fixture, Client) {
    let fixture = Fixture::of(Catalog::of(APPS).with_chains().rows());
    let client = fixture.open().await;
    (fixture, client)
}

async fn handle(client: &Client, method: &str, target: &str, body: &[u8]) -> HttpResponse {
    client.discovery().handle(method, target, body, &[]).await.expect("open")
}

pub(super) fn header<'a>(response: &'a HttpResponse, name: &str) -> Option<&'a str> {
    let found = response.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

pub(super) fn json_of(response: &HttpResponse) -> Value {
    assert!(header(response, "content-type").is_some_and(|kind| kind.starts_with("application/json")), "{response:?}");
    serde_json::from_slice(&response.body).expect("JSON")
}

async fn get(client: &Client, query: &str) -> Value {
    let response = handle(client, "GET", &format!("{PATH}{query}"), b"").await;
    assert_eq!(response.status, 200, "{query}: {response:?}");
    json_of(&response)
}

async fn post(client: &Client, body: Value) -> (u16, Value) {
    let response = handle(client, "POST", PATH, body.to_string().as_bytes()).await;
    (response.status, json_of(&response))
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn assert_error(response: &HttpResponse, status: u16, what: &str) -> String {
    assert_eq!(response.status, status, "{what}: {response:?}");
    let body = json_of(response);
    assert_eq!((keys(&body), &body["success"]), (vec!["error", "success"], &json!(false)), "{what}");
    body["error"].as_str().expect("a message").to_owned()
}

#[tokio::test]
async fn get_responds_with_the_documented_body() {
    let (_fixture, client) = fixture().await;
    let body = get(&client, "").await;
    assert_eq!(keys(&body), ["apps", "filters", "stats", "success", "validApps"]);
    let stats = [
        "ageSeconds",
        "cacheSize",
        "fetchedAt",
        "hasApiKey",
        "isCrawling",
        "isStale",
        "lastError",
        "source",
        "staleLists",
        "totalDiscovered",
        "truncated",
        "validApps",
    ];
    assert_eq!(keys(&body["stats"]), stats);
    assert_eq!(keys(&body["filters"]), ["categories", "limit", "networks", "timeWindow", "trending"]);
    assert_eq!((&body["success"], &body["validApps"]), (&json!(true), &json!(50)), "50 by default");
    assert_eq!((&body["stats"]["validApps"], &body["stats"]["totalDiscovered"]), (&json!(APPS), &json!(APPS)));
    assert_eq!((&body["stats"]["hasApiKey"], &body["stats"]["isCrawling"]), (&json!(true), &json!(false)));
    assert!(body["stats"]["cacheSize"].is_u64());
    let filters = &body["filters"];
    assert_eq!(
        (&filters["timeWindow"], &filters["trending"], &filters["limit"]),
        (&json!("24h"), &json!(false), &json!(50))
    );
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50).await.expect("a list");
    let expected: Vec<_> = listed.iter().map(townsquare::discovery::MiniApp::to_json).collect();
    assert_eq!(body["apps"], Value::from(expected));
}

#[tokio::test]
async fn total_discovered_counts_rows_and_valid_apps_counts_apps() {
    let rows = Catalog::of(20).rows();
    let fixture = Fixture::of(rows.chain(Catalog::of(5).rows()).chain([townsquare_tests::catalog::Row::raw("null")]));
    let client = fixture.open().await;
    let body = get(&client, "?limit=3").await;
    assert_eq!((&body["stats"]["totalDiscovered"], &body["stats"]["validApps"]), (&json!(26), &json!(20)));
    assert_eq!(body["validApps"], 3, "the one at the top counts this answer");
}

#[tokio::test]
async fn every_parameter_is_read_and_echoed() {
    let (_fixture, client) = fixture().await;
    let body = get(&client, "?category=games&networks=base%2Ccelo&timeWindow=7d&limit=7&trending=true").await;
    let filters = &body["filters"];
    assert_eq!(
        (&filters["timeWindow"], &filters["trending"], &filters["limit"]),
        (&json!("7d"), &json!(true), &json!(7))
    );
    assert!(filters["categories"].to_string().contains("games"), "{filters}");
    assert!(filters["networks"].to_string().contains("base") && filters["networks"].to_string().contains("celo"));
    let apps = body["apps"].as_array().expect("a list");
    assert!(!apps.is_empty() && apps.len() <= 7);
    for app in apps {
        assert_eq!(app["category"], "games", "filters combine with trending");
        let networks = app["networks"].as_array().expect("a list");
        assert!(networks.is_empty() || networks.iter().any(|name| name == "base" || name == "celo"), "{networks:?}");
    }
    let ranks: Vec<_> = apps.iter().map(|app| app["engagement"]["trendingRank"].as_u64().expect("a rank")).collect();
    assert!(ranks.is_sorted(), "the order is the trending order of timeWindow: {ranks:?}");
}

#[tokio::test]
async fn only_the_value_true_enables_trending() {
    let (_fixture, client) = fixture().await;
    for (value, expected) in
        [("true", true), ("True", false), ("1", false), ("yes", false), ("", false), ("true%20", false)]
    {
        let body = get(&client, &format!("?trending={value}")).await;
        assert_eq!(body["filters"]["trending"], expected, "{value}");
    }
    assert_eq!(get(&client, "?trending=true").await["apps"], get(&client, "").await["apps"], "the order is the same");
}

#[tokio::test]
async fn empty_and_unknown_parameters_are_ignored() {
    let (_fixture, client) = fixture().await;
    let plain = get(&client, "").await;
    for query in [
        "?",
        "?category=&networks=&timeWindow=&limit=&trending=",
        "?colour=red&utm_source=x&cursor=9",
        "?&&&",
        "?=",
        "?category&limit",
    ] {
        assert_eq!(get(&client, query).await, plain, "{query}");
    }
}

#[tokio::test]
async fn invalid_values_are_400_and_named() {
    let (fixture, client) = fixture().await;
    get(&client, "").await;
    let calls = fixture.upstream.request_count();
    for (query, named) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("limit=abc", "limit"),
        ("limit=1e2", "limit"),
        ("limit=5.0", "limit"),
        ("limit=99999999999999999999999", "limit"),
        ("timeWindow=2h", "2h"),
        ("timeWindow=24H", "24H"),
        ("networks=bitcoin", "bitcoin"),
        ("networks=base,bitcoin", "bitcoin"),
        ("category=gamez", "gamez"),
        ("limit=5&limit=6", "limit is given more than once"),
        ("timeWindow=24h&timeWindow=24h", "timeWindow is given more than once"),
        ("trending=true&trending=false", "trending is given more than once"),
    ] {
        let response = handle(&client, "GET", &format!("{PATH}?{query}"), b"").await;
        let message = assert_error(&response, 400, query);
        assert!(message.to_lowercase().contains(&named.to_lowercase()), "{query}: {message}");
    }
    assert_eq!(fixture.upstream.request_count(), calls);
}

#[tokio::test]
async fn hostile_targets_are_400_or_ignored_and_never_a_panic() {
    let (_fixture, client) = fixture().await;
    let huge = "a".repeat(1 << 20);
    let many: String = (0..20_000).map(|index| format!("&limit{index}=1")).collect();
    let commas = ",".repeat(50_000);
    let networks = "base,".repeat(10_000);
    let queries = [
        "%",
        "%z",
        "%zz=1",
        "category=%zz",
        "category=%",
        "limit=%00",
        "limit=%ff",
        "category=%00",
        "category=%c3%28",
        "%ff=%fe",
        "category=\0",
        "limit=5&limit=6",
        "category=games&category=music",
        "timeWindow=24h&timeWindow=7d",
        "limit[]=5",
        "limit=5;limit=6",
        "category=../../etc/passwd",
        "category='%20OR%201=1",
        "networks=,,,",
        "?????",
        "#",
        "limit=%35",
        "é=é",
        "category=\u{202e}",
        "limit=٥",
        "category=%f0%9f%98%80",
        &huge,
        &many,
        &commas,
        &format!("category={huge}"),
        &format!("networks={networks}"),
        &format!("networks={commas}"),
        &format!("limit={huge}"),
    ];
    for query in queries {
        for method in ["GET", "HEAD", "POST", "DELETE", "OPTIONS"] {
            let response = handle(&client, method, &format!("{PATH}?{query}"), b"{}").await;
            let shown: String = query.chars().take(40).collect();
            match method {
                "GET" => {
                    assert!([200, 400].contains(&response.status), "{shown}: {}", response.status);
                    assert_eq!(json_of(&response)["success"], response.status == 200, "{shown}");
                    assert!(response.status == 200 || response.body.len() < 2_000, "{shown}: a short message");
                }
                "HEAD" => assert!([200, 400].contains(&response.status), "{shown}: {}", response.status),
                _ => assert!([204, 400, 405].contains(&response.status), "{method} {shown}: {}", response.status),
            }
        }
    }
    for target in
        ["", "/", "*", "?", "http://", "//", "/api", "/api/miniapp-discovery/x", "/API/MINIAPP-DISCOVERY", "\0", &huge]
    {
        let shown: String = target.chars().take(20).collect();
        assert_error(&handle(&client, "GET", target, b"").await, 404, &shown);
    }
}

#[tokio::test]
async fn undecodable_escapes_in_a_known_parameter_are_400() {
    let (_fixture, client) = fixture().await;
    for query in ["category=%zz", "networks=%", "timeWindow=%c3%28", "limit=%ff"] {
        assert_error(&handle(&client, "GET", &format!("{PATH}?{query}"), b"").await, 400, query);
    }
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let (_fixture, client) = fixture().await;
    for query in ["", "?limit=3", "?limit=0"] {
        let target = format!("{PATH}{query}");
        let (get, head) = (handle(&client, "GET", &target, b"").await, handle(&client, "HEAD", &target, b"").await);
        assert_eq!((head.status, head.body.is_empty()), (get.status, true));
        assert_eq!(header(&head, "content-type"), header(&get, "content-type"));
        if let Some(length) = header(&head, "content-length") {
            assert_eq!(length, get.body.len().to_string());
        }
    }
}

#[tokio::test]
async fn options_and_other_methods_carry_allow() {
    let (_fixture, client) = fixture().await;
    let options = handle(&client, "OPTIONS", PATH, b"").await;
    assert_eq!((options.status, options.body.is_empty()), (204, true));
    let mut responses = vec![options];
    for method in ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "get", "", "G\0T", "BREW"] {
        let response = handle(&client, method, PATH, b"").await;
        assert_error(&response, 405, method);
        responses.push(response);
    }
    for response in responses {
        let allowed: Vec<_> = header(&response, "allow").expect("Allow").split(',').map(str::trim).collect();
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            assert!(allowed.contains(&method), "{allowed:?}");
        }
    }
}

#[tokio::test]
async fn post_search_finds_apps() {
    let (_fixture, client) = fixture().await;
    let (status, body) = post(&client, json!({ "action": "search", "query": FREQUENT_WORD, "limit": 4 })).await;
    assert_eq!((status, keys(&body), &body["success"]), (200, vec!["count", "results", "success"], &json!(true)));
    let found = client.discovery().search_mini_apps(FREQUENT_WORD, 4).await.expect("a list");
    assert_eq!(body["count"], 4);
    assert_eq!(
        body["results"],
        Value::from(found.iter().map(townsquare::discovery::MiniApp::to_json).collect::<Vec<_>>())
    );
    let (status, body) = post(&client, json!({ "action": "search", "query": "zzzzqqqqxxxx" })).await;
    assert_eq!((status, &body["count"], &body["results"]), (200, &json!(0), &json!([])));
}

#[tokio::test]
async fn post_search_without_a_valid_query_is_400() {
    let (_fixture, client) = fixture().await;
    let (status, body) = post(&client, json!({ "action": "search" })).await;
    assert_eq!((status, body), (400, json!({ "success": false, "error": "Search query required" })));
    for query in [json!(7), json!(["a"]), json!({}), json!(true)] {
        let (status, body) = post(&client, json!({ "action": "search", "query": query })).await;
        assert_eq!((status, &body["success"]), (400, &json!(false)), "{query}");
    }
    for limit in [json!(0), json!(1001), json!(-1), json!("x"), json!(2.5), json!([])] {
        let (status, _) = post(&client, json!({ "action": "search", "query": FREQUENT_WORD, "limit": limit })).await;
        assert_eq!(status, 400, "{limit}");
    }
}

#[tokio::test]
async fn post_refresh_reloads_the_catalog() {
    let (fixture, client) = fixture().await;
    get(&client, "").await;
    fixture.upstream.serve(Catalog::of(APPS + 1).rows());
    fixture.clock.advance(Duration::from_secs(60));
    let (status, body) = post(&client, json!({ "action": "refresh" })).await;
    assert_eq!((status, body), (200, json!({ "success": true, "message": "Cache refreshed", "count": APPS + 1 })));
    assert_eq!(fixture.upstream.list_count(), 2);
}

#[tokio::test]
async fn post_trending_lists_apps() {
    let (_fixture, client) = fixture().await;
    let (status, body) = post(&client, json!({ "action": "trending", "timeWindow": "7d", "limit": 5 })).await;
    assert_eq!((status, keys(&body)), (200, vec!["apps", "count", "success"]));
    assert_eq!((&body["count"], &body["apps"]), (&json!(5), &get(&client, "?timeWindow=7d&limit=5").await["apps"]));
    for bad in [json!("2h"), json!(24), json!([])] {
        let (status, _) = post(&client, json!({ "action": "trending", "timeWindow": bad })).await;
        assert_eq!(status, 400, "{bad}");
    }
}

#[tokio::test]
async fn get_and_post_return_apps_in_the_same_format() {
    let fixture = Fixture::of([full_frame("full.example").into()]);
    let client = fixture.open().await;
    let got = get(&client, "").await["apps"][0].clone();
    let (_, searched) = post(&client, json!({ "action": "search", "query": "full house" })).await;
    let (_, trending) = post(&client, json!({ "action": "trending" })).await;
    assert_eq!((&searched["results"][0], &trending["apps"][0]), (&got, &got));
    for field in [
        "id",
        "domain",
        "name",
        "description",
        "iconUrl",
        "homeUrl",
        "category",
        "networks",
        "tags",
        "author",
        "engagement",
        "metadata",
        "lastFetched",
    ] {
        assert!(got.get(field).is_some(), "{field}");
    }
}

#[tokio::test]
async fn unknown_actions_and_invalid_json_are_400() {
    let (_fixture, client) = fixture().await;
    for action in [json!("dance"), json!("Search"), json!(7), json!(null)] {
        let (status, body) = post(&client, json!({ "action": action })).await;
        let message = body["error"].as_str().expect("a message");
        assert_eq!(status, 400, "{action}");
        for known in ["search", "refresh", "trending"] {
            assert!(message.contains(known), "{message}");
        }
    }
    let deep = "[".repeat(60_000);
    for body in ["", "{", "nonsense", "{\"action\":\"search\"", "\u{feff}{}", "\0", "[]", "7", "null", &deep] {
        let shown: String = body.chars().take(10).collect();
        assert_error(&handle(&client, "POST", PATH, body.as_bytes()).await, 400, &shown);
    }
    assert_error(&handle(&client, "POST", PATH, b"{\"action\":\"\xff\xfe\"}").await, 400, "invalid UTF-8");
}

#[tokio::test]
async fn a_body_over_64_kib_is_413_and_one_of_64_kib_is_read() {
    let (_fixture, client) = fixture().await;
    let mut body = br#"{"action":"search","query":"pliox","limit":1}"#.to_vec();
    body.resize(64 * 1024, b' ');
    assert_eq!(handle(&client, "POST", PATH, &body).await.status, 200);
    body.push(b' ');
    assert_error(&handle(&client, "POST", PATH, &body).await, 413, "one byte more");
    assert_error(&handle(&client, "POST", PATH, &vec![b'x'; 10 << 20]).await, 413, "10 MiB");
}

#[tokio::test]
async fn no_catalog_and_a_failed_refresh_are_503() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    fixture.upstream.reply_with(|_| Reply::status(500));
    let client = fixture.open_with(fixture.one_try()).await;
    assert_error(&handle(&client, "GET", PATH, b"").await, 503, "no catalog");
    assert_eq!(handle(&client, "HEAD", PATH, b"").await.status, 503);
    for body in
        [json!({ "action": "refresh" }), json!({ "action": "trending" }), json!({ "action": "search", "query": "x" })]
    {
        let response = handle(&client, "POST", PATH, body.to_string().as_bytes()).await;
        let message = assert_error(&response, 503, "no catalog");
        assert!(!message.contains(townsquare_tests::upstream::KEY));
    }
    fixture.upstream.recover();
    fixture.clock.advance(FIFTEEN_MINUTES);
    assert_eq!(handle(&client, "GET", PATH, b"").await.status, 200);
    fixture.upstream.refuse_connections();
    fixture.clock.advance(Duration::from_secs(60));
    let response = handle(&client, "POST", PATH, br#"{"action":"refresh"}"#).await;
    assert_error(&response, 503, "a failed refresh");
    assert_eq!(handle(&client, "GET", PATH, b"").await.status, 200, "the old catalog answers");
}

#[tokio::test]
async fn a_closed_client_fails_instead_of_responding() {
    let (_fixture, client) = fixture().await;
    client.close().await;
    assert_kind(ErrorKind::Closed, client.discovery().handle("GET", PATH, b"", &[]).await);
}
