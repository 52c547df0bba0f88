//! A temporary PostgreSQL server for this process, on a free loopback port and a Unix socket.
//!
//! Invariant: the server stops when this process ends, however it ends: a shell reads a pipe that only this process
//! holds, then stops the server and removes its folder. The child processes of a test use their parent's server.

use std::{
    env, fs,
    io::Write as _,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio, id},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use tempfile::TempDir;
use townsquare::Uuid;

use crate::{
    ports::{STARTS, free_port},
    raw_sql::RawConnection,
    skip::skip,
    temp_dir, temp_dir_in,
    wait::wait_until,
};

/// The environment variable that passes the server to child processes, as `port:folder of the socket`.
pub const VARIABLE: &str = "TOWNSQUARE_TEST_POSTGRES";

/// The role that owns the test databases. It may create roles, such as those of the library's callers.
pub const APP_ROLE: &str = "app";

/// A role that may own a database but may not create roles.
pub const OWNER_ROLE: &str = "owner_only";

/// Runs the server and stops it when standard input ends. The file `ended` appears when the server ends.
const SUPERVISOR: &str = r#"folder=$1; shift
{ "$@" >"$folder/log" 2>&1; : >"$folder/ended"; } &
cat >/dev/null
kill -QUIT "$(head -n 1 "$folder/data/postmaster.pid")" 2>/dev/null
wait
rm -rf "$folder""#;

const MISSING: &str = "PostgreSQL is not installed (no initdb in `pg_config --bindir` or /usr/lib/postgresql/*/bin)";

/// Settings of the tests' server: it must survive signals, not power failures.
const TEST_SETTINGS: &[&str] = &["wal_level=logical", "max_connections=500", VOLATILE, "jit=off"];

/// The setting of a server that need not survive a power failure. Its data are in memory where there is room.
const VOLATILE: &str = "fsync=off";

/// Bytes that must be free in memory for the data of a server.
const MEMORY: u64 = 8 << 30;

/// A running server.
pub struct Server {
    port: u16,
    sockets: PathBuf,
    /// Its standard input is a pipe from this process. The system closes the pipe when this process ends.
    supervisor: Option<Child>,
    folder: Option<TempDir>,
}

/// Returns the server of this process. Returns `None` and reports a skip if PostgreSQL is not installed.
///
/// # Panics
/// When it is installed and does not start.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        if let Ok(inherited) = env::var(VARIABLE) {
            let (port, sockets) = inherited.split_once(':').expect("port:folder");
            let port = port.parse().expect("a port");
            return Some(Server { port, sockets: sockets.into(), supervisor: None, folder: None });
        }
        Some(start(&binaries()?, TEST_SETTINGS, |_| Vec::new()))
    });
    if server.is_none() {
        skip(MISSING);
    }
    server.as_ref()
}

impl Server {
    /// Starts a server with this TLS certificate and key. Returns `None` and reports a skip if PostgreSQL is not
    /// installed.
    ///
    /// # Panics
    /// When it does not start.
    pub fn with_tls(certificate: &Path, key: &Path) -> Option<Server> {
        let server = start(&binaries_or_skip()?, TEST_SETTINGS, |folder| {
            // The server requires a key file that only its user can read.
            let own = [("ssl_cert_file", certificate), ("ssl_key_file", key)].map(|(setting, file)| {
                let copy = folder.path().join(setting);
                run(Command::new("install").args(["-m", "600"]).arg(file).arg(&copy));
                if is_root() {
                    run(Command::new("chown").arg("postgres").arg(&copy));
                }
                format!("{setting}={}", copy.display())
            });
            own.into_iter().chain(["ssl=on".to_owned()]).collect()
        });
        Some(server)
    }

    /// Starts a server with PostgreSQL's default settings, whose commits are durable. Returns `None` and reports a skip
    /// if PostgreSQL is not installed.
    ///
    /// # Panics
    /// When it does not start.
    pub fn durable() -> Option<Server> {
        Server::with_settings(&[])
    }

