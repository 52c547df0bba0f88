//! Stored password hashes: Argon2 as PHC strings (RFC 9106), and bcrypt hashes that another system made.
//!
//! Invariant: checking a password takes bounded time and memory for every hash, also for an imported one. No error shows a
//! hash.

use argon2::{
    Algorithm, Argon2, Block, Params, Version,
    password_hash::phc::{Output, ParamsString, PasswordHash, Salt},
};

use super::token::random;
use crate::error::{Error, ErrorKind, Result};

/// OWASP's parameters: 19 MiB, 2 passes, 1 lane, 32 bytes of output.
pub(super) const PARAMS: Params = Params::DEFAULT;

/// Bytes of the longest text that is parsed. The longest hash within the limits below is shorter.
const MAX_TEXT: usize = 256;

/// The largest memory of one Argon2 hash, in KiB: 256 MiB, as libsodium's `MODERATE`.
const MAX_MEMORY: u32 = 256 * 1024;

/// The most KiB that one Argon2 hash fills, over all passes: about a second.
const MAX_WORK: u64 = 1024 * 1024;

/// The most lanes of an Argon2 hash. They are computed one after another.
const MAX_LANES: u32 = 64;

/// bcrypt's costs. Each step doubles the time: 10 takes about 50 ms, 14 about a second.
const BCRYPT_COSTS: std::ops::RangeInclusive<u32> = 4..=14;

const MALFORMED: &str = "is neither a bcrypt hash ($2a$, $2b$, $2y$) nor an Argon2 hash in PHC format";

/// A hash that passwords can be checked against.
pub(super) enum StoredHash {
    Argon2(Argon2Hash),
    /// The hash as text, which is valid.
    Bcrypt(String),
}

/// An Argon2 hash within the limits.
pub(super) struct Argon2Hash {
    algorithm: Algorithm,
    version: Version,
    params: Params,
    salt: Salt,
    output: Output,
}

/// Whether the library can check passwords with a hash.
#[cfg(feature = "postgres")]
pub(crate) fn is_usable(text: &str) -> bool {
    StoredHash::parse(text).is_ok()
}

impl StoredHash {
    /// Reads a hash.
    ///
    /// # Errors
    /// Why it cannot be used, to follow the name of the argument.
    pub(super) fn parse(text: &str) -> Result<StoredHash, &'static str> {
        match text.len() <= MAX_TEXT {
            true if text.starts_with("$2") => parse_bcrypt(text),
            true => parse_argon2(text).map(StoredHash::Argon2),
            false => Err(MALFORMED),
        }
    }

    /// Whether a sign-in replaces the hash by one with today's parameters. Hashes with stronger parameters stay.
    pub(super) fn is_outdated(&self) -> bool {
        match self {
            StoredHash::Bcrypt(_) => true,
            StoredHash::Argon2(Argon2Hash { algorithm, version, params, output, .. }) => {
                (*algorithm, *version) != (Algorithm::Argon2id, Version::V0x13)
                    || params.m_cost() < PARAMS.m_cost()
                    || params.t_cost() < PARAMS.t_cost()
                    || output.len() < Params::DEFAULT_OUTPUT_LEN
            }
        }
    }

    /// The blocks of memory that [`matches`](StoredHash::matches) needs.
    pub(super) fn block_count(&self) -> usize {
        match self {
            StoredHash::Bcrypt(_) => 0,
            StoredHash::Argon2(hash) => hash.params.block_count(),
        }
    }

    /// The memory in KiB that a hash with today's number of passes needs to make up for a check of this one, which has weaker
    /// parameters. 0 for bcrypt, and for a hash that is as strong as today's.
    pub(super) fn missing_kib(&self) -> u32 {
        match self {
            StoredHash::Bcrypt(_) => 0,
            StoredHash::Argon2(Argon2Hash { params, .. }) => {
                let filled = params.m_cost().saturating_mul(params.t_cost());
                (PARAMS.m_cost() * PARAMS.t_cost()).saturating_sub(filled) / PARAMS.t_cost()
            }
        }
    }

    /// Checks a password. bcrypt looks at its first 72 bytes only.
    pub(super) fn matches(&self, password: &str, memory: &mut [Block]) -> Result<bool> {
        match self {
            // The crate compares in constant time, and so does `Output`.
            StoredHash::Bcrypt(hash) => bcrypt::verify(password, hash).map_err(check_failed),
            StoredHash::Argon2(hash) => Ok(hash.of(password, memory)? == hash.output),
        }
    }
}

impl Argon2Hash {
    /// The output for another password.
    fn of(&self, password: &str, memory: &mut [Block]) -> Result<Output> {
        let mut bytes = [0; Output::MAX_LENGTH];
        let bytes = &mut bytes[..self.output.len()];
        let argon2 = Argon2::new(self.algorithm, self.version, self.params.clone());
        argon2.hash_password_into_with_memory(password.as_bytes(), &self.salt, bytes, memory).map_err(check_failed)?;
        Output::new(bytes).map_err(check_failed)
    }
}

