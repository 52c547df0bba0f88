// Part of townsquare.hpp, which programs include: mini apps and their discovery.

#ifndef TOWNSQUARE_DISCOVERY_HPP
#define TOWNSQUARE_DISCOVERY_HPP

#include <townsquare/base.hpp>

namespace townsquare {

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
        const std::vector<tsq_str> texts = detail::texts(categories);
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

}  // namespace townsquare

#endif  // TOWNSQUARE_DISCOVERY_HPP
