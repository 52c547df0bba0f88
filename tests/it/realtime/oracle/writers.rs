//! The writers of the oracle: the library's service, the library in another process, and the database's own shell.

use std::{
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use townsquare::{
    Uuid,
    blocking::Client,
    communities::CommunityPatch,
    spaces::{Change, FidgetPatch, NewFidget, NewSpace, SpacePatch},
    storage::{Overwrite, UploadOptions},
};
use townsquare_tests::{
    Rng, postgres,
    setting::setting,
    subprocess::{join_child, name_of},
    test_database::{Engine, TestDatabase, inherited, required},
    wait::wait_until,
};

use super::{child_process_entry_point, log};

const SPACES: u128 = 12;
const FIDGETS: u128 = 40;

/// An identity key, which one user at a time links.
const IDENTITY_KEY: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const OWNERS: &str = "TOWNSQUARE_TEST_FEED_OWNERS";
const SECONDS: &str = "TOWNSQUARE_TEST_FEED_SECONDS";

/// The writers that run.
pub(super) struct Writers {
    threads: Vec<JoinHandle<()>>,
    child: Child,
}

pub(super) fn space_id(number: u128) -> Uuid {
    Uuid::from_u128(0x5_0000 + number)
}

fn fidget_id(number: u128) -> Uuid {
    Uuid::from_u128(0xF_0000 + number)
}

fn name(random: &mut Rng) -> String {
    format!("{}{}", ["a", "b", "ż"][random.usize(..3)], random.u32(..100))
}

fn kind(random: &mut Rng) -> &'static str {
    ["clock", "map", "chat"][random.usize(..3)]
}

fn community(random: &mut Rng) -> &'static str {
    ["a", "b"][random.usize(..2)]
}

/// A bucket and a path: of everyone, of a user, of who links the identity key, of a space.
fn file(owners: &[Uuid], random: &mut Rng) -> (&'static str, String) {
    let number = random.u32(..3);
    match random.u32(..4) {
        0 => ("assets", format!("images/{number}")),
        1 => ("private", format!("{}/{number}", owners[random.usize(..owners.len())])),
        2 => ("private", format!("{IDENTITY_KEY}/{number}")),
        _ => ("spaces", format!("{}/tabs/{number}", space_id(random.u128(..SPACES)))),
    }
}

impl Writers {
    /// Starts `count` writers, at least three: one in another process, one that is the database's shell, and the rest
    /// threads of this process.
    pub(super) fn start(
        db: &TestDatabase,
        owners: &[Uuid],
        count: usize,
        duration: Duration,
        mut random: Rng,
    ) -> Writers {
        let end = Instant::now() + duration;
        let names: Vec<String> = owners.iter().map(ToString::to_string).collect();
        let variables = [(OWNERS, &*names.join(",")), (SECONDS, &*duration.as_secs().to_string())];
        let child = db.child(name_of(&child_process_entry_point), "write", &variables);
        let child = { child }.spawn().expect("the child starts");
        let shell = Shell::of(db);
        let schema = if db.engine == Engine::Sqlite { "townsquare_" } else { "townsquare." };
        let (of_shell, mut of_shell_random) = (owners.to_vec(), random.fork());
        let mut threads = vec![thread::spawn(move || {
            while Instant::now() < end {
                shell.run(&(0..12).map(|_| statement(schema, &of_shell, &mut of_shell_random)).collect::<String>());
            }
        })];
        for _ in 2..count.max(3) {
            let (client, owners, mut random) = (db.service.clone(), owners.to_vec(), random.fork());
            threads.push(thread::spawn(move || {
                while Instant::now() < end {
                    write(&client, &owners, &mut random);
                }
            }));
        }
        Writers { threads, child }
    }

    /// Waits until the log has `count` more entries, or the writers have ended.
    pub(super) fn wait_for_writes(&self, db: &TestDatabase, count: i64) {
        let first = log::last_id(db);
        wait_until("the writers write", || {
            log::last_id(db) >= first + count || self.threads.iter().all(JoinHandle::is_finished)
        });
    }

    pub(super) fn join(self) {
        for thread in self.threads {
            thread.join().expect("a writer does not panic");
        }
        join_child(self.child);
    }
}

/// In the child process: writes as the service.
pub(super) fn write_as_child() {
    let client = Client::open(inherited()).expect("opens").as_service();
    let owners = std::env::var(OWNERS).expect("the parent sets the variable");
    let owners: Vec<Uuid> = owners.split(',').map(|id| id.parse().expect("an id")).collect();
    let end = Instant::now() + Duration::from_secs(setting(SECONDS, 2));
    let mut random = Rng::with_seed(77);
    while Instant::now() < end {
        write(&client, &owners, &mut random);
    }
    client.close();
}

