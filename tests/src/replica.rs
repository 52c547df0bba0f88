//! A PostgreSQL server and its streaming standby.

use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use townsquare::{Config, blocking::Client, metrics::Value};

use crate::{
    postgres::{APP_ROLE, Server},
    wait::wait_until,
};

/// A primary and its standby with one database, which a client has opened. Both stop when this is dropped.
pub struct Pair {
    /// The server that accepts writes.
    pub primary: Server,
    /// The server that follows it.
    pub standby: Server,
    /// The name of the database.
    pub name: String,
}

impl Pair {
    /// Returns `None` and reports a skip if PostgreSQL is not installed.
    ///
    /// # Panics
    /// When a server does not start.
    pub fn start() -> Option<Pair> {
        let primary = Server::durable()?;
        let name = primary.new_database();
        let config = Config::new().database_url(primary.url(APP_ROLE, &name)).catalog_api_key("");
        Client::open(config).expect("opens").close();
        let standby = primary.standby();
        Some(Pair { primary, standby, name })
    }

    /// The URL of the database on the primary.
    pub fn database(&self) -> String {
        self.primary.url(APP_ROLE, &self.name)
    }

    /// The URL of the database on the standby.
    pub fn replica(&self) -> String {
        self.standby.url(APP_ROLE, &self.name)
    }

    /// Waits until the standby has everything.
    ///
    /// # Panics
    /// When it does not get there.
    pub fn follow(&self) {
        let place = self.primary.administrator("postgres").value("SELECT pg_current_wal_flush_lsn()");
        let standby = self.standby.administrator("postgres");
        wait_until("the standby has followed", || {
            standby.value(&format!("SELECT pg_last_wal_replay_lsn() >= '{place}'")) == "t"
        });
    }

    /// Lets the standby receive the log, and apply nothing of it.
    ///
    /// # Panics
    /// When it does not pause.
    pub fn pause(&self) {
        let standby = self.standby.administrator("postgres");
        standby.run("SELECT pg_wal_replay_pause()");
        wait_until("replay pauses", || standby.value("SELECT pg_get_wal_replay_pause_state()") == "paused");
    }

    /// Ends [`Pair::pause`].
    pub fn resume(&self) {
        self.standby.administrator("postgres").run("SELECT pg_wal_replay_resume()");
    }
}

/// How many reads that the replica may answer `server` has answered, `replica` or `primary`. `None` for a client without a replica.
///
/// # Panics
/// When the client is closed.
pub fn replica_reads(client: &Client, server: &str) -> Option<f64> {
    match client.metrics().expect("open").get("townsquare_replica_reads_total", &[("answered_by", server)]) {
        Some(Value::Number(reads)) => Some(*reads),
        _ => None,
    }
}

/// A pair for a program in another language. To pause and resume replay, the program creates a space with the name `pause` or
/// `resume`, and waits until its name is `done`.
pub struct ProgramPair {
    pair: Arc<Pair>,
    /// The thread that pauses and resumes, and what ends it when it is dropped.
    thread: Option<(JoinHandle<()>, Sender<()>)>,
}

impl ProgramPair {
    /// Returns `None` and reports a skip if PostgreSQL is not installed.
    ///
    /// # Panics
    /// When a server does not start.
    pub fn start() -> Option<ProgramPair> {
        let pair = Arc::new(Pair::start()?);
        let (sender, end) = mpsc::channel();
        let served = Arc::clone(&pair);
        let thread = thread::spawn(move || {
            let primary = served.primary.administrator(&served.name);
            while end.recv_timeout(Duration::from_millis(10)) == Err(RecvTimeoutError::Timeout) {
                for command in primary.rows("SELECT name FROM spaces WHERE name IN ('pause', 'resume')").concat() {
                    if command.as_deref() == Some("pause") {
                        served.follow();
                        served.pause();
                    } else {
                        served.resume();
                    }
                    primary.run("UPDATE spaces SET name = 'done' WHERE name IN ('pause', 'resume')");
                }
            }
        });
        Some(ProgramPair { pair, thread: Some((thread, sender)) })
    }

    /// The URL of the database on the primary, and on the standby.
    pub fn urls(&self) -> (String, String) {
        (self.pair.database(), self.pair.replica())
    }
}

impl Drop for ProgramPair {
    fn drop(&mut self) {
        let (thread, end) = self.thread.take().expect("it is dropped once");
        drop(end);
        assert!(thread.join().is_ok() || thread::panicking(), "the thread that pauses and resumes failed");
    }
}
