// Part of townsquare.hpp, which programs include: the operations on files.

#ifndef TOWNSQUARE_STORAGE_HPP
#define TOWNSQUARE_STORAGE_HPP

#include <townsquare/discovery.hpp>
#include <townsquare/files.hpp>

namespace townsquare {

/// The options of an upload.
struct UploadOptions {
    /// Absent: guessed from the name and the content.
    Text content_type = {};
    /// The etag that the file must have now, "" for no file; else TSQ_CONFLICT. Absent: not checked.
    Text if_match = {};
    Metadata metadata = {};
    /// How long a cache may keep the file. Absent: 3,600 s.
    std::optional<std::chrono::seconds> cache_control = {};
    /// Whether an existing file is replaced; otherwise it fails the upload with TSQ_ALREADY_EXISTS.
    bool upsert = true;
    /// Whether the content must be a signed file whose signature verifies.
    bool verify = false;
};

/// What a PUT by a signed URL may store.
struct UrlLimits {
    /// The largest size in bytes. Absent: the option max_file_size is the limit.
    std::optional<std::uint64_t> max_size = {};
    /// The media type: a request with another Content-Type is refused. Absent: any.
    Text content_type = {};
};

/// Receives `done` of `total`. It returns true to go on; false cancels the call, which throws TSQ_CANCELLED. An exception
/// cancels too, and the call throws it on.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;
/// Writes up to `size` bytes to `buffer` and returns their number; 0 is the end. An exception cancels the call, which throws
/// it on.
using ByteSource = std::function<std::size_t(char *buffer, std::size_t size)>;
/// Receives the next bytes, which live until it returns. An exception cancels the call, which throws it on.
using ByteSink = std::function<void(std::string_view bytes)>;

namespace detail {

class BorrowedUploadOptions {
public:
    explicit BorrowedUploadOptions(const UploadOptions &options) {
        for (const auto &[name, value] : options.metadata) metadata_.push_back({text(name), text(value)});
        options_.size = sizeof options_;
        options_.content_type = options.content_type.borrowed();
        options_.if_match = options.if_match.borrowed();
        options_.metadata = metadata_.data();
        options_.metadata_len = metadata_.size();
        options_.has_cache_control = options.cache_control.has_value();
        options_.cache_control = seconds(options.cache_control.value_or(std::chrono::seconds(0)));
        options_.insert_only = !options.upsert;
        options_.verify = options.verify;
    }
    BorrowedUploadOptions(const BorrowedUploadOptions &) = delete;
    BorrowedUploadOptions &operator=(const BorrowedUploadOptions &) = delete;
    BorrowedUploadOptions(BorrowedUploadOptions &&) = delete;
    BorrowedUploadOptions &operator=(BorrowedUploadOptions &&) = delete;
    ~BorrowedUploadOptions() = default;
    [[nodiscard]] const tsq_upload_options *get() const noexcept { return &options_; }

private:
    /// A time that no std::uint32_t holds becomes one that the library refuses.
    static std::uint32_t seconds(std::chrono::seconds time) noexcept {
        const auto count = time.count();
        return count < 0 || count > INT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(count);
    }

