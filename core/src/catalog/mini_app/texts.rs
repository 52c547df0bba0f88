//! The lists of a record: networks, tags, screenshots.

use std::fmt;

/// A list of texts of a record: an iterator of slices that borrow from it.
///
/// ```
/// # fn example(app: &townsquare::discovery::MiniApp) {
/// for tag in app.tags() {
///     println!("#{tag}");
/// }
/// # }
/// ```
#[derive(Clone, Copy, Default)]
pub struct Texts<'a> {
    /// The texts that are left.
    pub(super) texts: &'a [Box<str>],
}

impl<'a> Texts<'a> {
    /// Whether no texts are left.
    ///
    /// ```
    /// # fn example(app: &townsquare::discovery::MiniApp) {
    /// if app.networks().is_empty() {
    ///     println!("{} runs on every network", app.name());
    /// }
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

impl<'a> Iterator for Texts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (text, rest) = self.texts.split_first()?;
        self.texts = rest;
        Some(text)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.texts.len(), Some(self.texts.len()))
    }
}

impl ExactSizeIterator for Texts<'_> {}

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}
