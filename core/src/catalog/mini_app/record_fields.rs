//! The decoded fields of a record: a record is made from them, compared, shown and stored through them.
//!
//! Invariant: encoding fields and decoding the record gives the same fields, and equal fields encode alike. An absent
//! text and an empty one are the same.

use std::{borrow::Cow, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    author::Author,
    encoding::{Decoder, Encoder},
    record::{MiniAppRecord, decode_slices},
};

/// The fields of a [`MiniAppRecord`], documented there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordFields<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) domain: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) description: Option<Cow<'a, str>>,
    pub(crate) icon_url: Cow<'a, str>,
    pub(crate) home_url: Cow<'a, str>,
    pub(crate) category: Option<Cow<'a, str>>,
    pub(crate) networks: Vec<Cow<'a, str>>,
    pub(crate) tags: Vec<Cow<'a, str>>,
    pub(crate) author: Option<AuthorFields<'a>>,
    pub(crate) screenshots: Vec<Cow<'a, str>>,
    pub(crate) hero_image_url: Option<Cow<'a, str>>,
    pub(crate) tagline: Option<Cow<'a, str>>,
    pub(crate) subtitle: Option<Cow<'a, str>>,
    pub(crate) version: Cow<'a, str>,
    pub(crate) button_title: Option<Cow<'a, str>>,
    pub(crate) image_url: Option<Cow<'a, str>>,
    pub(crate) splash_image_url: Option<Cow<'a, str>>,
    pub(crate) splash_background_color: Option<Cow<'a, str>>,
    pub(crate) last_fetched: Timestamp,
    /// Records stored by earlier libraries have none: then it is `last_fetched`.
    #[serde(default = "unknown_time")]
    pub(crate) first_seen: Timestamp,
}

/// Later than every fetch: a record's `first_seen` is at most its `last_fetched`.
fn unknown_time() -> Timestamp {
    Timestamp::MAX
}

/// The fields of an [`Author`], documented there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuthorFields<'a> {
    pub(crate) fid: u64,
    pub(crate) username: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) display_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pfp_url: Option<Cow<'a, str>>,
    pub(crate) follower_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<f64>,
    pub(crate) is_power_user: bool,
}

impl From<&RecordFields<'_>> for MiniAppRecord {
    fn from(fields: &RecordFields<'_>) -> MiniAppRecord {
        let mut encoder = Encoder::new();
        // Id and domain are nearly always substrings of the home URL: one text holds all three.
        let mut address = Cow::Borrowed(&*fields.home_url);
        for part in [&fields.home_url, &fields.id, &fields.domain] {
            let start = address.find(&**part).unwrap_or_else(|| {
                address.to_mut().push_str(part);
                address.len() - part.len()
            });
            encoder.number(start as u64);
            encoder.number(part.len() as u64);
        }
        encoder.text(&address);
        encoder.text(fields.description.as_deref().unwrap_or_default());
        encoder.text(&fields.icon_url);
        encoder.text(fields.category.as_deref().unwrap_or_default());
        encoder.text(fields.hero_image_url.as_deref().unwrap_or_default());
        encoder.text(fields.tagline.as_deref().unwrap_or_default());
        encoder.text(fields.subtitle.as_deref().unwrap_or_default());
        encoder.text(&fields.version);
        encoder.text(fields.button_title.as_deref().unwrap_or_default());
        encoder.text(fields.image_url.as_deref().unwrap_or_default());
        encoder.text(fields.splash_image_url.as_deref().unwrap_or_default());
        encoder.text(fields.splash_background_color.as_deref().unwrap_or_default());
        let absent = AuthorFields::default();
        let author = fields.author.as_ref().unwrap_or(&absent);
        encoder.text(&author.username);
        encoder.text(author.display_name.as_deref().unwrap_or_default());
        encoder.text(author.pfp_url.as_deref().unwrap_or_default());
        encoder.number(fields.author.is_some().into());
        encoder.number(author.fid);
        encoder.number(author.follower_count);
        encoder.number(author.score.is_some().into());
        encoder.number(author.score.unwrap_or_default().to_bits());
        encoder.number(author.is_power_user.into());
        encoder.list(&fields.networks);
        encoder.list(&fields.tags);
        encoder.list(&fields.screenshots);
        let last_fetched = fields.last_fetched.as_microsecond();
        let first_seen = fields.first_seen.as_microsecond().min(last_fetched);
        MiniAppRecord { encoded: encoder.finish(&fields.name), last_fetched, first_seen }
    }
}

