//! Moving a Supabase project into an empty place (`Client::move_from_supabase`): rows, passwords and files arrive, the project is
//! only read, and what does not fit is refused before the target is touched.

use std::{collections::BTreeMap, fs, ops::ControlFlow, path::Path};

use serde_json::json;
use townsquare::{
    Config, Error, ErrorKind, MoveTarget, SupabaseProject as Source, SupabaseReport, Timestamp,
    blocking::Client,
    storage::{FileInfo, ListFiles},
};
use townsquare_tests::{
    TempDir,
    fixture::assert_kind,
    pgbouncer::{Mode, PgBouncer},
    postgres::APP_ROLE,
    raw_sql::{RawConnection, quoted},
    s3_server::S3Server,
    subprocess::{child, name_of, role},
    supabase::{PASSWORD, SupabaseProject},
    temp_dir,
    test_database::{EmptyDatabase, Engine},
};

const BUCKETS: &str = "avatars=public";

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn config(folder: &Path) -> Config {
    Config::new().data_dir(folder).catalog_api_key("").buckets(BUCKETS)
}

/// The project with the folder of its files.
fn with_files(project: &SupabaseProject) -> (Source, TempDir) {
    let folder = temp_dir();
    project.write_files(folder.path());
    (Source::new(project.url()).files(folder.path().to_str().expect("UTF-8")), folder)
}

fn move_to(source: &Source, target: Config) -> Result<SupabaseReport, Error> {
    Client::move_from_supabase(source.clone(), target, go_on)
}

fn faults(source: &Source) -> Vec<String> {
    let folder = temp_dir();
    Client::check_move_from_supabase(source.clone(), config(&folder.path().join("town"))).expect("a check").faults
}

/// Moves into a new folder, which fails, and checks that the target has no database, or none with a row.
#[track_caller]
fn refused(source: &Source, part: &str) {
    let folder = temp_dir();
    let error = move_to(source, config(&folder.path().join("town"))).expect_err(part);
    assert!(error.kind() == ErrorKind::Config && error.message().contains(part), "{part}: {error}");
    assert!(!folder.path().join("town").exists(), "{part}: the target is not touched");
    assert!(faults(source).iter().any(|fault| fault.contains(part)), "{part}: {:?}", faults(source));
}

fn check_report(report: &SupabaseReport) {
    let rows = [
        ("users", 8),
        ("spaces", 2),
        ("fidgets", 200),
        ("community_configs", 1),
        ("community_domains", 1),
        ("spaceRegistrations", 1),
        ("credentials", 3),
        ("verified_emails", 4),
        ("sessions", 0),
    ];
    for (table, count) in rows {
        assert_eq!(report.rows[table], count, "{table}: {report:?}");
    }
    assert_eq!((report.files, report.bytes), (4, 70_008));
    let skipped = json!({
        "users_without_row": 1, "deleted_users": 1, "banned_users": 1, "unconfirmed_users": 1, "unsupported_passwords": 1,
        "folder_placeholders": 2, "owners_of_files": 1,
    });
    assert_eq!(json!(report.skipped), skipped);
    assert_eq!(report.published_buckets, ["assets"]);
}

/// The rows of a table in the order of their keys, as texts that both engines write alike.
fn texts(raw: &RawConnection, sql: &str) -> Vec<Vec<Option<String>>> {
    raw.rows(sql)
}

