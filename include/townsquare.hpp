// townsquare for C++17: townsquare.h in RAII types. The manual is at the head of townsquare.h; here:
//
//   - failures are thrown as townsquare::Error, whose what() is the whole sentence;
//   - Config, Client, MiniApps, DiscoveryStats and HttpResponse own their handle and can only be moved;
//   - MiniApp, Author, Texts and every std::string_view are views: they live as long as the MiniApps (DiscoveryStats,
//     HttpResponse, Error) that they were read from. Discovery is a view of its Client;
//   - every method may be called from any thread; a moved-from object may only be assigned to or destroyed.
//
//     townsquare::Client client;
//     for (townsquare::MiniApp app : client.discovery().get_trending_mini_apps("24h", {20}))
//         std::cout << app.name() << "  " << app.home_url() << '\n';
//
// Header-only and thin: each method is one call of the C function of its name.

#ifndef TOWNSQUARE_HPP
#define TOWNSQUARE_HPP

#include <townsquare.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace townsquare {

/// Points in time, as precise as the library keeps them.
using Timestamp = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

/// Why an operation failed. Copies share one error object.
class Error : public std::exception {
public:
    /// Takes `error`.
    Error(tsq_status kind, tsq_error *error) : kind_(kind), error_(error, tsq_error_free) {}

    /// What a program branches on: TSQ_NOT_FOUND, TSQ_INVALID_INPUT, ...
    tsq_status kind() const noexcept { return kind_; }
    /// The whole sentence, the operation's prefix included.
    const char *what() const noexcept override {
        const tsq_str text = tsq_error_text(error_.get());
        return text.ptr != nullptr ? text.ptr : tsq_status_name(kind_).ptr;
    }
    /// The sentence without the prefix.
    std::string_view message() const noexcept { return view(tsq_error_message(error_.get())); }
    /// The operation that failed: `search_mini_apps`; empty when none was under way.
    std::string_view operation() const noexcept { return view(tsq_error_operation(error_.get())); }
    /// The SQLSTATE (`23505`); empty for a failure without one.
    std::string_view code() const noexcept { return view(tsq_error_code(error_.get())); }
    /// The file store's status (404, 413, ...).
    std::optional<std::uint16_t> status() const noexcept {
        std::uint16_t status = 0;
        return tsq_error_status(error_.get(), &status) ? std::optional(status) : std::nullopt;
    }
    /// How long to wait before another try.
    std::optional<std::chrono::milliseconds> retry_after() const noexcept {
        std::uint64_t wait = 0;
        if (!tsq_error_retry_after_ms(error_.get(), &wait)) return std::nullopt;
        return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(wait));
    }
    /// Whether the same call may succeed later.
    bool is_retryable() const noexcept { return tsq_error_is_retryable(error_.get()); }

private:
    static std::string_view view(tsq_str text) noexcept { return {text.ptr, text.len}; }

    tsq_status kind_;
    std::shared_ptr<tsq_error> error_;
};

namespace detail {

template <typename T, void (*Free)(T *)>
struct Freed {
    void operator()(T *handle) const noexcept { Free(handle); }
};

template <typename T, void (*Free)(T *)>
using Owned = std::unique_ptr<T, Freed<T, Free>>;

inline tsq_str text(std::string_view text) noexcept { return {text.data(), text.size()}; }

inline std::string_view view(tsq_str text) noexcept { return {text.ptr, text.len}; }

inline std::optional<std::string_view> optional_view(tsq_str text) noexcept {
    return text.ptr != nullptr ? std::optional(view(text)) : std::nullopt;
}

inline Timestamp timestamp(std::int64_t micros) noexcept { return Timestamp(std::chrono::microseconds(micros)); }

/// Runs a call that takes `err`; throws what it fails with.
template <typename Call>
void act(Call call) {
    tsq_error *err = nullptr;
    const tsq_status status = call(&err);
    if (status != TSQ_OK) throw Error(status, err);
}

/// Runs a call that takes `out` and `err`; owns what it makes, throws what it fails with.
template <typename Owner, typename Call>
Owner make(Call call) {
    typename Owner::pointer out = nullptr;
    act([&](tsq_error **err) { return call(&out, err); });
    return Owner(out);
}

/// An input iterator over anything with `operator[]`.
template <typename List>
class Iterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = typename List::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = value_type;

