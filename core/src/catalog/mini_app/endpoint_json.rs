//! A mini app as the endpoint's camelCase `App` object (UPSTREAM 2).

use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::{Engagement, MiniApp};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EngagementJson {
    follower_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    trending_rank: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MetadataJson<'a> {
    version: &'a str,
    screenshots: &'a [Box<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    button_title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hero_image: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tagline: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subtitle: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    splash_image: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    splash_background_color: Option<&'a str>,
}

impl Serialize for MiniApp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let content = &*self.record.content;
        let Engagement { follower_count, trending_rank } = self.engagement();
        let mut app = serializer.serialize_struct("App", 13)?;
        app.serialize_field("id", &content.id)?;
        app.serialize_field("domain", &content.domain)?;
        app.serialize_field("name", &content.name)?;
        serialize_present(&mut app, "description", content.description.as_ref())?;
        app.serialize_field("iconUrl", &content.icon_url)?;
        app.serialize_field("homeUrl", &content.home_url)?;
        serialize_present(&mut app, "category", content.category.as_ref())?;
        app.serialize_field("networks", &content.networks)?;
        app.serialize_field("tags", &content.tags)?;
        serialize_present(&mut app, "author", content.author.as_ref())?;
        app.serialize_field("engagement", &EngagementJson { follower_count, trending_rank })?;
        app.serialize_field(
            "metadata",
            &MetadataJson {
                version: &content.version,
                screenshots: &content.screenshots,
                button_title: content.button_title.as_deref(),
                hero_image: content.hero_image_url.as_deref(),
                tagline: content.tagline.as_deref(),
                subtitle: content.subtitle.as_deref(),
                image: content.image_url.as_deref(),
                splash_image: content.splash_image_url.as_deref(),
                splash_background_color: content.splash_background_color.as_deref(),
            },
        )?;
        app.serialize_field("lastFetched", &self.last_fetched())?;
        app.end()
    }
}

/// Serializes a field unless it is `None`.
fn serialize_present<S: SerializeStruct>(
    out: &mut S,
    name: &'static str,
    value: Option<&impl Serialize>,
) -> Result<(), S::Error> {
    match value {
        Some(value) => out.serialize_field(name, value),
        None => out.skip_field(name),
    }
}
