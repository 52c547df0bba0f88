//! A pgbouncer with its stock settings before the tests' PostgreSQL server, on a free loopback port.
//!
//! Invariant: it stops when it is dropped or when this process ends, like the server itself.

use std::{
    fs,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{
    ports::{STARTS, free_port},
    postgres::{APP_ROLE, OWNER_ROLE, Server, is_root},
    raw_sql::RawConnection,
    skip::skip,
    temp_dir,
    wait::wait_until,
};

/// Runs pgbouncer and stops it when standard input ends. The file `ended` appears when pgbouncer ends. It keeps nothing, and its
/// older versions ignore SIGQUIT here. It refuses to run as root.
const SUPERVISOR: &str = r#"folder=$1; shift
{ "$@" >/dev/null 2>&1; : >"$folder/ended"; } &
cat >/dev/null
kill -KILL "$(cat "$folder/pid")" 2>/dev/null
wait
rm -rf "$folder""#;

/// How pgbouncer shares its server connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A client keeps its server connection until it leaves.
    Session,
    /// A client keeps its server connection for one transaction.
    Transaction,
}

/// A running pgbouncer.
pub struct PgBouncer {
    port: u16,
    supervisor: Child,
    _folder: TempDir,
}

impl PgBouncer {
    /// Starts pgbouncer with this many server connections for each database and role. Returns `None` and reports a skip if
    /// it is not installed.
    ///
    /// # Panics
    /// When it is installed and does not start.
    pub fn before(server: &Server, mode: Mode, pool_size: u32) -> Option<PgBouncer> {
        let Some(program) = installed() else {
            skip("pgbouncer is not installed");
            return None;
        };
        // It ends at once if another process has bound the port.
        let started = (0..STARTS).find_map(|_| PgBouncer::on_port(program, free_port(), server, mode, pool_size));
        Some(started.expect("pgbouncer starts"))
    }

    /// Starts another pgbouncer in transaction mode on the port of this one: the kernel gives each connection to one of them.
    ///
    /// # Panics
    /// When it does not start.
    pub fn beside(other: &PgBouncer, server: &Server, pool_size: u32) -> PgBouncer {
        let program = installed().expect("the first one is installed");
        PgBouncer::on_port(program, other.port, server, Mode::Transaction, pool_size).expect("pgbouncer starts")
    }

    /// Starts pgbouncer on a port. Returns `None` if it ends instead of accepting connections.
    fn on_port(program: &str, port: u16, server: &Server, mode: Mode, pool_size: u32) -> Option<PgBouncer> {
        let folder = temp_dir();
        let (path, mode) = (folder.path().display(), if mode == Mode::Session { "session" } else { "transaction" });
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nso_reuseport = 1\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {path}/users\npidfile = {path}/pid\nlogfile = {path}/log\n\
             pool_mode = {mode}\ndefault_pool_size = {pool_size}\nmax_client_conn = 500\n",
            server.port()
        );
        let users = [APP_ROLE, OWNER_ROLE, "postgres"].map(|role| format!("\"{role}\" \"\"\n")).concat();
        fs::write(folder.path().join("settings"), settings).expect("a file");
        fs::write(folder.path().join("users"), users).expect("a file");
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISOR, "supervisor"]).arg(folder.path());
        if is_root() {
            let owned = Command::new("chown").args(["-R", "postgres"]).arg(folder.path()).status();
            assert!(owned.expect("chown starts").success());
            command.args(["runuser", "-u", "postgres", "--"]);
        }
        command.arg(program).arg(folder.path().join("settings"));
        // A process group of its own: an interrupt at the terminal ends this process, which ends the supervisor.
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let supervisor = command.spawn().expect("sh starts");
        let ended = folder.path().join("ended");
        let pooler = PgBouncer { port, supervisor, _folder: folder };
        let url = pooler.url("postgres", "postgres");
        wait_until("pgbouncer accepts connections or ends", || RawConnection::postgres(&url).is_ok() || ended.exists());
        (!ended.exists()).then_some(pooler)
    }

    /// Returns the URL of a database for a role, through pgbouncer.
    pub fn url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{database}", self.port)
    }
}

/// The path of the installed program.
fn installed() -> Option<&'static str> {
    let paths = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];
    paths.into_iter().find(|path| fs::exists(path).unwrap_or(false))
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        // Until then the supervisor needs the folder, which has the number of pgbouncer's process.
        let _ = self.supervisor.wait();
    }
}
