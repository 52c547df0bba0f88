//! What HTTP asks of the endpoint (RFC 9110, 9111, Fetch): caches, compression, CORS, retries; and what callers may cost.

use std::{io::Read, time::Duration};

use serde_json::{Value, json};
use townsquare::{Client, discovery::HttpResponse};
use townsquare_tests::{
    catalog::{Catalog, FREQUENT_WORD},
    fixture::{FIFTEEN_MINUTES, Fixture},
    upstream::Reply,
    wait::until,
};

use super::endpoint::{APPS, PATH, fixture, header, json_of};

async fn handle(client: &Client, method: &str, target: &str, headers: &[(&str, &str)]) -> HttpResponse {
    let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    client.discovery().handle(method, target, b"", &headers).await.expect("open")
}

async fn post(client: &Client, body: Value) -> HttpResponse {
    client.discovery().handle("POST", PATH, body.to_string().as_bytes(), &[]).await.expect("open")
}

#[tokio::test]
async fn a_caller_with_the_current_version_gets_304() {
    let (fixture, client) = fixture().await;
    let target = format!("{PATH}?limit=5");
    let first = handle(&client, "GET", &target, &[]).await;
    let etag = header(&first, "etag").expect("an ETag").to_owned();
    assert!(etag.starts_with("W/\""), "{etag}");
    let strong = etag.trim_start_matches("W/");
    for sent in [etag.as_str(), strong, "*", &format!("\"other\", {etag}")] {
        fixture.clock.advance(Duration::from_secs(1));
        for method in ["GET", "HEAD"] {
            let again = handle(&client, method, &target, &[("If-None-Match", sent)]).await;
            assert_eq!((again.status, again.body.len()), (304, 0), "{sent}");
            assert_eq!(header(&again, "etag"), Some(etag.as_str()));
            assert!(header(&again, "cache-control").is_some());
        }
    }
    for (target, sent) in [(target.as_str(), "\"other\""), (PATH, etag.as_str())] {
        assert_eq!(handle(&client, "GET", target, &[("if-none-match", sent)]).await.status, 200, "another version");
    }
    fixture.upstream.serve(Catalog::of(APPS + 1).rows());
    client.discovery().refresh().await.expect("refreshed");
    assert_eq!(handle(&client, "GET", &target, &[("if-none-match", &etag)]).await.status, 200, "a new catalog");
}

#[tokio::test]
async fn caches_may_keep_a_list_as_long_as_the_catalog_is_fresh() {
    let (fixture, client) = fixture().await;
    let cache_control = async |target: &str| {
        let response = handle(&client, "GET", target, &[]).await;
        header(&response, "cache-control").map(str::to_owned)
    };
    assert_eq!(cache_control(PATH).await.as_deref(), Some("public, max-age=900"));
    fixture.clock.advance(Duration::from_secs(600));
    assert_eq!(cache_control(PATH).await.as_deref(), Some("public, max-age=300"));
    assert_eq!(cache_control(&format!("{PATH}?limit=0")).await.as_deref(), Some("no-store"), "an error");
    assert_eq!(header(&post(&client, json!({"action": "trending"})).await, "cache-control"), Some("no-store"));
    fixture.upstream.reply_with(|_| Reply::status(500));
    fixture.clock.advance(FIFTEEN_MINUTES);
    assert_eq!(cache_control(PATH).await.as_deref(), Some("no-cache"), "a stale catalog");
}

#[tokio::test]
async fn a_large_body_is_compressed_for_callers_that_accept_gzip() {
    let (_fixture, client) = fixture().await;
    let plain = handle(&client, "GET", PATH, &[("accept-encoding", "br, identity")]).await;
    assert_eq!(header(&plain, "content-encoding"), None);
    let small = handle(&client, "GET", &format!("{PATH}?limit=0"), &[("accept-encoding", "gzip")]).await;
    assert_eq!(header(&small, "content-encoding"), None, "a short body is sent as it is");
    let response = handle(&client, "GET", PATH, &[("Accept-Encoding", "gzip, br")]).await;
    assert_eq!(header(&response, "content-encoding"), Some("gzip"));
    assert_eq!(header(&response, "vary"), Some("accept-encoding"));
    assert!(response.body.len() * 3 < plain.body.len(), "{} of {}", response.body.len(), plain.body.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&response.body[..]).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(unpacked, plain.body);
    let head = handle(&client, "HEAD", PATH, &[("accept-encoding", "gzip")]).await;
    assert_eq!(header(&head, "content-length"), Some(response.body.len().to_string().as_str()));
}

