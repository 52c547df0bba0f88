//! The closed word lists of the catalog: categories, networks, and the CAIP-2 ids of those networks (UPSTREAM 1).

/// The categories that the upstream knows.
pub const CATEGORIES: [&str; 13] = [
    "games",
    "social",
    "finance",
    "utility",
    "productivity",
    "health-fitness",
    "news-media",
    "music",
    "shopping",
    "education",
    "developer-tools",
    "entertainment",
    "art-creativity",
];

/// The networks: name, CAIP-2 id where it has one here, and whether the upstream can be asked for it.
const CHAINS: [(&str, &str, bool); 17] = [
    ("ethereum", "eip155:1", true),
    ("base", "eip155:8453", true),
    ("arbitrum", "eip155:42161", true),
    ("arbitrum-sepolia", "eip155:421614", true),
    ("base-sepolia", "eip155:84532", true),
    ("degen", "eip155:666666666", true),
    ("gnosis", "eip155:100", true),
    ("optimism", "eip155:10", true),
    ("optimism-sepolia", "eip155:11155420", true),
    ("polygon", "eip155:137", true),
    ("ethereum-sepolia", "eip155:11155111", true),
    ("zora", "eip155:7777777", true),
    ("unichain", "eip155:130", true),
    ("monad-testnet", "eip155:10143", true),
    ("celo", "eip155:42220", true),
    ("solana", "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", true),
    // Seen in required_chains; the upstream's parameter does not take it.
    ("hyperevm", "eip155:999", false),
];

/// The list's spelling of a category that differs from it by case only, else the word as it is.
pub(crate) fn fold_category(category: &str) -> &str {
    CATEGORIES.into_iter().find(|known| known.eq_ignore_ascii_case(category)).unwrap_or(category)
}

/// The name of a CAIP-2 chain, or the id itself when it is not known.
pub(crate) fn network_of_chain(chain: &str) -> &str {
    CHAINS.iter().find(|(_, id, _)| *id == chain).map_or(chain, |(name, _, _)| name)
}

/// The list's spelling of a network, if it is in the list.
pub(crate) fn known_network(name: &str) -> Option<&'static str> {
    CHAINS.iter().map(|(known, _, _)| *known).find(|known| known.eq_ignore_ascii_case(name))
}

/// Whether the upstream's `networks` parameter takes this name.
pub(crate) fn upstream_knows(network: &str) -> bool {
    CHAINS.iter().any(|(name, _, asked)| *asked && *name == network)
}
