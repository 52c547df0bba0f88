//! A Supabase project as the source of a move: its database at one moment, and the place of its files.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::try_join_all;

use super::{CREDENTIALS, Progress, has_usable_hash, on};
use crate::{
    config::{FilesLocation, SupabaseProject},
    database::{ProjectMoment, ProjectObject, TransferRow, tables},
    error::{Error, Result},
    model::{SupabaseCheck, SupabaseSkipped},
    objects::{ForeignObjects, ObjectKey},
    storage::{check_progress, foreign_files::TargetBuckets},
    threads::Runtime,
};

/// The faults of one kind that are named.
const NAMED: usize = 5;

/// The files that are looked for at a time.
const AT_ONCE: usize = 16;

/// A project that is read.
pub(super) struct Project {
    runtime: Arc<Runtime>,
    moment: ProjectMoment,
    buckets: TargetBuckets,
    place: Option<Arc<ForeignObjects>>,
}

/// The faults of files, by kind.
#[derive(Default)]
struct FileFaults {
    buckets: BTreeSet<String>,
    of_names: Named,
    of_bytes: Named,
}

/// The first faults of a kind, and the number of all.
#[derive(Default)]
struct Named {
    first: Vec<String>,
    all: usize,
}

impl Named {
    fn add(&mut self, fault: String) {
        self.all += 1;
        if self.first.len() < NAMED {
            self.first.push(fault);
        }
    }

    /// The sentences. `what` is the plural of the kind.
    fn sentences(self, what: &str) -> Vec<String> {
        let Named { first: mut sentences, all } = self;
        if all > sentences.len() {
            sentences.push(format!("{} further {what}", all - sentences.len()));
        }
        sentences
    }
}

/// Where the sizes of files are read.
#[derive(Debug, Clone, Copy)]
enum Sizes {
    /// In the place of the files.
    Bytes,
    /// In the rows, if they have one. The copy counts the bytes.
    Rows,
}

/// What a page of objects has.
enum Found {
    File(TransferRow),
    /// The place has no bytes, or not as many as the row says.
    Bytes(String),
    /// No file can have the name or the metadata.
    Name(String),
}

impl Project {
    /// Connects to the database. Calls no store. `buckets` is the option of the target.
    ///
    /// # Errors
    /// Those of [`ProjectMoment::take`]; `Config` for the place of the files and for the option `buckets`.
    pub(super) async fn open(project: &SupabaseProject, buckets: &str, runtime: &Arc<Runtime>) -> Result<Project> {
        let buckets = TargetBuckets::parse(buckets)?;
        let place = project.files_location()?.map(|place| open_place(place, &buckets, runtime)).transpose()?;
        let moment = ProjectMoment::take(project.database_url(), runtime.handle().clone()).await?;
        Ok(Project { runtime: Arc::clone(runtime), moment, buckets, place })
    }

    /// The name of the project as the source of a move.
    pub(super) fn id(&self) -> &str {
        self.moment.id()
    }

    pub(super) fn moment(&mut self) -> &mut ProjectMoment {
        &mut self.moment
    }

    pub(super) fn buckets(&self) -> &TargetBuckets {
        &self.buckets
    }

    /// The place of the files. `None` if the project has none.
    pub(super) fn place(&self) -> Option<Arc<ForeignObjects>> {
        self.place.clone()
    }

    /// Counts what the project has, and looks for its faults. Looks for the bytes of every file.
    pub(super) async fn survey(&mut self, progress: &mut Progress<'_>) -> Result<SupabaseCheck> {
        let found = self.moment.survey().await?;
        let skipped = SupabaseSkipped {
            users_without_row: found.users_without_row,
            deleted_users: found.deleted_users,
            banned_users: found.banned_users,
            unconfirmed_users: found.unconfirmed_users,
            unsupported_passwords: 0,
            folder_placeholders: found.placeholders,
            owners_of_files: 0,
        };
        let mut check = SupabaseCheck {
            rows: found.rows.into_iter().map(|(name, rows)| (name.to_owned(), rows)).collect(),
            files: 0,
            bytes: 0,
            skipped,
            published_buckets: Vec::new(),
            faults: found.faults,
            target: None,
            refusal: None,
        };
        // Tables that do not fit are not read.
        if check.rows.is_empty() && !check.faults.is_empty() {
            return Ok(check);
        }
        self.count_unusable_hashes(&mut check, progress).await?;
        self.survey_files(&mut check, found.private_buckets, progress).await?;
        Ok(check)
    }

    async fn count_unusable_hashes(&mut self, check: &mut SupabaseCheck, progress: &mut Progress<'_>) -> Result<()> {
        let Some(table) = tables().iter().find(|table| table.name == CREDENTIALS) else { return Ok(()) };
        self.moment.open_rows(table).await?;
        loop {
            let rows = self.moment.next_rows().await?;
            if rows.is_empty() {
                break;
            }
            check.skipped.unsupported_passwords +=
                rows.iter().filter(|row| !has_usable_hash(table, row)).count() as u64;
            check_progress(progress(0, 0))?;
        }
        if let Some(passwords) = check.rows.get_mut(CREDENTIALS) {
            *passwords -= check.skipped.unsupported_passwords.min(*passwords);
        }
        Ok(())
    }