    std::vector<tsq_file_metadata> metadata_;
    tsq_upload_options options_ = {};
};

/// A function that C calls during one call, and the exception that it threw.
template <typename Function>
class Callback {
public:
    explicit Callback(const Function &function) noexcept : function_(function) {}
    [[nodiscard]] void *data() noexcept { return this; }
    /// Runs a call that may run the function; an exception of the function comes first.
    template <typename Call>
    auto run(Call call) {
#ifdef TSQ_NO_EXCEPTIONS
        return call();
#else
        try {
            return call();
        } catch (const Error &) {
            if (thrown_) std::rethrow_exception(thrown_);
            throw;
        }
#endif
    }
    /// Runs the function for C: 0 goes on. `body` returns whether to go on.
    template <typename Body>
    static int answer(void *data, Body body) noexcept {
        auto &self = *static_cast<Callback *>(data);
        TSQ_DETAIL_TRY {
            return body(self.function_) ? 0 : 1;
        } TSQ_DETAIL_CATCH_ALL {
            self.thrown_ = std::current_exception();
            return 1;
        }
    }

private:
    const Function &function_;
    std::exception_ptr thrown_;
};

inline int call_progress(std::uint64_t done, std::uint64_t total, void *data) noexcept {
    return Callback<Progress>::answer(data, [&](const Progress &progress) { return progress(done, total); });
}

inline int call_source(std::uint8_t *buffer, std::size_t size, std::size_t *read, void *data) noexcept {
    return Callback<ByteSource>::answer(data, [&](const ByteSource &source) {
        *read = source(reinterpret_cast<char *>(buffer), size);
        return true;
    });
}

inline int call_sink(const std::uint8_t *bytes, std::size_t size, void *data) noexcept {
    return Callback<ByteSink>::answer(data, [&](const ByteSink &sink) {
        sink({reinterpret_cast<const char *>(bytes), size});
        return true;
    });
}

}  // namespace detail

namespace detail {

/// Whether a T owns the bytes of its data(). A view is trivially copyable; std::array is, too, and has a tuple_size.
template <typename T, typename = void>
inline constexpr bool owns_bytes = !std::is_trivially_copyable_v<T>;
template <typename T>
inline constexpr bool owns_bytes<T, std::void_t<decltype(std::tuple_size<T>::value)>> = true;

}  // namespace detail

/// The body of a FileRequest: a view, made of the same as Bytes.
class RequestBody : public Bytes {
public:
    using Bytes::Bytes;
    RequestBody() = default;
    RequestBody(Bytes bytes) noexcept : Bytes(bytes) {}
    // The request would keep a view of a temporary: name the string, vector or array first.
    template <typename T, typename = std::enable_if_t<detail::owns_bytes<T>>>
    RequestBody(const T &&) = delete;
};

/// An HTTP request, for Storage::handle_file or Client::handle_request.
struct FileRequest {
    std::string method = "GET";
    /// For a file `/BUCKET/PATH`, with a query for a signed URL.
    std::string target = {};
    /// `authorization` names the caller.
    std::vector<std::pair<std::string, std::string>> headers = {};
    /// The body of a PUT or POST; a view of bytes that live longer than the request.
    RequestBody body = {};
    /// Gives the body in pieces, in place of `body`.
    ByteSource body_source = {};
};

/// A response for an HTTP request. It can be moved; views of it live as long as it.
class FileResponse {
public:
    using Handle = detail::Handle<tsq_file_response, tsq_file_response_free>;

    explicit FileResponse(Handle handle) noexcept : handle_(std::move(handle)) {}
    [[nodiscard]] std::uint16_t status() const noexcept { return handle_->status; }
    [[nodiscard]] std::vector<HttpResponse::Header> headers() const & {
        std::vector<HttpResponse::Header> headers(handle_->headers_len);
        for (std::size_t i = 0; i < headers.size(); i++) {
            headers[i] = {detail::view(handle_->headers[i].name), detail::view(handle_->headers[i].value)};
        }
        return headers;
    }
    // Views of a temporary would dangle: name the response first.
    [[nodiscard]] std::vector<HttpResponse::Header> headers() const && = delete;
    [[nodiscard]] std::uint64_t body_size() const noexcept { return handle_->body_size; }
    /// Reads the next bytes of the body, up to `size`, and returns their number; 0 is the end.
    [[nodiscard]] std::size_t read(void *buffer, std::size_t size) {
        return detail::filled([&](auto out, auto err) {
            return tsq_file_response_read(get(), static_cast<std::uint8_t *>(buffer), size, out, err);
        });
    }
    /// Reads the rest of the body.
    [[nodiscard]] std::string read_all() {
        std::string body;
        for (char buffer[65536];;) {
            const std::size_t length = read(buffer, sizeof buffer);
            if (length == 0) return body;
            body.append(buffer, length);
        }
    }

