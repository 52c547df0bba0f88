// Part of townsquare.hpp, which programs include: mini apps and their discovery.

#ifndef TOWNSQUARE_DISCOVERY_HPP
#define TOWNSQUARE_DISCOVERY_HPP

#include <townsquare/auth.hpp>
#include <townsquare/base.hpp>

#include <functional>

namespace townsquare {

/// The page and the filters of a discovery call: `{20}`, `{20, {"games"}, {"base", "optimism"}}`.
struct Selection {
    /// 1 to 1,000.
    std::uint32_t limit = 50;
    /// Only apps of one of these categories; empty: of any.
    std::vector<std::string> categories = {};
    /// Only apps on one of these networks; empty: on any.
    std::vector<std::string> networks = {};
    /// Number of apps to leave out at the start of the list.
    std::uint64_t offset = 0;
    /// Whether near-copies (apps with the same name and author) are returned once.
    bool is_collapsed = false;
};

namespace detail {

/// A Selection for the C functions, for one call.
class BorrowedSelection {
public:
    explicit BorrowedSelection(const Selection &selection)
        : categories_(texts(selection.categories)), networks_(texts(selection.networks)),
          selection_(TSQ_SELECTION(selection.limit)) {
        selection_.categories = categories_.data();
        selection_.categories_len = categories_.size();
        selection_.networks = networks_.data();
        selection_.networks_len = networks_.size();
        selection_.offset = selection.offset;
        selection_.is_collapsed = selection.is_collapsed;
    }
    BorrowedSelection(const BorrowedSelection &) = delete;
    BorrowedSelection &operator=(const BorrowedSelection &) = delete;
    BorrowedSelection(BorrowedSelection &&) = delete;
    BorrowedSelection &operator=(BorrowedSelection &&) = delete;
    ~BorrowedSelection() = default;
    [[nodiscard]] const tsq_selection *get() const noexcept { return &selection_; }

private:
    std::vector<tsq_str> categories_;
    std::vector<tsq_str> networks_;
    tsq_selection selection_;
};

}  // namespace detail

/// The publisher of a mini app: a view.
class Author {
public:
    explicit Author(const tsq_author *author) noexcept : author_(author) {}
    [[nodiscard]] std::uint64_t fid() const noexcept { return tsq_author_fid(author_); }
    [[nodiscard]] std::string_view username() const noexcept { return detail::view(tsq_author_username(author_)); }
    [[nodiscard]] std::optional<std::string_view> display_name() const noexcept {
        return detail::optional_view(tsq_author_display_name(author_));
    }
    [[nodiscard]] std::optional<std::string_view> pfp_url() const noexcept { return detail::optional_view(tsq_author_pfp_url(author_)); }
    [[nodiscard]] std::uint64_t follower_count() const noexcept { return tsq_author_follower_count(author_); }
    [[nodiscard]] std::optional<double> score() const noexcept {
        double score = 0;
        return tsq_author_score(author_, &score) ? std::optional(score) : std::nullopt;
    }
    [[nodiscard]] bool is_power_user() const noexcept { return tsq_author_is_power_user(author_); }

private:
    const tsq_author *author_;
};

/// A part of a text, in characters: from `start` up to `end`.
struct Range {
    std::size_t start;
    std::size_t end;
};

namespace detail {

inline std::vector<Range> ranges(const tsq_range *ranges, std::size_t len) {
    std::vector<Range> result(len);
    for (std::size_t i = 0; i < len; i++) result[i] = {ranges[i].start, ranges[i].end};
    return result;
}

}  // namespace detail

/// A text of an app that matches a query: a view.
class Highlight {
public:
    explicit Highlight(const tsq_highlight *highlight) noexcept : highlight_(highlight) {}
    [[nodiscard]] std::string_view field() const noexcept { return detail::view(highlight_->field); }
    [[nodiscard]] std::string_view text() const noexcept { return detail::view(highlight_->text); }
    /// The matched words.
    [[nodiscard]] std::vector<Range> matches() const { return detail::ranges(highlight_->matches, highlight_->matches_len); }

private:
    const tsq_highlight *highlight_;
};

using HighlightsView = ListView<Highlight, tsq_highlights, tsq_highlights_len, tsq_highlights_at>;
using Highlights = List<HighlightsView, tsq_highlights, tsq_highlights_free, tsq_highlights_json>;

/// A mini app: a view.
class MiniApp {
public:
    using Networks = ListView<std::string_view, tsq_mini_app, tsq_mini_app_networks_len, tsq_mini_app_networks_at>;
    using Tags = ListView<std::string_view, tsq_mini_app, tsq_mini_app_tags_len, tsq_mini_app_tags_at>;
    using Screenshots = ListView<std::string_view, tsq_mini_app, tsq_mini_app_screenshots_len, tsq_mini_app_screenshots_at>;