    Iterator(const List *list, std::size_t index) noexcept : list_(list), index_(index) {}
    value_type operator*() const noexcept { return (*list_)[index_]; }
    Iterator &operator++() noexcept {
        ++index_;
        return *this;
    }
    Iterator operator++(int) noexcept {
        Iterator before = *this;
        ++index_;
        return before;
    }
    friend bool operator==(Iterator a, Iterator b) noexcept { return a.index_ == b.index_; }
    friend bool operator!=(Iterator a, Iterator b) noexcept { return a.index_ != b.index_; }

private:
    const List *list_;
    std::size_t index_;
};

/// Runs a call that makes JSON.
template <typename Call>
std::string json(Call call) {
    const auto json = make<Owned<tsq_string, tsq_string_free>>(call);
    return std::string(view(tsq_string_view(json.get())));
}

}  // namespace detail

/// A configuration; see OPTIONS in townsquare.h.
class Config {
public:
    /// The defaults.
    Config() : handle_(tsq_config_new()) {}
    /// `townsquare:/var/lib/town?durability=normal`, `sqlite:PATH`, `postgres://...`
    static Config from_url(std::string_view url) {
        return Config(detail::make<Handle>(
            [&](auto out, auto err) { return tsq_config_from_url(detail::text(url), out, err); }));
    }
    /// From the variables TOWNSQUARE_<NAME>.
    static Config from_env() { return Config(detail::make<Handle>(tsq_config_from_env)); }

    /// Sets an option by its name.
    Config &set(std::string_view name, std::string_view value) & {
        detail::act([&](auto err) { return tsq_config_set(get(), detail::text(name), detail::text(value), err); });
        return *this;
    }
    Config &&set(std::string_view name, std::string_view value) && { return std::move(set(name, value)); }

    tsq_config *get() const noexcept { return handle_.get(); }

private:
    using Handle = detail::Owned<tsq_config, tsq_config_free>;
    explicit Config(Handle handle) : handle_(std::move(handle)) {}
    Handle handle_;
};

/// How many mini apps a call lists, and which: `{20}`, `{20, {"games"}, {"base", "optimism"}}`.
struct Selection {
    /// 1 to 1,000.
    std::uint32_t limit = 50;
    /// Of any of these; empty: of any at all.
    std::vector<std::string> categories = {};
    /// On any of these; empty: on any at all.
    std::vector<std::string> networks = {};
};

namespace detail {

/// A Selection as the C functions want it, for the length of a call.
class BorrowedSelection {
public:
    explicit BorrowedSelection(const Selection &selection)
        : categories_(texts(selection.categories)), networks_(texts(selection.networks)),
          selection_(tsq_selection_first(selection.limit)) {
        selection_.categories = categories_.data();
        selection_.categories_len = categories_.size();
        selection_.networks = networks_.data();
        selection_.networks_len = networks_.size();
    }
    BorrowedSelection(const BorrowedSelection &) = delete;
    BorrowedSelection &operator=(const BorrowedSelection &) = delete;
    const tsq_selection *get() const noexcept { return &selection_; }

    static std::vector<tsq_str> texts(const std::vector<std::string> &strings) {
        std::vector<tsq_str> out;
        out.reserve(strings.size());
        for (const std::string &string : strings) out.push_back(text(string));
        return out;
    }

private:
    std::vector<tsq_str> categories_;
    std::vector<tsq_str> networks_;
    tsq_selection selection_;
};

}  // namespace detail

