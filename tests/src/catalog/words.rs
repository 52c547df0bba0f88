//! Invented words: names that look like names without being anybody's.

use crate::random::Random;

const OPENINGS: [&str; 40] = [
    "b", "br", "c", "ch", "cl", "d", "dr", "f", "fl", "g", "gl", "gr", "h", "j", "k", "kr", "l", "m", "n", "p", "pl",
    "pr", "qu", "r", "s", "sh", "sk", "sl", "sn", "st", "t", "th", "tr", "tw", "v", "w", "y", "z", "zh", "",
];
const VOWELS: [&str; 14] = ["a", "e", "i", "o", "u", "ai", "ea", "ee", "io", "oo", "ou", "ua", "y", "ei"];
const CLOSINGS: [&str; 20] =
    ["", "", "", "b", "ck", "d", "ft", "g", "l", "ld", "m", "n", "nd", "ng", "p", "r", "rk", "s", "t", "x"];
const ACCENTED: [(char, char); 6] = [('a', 'á'), ('e', 'é'), ('i', 'ï'), ('o', 'ö'), ('u', 'ü'), ('n', 'ñ')];

const FIRST: [&str; 96] = [
    "Amber", "Apple", "Arcade", "Autumn", "Azure", "Bamboo", "Beacon", "Birch", "Blaze", "Block", "Bloom", "Breeze",
    "Bright", "Cactus", "Candle", "Canyon", "Cedar", "Chain", "Cherry", "Cloud", "Cobalt", "Comet", "Copper", "Coral",
    "Cosmic", "Crystal", "Daily", "Dawn", "Desert", "Digital", "Dragon", "Dream", "Dusk", "Ember", "Falcon", "Fern",
    "Frost", "Galaxy", "Garden", "Ghost", "Giant", "Ginger", "Golden", "Granite", "Happy", "Harbor", "Hazel", "Hidden",
    "Honey", "Indigo", "Island", "Ivory", "Jade", "Jungle", "Kitten", "Lantern", "Lemon", "Little", "Lucky", "Lunar",
    "Maple", "Marble", "Meadow", "Mellow", "Midnight", "Mint", "Misty", "Mosaic", "Nebula", "Neon", "Ocean", "Olive",
    "Onyx", "Orbit", "Paper", "Pearl", "Pepper", "Pixel", "Plum", "Polar", "Quartz", "Quiet", "Rapid", "River",
    "Rocket", "Ruby", "Sable", "Silver", "Solar", "Spice", "Storm", "Sunny", "Tiny", "Velvet", "Violet", "Willow",
];
const SECOND: [&str; 64] = [
    "Academy", "Agent", "Almanac", "Arena", "Atlas", "Auction", "Bakery", "Bazaar", "Board", "Bridge", "Casino",
    "Chess", "Circle", "Clicker", "Club", "Coach", "Compass", "Craft", "Cup", "Deck", "Diary", "Dojo", "Exchange",
    "Factory", "Farm", "Feed", "Festival", "Forge", "Gallery", "Guild", "Hunt", "Invaders", "Journal", "Kitchen",
    "Lab", "League", "Library", "Lottery", "Market", "Match", "Museum", "Notes", "Oracle", "Parade", "Party",
    "Planner", "Poker", "Puzzle", "Quest", "Quiz", "Racer", "Radar", "Radio", "Rumble", "Runner", "Safari", "Scanner",
    "Stadium", "Studio", "Swap", "Tracker", "Trivia", "Vault", "Wallet",
];
const TAGS: [&str; 40] = [
    "airdrop",
    "analytics",
    "arcade",
    "art",
    "attention",
    "bets",
    "cards",
    "cats",
    "chat",
    "coins",
    "collect",
    "daily",
    "defi",
    "dex",
    "earn",
    "events",
    "fitness",
    "friends",
    "fun",
    "game",
    "identity",
    "leaderboard",
    "learn",
    "loyalty",
    "markets",
    "memes",
    "mint",
    "music",
    "news",
    "onchain",
    "photos",
    "poll",
    "predict",
    "puzzle",
    "quiz",
    "rewards",
    "score",
    "streak",
    "tips",
    "trade",
];
const VERBS: [&str; 24] = [
    "Build", "Check", "Claim", "Collect", "Compare", "Create", "Discover", "Earn", "Explore", "Find", "Follow", "Grow",
    "Join", "Learn", "Measure", "Mint", "Plan", "Play", "Predict", "Share", "Solve", "Track", "Trade", "Vote",
];
const OBJECTS: [&str; 32] = [
    "a habit that lasts",
    "badges with friends",
    "casts worth reading",
    "coins every morning",
    "daily puzzles",
    "drops before they are gone",
    "everything onchain",
    "frames of your town",
    "games in the feed",
    "gas fees",
    "gifts for followers",
    "how far you ran",
    "ideas with your channel",
    "markets on anything",
    "memes of the week",
    "new music",
    "old maps",
    "on what happens next",
    "pixels with strangers",
    "polls that count",
    "prizes each day",
    "quotes",
    "recipes",
    "scores against friends",
    "small loans",
    "songs by rumour",
    "stories",
    "streaks of kindness",
    "the best creators",
    "tickets",
    "tokens without fear",
    "your sleep",
];

