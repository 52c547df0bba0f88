//! Reads on a streaming standby (option `database_replica_url`): which reads go there, and what they never miss.

use std::{sync::mpsc, thread, time::Duration};

use serde_json::json;
use townsquare::{
    Config, ErrorKind, Uuid,
    auth::UserPatch,
    blocking::Client,
    communities::{CommunityPatch, DomainType, NewRegistration, SpaceType},
    spaces::{FidgetPatch, NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    fixture::assert_kind,
    pgbouncer::{Mode, PgBouncer},
    postgres::APP_ROLE,
    proxy::{Cut, Proxy},
    replica::{Pair, replica_reads},
    temp_dir,
    wait::{DEADLINE, wait_until, wait_up_to},
};

const PASSWORD: &str = "correct horse";
/// Longer than a test: a read that waits so long, or an answer that is so old, does not occur by chance.
const HOUR: Duration = Duration::from_secs(3600);
const INSTANT: Duration = Duration::from_millis(1);

/// What these tests do with a [`Pair`].
trait PairExt {
    /// A client that writes, without a replica.
    fn writer(&self) -> Client;
    /// The options of a client that reads on the standby.
    fn reading(&self) -> Config;
    /// Opens a client that reads on the standby by the URL `replica`, and waits until it does.
    fn open(&self, replica: &str, change: impl FnOnce(Config) -> Config) -> Client;
    /// Creates a public space by `writer`, which the standby has.
    fn space(&self, writer: &Client, name: &str) -> Uuid;
    /// Pauses replay, renames `space` on the primary from `old` to `new`, and waits until the clients read on the standby.
    fn pause_and_rename(&self, writer: &Client, space: Uuid, clients: &[&Client]);
}

impl PairExt for Pair {
    fn writer(&self) -> Client {
        Client::open(config(&self.database())).expect("opens")
    }

    fn reading(&self) -> Config {
        let config = config(&self.database());
        config.database_replica_url(self.replica()).database_replica_wait(INSTANT).database_replica_max_lag(HOUR)
    }

    fn open(&self, replica: &str, change: impl FnOnce(Config) -> Config) -> Client {
        let client = Client::open(change(self.reading().database_replica_url(replica))).expect("opens");
        wait_until("reads go to the standby", || {
            client.as_anonymous().spaces().get_public_spaces(1, 0).expect("read");
            reads(&client, "replica") > 0.0
        });
        client
    }

    fn space(&self, writer: &Client, name: &str) -> Uuid {
        let space = writer.as_service().spaces().create_space(NewSpace::named(name).public()).expect("created");
        self.follow();
        space.id
    }

    fn pause_and_rename(&self, writer: &Client, space: Uuid, clients: &[&Client]) {
        self.follow();
        self.pause();
        rename(writer, space, "new");
        for client in clients {
            wait_until("reads go to the standby", || name(&client.as_anonymous(), space) == "old");
        }
    }
}

fn config(url: &str) -> Config {
    Config::new().database_url(url).catalog_api_key("")
}

/// How many reads of a client with a replica a server has answered, `replica` or `primary`.
fn reads(client: &Client, server: &str) -> f64 {
    replica_reads(client, server).expect("it has a replica")
}

fn rename(writer: &Client, space: Uuid, name: &str) {
    writer.as_service().spaces().update_space(space, SpacePatch::new().name(name)).expect("renamed");
}

fn name(client: &Client, space: Uuid) -> String {
    client.spaces().get_space(space).expect("read").name
}

/// Returns the result of a call that must not wait for the hour of `database_replica_wait`.
fn soon<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(call()));
    receiver.recv_timeout(DEADLINE).expect("it does not wait")
}

/// Signs a new user up; returns a handle that acts for them.
fn user(client: &Client, address: &str) -> (Client, Uuid) {
    let service = client.as_service();
    let id = service.auth().sign_up(address, PASSWORD).expect("signed up").id;
    let session = service.auth().create_session(address, PASSWORD).expect("a session");
    (client.as_user(&session.access_token).expect("a handle"), id)
}

