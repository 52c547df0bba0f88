//! Which apps of a list a caller wants: how many, of which categories, on which networks.

/// How many apps to return, and the filters they must pass.
///
/// Filters combine: an app must be of one of the categories *and* on one of the networks; no categories, or no
/// networks, is no restriction. A number stands for a selection without filters.
///
/// ```
/// use townsquare::Selection;
///
/// let plain: Selection = 20.into();
/// let narrow = Selection::first(20).in_categories(["games", "social"]).on_networks(["base"]);
/// # let _ = (plain, narrow);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    pub(crate) limit: u32,
    pub(crate) categories: Vec<String>,
    pub(crate) networks: Vec<String>,
}

impl Selection {
    /// The first `limit` apps; the call refuses 0 and more than 1,000.
    pub fn first(limit: u32) -> Selection {
        Selection { limit, categories: Vec::new(), networks: Vec::new() }
    }

    /// Only apps of these categories, besides those named before.
    pub fn in_categories<S: Into<String>>(mut self, categories: impl IntoIterator<Item = S>) -> Selection {
        self.categories.extend(categories.into_iter().map(Into::into));
        self
    }

    /// Only apps that run on one of these networks, besides those named before. An app that names no network runs on all.
    pub fn on_networks<S: Into<String>>(mut self, networks: impl IntoIterator<Item = S>) -> Selection {
        self.networks.extend(networks.into_iter().map(Into::into));
        self
    }
}

impl Default for Selection {
    /// The first 50.
    fn default() -> Selection {
        Selection::first(50)
    }
}

impl From<u32> for Selection {
    fn from(limit: u32) -> Selection {
        Selection::first(limit)
    }
}