#[tokio::test]
async fn only_allowed_origins_may_call() {
    let (fixture, client) = fixture().await;
    let cors = |response: &HttpResponse| response.headers.iter().any(|(name, _)| name.starts_with("access-control"));
    let preflight = [("origin", "https://a.example"), ("access-control-request-method", "POST")];
    assert!(!cors(&handle(&client, "OPTIONS", PATH, &preflight).await), "no origin by default");

    let two = fixture.config().endpoint_origins("https://a.example, http://localhost:3000");
    let client = fixture.open_with(two).await;
    for origin in ["https://a.example", "http://localhost:3000"] {
        let response = handle(&client, "GET", PATH, &[("Origin", origin)]).await;
        assert_eq!(header(&response, "access-control-allow-origin"), Some(origin));
        assert!(header(&response, "vary").is_some_and(|vary| vary.contains("origin")));
        assert!(header(&response, "access-control-expose-headers").is_some_and(|names| names.contains("etag")));
        let response = handle(&client, "OPTIONS", PATH, &[("origin", origin), preflight[1]]).await;
        assert_eq!((response.status, header(&response, "access-control-allow-origin")), (204, Some(origin)));
        assert!(header(&response, "access-control-allow-methods").is_some_and(|methods| methods.contains("POST")));
        assert!(header(&response, "access-control-allow-headers").is_some_and(|names| names.contains("content-type")));
        let error = handle(&client, "GET", &format!("{PATH}?limit=0"), &[("origin", origin)]).await;
        assert_eq!(header(&error, "access-control-allow-origin"), Some(origin), "a page can read the error");
    }
    for origin in ["https://b.example", "https://a.example.evil.example", "http://a.example", "null"] {
        let response = handle(&client, "GET", PATH, &[("origin", origin)]).await;
        assert!(response.status == 200 && !cors(&response), "{origin}");
        assert!(header(&response, "vary").is_some_and(|vary| vary.contains("origin")), "caches tell origins apart");
        assert!(!cors(&handle(&client, "OPTIONS", PATH, &[("origin", origin), preflight[1]]).await), "{origin}");
    }
    let client = fixture.open_with(fixture.config().endpoint_origins("*")).await;
    let response = handle(&client, "GET", PATH, &[("origin", "https://b.example")]).await;
    assert_eq!(header(&response, "access-control-allow-origin"), Some("*"));
}

#[tokio::test]
async fn head_never_has_a_body_and_a_trailing_slash_is_the_same_place() {
    let (_fixture, client) = fixture().await;
    for target in [
        PATH,
        "/api/miniapp-discovery/",
        "/api/miniapp-discovery/?limit=3",
        "/nowhere",
        "/api/miniapp-discovery?limit=0",
    ] {
        let (get, head) = (handle(&client, "GET", target, &[]).await, handle(&client, "HEAD", target, &[]).await);
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{target}");
    }
    let (plain, slash) =
        (handle(&client, "GET", PATH, &[]).await, handle(&client, "GET", &format!("{PATH}/"), &[]).await);
    assert_eq!((plain.body, plain.status), (slash.body, slash.status));
    assert_eq!(handle(&client, "GET", &format!("{PATH}//"), &[]).await.status, 404);
    let too_large = client.discovery().handle("HEAD", PATH, &[b'x'; 70_000], &[]).await.expect("open");
    assert_eq!((too_large.status, too_large.body.len()), (413, 0));
}

#[tokio::test]
async fn stats_tell_source_age_staleness_and_the_last_error() {
    let (fixture, client) = fixture().await;
    fixture.clock.advance(Duration::from_secs(1));
    let stats = json_of(&handle(&client, "GET", PATH, &[]).await)["stats"].clone();
    assert_eq!(
        (&stats["source"], &stats["ageSeconds"], &stats["isStale"]),
        (&json!("upstream"), &json!(0), &json!(false))
    );
    assert_eq!(
        (&stats["lastError"], &stats["staleLists"], &stats["truncated"]),
        (&json!(null), &json!([]), &json!(false))
    );
    fixture.upstream.reply_with(|_| Reply::status(500));
    fixture.clock.advance(FIFTEEN_MINUTES);
    handle(&client, "GET", PATH, &[]).await;
    until("the refresh failed", || client.discovery().stats().expect("open").last_error.is_some()).await;
    let stats = json_of(&handle(&client, "GET", PATH, &[]).await)["stats"].clone();
    assert_eq!((&stats["ageSeconds"], &stats["isStale"]), (&json!(900), &json!(true)));
    assert!(stats["lastError"].as_str().is_some_and(|told| told.contains("500")));
    assert_eq!(stats["fetchedAt"], "2026-01-02T03:04:06.678901Z");
}