    [[nodiscard]] tsq_file_response *get() const & noexcept { return handle_.get(); }
    [[nodiscard]] tsq_file_response *get() const && = delete;

private:
    Handle handle_;
};

namespace detail {

/// Calls tsq_storage_handle_file or tsq_client_handle_request.
template <typename Function>
FileResponse handle_request(const tsq_client *client, const FileRequest &request, Function function) {
    const auto headers = http_headers(request.headers);
    Callback<ByteSource> callback(request.body_source);
    tsq_file_request borrowed{};
    borrowed.size = sizeof borrowed;
    borrowed.method = text(request.method);
    borrowed.target = text(request.target);
    borrowed.headers = headers.data();
    borrowed.headers_len = headers.size();
    borrowed.body = request.body.borrowed();
    borrowed.body_source = request.body_source ? call_source : nullptr;
    borrowed.body_user_data = callback.data();
    return callback.run([&] {
        return FileResponse(
            make<FileResponse::Handle>([&](auto out, auto err) { return function(client, &borrowed, out, err); }));
    });
}

}  // namespace detail

/// What Storage::repair did and found: a view.
class RepairReport {
public:
    using Handle = detail::Handle<tsq_repair_report, tsq_repair_report_free>;

    explicit RepairReport(const tsq_repair_report *report) noexcept : report_(report) {}
    [[nodiscard]] std::uint64_t finished() const noexcept { return report_->finished; }
    [[nodiscard]] std::uint64_t orphans_removed() const noexcept { return report_->orphans_removed; }
    [[nodiscard]] std::uint64_t rows_removed() const noexcept { return report_->rows_removed; }
    /// `BUCKET/PATH` of files whose bytes are not of the row's size or version.
    [[nodiscard]] std::vector<std::string_view> mismatched() const {
        std::vector<std::string_view> out;
        out.reserve(report_->mismatched_len);
        for (std::size_t i = 0; i < report_->mismatched_len; i++) out.push_back(detail::view(report_->mismatched[i]));
        return out;
    }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_repair_report_json(report_, out, err); });
    }

private:
    const tsq_repair_report *report_;
};

/// Operations on files: a view of the client.
class Storage {
public:
    explicit Storage(const tsq_client *client) noexcept : client_(client) {}

