//! The plans of the statements that a call runs, which `auto_explain` writes to the server's log, and the pages that they read.

use std::{fs, io::Write};

use townsquare_tests::{postgres::Server, raw_sql::RawConnection};

/// Rows that a statement may read and leave out, or visit, before it is a finding.
const MANY: f64 = 3_000.0;

/// Reads the plans of statements.
pub(crate) struct Plans<'a> {
    server: &'a Server,
    administrator: RawConnection,
    output: Option<fs::File>,
}

/// The settings of a server for `Plans`.
pub(crate) const SETTINGS: [&str; 6] = [
    "shared_preload_libraries=auto_explain,pg_stat_statements",
    "pg_stat_statements.track=all",
    "auto_explain.log_nested_statements=on",
    "auto_explain.log_analyze=on",
    "auto_explain.log_timing=off",
    "shared_buffers=1GB",
];

impl Plans<'_> {
    /// Every plan is appended to the file `output`.
    pub(crate) fn new<'a>(server: &'a Server, output: Option<&str>) -> Plans<'a> {
        let administrator = server.administrator("postgres");
        administrator.run("CREATE EXTENSION pg_stat_statements");
        let output = output.map(|path| fs::File::create(path).expect("a file that can be written"));
        Plans { server, administrator, output }
    }

    fn explain(&self, is_on: bool) {
        let least = if is_on { 0 } else { -1 };
        self.administrator.run(&format!("ALTER SYSTEM SET auto_explain.log_min_duration = {least}"));
        self.administrator.run("SELECT pg_reload_conf()");
        // The other processes take the setting with their next statement, once they have the signal.
        std::thread::sleep(std::time::Duration::from_millis(100));
    }

    /// Runs `call` and returns what its statements do that may grow with a table.
    pub(crate) fn of(&mut self, name: &str, call: impl FnOnce()) -> Vec<String> {
        self.explain(true);
        let before = self.server.log().len();
        call();
        self.explain(false);
        let log = self.server.log().split_off(before);
        if let Some(output) = &mut self.output {
            writeln!(output, "=== {name}\n{log}").expect("the file can be written");
        }
        findings(&log)
    }

    /// Forgets the statements that ran.
    pub(crate) fn forget(&self) {
        self.administrator.run("SELECT pg_stat_statements_reset()");
    }

    /// Returns the pages of tables and indexes that the statements of a database have read since, from memory or disk.
    pub(crate) fn pages(&self, database: &str) -> f64 {
        let sql = format!(
            "SELECT COALESCE(sum(shared_blks_hit + shared_blks_read), 0)::text FROM pg_stat_statements
             WHERE toplevel AND dbid = (SELECT oid FROM pg_database WHERE datname = '{database}')"
        );
        self.administrator.value(&sql).parse().expect("a number")
    }
}

/// Finds scans of whole tables, and nodes that visit many rows, in plans as text.
fn findings(log: &str) -> Vec<String> {
    let (mut query, mut node, mut found) = (String::new(), String::new(), Vec::new());
    for line in log.lines() {
        if let Some((_, text)) = line.split_once("Query Text: ") {
            query = text.split_whitespace().take(14).collect::<Vec<_>>().join(" ");
        }
        let rows = |prefix: &str| -> Option<f64> {
            let text = line.split_once(prefix)?.1;
            text.split([' ', ')']).next()?.parse().ok()
        };
        if line.contains("(actual rows=") {
            line.trim().trim_start_matches("-> ").split("  (").next().unwrap_or_default().clone_into(&mut node);
            let visited = rows("actual rows=").unwrap_or(0.0) * rows("loops=").unwrap_or(1.0);
            if visited > MANY {
                found.push(format!("{visited:.0} rows by {node} in: {query}"));
            }
        }
        if let Some(removed) = rows("Rows Removed by Filter: ").filter(|removed| *removed > MANY) {
            found.push(format!("{removed:.0} rows removed by {node} in: {query}"));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
