//! The endpoint without a server (SPEC 4.1, UPSTREAM 2): `handle(method, target, body)`.

use serde_json::{Value, json};
use townsquare::{Client, ErrorKind, HttpResponse, Timeframe};
use townsquare_tests::{
    catalog::{Catalog, full_frame},
    town::{FIFTEEN_MINUTES, Town, refused},
    upstream::Reply,
};

const PATH: &str = "/api/miniapp-discovery";
const APPS: usize = 200;

async fn town() -> (Town, Client) {
    let town = Town::of(Catalog::of(APPS).saying_chains().rows());
    let client = town.open().await;
    (town, client)
}

async fn ask(client: &Client, method: &str, target: &str, body: &[u8]) -> HttpResponse {
    client.discovery().handle(method, target, body).await.expect("open")
}

fn header<'a>(response: &'a HttpResponse, name: &str) -> Option<&'a str> {
    let found = response.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

fn json_of(response: &HttpResponse) -> Value {
    assert!(header(response, "content-type").is_some_and(|kind| kind.starts_with("application/json")), "{response:?}");
    serde_json::from_slice(&response.body).expect("JSON")
}

async fn get(client: &Client, query: &str) -> Value {
    let response = ask(client, "GET", &format!("{PATH}{query}"), b"").await;
    assert_eq!(response.status, 200, "{query}: {response:?}");
    json_of(&response)
}