impl<'a> From<&'a MiniAppRecord> for RecordFields<'a> {
    fn from(record: &'a MiniAppRecord) -> RecordFields<'a> {
        let mut decoder = Decoder::new(&record.encoded);
        let [home_url, id, domain] = decode_slices(&mut decoder);
        let address = decoder.text();
        let mut fields = RecordFields {
            id: address[id].into(),
            domain: address[domain].into(),
            home_url: address[home_url].into(),
            name: record.name().into(),
            description: decoder.optional_text().map(Cow::Borrowed),
            icon_url: decoder.text().into(),
            category: decoder.optional_text().map(Cow::Borrowed),
            hero_image_url: decoder.optional_text().map(Cow::Borrowed),
            tagline: decoder.optional_text().map(Cow::Borrowed),
            subtitle: decoder.optional_text().map(Cow::Borrowed),
            version: decoder.text().into(),
            button_title: decoder.optional_text().map(Cow::Borrowed),
            image_url: decoder.optional_text().map(Cow::Borrowed),
            splash_image_url: decoder.optional_text().map(Cow::Borrowed),
            splash_background_color: decoder.optional_text().map(Cow::Borrowed),
            last_fetched: record.last_fetched(),
            first_seen: record.first_seen(),
            ..RecordFields::default()
        };
        let (username, display_name, pfp_url) = (decoder.text(), decoder.optional_text(), decoder.optional_text());
        fields.author = Author::decode(username, display_name, pfp_url, &mut decoder).map(AuthorFields::from);
        let mut list = || (0..decoder.number()).map(|_| decoder.text().into()).collect();
        (fields.networks, fields.tags, fields.screenshots) = (list(), list(), list());
        fields
    }
}

impl<'a> From<Author<'a>> for AuthorFields<'a> {
    fn from(author: Author<'a>) -> AuthorFields<'a> {
        AuthorFields {
            fid: author.fid,
            username: author.username.into(),
            display_name: author.display_name.map(Cow::Borrowed),
            pfp_url: author.pfp_url.map(Cow::Borrowed),
            follower_count: author.follower_count,
            score: author.score,
            is_power_user: author.is_power_user,
        }
    }
}

impl fmt::Debug for MiniAppRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MiniAppRecord").field(&RecordFields::from(self)).finish()
    }
}

impl Serialize for MiniAppRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RecordFields::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MiniAppRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MiniAppRecord, D::Error> {
        RecordFields::deserialize(deserializer).map(|fields| MiniAppRecord::from(&fields))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::texts::Texts, *};

    fn full() -> RecordFields<'static> {
        RecordFields {
            id: "a.example/app".into(),
            domain: "a.example".into(),
            name: "Näme".into(),
            description: Some("description".into()),
            icon_url: "icon".into(),
            home_url: "https://a.example/app/".into(),
            category: Some("category".into()),
            networks: vec!["one".into(), "two".into()],
            tags: vec!["tag".into(), "".into(), "other".into()],
            author: Some(AuthorFields {
                fid: 7,
                username: "user".into(),
                display_name: Some("display".into()),
                pfp_url: Some("pfp".into()),
                follower_count: 8,
                score: Some(0.87),
                is_power_user: true,
            }),
            screenshots: vec!["shot".into()],
            hero_image_url: Some("hero".into()),
            tagline: Some("tagline".into()),
            subtitle: Some("subtitle".into()),
            version: "version".into(),
            button_title: Some("button".into()),
            image_url: Some("image".into()),
            splash_image_url: Some("splash".into()),
            splash_background_color: Some("colour".into()),
            last_fetched: Timestamp::from_microsecond(-5).expect("a time"),
            first_seen: Timestamp::from_microsecond(-7).expect("a time"),
        }
    }

    #[test]
    fn fields_survive_encoding_and_json() {
        let elsewhere = RecordFields { id: "b.example".into(), domain: "c.example".into(), ..full() };
        for fields in [RecordFields::default(), full(), elsewhere] {
            let record = MiniAppRecord::from(&fields);
            assert_eq!(RecordFields::from(&record), fields);
            assert_eq!(MiniAppRecord::from(&RecordFields::from(&record)), record);
            let json = serde_json::to_string(&record).expect("JSON");
            assert_eq!(serde_json::from_str::<MiniAppRecord>(&json).expect("a record"), record);
        }
    }

    #[test]
    fn every_accessor_returns_its_field() {
        let fields = full();
        let record = MiniAppRecord::from(&fields);
        let texts =
            [record.id(), record.domain(), record.name(), record.icon_url(), record.home_url(), record.version()];
        assert_eq!(
            texts,
            [&fields.id, &fields.domain, &fields.name, &fields.icon_url, &fields.home_url, &fields.version]
        );
        for (decoded, original) in [
            (record.description(), &fields.description),
            (record.category(), &fields.category),
            (record.hero_image_url(), &fields.hero_image_url),
            (record.tagline(), &fields.tagline),
            (record.subtitle(), &fields.subtitle),
            (record.button_title(), &fields.button_title),
            (record.image_url(), &fields.image_url),
            (record.splash_image_url(), &fields.splash_image_url),
            (record.splash_background_color(), &fields.splash_background_color),
        ] {
            assert_eq!(decoded, original.as_deref());
        }
        let lists: [Texts<'_>; 3] = [record.networks(), record.tags(), record.screenshots()];
        for (decoded, original) in lists.into_iter().zip([&fields.networks, &fields.tags, &fields.screenshots]) {
            assert_eq!(
                (decoded.len(), decoded.collect::<Vec<_>>()),
                (original.len(), original.iter().map(AsRef::as_ref).collect())
            );
        }
        assert_eq!((record.last_fetched(), record.first_seen()), (fields.last_fetched, fields.first_seen));
        assert_eq!(record.author().map(AuthorFields::from), fields.author);
        assert_eq!(MiniAppRecord::from(&RecordFields::default()).author(), None);
    }
}