    explicit MiniApp(const tsq_mini_app *app) noexcept : app_(app) {}
    [[nodiscard]] std::string_view id() const noexcept { return detail::view(tsq_mini_app_id(app_)); }
    [[nodiscard]] std::string_view domain() const noexcept { return detail::view(tsq_mini_app_domain(app_)); }
    [[nodiscard]] std::string_view name() const noexcept { return detail::view(tsq_mini_app_name(app_)); }
    [[nodiscard]] std::optional<std::string_view> description() const noexcept { return optional(tsq_mini_app_description); }
    [[nodiscard]] std::string_view icon_url() const noexcept { return detail::view(tsq_mini_app_icon_url(app_)); }
    [[nodiscard]] std::string_view home_url() const noexcept { return detail::view(tsq_mini_app_home_url(app_)); }
    [[nodiscard]] std::optional<std::string_view> category() const noexcept { return optional(tsq_mini_app_category); }
    [[nodiscard]] Networks networks() const noexcept { return Networks(app_); }
    [[nodiscard]] Tags tags() const noexcept { return Tags(app_); }
    [[nodiscard]] Screenshots screenshots() const noexcept { return Screenshots(app_); }
    [[nodiscard]] std::optional<Author> author() const noexcept {
        const tsq_author *author = tsq_mini_app_author(app_);
        return author != nullptr ? std::optional(Author(author)) : std::nullopt;
    }
    [[nodiscard]] std::uint64_t follower_count() const noexcept { return tsq_mini_app_follower_count(app_); }
    [[nodiscard]] std::optional<std::uint32_t> trending_rank() const noexcept {
        std::uint32_t rank = 0;
        return tsq_mini_app_trending_rank(app_, &rank) ? std::optional(rank) : std::nullopt;
    }
    [[nodiscard]] std::optional<std::string_view> hero_image_url() const noexcept { return optional(tsq_mini_app_hero_image_url); }
    [[nodiscard]] std::optional<std::string_view> tagline() const noexcept { return optional(tsq_mini_app_tagline); }
    [[nodiscard]] std::optional<std::string_view> subtitle() const noexcept { return optional(tsq_mini_app_subtitle); }
    [[nodiscard]] std::string_view version() const noexcept { return detail::view(tsq_mini_app_version(app_)); }
    [[nodiscard]] std::optional<std::string_view> button_title() const noexcept { return optional(tsq_mini_app_button_title); }
    [[nodiscard]] std::optional<std::string_view> image_url() const noexcept { return optional(tsq_mini_app_image_url); }
    [[nodiscard]] std::optional<std::string_view> splash_image_url() const noexcept { return optional(tsq_mini_app_splash_image_url); }
    [[nodiscard]] std::optional<std::string_view> splash_background_color() const noexcept {
        return optional(tsq_mini_app_splash_background_color);
    }
    [[nodiscard]] Timestamp last_fetched() const noexcept { return detail::timestamp(tsq_mini_app_last_fetched(app_)); }
    /// When the app was first in the catalog.
    [[nodiscard]] Timestamp first_seen() const noexcept { return detail::timestamp(tsq_mini_app_first_seen(app_)); }
    /// The words of the app that match a search query, by field.
    [[nodiscard]] Highlights highlights(std::string_view query) const {
        return Highlights(detail::make<Highlights::Handle>(
            [&](auto out, auto err) { return tsq_mini_app_highlights(app_, detail::text(query), out, err); }));
    }
    /// As in responses of the HTTP endpoint: camelCase.
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_mini_app_json(app_, out, err); });
    }

    [[nodiscard]] const tsq_mini_app *get() const noexcept { return app_; }

private:
    std::optional<std::string_view> optional(tsq_str (*field)(const tsq_mini_app *)) const noexcept {
        return detail::optional_view(field(app_));
    }

    const tsq_mini_app *app_;
};

