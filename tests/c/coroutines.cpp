// Coroutines that wait for changes on the loop of the host (townsquare/coroutines.hpp), with C++20.
//
// coroutines CATALOG FOLDER: the folder is empty; the catalog is not read.

#include <townsquare/coroutines.hpp>

#include "check.h"

#include <exception>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using townsquare::ChangeLoop;
using townsquare::ChangeRequest;
using townsquare::ChangeStream;
using townsquare::Client;
using townsquare::Config;
using townsquare::Error;
using townsquare::NewSpace;

static_assert(!std::is_copy_constructible_v<ChangeLoop::Next> && !std::is_move_constructible_v<ChangeLoop::Next>);

namespace {

// A coroutine that begins at once. Its destructor destroys it, also while it waits.
class Task {
public:
    struct promise_type {
        Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };

    explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
    Task(const Task &) = delete;
    Task(Task &&) = delete;
    Task &operator=(const Task &) = delete;
    Task &operator=(Task &&) = delete;
    ~Task() { coroutine_.destroy(); }
    [[nodiscard]] bool done() const { return coroutine_.done(); }

private:
    std::coroutine_handle<promise_type> coroutine_;
};

using Names = std::vector<std::string>;

Task collect(ChangeLoop &loop, const ChangeStream &changes, Names &names) {
    while (const auto change = co_await loop.next(changes)) {
        const std::string row((*change)->new_row());
        names.push_back(row.find("Quay") != std::string::npos ? "Quay" : "other");
    }
    names.push_back("end");
}

Task fails(ChangeLoop &loop, const ChangeStream &changes, tsq_status &status) {
    try {
        while (co_await loop.next(changes)) {
        }
    } catch (const Error &error) {
        status = error.kind();
    }
}

// A coroutine as Task, whose exceptions leave it.
class ThrowingTask {
public:
    struct promise_type : Task::promise_type {
        ThrowingTask get_return_object() {
            return ThrowingTask(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        void unhandled_exception() { throw; }
    };

    explicit ThrowingTask(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
    ThrowingTask(const ThrowingTask &) = delete;
    ThrowingTask(ThrowingTask &&) = delete;
    ThrowingTask &operator=(const ThrowingTask &) = delete;
    ThrowingTask &operator=(ThrowingTask &&) = delete;
    ~ThrowingTask() { coroutine_.destroy(); }

private:
    std::coroutine_handle<promise_type> coroutine_;
};

ThrowingTask throws_after_a_change(ChangeLoop &loop, const ChangeStream &changes) {
    static_cast<void>(co_await loop.next(changes));
    throw std::runtime_error("boom");
}

void create_space(const Client &service, std::string_view name) {
    NewSpace space;
    space.name = name;
    static_cast<void>(service.spaces().create_space(space));
}

// Runs the loop until a condition holds; false if nothing happens for 20 seconds.
template <typename Condition>
bool run_until(ChangeLoop &loop, Condition condition) {
    while (!condition()) {
        pollfd waiting{loop.descriptor(), POLLIN, 0};
        if (poll(&waiting, 1, 20000) != 1) return false;
        loop.dispatch();
    }
    return true;
}

ChangeStream spaces(const Client &client) {
    ChangeRequest request;
    request.table = "spaces";
    return client.realtime().changes(request);
}

void coroutines_get_changes_and_the_end(ChangeLoop &loop, const Client &service) {
    const ChangeStream first = spaces(service);
    const ChangeStream second = spaces(service);
    Names names;
    Names others;
    // This change waits before the coroutine does.
    create_space(service, "Quay");
    const Task task = collect(loop, first, names);
    const Task other = collect(loop, second, others);
    CHECK(run_until(loop, [&] { return names.size() == 1 && others.size() == 1; }));
    std::thread writer([&] {
        for (int i = 0; i < 20; ++i) create_space(service, i % 2 == 0 ? "Pier" : "Quay");
    });
    CHECK(run_until(loop, [&] { return names.size() == 21 && others.size() == 21; }));
    writer.join();
    CHECK(names == others && names[0] == "Quay" && names[1] == "other" && names[20] == "Quay" && !task.done());
    std::thread closer([&] { first.close(); });
    CHECK(run_until(loop, [&] { return task.done(); }));
    closer.join();
    CHECK(names.back() == "end" && others.size() == 21 && !other.done());
    second.close();
    CHECK(run_until(loop, [&] { return other.done(); }));
    CHECK(!first.next() && second.has_ended());
}

void a_destroyed_coroutine_loses_no_change(ChangeLoop &loop, const Client &service) {
    const ChangeStream changes = spaces(service);
    Names names;
    {
        const Task task = collect(loop, changes, names);
        CHECK(!task.done());
    }
    create_space(service, "Quay");
    const Task task = collect(loop, changes, names);
    CHECK(run_until(loop, [&] { return !names.empty(); }));
    CHECK(names == Names{"Quay"});
    changes.close();
    CHECK(run_until(loop, [&] { return task.done(); }));
}

void an_ended_session_is_an_exception_of_the_coroutine(ChangeLoop &loop, const Client &client, const Client &service) {
    client.auth().sign_up("ann@town.example", "correct horse battery");
    const auto session = service.auth().create_session("ann@town.example", "correct horse battery");
    const Client user = client.as_user(session->access_token());
    const ChangeStream changes = spaces(user);
    tsq_status status = TSQ_OK;
    const Task task = fails(loop, changes, status);
    CHECK(!task.done());
    user.auth().sign_out(TSQ_SIGN_OUT_GLOBAL);
    CHECK(run_until(loop, [&] { return task.done(); }));
    CHECK(status == TSQ_UNAUTHORIZED);
}

void an_exception_keeps_no_other_coroutine_from_its_change(ChangeLoop &loop, const Client &service) {
    const ChangeStream first = spaces(service);
    const ChangeStream second = spaces(service);
    Names names;
    const ThrowingTask throwing = throws_after_a_change(loop, first);
    const Task task = collect(loop, second, names);
    create_space(service, "Quay");
    std::string thrown;
    // The two changes may come in two rounds of the loop, in either order.
    while (names.empty() || thrown.empty()) {
        pollfd waiting{loop.descriptor(), POLLIN, 0};
        CHECK(poll(&waiting, 1, 20000) == 1);
        try {
            loop.dispatch();
        } catch (const std::runtime_error &error) {
            thrown = error.what();
        }
    }
    CHECK(thrown == "boom" && names == Names{"Quay"});
    second.close();
    CHECK(run_until(loop, [&] { return task.done(); }));
}

void a_closed_client_resumes_its_coroutines(const std::string &folder) {
    Config config;
    config.set("data_dir", folder);
    Client client(config);
    ChangeLoop loop(client);
    const Client service = client.as_service();
    const ChangeStream changes = spaces(service);
    const ChangeStream others = spaces(service);
    tsq_status status = TSQ_OK;
    Names names;
    const Task task = collect(loop, changes, names);
    const Task other = fails(loop, others, status);
    std::thread closer([&] { client.close(); });
    CHECK(run_until(loop, [&] { return task.done() && other.done(); }));
    closer.join();
    CHECK(names == Names{"end"} && status == TSQ_OK);
}

}  // namespace

// An exception fails the test.
int main(int argc, char **argv) {  // NOLINT(bugprone-exception-escape)
    if (argc < 3) return 2;
    Config config;
    config.set("data_dir", std::string(argv[2]) + "/town");
    const Client client(config);
    ChangeLoop loop(client);
    const Client service = client.as_service();
    coroutines_get_changes_and_the_end(loop, service);
    a_destroyed_coroutine_loses_no_change(loop, service);
    an_ended_session_is_an_exception_of_the_coroutine(loop, client, service);
    an_exception_keeps_no_other_coroutine_from_its_change(loop, service);
    a_closed_client_resumes_its_coroutines(std::string(argv[2]) + "/closed");
    return checks_done("coroutines");
}
