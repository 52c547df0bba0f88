//! One moment of the files: the rows as they are at that moment, with the bytes of each.
//!
//! Invariant: the bytes of every object of a [`Moment`] are held, so that writers may replace, move and delete the object. An
//! object with other bytes than its row says is named as damaged.

use std::collections::BTreeSet;

use super::{
    Storage,
    buckets::{Buckets, NO_PLACE, target_of},
    core::LOCK_TIMEOUT,
    damaged_files::DamagedFiles,
    rows::{self, key_of},
    statements as sql,
};
use crate::{
    database::{DatabaseMoment, Row},
    error::{Error, Result},
    model::StoredObject,
    objects::{Held, Hold, ObjectKey, ObjectReader},
    threads::BoxedFuture,
};

/// How often a moment is taken because files changed before they were held. From the third time on the paths of these files are
/// locked meanwhile, so each time fewer paths can change.
const TRIES: usize = 50;

/// The files at one moment.
pub(super) struct Moment {
    /// The database at this moment; `None` after its last reader took it.
    pub(super) database: Option<DatabaseMoment>,
    /// The files whose bytes are objects, without the damaged ones.
    pub(super) objects: Vec<StoredObject>,
    pub(super) damaged: DamagedFiles,
    hold: Option<Hold>,
}

impl Storage {
    /// Takes a moment at which the bytes of all objects are held.
    ///
    /// # Errors
    /// `Unavailable` (503) if files change faster than they can be held.
    pub(super) fn take_moment(&self) -> BoxedFuture<'_, Result<Moment>> {
        Box::pin(async move {
            let (mut hold, mut busy) = (None, BTreeSet::new());
            for attempt in 0..TRIES {
                let (this, keys): (_, Vec<ObjectKey>) = (self.clone(), busy.iter().cloned().collect());
                let take = async move {
                    let take = this.try_moment(&keys, hold);
                    if keys.is_empty() { take.await } else { this.core.with_locks(&keys, LOCK_TIMEOUT, take).await }
                };
                let (moment, changed) = self.core.run(take).await?;
                if changed.is_empty() {
                    return Ok(moment);
                }
                // The first time takes long, because every object is held in it.
                if attempt > 0 {
                    busy.extend(changed);
                }
                hold = moment.hold;
            }
            Err(Error::file(503, "Files change faster than their bytes can be held"))
        })
    }

    /// Takes a moment, with what `hold` has already. Returns the keys of the objects that changed before they were held too.
    /// Requires the locks of `locked`.
    async fn try_moment(&self, locked: &[ObjectKey], hold: Option<Hold>) -> Result<(Moment, Vec<ObjectKey>)> {
        for key in locked {
            self.core.recover_locked(key).await?;
        }
        let mut moment = self.read_moment().await?;
        moment.hold = hold;
        let mut changed = Vec::new();
        for object in std::mem::take(&mut moment.objects) {
            match self.hold_object(&object, &mut moment.hold).await? {
                HoldOutcome::Held => moment.objects.push(object),
                HoldOutcome::Changed => changed.push(key_of(&object)),
                HoldOutcome::Damaged(reason) => moment.damaged.add(&object.bucket, &object.path, &reason),
            }
        }
        Ok((moment, changed))
    }

    /// Takes a moment of the database.
    async fn read_moment(&self) -> Result<Moment> {
        let mut database = self.core.service.moment().await?;
        let mut objects = database.scan(&sql::ALL_OBJECTS, Vec::new(), rows::stored_object).await?;
        // Later than the moment: a bucket is never removed.
        let buckets = Buckets::stored(&self.core.service).await?;
        let mut damaged = DamagedFiles::default();
        objects.retain(|object| {
            let is_file = target_of(&buckets, &object.bucket, &object.path).is_ok() && is_name(held_name(object));
            if !is_file {
                damaged.add(&object.bucket, &object.path, NO_PLACE);
            }
            is_file
        });
        Ok(Moment { database: Some(database), objects, damaged, hold: None })
    }

    /// Holds the bytes of an object, unless they are held already.
    async fn hold_object(&self, object: &StoredObject, hold: &mut Option<Hold>) -> Result<HoldOutcome> {
        let (key, name) = (key_of(object), held_name(object));
        let hold = match hold {
            Some(hold) if hold.has(name) => return Ok(HoldOutcome::Held),
            Some(hold) => hold,
            None => hold.insert(self.core.objects.begin_hold().await?),
        };
        let held = hold.add(&key, name, object.size).await?;
        // After it was held: if the row has not changed and nobody writes the object, the held bytes belong to the row.
        let values = [key.bucket.as_str().into(), key.path.as_str().into()];
        let version = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<bool>(1)?));
        let found = self.core.service.fetch_optional(&sql::VERSION, &values, version).await?;
        if found.is_none_or(|(etag, has_intent)| etag != object.etag || has_intent) {
            hold.remove(name).await?;
            return Ok(HoldOutcome::Changed);
        }
        Ok(match held {
            Held::Yes => HoldOutcome::Held,
            Held::Gone => HoldOutcome::Damaged("the bytes of the file are gone".to_owned()),
            Held::OtherSize(size) => {
                HoldOutcome::Damaged(format!("The stored bytes are {size}, but the file has {}", object.size))
            }
        })
    }
}

/// What became of an attempt to hold an object.
enum HoldOutcome {
    Held,
    /// A writer changed it meanwhile.
    Changed,
    /// The store does not have the bytes of the row.
    Damaged(String),
}

impl Moment {
    /// Opens the bytes of an object of this moment.
    pub(super) async fn open(&self, object: &StoredObject) -> Result<ObjectReader> {
        let found = match &self.hold {
            Some(hold) => hold.open(held_name(object)).await?,
            None => None,
        };
        found.ok_or_else(|| Error::file(500, "The held bytes of a file were removed meanwhile"))
    }

    /// Ends the hold.
    ///
    /// # Errors
    /// `Internal` (500), naming the files, if there are damaged ones; the errors of the store.
    pub(super) async fn end(self, what_lacks_them: &str) -> Result<()> {
        if let Some(hold) = self.hold {
            hold.end().await?;
        }
        self.damaged.into_result(what_lacks_them)
    }
}

/// Whether a hold can have the name.
fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The name under which the bytes of an object are held. Copies and moves of a file share its digest.
fn held_name(object: &StoredObject) -> &str {
    if object.digest.is_empty() { &object.etag } else { &object.digest }
}
