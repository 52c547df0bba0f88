//! The author of a mini app.

use serde::Serialize;

use super::content::AuthorContent;

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

impl Author<'_> {
    pub(super) fn of(author: &AuthorContent) -> Author<'_> {
        Author {
            fid: author.fid,
            username: &author.username,
            display_name: author.display_name.as_deref(),
            pfp_url: author.pfp_url.as_deref(),
            follower_count: author.follower_count,
            score: author.score,
            is_power_user: author.is_power_user,
        }
    }
}
