//! Cursors of the change feed. The library accepts the cursors that it made, and refuses every other text.

use townsquare::{ErrorKind, blocking::Client, realtime::ChangeRequest, spaces::NewSpace};

use super::{Target, edits::edited, fixture};

/// See the module.
pub struct Cursor {
    service: Client,
    cursors: Vec<String>,
}

impl Target for Cursor {
    const NAME: &'static str = "cursor";

    fn new() -> Cursor {
        let service = fixture::open(fixture::in_memory()).as_service();
        let cursor = || service.realtime().cursor().expect("the change feed works");
        let mut cursors = vec![cursor()];
        for name in ["Harbor", "Pier", "Plaza"] {
            service.spaces().create_space(NewSpace::named(name)).expect("a space");
            cursors.push(cursor());
        }
        Cursor { service, cursors }
    }

    fn check(&mut self, data: &[u8]) {
        let Some((&kind, rest)) = data.split_first() else { return };
        let text = match self.cursors.get(usize::from(kind % 8)) {
            Some(cursor) => fixture::text(&edited(cursor, rest)),
            None => fixture::text(rest),
        };
        // The case of hex digits does not matter.
        let is_known = self.cursors.contains(&text.to_ascii_lowercase());
        let request = ChangeRequest::table("spaces");
        let request = if kind < 128 { request.since(&text) } else { request.until(&text) };
        match self.service.realtime().changes(request) {
            Ok(_) => assert!(is_known, "{text:?} is no cursor"),
            Err(error) => {
                assert!(!is_known, "{text:?}: {error}");
                assert!(
                    matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::CursorExpired),
                    "{text:?}: {error}"
                );
                assert!(error.to_string().len() < 1_000, "{error}");
            }
        }
    }
}