async fn post(client: &Client, body: Value) -> (u16, Value) {
    let response = ask(client, "POST", PATH, body.to_string().as_bytes()).await;
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
async fn get_answers_with_the_body_its_callers_know() {
    let (_town, client) = town().await;
    let body = get(&client, "").await;
    assert_eq!(keys(&body), ["apps", "filters", "stats", "success", "validApps"]);
    assert_eq!(keys(&body["stats"]), ["cacheSize", "hasApiKey", "isCrawling", "totalDiscovered", "validApps"]);
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
    let expected: Vec<_> = listed.iter().map(townsquare::MiniApp::to_json).collect();
    assert_eq!(body["apps"], Value::from(expected));
}

#[tokio::test]
async fn total_discovered_counts_rows_and_valid_apps_apps() {
    let rows = Catalog::of(20).rows();
    let town = Town::of(rows.chain(Catalog::of(5).rows()).chain([townsquare_tests::catalog::Row::raw("null")]));
    let client = town.open().await;
    let body = get(&client, "?limit=3").await;
    assert_eq!((&body["stats"]["totalDiscovered"], &body["stats"]["validApps"]), (&json!(26), &json!(20)));
    assert_eq!(body["validApps"], 3, "the one at the top counts this answer");
}

#[tokio::test]
async fn every_parameter_is_read_and_told_back() {
    let (_town, client) = town().await;
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
async fn trending_is_on_only_when_exactly_true() {
    let (_town, client) = town().await;
    for (value, expected) in
        [("true", true), ("True", false), ("1", false), ("yes", false), ("", false), ("true%20", false)]
    {
        let body = get(&client, &format!("?trending={value}")).await;
        assert_eq!(body["filters"]["trending"], expected, "{value}");
    }
    assert_eq!(get(&client, "?trending=true").await["apps"], get(&client, "").await["apps"], "the order is the same");
}

#[tokio::test]
async fn an_empty_parameter_is_one_not_given_and_an_unknown_one_is_ignored() {
    let (_town, client) = town().await;
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
async fn bad_values_are_400_and_name_what_is_bad() {
    let (town, client) = town().await;
    get(&client, "").await;
    let calls = town.upstream.count();
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
    ] {
        let response = ask(&client, "GET", &format!("{PATH}?{query}"), b"").await;
        let message = assert_error(&response, 400, query);
        assert!(message.to_lowercase().contains(&named.to_lowercase()), "{query}: {message}");
    }
    assert_eq!(town.upstream.count(), calls);
}

#[tokio::test]
async fn hostile_targets_are_400_or_ignored_and_never_a_panic() {
    let (_town, client) = town().await;
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
            let response = ask(&client, method, &format!("{PATH}?{query}"), b"{}").await;
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
        assert_error(&ask(&client, "GET", target, b"").await, 404, &shown);
    }
}

#[tokio::test]
async fn undecodable_escapes_in_a_known_parameter_are_400() {
    let (_town, client) = town().await;
    for query in ["category=%zz", "networks=%", "timeWindow=%c3%28", "limit=%ff"] {
        assert_error(&ask(&client, "GET", &format!("{PATH}?{query}"), b"").await, 400, query);
    }
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let (_town, client) = town().await;
    for query in ["", "?limit=3", "?limit=0"] {
        let target = format!("{PATH}{query}");
        let (get, head) = (ask(&client, "GET", &target, b"").await, ask(&client, "HEAD", &target, b"").await);
        assert_eq!((head.status, head.body.is_empty()), (get.status, true));
        assert_eq!(header(&head, "content-type"), header(&get, "content-type"));
        if let Some(length) = header(&head, "content-length") {
            assert_eq!(length, get.body.len().to_string());
        }
    }
}

#[tokio::test]
async fn options_and_other_methods_say_what_is_allowed() {
    let (_town, client) = town().await;
    let options = ask(&client, "OPTIONS", PATH, b"").await;
    assert_eq!((options.status, options.body.is_empty()), (204, true));
    let mut responses = vec![options];
    for method in ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "get", "", "G\0T", "BREW"] {
        let response = ask(&client, method, PATH, b"").await;
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
    let (_town, client) = town().await;
    let (status, body) = post(&client, json!({ "action": "search", "query": "daily", "limit": 4 })).await;
    assert_eq!((status, keys(&body), &body["success"]), (200, vec!["count", "results", "success"], &json!(true)));
    let found = client.discovery().search_mini_apps("daily", 4).await.expect("a list");
    assert_eq!(body["count"], 4);
    assert_eq!(body["results"], Value::from(found.iter().map(townsquare::MiniApp::to_json).collect::<Vec<_>>()));
    let (status, body) = post(&client, json!({ "action": "search", "query": "zzzzqqqqxxxx" })).await;
    assert_eq!((status, &body["count"], &body["results"]), (200, &json!(0), &json!([])));
}

#[tokio::test]
async fn post_search_without_a_good_query_is_400() {
    let (_town, client) = town().await;
    let (status, body) = post(&client, json!({ "action": "search" })).await;
    assert_eq!((status, body), (400, json!({ "success": false, "error": "Search query required" })));
    for query in [json!(7), json!(["a"]), json!({}), json!(true)] {
        let (status, body) = post(&client, json!({ "action": "search", "query": query })).await;
        assert_eq!((status, &body["success"]), (400, &json!(false)), "{query}");
    }
    for limit in [json!(0), json!(1001), json!(-1), json!("x"), json!(2.5), json!([])] {
        let (status, _) = post(&client, json!({ "action": "search", "query": "daily", "limit": limit })).await;
        assert_eq!(status, 400, "{limit}");
    }
}

#[tokio::test]
async fn post_refresh_reloads_the_catalog() {
    let (town, client) = town().await;
    get(&client, "").await;
    town.upstream.serve(Catalog::of(APPS + 1).rows());
    let (status, body) = post(&client, json!({ "action": "refresh" })).await;
    assert_eq!((status, body), (200, json!({ "success": true, "message": "Cache refreshed", "count": APPS + 1 })));
    assert_eq!(town.upstream.lists(), 2);
}

#[tokio::test]
async fn post_trending_lists_apps() {
    let (_town, client) = town().await;
    let (status, body) = post(&client, json!({ "action": "trending", "timeWindow": "7d", "limit": 5 })).await;
    assert_eq!((status, keys(&body)), (200, vec!["apps", "count", "success"]));
    assert_eq!((&body["count"], &body["apps"]), (&json!(5), &get(&client, "?timeWindow=7d&limit=5").await["apps"]));
    for bad in [json!("2h"), json!(24), json!([])] {
        let (status, _) = post(&client, json!({ "action": "trending", "timeWindow": bad })).await;
        assert_eq!(status, 400, "{bad}");
    }
}

#[tokio::test]
async fn get_and_post_give_one_shape_of_an_app() {
    let town = Town::of([full_frame("full.example").into()]);
    let client = town.open().await;
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
async fn unknown_actions_and_bodies_that_are_no_json_are_400() {
    let (_town, client) = town().await;
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
        assert_error(&ask(&client, "POST", PATH, body.as_bytes()).await, 400, &shown);
    }
    assert_error(&ask(&client, "POST", PATH, b"{\"action\":\"\xff\xfe\"}").await, 400, "invalid UTF-8");
}

#[tokio::test]
async fn a_body_over_64_kib_is_413_and_one_of_64_kib_is_read() {
    let (_town, client) = town().await;
    let mut body = br#"{"action":"search","query":"daily","limit":1}"#.to_vec();
    body.resize(64 * 1024, b' ');
    assert_eq!(ask(&client, "POST", PATH, &body).await.status, 200);
    body.push(b' ');
    assert_error(&ask(&client, "POST", PATH, &body).await, 413, "one byte more");
    assert_error(&ask(&client, "POST", PATH, &vec![b'x'; 10 << 20]).await, 413, "10 MiB");
}

#[tokio::test]
async fn nothing_to_answer_from_and_a_failed_refresh_are_503() {
    let town = Town::of(Catalog::of(APPS).rows());
    town.upstream.behave(|_| Reply::status(500));
    let client = town.open_with(town.impatient()).await;
    assert_error(&ask(&client, "GET", PATH, b"").await, 503, "no catalog");
    assert_eq!(ask(&client, "HEAD", PATH, b"").await.status, 503);
    for body in
        [json!({ "action": "refresh" }), json!({ "action": "trending" }), json!({ "action": "search", "query": "x" })]
    {
        let response = ask(&client, "POST", PATH, body.to_string().as_bytes()).await;
        let message = assert_error(&response, 503, "no catalog");
        assert!(!message.contains(townsquare_tests::upstream::KEY));
    }
    town.upstream.recover();
    town.hands.advance(FIFTEEN_MINUTES);
    assert_eq!(ask(&client, "GET", PATH, b"").await.status, 200);
    town.upstream.refuse();
    let response = ask(&client, "POST", PATH, br#"{"action":"refresh"}"#).await;
    assert_error(&response, 503, "a failed refresh");
    assert_eq!(ask(&client, "GET", PATH, b"").await.status, 200, "the old catalog answers");
}

#[tokio::test]
async fn a_closed_client_is_an_error_not_an_answer() {
    let (_town, client) = town().await;
    client.close().await;
    refused(ErrorKind::Closed, client.discovery().handle("GET", PATH, b"").await);
}
