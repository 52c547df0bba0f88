//! Operations on large tables of PostgreSQL find their rows in indexes (DESIGN 4). The server logs the plan of each statement, also
//! of those in functions and triggers, with the rows that it read: no statement of an operation reads many rows of a large table.
//!
//! A new operation gets a line in [`operations`]. An operation that reads everything on purpose, such as an export, has none.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    panic::{self, AssertUnwindSafe},
    time::Duration,
};

use serde_json::{Value, json};
use townsquare::{
    Config, Uuid,
    auth::{NewCredential, SignOutScope, UserPatch, identity_claim},
    blocking::Client,
    communities::{CommunityPatch, DomainType, NewRegistration, SpaceType},
    config::ManualClock,
    realtime::ChangeRequest,
    rows::ImportOptions,
    spaces::{FidgetPatch, NewFidget, NewSpace, SpacePatch},
    storage::{ListFiles, Overwrite, UploadOptions, UrlMethod},
};
use townsquare_tests::{
    fixture::start_time,
    postgres::{Server, server},
    raw_sql::RawConnection,
    skip::skip,
    temp_dir,
};

const PASSWORD: &str = "correct horse battery";

/// Rows of each large table.
const ROWS: u64 = 6_000;

/// The most rows of a large table that a node of a plan may read. A page of an operation has 100 rows at most here.
const MOST: f64 = 1_000.0;

/// The tables that grow with the users of a town.
const LARGE: [&str; 12] = [
    "users",
    "credentials",
    "sessions",
    "identities",
    "verified_emails",
    "spaces",
    "fidgets",
    "files",
    "file_contents",
    "former_spaces",
    "spaceRegistrations",
    "community_domains",
];

/// The plans of all statements in the log, with the rows that they read.
const SETTINGS: &[&str] = &[
    "fsync=off",
    "jit=off",
    "autovacuum=off",
    "session_preload_libraries=auto_explain",
    "auto_explain.log_min_duration=0",
    "auto_explain.log_analyze=on",
    "auto_explain.log_timing=off",
    "auto_explain.log_nested_statements=on",
    "auto_explain.log_format=json",
];

/// A town with large tables.
struct Town {
    service: Client,
    anonymous: Client,
    /// A user with a space, a fidget and files.
    ann: Client,
    id: Uuid,
    space: Uuid,
    fidget: Uuid,
    community: String,
    /// Another user, whom the service deletes.
    other: Uuid,
}

/// The identity key of ann, an admin of the community.
const ADMIN_KEY: &str = "abababababababababababababababababababababababababababababababab";

/// Fills each large table, by the administrator: no trigger runs, and no change is logged.
fn fill(administrator: &RawConnection) {
    administrator.run(&format!(
        "SET session_replication_role = replica;
         INSERT INTO users (id, email) SELECT md5('u' || n)::uuid, n || '@rows.example' FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO townsquare.credentials SELECT id, '$argon2id$', now() FROM users;
         INSERT INTO townsquare.verified_emails SELECT id, email, now() FROM users;
         INSERT INTO townsquare.sessions SELECT md5('a' || id), id, id, md5('r' || id), now(), now() + interval '1 day',
            now() + interval '1 day' FROM users;
         INSERT INTO townsquare.identities SELECT md5('a' || id) || md5('b' || id), id, now() FROM users;
         INSERT INTO spaces (id, name, owner_id, is_public, created_at)
            SELECT md5('s' || n)::uuid, n, md5('u' || n)::uuid, n % 2 = 0, now() - n * interval '1 second'
            FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO townsquare.former_spaces SELECT md5('f' || n)::uuid FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO fidgets (space_id, type) SELECT id, 'clock' FROM spaces;
         INSERT INTO \"spaceRegistrations\" (\"spaceId\", \"spaceName\", \"spaceType\") SELECT id, name, 'profile' FROM spaces;
         INSERT INTO community_configs (community_id, brand_config, assets_config, community_config, fidgets_config)
            SELECT 'c' || n, '{{}}', '{{}}', '{{}}', '{{}}' FROM generate_series(1, 200) AS n;
         INSERT INTO community_domains (community_id, domain, domain_type)
            SELECT 'd' || n, n || '.rows.example', 'custom' FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO townsquare.files (bucket, path, access, space_id, first_segment, owner_id, size, content_type, cache_control,
                etag, is_inline, updated_at)
            SELECT 'spaces', id || '/a', 'spaces', id, id::text, owner_id, 0, 'text/plain', 0, 'e', true, now() FROM spaces;
         INSERT INTO townsquare.files (bucket, path, access, first_segment, owner_id, size, content_type, cache_control, etag,
                is_inline, updated_at)
            SELECT bucket, segment || '/a', access, segment, id, 0, 'text/plain', 0, 'e', true, now()
            FROM users, LATERAL (VALUES ('private', 'private', id::text), ('assets', 'public', 'x' || id)) AS folder (bucket, access, segment);
         INSERT INTO townsquare.file_contents SELECT bucket, path, '' FROM townsquare.files;
         RESET session_replication_role"
    ));
    administrator.run("VACUUM ANALYZE");
}