/// The texts of one field: a view.
template <std::size_t (*Len)(const tsq_mini_app *), tsq_str (*At)(const tsq_mini_app *, std::size_t)>
class Texts {
public:
    using value_type = std::string_view;
    explicit Texts(const tsq_mini_app *app) noexcept : app_(app) {}
    std::size_t size() const noexcept { return Len(app_); }
    bool empty() const noexcept { return size() == 0; }
    std::string_view operator[](std::size_t index) const noexcept { return detail::view(At(app_, index)); }
    detail::Iterator<Texts> begin() const noexcept { return {this, 0}; }
    detail::Iterator<Texts> end() const noexcept { return {this, size()}; }

private:
    const tsq_mini_app *app_;
};

/// The publisher of a mini app: a view.
class Author {
public:
    explicit Author(const tsq_author *author) noexcept : author_(author) {}
    std::uint64_t fid() const noexcept { return tsq_author_fid(author_); }
    std::string_view username() const noexcept { return detail::view(tsq_author_username(author_)); }
    std::optional<std::string_view> display_name() const noexcept {
        return detail::optional_view(tsq_author_display_name(author_));
    }
    std::optional<std::string_view> pfp_url() const noexcept { return detail::optional_view(tsq_author_pfp_url(author_)); }
    std::uint64_t follower_count() const noexcept { return tsq_author_follower_count(author_); }
    std::optional<double> score() const noexcept {
        double score = 0;
        return tsq_author_score(author_, &score) ? std::optional(score) : std::nullopt;
    }
    bool is_power_user() const noexcept { return tsq_author_is_power_user(author_); }

private:
    const tsq_author *author_;
};

/// One mini app: a view.
class MiniApp {
public:
    using Networks = Texts<tsq_mini_app_networks_len, tsq_mini_app_networks_at>;
    using Tags = Texts<tsq_mini_app_tags_len, tsq_mini_app_tags_at>;
    using Screenshots = Texts<tsq_mini_app_screenshots_len, tsq_mini_app_screenshots_at>;

    explicit MiniApp(const tsq_mini_app *app) noexcept : app_(app) {}
    std::string_view id() const noexcept { return detail::view(tsq_mini_app_id(app_)); }
    std::string_view domain() const noexcept { return detail::view(tsq_mini_app_domain(app_)); }
    std::string_view name() const noexcept { return detail::view(tsq_mini_app_name(app_)); }
    std::optional<std::string_view> description() const noexcept { return optional(tsq_mini_app_description); }
    std::string_view icon_url() const noexcept { return detail::view(tsq_mini_app_icon_url(app_)); }
    std::string_view home_url() const noexcept { return detail::view(tsq_mini_app_home_url(app_)); }
    std::optional<std::string_view> category() const noexcept { return optional(tsq_mini_app_category); }
    Networks networks() const noexcept { return Networks(app_); }
    Tags tags() const noexcept { return Tags(app_); }
    Screenshots screenshots() const noexcept { return Screenshots(app_); }
    std::optional<Author> author() const noexcept {
        const tsq_author *author = tsq_mini_app_author(app_);
        return author != nullptr ? std::optional(Author(author)) : std::nullopt;
    }
    std::uint64_t follower_count() const noexcept { return tsq_mini_app_follower_count(app_); }
    std::optional<std::uint32_t> trending_rank() const noexcept {
        std::uint32_t rank = 0;
        return tsq_mini_app_trending_rank(app_, &rank) ? std::optional(rank) : std::nullopt;
    }
    std::optional<std::string_view> hero_image_url() const noexcept { return optional(tsq_mini_app_hero_image_url); }
    std::optional<std::string_view> tagline() const noexcept { return optional(tsq_mini_app_tagline); }
    std::optional<std::string_view> subtitle() const noexcept { return optional(tsq_mini_app_subtitle); }
    std::string_view version() const noexcept { return detail::view(tsq_mini_app_version(app_)); }
    std::optional<std::string_view> button_title() const noexcept { return optional(tsq_mini_app_button_title); }
    std::optional<std::string_view> image_url() const noexcept { return optional(tsq_mini_app_image_url); }
    std::optional<std::string_view> splash_image_url() const noexcept { return optional(tsq_mini_app_splash_image_url); }
    std::optional<std::string_view> splash_background_color() const noexcept {
        return optional(tsq_mini_app_splash_background_color);
    }
    Timestamp last_fetched() const noexcept { return detail::timestamp(tsq_mini_app_last_fetched(app_)); }
    /// The endpoint's shape, camelCase.
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_mini_app_json(app_, out, err); });
    }

    const tsq_mini_app *get() const noexcept { return app_; }