/// Signs in, reads the files, and compares them with the project.
fn check_target(project: &SupabaseProject, target: Config) {
    let client = Client::open(target).expect("the target opens");
    for (address, signs_in) in [
        ("ann@town.example", true),
        ("ANN@town.example", true),
        ("bea@town.example", true),
        ("oliver@town.example", true),
        ("ben@town.example", false),
        ("dan@town.example", false),
        ("una@town.example", false),
        ("nop@town.example", false),
        ("fir@town.example", false),
        ("gus@town.example", false),
        ("oli@town.example", false),
    ] {
        let signed = client.auth().create_session(address, PASSWORD);
        assert_eq!(signed.is_ok(), signs_in, "{address}: {signed:?}");
    }
    let service = client.as_service();
    let users = service.auth().list_users(100, None).expect("users");
    let verified = users.iter().filter(|user| user.email_verified_at.is_some()).map(|user| &*user.email);
    let mut verified: Vec<_> = verified.collect();
    verified.sort_unstable();
    assert_eq!(verified, ["Ann@Town.Example", "bea@town.example", "fir@town.example", "nop@town.example"]);
    let ann = users.iter().find(|user| user.id == project.ann).expect("ann");
    assert_eq!(ann.created_at, "2023-01-02T03:04:05.678901Z".parse().expect("a time"));
    let space = service.spaces().get_space(project.space).expect("the space");
    assert_eq!((space.name.as_str(), space.owner_id), ("Harbor '⚓'", Some(project.ann)));
    for (bucket, name, bytes) in project.files() {
        let file = service.storage().download(&bucket, &name).expect("the file");
        assert!(file == bytes, "{bucket}/{name}");
    }
    let info = |bucket: &str| -> FileInfo {
        let files = service.storage().list(bucket, ListFiles::new()).expect("files");
        assert_eq!(files.len(), 1, "{bucket}: no placeholder");
        files.into_iter().next().expect("a file")
    };
    let of_ann = info("avatars");
    assert_eq!(
        (of_ann.owner_id, of_ann.content_type.as_str(), of_ann.cache_control),
        (Some(project.ann), "image/png", 60)
    );
    assert_eq!(of_ann.metadata, BTreeMap::from([("author", "ann"), ("n", "1")].map(|(k, v)| (k.into(), v.into()))));
    assert_eq!(of_ann.updated_at, "2024-03-04T05:06:07.89Z".parse::<Timestamp>().expect("a time"));
    assert_eq!((info("assets").owner_id, info("spaces").owner_id), (None, Some(project.ann)));
    // The row of this object has no metadata and no time of a change.
    let empty = info("private");
    assert_eq!((empty.size, empty.cache_control), (0, 3_600));
    assert_eq!(empty.updated_at, "2024-02-03T04:05:06.789Z".parse::<Timestamp>().expect("a time"));
    // The owner of a moved space writes to it.
    let session = client.auth().create_session("ann@town.example", PASSWORD).expect("a session");
    let ann = client.as_user(&session.access_token).expect("a handle");
    ann.storage()
        .upload("spaces", &format!("{}/tabs/Home", project.space), "{}", Default::default())
        .expect("uploaded");
    client.close();
}

#[test]
fn a_project_is_moved_to_sqlite_and_is_only_read() {
    let Some(project) = SupabaseProject::new() else { return };
    let before = project.state();
    let (source, _files) = with_files(&project);
    let folder = temp_dir();
    let target = || config(&folder.path().join("town"));
    let check = Client::check_move_from_supabase(source.clone(), target()).expect("a check");
    assert_eq!(
        (check.faults.len(), check.target, check.refusal),
        (0, Some(MoveTarget::New), None),
        "{:?}",
        check.faults
    );
    assert_eq!((check.rows["users"], check.rows["credentials"], check.files, check.bytes), (8, 3, 4, 70_008));
    assert!(!folder.path().join("town").exists(), "a check writes nothing");

    let (mut last, mut calls) = ((0, 0), 0);
    let report = Client::move_from_supabase(source.clone(), target(), |done, all| {
        (last, calls) = ((done, all), calls + 1);
        ControlFlow::Continue(())
    });
    let report = report.expect("moved");
    check_report(&report);
    assert!(
        calls > 3 && last.0 == last.1 && last.0 == report.rows.values().sum::<u64>() - 4 + 4,
        "{last:?} {report:?}"
    );
    check_target(&project, target());
    assert!(before == project.state(), "the project is unchanged");

    let error = move_to(&source, target()).expect_err("the target has rows");
    assert!(error.kind() == ErrorKind::Config && error.message().contains("empty database"), "{error}");
    let check = Client::check_move_from_supabase(source, target()).expect("a check");
    assert!(check.target.is_none() && check.refusal.is_some_and(|why| why.contains("empty database")));
}

