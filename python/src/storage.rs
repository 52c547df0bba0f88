//! Files: storing, reading, listing and serving (SPEC 4.4), and the record `RepairReport`.

use std::{ops::Range, sync::Arc};

use pyo3::{prelude::*, types::PyDict};
use townsquare::{
    Operation,
    storage::{Files, ListFiles, Overwrite, UrlMethod, UrlOptions},
};

use crate::{
    area::area,
    argument::{BytesArg, FlagArg, IdArg, IntArg, LIMIT_RANGE, PathArg, SecondsArg, TextArg, optional_text},
    callback::Callback,
    client_share::ProcessClient,
    errors::{Failure, expected},
    file_info::FileInfo,
    files::{NewFile, PyContent},
    headers::HeadersArg,
    iteration::iteration,
    record::record,
    request_body::{BodyArg, Handler, answer_request, read_source},
    run::{MethodResult, Mode, NoValue},
    upload_options::{UploadArg, UploadArgs},
};

area! {
    "Storage",
    #[doc = text_of!(Storage)]
    Storage,
    #[doc = text_of!(AsyncStorage)]
    AsyncStorage
}

/// The size from which an upload releases the GIL at once.
const LARGE: usize = 64 * 1_024;

#[pymethods]
impl Methods {
    #[doc = text_of!(Storage.upload)]
    #[pyo3(signature = (bucket, path, data, **options))]
    #[pyo3(
        text_signature = "($self, bucket, path, data, *, cache_control=3600, upsert=True, content_type=None, metadata=None, if_match=None, verify=False)"
    )]
    fn upload<'py>(
        this: &Bound<'py, Self>,
        py: Python<'py>,
        bucket: TextArg,
        path: TextArg,
        data: UploadArg,
        options: Option<&Bound<'py, PyDict>>,
    ) -> MethodResult<'py> {
        let args = UploadArgs::read("upload", options)?;
        let runner = &this.get().runner;
        let data = match data {
            UploadArg::Bytes(data) => data.shared(),
            UploadArg::Chunks(chunks) => {
                let names = || Ok((text(bucket, "bucket")?, text(path, "path")?));
                let (bucket, path) =
                    names().map_err(|failure: Failure| failure.into_exception(py, Some(Operation::Upload)))?;
                let upload = match runner.mode() {
                    Mode::Sync => "upload_chunks",
                    Mode::Async => "upload_chunks_async",
                };
                return read_source(py, upload, (this, bucket, path, chunks, options));
            }
        };
        let is_large = data.len() > LARGE;
        let upload = |client: Arc<ProcessClient>| async move {
            let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
            Ok(FileInfo::from(client.get()?.storage().upload(&bucket, &path, data, args.value()?).await?))
        };
        if is_large {
            runner.run_detached(py, Operation::Upload, upload)
        } else {
            runner.run_write(py, Operation::Upload, upload)
        }
    }

    #[doc = text_of!(Storage.secure_upload)]
    #[pyo3(signature = (bucket, path, data, user_id, **options))]
    #[pyo3(
        text_signature = "($self, bucket, path, data, user_id, *, cache_control=3600, upsert=True, content_type=None, metadata=None, if_match=None, verify=False)"
    )]
    fn secure_upload<'py>(
        &self,
        py: Python<'py>,
        bucket: TextArg,
        path: TextArg,
        data: BytesArg,
        user_id: IdArg,
        options: Option<&Bound<'py, PyDict>>,
    ) -> MethodResult<'py> {
        let (options, data) = (UploadArgs::read("secure_upload", options)?, data.shared());
        self.runner.run_detached(py, Operation::SecureUpload, |client| async move {
            let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
            let user_id = user_id.value("user_id").map_err(Failure::of_file)?;
            let storage = client.get()?.storage();
            Ok(FileInfo::from(storage.secure_upload(&bucket, &path, data, user_id, options.value()?).await?))
        })
    }

    #[doc = text_of!(Storage.upload_from)]
    #[pyo3(signature = (bucket, path, source, *, progress = None, **options))]
    #[pyo3(
        text_signature = "($self, bucket, path, source, *, progress=None, cache_control=3600, upsert=True, content_type=None, metadata=None, if_match=None, verify=False)"
    )]
    fn upload_from<'py>(
        &self,
        py: Python<'py>,
        bucket: TextArg,
        path: TextArg,
        source: PathArg,
        progress: Option<Callback>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> MethodResult<'py> {
        let options = UploadArgs::read("upload_from", options)?;
        self.runner.run_transfer(py, Operation::UploadFrom, progress, |client, progress| async move {
            let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
            let (storage, options) = (client.get()?.storage(), options.value()?);
            let report = |done, total| progress.report(done, total);
            Ok(FileInfo::from(storage.upload_from(&bucket, &path, source.0, options, report).await?))
        })
    }

    #[doc = text_of!(Storage.download)]
    #[pyo3(signature = (bucket, path, *, range = None))]
    fn download<'py>(
        &self,
        py: Python<'py>,
        bucket: TextArg,
        path: TextArg,
        range: Option<RangeArg>,
    ) -> MethodResult<'py> {
        self.runner.run(py, Operation::Download, |client| async move {
            let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
            let storage = client.get()?.storage();
            Ok(PyContent(match range.map(RangeArg::value).transpose()? {
                Some(range) => storage.download_range(&bucket, &path, range).await?,
                None => storage.download(&bucket, &path).await?,
            }))
        })
    }

    #[doc = text_of!(Storage.download_to)]
    #[pyo3(signature = (bucket, path, target, *, progress = None))]
    fn download_to<'py>(
        &self,
        py: Python<'py>,
        bucket: TextArg,
        path: TextArg,
        target: PathArg,
        progress: Option<Callback>,
    ) -> MethodResult<'py> {
        self.runner.run_transfer(py, Operation::DownloadTo, progress, |client, progress| async move {
            let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
            let report = |done, total| progress.report(done, total);
            Ok(FileInfo::from(client.get()?.storage().download_to(&bucket, &path, target.0, report).await?))
        })
    }

    #[doc = text_of!(Storage.delete)]
    fn delete<'py>(&self, py: Python<'py>, bucket: TextArg, path: TextArg) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::DeleteFile, |client| async move {
            let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
            client.get()?.storage().delete(&bucket, &path).await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Storage.delete_prefix)]
    fn delete_prefix<'py>(&self, py: Python<'py>, bucket: TextArg, prefix: TextArg) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::DeletePrefix, |client| async move {
            let (bucket, prefix) = (text(bucket, "bucket")?, text(prefix, "prefix")?);
            Ok(client.get()?.storage().delete_prefix(&bucket, &prefix).await?)
        })
    }

    #[doc = text_of!(Storage.exists)]
    fn exists<'py>(&self, py: Python<'py>, bucket: TextArg, path: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::FileExists, |client| async move {
            let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
            Ok(client.get()?.storage().exists(&bucket, &path).await?)
        })
    }

    #[doc = text_of!(Storage.stat)]
    fn stat<'py>(&self, py: Python<'py>, bucket: TextArg, path: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::StatFile, |client| async move {
            let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
            Ok(FileInfo::from(client.get()?.storage().stat(&bucket, &path).await?))
        })
    }

    #[doc = text_of!(Storage.list)]
    #[pyo3(signature = (bucket, prefix = None, limit = IntArg::of(100), *, after = None))]
    #[pyo3(text_signature = "($self, bucket, prefix='', limit=100, *, after=None)")]
    fn list<'py>(
        &self,
        py: Python<'py>,
        bucket: TextArg,
        prefix: Option<TextArg>,
        limit: IntArg<u32>,
        after: Option<TextArg>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::ListFiles, |client| async move {
            let bucket = text(bucket, "bucket")?;
            let prefix = prefix.map_or(Ok(String::new()), |prefix| text(prefix, "prefix"))?;
            let limit = limit.value("limit", LIMIT_RANGE).map_err(Failure::of_file)?;
            let mut files = ListFiles::with_prefix(prefix).limit(limit);
            if let Some(after) = optional_text(after, "after").map_err(Failure::of_file)? {
                files = files.after(after);
            }
            let page = client.get()?.storage().list(&bucket, files).await?;
            Ok(page.into_iter().map(FileInfo::from).collect::<Vec<_>>())
        })
    }

    #[doc = text_of!(Storage.iter)]
    #[pyo3(signature = (bucket, prefix = None, page_size = IntArg::of(100)))]
    #[pyo3(text_signature = "($self, bucket, prefix='', page_size=100)")]
    fn iter<'py>(
        &self,
        py: Python<'py>,
        bucket: TextArg,
        prefix: Option<TextArg>,
        page_size: IntArg<u32>,
    ) -> MethodResult<'py> {
        let files = || {
            let bucket = text(bucket, "bucket")?;
            let prefix = prefix.map_or(Ok(String::new()), |prefix| text(prefix, "prefix"))?;
            let page_size = page_size.value("page_size", LIMIT_RANGE).map_err(Failure::of_file)?;
            Ok(self.runner.client().get()?.storage().iter(&bucket, &prefix, page_size))
        };
        let files = files().map_err(|failure: Failure| failure.into_exception(py, Some(Operation::ListFiles)))?;
        NextFile::iterator(py, files, &self.runner)
    }

    #[doc = text_of!(Storage.copy)]
    #[pyo3(signature = (bucket, source, target, *, upsert = FlagArg(false)))]
    #[pyo3(text_signature = "($self, bucket, source, target, *, upsert=False)")]
    fn copy<'py>(
        &self,
        py: Python<'py>,
        bucket: TextArg,
        source: TextArg,
        target: TextArg,
        upsert: FlagArg,
    ) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::CopyFile, move |client| async move {
            let (bucket, source, target) = (text(bucket, "bucket")?, text(source, "source")?, text(target, "target")?);
            Ok(FileInfo::from(client.get()?.storage().copy(&bucket, &source, &target, overwrite(upsert)).await?))
        })
    }

    #[doc = text_of!(Storage.move)]
    #[pyo3(name = "move", signature = (bucket, source, target, *, upsert = FlagArg(false)))]
    #[pyo3(text_signature = "($self, bucket, source, target, *, upsert=False)")]
    fn move_file<'py>(
        &self,
        py: Python<'py>,
        bucket: TextArg,
        source: TextArg,
        target: TextArg,
        upsert: FlagArg,
    ) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::MoveFile, move |client| async move {
            let (bucket, source, target) = (text(bucket, "bucket")?, text(source, "source")?, text(target, "target")?);
            Ok(FileInfo::from(client.get()?.storage().move_file(&bucket, &source, &target, overwrite(upsert)).await?))
        })
    }

    #[doc = text_of!(Storage.open)]
    #[pyo3(signature = (bucket, path, mode = "rb", **options))]
    #[pyo3(
        text_signature = "($self, bucket, path, mode='rb', *, cache_control=3600, upsert=True, content_type=None, metadata=None, if_match=None, verify=False)"
    )]
    fn open<'py>(
        &self,
        py: Python<'py>,
        bucket: TextArg,
        path: TextArg,
        mode: &str,
        options: Option<&Bound<'py, PyDict>>,
    ) -> MethodResult<'py> {
        let (has_options, args) =
            (options.is_some_and(|options| !options.is_empty()), UploadArgs::read("open", options)?);
        let runner = self.runner.clone();
        let opened = match mode {
            "wb" => self.runner.run(py, Operation::OpenWriter, |client| async move {
                let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
                Ok(NewFile::Writer(client.get()?.storage().writer(&bucket, &path, args.value()?).await?, runner))
            }),
            _ => {
                let is_read = mode == "rb" && !has_options;
                self.runner.run(py, Operation::OpenReader, move |client| async move {
                    if !is_read {
                        return Err(Failure::invalid_input("mode is 'rb', or 'wb' with options of an upload").of_file());
                    }
                    let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
                    Ok(NewFile::Reader(client.get()?.storage().reader(&bucket, &path).await?, runner))
                })
            }
        }?;
        match self.runner.mode() {
            Mode::Sync => Ok(opened),
            Mode::Async => py.import("townsquare._files")?.getattr("AsyncFileOpening")?.call1((opened,)),
        }
    }

    #[doc = text_of!(Storage.signed_url)]
    #[pyo3(signature = (bucket, path, *, expires_in = SecondsArg::of(3_600), method = None, max_size = None, content_type = None))]
    #[pyo3(
        text_signature = "($self, bucket, path, *, expires_in=3600, method='GET', max_size=None, content_type=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "the optional ones by keyword")]
    fn signed_url<'py>(
        &self,
        py: Python<'py>,
        bucket: TextArg,
        path: TextArg,
        expires_in: SecondsArg,
        method: Option<TextArg>,
        max_size: Option<IntArg<u64>>,
        content_type: Option<TextArg>,
    ) -> MethodResult<'py> {
        self.runner.run(py, Operation::SignUrl, move |client| async move {
            let (bucket, path) = (text(bucket, "bucket")?, text(path, "path")?);
            let method = method.map_or(Ok(UrlMethod::Get), url_method)?;
            let mut options = UrlOptions::new(expires_in.value("expires_in").map_err(Failure::of_file)?);
            if let Some(max_size) = max_size {
                options = options.max_size(max_size.value("max_size", "a number of bytes").map_err(Failure::of_file)?);
            }
            if let Some(content_type) = content_type {
                options = options.content_type(text(content_type, "content_type")?);
            }
            Ok(client.get()?.storage().signed_url(&bucket, &path, method, options).await?)
        })
    }

    #[doc = text_of!(Storage.rotate_url_key)]
    fn rotate_url_key<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::RotateUrlKey, |client| async move {
            client.get()?.storage().rotate_url_key().await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Storage.handle_file)]
    #[pyo3(signature = (method, target, body = BodyArg::EMPTY, headers = None))]
    #[pyo3(text_signature = "($self, method, target, body=b'', headers=None)")]
    fn handle_file<'py>(
        this: &Bound<'py, Self>,
        method: TextArg,
        target: TextArg,
        body: BodyArg,
        headers: Option<HeadersArg>,
    ) -> MethodResult<'py> {
        let request = (method, target, headers);
        answer_request(this.as_any(), &this.get().runner, Handler::File, request, body)
    }

    #[doc = text_of!(Storage.export_files)]
    #[pyo3(signature = (target, *, progress = None))]
    fn export_files<'py>(&self, py: Python<'py>, target: PathArg, progress: Option<Callback>) -> MethodResult<'py> {
        self.runner.run_transfer(py, Operation::ExportFiles, progress, |client, progress| async move {
            let report = |done, total| progress.report(done, total);
            Ok(client.get()?.storage().export_files(target.0, report).await?)
        })
    }

    #[doc = text_of!(Storage.repair)]
    fn repair<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::Repair, |client| async move {
            Ok(RepairReport::from(client.get()?.storage().repair().await?))
        })
    }
}