type Look = fn(&Client, &Ids) -> String;
/// Writes, and sees it by another handle of the client.
type WriteAndLook = fn(&Client, &Ids);

struct Ids {
    user: Uuid,
    space: Uuid,
    fidget: Uuid,
}

/// Reads that may lag; each returns a text with a name that [`change_all`] changes.
const LOOKS: [(&str, Look); 12] = [
    ("get_space", |client, ids| format!("{:?}", client.spaces().get_space(ids.space))),
    ("get_public_spaces", |client, _| format!("{:?}", client.spaces().get_public_spaces(10, 0))),
    ("get_user_spaces", |client, ids| format!("{:?}", client.spaces().get_user_spaces(ids.user))),
    ("get_space_with_fidgets", |client, ids| format!("{:?}", client.spaces().get_space_with_fidgets(ids.space))),
    ("get_space_with_any_fidgets", |client, ids| {
        format!("{:?}", client.spaces().get_space_with_any_fidgets(ids.space))
    }),
    ("get_fidget", |client, ids| format!("{:?}", client.fidgets().get_fidget(ids.fidget))),
    ("get_space_fidgets", |client, ids| format!("{:?}", client.fidgets().get_space_fidgets(ids.space))),
    ("get_space_fidgets_after", |client, ids| {
        format!("{:?}", client.fidgets().get_space_fidgets_after(ids.space, 10, None))
    }),
    ("get_active_community_config", |client, _| {
        format!("{:?}", client.communities().get_active_community_config("town"))
    }),
    ("resolve_community", |client, _| {
        let found = client.communities().resolve_community("old.example").expect("resolved");
        if found.is_some() { "old" } else { "new" }.to_owned()
    }),
    ("list_spaces", |client, _| {
        let listed = client.as_service().spaces().list_spaces(10, None);
        format!("{listed:?}")
    }),
    ("list_community_configs", |client, _| {
        format!("{:?}", client.as_service().communities().list_community_configs(10, None))
    }),
];

fn create_all(writer: &Client, user: Uuid) -> Ids {
    let service = writer.as_service();
    let space = service.spaces().create_space(NewSpace::named("old").public().owned_by(user)).expect("created").id;
    let fidget = service.fidgets().create_fidget(space, NewFidget::of_type("old")).expect("created").id;
    let mut patch = CommunityPatch::with_required(json!("old"), json!({}), json!({}), json!({}));
    patch.is_published = Some(true).into();
    service.communities().save_community_config("town", patch).expect("saved");
    service.communities().save_community_domain("town", "old.example", DomainType::Custom).expect("saved");
    Ids { user, space, fidget }
}

fn change_all(writer: &Client, ids: &Ids) {
    let service = writer.as_service();
    service.fidgets().update_fidget(ids.fidget, FidgetPatch::new().kind("new")).expect("updated");
    let mut patch = CommunityPatch::new();
    patch.brand_config = Some(json!("new")).into();
    service.communities().save_community_config("town", patch).expect("saved");
    service.communities().delete_community_domain("old.example").expect("deleted");
}