#[test]
fn a_project_is_moved_to_postgres_with_files_of_its_s3_protocol() {
    let test = name_of(&a_project_is_moved_to_postgres_with_files_of_its_s3_protocol);
    if role().is_some() {
        // The keys are in the environment of this process.
        let setting = |name: &str| std::env::var(name).expect("a setting");
        let target = Config::new().database_url(setting("TARGET_URL")).storage_url(setting("TARGET_FILES"));
        let source = Source::new(setting("PROJECT_URL")).files(setting("PROJECT_FILES"));
        let report = move_to(&source, target.catalog_api_key("").buckets(BUCKETS)).expect("moved");
        return check_report(&report);
    }
    let (Some(project), Some(target)) = (SupabaseProject::new(), EmptyDatabase::on(Engine::Postgres)) else { return };
    let before = project.state();
    let (server, store) = (S3Server::start(), S3Server::start());
    project.write_files(server.buckets());
    let mut variables = vec![
        ("PROJECT_URL", project.url()),
        ("PROJECT_FILES", server.url_without_bucket()),
        ("TARGET_URL", target.url()),
        ("TARGET_FILES", store.url("files")),
    ];
    variables.extend(S3Server::variables().map(|(name, value)| (name, value.to_owned())));
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let run = child(test, "alone", &variables).output().expect("it runs");
    assert!(run.status.success(), "{run:?}");
    let moved = Config::new().database_url(target.url()).storage_url(store.url("files")).catalog_api_key("");
    check_target(&project, moved.buckets(BUCKETS));
    assert!(before == project.state(), "the project is unchanged");
    // Nothing was written beside the objects.
    assert!(!server.buckets().join("avatars/.townsquare").exists());
}

#[test]
fn files_are_read_from_a_store_with_the_bucket_in_the_key() {
    let Some(project) = SupabaseProject::new() else { return };
    let server = S3Server::start();
    project.write_files(&server.folder().join("copy"));
    let folder = temp_dir();
    let source = Source::new(project.url()).files(server.url("copy"));
    check_report(&move_to(&source, config(folder.path())).expect("moved"));
}

#[test]
fn the_rows_of_every_table_are_equal() {
    let (Some(project), Some(target)) = (SupabaseProject::new(), EmptyDatabase::on(Engine::Postgres)) else { return };
    let ((source, _files), folder) = (with_files(&project), temp_dir());
    let moved = config(folder.path()).database_url(target.url());
    move_to(&source, moved).expect("moved");
    for (table, key) in [
        ("community_configs", "id"),
        ("community_domains", "id"),
        ("\"spaceRegistrations\"", "\"spaceId\""),
        ("spaces", "id"),
        ("fidgets", "id"),
    ] {
        let sql = format!("SELECT t::text FROM public.{table} AS t ORDER BY {key}");
        assert_eq!(texts(&project.raw, &sql), texts(&target.raw(), &sql), "{table}");
    }
    let sql = "SELECT id, email, created_at, updated_at FROM public.users ORDER BY id";
    assert_eq!(texts(&project.raw, sql), texts(&target.raw(), sql));
    let hashes = "SELECT id::text, encrypted_password FROM auth.users WHERE id IN (SELECT user_id FROM known)";
    let known = target.raw().rows("SELECT user_id::text, password_hash FROM townsquare.credentials ORDER BY 1");
    let ids: Vec<_> = known.iter().map(|row| quoted(row[0].as_deref().expect("an id"))).collect();
    let hashes = hashes.replace("SELECT user_id FROM known", &ids.join(", "));
    assert_eq!(texts(&project.raw, &format!("{hashes} ORDER BY 1")), known);
}

#[test]
fn tables_and_rows_that_do_not_fit_are_refused() {
    for (change, part) in [
        ("ALTER TABLE public.fidgets DROP COLUMN config", "fidgets.config is missing"),
        ("ALTER TABLE public.fidgets ALTER COLUMN config TYPE JSON", "fidgets.config is json, not jsonb"),
        (
            "ALTER TABLE public.spaces ALTER COLUMN name DROP NOT NULL; UPDATE public.spaces SET name = NULL",
            "rows of spaces break the rule name NOT NULL: 2",
        ),
        (
            "INSERT INTO auth.users (id) VALUES ('00000000-0000-4000-8000-000000000001');
             INSERT INTO public.users (id, email) VALUES ('00000000-0000-4000-8000-000000000001', 'aNN@town.example')",
            "differ only in case",
        ),
        ("ALTER TABLE auth.users DROP COLUMN encrypted_password", "auth.users.encrypted_password is missing"),
    ] {
        let Some(project) = SupabaseProject::new() else { return };
        let (source, _files) = with_files(&project);
        project.raw.run(change);
        refused(&source, part);
    }
}