    async fn survey_files(
        &mut self,
        check: &mut SupabaseCheck,
        private_buckets: Vec<String>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        self.moment.open_objects().await?;
        let (mut faults, mut count, is_place_named) = (FileFaults::default(), 0, self.place.is_some());
        if let Some(place) = self.place()
            && !on(&self.runtime, async move { place.exists().await }).await?
        {
            check.faults.push("the folder of the project's files does not exist".to_owned());
            self.place = None;
        }
        loop {
            let objects = self.moment.next_objects().await?;
            if objects.is_empty() {
                break;
            }
            count += objects.len();
            check.skipped.owners_of_files +=
                objects.iter().filter(|object| object.names_owner && object.owner.is_none()).count() as u64;
            let (known, unknown) = objects.into_iter().partition(|object| self.buckets.fault(&object.bucket).is_none());
            let unknown: Vec<ProjectObject> = unknown;
            faults.buckets.extend(unknown.into_iter().map(|object| object.bucket));
            for found in self.find(known, Sizes::Bytes).await? {
                match found {
                    Found::File(row) => {
                        check.files += 1;
                        check.bytes += row.file_size();
                    }
                    Found::Name(fault) => faults.of_names.add(fault),
                    Found::Bytes(fault) => faults.of_bytes.add(fault),
                }
            }
            check_progress(progress(0, 0))?;
        }
        if count > 0 && !is_place_named {
            let message =
                format!("the project has {count} files in Supabase Storage, and no place of the files is named");
            check.faults.push(message);
        }
        check.faults.extend(faults.buckets.iter().filter_map(|bucket| self.buckets.fault(bucket)));
        check.faults.extend(faults.of_names.sentences("names that no file can have"));
        check.faults.extend(faults.of_bytes.sentences("files without their bytes"));
        let is_published = |bucket: &String| self.buckets.is_public(bucket);
        check.published_buckets = private_buckets.into_iter().filter(is_published).collect();
        Ok(())
    }

    /// The rows of the next files. `None` at the end.
    ///
    /// # Errors
    /// `Internal`, naming the file, if the survey would have found a fault: the file has changed since.
    pub(super) async fn next_files(&mut self) -> Result<Option<Vec<TransferRow>>> {
        let objects = self.moment.next_objects().await?;
        if objects.is_empty() {
            return Ok(None);
        }
        let rows = self.find(objects, Sizes::Rows).await?.into_iter().map(|found| match found {
            Found::File(row) => Ok(row),
            Found::Bytes(fault) | Found::Name(fault) => Err(Error::file(500, fault)),
        });
        rows.collect::<Result<_>>().map(Some)
    }

    /// Checks objects.
    async fn find(&self, objects: Vec<ProjectObject>, sizes_from: Sizes) -> Result<Vec<Found>> {
        let mut all = Vec::with_capacity(objects.len());
        for objects in objects.chunks(AT_ONCE) {
            let sizes = objects.iter().map(|object| self.size_of(object, sizes_from));
            for (object, size) in objects.iter().zip(try_join_all(sizes).await?) {
                all.push(match size {
                    Ok(size) => self
                        .buckets
                        .row(object, size)
                        .map_or_else(|why| Found::Name(name_fault(object, &why)), Found::File),
                    Err(found) => found,
                });
            }
        }
        Ok(all)
    }

    /// The size of an object. With [`Sizes::Bytes`], its row and its bytes agree about it.
    async fn size_of(&self, object: &ProjectObject, sizes_from: Sizes) -> Result<Result<u64, Found>> {
        let stated = object.metadata["size"].as_u64();
        if let Err(why) = self.buckets.row(object, 0) {
            return Ok(Err(Found::Name(name_fault(object, &why))));
        }
        let Some(place) = self.place() else { return Ok(Ok(stated.unwrap_or_default())) };
        if let (Sizes::Rows, Some(stated)) = (sizes_from, stated) {
            return Ok(Ok(stated));
        }
        let key = ObjectKey { bucket: object.bucket.clone(), path: object.path.clone() };
        let stored = on(&self.runtime, async move { place.size(&key).await }).await?;
        let name = format!("{}/{}", object.bucket, object.path);
        Ok(match (stored, stated) {
            (None, _) => Err(Found::Bytes(format!("the bytes of {name} are missing"))),
            (Some(stored), Some(stated)) if stored != stated => {
                Err(Found::Bytes(format!("{name} has {stored} bytes, but {stated} in storage.objects")))
            }
            (Some(stored), _) => Ok(stored),
        })
    }
}

fn name_fault(object: &ProjectObject, why: &str) -> String {
    let name = format!("{}/{}", object.bucket, object.path);
    format!("no file can be {name:?}: {why}")
}

fn open_place(
    (location, is_each): (FilesLocation, bool),
    buckets: &TargetBuckets,
    runtime: &Arc<Runtime>,
) -> Result<Arc<ForeignObjects>> {
    let names = buckets.names().map(str::to_owned);
    ForeignObjects::open(location, is_each, names, runtime.handle()).map(Arc::new)
}
