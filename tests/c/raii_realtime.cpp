// Changes of rows with townsquare.hpp: ownership, callbacks and streams (SPEC 6; DESIGN 5, 10).
//
// raii_realtime CATALOG FOLDER: the folder is empty; the catalog is not read.

#include <townsquare.hpp>

#include "check.h"
#include "throws.hpp"

#include <chrono>
#include <future>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

using townsquare::ChangeRequest;
using townsquare::ChangeStream;
using townsquare::Client;
using townsquare::Config;
using townsquare::Error;
using townsquare::LiveQuery;
using townsquare::NewSpace;
using townsquare::RowChange;
using townsquare::Subscription;

static_assert(!std::is_copy_constructible_v<ChangeStream> && std::is_nothrow_move_constructible_v<ChangeStream>);
static_assert(!std::is_copy_constructible_v<LiveQuery>);

// What would dangle does not compile.
template <typename T, typename = void>
constexpr bool views = false;
template <typename T>
constexpr bool views<T, std::void_t<decltype(std::declval<T>().view())>> = true;
static_assert(views<const ChangeStream &> && !views<ChangeStream>, "no view of a temporary stream");
template <typename T, typename = void>
constexpr bool indexes = false;
template <typename T>
constexpr bool indexes<T, std::void_t<decltype(std::declval<T>()[std::size_t{0}])>> = true;
static_assert(indexes<const LiveQuery &> && !indexes<LiveQuery>, "no row of a temporary query");
template <typename T, typename = void>
constexpr bool changes = false;
template <typename T>
constexpr bool changes<T, std::void_t<decltype(std::declval<T>().changes())>> = true;
static_assert(changes<const LiveQuery &> && !changes<LiveQuery>, "no stream of a temporary query");
template <typename T, typename = void>
constexpr bool borrows = false;
template <typename T>
constexpr bool borrows<T, std::void_t<decltype(std::declval<T>().borrowed())>> = true;
using townsquare::Change;
using townsquare::Text;
static_assert(borrows<const Text &> && !borrows<Text> && borrows<const Change<std::string> &> && !borrows<Change<std::string>>,
              "no view of a temporary text or change");
template <typename T, typename = void>
constexpr bool has_value = false;
template <typename T>
constexpr bool has_value<T, std::void_t<decltype(std::declval<T>().value())>> = true;
static_assert(has_value<const Text &> && !has_value<Text> && has_value<const Change<bool> &> && !has_value<Change<bool>>,
              "no reference into a temporary text or change");

