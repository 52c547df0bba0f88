// The files of townsquare.hpp: ownership, bytes, streams, callbacks and exceptions (DESIGN 10).
//
// raii_files CATALOG FOLDER: the folder is empty; the catalog is not read.

#include <townsquare.hpp>

#include "check.h"
#include "throws.hpp"

#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>
#if __cplusplus >= 202002L
#include <ranges>
#include <span>
#endif

using townsquare::Buffer;
using townsquare::Bytes;
using townsquare::Client;
using townsquare::Config;
using townsquare::Error;
using townsquare::FileInfo;
using townsquare::FileList;
using townsquare::FileReader;
using townsquare::FileRequest;
using townsquare::FileResponse;
using townsquare::FileWriter;
using townsquare::Owned;
using townsquare::Storage;
using townsquare::UploadOptions;

static_assert(!std::is_copy_constructible_v<FileWriter> && std::is_nothrow_move_constructible_v<FileWriter>);
static_assert(!std::is_copy_constructible_v<FileReader> && std::is_nothrow_move_assignable_v<FileReader>);
static_assert(!std::is_copy_constructible_v<Buffer> && !std::is_copy_constructible_v<FileResponse>);
static_assert(sizeof(FileInfo) == sizeof(void *), "a view is a pointer");

// Bytes are made of text and of containers of bytes.
using townsquare::RequestBody;
static_assert(std::is_convertible_v<const char *, Bytes> && std::is_convertible_v<std::string, Bytes> &&
              std::is_convertible_v<std::string_view, Bytes> && std::is_convertible_v<std::vector<std::uint8_t>, Bytes> &&
              std::is_convertible_v<std::vector<std::byte>, Bytes>);
static_assert(!std::is_constructible_v<Bytes, std::nullptr_t> && !std::is_constructible_v<Bytes, std::vector<int>>);
static_assert(std::is_convertible_v<char *, Bytes> && std::is_convertible_v<const char (&)[4], Bytes>);
static_assert(!std::is_constructible_v<Bytes, char (&)[4]> && !std::is_constructible_v<RequestBody, char (&)[4]>,
              "how much of a buffer is filled is unknown");

// What would dangle does not compile.
template <typename T, typename = void>
constexpr bool views = false;
template <typename T>
constexpr bool views<T, std::void_t<decltype(std::declval<T>().view())>> = true;
static_assert(views<const Buffer &> && !views<Buffer>, "no view of a temporary buffer");
template <typename T, typename = void>
constexpr bool informs = false;
template <typename T>
constexpr bool informs<T, std::void_t<decltype(std::declval<T>().info())>> = true;
static_assert(informs<const FileReader &> && !informs<FileReader>, "no view of a temporary reader");
template <typename T, typename = void>
constexpr bool stores = false;
template <typename T>
constexpr bool stores<T, std::void_t<decltype(std::declval<T>().storage())>> = true;
static_assert(stores<const Client &> && !stores<Client>, "no view of a temporary client");
template <typename T, typename = void>
constexpr bool has_headers = false;
template <typename T>
constexpr bool has_headers<T, std::void_t<decltype(std::declval<T>().headers())>> = true;
template <typename T, typename = void>
constexpr bool has_handle = false;
template <typename T>
constexpr bool has_handle<T, std::void_t<decltype(std::declval<T>().get())>> = true;
static_assert(has_headers<const FileResponse &> && !has_headers<FileResponse> && has_handle<const FileResponse &> &&
                  !has_handle<FileResponse>,
              "no view of a temporary response");

// A request keeps a view of its body. A temporary that owns its bytes would end before the request.
static_assert(std::is_convertible_v<std::string &, RequestBody> && std::is_convertible_v<const std::string &, RequestBody> &&
              std::is_convertible_v<std::vector<std::uint8_t> &, RequestBody> && std::is_convertible_v<const Buffer &, RequestBody>);
static_assert(std::is_convertible_v<const char *, RequestBody> && std::is_convertible_v<const char (&)[5], RequestBody> &&
                  std::is_convertible_v<std::string_view, RequestBody> && std::is_convertible_v<Bytes, RequestBody> &&
                  std::is_constructible_v<RequestBody, const void *, std::size_t>,
              "a view may be a temporary");