    /// Durable when it returns.
    Owned<FileInfo> upload(std::string_view bucket, std::string_view path, Bytes data, const UploadOptions &options = {}) const {
        const detail::BorrowedUploadOptions borrowed(options);
        return info([&](auto out, auto err) {
            return tsq_storage_upload(client_, detail::text(bucket), detail::text(path), data.borrowed(), borrowed.get(), out, err);
        });
    }
    /// Only if the caller is this user.
    Owned<FileInfo> secure_upload(std::string_view bucket, std::string_view path, Bytes data, std::string_view user_id,
                                  const UploadOptions &options = {}) const {
        const detail::BorrowedUploadOptions borrowed(options);
        return info([&](auto out, auto err) {
            return tsq_storage_secure_upload(client_, detail::text(bucket), detail::text(path), data.borrowed(),
                                             detail::text(user_id), borrowed.get(), out, err);
        });
    }
    /// Stores a file of the host, in bounded memory.
    Owned<FileInfo> upload_from(std::string_view bucket, std::string_view path, std::string_view source,
                                const UploadOptions &options = {}, const Progress &progress = {}) const {
        const detail::BorrowedUploadOptions borrowed(options);
        detail::Callback<Progress> callback(progress);
        return callback.run([&] {
            return info([&](auto out, auto err) {
                return tsq_storage_upload_from(client_, detail::text(bucket), detail::text(path), detail::text(source),
                                               borrowed.get(), called(progress), callback.data(), out, err);
            });
        });
    }
    /// Stores what `source` gives, in bounded memory.
    Owned<FileInfo> upload_stream(std::string_view bucket, std::string_view path, const ByteSource &source,
                                  const UploadOptions &options = {}) const {
        const detail::BorrowedUploadOptions borrowed(options);
        detail::Callback<ByteSource> callback(source);
        return callback.run([&] {
            return info([&](auto out, auto err) {
                return tsq_storage_upload_stream(client_, detail::text(bucket), detail::text(path),
                                                 source ? detail::call_source : nullptr, callback.data(), borrowed.get(), out, err);
            });
        });
    }
    /// The file changes when FileWriter::finish returns.
    [[nodiscard]] FileWriter open_writer(std::string_view bucket, std::string_view path, const UploadOptions &options = {}) const {
        const detail::BorrowedUploadOptions borrowed(options);
        return FileWriter(detail::make<FileWriter::Handle>([&](auto out, auto err) {
            return tsq_storage_open_writer(client_, detail::text(bucket), detail::text(path), borrowed.get(), out, err);
        }));
    }
    [[nodiscard]] Buffer download(std::string_view bucket, std::string_view path) const {
        return Buffer(detail::make<Buffer::Handle>([&](auto out, auto err) {
            return tsq_storage_download(client_, detail::text(bucket), detail::text(path), out, err);
        }));
    }
    /// The bytes from `start` to before `end`.
    [[nodiscard]] Buffer download_range(std::string_view bucket, std::string_view path, std::uint64_t start, std::uint64_t end) const {
        return Buffer(detail::make<Buffer::Handle>([&](auto out, auto err) {
            return tsq_storage_download_range(client_, detail::text(bucket), detail::text(path), start, end, out, err);
        }));
    }
    /// Writes a file to the host, in bounded memory: whole or not at all.
    Owned<FileInfo> download_to(std::string_view bucket, std::string_view path, std::string_view target,
                                const Progress &progress = {}) const {
        detail::Callback<Progress> callback(progress);
        return callback.run([&] {
            return info([&](auto out, auto err) {
                return tsq_storage_download_to(client_, detail::text(bucket), detail::text(path), detail::text(target),
                                               called(progress), callback.data(), out, err);
            });
        });
    }
    /// Gives a file to `target`, in bounded memory.
    Owned<FileInfo> download_stream(std::string_view bucket, std::string_view path, const ByteSink &target) const {
        detail::Callback<ByteSink> callback(target);
        return callback.run([&] {
            return info([&](auto out, auto err) {
                return tsq_storage_download_stream(client_, detail::text(bucket), detail::text(path),
                                                   target ? detail::call_sink : nullptr, callback.data(), out, err);
            });
        });
    }
    /// One version of the file, from beginning to end.
    [[nodiscard]] FileReader open_reader(std::string_view bucket, std::string_view path) const {
        return FileReader(detail::make<FileReader::Handle>([&](auto out, auto err) {
            return tsq_storage_open_reader(client_, detail::text(bucket), detail::text(path), out, err);
        }));
    }
    [[nodiscard]] Owned<FileInfo> stat(std::string_view bucket, std::string_view path) const {
        return info([&](auto out, auto err) {
            return tsq_storage_stat(client_, detail::text(bucket), detail::text(path), out, err);
        });
    }
    /// Whether a visible file has this path.
    [[nodiscard]] bool exists(std::string_view bucket, std::string_view path) const {
        bool found = false;
        detail::act([&](auto err) {
            return tsq_storage_exists(client_, detail::text(bucket), detail::text(path), &found, err);
        });
        return found;
    }
    /// The files whose path starts with `prefix` and follows `after`.
    [[nodiscard]] FileList list(std::string_view bucket, std::string_view prefix = {}, std::uint32_t limit = 100,
                                const Text &after = {}) const {
        return FileList(detail::make<FileList::Handle>([&](auto out, auto err) {
            return tsq_storage_list(client_, detail::text(bucket), detail::text(prefix), limit, after.borrowed(), out, err);
        }));
    }
    Owned<FileInfo> copy(std::string_view bucket, std::string_view source, std::string_view target,
                         tsq_overwrite overwrite = TSQ_OVERWRITE_REFUSE) const {
        return info([&](auto out, auto err) {
            return tsq_storage_copy(client_, detail::text(bucket), detail::text(source), detail::text(target), overwrite, out, err);
        });
    }
    Owned<FileInfo> move(std::string_view bucket, std::string_view source, std::string_view target,
                         tsq_overwrite overwrite = TSQ_OVERWRITE_REFUSE) const {
        return info([&](auto out, auto err) {
            return tsq_storage_move(client_, detail::text(bucket), detail::text(source), detail::text(target), overwrite, out, err);
        });
    }
    /// tsq_storage_delete: `delete` is a word of C++.
    void delete_file(std::string_view bucket, std::string_view path) const {
        detail::act([&](auto err) { return tsq_storage_delete(client_, detail::text(bucket), detail::text(path), err); });
    }
    /// Deletes the visible files whose path starts with `prefix`, 100 at a time, and returns their number.
    std::uint64_t delete_prefix(std::string_view bucket, std::string_view prefix) const {
        std::uint64_t count = 0;
        detail::act([&](auto err) {
            return tsq_storage_delete_prefix(client_, detail::text(bucket), detail::text(prefix), &count, err);
        });
        return count;
    }
    /// A target for handle_file that needs no session. The limits are for TSQ_URL_PUT.
    [[nodiscard]] std::string signed_url(std::string_view bucket, std::string_view path, tsq_url_method method,
                                         std::chrono::milliseconds expires_in, const UrlLimits &limits = {}) const {
        // A negative time becomes 0, which the library refuses.
        const auto millis = static_cast<std::uint64_t>(expires_in.count() < 0 ? 0 : expires_in.count());
        tsq_url_options options = {};
        options.size = sizeof options;
        options.content_type = limits.content_type.borrowed();
        options.has_max_size = limits.max_size.has_value();
        options.max_size = limits.max_size.value_or(0);
        return detail::json([&](auto out, auto err) {
            return tsq_storage_signed_url(client_, detail::text(bucket), detail::text(path), method, millis, &options, out, err);
        });
    }
    /// Ends every signed URL. A request that has begun goes on. For the service.
    void rotate_url_key() const {
        detail::act([this](auto err) { return tsq_storage_rotate_url_key(client_, err); });
    }
    /// Answers an HTTP request. A bad request gets a response too.
    [[nodiscard]] FileResponse handle_file(const FileRequest &request) const {
        return detail::handle_request(client_, request, tsq_storage_handle_file);
    }
    /// Writes every file to TARGET/BUCKET/PATH and returns their number. For the service.
    std::uint64_t export_files(std::string_view target, const Progress &progress = {}) const {
        detail::Callback<Progress> callback(progress);
        std::uint64_t count = 0;
        callback.run([&] {
            detail::act([&](auto err) {
                return tsq_storage_export_files(client_, detail::text(target), called(progress), callback.data(), &count, err);
            });
        });
        return count;
    }
    /// Finishes what a crash left and removes orphans. For the service.
    Owned<RepairReport> repair() const {
        return detail::owned<RepairReport>([this](auto out, auto err) { return tsq_storage_repair(client_, out, err); });
    }

private:
    template <typename Call>
    static Owned<FileInfo> info(Call call) {
        return detail::owned<FileInfo>(call);
    }
    static tsq_progress_callback called(const Progress &progress) noexcept {
        return progress ? detail::call_progress : nullptr;
    }

    const tsq_client *client_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_STORAGE_HPP
