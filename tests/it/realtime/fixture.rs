//! Streams, recording callbacks, and short forms of changes.

use std::{
    sync::{Arc, mpsc},
    task::{Context, Wake, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use townsquare::{
    Subscription, Uuid,
    blocking::{ChangeStream, Client, wait},
    realtime::{ChangeRequest, RowChange},
};
use townsquare_tests::{
    test_database::{TestDatabase, required},
    wait::{DEADLINE, wait_until},
};

pub(super) const PASSWORD: &str = "correct horse";

/// A signed-up user, and a handle that acts for the user.
#[track_caller]
pub(super) fn user(db: &TestDatabase, name: &str) -> (Uuid, Client) {
    let email = format!("{name}@town.example");
    let id = db.service.auth().sign_up(&email, PASSWORD).expect("signed up").id;
    let session = db.service.auth().sign_in(&email, PASSWORD).expect("signed in");
    (id, db.client.as_user(&session.access_token).expect("a handle"))
}

/// Opens a stream.
#[track_caller]
pub(super) fn stream(client: &Client, request: ChangeRequest) -> ChangeStream {
    client.realtime().changes(request).expect("a stream")
}

/// The next change of a stream.
#[track_caller]
pub(super) fn next(stream: &mut ChangeStream) -> RowChange {
    let change = stream.next_within(DEADLINE).unwrap_or_else(|| panic!("no change within {DEADLINE:?}"));
    change.expect("a change")
}

/// The next changes of a stream, as [`short`] forms.
#[track_caller]
pub(super) fn next_short(stream: &mut ChangeStream, count: usize) -> Vec<String> {
    (0..count).map(|_| short(&next(stream))).collect()
}

/// Checks that a stream has nothing but the mark that this function makes: a public space, which every caller sees.
#[track_caller]
pub(super) fn assert_silent(db: &TestDatabase, stream: &mut ChangeStream) {
    let owner = db.user();
    let space = db.public_space(owner, "mark");
    db.fidget(space.id, "mark");
    assert!(short(&next(stream)).ends_with("mark"), "only the mark is delivered");
}

/// `EVENT name`, with the name or type of the new row, else of the old one, else the number of its columns.
pub(super) fn short(change: &RowChange) -> String {
    let row = change.new.as_ref().or(change.old.as_ref()).expect("a row");
    let name = ["name", "type", "path", "email"].iter().find_map(|column| row.get(*column)).and_then(Value::as_str);
    let name = name.map_or_else(|| format!("{} columns", row.len()), str::to_owned);
    format!("{} {name}", change.event_type)
}

/// The log reader of a client, paused inside the waker of a stream.
pub(super) struct PausedReader {
    _stream: townsquare::realtime::ChangeStream,
    release: mpsc::Sender<()>,
}

/// A waker that blocks until it is released or its [`PausedReader`] is dropped.
struct BlockingWaker {
    entered: mpsc::Sender<()>,
    released: Mutex<mpsc::Receiver<()>>,
}

impl Wake for BlockingWaker {
    fn wake(self: Arc<Self>) {
        let _ = self.entered.send(());
        let _ = self.released.lock().recv();
    }
}

impl PausedReader {
    /// Pauses the log reader of the client that `service` belongs to.
    #[track_caller]
    pub(super) fn pause(service: &Client) -> PausedReader {
        let ((entered, is_entered), (release, released)) = (mpsc::channel(), mpsc::channel());
        let waker = Waker::from(Arc::new(BlockingWaker { entered, released: Mutex::new(released) }));
        let request = ChangeRequest::table("community_configs");
        let mut stream = wait(service.inner().realtime().changes(request)).expect("a stream");
        let mut next = Box::pin(stream.next());
        assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(next);
        service.communities().save_community_config("held", required()).expect("saved");
        is_entered.recv_timeout(DEADLINE).expect("the log reader wakes the stream");
        PausedReader { _stream: stream, release }
    }

    /// Lets the log reader go on.
    pub(super) fn release(self) {
        self.release.send(()).expect("the waker waits");
    }
}

/// A subscription whose callback records what it gets.
pub(super) struct Recorder {
    pub(super) subscription: Subscription,
    changes: Arc<Mutex<Vec<RowChange>>>,
    closed: mpsc::Receiver<Option<townsquare::Error>>,
}

impl Recorder {
    #[track_caller]
    pub(super) fn subscribe(client: &Client, request: ChangeRequest) -> Recorder {
        Recorder::with(client, request, |_| {})
    }

    /// As [`subscribe`](Recorder::subscribe). Calls `work` before it records the change.
    #[track_caller]
    pub(super) fn with(
        client: &Client,
        request: ChangeRequest,
        mut work: impl FnMut(&RowChange) + Send + 'static,
    ) -> Recorder {
        let changes: Arc<Mutex<Vec<RowChange>>> = Arc::default();
        let (close, closed) = mpsc::channel();
        let record = Arc::clone(&changes);
        let request = request.on_close(move |reason| close.send(reason).expect("the test receives"));
        let callback = move |change: RowChange| {
            work(&change);
            record.lock().push(change);
        };
        let subscription = client.realtime().subscribe("test", request, callback).expect("a subscription");
        Recorder { subscription, changes, closed }
    }

    pub(super) fn changes(&self) -> Vec<RowChange> {
        self.changes.lock().clone()
    }

    pub(super) fn short(&self) -> Vec<String> {
        self.changes.lock().iter().map(short).collect()
    }

    #[track_caller]
    pub(super) fn wait_for(&self, count: usize) -> Vec<String> {
        wait_until("the callback has run", || self.changes.lock().len() >= count);
        self.short()
    }

    /// The reason that `on_close` got.
    #[track_caller]
    pub(super) fn closed(&self) -> Option<townsquare::Error> {
        self.closed.recv_timeout(DEADLINE).expect("on_close was called")
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.recv_timeout(Duration::ZERO).is_ok()
    }
}
