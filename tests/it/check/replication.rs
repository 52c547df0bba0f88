//! The replication of a PostgreSQL server: synchronous standbys, standbys that are behind, and slots. Roles with and without
//! `pg_monitor` check it.

use townsquare::{
    Config,
    blocking::Client,
    check::{CheckDepth, FindingCode},
};
use townsquare_tests::{
    TempDir,
    postgres::{APP_ROLE, Server},
    raw_sql::RawConnection,
    temp_dir,
    wait::wait_until,
};

use super::fixture::{assert_only, codes};

/// The smallest value of `max_wal_size` with segments of the default size.
const SMALL_LOG: [&str; 3] = ["wal_level=replica", "min_wal_size=32MB", "max_wal_size=32MB"];

struct Replication {
    server: Server,
    administrator: RawConnection,
    name: String,
    folder: TempDir,
}

impl Replication {
    fn start(settings: &[&str]) -> Option<Replication> {
        let server = Server::with_settings(settings)?;
        let name = server.new_database();
        let administrator = server.administrator(&name);
        Some(Replication { server, administrator, name, folder: temp_dir() })
    }

    /// Opens a client, whose connections are closed by [`Client::close`].
    fn open(&self) -> Client {
        let url = self.server.url(APP_ROLE, &self.name);
        let config = Config::new().data_dir(self.folder.path().join("data")).database_url(url).catalog_api_key("");
        Client::open(config).expect("opens")
    }

    fn set(&self, name: &str, value: &str) {
        self.administrator.run(&format!("ALTER SYSTEM SET {name} = '{value}'"));
        self.administrator.run("SELECT pg_reload_conf()");
        wait_until("the setting", || self.administrator.value(&format!("SHOW {name}")) == value);
    }

    /// Writes more log than `max_wal_size`.
    fn write_log(&self) {
        for _ in 0..6 {
            self.administrator.run("SELECT pg_logical_emit_message(true, 'test', 'bytes')");
            self.administrator.run("SELECT pg_switch_wal()");
        }
    }

    fn count(&self, condition: &str) -> String {
        self.administrator.value(&format!("SELECT count(*) FROM pg_stat_replication WHERE {condition}"))
    }
}

/// Checks with a client, again until the findings have these codes: the server publishes its state with a delay.
#[track_caller]
fn assert_found(client: &Client, expected: &[FindingCode]) -> Vec<String> {
    let found = || client.check(CheckDepth::Quick).expect("checked");
    wait_until(&format!("{expected:?} is found"), || codes(&found()) == expected);
    match expected {
        [] => Vec::new(),
        [code] => assert_only(*code, &found()),
        _ => panic!("one code"),
    }
}

#[test]
fn missing_synchronous_standbys_are_found() {
    let Some(replication) = Replication::start(&["wal_level=replica"]) else { return };
    let client = replication.open();
    let standby = replication.server.standby();
    wait_until("the standby streams", || replication.count("state = 'streaming'") == "1");
    assert_found(&client, &[]);
    replication.set("synchronous_standby_names", "*");
    wait_until("it is synchronous", || replication.count("sync_state = 'sync'") == "1");
    assert_found(&client, &[]);

    // This role sees how many there are, and no more.
    replication.set("synchronous_standby_names", "ANY 2 (*)");
    let found = assert_found(&client, &[FindingCode::StandbyMissing]);
    assert_eq!(found, ["A commit waits for 2 synchronous standbys, and 1 of the 1 connected ones can be."]);
    replication.set("synchronous_standby_names", "other");
    wait_until("it is not synchronous", || replication.count("sync_state = 'async'") == "1");
    assert_found(&client, &[]);
    replication.set("synchronous_standby_names", "");
    replication.administrator.run(&format!("GRANT pg_monitor TO {APP_ROLE}"));
    replication.set("synchronous_standby_names", "other");
    let found = assert_found(&client, &[FindingCode::StandbyMissing]);
    assert_eq!(found, ["A commit waits for 1 synchronous standbys, and 0 of the 1 connected ones can be."]);

    // The standby ends.
    replication.set("synchronous_standby_names", "*");
    assert_found(&client, &[]);
    standby.stop();
    let found = assert_found(&client, &[FindingCode::StandbyMissing]);
    assert_eq!(found, ["A commit waits for 1 synchronous standbys, and 0 of the 0 connected ones can be."]);

    // Commits of this role do not wait.
    replication.set("synchronous_standby_names", "");
    assert_found(&client, &[]);
    client.close();
    replication.administrator.run(&format!("ALTER ROLE {APP_ROLE} SET synchronous_commit = local"));
    replication.set("synchronous_standby_names", "*");
    let client = replication.open();
    assert_found(&client, &[]);
    client.close();
}

#[test]
fn a_standby_that_is_behind_is_found_by_a_role_that_may_see_it() {
    let Some(replication) = Replication::start(&SMALL_LOG) else { return };
    let client = replication.open();
    let standby = replication.server.standby();
    wait_until("the standby streams", || replication.count("state = 'streaming'") == "1");
    // It has no slot: a checkpoint could remove log that it has not received.
    replication.set("wal_keep_size", "512MB");
    standby.administrator(&replication.name).run("SELECT pg_wal_replay_pause()");
    replication.write_log();
    let behind = "pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) > 40000000";
    wait_until("the standby is behind", || replication.count(behind) == "1");
    assert_found(&client, &[]);
    replication.administrator.run(&format!("GRANT pg_monitor TO {APP_ROLE}"));
    let found = assert_found(&client, &[FindingCode::ReplicaBehind]);
    assert_eq!(found, ["1 standbys of the server are more than max_wal_size behind."]);
    standby.administrator(&replication.name).run("SELECT pg_wal_replay_resume()");
    assert_found(&client, &[]);
    // Only the primary knows this.
    let url = standby.url(APP_ROLE, &replication.name);
    let config = Config::new().data_dir(replication.folder.path().join("data")).database_url(url).catalog_api_key("");
    let reader = Client::open(config).expect("a standby opens for reading");
    assert_only(FindingCode::ServerReadOnly, &reader.check(CheckDepth::Quick).expect("checked"));
    reader.close();
    client.close();
}

#[test]
fn slots_that_nobody_reads_and_slots_that_lose_log_are_found() {
    let Some(replication) = Replication::start(&SMALL_LOG) else { return };
    let client = replication.open();
    replication.administrator.run("SELECT pg_create_physical_replication_slot('away', true)");
    assert_found(&client, &[]);
    replication.write_log();
    let found = assert_found(&client, &[FindingCode::SlotUnread]);
    assert!(found[0].starts_with("Nobody reads the replication slot away, and it keeps "), "{found:?}");

    // A checkpoint would remove the log.
    replication.set("max_slot_wal_keep_size", "32MB");
    let found = assert_found(&client, &[FindingCode::SlotLost]);
    assert!(found[0].starts_with("The server will soon remove"), "{found:?}");
    replication.administrator.run("CHECKPOINT");
    let found = assert_found(&client, &[FindingCode::SlotLost]);
    assert!(found[0].starts_with("The server has removed"), "{found:?}");
    replication.administrator.run("SELECT pg_drop_replication_slot('away')");
    assert_found(&client, &[]);
    client.close();
}
