//! How findings of a check are written.

use serde_json::json;
use townsquare::check::Finding;

use crate::{context::Context, exit_code, failure::Failure, output::note};

/// Writes the result of a command that checks. Returns its exit code.
pub(crate) fn show(findings: &[Finding], bundle: Option<&str>, context: &Context) -> Result<u8, Failure> {
    if context.output.is_json {
        let mut value = json!({ "findings": findings });
        if let Some(bundle) = bundle {
            value["bundle"] = bundle.into();
        }
        context.output.json(&value)?;
    } else {
        write(findings, context)?;
        if findings.is_empty() {
            note("Nothing is wrong.");
        }
        if let Some(bundle) = bundle {
            note(&format!("The bundle is {bundle}."));
        }
    }
    Ok(if findings.is_empty() { exit_code::SUCCESS } else { exit_code::FINDINGS })
}

/// Writes findings for people.
pub(crate) fn write(findings: &[Finding], context: &Context) -> Result<(), Failure> {
    for finding in findings {
        context.output.line(&finding.to_string())?;
        context.output.line(&format!("    {}", finding.advice()))?;
    }
    Ok(())
}