iteration!(NextFile: Files as townsquare::storage::FileInfo, Operation::ListFiles, FileInfo::from, FileIterator, AsyncFileIterator);

/// The text of a bucket, a path or a prefix.
fn text(text: TextArg, name: &str) -> Result<String, Failure> {
    text.value(name).map_err(Failure::of_file)
}

fn url_method(method: TextArg) -> Result<UrlMethod, Failure> {
    let name = text(method, "method")?;
    let known = UrlMethod::ALL.into_iter().find(|known| known.as_str() == name);
    known.ok_or_else(|| Failure::invalid_input("method is 'GET' or 'PUT'").of_file())
}

/// A range of bytes: `(start, end)`, where the end `None` is that of the file.
struct RangeArg(IntArg<u64>, Option<IntArg<u64>>);

impl RangeArg {
    fn value(self) -> Result<Range<u64>, Failure> {
        let position = |value: IntArg<u64>| value.value("range", "two positions from 0").map_err(Failure::of_file);
        Ok(position(self.0)?..self.1.map_or(Ok(u64::MAX), position)?)
    }
}

impl<'py> FromPyObject<'_, 'py> for RangeArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<RangeArg> {
        match value.extract() {
            Ok((start, end)) => Ok(RangeArg(start, end)),
            Err(_) => Err(expected("two positions (start, end)", &value)),
        }
    }
}

fn overwrite(FlagArg(upsert): FlagArg) -> Overwrite {
    if upsert { Overwrite::Replace } else { Overwrite::Refuse }
}

record! {
    #[doc = text_of!(RepairReport)]
    RepairReport(townsquare::storage::RepairReport) [] as report,
    hash [finished, orphans_removed, rows_removed] => {
        /// The unfinished writes and deletes that were finished or undone.
        finished: "int" = report.finished,
        /// The objects without a row, and the abandoned staging files, that were removed.
        orphans_removed: "int" = report.orphans_removed,
        /// The rows that were removed because their bytes had vanished.
        rows_removed: "int" = report.rows_removed,
        /// `BUCKET/PATH` of each file with bytes of another size or version than its row says. They stay, and are never served.
        mismatched: "list[str]" = &report.mismatched,
    }
}