    /// Starts a server with PostgreSQL's default settings but for these (`name=value`). Returns `None` and reports a skip
    /// if PostgreSQL is not installed.
    ///
    /// # Panics
    /// When it does not start.
    pub fn with_settings(settings: &[&str]) -> Option<Server> {
        Some(start(&binaries_or_skip()?, settings, |_| Vec::new()))
    }

    /// Returns the URL of a database for a role.
    pub fn url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{database}", self.port)
    }

    /// Returns the URL of a database for a role over the Unix socket.
    pub fn socket_url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@localhost/{database}?host={}&port={}", self.sockets.display(), self.port)
    }

    /// Returns the port on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the value of [`VARIABLE`] for a child process.
    pub fn address(&self) -> String {
        format!("{}:{}", self.port, self.sockets.display())
    }

    /// Restarts a server that this process has started. The databases stay, every connection ends.
    ///
    /// # Panics
    /// When it does not restart, and for a server of another process.
    pub fn restart(&self) {
        let log = self.sockets.join("log.restarted").display().to_string();
        self.control(&["restart", "-w", "-m", "fast", "-l", &log]);
    }

    /// Restarts a server that this process has started, as a crash of the machine would: connections end without a message.
    ///
    /// # Panics
    /// When it does not restart, and for a server of another process.
    pub fn restart_at_once(&self) {
        let log = self.sockets.join("log.restarted").display().to_string();
        self.control(&["restart", "-w", "-m", "immediate", "-l", &log]);
    }

    /// Restarts a server that this process has started in the state of a server that starts: it refuses connections with
    /// SQLSTATE 57P03 until [`Server::finish_start`]. It is a standby that no client may read.
    ///
    /// # Panics
    /// When it does not restart, and for a server of another process.
    pub fn restart_unfinished(&self) {
        let data = self.folder.as_ref().expect("a server of this process").path().join("data");
        fs::write(data.join("standby.signal"), "").expect("a file");
        let settings = fs::OpenOptions::new().append(true).open(data.join("postgresql.conf"));
        settings.and_then(|mut file| file.write_all(b"\nhot_standby = off\n")).expect("a setting");
        self.restart();
    }

    /// Lets a server accept connections after [`Server::restart_unfinished`].
    ///
    /// # Panics
    /// When it goes on to refuse them.
    pub fn finish_start(&self) {
        self.control(&["promote", "-w"]);
    }

    /// Begins the shutdown of a server that this process has started. Until the sessions that are open have ended, it refuses
    /// new ones with SQLSTATE 57P03.
    ///
    /// # Panics
    /// For a server of another process.
    pub fn begin_shutdown(&self) {
        self.control(&["stop", "-W", "-m", "smart"]);
    }

    /// Kills a server process, after which the server ends all others and starts again.
    ///
    /// # Panics
    /// When the process does not run.
    pub fn crash(&self, process: &str) {
        run(Command::new("sh").args(["-c", "kill -KILL \"$1\"", "sh", process]));
    }

    /// Stops a server that this process has started, as a crash would.
    ///
    /// # Panics
    /// When it goes on, and for a server of another process.
    pub fn stop(&self) {
        self.control(&["stop", "-w", "-m", "immediate"]);
    }

    fn control(&self, words: &[&str]) {
        let folder = self.folder.as_ref().expect("a server of this process").path();
        let command = command_line(&binaries().expect("this server runs"), "pg_ctl");
        let mut control = Command::new(&command[0]);
        control.args(&command[1..]).args(words).arg("-D").arg(folder.join("data"));
        // The server keeps the streams that it inherits.
        let status = control.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.expect("pg_ctl starts").success(), "{words:?}");
    }

    /// Starts a standby of this server, which follows it.
    ///
    /// # Panics
    /// When it does not start.
    pub fn standby(&self) -> Server {
        self.base_backup(&["--write-recovery-conf"])
    }

    /// Starts a copy of this server, with its cluster and timeline, that accepts writes of its own.
    ///
    /// # Panics
    /// When it does not start.
    pub fn copy(&self) -> Server {
        self.base_backup(&[])
    }

    fn base_backup(&self, options: &[&str]) -> Server {
        let folder = server_folder(true);
        let binaries = binaries().expect("this server runs");
        let backup = command_line(&binaries, "pg_basebackup");
        run(Command::new(&backup[0])
            .args(&backup[1..])
            .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string()])
            .args(options)
            .args(["--checkpoint=fast", "--no-sync", "-D"])
            .arg(folder.path().join("data"))
            .current_dir("/"));
        launch(&binaries, &[], &[], folder)
    }

    /// Makes a standby a server that accepts writes.
    ///
    /// # Panics
    /// When it stays a standby.
    pub fn promote(&self) {
        assert_eq!(self.administrator("postgres").value("SELECT pg_promote(true, 60)"), "t");
    }

    /// Connects as the administrator.
    ///
    /// # Panics
    /// When the server does not run.
    pub fn administrator(&self, database: &str) -> RawConnection {
        RawConnection::postgres(&self.url("postgres", database)).expect("the server runs")
    }

    /// Creates an empty database that [`APP_ROLE`] owns; returns its name.
    ///
    /// # Panics
    /// When the server does not run.
    pub fn new_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", id(), NEXT.fetch_add(1, Ordering::Relaxed));
        self.run_when_unused(&format!("CREATE DATABASE {name} OWNER {APP_ROLE}"));
        name
    }

    /// Drops a database, its connections and the role of its callers.
    pub fn drop_database(&self, name: &str) {
        let callers = format!("SELECT 'townsquare_caller_' || oid FROM pg_database WHERE datname = '{name}'");
        let callers = self.administrator("postgres").rows(&callers);
        self.run_when_unused(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        for callers in callers.iter().flatten().flatten() {
            self.administrator("postgres").run(&format!("DROP ROLE IF EXISTS {callers}"));
        }
    }

    /// Returns the server's log.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.sockets.join("log")).expect("a log")).into_owned()
    }

    /// Runs a statement that fails while another connection uses its database: the server waits for five seconds only.
    fn run_when_unused(&self, sql: &str) {
        let administrator = self.administrator("postgres");
        wait_until(sql, || match administrator.try_rows(sql) {
            Ok(_) => true,
            Err(error) if error.contains("is being accessed by other users") => false,
            Err(error) => panic!("{sql}: {error}"),
        });
    }
}

