// Part of townsquare.hpp, which programs include: accounts, sessions, and listening to them.

#ifndef TOWNSQUARE_AUTH_HPP
#define TOWNSQUARE_AUTH_HPP

#include <townsquare/base.hpp>
#include <townsquare/change.hpp>

#include <functional>

namespace townsquare {

/// What changes of one's own account: what is not given stays.
struct UserPatch {
    std::optional<std::string> email = std::nullopt;
    /// 8 to 1,024 bytes.
    std::optional<std::string> password = std::nullopt;
};

/// One user: a view, or the base of what owns it.
class User {
public:
    using Handle = detail::Owned<tsq_user, tsq_user_free>;

    User(townsquare::Owned<User> &&) = delete;
    explicit User(const tsq_user *user) noexcept : user_(user) {}
    std::string_view id() const noexcept { return detail::view(tsq_user_id(user_)); }
    std::string_view email() const noexcept { return detail::view(tsq_user_email(user_)); }
    Timestamp created_at() const noexcept { return detail::timestamp(tsq_user_created_at(user_)); }
    Timestamp updated_at() const noexcept { return detail::timestamp(tsq_user_updated_at(user_)); }
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_user_json(user_, out, err); });
    }

    const tsq_user *get() const noexcept { return user_; }

private:
    const tsq_user *user_;
};

/// One session, with its tokens: a view, or the base of what owns it.
class Session {
public:
    using Handle = detail::Owned<tsq_session, tsq_session_free>;

    Session(townsquare::Owned<Session> &&) = delete;
    explicit Session(const tsq_session *session) noexcept : session_(session) {}
    /// For Client::as_user. A secret, like the other token.
    std::string_view access_token() const noexcept { return detail::view(tsq_session_access_token(session_)); }
    /// Empty on a handle of Client::as_user.
    std::string_view refresh_token() const noexcept { return detail::view(tsq_session_refresh_token(session_)); }
    /// When the access token ends.
    Timestamp expires_at() const noexcept { return detail::timestamp(tsq_session_expires_at(session_)); }
    /// A view.
    User user() const noexcept { return User(tsq_session_user(session_)); }
    /// Holds both tokens.
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_session_json(session_, out, err); });
    }

    const tsq_session *get() const noexcept { return session_; }

private:
    const tsq_session *session_;
};

/// The name of an event: `SIGNED_IN`.
inline std::string_view name(tsq_auth_event event) noexcept { return detail::view(tsq_auth_event_name(event)); }

/// A claim for Auth::link_identity, as JSON; `private_key` is an Ed25519 seed in hex.
inline std::string identity_claim(std::string_view user_id, std::string_view private_key, Timestamp timestamp) {
    return detail::json([&](auto out, auto err) {
        const std::int64_t micros = timestamp.time_since_epoch().count();
        return tsq_identity_claim(detail::text(user_id), detail::text(private_key), micros, out, err);
    });
}

/// Hears of a client's session; the view lives until it returns. Runs on threads of the library; what it throws is dropped.
using AuthCallback = std::function<void(tsq_auth_event event, std::optional<Session> session)>;

/// What calls a callback off. Its destructor does not: the callback goes on until unsubscribe, or with its client.
class Subscription {
public:
    using Handle = detail::Owned<tsq_subscription, tsq_subscription_free>;

    explicit Subscription(Handle handle) noexcept : handle_(std::move(handle)) {}
    /// After it returns the callback is not running, never runs again, and is destroyed; from inside the callback: as
    /// soon as that returns.
    void unsubscribe() const noexcept { tsq_subscription_unsubscribe(get()); }

    const tsq_subscription *get() const noexcept { return handle_.get(); }

private:
    Handle handle_;
};

namespace detail {

/// A callback as C has it: nothing is thrown into the library.
inline void hear(tsq_auth_event event, const tsq_session *session, void *callback) noexcept {
    try {
        (*static_cast<AuthCallback *>(callback))(event, session != nullptr ? std::optional(Session(session)) : std::nullopt);
    } catch (...) {
    }
}

inline void forget(void *callback) noexcept { delete static_cast<AuthCallback *>(callback); }

}  // namespace detail

/// Accounts and sessions: a view of its client.
class Auth {
public:
    explicit Auth(const tsq_client *client) noexcept : client_(client) {}

    /// Signs nobody in.
    Owned<User> sign_up(std::string_view email, std::string_view password) const {
        return detail::owned<User>([&](auto out, auto err) {
            return tsq_auth_sign_up(client_, detail::text(email), detail::text(password), out, err);
        });
    }
    /// The client acts as this user from here on.
    Owned<Session> sign_in(std::string_view email, std::string_view password) const {
        return detail::owned<Session>([&](auto out, auto err) {
            return tsq_auth_sign_in(client_, detail::text(email), detail::text(password), out, err);
        });
    }
    void sign_out() const {
        detail::act([this](auto err) { return tsq_auth_sign_out(client_, err); });
    }
    /// Absent when nobody is signed in.
    std::optional<Owned<Session>> get_session() const {
        Session::Handle session = detail::make<Session::Handle>(
            [this](auto out, auto err) { return tsq_auth_get_session(client_, out, err); });
        if (session == nullptr) return std::nullopt;
        return std::optional<Owned<Session>>(std::in_place, std::move(session));
    }
    Owned<Session> refresh_session() const {
        return detail::owned<Session>([this](auto out, auto err) { return tsq_auth_refresh_session(client_, out, err); });
    }
    /// For servers: no handle changes, unless the session is its own.
    Owned<Session> refresh_session_of(std::string_view refresh_token) const {
        return detail::owned<Session>([&](auto out, auto err) {
            return tsq_auth_refresh_session_of(client_, detail::text(refresh_token), out, err);
        });
    }
    /// Takes up a session that was kept elsewhere.
    Owned<Session> set_session(std::string_view refresh_token) const {
        return detail::owned<Session>([&](auto out, auto err) {
            return tsq_auth_set_session(client_, detail::text(refresh_token), out, err);
        });
    }
    Owned<User> update_user(std::string_view current_password, const UserPatch &changes) const {
        const tsq_user_patch patch{detail::optional_text(changes.email), detail::optional_text(changes.password)};
        return detail::owned<User>([&](auto out, auto err) {
            return tsq_auth_update_user(client_, detail::text(current_password), &patch, out, err);
        });
    }
    void delete_own_user(std::string_view current_password) const {
        detail::act([&](auto err) { return tsq_auth_delete_own_user(client_, detail::text(current_password), err); });
    }
    /// The service only.
    void delete_user(std::string_view user_id) const {
        detail::act([&](auto err) { return tsq_auth_delete_user(client_, detail::text(user_id), err); });
    }
    /// A claim of identity_claim.
    void link_identity(std::string_view claim) const {
        detail::act([&](auto err) { return tsq_auth_link_identity(client_, detail::text(claim), err); });
    }
    /// First the session there is, then every event, in order.
    Subscription on_auth_state_change(AuthCallback callback) const {
        const tsq_auth_callback hear = callback ? detail::hear : nullptr;
        auto kept = std::make_unique<AuthCallback>(std::move(callback));
        return Subscription(detail::make<Subscription::Handle>([&](auto out, auto err) {
            return tsq_auth_on_auth_state_change(client_, hear, kept.release(), detail::forget, out, err);
        }));
    }

private:
    const tsq_client *client_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_AUTH_HPP
