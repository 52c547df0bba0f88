//! Rows of Farcaster's own catalog: one object in camelCase, where Neynar's rows have a frame and a manifest (UPSTREAM 1).

use serde::Deserialize;

use super::{AuthorJson, FrameJson, ManifestJson, ManifestsJson};
use crate::catalog::page::lenient::{Object, Scalar, TextList};

/// A row that contains the app beside its rank.
#[derive(Deserialize)]
struct CamelRowJson<'a> {
    #[serde(borrow, default, rename = "miniApp")]
    mini_app: Object<CamelAppJson<'a>>,
    #[serde(borrow, default)]
    frame: Object<CamelAppJson<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CamelAppJson<'a> {
    #[serde(borrow)]
    version: Scalar<'a>,
    #[serde(borrow)]
    name: Scalar<'a>,
    #[serde(borrow)]
    home_url: Scalar<'a>,
    #[serde(borrow)]
    icon_url: Scalar<'a>,
    #[serde(borrow)]
    image_url: Scalar<'a>,
    #[serde(borrow)]
    button_title: Scalar<'a>,
    #[serde(borrow)]
    splash_image_url: Scalar<'a>,
    #[serde(borrow)]
    splash_background_color: Scalar<'a>,
    #[serde(borrow)]
    subtitle: Scalar<'a>,
    #[serde(borrow)]
    description: Scalar<'a>,
    #[serde(borrow)]
    screenshot_urls: TextList<'a>,
    #[serde(borrow)]
    primary_category: Scalar<'a>,
    #[serde(borrow)]
    tags: TextList<'a>,
    #[serde(borrow)]
    hero_image_url: Scalar<'a>,
    #[serde(borrow)]
    tagline: Scalar<'a>,
    #[serde(borrow)]
    noindex: Scalar<'a>,
    #[serde(borrow)]
    required_chains: TextList<'a>,
    #[serde(borrow)]
    author: Object<CamelAuthorJson<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CamelAuthorJson<'a> {
    #[serde(borrow)]
    fid: Scalar<'a>,
    #[serde(borrow)]
    username: Scalar<'a>,
    #[serde(borrow)]
    display_name: Scalar<'a>,
    #[serde(borrow)]
    pfp_url: Scalar<'a>,
    #[serde(borrow)]
    pfp: Object<PictureJson<'a>>,
    #[serde(borrow)]
    follower_count: Scalar<'a>,
    #[serde(borrow)]
    score: Scalar<'a>,
}

#[derive(Deserialize)]
struct PictureJson<'a> {
    #[serde(borrow, default)]
    url: Scalar<'a>,
}

/// Parses a row in camelCase; `None` if it is no object.
pub(super) fn parse(json: &str) -> Option<FrameJson<'_>> {
    let row = serde_json::from_str::<Object<CamelRowJson<'_>>>(json).ok()?.0?;
    let outer = serde_json::from_str::<Object<CamelAppJson<'_>>>(json).ok()?.0?;
    Some(match row.mini_app.0.or(row.frame.0) {
        Some(app) => frame(app, outer.author),
        None => frame(outer, Object(None)),
    })
}

/// The app in the shape of Neynar's rows.
fn frame<'a>(app: CamelAppJson<'a>, outer_author: Object<CamelAuthorJson<'a>>) -> FrameJson<'a> {
    let author = app.author.0.or(outer_author.0).map(|author| AuthorJson {
        fid: author.fid,
        username: author.username,
        display_name: author.display_name,
        pfp_url: author.pfp.0.map_or(author.pfp_url, |picture| picture.url),
        follower_count: author.follower_count,
        score: author.score,
        power_badge: Scalar::Other,
    });
    let manifest = ManifestJson {
        version: app.version,
        name: app.name,
        home_url: app.home_url,
        icon_url: app.icon_url,
        image_url: app.image_url,
        button_title: app.button_title,
        splash_image_url: app.splash_image_url,
        splash_background_color: app.splash_background_color,
        subtitle: app.subtitle,
        description: app.description,
        screenshot_urls: app.screenshot_urls,
        primary_category: app.primary_category,
        tags: app.tags,
        hero_image_url: app.hero_image_url,
        tagline: app.tagline,
        noindex: app.noindex,
        required_chains: app.required_chains,
    };
    FrameJson {
        version: Scalar::Other,
        image: Scalar::Other,
        frames_url: Scalar::Other,
        title: Scalar::Other,
        manifest: Object(Some(ManifestsJson { miniapp: Object(Some(manifest)), frame: Object(None) })),
        author: Object(author),
    }
}
