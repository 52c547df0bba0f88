//! The future of every async method can move to another thread: runtimes with several threads take no others.
//!
//! The compiler checks it, and the test checks that no method is missing.

use std::{ops::ControlFlow, path::Path};

use bytes::Bytes;
use townsquare::{
    Client,
    discovery::Selection,
    http::{RequestBody, ResponseBody},
    realtime::ChangeStream,
    rows::RowExport,
    spaces::{PublicSpaceCursor, PublicSpaces},
    storage::{FileReader, FileWriter, Files, UrlOptions},
};

use super::source::files;

/// Not in the documentation.
const HIDDEN: [&str; 1] = ["changes_as"];

fn is_send<T: Send>(_: T) {}

/// A value for a call that is compiled and never made.
fn any<T>() -> T {
    unreachable!("no call is made")
}

fn of_auth(client: &Client) {
    is_send(client.auth().create_session(any(), any()));
    is_send(client.auth().get_session());
    is_send(client.auth().refresh_session());
    is_send(client.auth().refresh_session_of(any()));
    is_send(client.auth().set_password(any(), any()));
    is_send(client.auth().set_session(any()));
    is_send(client.auth().sign_in(any(), any()));
    is_send(client.auth().sign_out());
    is_send(client.auth().sign_out_scope(any()));
    is_send(client.auth().sign_up(any(), any()));
    is_send(client.auth().update_user(any(), any()));
    is_send(client.auth().delete_own_user(any()));
    is_send(client.auth().delete_user(any()));
    is_send(client.auth().find_user(any()));
    is_send(client.auth().list_users(any(), any()));
    is_send(client.auth().identities());
    is_send(client.auth().identities_of(any()));
    is_send(client.auth().identity_audience());
    is_send(client.auth().link_identity(any()));
    is_send(client.auth().unlink_identity(any()));
    is_send(client.auth().import_credentials(any()));
    is_send(client.auth().create_recovery_token(any()));
    is_send(client.auth().create_verification_token(any()));
    is_send(client.auth().recover(any(), any()));
    is_send(client.auth().verify_email(any()));
    is_send(client.auth().end_session(any(), any()));
    is_send(client.auth().end_sessions(any()));
    is_send(client.auth().sessions_of(any()));
}

fn of_client(client: &Client) {
    is_send(client.as_user(any()));
    is_send(client.close());
    is_send(Client::open(any()));
    is_send(client.backup(any::<&Path>()));
    is_send(client.check(any()));
    is_send(client.metrics());
    is_send(Client::check_move_from_supabase(any(), any()));
    is_send(Client::move_from_supabase(any(), any(), |_, _| ControlFlow::Continue(())));
    is_send(client.check_move(any()));
    is_send(client.move_to(any(), any(), |_, _| ControlFlow::Continue(())));
    is_send(client.reopen_for_writes());
    is_send(client.read_position());
    is_send(client.read_after(any()));
    is_send(Client::plan_migrations(any()));
    is_send(client.export_rows(any()));
    is_send(client.import_rows(any(), any(), any()));
    is_send(client.handle_request(any(), any(), any(), any::<RequestBody>()));
    is_send(Client::shared());
    is_send(Client::shared_with(any()));
}

fn of_communities(client: &Client) {
    is_send(client.communities().delete_community_domain(any()));
    is_send(client.communities().get_active_community_config(any()));
    is_send(client.communities().get_space_registration(any()));
    is_send(client.communities().register_space(any()));
    is_send(client.communities().resolve_community(any()));
    is_send(client.communities().save_community_config(any(), any()));
    is_send(client.communities().save_community_domain(any(), any(), any()));
    is_send(client.communities().update_navigation(any(), any()));
    is_send(client.communities().list_community_configs(any(), any()));
    is_send(client.communities().list_community_domains(any(), any()));
    is_send(client.communities().list_space_registrations(any(), any()));
}

fn of_discovery(client: &Client) {
    is_send(client.discovery().categories(any::<Selection>()));
    is_send(client.discovery().force_refresh());
    is_send(client.discovery().get_mini_app(any()));
    is_send(client.discovery().get_mini_apps_by_category(any::<[&str; 1]>(), any::<Selection>()));
    is_send(client.discovery().get_new_mini_apps(any::<Selection>()));
    is_send(client.discovery().get_similar_mini_apps(any(), any()));
    is_send(client.discovery().get_trending_mini_apps(any(), any::<Selection>()));
    is_send(client.discovery().networks(any::<Selection>()));
    is_send(client.discovery().refresh());
    is_send(client.discovery().search_mini_apps(any(), any::<Selection>()));
    is_send(client.discovery().suggest_mini_apps(any(), any()));
    is_send(client.discovery().handle(any(), any(), any(), any()));
}

