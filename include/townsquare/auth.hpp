// Part of townsquare.hpp, which programs include: accounts, sessions and their events.

#ifndef TOWNSQUARE_AUTH_HPP
#define TOWNSQUARE_AUTH_HPP

#include <townsquare/base.hpp>

#include <functional>

namespace townsquare {

/// Changes of the signed-in user; absent members keep their column.
struct UserPatch {
    Text email = {};
    /// 8 to 1,024 bytes.
    Text password = {};
};

/// A user: a view.
class User {
public:
    using Handle = detail::Handle<tsq_user, tsq_user_free>;

    explicit User(const tsq_user *user) noexcept : user_(user) {}
    [[nodiscard]] std::string_view id() const noexcept { return detail::view(user_->id); }
    [[nodiscard]] std::string_view email() const noexcept { return detail::view(user_->email); }
    [[nodiscard]] Timestamp created_at() const noexcept { return detail::timestamp(user_->created_at); }
    [[nodiscard]] Timestamp updated_at() const noexcept { return detail::timestamp(user_->updated_at); }
    /// When the user proved to receive mail at the address.
    [[nodiscard]] std::optional<Timestamp> email_verified_at() const noexcept {
        if (!user_->has_email_verified_at) return std::nullopt;
        return detail::timestamp(user_->email_verified_at);
    }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_user_json(user_, out, err); });
    }

    [[nodiscard]] const tsq_user *get() const noexcept { return user_; }

private:
    const tsq_user *user_;
};

using UserListView = ListView<User, tsq_user_list, tsq_user_list_len, tsq_user_list_at>;
/// Users, by id.
using UserList = List<UserListView, tsq_user_list, tsq_user_list_free, tsq_user_list_json>;

/// A session with its tokens: a view.
class Session {
public:
    using Handle = detail::Handle<tsq_session, tsq_session_free>;

    explicit Session(const tsq_session *session) noexcept : session_(session) {}
    /// A secret, for Client::as_user.
    [[nodiscard]] std::string_view access_token() const noexcept { return detail::view(session_->access_token); }
    /// A secret. Empty on a handle of Client::as_user.
    [[nodiscard]] std::string_view refresh_token() const noexcept { return detail::view(session_->refresh_token); }
    /// End of the access token.
    [[nodiscard]] Timestamp expires_at() const noexcept { return detail::timestamp(session_->expires_at); }
    [[nodiscard]] User user() const noexcept { return User(session_->user); }
    /// Contains both tokens.
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_session_json(session_, out, err); });
    }

    [[nodiscard]] const tsq_session *get() const noexcept { return session_; }

private:
    const tsq_session *session_;
};

/// A session of a user, as Auth::sessions_of lists it: a view, without tokens.
class SessionInfo {
public:
    explicit SessionInfo(const tsq_session_info *session) noexcept : session_(session) {}
    /// The id of the session. A refresh replaces the tokens and keeps the id.
    [[nodiscard]] std::string_view id() const noexcept { return detail::view(session_->id); }
    [[nodiscard]] Timestamp created_at() const noexcept { return detail::timestamp(session_->created_at); }
    /// When the session got its present tokens: at sign-in, or at the last refresh.
    [[nodiscard]] Timestamp refreshed_at() const noexcept { return detail::timestamp(session_->refreshed_at); }
    /// When the session ends unless it is refreshed before.
    [[nodiscard]] Timestamp expires_at() const noexcept { return detail::timestamp(session_->expires_at); }

    [[nodiscard]] const tsq_session_info *get() const noexcept { return session_; }

private:
    const tsq_session_info *session_;
};

using SessionInfosView = ListView<SessionInfo, tsq_session_infos, tsq_session_infos_len, tsq_session_infos_at>;
/// Sessions of a user, the latest first.
using SessionInfos = List<SessionInfosView, tsq_session_infos, tsq_session_infos_free, tsq_session_infos_json>;

/// The name of an event (`SIGNED_IN`).
[[nodiscard]] inline std::string_view name(tsq_auth_event event) noexcept { return detail::view(tsq_auth_event_name(event)); }

