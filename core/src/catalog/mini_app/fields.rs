//! A record laid open: what one is made from, how it is compared and shown, and how the database keeps it.
//!
//! Invariant: packing fields and laying the record open again gives the same fields; equal fields pack alike. An
//! absent text and an empty one are the same.

use std::{borrow::Cow, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    packed::{Packer, Unpacker},
    record::{Author, MiniAppRecord, present, unpack_parts},
};

/// The fields of a [`MiniAppRecord`], which documents them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fields<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) domain: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) description: Option<Cow<'a, str>>,
    pub(crate) icon_url: Cow<'a, str>,
    pub(crate) home_url: Cow<'a, str>,
    pub(crate) category: Option<Cow<'a, str>>,
    pub(crate) networks: Vec<Cow<'a, str>>,
    pub(crate) tags: Vec<Cow<'a, str>>,
    pub(crate) author: Option<Publisher<'a>>,
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
}

/// The fields of an [`Author`], which documents them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Publisher<'a> {
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

impl From<&Fields<'_>> for MiniAppRecord {
    fn from(fields: &Fields<'_>) -> MiniAppRecord {
        let mut packer = Packer::new();
        // The id is nearly always the home URL but for its scheme, and the domain the beginning of that.
        let mut home = Cow::Borrowed(&*fields.home_url);
        for part in [&fields.home_url, &fields.id, &fields.domain] {
            let start = home.find(&**part).unwrap_or_else(|| {
                home.to_mut().push_str(part);
                home.len() - part.len()
            });
            packer.number(start as u64);
            packer.number(part.len() as u64);
        }
        packer.text(&home);
        packer.text(fields.description.as_deref().unwrap_or_default());
        packer.text(&fields.icon_url);
        packer.text(fields.category.as_deref().unwrap_or_default());
        packer.text(fields.hero_image_url.as_deref().unwrap_or_default());
        packer.text(fields.tagline.as_deref().unwrap_or_default());
        packer.text(fields.subtitle.as_deref().unwrap_or_default());
        packer.text(&fields.version);
        packer.text(fields.button_title.as_deref().unwrap_or_default());
        packer.text(fields.image_url.as_deref().unwrap_or_default());
        packer.text(fields.splash_image_url.as_deref().unwrap_or_default());
        packer.text(fields.splash_background_color.as_deref().unwrap_or_default());
        let nobody = Publisher::default();
        let author = fields.author.as_ref().unwrap_or(&nobody);
        packer.text(&author.username);
        packer.text(author.display_name.as_deref().unwrap_or_default());
        packer.text(author.pfp_url.as_deref().unwrap_or_default());
        packer.number(fields.author.is_some().into());
        packer.number(author.fid);
        packer.number(author.follower_count);
        packer.number(author.score.is_some().into());
        packer.number(author.score.unwrap_or_default().to_bits());
        packer.number(author.is_power_user.into());
        packer.list(&fields.networks);
        packer.list(&fields.tags);
        packer.list(&fields.screenshots);
        MiniAppRecord { packed: packer.finish(&fields.name), last_fetched: fields.last_fetched.as_microsecond() }
    }
}

impl<'a> From<&'a MiniAppRecord> for Fields<'a> {
    fn from(record: &'a MiniAppRecord) -> Fields<'a> {
        let mut packed = Unpacker::new(&record.packed);
        let [home_url, id, domain] = unpack_parts(&mut packed);
        let home = packed.text();
        let mut fields = Fields {
            id: home[id].into(),
            domain: home[domain].into(),
            home_url: home[home_url].into(),
            name: record.name().into(),
            description: optional(packed.text()),
            icon_url: packed.text().into(),
            category: optional(packed.text()),
            hero_image_url: optional(packed.text()),
            tagline: optional(packed.text()),
            subtitle: optional(packed.text()),
            version: packed.text().into(),
            button_title: optional(packed.text()),
            image_url: optional(packed.text()),
            splash_image_url: optional(packed.text()),
            splash_background_color: optional(packed.text()),
            last_fetched: record.last_fetched(),
            ..Fields::default()
        };
        let of_author = [packed.text(), packed.text(), packed.text()];
        fields.author = Author::unpack(of_author, &mut packed).map(Publisher::from);
        let mut list = || (0..packed.number()).map(|_| packed.text().into()).collect();
        (fields.networks, fields.tags, fields.screenshots) = (list(), list(), list());
        fields
    }
}

impl<'a> From<Author<'a>> for Publisher<'a> {
    fn from(author: Author<'a>) -> Publisher<'a> {
        Publisher {
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

fn optional(text: &str) -> Option<Cow<'_, str>> {
    present(text).map(Cow::Borrowed)
}

impl fmt::Debug for MiniAppRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MiniAppRecord").field(&Fields::from(self)).finish()
    }
}

impl Serialize for MiniAppRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Fields::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MiniAppRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MiniAppRecord, D::Error> {
        Fields::deserialize(deserializer).map(|fields| MiniAppRecord::from(&fields))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::record::Texts, *};

    fn full() -> Fields<'static> {
        Fields {
            id: "a.example/app".into(),
            domain: "a.example".into(),
            name: "Näme".into(),
            description: Some("description".into()),
            icon_url: "icon".into(),
            home_url: "https://a.example/app/".into(),
            category: Some("category".into()),
            networks: vec!["one".into(), "two".into()],
            tags: vec!["tag".into(), "".into(), "other".into()],
            author: Some(Publisher {
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
        }
    }

    #[test]
    fn fields_come_back_as_they_were_packed() {
        let elsewhere = Fields { id: "b.example".into(), domain: "c.example".into(), ..full() };
        for fields in [Fields::default(), full(), elsewhere] {
            let record = MiniAppRecord::from(&fields);
            assert_eq!(Fields::from(&record), fields);
            assert_eq!(MiniAppRecord::from(&Fields::from(&record)), record);
            let json = serde_json::to_string(&record).expect("JSON");
            assert_eq!(serde_json::from_str::<MiniAppRecord>(&json).expect("a record"), record);
        }
    }

    #[test]
    fn every_accessor_reads_its_own_field() {
        let fields = full();
        let record = MiniAppRecord::from(&fields);
        let texts =
            [record.id(), record.domain(), record.name(), record.icon_url(), record.home_url(), record.version()];
        assert_eq!(
            texts,
            [&fields.id, &fields.domain, &fields.name, &fields.icon_url, &fields.home_url, &fields.version]
        );
        for (read, packed) in [
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
            assert_eq!(read, packed.as_deref());
        }
        let lists: [Texts<'_>; 3] = [record.networks(), record.tags(), record.screenshots()];
        for (read, packed) in lists.into_iter().zip([&fields.networks, &fields.tags, &fields.screenshots]) {
            assert_eq!(
                (read.len(), read.collect::<Vec<_>>()),
                (packed.len(), packed.iter().map(AsRef::as_ref).collect())
            );
        }
        assert_eq!(record.last_fetched(), fields.last_fetched);
        assert_eq!(record.author().map(Publisher::from), fields.author);
        assert_eq!(MiniAppRecord::from(&Fields::default()).author(), None);
    }
}
