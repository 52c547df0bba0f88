// Part of townsquare.hpp, which programs include: bytes, files that are read and written, and paths.

#ifndef TOWNSQUARE_FILES_HPP
#define TOWNSQUARE_FILES_HPP

#include <townsquare/base.hpp>

#include <functional>

namespace townsquare {

/// Bytes for the library: a view of text, or of a container of bytes such as std::vector<std::uint8_t> or
/// std::span<const std::byte>.
class Bytes {
public:
    Bytes() = default;
    /// Up to the NUL. A null pointer is no bytes.
    template <typename T, std::enable_if_t<std::is_same_v<T, const char *> || std::is_same_v<T, char *>, int> = 0>
    Bytes(const T &text) noexcept : Bytes(text == nullptr ? std::string_view() : std::string_view(text)) {}
    /// A literal, or a constant array: all its bytes, without one NUL at its end.
    template <std::size_t N>
    Bytes(const char (&bytes)[N]) noexcept : Bytes(bytes, bytes[N - 1] == '\0' ? N - 1 : N) {}
    // How much of a buffer is filled is unknown: pass a std::string_view with the length.
    template <std::size_t N>
    Bytes(char (&bytes)[N]) = delete;
    Bytes(std::nullptr_t) = delete;
    template <typename T, typename = std::enable_if_t<sizeof(*std::declval<const T &>().data()) == 1 && std::is_convertible_v<decltype(std::declval<const T &>().size()), std::size_t>>>
    Bytes(const T &bytes) noexcept : data_(reinterpret_cast<const std::uint8_t *>(bytes.data())), size_(bytes.size()) {}
    Bytes(const void *data, std::size_t size) noexcept : data_(static_cast<const std::uint8_t *>(data)), size_(size) {}

    /// A view for the C functions.
    [[nodiscard]] tsq_bytes borrowed() const noexcept { return {data_, size_}; }

private:
    const std::uint8_t *data_ = nullptr;
    std::size_t size_ = 0;
};

/// Bytes that it owns. It can be moved; views of it live as long as it.
class Buffer {
public:
    using Handle = detail::Handle<tsq_buffer, tsq_buffer_free>;

    explicit Buffer(Handle handle) noexcept : handle_(std::move(handle)) {}
    [[nodiscard]] const std::uint8_t *data() const & noexcept { return tsq_buffer_view(get()).ptr; }
    [[nodiscard]] std::size_t size() const noexcept { return tsq_buffer_view(get()).len; }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// The bytes as text.
    [[nodiscard]] std::string_view view() const & noexcept { return {reinterpret_cast<const char *>(data()), size()}; }
    // Views of a temporary would dangle: name the buffer first.
    [[nodiscard]] const std::uint8_t *data() const && = delete;
    [[nodiscard]] std::string_view view() const && = delete;
    /// A copy.
    [[nodiscard]] std::string str() const { return std::string(view()); }

    [[nodiscard]] const tsq_buffer *get() const & noexcept { return handle_.get(); }
    [[nodiscard]] const tsq_buffer *get() const && = delete;

private:
    Handle handle_;
};

/// Names and values that are stored with a file.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// What is known about a file: a view.
class FileInfo {
public:
    using Handle = detail::Handle<tsq_file_info, tsq_file_info_free>;

    explicit FileInfo(const tsq_file_info *file) noexcept : file_(file) {}
    [[nodiscard]] std::string_view bucket() const noexcept { return detail::view(file_->bucket); }
    [[nodiscard]] std::string_view path() const noexcept { return detail::view(file_->path); }
    [[nodiscard]] std::uint64_t size() const noexcept { return file_->size; }
    [[nodiscard]] std::string_view content_type() const noexcept { return detail::view(file_->content_type); }
    [[nodiscard]] std::chrono::seconds cache_control() const noexcept { return std::chrono::seconds(file_->cache_control); }
    /// The version: new with every write.
    [[nodiscard]] std::string_view etag() const noexcept { return detail::view(file_->etag); }
    /// A copy, sorted by name.
    [[nodiscard]] Metadata metadata() const {
        Metadata out;
        for (std::size_t i = 0; i < file_->metadata_len; i++) {
            out.emplace_back(detail::view(file_->metadata[i].name), detail::view(file_->metadata[i].value));
        }
        return out;
    }
    [[nodiscard]] std::optional<std::string_view> owner_id() const noexcept { return detail::optional_view(file_->owner_id); }
    [[nodiscard]] Timestamp updated_at() const noexcept { return detail::timestamp(file_->updated_at); }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_file_info_json(file_, out, err); });
    }

    [[nodiscard]] const tsq_file_info *get() const noexcept { return file_; }

