//! Mini apps, their authors and how they do (SPEC 2.1).
//!
//! Invariant: a `MiniApp` shares the catalog's record; a list of 20 copies no text.

use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList},
};
use townsquare::{MiniAppRecord, MiniApps};

use crate::{convert::Json, record::record};

record! {
    /// A mini app of the catalog, with its place in the order it was listed in.
    MiniApp(townsquare::MiniApp) as app, hashed by app.id(), shown by [id, name, category] {
        /// The home URL without its scheme: one app, one id.
        id: app.id(),
        /// Host of the home URL.
        domain: app.domain(),
        /// Display name, at most 200 characters.
        name: app.name(),
        /// At most 2,000 characters.
        description: app.description(),
        /// Icon or, without one, the app's image; empty when the catalog has neither.
        icon_url: app.icon_url(),
        /// Where the app is opened: http or https.
        home_url: app.home_url(),
        /// One of the catalog's categories, or the app's own word.
        category: app.category(),
        /// Networks the app asks for; empty when it runs on any.
        networks: app.networks().collect::<Vec<_>>(),
        /// Search tags.
        tags: app.tags().collect::<Vec<_>>(),
        /// Who published it.
        author: Publisher::of(app).map(Author),
        /// Followers and trending rank.
        engagement: Engagement(app.engagement()),
        /// URLs of screenshots.
        screenshots: app.screenshots().collect::<Vec<_>>(),
        /// URL of a wide picture.
        hero_image_url: app.hero_image_url(),
        /// A line of promotion.
        tagline: app.tagline(),
        /// A line of explanation.
        subtitle: app.subtitle(),
        /// Version of the app's manifest.
        version: app.version(),
        /// The text of the button that opens the app.
        button_title: app.button_title(),
        /// URL of the picture shown in a feed.
        image_url: app.image_url(),
        /// URL of the picture shown while the app loads.
        splash_image_url: app.splash_image_url(),
        /// Colour behind that picture.
        splash_background_color: app.splash_background_color(),
        /// When this record was fetched, UTC.
        last_fetched: app.last_fetched(),
    }
    also {
        /// The endpoint's JSON shape, camelCase.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            Json::of(&self.0)?.into_pyobject(py)
        }

        /// A card in a notebook.
        fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
            static CARD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            CARD.import(this.py(), "townsquare.notebook", "card")?.call1((this,))
        }
    }
}

/// An author, by the app it is read from: a record that has one.
#[derive(Clone)]
pub(crate) struct Publisher(MiniAppRecord);

impl Publisher {
    fn of(app: &MiniAppRecord) -> Option<Publisher> {
        app.author().map(|_| Publisher(app.clone()))
    }

    fn read<'a, T>(&'a self, field: impl FnOnce(townsquare::Author<'a>) -> T) -> Option<T> {
        self.0.author().map(field)
    }
}

impl PartialEq for Publisher {
    fn eq(&self, other: &Publisher) -> bool {
        self.0.author() == other.0.author()
    }
}

record! {
    /// The publisher of a mini app.
    Author(Publisher) as author, hashed by author.read(|author| author.fid), shown by [fid, username] {
        /// Farcaster id.
        fid: author.read(|author| author.fid),
        /// Handle, without `@`.
        username: author.read(|author| author.username),
        /// Name as shown.
        display_name: author.read(|author| author.display_name),
        /// URL of the profile picture.
        pfp_url: author.read(|author| author.pfp_url),
        /// How many follow the author.
        follower_count: author.read(|author| author.follower_count),
        /// The catalog's quality score, 0 to 1.
        score: author.read(|author| author.score),
        /// The power badge of older catalogs.
        is_power_user: author.read(|author| author.is_power_user),
    }
    also {
        /// The `author` of `MiniApp.to_dict()`.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            Json::of(&self.0.0.author())?.into_pyobject(py)
        }
    }
}

record! {
    /// How a mini app is doing.
    Engagement(townsquare::Engagement) as engagement, hashed by (engagement.follower_count, engagement.trending_rank),
    shown by [follower_count, trending_rank] {
        /// Followers of the app's author.
        follower_count: engagement.follower_count,
        /// Place in the trending order the app was listed from, from 1; None when that order has it not.
        trending_rank: engagement.trending_rank,
    }
    also {
        /// The `engagement` of `MiniApp.to_dict()`.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            let json = PyDict::new(py);
            json.set_item("followerCount", self.0.follower_count)?;
            if let Some(rank) = self.0.trending_rank {
                json.set_item("trendingRank", rank)?;
            }
            Ok(json)
        }
    }
}

/// A list of mini apps on its way to Python: a `list` that shows itself as a gallery in a notebook.
pub(crate) struct Gallery(pub(crate) MiniApps);

impl<'py> IntoPyObject<'py> for Gallery {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static LIST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let apps = PyList::new(py, self.0.iter().map(|app| MiniApp(app.clone())))?;
        LIST.import(py, "townsquare.notebook", "MiniAppList")?.call1((apps,))?.into_bound_py_any(py)
    }
}