namespace {

constexpr std::chrono::seconds LONG{20};

void create_space(const Client &service, std::string_view name) {
    NewSpace space;
    space.name = name;
    static_cast<void>(service.spaces().create_space(space));
}

void subscriptions(const Client &service) {
    std::promise<std::string> heard;
    std::promise<bool> closed;
    ChangeRequest request;
    request.table = "spaces";
    request.filter = "name=eq.Harbor";
    request.on_close = [&](const Error *reason) { closed.set_value(reason == nullptr); };
    Subscription subscription = service.realtime().subscribe("harbors", request, [&](RowChange change) {
        heard.set_value(std::string(townsquare::name(change.event())) + " " + std::string(change.table()));
        throw std::runtime_error("dropped");
    });
    create_space(service, "Other");
    create_space(service, "Harbor");
    CHECK(heard.get_future().get() == "INSERT spaces");
    subscription.unsubscribe();
    CHECK(closed.get_future().get());
}

void an_end_has_its_reason(const Client &client, const Client &service) {
    client.auth().sign_up("ann@town.example", "correct horse battery");
    const auto session = service.auth().create_session("ann@town.example", "correct horse battery");
    const Client user = client.as_user(session->access_token());
    std::promise<std::string> closed;
    ChangeRequest request;
    request.table = "spaces";
    request.on_close = [&](const Error *reason) {
        closed.set_value(reason == nullptr ? "none" : std::string(reason->message()) + (reason->status() == 401 ? " 401" : ""));
    };
    const Subscription subscription = user.realtime().subscribe("session", request, [](RowChange) {});
    user.auth().sign_out(TSQ_SIGN_OUT_GLOBAL);
    CHECK(closed.get_future().get() == "Session has ended 401");
}

void streams(const Client &service) {
    ChangeRequest request;
    request.table = "spaces";
    const std::string cursor = service.realtime().cursor();
    request.since = cursor;
    const ChangeStream changes = service.realtime().changes(request);
    create_space(service, "Quay");
    const auto change = changes.next(LONG);
    CHECK(change && (*change)->new_row().find("Quay") != std::string_view::npos && (*change)->old_row().empty());
    CHECK(change && (*change)->json().find("eventType") != std::string::npos && !(*change)->cursor().empty());
    CHECK(!changes.next(std::chrono::milliseconds(0)) && !changes.has_ended());
    std::thread waiting([&] { static_cast<void>(changes.next()); });
    changes.close();
    waiting.join();
    CHECK(changes.has_ended() && !changes.next());
}

void ends(const Client &service, const std::string &folder) {
    const std::string start = service.realtime().cursor();
    create_space(service, "Before");
    const std::string end = service.realtime().cursor();
    create_space(service, "After");
    ChangeRequest request;
    request.table = "spaces";
    request.since = start;
    request.until = end;
    const ChangeStream changes = service.realtime().changes(request);
    const auto change = changes.next();
    CHECK(change && (*change)->new_row().find("Before") != std::string_view::npos);
    CHECK(!changes.next() && changes.has_ended());
    std::promise<bool> closed;
    request.on_close = [&](const Error *reason) { closed.set_value(reason == nullptr); };
    int calls = 0;
    const Subscription subscription = service.realtime().subscribe("past", request, [&](RowChange) { calls++; });
    CHECK(closed.get_future().get() && calls == 1);

    request.on_close = {};
    const Client other(Config().set("data_dir", folder + "/elsewhere").set("catalog_api_key", ""));
    const std::string foreign = other.realtime().cursor();
    request.until = foreign;
    CHECK(throws(TSQ_CURSOR_EXPIRED, "Read changes failed: The cursor is of another incarnation of the database",
                 [&] { return service.realtime().changes(request); }));
    request.until = "tomorrow";
    CHECK(throws(TSQ_INVALID_INPUT, "Read changes failed: The text is no cursor of the change feed",
                 [&] { return service.realtime().changes(request); }));
    request.table = "spaces";
    request.on_close = [](const Error *) {};
    CHECK(throws(TSQ_INVALID_INPUT, "Read changes failed: Argument request.on_close is for tsq_realtime_subscribe only",
                 [&] { return service.realtime().changes(request); }));
}

// Waits until the descriptor is readable.
bool waits(int descriptor) {
    pollfd waiting{descriptor, POLLIN, 0};
    return poll(&waiting, 1, 20000) == 1;
}

void host_loop(const Client &client) {
    const int descriptor = client.poll_fd();
    CHECK(client.poll_fd() == descriptor);
    const Client service = client.as_service();
    const auto thread = std::this_thread::get_id();
    int calls = 0;
    ChangeRequest request;
    request.table = "spaces";
    request.filter = "name=eq.Loop";
    bool closed = false;
    request.on_close = [&](const Error *reason) { closed = reason == nullptr; };
    const Subscription subscription = service.realtime().subscribe("loop", request, [&](RowChange) {
        calls += std::this_thread::get_id() == thread ? 1 : 100;
        throw std::runtime_error("dropped");
    });
    create_space(service, "Loop");
    while (calls == 0 && waits(descriptor)) client.dispatch();
    CHECK(calls == 1);
    subscription.unsubscribe();
    CHECK(closed);
}

void live_queries(const Client &service) {
    const LiveQuery live = service.realtime().live("spaces", "name=eq.Quay");
    CHECK(live.size() == 1 && live[0].find("Quay") != std::string_view::npos && live[1].empty());
    create_space(service, "Quay");
    CHECK(live.changes().next(LONG).has_value());
    const auto stats = service.realtime().stats();
    CHECK(stats->subscriptions() >= 1 && stats->retained() >= 1 && stats->oldest() && stats->lag_seconds() >= 0);
}

void events(const Client &service) {
    auto response = service.realtime().handle_events("GET", "/events?table=secrets");
    CHECK(response.status() == 404 && response.read_all().find("no such table") != std::string::npos);
    auto stream = service.realtime().handle_events("GET", "/events?table=spaces", {{"last-event-id", service.realtime().cursor()}});
    townsquare::FileRequest request;
    request.target = "/health";
    CHECK(service.handle_request(request).status() == 200);
    request.target = "/events?table=secrets";
    CHECK(service.handle_request(request).status() == 404);
    char bytes[4096];
    const std::size_t length = stream.read(bytes, sizeof bytes);
    CHECK(stream.status() == 200 && std::string(bytes, length).rfind("id: ", 0) == 0);
}

void failures(const Client &service) {
    ChangeRequest request;
    request.table = "secrets";
    CHECK(throws(TSQ_INVALID_INPUT,
                 "Read changes failed: The subscription has no table \"secrets\"; its tables are community_configs, "
                 "community_domains, spaceRegistrations, users, spaces, fidgets, files",
                 [&] { return service.realtime().changes(request); }));
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    Config config;
    config.set("data_dir", std::string(argv[2]) + "/town");
    const Client client(config);
    const Client service = client.as_service();
    subscriptions(service);
    an_end_has_its_reason(client, service);
    streams(service);
    ends(service, argv[2]);
    live_queries(service);
    events(service);
    failures(service);
    host_loop(client);
    return checks_done("raii_realtime");
}
