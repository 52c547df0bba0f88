//! The rules of WCAG 2.2 AA, and axe-core's good practice, for a page in the browser.

use std::fs;

use serde_json::Value;

use crate::{browser::Browser, paths::workspace, skip::skip};

/// The script of axe-core.
pub struct Axe(String);

impl Axe {
    /// Reads the script that `.ci/run` fetches. Returns `None` and reports a skip if it is not there.
    pub fn load() -> Option<Axe> {
        let script = fs::read_to_string(workspace().join("target/axe-core/package/axe.min.js"));
        if script.is_err() {
            skip("the page by axe-core: there is no target/axe-core");
        }
        script.ok().map(Axe)
    }

    /// # Panics
    /// If the page breaks a rule. `name` is the name of the page.
    pub fn assert_accessible(&self, browser: &Browser, name: &str) {
        browser.eval(&self.0);
        let violations = browser.eval(
            "return axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then((result) =>
                result.violations.map((rule) => rule.id + ': ' + rule.nodes.map((node) => node.html + ' ' + node.failureSummary).join('\\n')))",
        );
        assert_eq!(violations, Value::Array(Vec::new()), "{name}: {violations:#}");
    }
}
