//! The known categories and networks of the catalog, with the CAIP-2 chain ids of the networks (UPSTREAM 1).

/// The categories of the upstream API. A catalog may contain others.
///
/// ```
/// assert!(townsquare::discovery::CATEGORIES.contains(&"games"));
/// ```
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

/// The known networks: name, CAIP-2 chain id, and whether the upstream's `networks` parameter accepts the name.
const NETWORKS: [(&str, &str, bool); 17] = [
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
    // Appears in required_chains, but the upstream's parameter does not accept it.
    ("hyperevm", "eip155:999", false),
];

/// The known spelling of a category that differs only in case; any other category unchanged.
pub(crate) fn canonical_category(category: &str) -> &str {
    CATEGORIES.into_iter().find(|known| known.eq_ignore_ascii_case(category)).unwrap_or(category)
}

/// The names of the known networks.
pub(crate) fn network_names() -> impl Iterator<Item = &'static str> {
    NETWORKS.iter().map(|(name, _, _)| *name)
}

/// The known spelling of a network, ignoring case; `None` for an unknown network.
pub(crate) fn canonical_network(name: &str) -> Option<&'static str> {
    NETWORKS.iter().map(|(known, _, _)| *known).find(|known| known.eq_ignore_ascii_case(name))
}

/// The network of a CAIP-2 chain id; the id itself if it is unknown.
pub(crate) fn network_of_chain(chain: &str) -> &str {
    NETWORKS.iter().find(|(_, id, _)| *id == chain).map_or(chain, |(name, _, _)| name)
}

/// Whether the upstream's `networks` parameter accepts this name.
pub(crate) fn is_upstream_network(network: &str) -> bool {
    NETWORKS.iter().any(|(name, _, is_accepted)| *is_accepted && *name == network)
}