private:
    std::optional<std::string_view> optional(tsq_str (*field)(const tsq_mini_app *)) const noexcept {
        return detail::optional_view(field(app_));
    }

    const tsq_mini_app *app_;
};

/// A list of mini apps, best first.
class MiniApps {
public:
    using value_type = MiniApp;
    using Handle = detail::Owned<tsq_mini_apps, tsq_mini_apps_free>;

    explicit MiniApps(Handle handle) noexcept : handle_(std::move(handle)) {}
    std::size_t size() const noexcept { return tsq_mini_apps_len(get()); }
    bool empty() const noexcept { return size() == 0; }
    /// `index` below size().
    MiniApp operator[](std::size_t index) const & noexcept { return MiniApp(tsq_mini_apps_at(get(), index)); }
    /// A view into a list that is about to end would dangle: keep the list.
    MiniApp operator[](std::size_t index) const && = delete;
    detail::Iterator<MiniApps> begin() const noexcept { return {this, 0}; }
    detail::Iterator<MiniApps> end() const noexcept { return {this, size()}; }
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_mini_apps_json(get(), out, err); });
    }

    const tsq_mini_apps *get() const noexcept { return handle_.get(); }

private:
    Handle handle_;
};

/// What the catalog holds, how old it is, and why it is no newer.
class DiscoveryStats {
public:
    using Handle = detail::Owned<tsq_discovery_stats, tsq_discovery_stats_free>;

    explicit DiscoveryStats(Handle handle) noexcept : handle_(std::move(handle)) {}
    std::size_t total() const noexcept { return tsq_discovery_stats_total(get()); }
    std::size_t received() const noexcept { return tsq_discovery_stats_received(get()); }
    std::size_t skipped() const noexcept { return tsq_discovery_stats_skipped(get()); }
    std::size_t duplicates() const noexcept { return tsq_discovery_stats_duplicates(get()); }
    bool has_api_key() const noexcept { return tsq_discovery_stats_has_api_key(get()); }
    /// `upstream`, `file`, `database` or `none`.
    std::string_view source() const noexcept { return detail::view(tsq_discovery_stats_source(get())); }
    std::optional<Timestamp> fetched_at() const noexcept {
        std::int64_t micros = 0;
        return tsq_discovery_stats_fetched_at(get(), &micros) ? std::optional(detail::timestamp(micros)) : std::nullopt;
    }
    bool is_stale() const noexcept { return tsq_discovery_stats_is_stale(get()); }
    bool is_refreshing() const noexcept { return tsq_discovery_stats_is_refreshing(get()); }
    std::optional<std::string_view> last_error() const noexcept {
        return detail::optional_view(tsq_discovery_stats_last_error(get()));
    }

    const tsq_discovery_stats *get() const noexcept { return handle_.get(); }

private:
    Handle handle_;
};

/// The endpoint's answer to a request.
class HttpResponse {
public:
    using Handle = detail::Owned<tsq_http_response, tsq_http_response_free>;
    /// Name, in lower case, and value.
    struct Header {
        std::string_view name;
        std::string_view value;
    };

    explicit HttpResponse(Handle handle) noexcept : handle_(std::move(handle)) {}
    std::uint16_t status() const noexcept { return tsq_http_response_status(get()); }
    std::vector<Header> headers() const {
        std::vector<Header> headers(tsq_http_response_headers_len(get()));
        for (std::size_t i = 0; i < headers.size(); i++) {
            headers[i].name = detail::view(tsq_http_response_header_name_at(get(), i));
            headers[i].value = detail::view(tsq_http_response_header_value_at(get(), i));
        }
        return headers;
    }
    std::string_view body() const noexcept {
        const tsq_bytes body = tsq_http_response_body(get());
        return {reinterpret_cast<const char *>(body.ptr), body.len};
    }