impl Town {
    fn new(client: &Client) -> Town {
        let service = client.as_service();
        let ann = sign_up(client, "ann@town.example");
        let id = ann.auth().get_session().expect("asked").expect("a session").user.id;
        let space = ann.spaces().create_space(NewSpace::named("harbor")).expect("a space").id;
        let fidget = ann.fidgets().create_fidget(space, NewFidget::of_type("clock")).expect("a fidget").id;
        for (bucket, folder) in
            [("spaces", space.to_string()), ("private", id.to_string()), ("assets", "ann".to_owned())]
        {
            let path = format!("{folder}/note.txt");
            ann.storage().upload(bucket, &path, "hello", UploadOptions::new()).expect("a file");
        }
        let other =
            sign_up(client, "bob@town.example").auth().get_session().expect("asked").expect("a session").user.id;
        Town { anonymous: client.as_anonymous(), service, ann, id, space, fidget, community: "c7".to_owned(), other }
    }

    /// Calls an operation for each kind of caller.
    fn each(&self, call: impl Fn(&Client)) {
        for caller in [&self.ann, &self.anonymous, &self.service] {
            call(caller);
        }
    }

    fn of_space(&self, name: &str) -> String {
        format!("{}/{name}", self.space)
    }

    fn private(&self, name: &str) -> String {
        format!("{}/{name}", self.id)
    }
}

fn sign_up(client: &Client, address: &str) -> Client {
    client.auth().sign_up(address, PASSWORD).expect("an account");
    let session = client.as_service().auth().create_session(address, PASSWORD).expect("a session");
    client.as_user(&session.access_token).expect("a handle")
}

