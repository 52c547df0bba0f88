//! What a simulation checks: each result as it comes, and everything at the end.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{FutureExt, TryStreamExt};
use object_store::{Attribute, ObjectStore, ObjectStoreExt};

use super::{Running, Simulation, below, chance, trace};
use crate::{
    database::{Row, Statement},
    error::{ErrorKind, Result},
    model::{FileInfo, UploadOptions},
    storage::{
        rows,
        simulation::{
            BUCKET, PATHS, SPACE_BUCKET, bucket_of,
            client::Opened,
            feed::Usage,
            history::{By, Call, Found, Outcome},
            world::World,
        },
        statements as sql,
    },
};

/// How often 10 s pass at the end. A call that was dropped waits for locks meanwhile, and each lock for 30 s.
const MIN_ROUNDS: usize = 10;

static COUNT_UNFINISHED: Statement = Statement::new(
    "SELECT (SELECT count(*) FROM townsquare.file_intents), (SELECT count(*) FROM townsquare.file_outbox)",
);

impl Simulation {
    /// Makes the reader of the feed read it with a client.
    pub(super) fn read_feed(&mut self, client: usize) -> Result<(), String> {
        let database = self.opened(client)?.database;
        self.clients[client].run_instantly(self.feed.read(&database))
    }

    /// Compares what the reader of the feed knows with the rows.
    fn check_feed(&self, client: usize) -> Result<(), String> {
        let database = self.opened(client)?.database;
        self.clients[client].run_instantly(self.feed.check_rows(&database))
    }

    /// Makes the reader of the feed read it with any client. The reader may crash before it has stored its cursor.
    pub(super) fn read_feed_with_a_crash(&mut self) -> Result<(), String> {
        let Some((client, _)) = self.random_client() else { return Ok(()) };
        if self.history.entries.is_empty() {
            return Ok(());
        }
        let before = self.feed.clone();
        self.read_feed(client)?;
        self.check_feed(client)?;
        let crashes = chance(30);
        trace(format!(
            "the feed has had {} changes{}",
            self.feed.count(),
            if crashes { ", then its reader crashes" } else { "" }
        ));
        if crashes {
            self.feed = before;
        }
        Ok(())
    }

