// The clients and discovery of townsquare.hpp: ownership, exceptions, views and iteration (DESIGN 10).
//
// raii CATALOG FOLDER: the catalog is tests/c/catalog.json, the folder is empty.

#include <townsquare.hpp>

#include "check.h"

#include <string>
#include <thread>
#include <type_traits>
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>
#if __cplusplus >= 202002L
#include <ranges>
#endif

using townsquare::Client;
using townsquare::Config;
using townsquare::DiscoveryStats;
using townsquare::Error;
using townsquare::Facets;
using townsquare::Highlights;
using townsquare::MiniApp;
using townsquare::MiniApps;
using townsquare::Subscription;
using townsquare::Suggestions;

static_assert(!std::is_copy_constructible_v<Client> && std::is_nothrow_move_constructible_v<Client>);
static_assert(!std::is_copy_constructible_v<Config> && std::is_nothrow_move_constructible_v<Config>);
static_assert(!std::is_copy_constructible_v<MiniApps> && std::is_nothrow_move_constructible_v<MiniApps>);
static_assert(std::is_nothrow_copy_constructible_v<Error>, "an exception must not throw when it is copied");
static_assert(sizeof(MiniApp) == sizeof(void *), "a view is a pointer");

// A temporary client has no services to view.
template <typename T, typename = void>
constexpr bool has_services = false;
template <typename T>
constexpr bool has_services<T, std::void_t<decltype(std::declval<T>().discovery())>> = true;
static_assert(has_services<const Client &> && !has_services<Client> && !has_services<const Client>);

// Neither a temporary error nor a temporary owner is viewed.
template <typename T, typename = void>
constexpr bool has_message = false;
template <typename T>
constexpr bool has_message<T, std::void_t<decltype(std::declval<T>().message())>> = true;
static_assert(has_message<const Error &> && !has_message<Error>);
template <typename T, typename = void>
constexpr bool has_handle = false;
template <typename T>
constexpr bool has_handle<T, std::void_t<decltype(std::declval<T>().get())>> = true;
static_assert(has_handle<const Client &> && !has_handle<Client> && has_handle<const MiniApps &> && !has_handle<MiniApps>);
static_assert(has_handle<MiniApp>, "a view refers to its owner, not to itself");

#if __cplusplus >= 202002L
static_assert(std::ranges::random_access_range<const MiniApps> && std::ranges::sized_range<const MiniApps>);
static_assert(std::ranges::random_access_range<MiniApp::Tags>);
static_assert(std::ranges::view<MiniApp::Tags> && std::ranges::borrowed_range<MiniApp::Tags>);
#endif

