//! The order of a record's encoding, behind the name. `RecordFields` writes it and `MiniAppRecord` reads it.

/// First come the slices of the address text, each as start and length.
pub(super) const SLICES: usize = 3;
pub(super) const HOME_URL: usize = 0;
pub(super) const ID: usize = 1;
pub(super) const DOMAIN: usize = 2;

/// Then the texts; the address text is the first.
pub(super) const TEXTS: usize = 15;
pub(super) const DESCRIPTION: usize = 1;
pub(super) const ICON_URL: usize = 2;
pub(super) const CATEGORY: usize = 3;
pub(super) const HERO_IMAGE_URL: usize = 4;
pub(super) const TAGLINE: usize = 5;
pub(super) const SUBTITLE: usize = 6;
pub(super) const VERSION: usize = 7;
pub(super) const BUTTON_TITLE: usize = 8;
pub(super) const IMAGE_URL: usize = 9;
pub(super) const SPLASH_IMAGE_URL: usize = 10;
pub(super) const SPLASH_BACKGROUND_COLOR: usize = 11;
/// The first of the author's username, display name and picture.
pub(super) const AUTHOR: usize = 12;

/// Then the author's numbers.
pub(super) const AUTHOR_NUMBERS: usize = 6;

/// Then the lists.
pub(super) const NETWORKS: usize = 0;
pub(super) const TAGS: usize = 1;
pub(super) const SCREENSHOTS: usize = 2;