private:
    const tsq_file_info *file_;
};

using FileListView = ListView<FileInfo, tsq_file_list, tsq_file_list_len, tsq_file_list_at>;
/// Files, in the order of their paths.
using FileList = List<FileListView, tsq_file_list, tsq_file_list_free, tsq_file_list_json>;

/// A file that is being written. Its destructor leaves nothing, unless finish() returned.
class FileWriter {
public:
    using Handle = detail::Handle<tsq_file_writer, tsq_file_writer_free>;

    explicit FileWriter(Handle handle) noexcept : handle_(std::move(handle)) {}
    void write(Bytes data) {
        detail::act([&](auto err) { return tsq_file_writer_write(get(), data.borrowed(), err); });
    }
    /// Makes the written bytes the file.
    Owned<FileInfo> finish() {
        return detail::owned<FileInfo>([this](auto out, auto err) { return tsq_file_writer_finish(get(), out, err); });
    }
    /// Discards what was written.
    void abort() noexcept { tsq_file_writer_abort(get()); }

    [[nodiscard]] tsq_file_writer *get() const & noexcept { return handle_.get(); }
    [[nodiscard]] tsq_file_writer *get() const && = delete;

private:
    Handle handle_;
};

namespace detail {

/// Runs a call that fills a buffer and returns the number of bytes.
template <typename Call>
std::size_t filled(Call call) {
    std::size_t length = 0;
    act([&](auto err) { return call(&length, err); });
    return length;
}

/// Runs a call that fills a buffer of `size` bytes and returns the bytes.
template <typename Call>
std::string piece(std::size_t size, Call call) {
    std::string bytes(size, '\0');
    bytes.resize(filled([&](auto out, auto err) { return call(reinterpret_cast<std::uint8_t *>(&bytes[0]), out, err); }));
    return bytes;
}

}  // namespace detail

/// A file that is being read: one version, also while others overwrite it.
class FileReader {
public:
    using Handle = detail::Handle<tsq_file_reader, tsq_file_reader_free>;

    explicit FileReader(Handle handle) noexcept : handle_(std::move(handle)) {}
    [[nodiscard]] FileInfo info() const & noexcept { return FileInfo(tsq_file_reader_info(get())); }
    // A view of a temporary would dangle: name the reader first.
    [[nodiscard]] FileInfo info() const && = delete;
    /// Reads the next bytes, up to `size`, and returns their number; 0 is the end.
    [[nodiscard]] std::size_t read(void *buffer, std::size_t size) {
        return detail::filled([&](auto out, auto err) {
            return tsq_file_reader_read(get(), static_cast<std::uint8_t *>(buffer), size, out, err);
        });
    }
    /// Reads the next bytes, up to `size`; none is the end.
    [[nodiscard]] std::string read(std::size_t size = 65536) {
        return detail::piece(size, [&](auto buffer, auto out, auto err) {
            return tsq_file_reader_read(get(), buffer, size, out, err);
        });
    }
    /// Reads `size` bytes from `offset`, or fewer at the end, and returns their number. Throws TSQ_INVALID_INPUT (400) for an offset
    /// beyond the end.
    [[nodiscard]] std::size_t read_at(std::uint64_t offset, void *buffer, std::size_t size) const {
        return detail::filled([&](auto out, auto err) {
            return tsq_file_reader_read_at(get(), offset, static_cast<std::uint8_t *>(buffer), size, out, err);
        });
    }
    [[nodiscard]] std::string read_at(std::uint64_t offset, std::size_t size) const {
        return detail::piece(size, [&](auto buffer, auto out, auto err) {
            return tsq_file_reader_read_at(get(), offset, buffer, size, out, err);
        });
    }

    [[nodiscard]] tsq_file_reader *get() const & noexcept { return handle_.get(); }
    [[nodiscard]] tsq_file_reader *get() const && = delete;

private:
    Handle handle_;
};

/// A bucket and a path: a view.
class StoragePath {
public:
    using Handle = detail::Handle<tsq_storage_path, tsq_storage_path_free>;

    explicit StoragePath(const tsq_storage_path *path) noexcept : path_(path) {}
    [[nodiscard]] std::string_view bucket() const noexcept { return detail::view(path_->bucket); }
    [[nodiscard]] std::string_view path() const noexcept { return detail::view(path_->path); }

private:
    const tsq_storage_path *path_;
};

