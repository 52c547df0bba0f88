//! A mini app as the endpoint's camelCase `App` object (UPSTREAM 2).

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::{Engagement, MiniApp, RecordFields};

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
    screenshots: &'a [Cow<'a, str>],
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
        let fields = RecordFields::from(&self.record);
        let Engagement { follower_count, trending_rank } = self.engagement();
        let mut app = serializer.serialize_struct("App", 13)?;
        app.serialize_field("id", &fields.id)?;
        app.serialize_field("domain", &fields.domain)?;
        app.serialize_field("name", &fields.name)?;
        serialize_present(&mut app, "description", fields.description.as_ref())?;
        app.serialize_field("iconUrl", &fields.icon_url)?;
        app.serialize_field("homeUrl", &fields.home_url)?;
        serialize_present(&mut app, "category", fields.category.as_ref())?;
        app.serialize_field("networks", &fields.networks)?;
        app.serialize_field("tags", &fields.tags)?;
        serialize_present(&mut app, "author", fields.author.as_ref())?;
        app.serialize_field("engagement", &EngagementJson { follower_count, trending_rank })?;
        app.serialize_field(
            "metadata",
            &MetadataJson {
                version: &fields.version,
                screenshots: &fields.screenshots,
                button_title: fields.button_title.as_deref(),
                hero_image: fields.hero_image_url.as_deref(),
                tagline: fields.tagline.as_deref(),
                subtitle: fields.subtitle.as_deref(),
                image: fields.image_url.as_deref(),
                splash_image: fields.splash_image_url.as_deref(),
                splash_background_color: fields.splash_background_color.as_deref(),
            },
        )?;
        app.serialize_field("lastFetched", &fields.last_fetched)?;
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