    const tsq_http_response *get() const noexcept { return handle_.get(); }

private:
    Handle handle_;
};

/// Discovery of mini apps: a view of its client.
class Discovery {
public:
    explicit Discovery(const tsq_client *client) noexcept : client_(client) {}

    MiniApps get_trending_mini_apps(std::string_view timeframe = "24h", const Selection &selection = {}) const {
        const detail::BorrowedSelection borrowed(selection);
        return list([&](auto out, auto err) {
            return tsq_discovery_get_trending_mini_apps(client_, detail::text(timeframe), borrowed.get(), out, err);
        });
    }
    MiniApps get_mini_apps_by_category(const std::vector<std::string> &categories, const Selection &selection = {}) const {
        const detail::BorrowedSelection borrowed(selection);
        const std::vector<tsq_str> texts = detail::BorrowedSelection::texts(categories);
        return list([&](auto out, auto err) {
            return tsq_discovery_get_mini_apps_by_category(client_, texts.data(), texts.size(), borrowed.get(), out, err);
        });
    }
    MiniApps search_mini_apps(std::string_view query, const Selection &selection = {}) const {
        const detail::BorrowedSelection borrowed(selection);
        return list([&](auto out, auto err) {
            return tsq_discovery_search_mini_apps(client_, detail::text(query), borrowed.get(), out, err);
        });
    }
    DiscoveryStats refresh() const { return stats_of(tsq_discovery_refresh); }
    DiscoveryStats force_refresh() const { return stats_of(tsq_discovery_force_refresh); }
    DiscoveryStats stats() const { return stats_of(tsq_discovery_get_stats); }
    HttpResponse handle(std::string_view method, std::string_view target, std::string_view body = {}) const {
        const tsq_bytes bytes{reinterpret_cast<const std::uint8_t *>(body.data()), body.size()};
        return HttpResponse(detail::make<HttpResponse::Handle>([&](auto out, auto err) {
            return tsq_discovery_handle(client_, detail::text(method), detail::text(target), bytes, out, err);
        }));
    }

private:
    template <typename Call>
    static MiniApps list(Call call) {
        return MiniApps(detail::make<MiniApps::Handle>(call));
    }
    DiscoveryStats stats_of(tsq_status (*call)(const tsq_client *, tsq_discovery_stats **, tsq_error **)) const {
        return DiscoveryStats(detail::make<DiscoveryStats::Handle>(
            [this, call](auto out, auto err) { return call(client_, out, err); }));
    }

    const tsq_client *client_;
};

/// An open client. Its destructor ends this handle, and closes the client when it was the last.
class Client {
public:
    /// Opens with the defaults.
    Client() : Client(detail::make<Handle>([](auto out, auto err) { return tsq_client_open(nullptr, out, err); })) {}
    /// Opens; the configuration may end afterwards.
    explicit Client(const Config &config)
        : Client(detail::make<Handle>([&](auto out, auto err) { return tsq_client_open(config.get(), out, err); })) {}
    /// The client of this process, with the defaults when this is the first call.
    static Client shared() {
        return Client(detail::make<Handle>([](auto out, auto err) { return tsq_client_shared(nullptr, out, err); }));
    }
    /// The client of this process; throws TSQ_CONFIG when it was opened with other options.
    static Client shared(const Config &config) {
        return Client(detail::make<Handle>([&](auto out, auto err) { return tsq_client_shared(config.get(), out, err); }));
    }

    /// Closes the client for all its handles; closing again does nothing.
    void close() {
        detail::act([this](auto err) { return tsq_client_close(get(), err); });
    }
    bool is_closed() const noexcept { return tsq_client_is_closed(get()); }
    Discovery discovery() const noexcept { return Discovery(get()); }

    tsq_client *get() const noexcept { return handle_.get(); }

private:
    using Handle = detail::Owned<tsq_client, tsq_client_free>;
    explicit Client(Handle handle) noexcept : handle_(std::move(handle)) {}
    Handle handle_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_HPP