#[test]
fn reads_of_anonymous_callers_and_the_service_go_to_the_replica_and_those_of_users_to_the_primary() {
    let Some(pair) = Pair::start() else { return };
    let writer = pair.writer();
    let (_, id) = user(&writer, "ann@town.example");
    let ids = create_all(&writer, id);
    pair.follow();
    let client = pair.open(&pair.replica(), |config| config);
    let session = writer.as_service().auth().create_session("ann@town.example", PASSWORD).expect("a session");
    let ann = client.as_user(&session.access_token).expect("a handle");
    pair.pause_and_rename(&writer, ids.space, &[&client]);
    change_all(&writer, &ids);
    for (operation, look) in LOOKS {
        for handle in [client.as_anonymous(), client.as_service()] {
            let seen = look(&handle, &ids);
            assert!(seen.contains("old") && !seen.contains("new"), "{operation}: {seen}");
        }
        if !operation.starts_with("list") {
            let seen = look(&ann, &ids);
            assert!(seen.contains("new") && !seen.contains("old"), "{operation} of a user: {seen}");
        }
    }
    let (on_replica, on_primary) = (reads(&client, "replica"), reads(&client, "primary"));
    // Each operation of both callers, except that some have two statements.
    assert!(on_replica >= 2.0 * 12.0, "{on_replica}");
    name(&client.as_anonymous(), ids.space);
    assert_eq!((reads(&client, "replica"), reads(&client, "primary")), (on_replica + 1.0, on_primary));
    assert_eq!(replica_reads(&writer, "replica"), None);
    // A session that another process has ended reads nothing, although the standby does not know it yet.
    writer.as_service().auth().end_sessions(id).expect("ended");
    assert_kind(ErrorKind::Unauthorized, ann.spaces().get_space(ids.space));
    assert_kind(ErrorKind::Unauthorized, client.as_user(&session.access_token));
    // A handle that has read on the primary reads nothing older later, as on the next page of a list.
    let anonymous = client.as_anonymous();
    assert_eq!(name(&anonymous, ids.space), "old");
    assert_kind(ErrorKind::NotFound, anonymous.storage().stat("assets", "none"));
    assert_eq!(name(&anonymous, ids.space), "new");
    pair.resume();
    wait_until("the standby follows again", || name(&client.as_anonymous(), ids.space) == "new");
}

#[test]
fn a_client_reads_what_it_has_written() {
    let Some(pair) = Pair::start() else { return };
    let writer = pair.writer();
    let (_, id) = user(&writer, "ann@town.example");
    let marker = pair.space(&writer, "old");
    let clients: Vec<_> = (0..10).map(|_| pair.open(&pair.replica(), |config| config)).collect();
    pair.pause_and_rename(&writer, marker, &clients.iter().collect::<Vec<_>>());

    // One handle writes, another one reads.
    let client = &clients[0];
    let ids = create_all(client, id);
    for (operation, look) in LOOKS {
        for handle in [client.as_service(), client.as_anonymous(), client.with_client_key("peer")] {
            let seen = look(&handle, &ids);
            assert!(seen.contains("old"), "{operation} after the client's own writes: {seen}");
        }
    }
    // Each further write by a client of its own: what an earlier write covers proves nothing.
    let writers: [(&str, WriteAndLook); 8] = [
        ("set_owner", |client, ids| {
            let space = client.as_service().spaces().set_owner(ids.space, ids.user).expect("set");
            assert_eq!(client.as_service().spaces().get_space(ids.space).expect("read"), space);
        }),
        ("create_fidgets", |client, ids| {
            let more = vec![NewFidget::of_type("more")];
            let made = client.as_service().fidgets().create_fidgets(ids.space, more).expect("created");
            assert_eq!(client.fidgets().get_fidget(made[0].id).expect("read"), made[0]);
        }),
        ("delete_fidget", |client, ids| {
            client.as_service().fidgets().delete_fidget(ids.fidget).expect("deleted");
            assert_kind(ErrorKind::NotFound, client.fidgets().get_fidget(ids.fidget));
        }),
        ("register_space", |client, ids| {
            let new = NewRegistration::new(ids.space, "Plaza", SpaceType::NavPage);
            let registered = client.as_service().communities().register_space(new).expect("registered");
            let read = client.communities().get_space_registration(ids.space).expect("read");
            assert_eq!(read, Some(registered));
        }),
        ("save_community_domain", |client, _| {
            let communities = client.as_service();
            let communities = communities.communities();
            communities.save_community_domain("town", "other.example", DomainType::Custom).expect("saved");
            let resolved = client.communities().resolve_community("other.example").expect("read");
            assert_eq!(resolved.as_deref(), Some("town"));
        }),
        ("sign_up", |client, _| {
            let user = client.auth().sign_up("bob@town.example", PASSWORD).expect("signed up");
            assert!(client.as_service().auth().list_users(10, None).expect("listed").contains(&user));
        }),
        ("update_user", |client, _| {
            client.auth().sign_in("bob@town.example", PASSWORD).expect("signed in");
            let space = client.spaces().create_space(NewSpace::named("Harbor").public()).expect("created").id;
            client.auth().update_user(PASSWORD, UserPatch::new().password("battery staple")).expect("updated");
            client.auth().sign_out().expect("signed out");
            assert_eq!(name(client, space), "Harbor");
        }),
        ("delete_user", |client, ids| {
            client.as_service().auth().delete_user(ids.user).expect("deleted");
            assert_eq!(client.spaces().get_user_spaces(ids.user).expect("read"), []);
            assert_kind(ErrorKind::NotFound, client.spaces().get_space(ids.space));
        }),
    ];
    for ((operation, write), client) in writers.iter().zip(&clients[1..]) {
        assert_eq!(name(&client.as_anonymous(), marker), "old", "before {operation}");
        write(client, &ids);
    }
    let last = &clients[9];
    assert_kind(ErrorKind::NotFound, last.spaces().get_space(ids.space));
    last.as_service().spaces().delete_space(marker).expect("deleted");
    assert_kind(ErrorKind::NotFound, last.as_anonymous().spaces().get_space(marker));
}