/// Signs a claim for Auth::link_identity: JSON. `private_key` is an Ed25519 seed in hex; `audience` is that of
/// Auth::identity_audience.
[[nodiscard]] inline std::string identity_claim(std::string_view user_id, std::string_view private_key,
                                                std::string_view audience, Timestamp timestamp) {
    return detail::json([&](auto out, auto err) {
        const std::int64_t micros = timestamp.time_since_epoch().count();
        return tsq_identity_claim(detail::text(user_id), detail::text(private_key), detail::text(audience), micros, out, err);
    });
}

/// The identity keys of a user, in the order in which they were linked: a view.
class Identities {
public:
    using Handle = detail::Handle<tsq_identities, tsq_identities_free>;

    explicit Identities(const tsq_identities *identities) noexcept : identities_(identities) {}
    [[nodiscard]] std::size_t size() const noexcept { return identities_->public_keys_len; }
    /// A public key in hex; `index` must be below size().
    [[nodiscard]] std::string_view operator[](std::size_t index) const noexcept {
        return detail::view(identities_->public_keys[index]);
    }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_identities_json(identities_, out, err); });
    }

    [[nodiscard]] const tsq_identities *get() const noexcept { return identities_; }

private:
    const tsq_identities *identities_;
};

/// The password hash of an existing user, named by `user_id` or `email`.
struct NewCredential {
    Text user_id = {};
    Text email = {};
    /// bcrypt (`$2a$`, `$2b$`, `$2y$`) or Argon2 in PHC format; required.
    Text password_hash = {};
};

/// What Auth::import_credentials did: a view.
class ImportReport {
public:
    using Handle = detail::Handle<tsq_import_report, tsq_import_report_free>;

    explicit ImportReport(const tsq_import_report *report) noexcept : report_(report) {}
    /// Users who had no password and have the imported one.
    [[nodiscard]] std::uint64_t imported() const noexcept { return report_->imported; }
    /// Users who had a password, which stays.
    [[nodiscard]] std::uint64_t unchanged() const noexcept { return report_->unchanged; }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_import_report_json(report_, out, err); });
    }

    [[nodiscard]] const tsq_import_report *get() const noexcept { return report_; }

private:
    const tsq_import_report *report_;
};

/// Receives events of a session; the session lives until the callback returns. Runs on threads of the library; exceptions
/// that it throws are dropped.
using AuthCallback = std::function<void(tsq_auth_event event, std::optional<Session> session)>;

/// A subscription of a callback. Its destructor unsubscribes: it waits for a running callback, so do not hold a lock that
/// the callback takes.
class [[nodiscard]] Subscription {
public:
    using Handle = detail::Handle<tsq_subscription, tsq_subscription_free>;

    explicit Subscription(Handle handle) noexcept : handle_(std::move(handle)) {}
    Subscription(const Subscription &) = delete;
    Subscription &operator=(const Subscription &) = delete;
    Subscription(Subscription &&) noexcept = default;
    Subscription &operator=(Subscription &&other) noexcept {
        if (this != &other) {
            unsubscribe();
            handle_ = std::move(other.handle_);
        }
        return *this;
    }
    ~Subscription() { unsubscribe(); }

    /// Afterwards the callback is not running, never runs again, and is destroyed. Inside the callback: as soon as it
    /// returned.
    void unsubscribe() const noexcept { tsq_subscription_unsubscribe(get()); }
    /// Lets the subscription last as long as its client; this object no longer refers to it.
    void detach() noexcept { handle_.reset(); }

    [[nodiscard]] const tsq_subscription *get() const & noexcept { return handle_.get(); }
    [[nodiscard]] const tsq_subscription *get() const && = delete;

private:
    Handle handle_;
};

