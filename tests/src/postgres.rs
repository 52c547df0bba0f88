//! A PostgreSQL of our own for the tests of this process: started when the first test wants it, on a free loopback
//! port and a socket in a temporary folder.
//!
//! Invariant: it ends with this process, however that ends: a shell waits for the end of a pipe that only we hold,
//! then stops the server and removes its folder. Processes that a test starts share the server of the first.

use std::{
    env, fs,
    net::TcpListener,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::{outside::Outside, skip::skip, temp::TempFolder, wait::wait_until};

/// Carries the server to child processes, as `port:folder of the socket`.
pub const VARIABLE: &str = "TOWNSQUARE_TEST_POSTGRES";

/// The role that owns the databases of the tests; all else it may do is to become the library's restricted role.
pub const PLAIN_ROLE: &str = "townsfolk";

/// A role that may own a database and nothing else.
pub const LONE_ROLE: &str = "hermit";

/// What the server is run by, so that it dies with us: it reads a pipe until we are gone.
const KEEPER: &str = r#"folder=$1; shift
"$@" >"$folder/log" 2>&1 &
cat >/dev/null
kill -QUIT "$(head -n 1 "$folder/data/postmaster.pid")" 2>/dev/null
wait
rm -rf "$folder""#;

const MISSING: &str = "PostgreSQL is not installed (no initdb in `pg_config --bindir` or /usr/lib/postgresql/*/bin)";

/// A running server.
pub struct Server {
    port: u16,
    sockets: PathBuf,
    /// Its standard input is closed by the system when this process is gone.
    _keeper: Option<process::Child>,
    _folder: Option<TempFolder>,
}

/// The server of this process; `None`, and a word about it, where PostgreSQL is not installed.
///
/// # Panics
/// When it is installed and does not start.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        if let Ok(inherited) = env::var(VARIABLE) {
            let (port, sockets) = inherited.split_once(':').expect("port:folder");
            let port = port.parse().expect("a port");
            return Some(Server { port, sockets: sockets.into(), _keeper: None, _folder: None });
        }
        Some(start(&binaries()?, |_| Vec::new()))
    });
    if server.is_none() {
        skip(MISSING);
    }
    server.as_ref()
}

impl Server {
    /// Another one, which speaks TLS with this certificate and its key; `None`, said aloud, where PostgreSQL is not
    /// installed.
    ///
    /// # Panics
    /// When it does not start.
    pub fn with_tls(certificate: &Path, key: &Path) -> Option<Server> {
        let Some(binaries) = binaries() else {
            skip(MISSING);
            return None;
        };
        let server = start(&binaries, |folder| {
            // The server insists on a key that is its user's alone.
            let own = [("ssl_cert_file", certificate), ("ssl_key_file", key)].map(|(setting, file)| {
                let copy = folder.join(setting);
                must(Command::new("install").args(["-m", "600"]).arg(file).arg(&copy));
                if is_root() {
                    must(Command::new("chown").arg("postgres").arg(&copy));
                }
                format!("{setting}={}", copy.display())
            });
            own.into_iter().chain(["ssl=on".to_owned()]).collect()
        });
        Some(server)
    }

    /// The URL of a database for a role.
    pub fn url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{database}", self.port)
    }

    /// The same over the Unix socket.
    pub fn socket_url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@localhost/{database}?host={}&port={}", self.sockets.display(), self.port)
    }

    /// The port on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What [`VARIABLE`] holds for a child process.
    pub fn inheritance(&self) -> String {
        format!("{}:{}", self.port, self.sockets.display())
    }

    /// A connection of the administrator's.
    ///
    /// # Panics
    /// When the server has gone away.
    pub fn administrator(&self, database: &str) -> Outside {
        Outside::postgres(&self.url("postgres", database)).expect("the server runs")
    }

    /// A new, empty database of the plain role's; its name.
    ///
    /// # Panics
    /// When the server has gone away.
    pub fn new_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("town_{}_{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        self.administrator("postgres").run(&format!("CREATE DATABASE {name} OWNER {PLAIN_ROLE}"));
        name
    }

    /// Drops a database, whoever is connected.
    pub fn drop_database(&self, name: &str) {
        self.administrator("postgres").run(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    }
}

/// A program of PostgreSQL, as it has to be run here.
///
/// # Panics
/// When PostgreSQL is not installed.
pub fn program(name: &str) -> Command {
    Command::new(binaries().expect("PostgreSQL is installed").join(name))
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

/// `settings` are made in the server's folder, for the server alone.
fn start(binaries: &Path, settings: impl FnOnce(&TempFolder) -> Vec<String>) -> Server {
    let folder = TempFolder::new();
    let data = folder.join("data");
    // PostgreSQL refuses to run as root.
    let user: &[&str] = if is_root() { &["runuser", "-u", "postgres", "--"] } else { &[] };
    if is_root() {
        must(Command::new("chown").arg("postgres").arg(folder.path()));
    }
    let own = |program: &str| {
        let mut words: Vec<String> = user.iter().map(|word| (*word).to_owned()).collect();
        words.push(binaries.join(program).display().to_string());
        words
    };
    let initdb = own("initdb");
    must(
        Command::new(&initdb[0])
            .args(&initdb[1..])
            .arg("-D")
            .arg(&data)
            .args(["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C"])
            .current_dir("/"),
    );
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let mut keeper = Command::new("sh");
    keeper.args(["-c", KEEPER, "keeper"]).arg(folder.path()).args(own("postgres")).arg("-D").arg(&data);
    keeper.args(["-p", &port.to_string(), "-k"]).arg(folder.path());
    // What is tested dies by signals, not by power: the server need not flush.
    for setting in ["listen_addresses=127.0.0.1", "wal_level=logical", "max_connections=500", "fsync=off"] {
        keeper.args(["-c", setting]);
    }
    for setting in settings(&folder) {
        keeper.arg("-c").arg(setting);
    }
    // In a group of its own: an interrupt at the terminal ends us, and by that the keeper.
    keeper.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let keeper = keeper.spawn().expect("sh starts");
    let sockets = folder.path().to_owned();
    let server = Server { port, sockets, _keeper: Some(keeper), _folder: Some(folder) };
    let url = server.url("postgres", "postgres");
    wait_until("PostgreSQL accepts connections", || Outside::postgres(&url).is_ok());
    let administrator = server.administrator("postgres");
    administrator.run(&format!("CREATE ROLE {PLAIN_ROLE} LOGIN"));
    administrator.run(&format!("CREATE ROLE {LONE_ROLE} LOGIN"));
    administrator.run("CREATE ROLE townsquare_caller NOLOGIN");
    administrator.run(&format!("GRANT townsquare_caller TO {PLAIN_ROLE}"));
    server
}

/// Whether this process may do everything.
///
/// # Panics
/// Where there is no `/proc`.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
