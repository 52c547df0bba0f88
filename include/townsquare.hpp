// townsquare for C++17: townsquare.h in RAII types. The manual is at the head of townsquare.h; here:
//
//   - failures are thrown as townsquare::Error, whose what() is the whole sentence;
//   - Config, Client, MiniApps, SpaceList, Owned<Space> and what else calls return own their handle and can only be
//     moved;
//   - MiniApp, Space, Fidget, Owner, Author, User, Session, Texts and every std::string_view are views: they live as long as
//     the owner that they were read from. Discovery, Auth, Spaces, Fidgets and Communities are views of their Client;
//   - every method may be called from any thread; a moved-from object may only be assigned to or destroyed.
//
//     townsquare::Client client;
//     for (townsquare::MiniApp app : client.discovery().get_trending_mini_apps("24h", {20}))
//         std::cout << app.name() << "  " << app.home_url() << '\n';
//
// Header-only and thin: each method is one call of the C function of its name.

#ifndef TOWNSQUARE_HPP
#define TOWNSQUARE_HPP

#include <townsquare/auth.hpp>
#include <townsquare/base.hpp>
#include <townsquare/communities.hpp>
#include <townsquare/discovery.hpp>
#include <townsquare/spaces.hpp>

namespace townsquare {

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

    /// The same client past every policy: a further handle, for trusted code.
    Client as_service() const {
        return Client(detail::make<Handle>([this](auto out, auto err) { return tsq_client_as_service(get(), out, err); }));
    }
    /// The same client as the user of a session: a further handle, for servers with many users.
    Client as_user(std::string_view access_token) const {
        return Client(detail::make<Handle>(
            [&](auto out, auto err) { return tsq_client_as_user(get(), detail::text(access_token), out, err); }));
    }
    /// Writes a copy of the SQLite database to a file that must not exist, while writers go on.
    void backup(std::string_view target) const {
        detail::act([&](auto err) { return tsq_client_backup(get(), detail::text(target), err); });
    }
    /// Puts such a copy into a data folder that has no database and that no client has open.
    static void restore(std::string_view source, std::string_view data_dir) {
        detail::act([&](auto err) { return tsq_restore(detail::text(source), detail::text(data_dir), err); });
    }

    /// Closes the client for all its handles; closing again does nothing.
    void close() {
        detail::act([this](auto err) { return tsq_client_close(get(), err); });
    }
    bool is_closed() const noexcept { return tsq_client_is_closed(get()); }
    Discovery discovery() const noexcept { return Discovery(get()); }
    Auth auth() const noexcept { return Auth(get()); }
    Spaces spaces() const noexcept { return Spaces(get()); }
    Fidgets fidgets() const noexcept { return Fidgets(get()); }
    Communities communities() const noexcept { return Communities(get()); }

    tsq_client *get() const noexcept { return handle_.get(); }

private:
    using Handle = detail::Owned<tsq_client, tsq_client_free>;
    explicit Client(Handle handle) noexcept : handle_(std::move(handle)) {}
    Handle handle_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_HPP