/// A word that no dictionary has: two or three syllables.
pub(super) fn invented(random: &mut Random) -> String {
    let mut word = String::new();
    for _ in 0..2 + random.below(2) {
        word.push_str(random.pick(&OPENINGS));
        word.push_str(random.pick(&VOWELS));
    }
    word.push_str(random.pick(&CLOSINGS));
    word
}

pub(super) fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn accented(word: &str, random: &mut Random) -> String {
    let (plain, accent) = random.pick(&ACCENTED);
    word.replacen(plain, &accent.to_string(), 1)
}

/// A display name: mostly invented, partly of common words, as real ones are.
pub(super) fn name(random: &mut Random) -> String {
    let own = capitalised(&invented(random));
    match random.below(100) {
        0..30 => own,
        30..52 => format!("{own} {}", random.pick(&SECOND)),
        52..57 => format!("{own}{}", random.pick(&SECOND)),
        57..61 => own.to_uppercase(),
        61..65 => format!("{}.xyz", own.to_lowercase()),
        65..68 => accented(&own, random),
        68..70 => format!("{own} {}", 1 + random.below(99)),
        70..73 => format!("{own} 🎲"),
        73..77 => format!("The {own} {}", random.pick(&SECOND)),
        77..82 => format!("{} {own}", random.pick(&FIRST)),
        82..94 => format!("{} {} {}", random.pick(&FIRST), random.pick(&SECOND), capitalised(&invented(random))),
        _ => format!("{} {}", random.pick(&FIRST), random.pick(&SECOND)),
    }
}

pub(super) fn handle(random: &mut Random) -> String {
    let mut handle = invented(random);
    if random.percent(30) {
        handle.push_str(&random.below(1000).to_string());
    }
    handle
}

/// The part of a name that a host may have.
pub(super) fn slug(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

pub(super) fn tags(random: &mut Random) -> Vec<String> {
    let count = if random.percent(40) { 0 } else { 1 + random.below(5) };
    let mut tags: Vec<String> = Vec::new();
    for _ in 0..count {
        let tag = random.pick(&TAGS).to_owned();
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

pub(super) fn phrase(random: &mut Random) -> String {
    format!("{} {}", random.pick(&VERBS), random.pick(&OBJECTS))
}

pub(super) fn sentence(random: &mut Random) -> String {
    let mut sentence = format!("{}.", phrase(random));
    for _ in 0..random.below(3) {
        sentence.push(' ');
        sentence.push_str(&phrase(random));
        sentence.push('.');
    }
    sentence
}