/// The name of an operation, and a call of it.
type Call = (&'static str, fn(&Town));

fn operations() -> Vec<Call> {
    [tables(), lists(), files(), changes(), accounts()].concat()
}

fn tables() -> Vec<Call> {
    vec![
        ("create_space", |town| drop(town.ann.spaces().create_space(NewSpace::named("x")).expect("created"))),
        ("create_spaces", |town| {
            drop(town.ann.spaces().create_spaces(vec![NewSpace::named("x"); 3]).expect("created"));
        }),
        ("get_space", |town| town.each(|of| drop(of.spaces().get_space(town.space)))),
        ("update_space", |town| {
            town.ann.spaces().update_space(town.space, SpacePatch::new().published()).expect("changed");
        }),
        ("set_owner", |town| {
            let space = town.service.spaces().create_space(NewSpace::named("x")).expect("created").id;
            town.service.spaces().set_owner(space, town.other).expect("changed");
        }),
        ("delete_space", |town| {
            let space = town.ann.spaces().create_space(NewSpace::named("x")).expect("created").id;
            town.ann.spaces().delete_space(space).expect("deleted");
        }),
        ("create_fidget", |town| {
            town.ann.fidgets().create_fidget(town.space, NewFidget::of_type("x")).expect("created");
        }),
        ("create_fidgets", |town| {
            town.ann.fidgets().create_fidgets(town.space, vec![NewFidget::of_type("x"); 3]).expect("created");
        }),
        ("save_positions", |town| {
            let positions = [(town.fidget, Some(json!({"x": 1})))].into();
            town.ann.fidgets().save_positions(town.space, positions).expect("saved");
        }),
        ("get_fidget", |town| town.each(|of| drop(of.fidgets().get_fidget(town.fidget)))),
        ("update_fidget", |town| {
            town.ann.fidgets().update_fidget(town.fidget, FidgetPatch::new().kind("x")).expect("changed");
        }),
        ("delete_fidget", |town| {
            let fidget = town.ann.fidgets().create_fidget(town.space, NewFidget::of_type("x")).expect("created").id;
            town.ann.fidgets().delete_fidget(fidget).expect("deleted");
        }),
        ("save_community_config", |town| {
            town.service.communities().save_community_config(&town.community, CommunityPatch::new()).expect("saved");
        }),
        ("get_active_community_config", |town| {
            town.each(|of| drop(of.communities().get_active_community_config(&town.community).expect("asked")));
        }),
        ("save_community_domain", |town| {
            let communities = town.service.communities();
            communities.save_community_domain(&town.community, "town.example", DomainType::Custom).expect("saved");
        }),
        ("resolve_community", |town| {
            town.each(|of| drop(of.communities().resolve_community("town.example").expect("asked")));
        }),
        ("update_navigation", |town| {
            town.ann.communities().update_navigation(&town.community, None).expect("ann is an admin");
        }),
        ("delete_community_domain", |town| {
            town.service.communities().delete_community_domain("town.example").expect("deleted");
        }),
        ("register_space", |town| {
            let registration = NewRegistration::new(town.space, "harbor", SpaceType::Profile);
            town.ann.communities().register_space(registration).expect("registered");
        }),
        ("get_space_registration", |town| {
            town.each(|of| drop(of.communities().get_space_registration(town.space).expect("asked")));
        }),
        ("import_rows", |town| {
            let time = json!("2026-01-02T03:04:05Z");
            let row = [
                ("id", json!(Uuid::new_v4())),
                ("email", json!("Eve@rows.example")),
                ("created_at", time.clone()),
                ("updated_at", time),
            ];
            let row = row.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
            town.service.import_rows("users", vec![row], ImportOptions::new()).expect("imported");
        }),
    ]
}

fn lists() -> Vec<Call> {
    vec![
        ("get_user_spaces", |town| town.each(|of| drop(of.spaces().get_user_spaces(town.id).expect("asked")))),
        ("get_public_spaces", |town| town.each(|of| drop(of.spaces().get_public_spaces(20, 40).expect("asked")))),
        ("get_public_spaces_after", |town| {
            town.each(|of| {
                let after = of.spaces().get_public_spaces(1, 500).expect("asked").remove(0);
                of.spaces().get_public_spaces_after(20, &after).expect("asked");
            });
        }),
        ("iter_public_spaces", |town| {
            town.each(|of| assert_eq!(of.spaces().iter_public_spaces(10).take(30).filter(Result::is_ok).count(), 30));
        }),
        ("get_space_with_fidgets", |town| town.each(|of| drop(of.spaces().get_space_with_fidgets(town.space)))),
        ("get_space_with_any_fidgets", |town| town.each(|of| drop(of.spaces().get_space_with_any_fidgets(town.space)))),
        ("get_space_fidgets", |town| town.each(|of| drop(of.fidgets().get_space_fidgets(town.space)))),
        ("get_space_fidgets_after", |town| {
            town.each(|of| {
                let first = of.fidgets().get_space_fidgets_after(town.space, 1, None).expect("asked");
                of.fidgets().get_space_fidgets_after(town.space, 1, first.last().map(Into::into)).expect("asked");
            });
        }),
        ("list_spaces", |town| {
            let first = town.service.spaces().list_spaces(10, None).expect("asked");
            town.service.spaces().list_spaces(10, first.last().map(|row| row.id)).expect("asked");
        }),
        ("list_community_configs", |town| {
            drop(town.service.communities().list_community_configs(10, None).expect("asked"));
        }),
        ("list_community_domains", |town| {
            drop(town.service.communities().list_community_domains(10, None).expect("asked"));
        }),
        ("list_space_registrations", |town| {
            town.service.communities().list_space_registrations(10, None).expect("asked");
        }),
        ("list_users", |town| {
            let first = town.service.auth().list_users(10, None).expect("asked");
            town.service.auth().list_users(10, first.last().map(|user| user.id)).expect("asked");
        }),
    ]
}

fn files() -> Vec<Call> {
    vec![
        ("upload", |town| {
            for (bucket, path) in
                [("spaces", town.of_space("new")), ("private", town.private("new")), ("assets", "new/a".to_owned())]
            {
                town.ann.storage().upload(bucket, &path, "x", UploadOptions::new()).expect("uploaded");
                town.ann.storage().upload(bucket, &path, "y", UploadOptions::new()).expect("replaced");
            }
        }),
        ("upload of an object", |town| {
            let large = vec![b'x'; 2 << 20];
            town.ann
                .storage()
                .upload("spaces", &town.of_space("large"), large, UploadOptions::new())
                .expect("uploaded");
        }),
        ("download", |town| {
            town.each(|of| drop(of.storage().download("spaces", &town.of_space("note.txt")).expect("downloaded")));
            town.ann.storage().download("private", &town.private("note.txt")).expect("downloaded");
        }),
        ("stat", |town| town.each(|of| drop(of.storage().stat("spaces", &town.of_space("note.txt")).expect("asked")))),
        ("exists", |town| {
            town.each(|of| assert!(!of.storage().exists("private", &town.private("none")).expect("asked")));
        }),
        ("list of a space", |town| {
            town.each(|of| {
                of.storage().list("spaces", ListFiles::with_prefix(town.of_space(""))).expect("a list");
            });
        }),
        ("list of all spaces", |town| {
            town.each(|of| {
                let page = of.storage().list("spaces", ListFiles::new().limit(50)).expect("a list");
                assert_eq!(page.len(), 50);
                let after = &page[49].path;
                assert_eq!(
                    of.storage().list("spaces", ListFiles::new().limit(50).after(after)).expect("a list").len(),
                    50
                );
            });
        }),
        ("list of a private bucket", |town| {
            town.each(|of| drop(of.storage().list("private", ListFiles::new().limit(50)).expect("a list")));
        }),
        ("list of a public bucket", |town| {
            town.each(|of| drop(of.storage().list("assets", ListFiles::new().limit(50)).expect("a list")));
        }),
        ("copy", |town| {
            let (from, to) = (town.of_space("note.txt"), town.of_space("copy"));
            town.ann.storage().copy("spaces", &from, &to, Overwrite::Refuse).expect("copied");
        }),
        ("move_file", |town| {
            let (from, to) = (town.of_space("copy"), town.of_space("moved"));
            town.ann.storage().move_file("spaces", &from, &to, Overwrite::Refuse).expect("moved");
        }),
        ("signed_url", |town| {
            let (path, storage) = (town.private("note.txt"), town.ann.storage());
            let url = storage.signed_url("private", &path, UrlMethod::Get, Duration::from_secs(60)).expect("a URL");
            let answer = town.anonymous.storage().handle_file("GET", &url, &[], "").expect("answered");
            assert_eq!(answer.status, 200);
        }),
        ("delete", |town| town.ann.storage().delete("spaces", &town.of_space("moved")).expect("deleted")),
        ("delete_prefix", |town| {
            assert_eq!(town.ann.storage().delete_prefix("spaces", &town.of_space("l")).expect("deleted"), 1);
        }),
    ]
}

fn changes() -> Vec<Call> {
    vec![
        ("cursor", |town| town.each(|of| drop(of.realtime().cursor()))),
        ("changes", |town| {
            let mut changes = town.ann.realtime().changes(ChangeRequest::table("spaces")).expect("a stream");
            town.ann.spaces().create_space(NewSpace::named("x")).expect("created");
            changes.next().expect("a change").expect("a change");
        }),
        ("changes of files", |town| {
            let mut changes = town.ann.realtime().changes(ChangeRequest::table("files")).expect("a stream");
            town.ann.storage().upload("private", &town.private("new"), "z", UploadOptions::new()).expect("uploaded");
            changes.next().expect("a change").expect("a change");
        }),
        ("stats of realtime", |town| assert!(town.service.realtime().stats().is_ok())),
        ("visibility of a space", |town| {
            for patch in [SpacePatch::new().hidden(), SpacePatch::new().published()] {
                town.ann.spaces().update_space(town.space, patch).expect("changed");
            }
        }),
    ]
}

fn accounts() -> Vec<Call> {
    const SECRET: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    vec![
        ("sign_up", |town| drop(town.anonymous.auth().sign_up("eve@town.example", PASSWORD).expect("an account"))),
        ("sign_up with a taken address", |town| {
            assert!(town.anonymous.auth().sign_up("7@rows.example", PASSWORD).is_err());
        }),
        ("sign_in", |town| {
            let session = town.service.auth().sign_in("eve@town.example", PASSWORD).expect("a session");
            let refreshed = town.service.auth().refresh_session_of(&session.refresh_token).expect("a session");
            let eve = town.service.as_user(&refreshed.access_token).expect("a handle");
            eve.auth().get_session().expect("asked").expect("a session");
            eve.auth().sign_out().expect("signed out");
        }),
        ("sign_in with an unknown address", |town| {
            assert!(town.service.auth().sign_in("nobody@rows.example", PASSWORD).is_err());
        }),
        ("update_user", |town| {
            town.ann.auth().update_user(PASSWORD, UserPatch::new().email("Ann2@town.example")).expect("changed");
        }),
        ("link_identity", |town| {
            let claim = identity_claim(town.id, SECRET, "town.example", townsquare::Timestamp::now()).expect("a claim");
            town.ann.auth().link_identity(&claim).expect("linked");
        }),
        ("identities", |town| drop(town.ann.auth().identities().expect("asked"))),
        ("identities_of", |town| drop(town.service.auth().identities_of(town.id).expect("asked"))),
        ("unlink_identity", |town| {
            let key = town.ann.auth().identities().expect("asked").remove(0);
            town.ann.auth().unlink_identity(&key).expect("unlinked");
        }),
        ("sessions_of", |town| drop(town.service.auth().sessions_of(town.id).expect("asked"))),
        ("end_sessions", |town| assert_eq!(town.service.auth().end_sessions(town.other).expect("ended"), 1)),
        ("find_user", |town| assert!(town.service.auth().find_user("7@rows.example").expect("asked").is_some())),
        ("create_recovery_token", |town| {
            let token = town.service.auth().create_recovery_token("eve@town.example").expect("asked").expect("a token");
            town.service.as_anonymous().auth().recover(&token, PASSWORD).expect("recovered");
        }),
        ("create_verification_token", |town| {
            let token = town.service.auth().create_verification_token(town.id).expect("a token");
            town.service.auth().verify_email(&token).expect("verified");
        }),
        ("set_password", |town| town.service.auth().set_password(town.other, PASSWORD).expect("set")),
        ("import_credentials", |town| {
            let hash = bcrypt::hash_with_salt("pw", 4, [7; 16]).expect("a hash").to_string();
            town.service
                .auth()
                .import_credentials(vec![NewCredential::of_address("8@rows.example", hash)])
                .expect("imported");
        }),
        ("sign_out_scope", |town| town.ann.auth().sign_out_scope(SignOutScope::Others).expect("signed out")),
        ("delete_user", |town| town.service.auth().delete_user(town.other).expect("deleted")),
        ("delete_own_user", |town| town.ann.auth().delete_own_user(PASSWORD).expect("deleted")),
    ]
}

/// The plans in a part of the server's log, with the text of their statements.
fn plans(log: &str) -> Vec<Value> {
    let mut plans = Vec::new();
    let mut lines = log.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.ends_with("plan:") {
            continue;
        }
        let mut text = String::new();
        // The server indents all lines of an entry but the first.
        while let Some(line) = lines.next_if(|line| line.starts_with('\t')) {
            text.push_str(line.trim_start());
        }
        match serde_json::from_str(&text) {
            Ok(plan) => plans.push(plan),
            // A task of the client runs a statement, and the server has written half of its plan.
            Err(_) if lines.peek().is_none() => {}
            Err(error) => panic!("{error}: {text}"),
        }
    }
    plans
}