#[test]
fn files_that_cannot_be_moved_are_refused() {
    let Some(project) = SupabaseProject::new() else { return };
    let (source, files) = with_files(&project);
    let added = |bucket: &str, name: &str| {
        project.add_object(bucket, name, Some(1));
        format!("DELETE FROM storage.objects WHERE bucket_id = {} AND name = {}", quoted(bucket), quoted(name))
    };
    // The place has a file outside of the bucket, which no name reaches.
    fs::write(files.path().join("x"), "x").expect("a file");
    for name in ["../x", "a/../../x", "/x", "a//b", "a\\b", "."] {
        let remove = added("avatars", name);
        refused(&source, "no file can be");
        project.raw.run(&remove);
    }
    let remove = added("avatars", "gone.png");
    refused(&source, "the bytes of avatars/gone.png are missing");
    fs::write(files.path().join("avatars/gone.png"), "two").expect("a file");
    refused(&source, "avatars/gone.png has 3 bytes, but 1 in storage.objects");
    project.raw.run(&remove);
    #[cfg(unix)]
    {
        let remove = added("avatars", "link");
        std::os::unix::fs::symlink(files.path().join("x"), files.path().join("avatars/link")).expect("a link");
        refused(&source, "avatars/link");
        project.raw.run(&remove);
    }
    let remove = added("assets", "images");
    refused(&source, "the object assets/images has the name of a folder");
    project.raw.run(&remove);
    project.raw.run("INSERT INTO storage.buckets (id, name) VALUES ('other', 'other'), ('Big One', 'Big One')");
    for (bucket, part) in [("other", "other=private"), ("Big One", "1 to 63 of a-z")] {
        let remove = added(bucket, "a");
        refused(&source, part);
        project.raw.run(&remove);
    }
    refused(&Source::new(project.url()), "the project has 4 files in Supabase Storage, and no place");
    refused(&source.clone().files("/does/not/exist"), "does not exist");
    assert!(faults(&source).is_empty(), "without these rows the project can be moved: {:?}", faults(&source));
}

#[test]
fn of_many_faults_the_first_are_named() {
    let Some(project) = SupabaseProject::new() else { return };
    let (source, _files) = with_files(&project);
    project.raw.run(
        "INSERT INTO storage.objects (bucket_id, name) SELECT 'avatars', '../' || n FROM generate_series(1, 150) AS n",
    );
    let faults = faults(&source);
    assert_eq!(faults.len(), 6, "{faults:?}");
    assert!(faults[5].contains("145 further names"), "{faults:?}");
}

#[test]
fn a_database_that_is_no_project_is_refused_and_no_password_is_shown() {
    let Some(project) = SupabaseProject::new() else { return };
    let folder = temp_dir();
    let fails = |url: String, kind: ErrorKind, part: &str| {
        let source = Source::new(url);
        let errors = [
            move_to(&source, config(&folder.path().join("town"))).map(drop).expect_err(part),
            Client::check_move_from_supabase(source, config(&folder.path().join("town"))).map(drop).expect_err(part),
        ];
        for error in errors {
            assert_eq!(error.kind(), kind, "{error}");
            let text = format!("{error} {error:?}");
            assert!(text.contains(part) && !text.contains("planted"), "{part}: {text}");
        }
    };
    // Row-level security hides rows from the role.
    fails(project.restricted_url(), ErrorKind::Config, "may not read every row");
    fails("mysql://ann:planted@db.example/x".to_owned(), ErrorKind::Config, "postgres://");
    fails("postgres//ann:planted@db.example/x".to_owned(), ErrorKind::Config, "postgres://");
    fails("postgres://ann:planted@h/x?colour=planted".to_owned(), ErrorKind::Config, "The database of the project");
    fails("postgres://ann:planted@127.0.0.1:1/x".to_owned(), ErrorKind::Unavailable, "127.0.0.1:1");
    let empty = EmptyDatabase::on(Engine::Postgres).expect("it is installed");
    fails(empty.url(), ErrorKind::Config, "none of a Supabase project");
    // A database of the library has a source of an ordinary move.
    Client::open(config(&folder.path().join("other")).database_url(empty.url())).expect("opens").close();
    fails(empty.url(), ErrorKind::Config, "the schema townsquare");
    assert!(!folder.path().join("town").exists());
}