#[test]
fn a_position_lets_another_process_read_what_was_written() {
    let Some(pair) = Pair::start() else { return };
    let writer = pair.writer();
    let marker = pair.space(&writer, "old");
    let client = pair.open(&pair.replica(), |config| config);
    let patient = pair.open(&pair.replica(), |config| config.database_replica_wait(HOUR));
    pair.pause_and_rename(&writer, marker, &[&client, &patient]);

    assert_eq!(client.read_position().expect("nothing"), "");
    let service = writer.as_service();
    rename(&writer, marker, "newer");
    let position = service.read_position().expect("a position");
    assert_eq!(service.read_position().expect("a position"), position, "nothing was written since");

    let reader = client.as_anonymous();
    reader.read_after("").expect("no position");
    assert_eq!(name(&reader, marker), "old");
    reader.read_after(&position).expect("a position");
    assert_eq!(name(&reader, marker), "newer");
    // A handle passes on what it was told; others were not told.
    assert_eq!(reader.as_service().read_position().expect("passed on"), position);
    assert_eq!(name(&reader.as_service(), marker), "newer");
    assert_eq!(name(&client.as_anonymous(), marker), "old");

    // Positions that no standby will ever reach: the primary answers at once.
    let [system, timeline, place] = position.split('-').collect::<Vec<_>>()[..] else { panic!("three numbers") };
    for other in [
        format!("1-{timeline}-{place}"),
        format!("{system}-{timeline}-ffffffffffffffff"),
        format!("{system}-ffffffff-{place}"),
        "0-0-0".to_owned(),
    ] {
        let reader = patient.as_anonymous();
        reader.read_after(&other).expect("it has the form of a position");
        assert_eq!(soon(move || name(&reader, marker)), "newer", "{other}");
    }
    for hostile in ["x", "1", "-", "1-1", "1-1-1-1", "1-1-'; DROP TABLE spaces; --", "1-1-é", &"f".repeat(1 << 20)] {
        let error = assert_kind(ErrorKind::InvalidInput, patient.as_anonymous().read_after(hostile));
        assert!(error.to_string().starts_with("Read after failed: "), "{error}");
    }

    // A read waits until the standby has the position.
    let reader = patient.as_anonymous();
    reader.read_after(&position).expect("a position");
    let waiting = thread::spawn(move || name(&reader, marker));
    pair.resume();
    assert_eq!(waiting.join().expect("read"), "newer");
}

