//! A call of every operation, for tests of what all operations have in common.

use std::{ops::ControlFlow, path::Path, time::Duration};

use serde_json::json;
use townsquare::{
    Config, Error, MoveOptions, Uuid,
    auth::{SignOutScope, UserPatch, identity_claim},
    blocking::Client,
    check::CheckDepth,
    communities::{CommunityPatch, DomainType, NewRegistration, SpaceType},
    discovery::Timeframe,
    realtime::{ChangeRequest, LiveRequest},
    rows::ImportOptions,
    spaces::{FidgetPatch, NewFidget, NewSpace, SpacePatch},
    storage::{ListFiles, Overwrite, UploadOptions, UrlMethod},
};
use townsquare_tests::{temp_dir, test_database::TestDatabase};

/// The password of the accounts that the calls make.
pub(super) const PASSWORD: &str = "correct horse";

/// The name of a call, and its result.
pub(super) type Outcome = (&'static str, Result<(), Error>);

/// The id of no row.
const ID: Uuid = Uuid::from_u128(1);

/// Calls every operation of a handle.
pub(super) fn every_call(db: &TestDatabase, client: &Client) -> Vec<Outcome> {
    let folder = temp_dir();
    let mut outcomes = tables(client);
    outcomes.extend(discovery(client));
    outcomes.extend(files(client, folder.path()));
    outcomes.extend(changes(client));
    outcomes.extend(whole_client(db, client, folder.path()));
    // The last, because a caller may delete its account.
    outcomes.extend(accounts(db, client));
    outcomes
}

fn tables(client: &Client) -> Vec<Outcome> {
    let (id, spaces, fidgets, communities) = (ID, client.spaces(), client.fidgets(), client.communities());
    let mut stream = spaces.iter_public_spaces(1);
    let registration = NewRegistration::new(id, "x", SpaceType::Profile);
    vec![
        ("create_space", spaces.create_space(NewSpace::named("x")).map(drop)),
        ("create_spaces", spaces.create_spaces(vec![NewSpace::named("x")]).map(drop)),
        ("get_space", spaces.get_space(id).map(drop)),
        ("list_spaces", spaces.list_spaces(1, None).map(drop)),
        ("set_owner", spaces.set_owner(id, id).map(drop)),
        ("update_space", spaces.update_space(id, SpacePatch::new().name("x")).map(drop)),
        ("delete_space", spaces.delete_space(id)),
        ("get_user_spaces", spaces.get_user_spaces(id).map(drop)),
        ("get_public_spaces", spaces.get_public_spaces(1, 0).map(drop)),
        ("a deep get_public_spaces", spaces.get_public_spaces(1, 5_000).map(drop)),
        ("get_public_spaces_after", spaces.get_public_spaces_after(1, id).map(drop)),
        ("iter_public_spaces", stream.next().transpose().map(drop)),
        ("get_space_with_fidgets", spaces.get_space_with_fidgets(id).map(drop)),
        ("get_space_with_any_fidgets", spaces.get_space_with_any_fidgets(id).map(drop)),
        ("create_fidget", fidgets.create_fidget(id, NewFidget::of_type("x")).map(drop)),
        ("create_fidgets", fidgets.create_fidgets(id, vec![NewFidget::of_type("x")]).map(drop)),
        ("save_positions", fidgets.save_positions(id, [(id, None)].into()).map(drop)),
        ("get_fidget", fidgets.get_fidget(id).map(drop)),
        ("update_fidget", fidgets.update_fidget(id, FidgetPatch::new().kind("x")).map(drop)),
        ("delete_fidget", fidgets.delete_fidget(id)),
        ("get_space_fidgets", fidgets.get_space_fidgets(id).map(drop)),
        ("get_space_fidgets_after", fidgets.get_space_fidgets_after(id, 1, None).map(drop)),
        ("save_community_config", communities.save_community_config("x", CommunityPatch::new()).map(drop)),
        ("get_active_community_config", communities.get_active_community_config("x").map(drop)),
        ("save_community_domain", communities.save_community_domain("x", "x.example", DomainType::Custom).map(drop)),
        ("delete_community_domain", communities.delete_community_domain("x.example")),
        ("update_navigation", communities.update_navigation("x", None).map(drop)),
        ("resolve_community", communities.resolve_community("x.example").map(drop)),
        ("list_community_configs", communities.list_community_configs(1, None).map(drop)),
        ("list_community_domains", communities.list_community_domains(1, None).map(drop)),
        ("list_space_registrations", communities.list_space_registrations(1, None).map(drop)),
        ("register_space", communities.register_space(registration).map(drop)),
        ("get_space_registration", communities.get_space_registration(id).map(drop)),
    ]
}

fn discovery(client: &Client) -> Vec<Outcome> {
    let discovery = client.discovery();
    vec![
        ("get_trending_mini_apps", discovery.get_trending_mini_apps(Timeframe::Hours24, 1).map(drop)),
        ("get_mini_apps_by_category", discovery.get_mini_apps_by_category(["games"], 1).map(drop)),
        ("search_mini_apps", discovery.search_mini_apps("x", 1).map(drop)),
        ("get_new_mini_apps", discovery.get_new_mini_apps(1).map(drop)),
        ("get_similar_mini_apps", discovery.get_similar_mini_apps("x", 1).map(drop)),
        ("get_mini_app", discovery.get_mini_app("x").map(drop)),
        ("suggest_mini_apps", discovery.suggest_mini_apps("x", 1).map(drop)),
        ("categories", discovery.categories(1).map(drop)),
        ("networks", discovery.networks(1).map(drop)),
        ("refresh", discovery.refresh().map(drop)),
        ("force_refresh", discovery.force_refresh().map(drop)),
        ("stats of discovery", discovery.stats().map(drop)),
        ("handle", discovery.handle("GET", "/", b"", &[]).map(drop)),
    ]
}

fn files(client: &Client, folder: &Path) -> Vec<Outcome> {
    let (storage, options, local) = (client.storage(), UploadOptions::new, folder.join("local"));
    let go_on = |_: u64, _: u64| ControlFlow::Continue(());
    std::fs::write(&local, "x").expect("a temporary folder can be written to");
    vec![
        ("upload", storage.upload("assets", "x", "x", options()).map(drop)),
        ("secure_upload", storage.secure_upload("private", "x", "x", ID, options()).map(drop)),
        ("upload_from", storage.upload_from("assets", "x", &local, options(), go_on).map(drop)),
        ("upload_reader", storage.upload_reader("assets", "x", &b"x"[..], options()).map(drop)),
        ("writer", storage.writer("assets", "x", options()).map(drop)),
        ("download", storage.download("assets", "y").map(drop)),
        ("download_range", storage.download_range("assets", "y", 0..1).map(drop)),
        ("download_to", storage.download_to("assets", "y", folder.join("y"), go_on).map(drop)),
        ("download of no bucket", storage.download("nowhere", "x").map(drop)),
        ("reader", storage.reader("assets", "y").map(drop)),
        ("delete", storage.delete("assets", "y")),
        ("delete_prefix", storage.delete_prefix("assets", "y/").map(drop)),
        ("exists", storage.exists("assets", "y").map(drop)),
        ("stat", storage.stat("assets", "y").map(drop)),
        ("list", storage.list("assets", ListFiles::new()).map(drop)),
        ("list of no bucket", storage.list("nowhere", ListFiles::new()).map(drop)),
        ("iter", storage.iter("assets", "", 1).next().transpose().map(drop)),
        ("copy", storage.copy("assets", "y", "z", Overwrite::Refuse).map(drop)),
        ("move_file", storage.move_file("assets", "y", "z", Overwrite::Refuse).map(drop)),
        ("signed_url", storage.signed_url("nowhere", "x", UrlMethod::Get, Duration::ZERO).map(drop)),
        ("rotate_url_key", storage.rotate_url_key()),
        ("handle_file", storage.handle_file("GET", "/assets/x", &[], "").map(drop)),
        ("export_files", storage.export_files(folder.join("export"), go_on).map(drop)),
        ("repair", storage.repair().map(drop)),
    ]
}

fn changes(client: &Client) -> Vec<Outcome> {
    let (realtime, request) = (client.realtime(), || ChangeRequest::table("spaces"));
    vec![
        ("start", realtime.start()),
        ("subscribe", realtime.subscribe("x", request(), |_| ()).map(|subscription| subscription.unsubscribe())),
        ("on_space_changes", realtime.on_space_changes(ID, |_| ()).map(|subscription| subscription.unsubscribe())),
        ("on_fidget_changes", realtime.on_fidget_changes(ID, |_| ()).map(|subscription| subscription.unsubscribe())),
        ("changes", realtime.changes(request()).map(drop)),
        ("live", realtime.live(LiveRequest::table("spaces")).map(drop)),
        ("cursor", realtime.cursor().map(drop)),
        ("stats of realtime", realtime.stats().map(drop)),
        ("handle_events", realtime.handle_events("/events?table=spaces", &[]).map(drop)),
        ("handle_events_request", realtime.handle_events_request("GET", "/events?table=spaces", &[]).map(drop)),
        ("stop", realtime.stop()),
    ]
}

fn whole_client(db: &TestDatabase, client: &Client, folder: &Path) -> Vec<Outcome> {
    let target = || Config::new().data_dir(folder.join("moved")).catalog_api_key("");
    vec![
        ("metrics", client.metrics().map(drop)),
        ("check", client.check(CheckDepth::Quick).map(drop)),
        ("handle_request", client.handle_request("GET", "/files/assets/x", &[], "").map(drop)),
        ("as_user", client.as_user("x").map(drop)),
        ("a handle of as_service", client.as_service().spaces().get_public_spaces(1, 0).map(drop)),
        ("check_move", client.check_move(target()).map(drop)),
        ("move_to", client.move_to(target(), MoveOptions::new(), |_, _| ControlFlow::Continue(())).map(drop)),
        ("read_position", client.read_position().map(drop)),
        ("read_after", client.read_after("1-1-1")),
        ("reopen_for_writes", client.reopen_for_writes().map(drop)),
        ("export_rows", client.export_rows(&["spaces"]).map(drop)),
        ("import_rows", client.import_rows("spaces", Vec::new(), ImportOptions::new()).map(drop)),
        ("backup", client.backup(folder.join("copy.db"))),
        ("backup of a clone", client.clone().backup(db.url())),
    ]
}

fn accounts(db: &TestDatabase, client: &Client) -> Vec<Outcome> {
    let auth = client.auth();
    let key = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    let claim = identity_claim(ID, key, "town.example", db.now()).expect("a claim");
    vec![
        ("sign_up", auth.sign_up("eve@town.example", PASSWORD).map(drop)),
        ("sign_in", auth.sign_in("eve@town.example", PASSWORD).map(drop)),
        ("create_session", auth.create_session("eve@town.example", PASSWORD).map(drop)),
        ("get_session", auth.get_session().map(drop)),
        ("refresh_session", auth.refresh_session().map(drop)),
        ("refresh_session_of", auth.refresh_session_of("x").map(drop)),
        ("set_session", auth.set_session("x").map(drop)),
        ("update_user", auth.update_user(PASSWORD, UserPatch::new()).map(drop)),
        ("link_identity", auth.link_identity(&claim)),
        ("link_identity of no claim", auth.link_identity(&json!({}))),
        ("unlink_identity", auth.unlink_identity(key)),
        ("identities", auth.identities().map(drop)),
        ("identities_of", auth.identities_of(ID).map(drop)),
        ("sessions_of", auth.sessions_of(ID).map(drop)),
        ("end_session", auth.end_session(ID, ID)),
        ("end_sessions", auth.end_sessions(ID).map(drop)),
        ("identity_audience", auth.identity_audience().map(drop)),
        ("create_recovery_token", auth.create_recovery_token("eve@town.example").map(drop)),
        ("recover", auth.recover("x", PASSWORD).map(drop)),
        ("create_verification_token", auth.create_verification_token(ID).map(drop)),
        ("verify_email", auth.verify_email("x").map(drop)),
        ("list_users", auth.list_users(1, None).map(drop)),
        ("find_user", auth.find_user("eve@town.example").map(drop)),
        ("set_password", auth.set_password(ID, PASSWORD)),
        ("import_credentials", auth.import_credentials(Vec::new()).map(drop)),
        ("delete_own_user", auth.delete_own_user(PASSWORD)),
        ("delete_user", auth.delete_user(ID)),
        ("sign_out_scope", auth.sign_out_scope(SignOutScope::Others)),
        ("sign_out", auth.sign_out()),
    ]
}
