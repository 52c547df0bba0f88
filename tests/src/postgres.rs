//! A temporary PostgreSQL server for this process, on a free loopback port and a Unix socket.
//!
//! Invariant: the server stops when this process ends, however it ends: a shell reads a pipe that only this process
//! holds, then stops the server and removes its folder. The child processes of a test use their parent's server.

use std::{
    env, fs,
    net::TcpListener,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio, id},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use tempfile::TempDir;

use crate::{raw_sql::RawConnection, skip::skip, temp_dir, wait::wait_until};

/// The environment variable that passes the server to child processes, as `port:folder of the socket`.
pub const VARIABLE: &str = "TOWNSQUARE_TEST_POSTGRES";

/// The role that owns the test databases; it may also `SET ROLE` to the library's restricted role.
pub const APP_ROLE: &str = "app";

/// A role that may own a database but may not `SET ROLE`.
pub const OWNER_ROLE: &str = "owner_only";

/// Runs the server and stops it when standard input ends.
const SUPERVISOR: &str = r#"folder=$1; shift
"$@" >"$folder/log" 2>&1 &
cat >/dev/null
kill -QUIT "$(head -n 1 "$folder/data/postmaster.pid")" 2>/dev/null
wait
rm -rf "$folder""#;

const MISSING: &str = "PostgreSQL is not installed (no initdb in `pg_config --bindir` or /usr/lib/postgresql/*/bin)";

/// Settings of the tests' server: it must survive signals, not power failures.
const TEST_SETTINGS: &[&str] = &["wal_level=logical", "max_connections=500", "fsync=off"];

/// A running server.
pub struct Server {
    port: u16,
    sockets: PathBuf,
    /// Its standard input is a pipe from this process. The system closes the pipe when this process ends.
    _supervisor: Option<Child>,
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
            return Some(Server { port, sockets: sockets.into(), _supervisor: None, folder: None });
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
        Some(start(&binaries_or_skip()?, &[], |_| Vec::new()))
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
        let folder = self.folder.as_ref().expect("a server of this process").path();
        let data = folder.join("data");
        let user: &[&str] = if is_root() { &["runuser", "-u", "postgres", "--"] } else { &[] };
        let mut words: Vec<String> = user.iter().map(|word| (*word).to_owned()).collect();
        words.push(program("pg_ctl").get_program().to_string_lossy().into_owned());
        let mut restart = Command::new(&words[0]);
        restart.args(&words[1..]).args(["restart", "-w", "-m", "fast", "-D"]).arg(&data).arg("-l").arg(folder.join("log.restarted"));
        // The server keeps the streams that it inherits.
        let status = restart.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.expect("pg_ctl starts").success(), "the server restarts");
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

    /// Drops a database and its connections.
    pub fn drop_database(&self, name: &str) {
        self.run_when_unused(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
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
    let folder = temp_dir();
    let data = folder.path().join("data");
    // PostgreSQL refuses to run as root.
    let user: &[&str] = if is_root() { &["runuser", "-u", "postgres", "--"] } else { &[] };
    if is_root() {
        run(Command::new("chown").arg("postgres").arg(folder.path()));
    }
    let command_line = |program: &str| {
        let mut words: Vec<String> = user.iter().map(|word| (*word).to_owned()).collect();
        words.push(binaries.join(program).display().to_string());
        words
    };
    let initdb = command_line("initdb");
    run(Command::new(&initdb[0])
        .args(&initdb[1..])
        .arg("-D")
        .arg(&data)
        .args(["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C"])
        .current_dir("/"));
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let mut supervisor = Command::new("sh");
    supervisor
        .args(["-c", SUPERVISOR, "supervisor"])
        .arg(folder.path())
        .args(command_line("postgres"))
        .arg("-D")
        .arg(&data);
    supervisor.args(["-p", &port.to_string(), "-k"]).arg(folder.path());
    for setting in ["listen_addresses=127.0.0.1"].iter().chain(settings) {
        supervisor.args(["-c", setting]);
    }
    for setting in more(&folder) {
        supervisor.arg("-c").arg(setting);
    }
    // A process group of its own: an interrupt at the terminal ends this process, which ends the supervisor.
    supervisor.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let supervisor = supervisor.spawn().expect("sh starts");
    let sockets = folder.path().to_owned();
    let server = Server { port, sockets, _supervisor: Some(supervisor), folder: Some(folder) };
    let url = server.url("postgres", "postgres");
    wait_until("PostgreSQL accepts connections", || RawConnection::postgres(&url).is_ok());
    let administrator = server.administrator("postgres");
    administrator.run(&format!("CREATE ROLE {APP_ROLE} LOGIN"));
    administrator.run(&format!("CREATE ROLE {OWNER_ROLE} LOGIN"));
    administrator.run("CREATE ROLE townsquare_caller NOLOGIN");
    administrator.run(&format!("GRANT townsquare_caller TO {APP_ROLE}"));
    server
}

/// Whether this process runs as root; false without `/proc`.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