/// Returns the name of the role of the callers of a connection's database.
pub fn callers_role(raw: &RawConnection) -> String {
    raw.value("SELECT 'townsquare_caller_' || oid FROM pg_database WHERE datname = current_database()")
}

/// Inserts a session of the user and returns the hash of its access token. `service` is a connection of the service.
pub fn insert_session(service: &RawConnection, user: Uuid) -> String {
    let hash = format!("session of {user}");
    service.run(&format!(
        "INSERT INTO townsquare.sessions
             (access_hash, id, user_id, refresh_hash, created_at, access_expires_at, refresh_expires_at)
         VALUES ('{hash}', gen_random_uuid(), '{user}', '{hash}', now(), 'infinity', 'infinity')
         ON CONFLICT DO NOTHING"
    ));
    hash
}

/// Makes a command that runs a program of PostgreSQL.
///
/// # Panics
/// When PostgreSQL is not installed.
pub fn program(name: &str) -> Command {
    Command::new(binaries().expect("PostgreSQL is installed").join(name))
}

fn binaries_or_skip() -> Option<PathBuf> {
    let found = binaries();
    if found.is_none() {
        skip(MISSING);
    }
    found
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

/// Starts a server. `more` returns further settings, and may write files to the server's folder.
fn start(binaries: &Path, settings: &[&str], more: impl FnOnce(&TempDir) -> Vec<String>) -> Server {
    let folder = server_folder(settings.contains(&VOLATILE));
    let initdb = command_line(binaries, "initdb");
    run(Command::new(&initdb[0])
        .args(&initdb[1..])
        .arg("-D")
        .arg(folder.path().join("data"))
        .args(["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C"])
        .current_dir("/"));
    let more = more(&folder);
    let server = launch(binaries, settings, &more, folder);
    let administrator = server.administrator("postgres");
    administrator.run(&format!("CREATE ROLE {APP_ROLE} LOGIN CREATEROLE"));
    administrator.run(&format!("CREATE ROLE {OWNER_ROLE} LOGIN"));
    server
}

/// Creates the folder of a server, in memory if the server is volatile and there is room: each new database is 300 files, and a
/// file system on disk takes longer to make them than the server.
fn server_folder(volatile: bool) -> TempDir {
    static IN_MEMORY: OnceLock<bool> = OnceLock::new();
    let in_memory = volatile && *IN_MEMORY.get_or_init(|| free_memory().is_some_and(|free| free >= MEMORY));
    let folder = if in_memory { temp_dir_in(Path::new(SHARED_MEMORY)) } else { temp_dir() };
    if is_root() {
        run(Command::new("chown").arg("postgres").arg(folder.path()));
    }
    folder
}

/// A file system in memory, on Linux.
const SHARED_MEMORY: &str = "/dev/shm";

/// Bytes that files in memory may take: of the file system, and of the machine.
fn free_memory() -> Option<u64> {
    let free = Command::new("df").args(["--output=avail", "--block-size=1", SHARED_MEMORY]).output().ok()?;
    let free = String::from_utf8(free.stdout).ok()?.lines().nth(1)?.trim().parse::<u64>().ok()?;
    let machine = fs::read_to_string("/proc/meminfo").ok()?;
    let machine = machine.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.strip_suffix("kB"))?;
    Some(free.min(machine.trim().parse::<u64>().ok()? << 10))
}