#[test]
fn a_role_that_owns_nothing_moves_a_project() {
    let Some(project) = SupabaseProject::new() else { return };
    let (files, folder) = (temp_dir(), temp_dir());
    project.write_files(files.path());
    let source = Source::new(project.reader_url()).files(files.path().to_str().expect("UTF-8"));
    check_report(&move_to(&source, config(folder.path())).expect("moved"));
}

#[test]
fn a_file_that_changes_after_the_check_is_an_error_that_names_it() {
    let Some(project) = SupabaseProject::new() else { return };
    let ((source, files), folder) = (with_files(&project), temp_dir());
    let target = || config(&folder.path().join("town"));
    let path = files.path().join("assets/images/logo.svg");
    let moved = Client::move_from_supabase(source.clone(), target(), |_, all| {
        // The check has ended when the number of all rows is known.
        if all > 0 {
            fs::write(&path, "other bytes").expect("a file");
        }
        ControlFlow::Continue(())
    });
    let error = assert_kind(ErrorKind::Internal, moved);
    assert!(error.message().contains("assets/images/logo.svg"), "{error}");
    Client::open(target()).expect_err("the move is unfinished");
    project.write_files(files.path());
    check_report(&move_to(&source, target()).expect("moved"));
}

#[test]
fn the_project_itself_is_no_target() {
    let Some(project) = SupabaseProject::new() else { return };
    let before = project.state();
    let ((source, _files), folder) = (with_files(&project), temp_dir());
    let target = config(folder.path()).database_url(project.url()).adopt(true);
    assert_kind(ErrorKind::Config, move_to(&source, target));
    assert!(before == project.state(), "the project is unchanged");
}

#[test]
fn a_project_is_read_behind_a_pooler_in_transaction_mode() {
    let Some(project) = SupabaseProject::new() else { return };
    let (server, database) = project.place();
    let Some(pooler) = PgBouncer::before(server, Mode::Transaction, 1) else { return };
    let (before, files, folder) = (project.state(), temp_dir(), temp_dir());
    project.write_files(files.path());
    let source = Source::new(pooler.url(APP_ROLE, database)).files(files.path().to_str().expect("UTF-8"));
    check_report(&move_to(&source, config(folder.path())).expect("moved"));
    // No setting stays on the server process that the next client gets.
    let next = RawConnection::postgres(&pooler.url(APP_ROLE, database)).expect("it connects");
    for (setting, value) in [("row_security", "on"), ("default_transaction_read_only", "off")] {
        assert_eq!(next.value(&format!("SHOW {setting}")), value, "{setting}");
    }
    assert!(before == project.state(), "the project is unchanged");
}

#[test]
fn a_move_that_was_stopped_begins_anew() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        begins_anew(engine);
    }
}