/// Adds the nodes of a plan that read many rows of a large table.
fn large_reads(node: &Value, found: &mut Vec<String>) {
    let number = |name: &str| node[name].as_f64().unwrap_or_default();
    let table = node["Relation Name"].as_str().unwrap_or_default();
    if LARGE.contains(&table) && node["Node Type"] != "ModifyTable" {
        let removed = number("Rows Removed by Filter") + number("Rows Removed by Index Recheck");
        let rows = (number("Actual Rows") + removed) * number("Actual Loops");
        if rows > MOST {
            let of_index = node["Index Name"].as_str().map(|index| format!(" by {index}")).unwrap_or_default();
            found.push(format!("{} of {table}{of_index}: {rows} rows", node["Node Type"].as_str().unwrap_or_default()));
        }
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        large_reads(child, found);
    }
}

/// Calls every operation, and lists those that read many rows: by name, with the statements.
fn operations_that_read_much(server: &Server, town: &Town) -> BTreeMap<&'static str, String> {
    let mut much = BTreeMap::new();
    let mut seen = 0;
    for (name, call) in operations() {
        let before = server.log().len();
        if panic::catch_unwind(AssertUnwindSafe(|| call(town))).is_err() {
            much.insert(name, "it fails".to_owned());
        }
        let log = server.log();
        let of_call = plans(&log[before..]);
        seen += of_call.len();
        for plan in of_call {
            let mut found = Vec::new();
            large_reads(&plan["Plan"], &mut found);
            if !found.is_empty() {
                let query = plan["Query Text"].as_str().unwrap_or_default();
                let lines: &mut String = much.entry(name).or_default();
                let _ = writeln!(lines, "{}\n    {query}", found.join("; "));
            }
        }
    }
    assert!(seen > 200, "the server logs plans: {seen}");
    much
}