/// The command line of a program of PostgreSQL, which refuses to run as root.
fn command_line(binaries: &Path, program: &str) -> Vec<String> {
    let user: &[&str] = if is_root() { &["runuser", "-u", "postgres", "--"] } else { &[] };
    let mut words: Vec<String> = user.iter().map(|word| (*word).to_owned()).collect();
    words.push(binaries.join(program).display().to_string());
    words
}

/// Runs a server on the data in this folder. Takes another port if the server ends at once: another process may have bound it.
fn launch(binaries: &Path, settings: &[&str], more: &[String], folder: TempDir) -> Server {
    let ended = folder.path().join("ended");
    for _ in 0..STARTS {
        let (port, sockets) = (free_port(), folder.path().to_owned());
        let supervisor = supervise(binaries, settings, more, folder.path(), port);
        let mut server = Server { port, sockets, supervisor: Some(supervisor), folder: None };
        // Over the socket in the folder of this server: the port may be that of another one.
        let url = server.socket_url("postgres", "postgres");
        let mut is_started = false;
        wait_until("PostgreSQL accepts connections or ends", || {
            is_started = RawConnection::postgres(&url).is_ok();
            is_started || ended.exists()
        });
        if is_started {
            server.folder = Some(folder);
            return server;
        }
        // A supervisor whose input ends would remove the folder.
        let mut supervisor = server.supervisor.take().expect("it was started");
        supervisor.kill().and_then(|()| supervisor.wait()).expect("the supervisor is a child of this process");
        fs::remove_file(&ended).expect("the file is there");
    }
    let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    panic!("PostgreSQL does not start: {log}");
}

/// Starts the supervisor of a server.
fn supervise(binaries: &Path, settings: &[&str], more: &[String], folder: &Path, port: u16) -> Child {
    let mut supervisor = Command::new("sh");
    supervisor
        .args(["-c", SUPERVISOR, "supervisor"])
        .arg(folder)
        .args(command_line(binaries, "postgres"))
        .arg("-D")
        .arg(folder.join("data"));
    supervisor.args(["-p", &port.to_string(), "-k"]).arg(folder);
    for setting in ["listen_addresses=127.0.0.1"].iter().chain(settings) {
        supervisor.args(["-c", setting]);
    }
    for setting in more {
        supervisor.arg("-c").arg(setting);
    }
    // A process group of its own: an interrupt at the terminal ends this process, which ends the supervisor.
    supervisor.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    supervisor.spawn().expect("sh starts")
}

/// Whether this process runs as root; false without `/proc`.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
