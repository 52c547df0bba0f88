//! Pages of the log: what a reader takes at once.

use jiff::Timestamp;

use super::{EntryTexts, LogEntry, LogPoint, TableSet, read_entry};

/// A part of the log, read in one snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogPage {
    /// The entries of the tables that the reader asked for, and the entries of sessions.
    pub(crate) entries: Vec<LogEntry>,
    /// The point up to which the log was read. It can be after the last of `entries`, which leaves out entries of other tables and
    /// entries that cannot be read.
    pub(crate) end: LogPoint,
    /// The number of entries that were read or left out.
    pub(crate) count: usize,
    /// When the change of the first of them was made.
    pub(crate) first_at: Option<Timestamp>,
    /// True if the log has nothing after `end` yet.
    pub(crate) is_last: bool,
}

impl LogPage {
    /// The most entries that a reader takes at once.
    pub(in crate::database) const MAX_ENTRIES: usize = 256;

    /// The most bytes of rows of a page, so that large rows do not fill the memory and a page is read in time. A page has one entry
    /// at least, which may be larger. A subscription that nobody reads holds one page at most.
    pub(in crate::database) const MAX_BYTES: usize = 256 << 10;
}

/// A page that is being read, for a reader of some tables.
pub(in crate::database) struct PageBuilder {
    pub(in crate::database) page: LogPage,
    tables: TableSet,
    /// The bytes of the rows of the page.
    bytes: usize,
}

impl PageBuilder {
    /// A page without entries. It begins after `after`, where the log may end.
    pub(in crate::database) fn new(after: LogPoint, tables: TableSet) -> PageBuilder {
        let page = LogPage { entries: Vec::new(), end: after, count: 0, first_at: None, is_last: true };
        PageBuilder { page, tables, bytes: 0 }
    }

    /// Adds the next entry of the log: the point after it, the names of its table and of its kind, its time and its texts. Calls
    /// `texts` only if the reader wants the entry. Returns false if the entry is left to the next page, because this one would have
    /// more than [`LogPage::MAX_BYTES`].
    pub(in crate::database) fn add<'t>(
        &mut self,
        point: LogPoint,
        (table, kind): (&str, &str),
        at: Timestamp,
        texts: impl FnOnce() -> EntryTexts<'t>,
    ) -> bool {
        if self.tables.wants(table, kind) {
            let texts = texts();
            self.bytes += texts.iter().flatten().map(|text| text.len()).sum::<usize>();
            if self.bytes > LogPage::MAX_BYTES && !self.page.entries.is_empty() {
                return false;
            }
            match read_entry((point.after, point.stands_on), (table, kind), texts, at) {
                Some(entry) => self.page.entries.push(entry),
                None => tracing::warn!(id = point.after.id, "an entry of the change log cannot be read"),
            }
        }
        self.page.end = point;
        self.page.first_at.get_or_insert(at);
        self.page.count += 1;
        true
    }

    /// Whether the page takes no further entry.
    #[cfg(feature = "sqlite")]
    pub(in crate::database) fn is_full(&self) -> bool {
        self.page.count == LogPage::MAX_ENTRIES || self.bytes > LogPage::MAX_BYTES
    }
}