fn of_realtime(client: &Client) {
    is_send(client.realtime().handle_events(any(), any()));
    is_send(client.realtime().handle_events_request(any(), any(), any()));
    is_send(client.realtime().changes(any()));
    is_send(client.realtime().cursor());
    is_send(client.realtime().live(any()));
    is_send(client.realtime().on_fidget_changes(any(), |_| ()));
    is_send(client.realtime().on_space_changes(any(), |_| ()));
    is_send(client.realtime().start());
    is_send(client.realtime().stats());
    is_send(client.realtime().stop());
    is_send(client.realtime().subscribe(any(), any(), |_| ()));
}

fn of_storage(client: &Client) {
    is_send(client.storage().handle_file(any(), any(), any(), any::<RequestBody>()));
    is_send(client.storage().copy(any(), any(), any(), any()));
    is_send(client.storage().delete(any(), any()));
    is_send(client.storage().download(any(), any()));
    is_send(client.storage().download_range(any(), any(), any()));
    is_send(client.storage().download_to(any(), any(), any::<&Path>(), |_, _| ControlFlow::Continue(())));
    is_send(client.storage().export_files(any::<&Path>(), |_, _| ControlFlow::Continue(())));
    is_send(client.storage().list(any(), any()));
    is_send(client.storage().move_file(any(), any(), any(), any()));
    is_send(client.storage().reader(any(), any()));
    is_send(client.storage().repair());
    is_send(client.storage().rotate_url_key());
    is_send(client.storage().secure_upload(any(), any(), any::<Bytes>(), any(), any()));
    is_send(client.storage().signed_url(any(), any(), any(), any::<UrlOptions>()));
    is_send(client.storage().stat(any(), any()));
    is_send(client.storage().upload(any(), any(), any::<Bytes>(), any()));
    is_send(client.storage().upload_from(any(), any(), any::<&Path>(), any(), |_, _| ControlFlow::Continue(())));
    is_send(client.storage().upload_reader(any(), any(), tokio::io::empty(), any()));
    is_send(client.storage().writer(any(), any(), any()));
    is_send(client.storage().delete_prefix(any(), any()));
    is_send(client.storage().exists(any(), any()));
}

fn of_spaces(client: &Client) {
    is_send(client.spaces().create_space(any()));
    is_send(client.spaces().create_spaces(any()));
    is_send(client.spaces().delete_space(any()));
    is_send(client.spaces().get_space(any()));
    is_send(client.spaces().get_space_with_any_fidgets(any()));
    is_send(client.spaces().get_space_with_fidgets(any()));
    is_send(client.spaces().get_user_spaces(any()));
    is_send(client.spaces().update_space(any(), any()));
    is_send(client.fidgets().create_fidget(any(), any()));
    is_send(client.fidgets().create_fidgets(any(), any()));
    is_send(client.fidgets().delete_fidget(any()));
    is_send(client.fidgets().get_fidget(any()));
    is_send(client.fidgets().get_space_fidgets(any()));
    is_send(client.fidgets().get_space_fidgets_after(any(), any(), any()));
    is_send(client.fidgets().save_positions(any(), any()));
    is_send(client.fidgets().update_fidget(any(), any()));
    is_send(client.spaces().list_spaces(any(), any()));
    is_send(client.spaces().set_owner(any(), any()));
    is_send(client.spaces().get_public_spaces(any(), any()));
    is_send(client.spaces().get_public_spaces_after(any(), any::<PublicSpaceCursor>()));
}

fn of_streams() {
    let (mut files, mut public_spaces, mut changes) = (any::<Files>(), any::<PublicSpaces>(), any::<ChangeStream>());
    let (mut rows, mut body) = (any::<RowExport>(), any::<ResponseBody>());
    let (mut reader, mut writer) = (any::<FileReader>(), any::<FileWriter>());
    is_send(files.next());
    is_send(public_spaces.next());
    is_send(changes.next());
    is_send(rows.next_page());
    is_send(body.next_chunk());
    is_send(reader.next_chunk());
    is_send(reader.read_at(any()));
    is_send(writer.write(any::<Bytes>()));
    is_send(writer.finish());
    is_send(any::<FileWriter>().abort());
}

#[test]
fn the_future_of_every_async_method_is_send() {
    let _: [fn(&Client); 7] = [of_auth, of_client, of_communities, of_discovery, of_realtime, of_storage, of_spaces];
    let _: fn() = of_streams;
    let listed = include_str!("futures.rs");
    for source in files(&["core/src"], &[".rs"]) {
        // `BackupStore` is for the command.
        for method in source.text.split("pub async fn ").skip(1).filter(|_| !source.path.ends_with("remote/backups.rs"))
        {
            let name = method.split(['(', '<']).next().unwrap_or_default();
            let is_listed = [".", "::"].iter().any(|before| listed.contains(&format!("{before}{name}(")));
            assert!(is_listed || HIDDEN.contains(&name), "{}: {name}", source.path);
        }
    }
}
