//! Options from environment variables, from one table for Rust, C and Python: a variable holds for every way to open a client,
//! and an option that the caller gives stands above it.

use std::collections::BTreeSet;

use townsquare::{Config, ErrorKind, blocking::Client, config::OPTIONS};
use townsquare_tests::{
    fixture::assert_kind,
    subprocess::{child, join_child, name_of, role},
    temp_dir,
};

/// Each option with a value that is refused and one that is accepted. `DIR` is a folder.
const TABLE: &str = include_str!("../../options.txt");

/// Name, refused value and accepted value of each option.
fn table() -> impl Iterator<Item = [&'static str; 3]> {
    TABLE.lines().map(|line| {
        let fields: Vec<_> = line.split('|').collect();
        fields.try_into().unwrap_or_else(|_| panic!("three fields: {line}"))
    })
}

#[test]
fn the_table_has_every_option() {
    let names: BTreeSet<_> = table().map(|[name, ..]| name).collect();
    assert_eq!(names, OPTIONS.iter().map(|(name, _)| *name).collect());
}

#[test]
fn each_variable_holds_until_the_caller_gives_the_option() {
    let test = name_of(&each_variable_holds_until_the_caller_gives_the_option);
    if let Some(option) = role() {
        return open_with_a_refused_variable(&option);
    }
    let start = |[name, refused, _]: &[&str; 3]| {
        let variable = format!("TOWNSQUARE_{}", name.to_ascii_uppercase());
        child(test, name, &[(&variable, refused)]).spawn().expect("starts")
    };
    for options in table().collect::<Vec<_>>().chunks(8) {
        let children: Vec<_> = options.iter().map(start).collect();
        children.into_iter().for_each(|child| drop(join_child(child)));
    }
}

#[test]
fn a_url_sets_each_option() {
    let folder = temp_dir();
    let folder = folder.path().to_str().expect("UTF-8");
    for [name, refused, accepted] in table() {
        let open = |value: &str| {
            let value = value.replace("DIR", folder);
            let query: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let url = match name {
                "data_dir" => format!("townsquare:{value}"),
                _ => format!("townsquare:{folder}/data?{name}={query}"),
            };
            Client::open(Config::from_url(&url)?)
        };
        let error = assert_kind(ErrorKind::Config, open(refused));
        assert!(error.message().contains(&format!("Option {name}")), "{error}");
        open(accepted).unwrap_or_else(|error| panic!("{name}: {error}")).close();
    }
}

/// The variable of the option has the value that is refused.
fn open_with_a_refused_variable(option: &str) {
    let [_, _, accepted] = table().find(|[name, ..]| *name == option).expect("an option");
    let folder = temp_dir();
    let config = || match option {
        "data_dir" => Config::new(),
        _ => Config::new().data_dir(folder.path().join("data")),
    };
    for refused in [Client::open(config()), Client::shared_with(config())] {
        let error = assert_kind(ErrorKind::Config, refused);
        assert!(error.message().contains(&format!("Option {option}")), "{error}");
    }
    let accepted = accepted.replace("DIR", folder.path().to_str().expect("UTF-8"));
    let config = config().set(option, &accepted).expect("valid");
    Client::open(config).expect("the caller's value holds").close();
}