namespace detail {

/// Calls an AuthCallback from C.
inline void call_auth(tsq_auth_event event, const tsq_session *session, void *callback) noexcept {
    TSQ_DETAIL_TRY {
        const auto &function = *static_cast<AuthCallback *>(callback);
        function(event, session != nullptr ? std::optional(Session(session)) : std::nullopt);
    } TSQ_DETAIL_CATCH_ALL {
    }
}

inline void delete_auth(void *callback) noexcept { delete static_cast<AuthCallback *>(callback); }

}  // namespace detail

/// Operations on accounts and sessions: a view of the client.
class Auth {
public:
    explicit Auth(const tsq_client *client) noexcept : client_(client) {}

    /// Creates an account without signing in.
    Owned<User> sign_up(std::string_view email, std::string_view password) const {
        return detail::owned<User>([&](auto out, auto err) {
            return tsq_auth_sign_up(client_, detail::text(email), detail::text(password), out, err);
        });
    }
    /// The handle acts as this user from now on.
    Owned<Session> sign_in(std::string_view email, std::string_view password) const {
        return detail::owned<Session>([&](auto out, auto err) {
            return tsq_auth_sign_in(client_, detail::text(email), detail::text(password), out, err);
        });
    }
    /// A session for the user of a request; the handle's caller does not change.
    [[nodiscard]] Owned<Session> create_session(std::string_view email, std::string_view password) const {
        return detail::owned<Session>([&](auto out, auto err) {
            return tsq_auth_create_session(client_, detail::text(email), detail::text(password), out, err);
        });
    }
    void sign_out() const {
        detail::act([this](auto err) { return tsq_auth_sign_out(client_, err); });
    }
    /// The handle's session, the user's other sessions, or all of them.
    void sign_out(tsq_sign_out_scope scope) const {
        detail::act([&](auto err) { return tsq_auth_sign_out_scope(client_, scope, err); });
    }
    /// Absent without a session.
    [[nodiscard]] std::optional<Owned<Session>> get_session() const {
        return detail::owned_if_any<Session>([this](auto out, auto err) { return tsq_auth_get_session(client_, out, err); });
    }
    Owned<Session> refresh_session() const {
        return detail::owned<Session>([this](auto out, auto err) { return tsq_auth_refresh_session(client_, out, err); });
    }
    /// For servers. The handle changes only when the session is its own.
    [[nodiscard]] Owned<Session> refresh_session_of(std::string_view refresh_token) const {
        return detail::owned<Session>([&](auto out, auto err) {
            return tsq_auth_refresh_session_of(client_, detail::text(refresh_token), out, err);
        });
    }
    /// Resumes a session from a stored refresh token.
    Owned<Session> set_session(std::string_view refresh_token) const {
        return detail::owned<Session>([&](auto out, auto err) {
            return tsq_auth_set_session(client_, detail::text(refresh_token), out, err);
        });
    }
    Owned<User> update_user(std::string_view current_password, const UserPatch &changes) const {
        const tsq_user_patch patch{sizeof(tsq_user_patch), changes.email.borrowed(), changes.password.borrowed()};
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
    void unlink_identity(std::string_view public_key) const {
        detail::act([&](auto err) { return tsq_auth_unlink_identity(client_, detail::text(public_key), err); });
    }
    [[nodiscard]] Owned<Identities> identities() const {
        return detail::owned<Identities>([this](auto out, auto err) { return tsq_auth_identities(client_, out, err); });
    }
    /// The keys of any user; none for a user that does not exist. The service only.
    [[nodiscard]] Owned<Identities> identities_of(std::string_view user_id) const {
        return detail::owned<Identities>([&](auto out, auto err) {
            return tsq_auth_identities_of(client_, detail::text(user_id), out, err);
        });
    }
    /// The sessions of any user; none for a user that does not exist. The service only.
    [[nodiscard]] SessionInfos sessions_of(std::string_view user_id) const {
        return SessionInfos(detail::make<SessionInfos::Handle>([&](auto out, auto err) {
            return tsq_auth_sessions_of(client_, detail::text(user_id), out, err);
        }));
    }
    /// Ends a session of any user. The service only.
    void end_session(std::string_view user_id, std::string_view session_id) const {
        detail::act([&](auto err) {
            return tsq_auth_end_session(client_, detail::text(user_id), detail::text(session_id), err);
        });
    }
    /// Ends every session of any user, and the user's signed URLs; returns the number of sessions. The service only.
    std::uint64_t end_sessions(std::string_view user_id) const {
        std::uint64_t ended = 0;
        detail::act([&](auto err) { return tsq_auth_end_sessions(client_, detail::text(user_id), &ended, err); });
        return ended;
    }
    /// The audience that claims must be for.
    [[nodiscard]] std::string identity_audience() const {
        return detail::json([this](auto out, auto err) { return tsq_auth_identity_audience(client_, out, err); });
    }
    /// The service only; the program mails the token. Absent for an unknown address.
    [[nodiscard]] std::optional<std::string> create_recovery_token(std::string_view email) const {
        const auto token = detail::make<detail::Handle<tsq_string, tsq_string_free>>([&](auto out, auto err) {
            return tsq_auth_create_recovery_token(client_, detail::text(email), out, err);
        });
        if (token == nullptr) return std::nullopt;
        return std::string(detail::view(tsq_string_view(token.get())));
    }
    /// Sets the password, ends every session of the user and signs in.
    Owned<Session> recover(std::string_view recovery_token, std::string_view new_password) const {
        return detail::owned<Session>([&](auto out, auto err) {
            return tsq_auth_recover(client_, detail::text(recovery_token), detail::text(new_password), out, err);
        });
    }
    /// The service only; the program mails the token.
    [[nodiscard]] std::string create_verification_token(std::string_view user_id) const {
        return detail::json([&](auto out, auto err) {
            return tsq_auth_create_verification_token(client_, detail::text(user_id), out, err);
        });
    }
    Owned<User> verify_email(std::string_view verification_token) const {
        return detail::owned<User>([&](auto out, auto err) {
            return tsq_auth_verify_email(client_, detail::text(verification_token), out, err);
        });
    }
    /// The service only. Users that follow the one with the id `after`; the first ones when it is absent.
    [[nodiscard]] UserList list_users(std::uint32_t limit = 100, const Text &after = {}) const {
        return UserList(detail::make<UserList::Handle>([&](auto out, auto err) {
            return tsq_auth_list_users(client_, limit, after.borrowed(), out, err);
        }));
    }
    /// The service only. Absent when no user has the address.
    [[nodiscard]] std::optional<Owned<User>> find_user(std::string_view email) const {
        return detail::owned_if_any<User>([&](auto out, auto err) {
            return tsq_auth_find_user(client_, detail::text(email), out, err);
        });
    }
    /// The service only. Ends every session of the user.
    void set_password(std::string_view user_id, std::string_view password) const {
        detail::act([&](auto err) { return tsq_auth_set_password(client_, detail::text(user_id), detail::text(password), err); });
    }
    /// The service only. All or none; a user who has a password keeps it.
    Owned<ImportReport> import_credentials(const std::vector<NewCredential> &rows) const {
        std::vector<tsq_new_credential> items;
        items.reserve(rows.size());
        for (const NewCredential &row : rows) {
            items.push_back({sizeof(tsq_new_credential), row.user_id.borrowed(), row.email.borrowed(), row.password_hash.borrowed()});
        }
        return detail::owned<ImportReport>([&](auto out, auto err) {
            return tsq_auth_import_credentials(client_, items.data(), items.size(), sizeof(tsq_new_credential), out, err);
        });
    }
    /// Calls `callback` with the current session, then with every event, in order.
    [[nodiscard]] Subscription on_auth_state_change(AuthCallback callback) const {
        const tsq_auth_callback call = callback ? detail::call_auth : nullptr;
        auto data = std::make_unique<AuthCallback>(std::move(callback));
        return Subscription(detail::make<Subscription::Handle>([&](auto out, auto err) {
            return tsq_auth_on_auth_state_change(client_, call, data.release(), detail::delete_auth, out, err);
        }));
    }

private:
    const tsq_client *client_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_AUTH_HPP