using MiniAppsView = ListView<MiniApp, tsq_mini_apps, tsq_mini_apps_len, tsq_mini_apps_at>;
/// Mini apps, best first: one page of a longer list.
class MiniApps : public List<MiniAppsView, tsq_mini_apps, tsq_mini_apps_free, tsq_mini_apps_json> {
public:
    using List::List;
    /// The number of apps without limit and offset. The first call for a filtered or searched list counts them.
    [[nodiscard]] std::size_t total() const noexcept { return tsq_mini_apps_total(get()); }
};

/// A category or a network with its number of apps: a view.
class Facet {
public:
    explicit Facet(const tsq_facet *facet) noexcept : facet_(facet) {}
    [[nodiscard]] std::string_view name() const noexcept { return detail::view(facet_->name); }
    [[nodiscard]] std::size_t count() const noexcept { return facet_->count; }

private:
    const tsq_facet *facet_;
};

using FacetsView = ListView<Facet, tsq_facets, tsq_facets_len, tsq_facets_at>;
/// Categories or networks, most apps first.
using Facets = List<FacetsView, tsq_facets, tsq_facets_free, tsq_facets_json>;

/// A suggestion for a search box: a view.
class Suggestion {
public:
    explicit Suggestion(const tsq_suggestion *suggestion) noexcept : suggestion_(suggestion) {}
    [[nodiscard]] MiniApp app() const noexcept { return MiniApp(suggestion_->app); }
    /// The text to show: the app's name.
    [[nodiscard]] std::string_view text() const noexcept { return detail::view(suggestion_->text); }
    /// The parts of the text that the input matches.
    [[nodiscard]] std::vector<Range> matches() const { return detail::ranges(suggestion_->matches, suggestion_->matches_len); }

private:
    const tsq_suggestion *suggestion_;
};

using SuggestionsView = ListView<Suggestion, tsq_suggestions, tsq_suggestions_len, tsq_suggestions_at>;
using Suggestions = List<SuggestionsView, tsq_suggestions, tsq_suggestions_free, tsq_suggestions_json>;

/// The state of the catalog: a view.
class DiscoveryStats {
public:
    using Handle = detail::Handle<tsq_discovery_stats, tsq_discovery_stats_free>;

    explicit DiscoveryStats(const tsq_discovery_stats *stats) noexcept : stats_(stats) {}
    [[nodiscard]] std::size_t total() const noexcept { return stats_->total; }
    [[nodiscard]] std::size_t received() const noexcept { return stats_->received; }
    [[nodiscard]] std::size_t skipped() const noexcept { return stats_->skipped; }
    [[nodiscard]] std::size_t duplicates() const noexcept { return stats_->duplicates; }
    [[nodiscard]] bool has_api_key() const noexcept { return stats_->has_api_key; }
    /// `upstream`, `file`, `database` or `none`.
    [[nodiscard]] std::string_view source() const noexcept { return detail::view(stats_->source); }
    [[nodiscard]] std::optional<Timestamp> fetched_at() const noexcept {
        return stats_->has_fetched_at ? std::optional(detail::timestamp(stats_->fetched_at)) : std::nullopt;
    }
    [[nodiscard]] bool is_stale() const noexcept { return stats_->is_stale; }
    [[nodiscard]] bool is_refreshing() const noexcept { return stats_->is_refreshing; }
    [[nodiscard]] std::optional<std::string_view> last_error() const noexcept { return detail::optional_view(stats_->last_error); }
    /// The further lists that are older than the catalog or could not be fetched: `7d`, `networks=base`.
    [[nodiscard]] std::vector<std::string_view> stale_lists() const {
        std::vector<std::string_view> lists;
        lists.reserve(stats_->stale_lists_len);
        for (std::size_t i = 0; i < stats_->stale_lists_len; i++) lists.push_back(detail::view(stats_->stale_lists[i]));
        return lists;
    }
    /// Whether the source has more apps than the option `catalog_max_pages` lets through.
    [[nodiscard]] bool truncated() const noexcept { return stats_->truncated; }

    [[nodiscard]] const tsq_discovery_stats *get() const noexcept { return stats_; }

private:
    const tsq_discovery_stats *stats_;
};