static_assert(!std::is_constructible_v<RequestBody, std::string> && !std::is_constructible_v<RequestBody, const std::string> &&
                  !std::is_constructible_v<RequestBody, std::vector<std::uint8_t>> && !std::is_constructible_v<RequestBody, Buffer> &&
                  !std::is_constructible_v<RequestBody, std::array<char, 4>>,
              "no view of a temporary body");
static_assert(!std::is_assignable_v<RequestBody &, std::string> && std::is_assignable_v<RequestBody &, std::string &>);
static_assert(!std::is_constructible_v<RequestBody, std::nullptr_t> && !std::is_constructible_v<RequestBody, std::vector<int> &>);
// The member of the request has this type.
static_assert(std::is_same_v<decltype(FileRequest::body), RequestBody>);

#if __cplusplus >= 202002L
static_assert(std::ranges::random_access_range<const FileList> && std::ranges::sized_range<const FileList>);
static_assert(std::is_convertible_v<std::span<const std::byte>, RequestBody> && std::is_convertible_v<std::span<char, 4>, RequestBody>);
static_assert(std::is_convertible_v<std::span<const std::byte>, Bytes> && !std::is_convertible_v<std::span<const int>, Bytes>);
#endif

namespace {

/// Larger than `inline_file_limit`.
const std::string LARGE(300007, 'x');

std::uint64_t size_of(const Owned<FileInfo> &file) { return file->size(); }

template <typename Call>
int throws_logic_error(std::string_view words, Call call) {
    try {
        static_cast<void>(call());
    } catch (const std::logic_error &error) {
        return words == error.what();
    }
    return 0;
}

int is_missing(const Storage &storage, std::string_view path) {
    return throws(TSQ_NOT_FOUND, "Get file failed: File not found", [&] { return storage.stat("assets", path); });
}

std::string content_of(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    return content.str();
}

std::string text_of(const Bytes &bytes) {
    const tsq_bytes borrowed = bytes.borrowed();
    return {reinterpret_cast<const char *>(borrowed.ptr), borrowed.len};
}

void arrays() {
    CHECK(text_of("abc") == "abc" && text_of("a\0c") == std::string("a\0c", 3) && text_of("").empty());
    const char zip[8] = {'P', 'K', 0};
    const char full[4] = {'a', 'b', 'c', 'd'};
    CHECK(text_of(zip) == std::string("PK\0\0\0\0\0", 7) && text_of(full) == "abcd");
    char buffer[8] = {'x', 'y', 0, 'z'};
    char *const pointer = buffer;
    const char *const constant = buffer;
    const char *const none = std::getenv("TOWNSQUARE_TEST_NO_SUCH_VARIABLE");
    CHECK(none == nullptr && text_of(none).empty());
    CHECK(text_of(pointer) == "xy" && text_of(constant) == "xy" && text_of(std::string_view(buffer, 4)) == std::string("xy\0z", 4));
    CHECK(text_of({buffer, 1}) == "x" && text_of({"a\0bc", 3}) == std::string("a\0b", 3));
    CHECK(text_of(std::array<char, 2>{{'a', 0}}).size() == 2 && text_of(std::string("a\0", 2)).size() == 2);
    FileRequest request;
    request.body = "a\0c";
    CHECK(text_of(request.body) == std::string("a\0c", 3));
}

void files(const Storage &storage, const Storage &anonymous) {
    UploadOptions options;
    options.metadata = {{"title", "Note"}, {"author", "ada"}};
    options.cache_control = std::chrono::minutes(1);
    options.content_type = "text/markdown";
    Owned<FileInfo> stored = storage.upload("assets", "a", "one line", options);
    CHECK(stored->bucket() == "assets" && stored->path() == "a" && stored->size() == 8 && stored->content_type() == "text/markdown");
    CHECK(stored->cache_control() == std::chrono::seconds(60) && !stored->owner_id() && !stored->etag().empty());
    CHECK(stored->metadata() == townsquare::Metadata({{"author", "ada"}, {"title", "Note"}}));
    CHECK(stored->updated_at() <= std::chrono::system_clock::now() + std::chrono::minutes(1) && stored->json().front() == '{');
    const Buffer content = anonymous.download("assets", "a");
    CHECK(content.view() == "one line" && content.size() == 8 && !content.empty() && content.data()[0] == 'o');
    CHECK(anonymous.download_range("assets", "a", 4, 100).str() == "line");

    UploadOptions next;
    next.if_match = stored->etag();
    stored = storage.upload("assets", "a", std::string("two\0lines", 9), next);
    CHECK(stored->size() == 9 && anonymous.download("assets", "a").str() == std::string("two\0lines", 9));
    CHECK(stored->cache_control() == std::chrono::hours(1));
    try {
        storage.upload("assets", "a", "three", next);
        CHECK(false);
    } catch (const Error &error) {
        CHECK(error.kind() == TSQ_CONFLICT && error.status() == 412 && error.operation() == "upload");
    }
    next = {};
    next.if_match = "";
    storage.upload("assets", "b", std::vector<std::uint8_t>{1, 2, 3}, next);
#if __cplusplus >= 202002L
    const std::array<std::byte, 2> two{};
    CHECK(size_of(storage.upload("assets", "b", std::span<const std::byte>(two))) == 2);
#endif
    next = {};
    next.upsert = false;
    try {
        storage.upload("assets", "b", "x", next);
        CHECK(false);
    } catch (const Error &error) {
        CHECK(error.kind() == TSQ_ALREADY_EXISTS && error.status() == 409);
    }
    next = {};
    next.cache_control = std::chrono::seconds(-1);
    CHECK(throws(TSQ_INVALID_INPUT, "Upload failed: Invalid file or request", [&] { return storage.upload("assets", "b", "x", next); }));
    next.cache_control = std::chrono::hours(24 * 365 * 1000);
    CHECK(throws(TSQ_INVALID_INPUT, "Upload failed: Invalid file or request", [&] { return storage.upload("assets", "b", "x", next); }));

    const Owned<FileInfo> copy = storage.copy("assets", "a", "c");
    CHECK(copy->path() == "c" && copy->size() == 9);
    const Owned<FileInfo> moved = storage.move("assets", "c", "b", TSQ_OVERWRITE_REPLACE);
    CHECK(moved->path() == "b" && is_missing(storage, "c"));
    const FileList first = anonymous.list("assets", "", 1);
    const FileList rest = anonymous.list("assets", {}, 10, first[0].path());
    CHECK(first.size() == 1 && first[0].path() == "a" && rest.size() == 1 && rest[0].path() == "b");
    std::string paths;
    for (FileInfo file : rest) paths.append(file.path());
    CHECK(paths == "b" && rest.json().front() == '[');
    CHECK(storage.exists("assets", "b"));
    storage.delete_file("assets", "b");
    CHECK(is_missing(storage, "b") && !storage.exists("assets", "b"));
    (void)storage.upload("assets", "old/b", "x");
    CHECK(storage.delete_prefix("assets", "old/") == 1 && storage.delete_prefix("assets", "old/") == 0);
    CHECK(throws(TSQ_NOT_FOUND, "Check file failed: File not found", [&] { return storage.exists("elsewhere", "b"); }));

    try {
        storage.upload("assets", "a//b", "x");
        CHECK(false);
    } catch (const Error &error) {
        CHECK(error.status() == 400 && error.reason() == "segment 2 of the path is empty");
    }
    CHECK(throws(TSQ_UNAUTHORIZED, "Upload failed: Unauthorized file access", [&] { return anonymous.upload("assets", "b", "x"); }));
    CHECK(throws(TSQ_UNAUTHORIZED, "Unauthorized file upload",
                 [&] { return anonymous.secure_upload("assets", "b", "x", "00000000-0000-4000-8000-0000000000ad"); }));
}

void writers_and_readers(const Storage &storage) {
    {
        FileWriter writer = storage.open_writer("assets", "w");
        writer.write("one ");
        FileWriter other = std::move(writer);
        other.write(std::string("line"));
        const Owned<FileInfo> made = other.finish();
        CHECK(made->size() == 8 && storage.download("assets", "w").str() == "one line");
        CHECK(throws(TSQ_INVALID_INPUT, "Upload failed: The writer is finished or aborted", [&] { return other.finish(); }));
    }
    CHECK(storage.download("assets", "w").str() == "one line");
    for (const std::string &text : {std::string("small"), LARGE}) {
        // The destructor aborts, also when an exception leaves the scope.
        try {
            FileWriter writer = storage.open_writer("assets", "aborted");
            writer.write(text);
            throw std::logic_error("on purpose");
        } catch (const std::logic_error &) {
        }
        CHECK(is_missing(storage, "aborted"));
        FileWriter writer = storage.open_writer("assets", "aborted");
        writer.write(text);
        writer.abort();
        CHECK(is_missing(storage, "aborted"));
    }

    storage.upload("assets", "r", LARGE);
    FileReader reader = storage.open_reader("assets", "r");
    std::string content = reader.read(10);
    CHECK(!content.empty() && content.size() <= 10);
    storage.upload("assets", "r", "overwritten");
    for (std::string piece = reader.read(); !piece.empty(); piece = reader.read()) content += piece;
    CHECK(content == LARGE && reader.info().size() == LARGE.size());
    CHECK(reader.read_at(LARGE.size() - 3, 10) == "xxx" && reader.read_at(LARGE.size(), 10).empty());
    char byte = 0;
    CHECK(reader.read(&byte, 1) == 0 && reader.read_at(0, &byte, 1) == 1 && byte == 'x');
    CHECK(throws(TSQ_INVALID_INPUT, "Download failed: Invalid file or request", [&] { return reader.read_at(LARGE.size() + 1, 1); }));
    CHECK(storage.download("assets", "r").str() == "overwritten");
}

void callbacks(const Storage &storage, const std::string &folder) {
    const std::string source = folder + "/source", target = folder + "/target";
    std::ofstream(source, std::ios::binary) << LARGE;
    std::uint64_t seen = 0;
    const auto see = [&](std::uint64_t done, std::uint64_t total) {
        seen = done;
        return done <= total;
    };
    CHECK(size_of(storage.upload_from("assets", "h", source, {}, see)) == LARGE.size() && seen == LARGE.size());
    seen = 0;
    CHECK(size_of(storage.download_to("assets", "h", target, see)) == LARGE.size() && seen == LARGE.size());
    CHECK(content_of(target) == LARGE);
    CHECK(size_of(storage.upload_from("assets", "h", source)) == LARGE.size());

    // false cancels; an exception cancels and comes back.
    std::ofstream(target, std::ios::binary) << "old";
    const auto stop = [](std::uint64_t, std::uint64_t) { return false; };
    const auto fail = [](std::uint64_t, std::uint64_t) -> bool { throw std::logic_error("on purpose"); };
    CHECK(throws(TSQ_CANCELLED, "Upload failed: A callback cancelled the call", [&] { return storage.upload_from("assets", "new", source, {}, stop); }));
    CHECK(throws_logic_error("on purpose", [&] { return storage.upload_from("assets", "new", source, {}, fail); }));
    CHECK(throws(TSQ_CANCELLED, "Download failed: A callback cancelled the call", [&] { return storage.download_to("assets", "h", target, stop); }));
    CHECK(throws_logic_error("on purpose", [&] { return storage.download_to("assets", "h", target, fail); }));
    CHECK(is_missing(storage, "new") && content_of(target) == "old");

    std::size_t at = 0;
    const auto give = [&](char *buffer, std::size_t size) {
        const std::size_t length = LARGE.copy(buffer, size, at);
        at += length;
        return length;
    };
    CHECK(size_of(storage.upload_stream("assets", "s", give)) == LARGE.size());
    std::string received;
    CHECK(size_of(storage.download_stream("assets", "s", [&](std::string_view bytes) { received += bytes; })) == LARGE.size() && received == LARGE);
    CHECK(throws_logic_error("on purpose", [&] {
        return storage.upload_stream("assets", "new", [](char *, std::size_t) -> std::size_t { throw std::logic_error("on purpose"); });
    }));
    CHECK(throws_logic_error("on purpose",
                             [&] { return storage.download_stream("assets", "s", [](std::string_view) { throw std::logic_error("on purpose"); }); }));
    CHECK(throws(TSQ_INVALID_INPUT, "Upload failed: Argument source is NULL", [&] { return storage.upload_stream("assets", "new", {}); }));
    CHECK(is_missing(storage, "new"));

    const std::uint64_t count = storage.export_files(folder + "/exported", see);
    CHECK(count == storage.list("assets").size() && seen == count && content_of(folder + "/exported/assets/h") == LARGE);
    CHECK(throws_logic_error("on purpose", [&] { return storage.export_files(folder + "/cancelled", fail); }));
    const auto report = storage.repair();
    CHECK(report->finished() == 0 && report->orphans_removed() == 0 && report->rows_removed() == 0 && report->mismatched().empty());
    CHECK(report->json().front() == '{');
}

void moves(const townsquare::Client &client, const std::string &folder) {
    townsquare::Config target;
    target.set("data_dir", folder + "/moved").set("catalog_api_key", "");
    std::uint64_t seen = 0;
    CHECK(client.check_move(target) == TSQ_MOVE_TARGET_NEW && !std::ifstream(folder + "/moved/townsquare.db"));
    CHECK(throws(TSQ_CONFIG, "Move failed: The target of a move is another database than its source",
                 [&] { return client.check_move(Config().set("data_dir", folder + "/town")); }));
    CHECK(throws_logic_error("on purpose", [&] {
        return client.move_to(target, {}, [](std::uint64_t, std::uint64_t) -> bool { throw std::logic_error("on purpose"); });
    }));
    CHECK(townsquare::name(client.check_move(target)) == "unfinished");
    const auto report = client.move_to(target, {false}, [&](std::uint64_t done, std::uint64_t total) {
        seen = done;
        return done <= total;
    });
    CHECK(report->resumed() && report->files() > 0 && report->bytes() >= LARGE.size() && report->seconds() >= 0 && seen > report->files());
    CHECK(report->rows("buckets") >= 3 && report->rows("sessions") == 0 && report->json().front() == '{');
    CHECK(throws(TSQ_CONFIG, "Move failed: The target of a move is an empty database, and this one has rows in files",
                 [&] { return client.move_to(target); }));
    CHECK(throws(TSQ_CONFIG, "Move failed: The target of a move is an empty database, and this one has rows in files",
                 [&] { return client.check_move(target); }));
    townsquare::MoveOptions following;
    following.follow = std::chrono::seconds(10);
    CHECK(!client.reopen_for_writes());
    const Config followed = Config().set("data_dir", folder + "/followed").set("catalog_api_key", "");
    const auto copied = client.move_to(followed, following);
    CHECK(copied->files() > 0);
    const townsquare::Client service = client.as_service();
    CHECK(throws(TSQ_UNAVAILABLE,
                 "Create space failed: Database error: the database has moved to another place and takes no further writes; open that place",
                 [&] { return service.spaces().create_space({"late"}); }));
    CHECK(client.reopen_for_writes());
    following.follow = std::chrono::milliseconds(-1);
    CHECK(throws(TSQ_CONFLICT,
                 "Move failed: The changes of the source cannot be copied and compared in a pause of 0.0 s. Allow a longer one, or stop "
                 "its writers",
                 [&] { return client.move_to(Config().set("data_dir", folder + "/other"), following); }));
}

void requests(const Storage &storage, const Storage &anonymous) {
    FileRequest request;
    request.target = "/assets/a";
    FileResponse response = anonymous.handle_file(request);
    CHECK(response.status() == 200 && response.body_size() == 9 && response.read_all() == std::string("two\0lines", 9));
    std::string sniff;
    for (const auto &header : response.headers()) {
        if (header.name == "x-content-type-options") sniff = header.value;
    }
    CHECK(sniff == "nosniff");
    request.headers = {{"range", "bytes=0-2"}};
    FileResponse part = anonymous.handle_file(request);
    CHECK(part.status() == 206 && part.read_all() == "two");

    request = {};
    request.method = "PUT";
    request.target = storage.signed_url("assets", "put", TSQ_URL_PUT, std::chrono::minutes(1));
    request.body = "by URL";
    CHECK(anonymous.handle_file(request).status() == 201 && storage.download("assets", "put").str() == "by URL");
    townsquare::UrlLimits limits;
    limits.max_size = 4;
    limits.content_type = "text/plain";
    townsquare::FileRequest bound = request;
    bound.target = storage.signed_url("assets", "put", TSQ_URL_PUT, std::chrono::minutes(1), limits);
    CHECK(anonymous.handle_file(bound).status() == 413);
    bound.body = "four";
    bound.headers = {{"content-type", "text/html"}};
    CHECK(anonymous.handle_file(bound).status() == 415 && storage.download("assets", "put").str() == "by URL");
    request.body_source = [](char *, std::size_t) -> std::size_t { throw std::logic_error("on purpose"); };
    CHECK(throws_logic_error("on purpose", [&] { return anonymous.handle_file(request); }));
    storage.rotate_url_key();
    request.body_source = {};
    request.body = "late";
    CHECK(anonymous.handle_file(request).status() >= 400 && storage.download("assets", "put").str() == "by URL");
    CHECK(throws(TSQ_INVALID_INPUT, "Sign URL failed: Invalid file or request",
                 [&] { return storage.signed_url("assets", "put", TSQ_URL_GET, std::chrono::seconds(-1)); }));
}

void signed_files() {
    const std::string_view key = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    townsquare::SignOptions options;
    options.file_name = "Home";
    options.timestamp = townsquare::Timestamp();
    const std::string made = townsquare::sign_file("{\"a\":1}", key, options);
    CHECK(townsquare::verify_file(made) && made.find("\"fileName\":\"Home\"") != std::string::npos && !townsquare::verify_file("{}"));
    CHECK(made.find("\"timestamp\":\"1970-01-01T00:00:00.000Z\"") != std::string::npos);
    const std::string hidden = townsquare::encrypt_file("secret", key);
    CHECK(townsquare::verify_file(hidden) && townsquare::decrypt_file(hidden, key).str() == "secret");
    CHECK(throws(TSQ_INVALID_INPUT, "The signed file is not encrypted", [&] { return townsquare::decrypt_file(made, key); }));

    const std::string id = "00000000-0000-4000-8000-0000000000ad";
    const auto tab = townsquare::space_path::tab(id, "My tab");
    CHECK(tab->bucket() == "spaces" && tab->path() == id + "/tabs/My tab");
    const auto order = townsquare::space_path::tab_order(id), asset = townsquare::space_path::asset(id, "a.png");
    CHECK(order->path() == id + "/tabOrder" && asset->path() == id + "/assets/a.png");
    const auto home = townsquare::private_path::homebase(id), note = townsquare::private_path::tab(id, "Notes");
    CHECK(home->bucket() == "private" && home->path() == id + "/homebase" && note->path() == id + "/tabs/Notes");
    const auto image = townsquare::asset_path::image("a.png"), video = townsquare::asset_path::video("a.mp4");
    CHECK(image->path() == "images/a.png" && video->path() == "videos/a.mp4" && video->bucket() == "assets");
}

void metrics(const Client &client) {
    client.storage().upload("assets", "counted", "x");
    const std::string json = client.metrics_json();
    CHECK(json.front() == '{' && json.find("\"townsquare_operations_total\"") != std::string::npos && json.find("\"upload\"") != std::string::npos);
    const std::string text = client.metrics_prometheus();
    CHECK(text.rfind("# HELP ", 0) == 0 && text.find("townsquare_operations_total{operation=\"upload\",outcome=\"ok\"} ") != std::string::npos);
    Client closed = client.as_service();
    closed.close();
    CHECK(throws(TSQ_CLOSED, "Get metrics failed: The handle is closed", [&] { return closed.metrics_json(); }));
    CHECK(throws(TSQ_CLOSED, "Get metrics failed: The handle is closed", [&] { return closed.metrics_prometheus(); }));
}

void findings(const Client &client, const std::string &data_dir) {
    const std::vector<std::uint8_t> large(70000);
    client.storage().upload("assets", "checked", large);
    CHECK(client.check(TSQ_CHECK_FULL).size() == 0);
    std::ofstream(data_dir + "/files/assets/stray") << "of nobody";
    const townsquare::Findings found = client.check();
    CHECK(found.size() == 1 && found[0].code() == "orphan_object" && found[0].severity() == "warning");
    CHECK(found[0].message() == "The object assets/stray belongs to no file." && !found[0].advice().empty());
    CHECK(found.json().find("\"orphan_object\"") != std::string::npos);
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    const std::string folder = argv[2];
    const Client client(Config().set("data_dir", folder + "/town").set("catalog_api_key", ""));
    const Client service = client.as_service();
    signed_files();
    arrays();
    files(service.storage(), client.storage());
    writers_and_readers(service.storage());
    callbacks(service.storage(), folder);
    // signed_url needs a signer with a session or the service; requests are answered on the anonymous handle.
    requests(service.storage(), client.storage());
    metrics(service);
    findings(service, folder + "/town");
    moves(client, folder);
    return checks_done("raii_files");
}
