//! Identity claims. Only the claim itself links the key, whatever is changed in its text.

use serde_json::Value;
use townsquare::{ErrorKind, auth::identity_claim, blocking::Client};

use super::{
    Target,
    edits::edited,
    fixture::{self, KEY},
};

const AUDIENCE: &str = "town.example";

/// See the module.
pub struct Claim {
    user: Client,
    /// The claim of the user, and claims for another audience, of another user and of another time.
    claims: [Value; 5],
}

impl Target for Claim {
    const NAME: &'static str = "claim";

    fn new() -> Claim {
        let client = fixture::open(fixture::in_memory().identity_audience(AUDIENCE));
        let (id, user) = fixture::user(&client, "ann");
        let (other, _) = fixture::user(&client, "bob");
        let now = fixture::now();
        let moved = |seconds| now + jiff::SignedDuration::from_secs(seconds);
        let claims = [
            (id, AUDIENCE, now),
            (id, "village.example", now),
            (other, AUDIENCE, now),
            (id, AUDIENCE, moved(-301)),
            (id, AUDIENCE, moved(61)),
        ];
        let claims = claims.map(|(user, audience, time)| identity_claim(user, KEY, audience, time).expect("a key"));
        Claim { user, claims }
    }

    fn check(&mut self, data: &[u8]) {
        let Some((&kind, rest)) = data.split_first() else { return };
        let text = match self.claims.get(usize::from(kind % 8)) {
            Some(claim) => edited(&claim.to_string(), rest),
            None => rest.to_vec(),
        };
        let Ok(claim) = serde_json::from_slice::<Value>(&text) else { return };
        let linked = self.user.auth().link_identity(&claim);
        match linked {
            Ok(()) => {
                assert!(is_same(&claim, &self.claims[0]), "{claim}");
                let [key] = &self.user.auth().identities().expect("a session")[..] else { panic!("one key") };
                self.user.auth().unlink_identity(key).expect("the key is linked");
            }
            Err(error) => {
                assert!(!is_same(&claim, &self.claims[0]), "{claim}: {error}");
                assert!(matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unauthorized), "{claim}: {error}");
            }
        }
    }
}

/// Whether two claims differ at most in the case of the signature's hex digits.
fn is_same(claim: &Value, other: &Value) -> bool {
    let mut claim = claim.clone();
    if let Some(signature) = claim.get_mut("signature")
        && let Some(text) = signature.as_str()
    {
        *signature = text.to_ascii_lowercase().into();
    }
    claim == *other
}