#[test]
fn a_replica_that_is_lost_or_promoted_answers_nothing() {
    let Some(pair) = Pair::start() else { return };
    let writer = pair.writer();
    let marker = pair.space(&writer, "old");
    let proxy = Proxy::to(pair.standby.port());
    let through = format!("postgres://{APP_ROLE}@127.0.0.1:{}/{}", proxy.port(), pair.name);
    let client = pair.open(&through, |config| config);
    pair.pause_and_rename(&writer, marker, &[&client]);

    // A standby that falls silent under the reads of several threads: the primary answers.
    proxy.stall(true);
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let reader = client.as_anonymous();
            thread::spawn(move || name(&reader, marker))
        })
        .collect();
    for reader in readers {
        assert_eq!(soon(move || reader.join().expect("read")), "new");
    }
    assert_eq!(name(&client.as_anonymous(), marker), "new");
    proxy.stall(false);
    wait_up_to(3 * DEADLINE, "reads go to the standby again", || name(&client.as_anonymous(), marker) == "old");

    // A connection that ends in the middle of a read.
    proxy.cut("", Cut::AfterRequest);
    assert_eq!(name(&client.as_anonymous(), marker), "new");
    wait_up_to(3 * DEADLINE, "reads go to the standby again", || name(&client.as_anonymous(), marker) == "old");

    // A standby that was promoted, and has a history of its own.
    pair.resume();
    pair.follow();
    pair.standby.promote();
    let other = Client::open(config(&pair.replica())).expect("opens");
    let own = other.as_service().spaces().create_space(NewSpace::named("other").public()).expect("created").id;
    wait_up_to(3 * DEADLINE, "nothing is read on the other primary", || {
        client.as_anonymous().spaces().get_space(own).is_err()
    });
    rename(&writer, marker, "newer");
    for _ in 0..20 {
        assert_kind(ErrorKind::NotFound, client.as_anonymous().spaces().get_space(own));
        assert_eq!(name(&client.as_anonymous(), marker), "newer");
    }
    pair.standby.stop();
    assert_eq!(name(&client.as_anonymous(), marker), "newer");
}

#[test]
fn a_replica_that_is_too_far_behind_answers_nothing() {
    let Some(pair) = Pair::start() else { return };
    let writer = pair.writer();
    let marker = pair.space(&writer, "old");
    let lag = Duration::from_secs(8);
    let client = pair.open(&pair.replica(), |config| config.database_replica_max_lag(lag));
    pair.pause_and_rename(&writer, marker, &[&client]);
    wait_up_to(3 * DEADLINE, "the standby is too far behind", || name(&client.as_anonymous(), marker) == "new");
    for _ in 0..20 {
        assert_eq!(name(&client.as_anonymous(), marker), "new");
    }
    pair.resume();
    pair.follow();
    wait_up_to(3 * DEADLINE, "reads go to the standby again", || {
        pair.pause();
        rename(&writer, marker, "newer");
        let is_read_on_the_standby = name(&client.as_anonymous(), marker) == "new";
        rename(&writer, marker, "new");
        pair.resume();
        pair.follow();
        is_read_on_the_standby
    });
}

#[test]
fn a_replica_behind_a_pooler_in_transaction_mode_answers_too() {
    let Some(pair) = Pair::start() else { return };
    let Some(pooler) = PgBouncer::before(&pair.standby, Mode::Transaction, 4) else { return };
    let writer = pair.writer();
    let marker = pair.space(&writer, "old");
    let client = pair.open(&pooler.url(APP_ROLE, &pair.name), |config| config);
    pair.pause_and_rename(&writer, marker, &[&client]);
    for _ in 0..10 {
        assert_eq!((name(&client.as_service(), marker), name(&client, marker)), ("old".to_owned(), "old".to_owned()));
    }
    client.as_service().spaces().update_space(marker, SpacePatch::new().name("newer")).expect("renamed");
    assert_eq!(name(&client, marker), "newer");
}

