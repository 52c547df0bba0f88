//! The author of a mini app.

use serde::Serialize;

use super::{encoding::Decoder, layout};

/// The publisher of a mini app; borrows from its record.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Author<'a> {
    /// Farcaster id.
    pub fid: u64,
    /// Handle, without `@`.
    pub username: &'a str,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<&'a str>,
    /// URL of the profile picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfp_url: Option<&'a str>,
    /// Number of followers.
    pub follower_count: u64,
    /// The upstream's quality score, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The power badge of older upstream versions; false if it is absent.
    pub is_power_user: bool,
}

impl<'a> Author<'a> {
    /// Decodes the author's numbers. The texts precede them in the encoding.
    pub(super) fn decode(
        username: &'a str,
        display_name: Option<&'a str>,
        pfp_url: Option<&'a str>,
        decoder: &mut Decoder<'_>,
    ) -> Option<Author<'a>> {
        let numbers: [u64; layout::AUTHOR_NUMBERS] = std::array::from_fn(|_| decoder.number());
        let [is_present, fid, follower_count, has_score, score, is_power_user] = numbers;
        (is_present > 0).then(|| Author {
            fid,
            username,
            display_name,
            pfp_url,
            follower_count,
            score: (has_score > 0).then(|| f64::from_bits(score)),
            is_power_user: is_power_user > 0,
        })
    }
}