fn begins_anew(engine: Engine) {
    let (Some(project), Some(database)) = (SupabaseProject::new(), EmptyDatabase::on(engine)) else { return };
    let ((source, _files), folder) = (with_files(&project), temp_dir());
    let target = || match engine {
        Engine::Sqlite => config(&folder.path().join("town")),
        Engine::Postgres => config(&folder.path().join("town")).database_url(database.url()),
    };
    let all = 8 + 2 + 200 + 3 + 3 + 4 + 4;
    // Once in the rows, and once after the files.
    for stop in [100, all] {
        let stopped = Client::move_from_supabase(source.clone(), target(), |done, _| match done >= stop {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        assert_kind(ErrorKind::Cancelled, stopped);
        let error = Client::open(target()).expect_err("the move is unfinished");
        assert!(error.message().contains("unfinished move from a Supabase project"), "{error}");
        let check = Client::check_move_from_supabase(source.clone(), target()).expect("a check");
        assert_eq!(check.target, Some(MoveTarget::Unfinished));
    }
    // What the project does not have any more is not in the target.
    project.raw.run(
        "DELETE FROM storage.objects WHERE bucket_id = 'assets';
         DELETE FROM auth.users WHERE email LIKE 'bea@%'; DELETE FROM fidgets",
    );
    let other = SupabaseProject::new().expect("it is installed");
    let error = move_to(&Source::new(other.url()), target()).expect_err("another project");
    assert!(error.kind() == ErrorKind::Config && error.message().contains("unfinished move"), "{error}");
    let report = move_to(&source, target()).expect("moved");
    assert_eq!(
        (report.rows["users"], report.rows["fidgets"], report.rows["former_spaces"], report.files),
        (7, 0, 0, 3)
    );
    let client = Client::open(target()).expect("it opens");
    assert!(client.check(townsquare::check::CheckDepth::Full).expect("a check").is_empty());
    client.close();
}

#[test]
fn a_killed_move_begins_anew() {
    let test = name_of(&a_killed_move_begins_anew);
    if role().is_some() {
        let setting = |name: &str| std::env::var(name).expect("a setting");
        let source = Source::new(setting("PROJECT_URL")).files(setting("PROJECT_FILES"));
        let moved = Client::move_from_supabase(source, config(Path::new(&setting("TARGET"))), |done, _| {
            if done > 60 {
                std::process::abort();
            }
            ControlFlow::Continue(())
        });
        return drop(moved.expect("moved"));
    }
    let Some(project) = SupabaseProject::new() else { return };
    let ((source, files), folder) = (with_files(&project), temp_dir());
    let target = folder.path().join("town");
    let (url, files) = (project.url(), files.path().to_str().expect("UTF-8").to_owned());
    let variables = [("PROJECT_URL", &*url), ("PROJECT_FILES", &files), ("TARGET", target.to_str().expect("UTF-8"))];
    let run = child(test, "alone", &variables).output().expect("it runs");
    assert!(!run.status.success() && target.exists(), "{run:?}");
    Client::open(config(&target)).expect_err("the move is unfinished");
    check_report(&move_to(&source, config(&target)).expect("moved"));
    check_target(&project, config(&target));
}

#[test]
fn a_project_without_storage_and_without_some_tables_is_moved() {
    let Some(project) = SupabaseProject::new() else { return };
    project.raw.run(
        "DROP SCHEMA storage CASCADE; DROP TABLE public.fidgets, public.spaces, public.users CASCADE;
         ALTER TABLE auth.users DROP COLUMN banned_until, DROP COLUMN deleted_at",
    );
    let folder = temp_dir();
    let report = move_to(&Source::new(project.url()), config(folder.path())).expect("moved");
    assert_eq!((report.rows["users"], report.rows["credentials"], report.rows["community_configs"]), (0, 0, 1));
    assert_eq!((report.files, report.skipped.users_without_row), (0, 9));
}

#[test]
fn an_account_of_single_sign_on_gets_no_password_and_the_project_is_no_target() {
    let Some(project) = SupabaseProject::new() else { return };
    let ((source, _files), folder) = (with_files(&project), temp_dir());
    let target = Config::new().database_url(project.url()).data_dir(folder.path());
    let error = assert_kind(ErrorKind::Config, move_to(&source, target));
    assert!(error.message().contains("another database than its source"), "{error}");
    assert_eq!(project.raw.value("SELECT count(*)::text FROM pg_namespace WHERE nspname = 'townsquare'"), "0");
    project.raw.run("UPDATE auth.users SET is_sso_user = true WHERE email = 'ann@town.example'");
    let report = move_to(&source, config(folder.path())).expect("moved");
    assert_eq!((report.rows["credentials"], report.rows["verified_emails"]), (2, 4));
    let client = Client::open(config(folder.path())).expect("opens");
    client.auth().create_session("ann@town.example", PASSWORD).expect_err("she has no password");
    client.close();
}