/// One random operation. It may fail: the row may be missing, or there already.
fn write(client: &Client, owners: &[Uuid], random: &mut Rng) {
    let (spaces, fidgets, storage) = (client.spaces(), client.fidgets(), client.storage());
    let (space, fidget) = (space_id(random.u128(..SPACES)), fidget_id(random.u128(..FIDGETS)));
    let _ = match random.u32(..26) {
        0..=3 => {
            let owner = owners[random.usize(..owners.len())];
            spaces.create_space(NewSpace::named(name(random)).owned_by(owner).with_id(space)).map(drop)
        }
        4..=5 => spaces.update_space(space, SpacePatch::new().name(name(random))).map(drop),
        6 => spaces.update_space(space, SpacePatch::new().published()).map(drop),
        7 => spaces.update_space(space, SpacePatch::new().hidden()).map(drop),
        8 => spaces.delete_space(space),
        9..=13 => fidgets.create_fidget(space, NewFidget::of_type(kind(random)).with_id(fidget)).map(drop),
        14..=17 => fidgets.update_fidget(fidget, FidgetPatch::new().kind(kind(random))).map(drop),
        18..=19 => fidgets.delete_fidget(fidget),
        20..=21 => {
            let (bucket, path) = file(owners, random);
            storage.upload(bucket, &path, name(random), UploadOptions::new()).map(drop)
        }
        22 => {
            let (bucket, path) = file(owners, random);
            let (_, target) = file(owners, random);
            storage.move_file(bucket, &path, &target, Overwrite::Replace).map(drop)
        }
        23 => {
            let (bucket, path) = file(owners, random);
            storage.delete(bucket, &path)
        }
        _ => {
            let mut patch: CommunityPatch = required();
            patch.admin_email = Change::Set(name(random));
            patch.is_published = Change::Set(random.bool());
            client.communities().save_community_config(community(random), patch).map(drop)
        }
    };
}

/// A random transaction in SQL, with statements that may fail. `schema` begins the names of the library's own tables.
fn statement(schema: &str, owners: &[Uuid], random: &mut Rng) -> String {
    let (space, other) = (space_id(random.u128(..SPACES)), space_id(random.u128(..SPACES)));
    let (fidget, owner) = (fidget_id(random.u128(..FIDGETS)), owners[random.usize(..owners.len())]);
    let (name, kind) = (name(random), kind(random));
    match random.u32(..18) {
        0 => format!(
            "INSERT INTO spaces (id, name, owner_id, is_public) VALUES ('{space}', '{name}', '{owner}', true);\n"
        ),
        1 => format!("UPDATE spaces SET owner_id = '{owner}' WHERE id = '{space}';\n"),
        2 => format!("UPDATE spaces SET is_public = NOT is_public, name = '{name}' WHERE id = '{space}';\n"),
        3 => format!("UPDATE spaces SET is_public = NULL WHERE id = '{space}';\n"),
        4 => format!("UPDATE fidgets SET space_id = '{other}' WHERE id = '{fidget}';\n"),
        5 => format!("DELETE FROM spaces WHERE id = '{space}';\n"),
        6 => format!(
            "BEGIN;\nUPDATE fidgets SET type = '{kind}' WHERE space_id = '{space}';\nUPDATE spaces SET name = '{name}' WHERE id = '{other}';\nCOMMIT;\n"
        ),
        7 => "BEGIN;\nUPDATE spaces SET is_public = true;\nDELETE FROM fidgets;\nROLLBACK;\n".to_owned(),
        8 => format!("UPDATE users SET updated_at = updated_at WHERE id = '{owner}';\n"),
        9 => format!("INSERT INTO fidgets (id, space_id, type) VALUES ('{fidget}', '{space}', '{kind}');\n"),
        10..=11 => format!("UPDATE fidgets SET type = '{kind}' WHERE id = '{fidget}';\n"),
        12 => format!(
            "UPDATE community_configs SET is_published = NOT is_published WHERE community_id = '{}';\n",
            community(random)
        ),
        13 => format!("DELETE FROM community_configs WHERE community_id = '{}';\n", community(random)),
        14..=15 => format!(
            "INSERT INTO {schema}identities (public_key, user_id, linked_at) \
             VALUES ('{IDENTITY_KEY}', '{owner}', '2026-01-01T00:00:00.000000Z');\n"
        ),
        16 => format!("DELETE FROM {schema}identities;\n"),
        _ => format!("DELETE FROM {schema}files WHERE bucket = 'assets';\n"),
    }
}

/// The shell of the database: `sqlite3` or `psql`.
struct Shell {
    program: std::ffi::OsString,
    arguments: Vec<String>,
    before: &'static str,
}

impl Shell {
    fn of(db: &TestDatabase) -> Shell {
        match db.engine {
            Engine::Sqlite => Shell {
                program: "sqlite3".into(),
                arguments: vec![db.file().display().to_string()],
                before: ".timeout 20000\nPRAGMA foreign_keys = ON;\n",
            },
            Engine::Postgres => Shell {
                program: postgres::program("psql").get_program().to_owned(),
                arguments: vec!["--quiet".to_owned(), "--no-psqlrc".to_owned(), db.url()],
                before: "",
            },
        }
    }

    /// Runs statements in a new process. A statement that fails does not end it.
    fn run(&self, sql: &str) {
        use std::io::Write as _;

        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the shell of the database starts");
        let mut input = child.stdin.take().expect("a pipe");
        input
            .write_all(self.before.as_bytes())
            .and_then(|()| input.write_all(sql.as_bytes()))
            .expect("the shell reads");
        drop(input);
        child.wait().expect("the shell ends");
    }
}
