//! A PostgreSQL server of a bench's own, on a socket in a temporary folder, with the server's default settings: what
//! it has committed is on the disk.
//!
//! Invariant: it ends with this process, however that ends: a shell waits for the end of a pipe that only we hold,
//! then stops the server and removes its folder.

use std::{
    env, fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::town::Folder;

/// What the server is run by, so that it dies with us: it reads a pipe until we are gone.
const KEEPER: &str = r#"folder=$1; shift
"$@" >"$folder/log" 2>&1 &
cat >/dev/null
kill -INT "$(head -n 1 "$folder/data/postmaster.pid")" 2>/dev/null
wait
rm -rf "$folder""#;

/// The role that owns the database; all else it may do is to become the library's restricted role.
const ROLE: &str = "townsfolk";

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server with an empty database.
pub struct Server {
    folder: Folder,
    keeper: Child,
}

impl Server {
    /// Starts one; `None`, said aloud, where PostgreSQL is not installed.
    ///
    /// # Panics
    /// When it is installed and does not start, or where nothing may be skipped.
    #[allow(clippy::print_stderr, reason = "a skip that nobody sees is a figure that nobody has")]
    pub fn start() -> Option<Server> {
        let Some(binaries) = binaries() else {
            let what = "PostgreSQL is not installed (no initdb in `pg_config --bindir` or /usr/lib/postgresql/*/bin)";
            let is_due = env::var_os("TOWNSQUARE_REQUIRE_ALL").is_some_and(|all| all == "1");
            assert!(!is_due, "nothing may be skipped: {what}");
            eprintln!("SKIPPED: {what}");
            return None;
        };
        let folder = Folder::new();
        let data = folder.join("data");
        // PostgreSQL refuses to run as root.
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        let user: &[&str] = if is_root { &["runuser", "-u", "postgres", "--"] } else { &[] };
        if is_root {
            must(Command::new("chown").arg("postgres").arg(folder.join("")));
        }
        let own = |program: &str| {
            let mut words: Vec<String> = user.iter().map(|word| (*word).to_owned()).collect();
            words.push(binaries.join(program).display().to_string());
            words
        };
        let initdb = own("initdb");
        let mut setting_up = Command::new(&initdb[0]);
        setting_up.args(&initdb[1..]).arg("-D").arg(&data).current_dir("/");
        must(setting_up.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]));
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "keeper"]).arg(folder.join("")).args(own("postgres")).arg("-D").arg(&data);
        keeper.args(["-c", "listen_addresses="]).arg("-k").arg(folder.join(""));
        // In a group of its own: an interrupt at the terminal ends us, and by that the keeper.
        keeper.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let server = Server { keeper: keeper.spawn().expect("sh starts"), folder };
        let started = Instant::now();
        while !server.psql(&binaries, "SELECT 1").status().is_ok_and(|status| status.success()) {
            assert!(started.elapsed() < PATIENCE, "PostgreSQL does not accept connections");
            thread::sleep(Duration::from_millis(50));
        }
        must(&mut server.psql(&binaries, &format!("CREATE ROLE {ROLE} LOGIN")));
        must(&mut server.psql(&binaries, &format!("CREATE ROLE townsquare_caller; GRANT townsquare_caller TO {ROLE}")));
        must(&mut server.psql(&binaries, &format!("CREATE DATABASE town OWNER {ROLE}")));
        Some(server)
    }

    /// The URL of its database, over its socket.
    pub fn url(&self) -> String {
        format!("postgres://{ROLE}@localhost/town?host={}", self.folder.join("").display())
    }

    fn psql(&self, binaries: &Path, sql: &str) -> Command {
        let mut psql = Command::new(binaries.join("psql"));
        psql.args(["-X", "-q", "-U", "postgres", "-d", "postgres", "-c", sql]).arg("-h").arg(self.folder.join(""));
        psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        psql
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // What does not end by itself ends with the machine.
        let _ = self.keeper.wait();
    }
}

fn binaries() -> Option<PathBuf> {
    let named = Command::new("pg_config").arg("--bindir").output().ok();
    let named = named.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let mut installed: Vec<_> =
        fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    installed.sort_by_key(|path| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()));
    let installed = installed.into_iter().rev().map(|path| path.join("bin"));
    named.into_iter().chain(installed).find(|folder| folder.join("initdb").is_file())
}

fn must(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