#[tokio::test]
async fn repeated_parameters_are_one_list() {
    let (_fixture, client) = fixture().await;
    let apps =
        async |query: &str| json_of(&handle(&client, "GET", &format!("{PATH}?{query}"), &[]).await)["apps"].clone();
    let both = apps("category=games,music&limit=100").await;
    assert_eq!(apps("category=games&category=music&limit=100").await, both);
    assert_ne!(apps("category=games&limit=100").await, both);
    let networks = apps("networks=base,celo&limit=100").await;
    assert_eq!(apps("networks=base&networks=celo&limit=100").await, networks);
}

#[tokio::test]
async fn the_actions_take_the_filters_of_a_list() {
    let (_fixture, client) = fixture().await;
    let list =
        json_of(&handle(&client, "GET", &format!("{PATH}?category=games,music&networks=base&limit=9"), &[]).await);
    for category in [json!("games,music"), json!(["games", "music"])] {
        let body = json!({"action": "trending", "category": category, "networks": ["base"], "limit": 9});
        assert_eq!(json_of(&post(&client, body).await)["apps"], list["apps"]);
    }
    let found = json_of(&post(&client, json!({"action": "search", "query": FREQUENT_WORD, "category": "games"})).await);
    let found = found["results"].as_array().expect("a list").clone();
    assert!(!found.is_empty() && found.iter().all(|app| app["category"] == "games"));
    for bad in
        [json!({"category": 7}), json!({"networks": [7]}), json!({"networks": "bitcoin"}), json!({"category": {}})]
    {
        let mut body = json!({"action": "trending"});
        body.as_object_mut().expect("an object").extend(bad.as_object().expect("an object").clone());
        assert_eq!(post(&client, body).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn callers_cannot_make_every_refresh_a_fetch() {
    let (fixture, client) = fixture().await;
    let refresh = json!({"action": "refresh"});
    handle(&client, "GET", PATH, &[]).await;
    fixture.clock.advance(Duration::from_secs(59));
    for _ in 0..20 {
        let response = post(&client, refresh.clone()).await;
        assert_eq!((response.status, &json_of(&response)["count"]), (200, &json!(APPS)));
    }
    assert_eq!(fixture.upstream.list_count(), 1, "a young catalog answers");
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(post(&client, refresh.clone()).await.status, 200);
    assert_eq!(fixture.upstream.list_count(), 2);

    // A failing upstream is left alone as long as it said.
    fixture.upstream.reply_with(|_| Reply::rate_limited(Some("120")));
    fixture.clock.advance(Duration::from_secs(60));
    for expected in ["120", "90", "60"] {
        let response = post(&client, refresh.clone()).await;
        assert_eq!((response.status, header(&response, "retry-after")), (503, Some(expected)));
        fixture.clock.advance(Duration::from_secs(30));
    }
    assert_eq!(fixture.upstream.list_count(), 3);
    client.discovery().refresh().await.expect_err("the host itself may ask");
    assert_eq!(fixture.upstream.list_count(), 4);
}

#[tokio::test]
async fn refresh_can_be_switched_off() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let client = fixture.open_with(fixture.config().endpoint_refresh(false)).await;
    handle(&client, "GET", PATH, &[]).await;
    fixture.clock.advance(FIFTEEN_MINUTES);
    let response = post(&client, json!({"action": "refresh"})).await;
    assert_eq!((response.status, &json_of(&response)["success"]), (403, &json!(false)));
    assert_eq!(fixture.upstream.list_count(), 1);
    client.discovery().refresh().await.expect("the host itself may ask");
}

#[tokio::test]
async fn no_message_names_a_path_of_the_host() {
    let folder = townsquare_tests::temp_dir();
    let missing = folder.path().join("secret-folder/catalog.json");
    let config = townsquare::Config::new().data_dir(folder.path().join("data"));
    let client = Client::open(config.catalog_url(format!("file://{}", missing.display()))).await.expect("opens");
    for response in [handle(&client, "GET", PATH, &[]).await, post(&client, json!({"action": "refresh"})).await] {
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, 503, "{text}");
        assert!(header(&response, "retry-after").is_some_and(|wait| wait.parse::<u64>().is_ok_and(|wait| wait >= 1)));
        assert!(text.contains("catalog file"), "{text}");
        for part in ["secret-folder", folder.path().to_str().expect("UTF-8")] {
            assert!(!text.contains(part), "{text}");
        }
    }
}