/// A response of the HTTP endpoint: a view.
class HttpResponse {
public:
    using Handle = detail::Handle<tsq_http_response, tsq_http_response_free>;
    /// Name, in lower case, and value.
    struct Header {
        std::string_view name;
        std::string_view value;
    };

    explicit HttpResponse(const tsq_http_response *response) noexcept : response_(response) {}
    [[nodiscard]] std::uint16_t status() const noexcept { return response_->status; }
    [[nodiscard]] std::vector<Header> headers() const {
        std::vector<Header> headers(response_->headers_len);
        for (std::size_t i = 0; i < headers.size(); i++) {
            headers[i] = {detail::view(response_->headers[i].name), detail::view(response_->headers[i].value)};
        }
        return headers;
    }
    [[nodiscard]] std::string_view body() const noexcept {
        return {reinterpret_cast<const char *>(response_->body.ptr), response_->body.len};
    }

    [[nodiscard]] const tsq_http_response *get() const noexcept { return response_; }

private:
    const tsq_http_response *response_;
};

/// Receives the result of Discovery::preload: nullptr, or the error, which lives until the callback returns. Runs on a
/// thread of the library; exceptions that it throws are dropped.
using PreloadCallback = std::function<void(const Error *error)>;

namespace detail {

/// Calls a PreloadCallback from C.
inline void call_preload(const tsq_error *error, void *callback) noexcept {
    TSQ_DETAIL_TRY {
        const auto &function = *static_cast<PreloadCallback *>(callback);
        if (error == nullptr) {
            function(nullptr);
        } else {
            const Error copy = Error::copy_of(error);
            function(&copy);
        }
    } TSQ_DETAIL_CATCH_ALL {
    }
}

inline void delete_preload(void *callback) noexcept { delete static_cast<PreloadCallback *>(callback); }

}  // namespace detail

/// Receives the state of the catalog after a refresh that changed it; the state lives until the callback returns. Runs on a
/// thread of the library; exceptions that it throws are dropped.
using CatalogCallback = std::function<void(const DiscoveryStats &stats)>;

namespace detail {

/// Calls a CatalogCallback from C.
inline void call_catalog(const tsq_discovery_stats *stats, void *callback) noexcept {
    TSQ_DETAIL_TRY {
        const auto &function = *static_cast<CatalogCallback *>(callback);
        function(DiscoveryStats(stats));
    } TSQ_DETAIL_CATCH_ALL {
    }
}

inline void delete_catalog(void *callback) noexcept { delete static_cast<CatalogCallback *>(callback); }

}  // namespace detail

/// Operations of discovery: a view of the client.
class Discovery {
public:
    explicit Discovery(const tsq_client *client) noexcept : client_(client) {}

