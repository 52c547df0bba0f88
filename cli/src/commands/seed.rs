//! `seed`: invented users, spaces and fidgets, for tests and demonstrations.

use clap::Args;
use serde_json::json;
use townsquare::{
    Uuid,
    spaces::{NewFidget, NewSpace},
};

use crate::{
    context::Context,
    failure::Failure,
    interrupt,
    progress::{Progress, Unit},
    settings::IfMissing,
};

/// The most users and the most spaces.
const MOST: u64 = 10_000_000;

/// The most spaces that are created in one call.
const CHUNK: u64 = 1_000;

const FIRST_WORDS: [&str; 12] = [
    "Quiet", "Amber", "Northern", "Paper", "Velvet", "Copper", "Misty", "Salty", "Hidden", "Golden", "Winter", "Little",
];
const SECOND_WORDS: [&str; 12] = [
    "Harbor", "Garden", "Library", "Market", "Orchard", "Tower", "Bakery", "Museum", "Station", "Meadow", "Studio",
    "Bridge",
];
const KINDS: [&str; 6] = ["text", "gallery", "links", "feed", "tides", "chess"];

/// Add invented users, spaces and fidgets. The same numbers make the same names.
///
/// Each user has an address at seed.example and a password that nobody knows. Every second space is public. JSON: `users`,
/// `spaces`, `fidgets`, the numbers that were added.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Number of users. Each takes as long as a password check.
    #[arg(long, default_value_t = 5, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(0..=MOST))]
    users: u64,
    /// Number of spaces. The users own them in turns.
    #[arg(long, default_value_t = 20, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(0..=MOST))]
    spaces: u64,
    /// Number of fidgets of each space.
    #[arg(long, default_value_t = 3, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(0..=1_000))]
    fidgets: u64,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    interrupt::defer();
    let Arguments { users, spaces, fidgets } = *arguments;
    context.with_client(IfMissing::Create, |client| {
        let progress = Progress::new(&context.output, "seed", Unit::Items);
        let all = users + spaces;
        let show = |done| match progress.show(done, all) {
            std::ops::ControlFlow::Continue(()) => Ok(()),
            std::ops::ControlFlow::Break(()) => Err(Failure::interrupted("What was added stays.")),
        };
        let run = Uuid::new_v4().simple().to_string();
        let mut owners = Vec::new();
        for number in 0..users {
            let email = format!("{}-{}@seed.example", name(number).to_lowercase().replace(' ', "-"), &run[..12]);
            owners.push(client.auth().sign_up(&format!("{number}-{email}"), &Uuid::new_v4().to_string())?.id);
            show(owners.len() as u64)?;
        }
        let mut added = 0;
        while added < spaces {
            let numbers = added..spaces.min(added + CHUNK);
            let rows: Vec<_> = numbers.clone().map(|number| space(number, &owners)).collect();
            for created in client.spaces().create_spaces(rows)? {
                if fidgets > 0 {
                    client.fidgets().create_fidgets(created.id, (0..fidgets).map(fidget).collect())?;
                }
                added += 1;
                show(users + added)?;
            }
        }
        drop(progress);
        if context.output.is_json {
            let numbers = json!({ "users": users, "spaces": spaces, "fidgets": spaces * fidgets });
            return context.output.json(&numbers);
        }
        let rows = [("users", users), ("spaces", spaces), ("fidgets", spaces * fidgets)];
        context.output.table(&["added", ""], &rows.map(|(name, count)| vec![name.to_owned(), count.to_string()]))
    })
}

/// Returns `words[number % len]`.
fn word<'w>(words: &[&'w str], number: u64) -> &'w str {
    let index = usize::try_from(number % words.len() as u64).unwrap_or_default();
    words[index]
}

fn name(number: u64) -> String {
    format!("{} {}", word(&FIRST_WORDS, number), word(&SECOND_WORDS, number / FIRST_WORDS.len() as u64 + number))
}

fn space(number: u64, owners: &[Uuid]) -> NewSpace {
    let space = NewSpace::named(name(number)).description(format!("Space {number} of the seed"));
    let space = if number.is_multiple_of(2) { space.public() } else { space };
    let owner = owners.get(usize::try_from(number).unwrap_or_default() % owners.len().max(1));
    owner.iter().fold(space, |space, owner| space.owned_by(**owner))
}

fn fidget(number: u64) -> NewFidget {
    let kind = word(&KINDS, number);
    let (column, row) = (number % 4 * 3, number / 4 * 3);
    NewFidget::of_type(kind)
        .config(json!({ "title": format!("{kind} {number}") }))
        .position(json!({ "x": column, "y": row, "w": 3, "h": 3 }))
}