namespace detail {

template <typename... Argument>
using PathFunction = tsq_status (*)(Argument..., tsq_storage_path **, tsq_error **);

inline Owned<StoragePath> path_of(PathFunction<tsq_str> make, std::string_view argument) {
    return owned<StoragePath>([&](auto out, auto err) { return make(text(argument), out, err); });
}

inline Owned<StoragePath> path_of(PathFunction<tsq_str, tsq_str> make, std::string_view owner, std::string_view name) {
    return owned<StoragePath>([&](auto out, auto err) { return make(text(owner), text(name), out, err); });
}

}  // namespace detail

/// The paths of a space's files: in `spaces`, below the space's id.
namespace space_path {
[[nodiscard]] inline Owned<StoragePath> tab_order(std::string_view space_id) {
    return detail::path_of(tsq_space_path_tab_order, space_id);
}
/// A tab's name has letters, digits, hyphens, underscores and spaces.
[[nodiscard]] inline Owned<StoragePath> tab(std::string_view space_id, std::string_view name) {
    return detail::path_of(tsq_space_path_tab, space_id, name);
}
[[nodiscard]] inline Owned<StoragePath> asset(std::string_view space_id, std::string_view name) {
    return detail::path_of(tsq_space_path_asset, space_id, name);
}
}  // namespace space_path

/// The paths of private files: in `private`, below a user's id or linked identity key.
namespace private_path {
[[nodiscard]] inline Owned<StoragePath> homebase(std::string_view owner) {
    return detail::path_of(tsq_private_path_homebase, owner);
}
[[nodiscard]] inline Owned<StoragePath> tab(std::string_view owner, std::string_view name) {
    return detail::path_of(tsq_private_path_tab, owner, name);
}
}  // namespace private_path

/// The paths of shared assets: in `assets`.
namespace asset_path {
[[nodiscard]] inline Owned<StoragePath> image(std::string_view name) { return detail::path_of(tsq_asset_path_image, name); }
[[nodiscard]] inline Owned<StoragePath> video(std::string_view name) { return detail::path_of(tsq_asset_path_video, name); }
}  // namespace asset_path

/// What a signed file says besides its data.
struct SignOptions {
    /// Absent: `json`.
    Text file_type = {};
    Text file_name = {};
    /// Absent: the current time.
    std::optional<Timestamp> timestamp = {};
};

namespace detail {

inline tsq_sign_options borrowed(const SignOptions &options) noexcept {
    tsq_sign_options out{};
    out.size = sizeof out;
    out.file_type = options.file_type.borrowed();
    out.file_name = options.file_name.borrowed();
    out.has_timestamp = options.timestamp.has_value();
    out.timestamp = options.timestamp ? options.timestamp->time_since_epoch().count() : 0;
    return out;
}

}  // namespace detail

/// Makes a signed file of text, usually JSON: JSON. `private_key` is an Ed25519 seed in hex.
[[nodiscard]] inline std::string sign_file(std::string_view file_data, std::string_view private_key, const SignOptions &options = {}) {
    const tsq_sign_options borrowed = detail::borrowed(options);
    return detail::json([&](auto out, auto err) {
        return tsq_signed_file_sign(detail::text(file_data), detail::text(private_key), &borrowed, out, err);
    });
}

/// Whether this JSON is a signed file whose signature is that of its `publicKey`.
[[nodiscard]] inline bool verify_file(std::string_view signed_file) noexcept {
    return tsq_signed_file_verify(detail::text(signed_file));
}

/// Makes a signed file whose data only the same private key decrypts: JSON.
[[nodiscard]] inline std::string encrypt_file(Bytes data, std::string_view private_key, const SignOptions &options = {}) {
    const tsq_sign_options borrowed = detail::borrowed(options);
    return detail::json([&](auto out, auto err) {
        return tsq_signed_file_encrypt(data.borrowed(), detail::text(private_key), &borrowed, out, err);
    });
}

/// Verifies and decrypts a signed file.
[[nodiscard]] inline Buffer decrypt_file(std::string_view signed_file, std::string_view private_key) {
    return Buffer(detail::make<Buffer::Handle>([&](auto out, auto err) {
        return tsq_signed_file_decrypt(detail::text(signed_file), detail::text(private_key), out, err);
    }));
}

}  // namespace townsquare

#endif  // TOWNSQUARE_FILES_HPP