/// Hashes a password with today's parameters; returns a PHC string. Needs the blocks of [`PARAMS`].
pub(super) fn new_hash(password: &str, memory: &mut [Block]) -> Result<String> {
    let salt = Salt::new(&random::<16>()?).map_err(check_failed)?;
    let mut bytes = [0; Params::DEFAULT_OUTPUT_LEN];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, PARAMS);
    argon2.hash_password_into_with_memory(password.as_bytes(), &salt, &mut bytes, memory).map_err(check_failed)?;
    let hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(&PARAMS).map_err(check_failed)?,
        salt: Some(salt),
        hash: Some(Output::new(&bytes).map_err(check_failed)?),
    };
    Ok(hash.to_string())
}

/// Takes as long as a hash with today's number of passes and this memory in KiB. Needs the blocks of [`PARAMS`].
pub(super) fn spend_argon2(kib: u32, memory: &mut [Block]) -> Result<()> {
    // Less memory than this is not a hash.
    let kib = kib.clamp(Params::MIN_M_COST, PARAMS.m_cost());
    let params = Params::new(kib, PARAMS.t_cost(), PARAMS.p_cost(), None).map_err(check_failed)?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
    argon2.hash_password_into_with_memory(b"", &[0; 16], &mut output, memory).map_err(check_failed)
}

/// The highest cost that a refused sign-in spends for an account that does not exist: about a quarter of a second. An account
/// with a hash of a higher cost can be told from none by the time, but its hash does not slow down every refusal.
const MAX_SPENT_COST: u32 = 12;

/// Takes as long as a check of a password against a bcrypt hash of this cost, at most [`MAX_SPENT_COST`].
pub(super) fn spend_bcrypt(cost: u32) {
    bcrypt::bcrypt(spent_cost(cost), [0; 16], b"\0");
}

fn spent_cost(cost: u32) -> u32 {
    cost.clamp(*BCRYPT_COSTS.start(), MAX_SPENT_COST)
}

/// The error for a stored hash that cannot be used. It drops the cause, which may quote the hash.
pub(super) fn check_failed(_: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, "a password could not be checked")
}

/// `$2a$`, `$2b$` and `$2y$` name one algorithm. `$2x$` names the hashes of a PHP library that hashed characters outside
/// ASCII wrongly: right passwords with such characters would be refused.
fn parse_bcrypt(text: &str) -> Result<StoredHash, &'static str> {
    let parts: bcrypt::HashParts = text.parse().map_err(|_| MALFORMED)?;
    match text.as_bytes() {
        [b'$', b'2', b'a' | b'b' | b'y', b'$', b'0'..=b'9', b'0'..=b'9', b'$', ..] => {}
        [b'$', b'2', b'x', ..] => return Err("is a bcrypt hash of the faulty variant $2x$, which is not supported"),
        _ => return Err(MALFORMED),
    }
    match BCRYPT_COSTS.contains(&parts.get_cost()) {
        true => Ok(StoredHash::Bcrypt(text.to_owned())),
        false => Err("is a bcrypt hash of a cost other than 4 to 14"),
    }
}

fn parse_argon2(text: &str) -> Result<Argon2Hash, &'static str> {
    let hash = PasswordHash::new(text).map_err(|_| MALFORMED)?;
    let algorithm = Algorithm::try_from(hash.algorithm.as_str()).map_err(|_| MALFORMED)?;
    // The reference implementation omitted the version until it had a second one.
    let version = hash.version.map_or(Ok(Version::V0x10), Version::try_from).map_err(|_| MALFORMED)?;
    let has_own_parameters = ["m", "t", "p"].into_iter().all(|name| hash.params.get(name).is_some());
    // `keyid` and `data` belong to a secret or a context that the library does not have.
    if !has_own_parameters || hash.params.iter().count() != 3 {
        return Err("is an Argon2 hash with other parameters than m, t and p");
    }
    let params = Params::try_from(&hash).map_err(|_| MALFORMED)?;
    let work = u64::from(params.m_cost()) * u64::from(params.t_cost());
    if params.m_cost() > MAX_MEMORY || work > MAX_WORK || params.p_cost() > MAX_LANES {
        return Err("is an Argon2 hash that costs too much: the limits are m=262144, m*t=1048576 and p=64");
    }
    match (hash.salt, hash.hash) {
        (Some(salt), Some(output)) => Ok(Argon2Hash { algorithm, version, params, salt, output }),
        _ => Err(MALFORMED),
    }
}

#[cfg(test)]
mod tests;