    /// Checks the result of a call against the committed changes.
    pub(super) fn check_result(&mut self, ended: &Running, result: &Result<Found>) -> Result<(), String> {
        let from = self.history.entries[ended.number].changes;
        match result {
            Ok(Found::Backup(files)) => {
                self.read_feed(ended.client)?;
                self.feed.check_backup(from, files)
            }
            Err(error) if error.kind() == ErrorKind::QuotaExceeded => {
                self.read_feed(ended.client)?;
                let (committed, others) = (self.feed.most_used(from), self.history.most_in_flight(ended.number));
                let own = self.history.most_bytes(&self.history.entries[ended.number]);
                let most =
                    Usage { files: committed.files + others.files + 1, bytes: committed.bytes + others.bytes + own };
                match most.is_within(self.setup.quota) {
                    true => Err(format!("call {} was refused though the owner had room: {most:?}", ended.number)),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Lets everything come to an end, without faults.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        trace("no more faults".to_owned());
        for round in 0..100 {
            while World::with(|world| !world.waiting.is_empty())
                || self.clients.iter().any(|client| client.opened().is_none_or(|opened| opened.is_err()))
            {
                self.step()?;
            }
            if round > MIN_ROUNDS && self.unfinished()? == (0, 0) && self.open_upload().is_none() {
                return Ok(());
            }
            self.advance_by(10_000);
        }
        let (intents, outbox) = self.unfinished()?;
        let upload = self.open_upload().unwrap_or_default();
        Err(format!("{intents} intents, {outbox} entries of the outbox and the upload {upload:?} are left"))
    }

    /// An upload in parts that a client which has not crashed since has neither completed nor aborted.
    fn open_upload(&self) -> Option<String> {
        let (uploads, objects) = World::with(|world| (world.uploads.clone(), Arc::clone(&world.objects)));
        let is_open = |(upload, (client, incarnation)): &(String, (usize, u32))| {
            let found =
                objects.head(&upload.as_str().into()).now_or_never().expect("a store in memory answers at once");
            self.clients[*client].incarnation == *incarnation && found.is_ok()
        };
        uploads.into_iter().find(is_open).map(|(upload, _)| upload)
    }

    fn unfinished(&self) -> Result<(i64, i64), String> {
        let core = self.opened(0)?.core;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let counted = self.clients[0].run_instantly(core.service.fetch_one(&COUNT_UNFINISHED, &[], read));
        counted.map_err(|error| error.to_string())
    }

    fn opened(&self, index: usize) -> Result<Opened, String> {
        self.clients[index].opened().and_then(Result::ok).ok_or_else(|| "a client is not open".to_owned())
    }

    /// Reads every path with every client, and compares rows and objects.
    pub(super) fn check_rest(&mut self) -> Result<(), String> {
        let reads = PATHS.into_iter().map(|path| Call::Read { path }).chain([Call::List]);
        let of_clients = (0..self.clients.len()).flat_map(|client| reads.clone().map(move |call| (client, call)));
        let calls: Vec<_> = of_clients.chain([(below(self.clients.len()), Call::Backup)]).collect();
        for (client, call) in calls {
            let opened = self.opened(client)?;
            self.begin_call(client, &opened, By::Service, call)?;
            while !self.running.is_empty() {
                self.step()?;
            }
            let ended = self.history.entries.last().and_then(|entry| entry.outcome);
            if !matches!(ended, Some(Outcome::Done | Outcome::Refused)) {
                return Err("a call failed though nothing is wrong".to_owned());
            }
        }
        self.check_changes()?;
        self.check_objects()?;
        self.check_room()
    }

    /// Compares the objects with the rows.
    fn check_objects(&self) -> Result<(), String> {
        let core = self.opened(0)?.core;
        let fetched = core.service.fetch(&sql::ALL_OBJECTS, &[], rows::stored_object);
        let rows = self.clients[0].run_instantly(fetched).map_err(|error| error.to_string())?;
        let objects = World::with(|world| Arc::clone(&world.objects));
        let mut listed = Vec::new();
        for bucket in [BUCKET, SPACE_BUCKET] {
            let found = objects.list(Some(&bucket.into())).try_collect::<Vec<_>>().now_or_never();
            listed.extend(found.expect("a store in memory answers at once").map_err(|error| error.to_string())?);
        }
        for row in &rows {
            let place = format!("{}/{}", row.bucket, row.path);
            listed.retain(|object| object.location.as_ref() != place);
            let found = objects.get(&place.as_str().into()).now_or_never().expect("a store in memory answers at once");
            let found = found.map_err(|error| format!("{place}: {error}"))?;
            let version = found
                .attributes
                .get(&Attribute::Metadata("townsquare-etag".into()))
                .map(|version| version.as_ref().to_owned());
            let bytes = found.bytes().now_or_never().expect("at once").map_err(|error| error.to_string())?;
            let digest = blake3::hash(&bytes).to_hex().to_string();
            if version.as_deref() != Some(&row.etag) || digest != row.digest || bytes.len() as u64 != row.size {
                return Err(format!("{place}: the row is not that of the bytes {:?}", String::from_utf8_lossy(&bytes)));
            }
        }
        if let Some(orphan) = listed.first() {
            return Err(format!("the object {} has no row", orphan.location));
        }
        let is_deleted = self
            .history
            .entries
            .iter()
            .any(|entry| matches!(entry.call, Call::DeleteSpace) && entry.outcome == Some(Outcome::Done));
        if is_deleted && self.feed.files.keys().any(|path| bucket_of(path) == SPACE_BUCKET) {
            return Err("a deleted space has a file".to_owned());
        }
        Ok(())
    }

    /// Compares the feed with the rows and with the calls.
    fn check_changes(&mut self) -> Result<(), String> {
        self.read_feed(0)?;
        self.check_feed(0)?;
        let database = self.opened(0)?.database;
        self.clients[0].run_instantly(self.feed.check_count(&database))?;
        for (number, etag) in self.history.versions() {
            match self.feed.deliveries(etag) {
                1 => {}
                count => return Err(format!("the feed has the version of call {number} {count} times")),
            }
        }
        let mut contents: BTreeMap<usize, usize> = BTreeMap::new();
        for file in self.feed.files.values() {
            *contents.entry(self.history.upload_of(&file.etag).ok_or("nobody has read a version")?).or_default() += 1;
        }
        match contents.into_iter().find(|(number, count)| *count > 1 + self.history.copies(*number)) {
            Some((number, count)) => Err(format!("the bytes of call {number} are at {count} paths")),
            None => Ok(()),
        }
    }

    /// Uploads a file of the user that fills the quota to the last byte, and replaces it, which needs no more room. One byte more is
    /// refused, and changes nothing.
    fn check_room(&mut self) -> Result<(), String> {
        let used = self.feed.usage();
        let quota = self.setup.quota;
        let Some(limit) = quota.max_bytes.filter(|_| quota.max_files.is_none_or(|most| used.files < most)) else {
            return Ok(());
        };
        let room = limit.checked_sub(used.bytes).ok_or("the owner has more than the quota")?;
        for _ in 0..2 {
            self.upload_last(room)?.map_err(|error| format!("{room} bytes have no room beside {used:?}: {error}"))?;
        }
        match self.upload_last(room + 1)? {
            Err(error) if error.kind() == ErrorKind::QuotaExceeded && error.status() == 413 => {}
            result => return Err(format!("one byte more than the quota: {result:?}")),
        }
        if self.unfinished()? != (0, 0) {
            return Err("a refused upload has left something".to_owned());
        }
        self.read_feed(0)?;
        match self.feed.usage().bytes == limit {
            true => Ok(()),
            false => Err(format!("the owner has {:?} of {limit}", self.feed.usage())),
        }
    }

    /// Uploads a file of the user that no call writes.
    fn upload_last(&mut self, size: u64) -> Result<Result<FileInfo>, String> {
        let storage = self.opened(0)?.storage(By::User).clone();
        let result = Arc::new(parking_lot::Mutex::new(None));
        let slot = Arc::clone(&result);
        let data = vec![b'x'; usize::try_from(size).map_err(|error| error.to_string())?];
        let upload = async move {
            let uploaded = storage.upload(BUCKET, "last.txt", data, UploadOptions::new()).await;
            *slot.lock() = Some(uploaded);
        };
        drop(self.clients[0].spawn(upload));
        self.clients[0].drive();
        loop {
            if let Some(uploaded) = result.lock().take() {
                return Ok(uploaded);
            }
            self.step()?;
        }
    }
}