    [[nodiscard]] MiniApps get_trending_mini_apps(std::string_view timeframe = "24h", const Selection &selection = {}) const {
        const detail::BorrowedSelection borrowed(selection);
        return list([&](auto out, auto err) {
            return tsq_discovery_get_trending_mini_apps(client_, detail::text(timeframe), borrowed.get(), out, err);
        });
    }
    [[nodiscard]] MiniApps get_mini_apps_by_category(const std::vector<std::string> &categories, const Selection &selection = {}) const {
        const detail::BorrowedSelection borrowed(selection);
        const std::vector<tsq_str> texts = detail::texts(categories);
        return list([&](auto out, auto err) {
            return tsq_discovery_get_mini_apps_by_category(client_, texts.data(), texts.size(), borrowed.get(), out, err);
        });
    }
    [[nodiscard]] MiniApps search_mini_apps(std::string_view query, const Selection &selection = {}) const {
        const detail::BorrowedSelection borrowed(selection);
        return list([&](auto out, auto err) {
            return tsq_discovery_search_mini_apps(client_, detail::text(query), borrowed.get(), out, err);
        });
    }
    /// Latest first seen first.
    [[nodiscard]] MiniApps get_new_mini_apps(const Selection &selection = {}) const {
        const detail::BorrowedSelection borrowed(selection);
        return list([&](auto out, auto err) { return tsq_discovery_get_new_mini_apps(client_, borrowed.get(), out, err); });
    }
    /// By shared words, author and category; never the app itself.
    [[nodiscard]] MiniApps get_similar_mini_apps(std::string_view id, std::uint32_t limit = 10) const {
        return list([&](auto out, auto err) {
            return tsq_discovery_get_similar_mini_apps(client_, detail::text(id), limit, out, err);
        });
    }
    /// A list of the app of an id, of a home URL in any spelling, or of a domain; empty when there is none.
    [[nodiscard]] MiniApps get_mini_app(std::string_view id) const {
        return list([&](auto out, auto err) { return tsq_discovery_get_mini_app(client_, detail::text(id), out, err); });
    }
    /// For a search box while the user types.
    [[nodiscard]] Suggestions suggest_mini_apps(std::string_view text, std::uint32_t limit = 8) const {
        return Suggestions(detail::make<Suggestions::Handle>([&](auto out, auto err) {
            return tsq_discovery_suggest_mini_apps(client_, detail::text(text), limit, out, err);
        }));
    }
    /// Of the selection only the networks count.
    [[nodiscard]] Facets categories(const Selection &selection = {}) const {
        const detail::BorrowedSelection borrowed(selection);
        return Facets(detail::make<Facets::Handle>(
            [&](auto out, auto err) { return tsq_discovery_categories(client_, borrowed.get(), out, err); }));
    }
    /// Of the selection only the categories count.
    [[nodiscard]] Facets networks(const Selection &selection = {}) const {
        const detail::BorrowedSelection borrowed(selection);
        return Facets(detail::make<Facets::Handle>(
            [&](auto out, auto err) { return tsq_discovery_networks(client_, borrowed.get(), out, err); }));
    }
    /// Calls `callback` after each refresh that changed the catalog.
    [[nodiscard]] Subscription on_catalog_change(CatalogCallback callback) const {
        const tsq_catalog_callback call = callback ? detail::call_catalog : nullptr;
        auto data = std::make_unique<CatalogCallback>(std::move(callback));
        return Subscription(detail::make<Subscription::Handle>([&](auto out, auto err) {
            return tsq_discovery_on_catalog_change(client_, call, data.release(), detail::delete_catalog, out, err);
        }));
    }
    /// Loads the catalog in the background; `callback` runs when calls answer from memory, or when loading failed.
    void preload(PreloadCallback callback) const {
        const tsq_preload_callback call = callback ? detail::call_preload : nullptr;
        auto data = std::make_unique<PreloadCallback>(std::move(callback));
        detail::act([&](auto err) {
            return tsq_discovery_preload(client_, call, data.release(), detail::delete_preload, err);
        });
    }
    Owned<DiscoveryStats> refresh() const { return stats_of(tsq_discovery_refresh); }
    Owned<DiscoveryStats> force_refresh() const { return stats_of(tsq_discovery_force_refresh); }
    [[nodiscard]] Owned<DiscoveryStats> stats() const { return stats_of(tsq_discovery_get_stats); }
    /// Answers a request to the endpoint; `headers` are names, in any case, and values.
    [[nodiscard]] Owned<HttpResponse> handle(std::string_view method, std::string_view target, std::string_view body = {},
                                             const std::vector<std::pair<std::string_view, std::string_view>> &headers = {}) const {
        const tsq_bytes bytes{reinterpret_cast<const std::uint8_t *>(body.data()), body.size()};
        if (headers.empty()) {
            return detail::owned<HttpResponse>([&](auto out, auto err) {
                return tsq_discovery_handle(client_, detail::text(method), detail::text(target), bytes, out, err);
            });
        }
        const auto borrowed_headers = detail::http_headers(headers);
        tsq_http_request borrowed{};
        borrowed.size = sizeof borrowed;
        borrowed.method = detail::text(method);
        borrowed.target = detail::text(target);
        borrowed.headers = borrowed_headers.data();
        borrowed.headers_len = borrowed_headers.size();
        borrowed.body = bytes;
        return detail::owned<HttpResponse>(
            [&](auto out, auto err) { return tsq_discovery_handle_request(client_, &borrowed, out, err); });
    }

private:
    template <typename Call>
    static MiniApps list(Call call) {
        return MiniApps(detail::make<MiniApps::Handle>(call));
    }
    Owned<DiscoveryStats> stats_of(tsq_status (*call)(const tsq_client *, tsq_discovery_stats **, tsq_error **)) const {
        return detail::owned<DiscoveryStats>([this, call](auto out, auto err) { return call(client_, out, err); });
    }

    const tsq_client *client_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_DISCOVERY_HPP