#[test]
fn a_url_that_names_no_replica_of_the_database_is_refused_or_not_used() {
    let folder = temp_dir();
    let refused = |config: Config, expected: &str| {
        let error = assert_kind(ErrorKind::Config, Client::open(config));
        assert!(error.message().starts_with(expected), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    };
    let embedded = || Config::new().data_dir(folder.path()).catalog_api_key("");
    let message = "Option database_replica_url: only a PostgreSQL server in database_url has replicas";
    refused(embedded().database_replica_url("postgres://app:secret@127.0.0.1/town"), message);
    Client::open(embedded().database_replica_url("")).expect("an empty URL is none").close();

    let Some(pair) = Pair::start() else { return };
    for url in ["postgres://app:secret@a,b/town", "mysql://app:secret@a/town", "postgres://app:secret@a/town?what=1"] {
        refused(pair.reading().database_replica_url(url), "Option database_replica_url");
    }
    let writer = pair.writer();
    let (_, id) = user(&writer, "ann@town.example");
    let public = pair.space(&writer, "old");
    let private = writer.as_service().spaces().create_space(NewSpace::named("diary").owned_by(id)).expect("created").id;
    // Another database of the primary, and of the standby; the primary itself; an administrator, whom no policy restricts; a
    // server that nobody runs.
    let other = pair.primary.new_database();
    pair.follow();
    let urls = [
        pair.primary.url(APP_ROLE, &other),
        pair.standby.url(APP_ROLE, &other),
        pair.primary.url(APP_ROLE, &pair.name),
        pair.standby.url("postgres", &pair.name),
        "postgres://127.0.0.1:1/town".to_owned(),
    ];
    let open = |url: &String| Client::open(pair.reading().database_replica_url(url)).expect("opens");
    let clients: Vec<_> = urls.iter().map(open).collect();
    // A client with the right URL, opened last, shows that there was time to reach the others.
    let right = pair.open(&pair.replica(), |config| config);
    pair.pause_and_rename(&writer, public, &[&right]);
    for (url, client) in urls.iter().zip(&clients) {
        for _ in 0..20 {
            assert_eq!(name(&client.as_anonymous(), public), "new", "{url}");
            assert_kind(ErrorKind::NotFound, client.as_anonymous().spaces().get_space(private));
        }
    }
}

#[test]
fn a_standby_of_a_copy_of_the_primary_answers_nothing() {
    let Some(pair) = Pair::start() else { return };
    let writer = pair.writer();
    let space = pair.space(&writer, "old");
    let copy = pair.primary.copy();
    let standby_of_copy = copy.standby();
    // What the copy writes for itself, so that it has more log than the primary.
    let of_copy = Client::open(config(&copy.url(APP_ROLE, &pair.name))).expect("opens");
    for _ in 0..50 {
        rename(&of_copy, space, "of the copy");
    }
    let url = standby_of_copy.url(APP_ROLE, &pair.name);
    let client = Client::open(pair.reading().database_replica_url(&url)).expect("opens");
    // A client with the right standby, opened later, shows that there was time to look.
    let right = pair.open(&pair.replica(), |config| config);
    for _ in 0..20 {
        assert_eq!(name(&client.as_anonymous(), space), "old");
    }
    // A client that reads on the right standby, until its URL leads to the standby of the copy.
    let proxy = Proxy::to(pair.standby.port());
    let through = format!("postgres://{APP_ROLE}@127.0.0.1:{}/{}", proxy.port(), pair.name);
    let moved = pair.open(&through, |config| config);
    proxy.lead_to(standby_of_copy.port());
    let before = reads(&moved, "replica");
    wait_until("the primary answers", || {
        assert_eq!(name(&moved.as_anonymous(), space), "old");
        reads(&moved, "primary") > 10.0
    });
    assert_eq!((reads(&client, "replica"), reads(&moved, "replica")), (0.0, before));
    assert!(reads(&right, "replica") > 0.0);
}

#[test]
fn a_read_that_waits_for_a_lock_on_the_replica_is_answered_by_the_primary() {
    let Some(pair) = Pair::start() else { return };
    let writer = pair.writer();
    let space = pair.space(&writer, "old");
    let client = pair.open(&pair.replica(), |config| config.operation_timeout(HOUR));
    let holder = pair.primary.administrator(&pair.name);
    holder.run("BEGIN");
    holder.run("LOCK TABLE spaces IN ACCESS EXCLUSIVE MODE");
    holder.run("SELECT txid_current(), pg_switch_wal()");
    pair.follow();
    pair.pause();
    holder.run("COMMIT");
    let before = reads(&client, "replica");
    for _ in 0..3 {
        let reader = client.as_anonymous();
        assert_eq!(soon(move || name(&reader, space)), "old");
    }
    assert_eq!(reads(&client, "replica"), before);
    pair.resume();
    wait_until("reads go to the standby again", || {
        name(&client.as_anonymous(), space);
        reads(&client, "replica") > before
    });
}

#[test]
fn reads_do_not_wait_for_what_an_earlier_one_has_missed() {
    let Some(pair) = Pair::start() else { return };
    let writer = pair.writer();
    let space = pair.space(&writer, "old");
    // If each read waited, five of them would take longer than the test waits.
    let client = pair.open(&pair.replica(), |config| config.database_replica_wait(DEADLINE / 4));
    pair.pause();
    rename(&client, space, "new");
    soon(move || {
        for _ in 0..40 {
            assert_eq!(name(&client.as_anonymous(), space), "new");
        }
    });
}

#[test]
fn after_a_failover_a_standby_with_the_lost_history_answers_nothing() {
    let Some(pair) = Pair::start() else { return };
    let writer = pair.writer();
    let marker = pair.space(&writer, "old");
    let next = pair.primary.standby();
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", pair.primary.port(), next.port());
    let url = format!("postgres://{APP_ROLE}@{hosts}/{}", pair.name);
    let client = pair.open(&pair.replica(), |config| config.database_url(url));
    pair.pause_and_rename(&writer, marker, &[&client]);
    pair.resume();
    let administrator = next.administrator("postgres");
    let has_new = || next.administrator(&pair.name).value("SELECT count(*) FROM spaces WHERE name = 'new'") == "1";
    wait_up_to(3 * DEADLINE, "the next primary has followed", has_new);
    administrator.run("ALTER SYSTEM SET primary_conninfo = ''");
    administrator.run("SELECT pg_reload_conf()");
    wait_up_to(3 * DEADLINE, "the next primary is cut off", || {
        administrator.value("SELECT count(*) FROM pg_stat_wal_receiver") == "0"
    });
    // What the standby has and the next primary lacks is more log than the new history will have.
    for _ in 0..200 {
        rename(&writer, marker, "lost");
    }
    pair.follow();
    pair.primary.stop();
    next.promote();
    // The position of another process is on the new timeline, which this client may not know yet.
    let other = Client::open(config(&next.url(APP_ROLE, &pair.name))).expect("opens");
    let told = other.as_service().spaces().create_space(NewSpace::named("told").public()).expect("created").id;
    let reader = client.as_anonymous();
    reader.read_after(&other.as_service().read_position().expect("a position")).expect("a position");
    assert_eq!(name(&reader, told), "told");
    let after = NewSpace::named("after").public().with_id(Uuid::new_v4());
    let id = after.id.expect("given");
    wait_up_to(3 * DEADLINE, "the next primary is found", || {
        client.as_service().spaces().create_space(after.clone()).is_ok()
    });
    for _ in 0..20 {
        assert_eq!(name(&client.as_anonymous(), id), "after");
        assert_eq!(name(&client.as_service(), marker), "new");
    }
}