namespace {

template <typename Call>
int throws(tsq_status kind, std::string_view words, Call call) {
    try {
        static_cast<void>(call());
    } catch (const Error &error) {
        if (error.kind() == kind && std::string_view(error.what()).find(words) != std::string_view::npos) return 1;
        std::fprintf(stderr, "  threw %d: %s\n", static_cast<int>(error.kind()), error.what());
    }
    return 0;
}

Config configure(const std::string &catalog, const std::string &folder) {
    return Config().set("data_dir", folder).set("catalog_url", "file://" + catalog);
}

std::string names(const MiniApps &apps) {
    std::string names;
    for (MiniApp app : apps) {
        if (!names.empty()) names += '|';
        names += app.name();
    }
    return names;
}

void discovery(const Client &client) {
    const MiniApps apps = client.discovery().get_trending_mini_apps();
    CHECK(apps.size() == 4);
    CHECK(names(apps) == "Chess Café|Tip Jar|Pixel Farm|Block Builder");
    CHECK(names(client.discovery().get_trending_mini_apps("7d", {2})) == "Chess Café|Tip Jar");
    CHECK(names(client.discovery().get_trending_mini_apps("24h", {50, {}, {"base"}})) == "Chess Café|Pixel Farm");
    CHECK(names(client.discovery().get_mini_apps_by_category({"games"})) == "Chess Café|Block Builder");
    CHECK(names(client.discovery().get_mini_apps_by_category({"games"}, {1})) == "Chess Café");
    CHECK(names(client.discovery().search_mini_apps("cafe")) == "Chess Café");
    CHECK(client.discovery().search_mini_apps("cafe", {50, {"finance"}}).empty());

    const MiniApp app = apps[0];
    std::string tags;
    for (std::string_view tag : app.tags()) tags += std::string(tag) + ' ';
    CHECK(tags == "chess board ");
    CHECK(app.networks().size() == 2 && app.networks()[0] == "base");
    CHECK(app.screenshots().size() == 2);
    CHECK(app.id() == "chess.example.com/play" && app.domain() == "chess.example.com");
    CHECK(app.description() == "Play chess against friends." && app.category() == "games");
    CHECK(app.icon_url() == "https://chess.example.com/icon.png" && !app.home_url().empty());
    CHECK(app.hero_image_url() && app.tagline() == "Your move" && app.subtitle() == "Blitz and bullet");
    CHECK(app.version() == "1.2.3" && app.button_title() == "Play now" && app.image_url());
    CHECK(app.splash_image_url() && app.splash_background_color() == "#102030");
    CHECK(app.follower_count() == 1200 && app.trending_rank() == 1U);
    CHECK(app.last_fetched() <= std::chrono::system_clock::now());
    CHECK(app.last_fetched() > std::chrono::system_clock::now() - std::chrono::hours(1));
    CHECK(app.author() && app.author()->fid() == 7 && app.author()->username() == "ada");
    CHECK(app.author()->display_name() == "Ada L." && app.author()->pfp_url() && app.author()->score() == 0.75);
    CHECK(app.author()->follower_count() == 1200 && !app.author()->is_power_user());
    CHECK(app.json().find("\"name\":\"Chess Café\"") != std::string::npos);
    CHECK(apps.json().front() == '[');
    CHECK(!apps[2].author() && !apps[2].description() && !apps[2].category());

    const auto by_name = std::find_if(apps.begin(), apps.end(), [](MiniApp one) { return one.name() == "Tip Jar"; });
    CHECK(by_name - apps.begin() == 1 && apps.begin()[1].name() == "Tip Jar");

    const MiniApps page = client.discovery().get_new_mini_apps({1, {"games"}, {}, 1});
    CHECK(page.total() == 2 && names(page) == "Block Builder");
    CHECK(page[0].first_seen() <= std::chrono::system_clock::now());
    CHECK(names(client.discovery().get_mini_app("HTTPS://chess.example.com/play")) == "Chess Café");
    CHECK(client.discovery().get_mini_app("unknown.example").empty());
    CHECK(names(client.discovery().get_similar_mini_apps("chess.example.com")) == "Block Builder");
    const Facets categories = client.discovery().categories();
    CHECK(categories[0].name() == "games" && categories[0].count() == 2 && !client.discovery().networks().empty());
    const Suggestions suggestions = client.discovery().suggest_mini_apps("caf");
    CHECK(suggestions[0].text() == "Chess Café" && suggestions[0].app().category() == "games");
    CHECK(suggestions[0].matches().size() == 1 && suggestions[0].matches()[0].start == 6);
    const Highlights highlights = app.highlights("chess");
    CHECK(highlights[0].field() == "name" && highlights[0].text() == "Chess Café" && highlights[0].matches()[0].end == 5);
    const Subscription changes = client.discovery().on_catalog_change([](const DiscoveryStats &) {});

    const auto stats = client.discovery().refresh();
    CHECK(stats->total() == 4 && stats->received() == 6 && stats->skipped() == 1 && stats->duplicates() == 1);
    CHECK(stats->source() == "file" && stats->fetched_at() && !stats->is_stale() && !stats->is_refreshing());
    CHECK(!stats->last_error() && stats->stale_lists().empty() && !stats->truncated());
    const auto forced = client.discovery().force_refresh();
    const auto now = client.discovery().stats();
    CHECK(forced->total() == 4 && now->total() == 4);

    const auto response = client.discovery().handle("GET", "/api/miniapp-discovery?limit=1");
    CHECK(response->status() == 200 && response->body().find("\"success\":true") != std::string_view::npos);
    CHECK(!response->headers().empty());
    const auto packed = client.discovery().handle("GET", "/api/miniapp-discovery", {}, {{"Accept-Encoding", "gzip"}});
    CHECK(packed->status() == 200 && packed->body().substr(0, 2) == "\x1f\x8b");
    const auto refused = client.discovery().handle("PUT", "/api/miniapp-discovery");
    CHECK(refused->status() == 405);
}

void failures(const Client &client) {
    CHECK(throws(TSQ_INVALID_INPUT, "Get trending mini apps failed: Unknown timeframe",
                 [&] { return client.discovery().get_trending_mini_apps("2h"); }));
    CHECK(throws(TSQ_INVALID_INPUT, "Search mini apps failed: ", [&] { return client.discovery().search_mini_apps("x", {0}); }));
    CHECK(throws(TSQ_INVALID_INPUT, "categories[0]", [&] { return client.discovery().get_mini_apps_by_category({"\xff"}); }));
    CHECK(throws(TSQ_CONFIG, "colour", [] { return Config().set("colour", "red"); }));
    CHECK(throws(TSQ_CONFIG, "URL", [] { return Config::from_url("ftp://x"); }));
    const Config from_env = Config::from_env();
    CHECK(from_env.get() != nullptr);
    try {
        (void)client.discovery().search_mini_apps("\xff");
        CHECK(false);
    } catch (const std::exception &caught) {
        const auto &error = dynamic_cast<const Error &>(caught);
        CHECK(error.operation() == "search_mini_apps");
        CHECK(error.message() == "Argument query is not UTF-8 at byte 0");
        CHECK(error.code().empty() && error.status() == 400 && !error.explanation().empty() && !error.retry_after() && !error.is_retryable());
        Error copy = error;
        CHECK(std::string_view(copy.what()) == error.what());
        // A moved-from error stays usable.
        const Error moved = std::move(copy);
        CHECK(std::string_view(moved.what()) == error.what() && std::string_view(copy.what()) == error.what());
        const Error empty(TSQ_INTERNAL, nullptr);
        CHECK(std::string_view(empty.what()) == "townsquare: unknown error");
    }
}

// A value that another thread sets.
template <typename T>
class Result {
public:
    void set(T value) {
        const std::lock_guard<std::mutex> guard(lock_);
        value_ = value;
        changed_.notify_all();
    }
    // Waits at most a minute.
    std::optional<T> get() {
        std::unique_lock<std::mutex> guard(lock_);
        changed_.wait_for(guard, std::chrono::minutes(1), [&] { return value_.has_value(); });
        return value_;
    }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::optional<T> value_;
};

void preload_and_log(const std::string &catalog, const std::string &folder) {
    Result<tsq_status> loaded, failed;
    Result<tsq_log_level> logged;
    {
        const Client client(configure(catalog, folder + "/preload"));
        client.discovery().preload([&](const Error *error) {
            loaded.set(error != nullptr ? error->kind() : TSQ_OK);
            throw 1;
        });
        CHECK(loaded.get() == TSQ_OK);
        const auto stats = client.discovery().stats();
        CHECK(stats->total() == 4);
        CHECK(throws(TSQ_INVALID_INPUT, "callback is NULL", [&] { client.discovery().preload(nullptr); }));
    }
    townsquare::set_log([&](tsq_log_level level, std::string_view target, std::string_view message) {
        if (target.substr(0, 10) == "townsquare" && !message.empty()) logged.set(level);
    });
    std::optional<Error> kept;
    {
        const Client client(configure(folder + "/no-such-catalog.json", folder + "/unloaded"));
        client.discovery().preload([&](const Error *error) {
            if (error != nullptr) kept = *error;
            failed.set(error != nullptr ? error->kind() : TSQ_OK);
        });
        CHECK(failed.get() == TSQ_UNAVAILABLE);
        CHECK(logged.get().has_value());
    }
    // A copy outlives the callback and the client.
    CHECK(kept && std::string_view(kept->what()).find("no-such-catalog.json") != std::string_view::npos);
    townsquare::set_log({});
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    const std::string folder = argv[2];
    Client client(configure(argv[1], folder + "/town"));
    discovery(client);
    failures(client);

    preload_and_log(argv[1], folder);

    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&client] {
            for (int round = 0; round < 100; round++) (void)client.discovery().search_mini_apps("chess");
        });
    }
    for (std::thread &thread : threads) thread.join();

    // A list outlives its client; a moved client is the same client.
    MiniApps kept = client.discovery().get_trending_mini_apps("24h", {1});
    Client moved = std::move(client);
    CHECK(!moved.is_closed());
    moved.close();
    moved.close();
    CHECK(moved.is_closed());
    CHECK(throws(TSQ_CLOSED, "", [&] { return moved.discovery().search_mini_apps("chess"); }));
    moved = Client(configure(argv[1], folder + "/other"));
    CHECK(names(kept) == "Chess Café");
    kept = moved.discovery().search_mini_apps("tip");
    CHECK(names(kept) == "Tip Jar");

    {
        const Config config = configure(argv[1], folder + "/shared");
        const Client one = Client::shared(config);
        Client two = Client::shared(config);
        two.close();
        CHECK(one.is_closed());
    }
    return checks_done("raii");
}