fn no_operation_reads_a_large_table(more: &[&str]) {
    let settings: Vec<&str> = SETTINGS.iter().chain(more).copied().collect();
    let is_installed = |server: &Server| server.administrator("postgres").try_rows("LOAD 'auto_explain'").is_ok();
    if !server().is_some_and(is_installed) {
        return skip("PostgreSQL has no module auto_explain");
    }
    let Some(server) = Server::with_settings(&settings) else { return };
    let database = server.new_database();
    let folder = temp_dir();
    let clock = ManualClock::at(start_time());
    let url = server.url("app", &database);
    let config = || {
        let config = Config::new().database_url(url.clone()).data_dir(folder.path()).catalog_api_key("");
        config.identity_audience("town.example").clock(clock.clock())
    };
    let client = Client::open(config()).expect("opens");
    client.as_service().realtime().start().expect("the feed is on");
    client.close();
    let administrator = server.administrator(&database);
    fill(&administrator);
    let client = Client::open(config()).expect("opens");
    let town = Town::new(&client);
    administrator.run(&format!(
        "INSERT INTO townsquare.identities VALUES ('{ADMIN_KEY}', '{}', now());
         UPDATE community_configs SET admin_identity_public_keys = ARRAY['{ADMIN_KEY}'] WHERE community_id = '{}'",
        town.id, town.community
    ));
    let much = operations_that_read_much(&server, &town);
    let much: Vec<String> = much.iter().map(|(name, lines)| format!("{name}: {lines}")).collect();
    assert!(much.is_empty(), "{} operations read much:\n{}", much.len(), much.join("\n"));
    client.close();
}

