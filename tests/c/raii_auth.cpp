// Sign-in with townsquare.hpp: ownership, views, callbacks and exceptions (DESIGN 8, 10).
//
// raii_auth CATALOG FOLDER: the folder is empty; the catalog is not read.

#include <townsquare.hpp>

#include "check.h"
#include "throws.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

using townsquare::AuthCallback;
using townsquare::Client;
using townsquare::Config;
using townsquare::Owned;
using townsquare::Session;
using townsquare::Subscription;
using townsquare::User;

static_assert(!std::is_copy_constructible_v<Owned<Session>> && std::is_nothrow_move_constructible_v<Owned<Session>>);
static_assert(!std::is_copy_constructible_v<Subscription> && std::is_nothrow_move_assignable_v<Subscription>);

// No view of the user of a temporary session.
template <typename T, typename = void>
constexpr bool has_user = false;
template <typename T>
constexpr bool has_user<T, std::void_t<decltype(std::declval<T>().operator->()->user())>> = true;
static_assert(has_user<const Owned<Session> &> && !has_user<Owned<Session>>);

namespace {

constexpr const char *EMAIL = "ann@town.example";
constexpr const char *PASSWORD = "correct horse";
constexpr const char *KEY = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";

townsquare::Timestamp now() {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

void accounts(const Client &client, const Client &service) {
    Owned<User> user = client.auth().sign_up("Ann@Town.Example", PASSWORD);
    CHECK(user->email() == EMAIL && user->id().size() == 36 && user->created_at() == user->updated_at() && user->json().front() == '{');
    CHECK(!client.auth().get_session());
    CHECK(throws(TSQ_UNAUTHORIZED, "Sign in failed: Invalid login credentials",
                 [&] { client.auth().sign_in(EMAIL, "wrong horse"); }));

    const Owned<Session> session = client.auth().sign_in(EMAIL, PASSWORD);
    const Session view = *session;
    CHECK(view.user().id() == user->id() && view.expires_at() > now() && view.json().find("tsa_") != std::string::npos);
    const std::optional<Owned<Session>> current = client.auth().get_session();
    CHECK(current && (*current)->access_token() == session->access_token());
    const Owned<townsquare::Space> space = client.spaces().create_space({"Harbour"});
    CHECK(space->owner_id() == user->id());
    const Client handle = service.as_user(session->access_token());
    const Owned<townsquare::Space> found = handle.spaces().get_space(space->id());
    CHECK(found->name() == "Harbour");
    CHECK(throws(TSQ_INVALID_INPUT, "Set session failed: This handle has a fixed caller; open a client, or use as_user",
                 [&] { handle.auth().set_session(session->refresh_token()); }));

    const Owned<Session> refreshed = client.auth().refresh_session();
    CHECK(refreshed->access_token() != session->access_token());
    const Owned<Session> again = service.auth().refresh_session_of(refreshed->refresh_token());
    const Owned<Session> resumed = client.auth().set_session(again->refresh_token());
    CHECK(resumed->user().email() == EMAIL);

    townsquare::UserPatch patch;
    patch.email = "anna@town.example";
    user = client.auth().update_user(PASSWORD, patch);
    CHECK(user->email() == "anna@town.example" && user->updated_at() > user->created_at());
    user = client.auth().update_user(PASSWORD, {EMAIL, "another horse"});
    CHECK(user->email() == EMAIL);

    const std::string audience = client.auth().identity_audience();
    client.auth().link_identity(townsquare::identity_claim(user->id(), KEY, audience, now()));
    CHECK(throws(TSQ_UNAUTHORIZED, "Link identity failed: The identity claim is for another audience",
                 [&] { client.auth().link_identity(townsquare::identity_claim(user->id(), KEY, "elsewhere", now())); }));
    const Owned<townsquare::Identities> linked = client.auth().identities();
    CHECK(linked->size() == 1 && (*linked)[0].size() == 64 && linked->json() == "[\"" + std::string((*linked)[0]) + "\"]");
    const Owned<townsquare::Identities> known_keys = service.auth().identities_of(user->id());
    CHECK(known_keys->json() == linked->json());
    const Owned<townsquare::Identities> no_keys = service.auth().identities_of("00000000-0000-4000-8000-000000000000");
    CHECK(no_keys->size() == 0);
    CHECK(throws(TSQ_FORBIDDEN, "List identities failed: Database error: permission denied for table users",
                 [&] { return client.auth().identities_of(user->id()); }));
    const Client anonymous = client.as_anonymous();
    CHECK(throws(TSQ_UNAUTHORIZED, "List identities failed: Database error: permission denied for table users",
                 [&] { return anonymous.auth().identities_of(user->id()); }));
    CHECK(throws(TSQ_INVALID_INPUT, "List identities failed: Argument user_id is not a UUID",
                 [&] { return service.auth().identities_of("ann"); }));
    client.auth().unlink_identity((*linked)[0]);
    CHECK(throws(TSQ_NOT_FOUND, "Unlink identity failed: Record not found", [&] { client.auth().unlink_identity((*linked)[0]); }));

    CHECK(!user->email_verified_at() && !service.auth().create_recovery_token("nobody@town.example"));
    CHECK(throws(TSQ_FORBIDDEN, "Find user failed: Database error: permission denied for table users",
                 [&] { return client.auth().find_user(EMAIL); }));
    const std::optional<Owned<User>> known = service.auth().find_user("ANN@town.example");
    CHECK(known && (*known)->id() == user->id() && !service.auth().find_user("nobody@town.example"));
    const Owned<User> verified = client.auth().verify_email(service.auth().create_verification_token(user->id()));
    CHECK(verified->email_verified_at() && *verified->email_verified_at() <= now());
    service.auth().set_password(user->id(), "a third horse");
    CHECK(!client.auth().get_session());
    const std::string token = service.auth().create_recovery_token(EMAIL).value();
    const Owned<Session> recovered = client.auth().recover(token, "another horse");
    CHECK(recovered->user().email() == EMAIL);
    const townsquare::Client peer = service.with_client_key("203.0.113.7");
    peer.read_after(service.read_position());
    CHECK(throws(TSQ_INVALID_INPUT, "Read after failed: The position is not one that read_position returned",
                 [&] { peer.read_after("yesterday"); }));
    const Owned<Session> handed_out = peer.auth().create_session(EMAIL, "another horse");
    CHECK(handed_out->user().email() == EMAIL);
    {
        const townsquare::SessionInfos sessions = service.auth().sessions_of(user->id());
        CHECK(sessions.size() == 2 && sessions[0].id().size() == 36 && sessions[0].created_at() >= sessions[1].created_at());
        CHECK(sessions[0].created_at() <= now() && sessions[0].refreshed_at() <= now() && sessions[0].expires_at() > now());
        CHECK(sessions.json().find("\"refreshed_at\"") != std::string::npos && sessions.json().find("token") == std::string::npos);
        service.auth().end_session(user->id(), sessions[0].id());
        CHECK(throws(TSQ_NOT_FOUND, "End session failed: Record not found",
                     [&] { service.auth().end_session(user->id(), sessions[0].id()); }));
        CHECK(throws(TSQ_UNAUTHORIZED, "Act as user failed: Session has ended",
                     [&] { return client.as_user(handed_out->access_token()); }));
        CHECK(client.auth().get_session());
        CHECK(throws(TSQ_FORBIDDEN, "End sessions failed: Database error: permission denied for table users",
                     [&] { return client.auth().end_sessions(user->id()); }));
        const Owned<User> eve = service.auth().sign_up("eve@town.example", PASSWORD);
        const Owned<Session> hers = service.auth().create_session("eve@town.example", PASSWORD);
        CHECK(service.auth().end_sessions(eve->id()) == 1 && service.auth().end_sessions(eve->id()) == 0);
        CHECK(throws(TSQ_UNAUTHORIZED, "Act as user failed: Session has ended", [&] { return client.as_user(hers->access_token()); }));
        service.auth().delete_user(eve->id());
    }
    const Owned<Session> elsewhere = service.auth().sign_in(EMAIL, "another horse");
    client.auth().sign_out(TSQ_SIGN_OUT_OTHERS);
    CHECK(throws(TSQ_UNAUTHORIZED, "Act as user failed: Session has ended", [&] { return client.as_user(elsewhere->access_token()); }));
    CHECK(client.auth().get_session());
    CHECK(throws(TSQ_UNAUTHORIZED, "Link identity failed: The identity claim is older than five minutes",
                 [&] { client.auth().link_identity(townsquare::identity_claim(user->id(), KEY, audience, {})); }));

    const Owned<User> other = service.auth().sign_up("bob@town.example", PASSWORD);
    CHECK(throws(TSQ_FORBIDDEN, "Delete user failed: Database error: permission denied for table users",
                 [&] { client.auth().delete_user(other->id()); }));
    const char *const hash = "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe";
    const Owned<townsquare::ImportReport> report = service.auth().import_credentials({{other->id(), {}, hash}, {{}, EMAIL, hash}});
    CHECK(report->imported() == 0 && report->unchanged() == 2 && report->json() == "{\"imported\":0,\"unchanged\":2}");
    CHECK(throws(TSQ_FORBIDDEN, "Import credentials failed: Database error: permission denied for table users",
                 [&] { client.auth().import_credentials({{other->id(), {}, hash}}); }));
    service.auth().delete_user(other->id());
    client.auth().sign_out();
    CHECK(!client.auth().get_session());
    client.auth().sign_in(EMAIL, "another horse");
    client.auth().delete_own_user("another horse");
    CHECK(!client.auth().get_session());
    CHECK(throws(TSQ_NOT_FOUND, "Get space failed: Record not found", [&] { return service.spaces().get_space(space->id()); }));
}

// Collects what callbacks received, for the main thread.
class Heard {
public:
    void add(std::string_view what) {
        const std::lock_guard<std::mutex> guard(lock_);
        text_.append(what).append("|");
        changed_.notify_all();
    }
    // Waits at most a minute for exactly this text.
    int becomes(std::string_view text) {
        std::unique_lock<std::mutex> guard(lock_);
        const bool in_time = changed_.wait_for(guard, std::chrono::minutes(1), [&] { return text_ == text; });
        if (!in_time) std::fprintf(stderr, "  heard %s\n", text_.c_str());
        return in_time;
    }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::string text_;
};

void callbacks(const Client &client) {
    Heard heard;
    auto held = std::make_shared<int>(0);
    const Subscription subscription = client.auth().on_auth_state_change(
        [&heard, held](tsq_auth_event event, std::optional<Session> session) {
            std::string line(townsquare::name(event));
            if (session) line.append(" ").append(session->user().email());
            heard.add(line);
            throw std::runtime_error("dropped");
        });
    client.auth().sign_up(EMAIL, PASSWORD);
    client.auth().sign_in(EMAIL, PASSWORD);
    client.auth().sign_out();
    CHECK(heard.becomes("INITIAL_SESSION|SIGNED_IN ann@town.example|SIGNED_OUT|"));
    CHECK(held.use_count() == 2);
    subscription.unsubscribe();
    CHECK(held.use_count() == 1);
    client.auth().sign_in(EMAIL, PASSWORD);

    // Inside the callback; the callback and its captures are destroyed after it returned.
    Heard inside;
    std::mutex lock;
    std::optional<Subscription> own;
    {
        const std::lock_guard<std::mutex> guard(lock);
        own = client.auth().on_auth_state_change([&, held](tsq_auth_event event, std::optional<Session> session) {
            const std::lock_guard<std::mutex> guard(lock);
            own->unsubscribe();
            own->unsubscribe();
            inside.add(townsquare::name(event));
            inside.add(session ? session->user().email() : "nobody");
        });
    }
    client.auth().sign_out();
    CHECK(inside.becomes("INITIAL_SESSION|ann@town.example|"));
    own->unsubscribe();
    CHECK(held.use_count() == 1);

    CHECK(throws(TSQ_INVALID_INPUT, "Argument callback is NULL", [&] { return client.auth().on_auth_state_change(AuthCallback()); }));

    // The destructor and an assignment unsubscribe.
    {
        Subscription scoped = client.auth().on_auth_state_change([held](tsq_auth_event, std::optional<Session>) {});
        CHECK(held.use_count() == 2);
        scoped = client.auth().on_auth_state_change([held](tsq_auth_event, std::optional<Session>) {});
        CHECK(held.use_count() == 2);
        const Subscription moved = std::move(scoped);
        CHECK(held.use_count() == 2);
    }
    CHECK(held.use_count() == 1);

    // A detached subscription lasts and ends with the client.
    client.auth().on_auth_state_change([&heard, held](tsq_auth_event, std::optional<Session>) { heard.add("detached"); }).detach();
    CHECK(heard.becomes("INITIAL_SESSION|SIGNED_IN ann@town.example|SIGNED_OUT|detached|"));
    CHECK(held.use_count() == 2);
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    const std::string folder = argv[2];
    {
        Client client(Config().set("data_dir", folder + "/town").set("catalog_api_key", ""));
        const Client service = client.as_service();
        accounts(client, service);
        callbacks(client);
        Client other = client.as_service();
        other.close();
        CHECK(throws(TSQ_CLOSED, "Sign in failed: The handle is closed", [&] { other.auth().sign_in(EMAIL, PASSWORD); }));
        CHECK(!client.is_closed() && !service.is_closed());
        client.close();
        CHECK(throws(TSQ_CLOSED, "Sign in failed: The client is closed", [&] { service.auth().sign_in(EMAIL, PASSWORD); }));
    }
    return checks_done("raii_auth");
}
