//! Backup and restore on SQLite: a copy while others write, a check of it, and the town as it was.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its results")]

// ANCHOR: program
use townsquare::{
    Config, Result,
    blocking::Client,
    check::{CheckDepth, Severity},
    spaces::NewSpace,
};

fn main() -> Result<()> {
    let client = Client::open(Config::new().data_dir("town"))?;
    let service = client.as_service();
    service.spaces().create_space(NewSpace::named("Harbor").public())?;
    client.backup("town-copy.db")?; // rows and files of one moment; writers go on
    service.spaces().create_space(NewSpace::named("Written after the backup").public())?;
    println!("in the town: {}", client.spaces().get_public_spaces(20, 0)?.len());
    client.close();

    // The folder must not have a database yet. Everything is restored, or nothing.
    Client::restore("town-copy.db", "restored")?;
    let client = Client::open(Config::new().data_dir("restored"))?;
    println!("in the copy: {}", client.spaces().get_public_spaces(20, 0)?.len());
    let findings = client.check(CheckDepth::Full)?;
    for finding in &findings {
        eprintln!("{} {} {} {}", finding.severity().as_str(), finding.code.as_str(), finding.message, finding.advice());
    }
    let errors = findings.iter().filter(|finding| finding.severity() == Severity::Error);
    println!("broken: {:?}", errors.map(|finding| finding.code.as_str()).collect::<Vec<_>>());
    client.close();
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<()> {
    main()
}