#[test]
fn no_operation_reads_a_large_table_with_a_plan_for_its_values() {
    no_operation_reads_a_large_table(&["plan_cache_mode=force_custom_plan"]);
}

/// The server makes such a plan after a connection has run a statement five times.
#[test]
fn no_operation_reads_a_large_table_with_a_plan_for_all_values() {
    no_operation_reads_a_large_table(&["plan_cache_mode=force_generic_plan"]);
}

#[test]
fn a_scan_of_a_large_table_is_noticed() {
    let scan = json!({"Node Type": "Limit", "Plans": [
        {"Node Type": "Seq Scan", "Relation Name": "users", "Actual Rows": 1, "Actual Loops": 1, "Rows Removed by Filter": 5999},
        {"Node Type": "Index Scan", "Relation Name": "spaces", "Index Name": "i", "Actual Rows": 2, "Actual Loops": 20},
    ]});
    let mut found = Vec::new();
    large_reads(&scan, &mut found);
    assert_eq!(found, ["Seq Scan of users: 6000 rows"]);
    let log = "LOG:  duration: 0.1 ms  plan:\n\t{\n\t  \"Query Text\": \"SELECT 1\"\n\t}\nLOG:  other\n";
    assert_eq!(plans(log), [json!({"Query Text": "SELECT 1"})]);
}
