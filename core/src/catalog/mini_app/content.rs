//! The content of a record: what the catalog says about an app, apart from the times.
//!
//! Invariant: its JSON has the same fields, and equal JSON makes equal contents.

use serde::{Deserialize, Serialize};

/// The fields of a [`MiniAppRecord`](super::MiniAppRecord), documented there. A text that every app has is empty if the
/// catalog does not say it.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordContent {
    pub(crate) id: Box<str>,
    pub(crate) domain: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) description: Option<Box<str>>,
    pub(crate) icon_url: Box<str>,
    pub(crate) home_url: Box<str>,
    pub(crate) category: Option<Box<str>>,
    pub(crate) networks: Box<[Box<str>]>,
    pub(crate) tags: Box<[Box<str>]>,
    pub(crate) author: Option<AuthorContent>,
    pub(crate) screenshots: Box<[Box<str>]>,
    pub(crate) hero_image_url: Option<Box<str>>,
    pub(crate) tagline: Option<Box<str>>,
    pub(crate) subtitle: Option<Box<str>>,
    pub(crate) version: Box<str>,
    pub(crate) button_title: Option<Box<str>>,
    pub(crate) image_url: Option<Box<str>>,
    pub(crate) splash_image_url: Option<Box<str>>,
    pub(crate) splash_background_color: Option<Box<str>>,
}

/// The fields of an [`Author`](super::Author), documented there.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuthorContent {
    pub(crate) fid: u64,
    pub(crate) username: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) display_name: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pfp_url: Option<Box<str>>,
    pub(crate) follower_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<f64>,
    pub(crate) is_power_user: bool,
}
