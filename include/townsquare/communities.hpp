// Part of townsquare.hpp, which programs include: communities, their domains, and registered spaces.

#ifndef TOWNSQUARE_COMMUNITIES_HPP
#define TOWNSQUARE_COMMUNITIES_HPP

#include <townsquare/base.hpp>
#include <townsquare/change.hpp>

namespace townsquare {

/// What is saved of a community's configuration; configurations are JSON.
struct CommunityPatch {
    /// This and the next three are required in a new row.
    Change<std::string> brand_config = {};
    Change<std::string> assets_config = {};
    Change<std::string> community_config = {};
    Change<std::string> fidgets_config = {};
    Change<std::string> navigation_config = {};
    Change<std::string> ui_config = {};
    Change<std::vector<std::string>> admin_identity_public_keys = {};
    Change<bool> is_published = {};
    Change<bool> custom_domain_authorized = {};
    Change<std::string> admin_email = {};
};

/// A registration to be made.
struct NewRegistration {
    std::string space_id;
    /// Required.
    std::optional<std::string> space_name = std::nullopt;
    /// `profile`, `token`, `proposal`, `channel` or `navPage`.
    std::string space_type = {};
    std::optional<std::int32_t> fid = std::nullopt;
    std::optional<std::string> identity_public_key = std::nullopt;
    std::optional<std::string> signature = std::nullopt;
};

/// A community's configuration.
class CommunityConfig {
public:
    using Handle = detail::Owned<tsq_community_config, tsq_community_config_free>;

    explicit CommunityConfig(Handle handle) noexcept : handle_(std::move(handle)) {}
    std::string_view id() const noexcept { return detail::view(tsq_community_config_id(get())); }
    std::string_view community_id() const noexcept { return detail::view(tsq_community_config_community_id(get())); }
    Timestamp updated_at() const noexcept { return detail::timestamp(tsq_community_config_updated_at(get())); }
    /// JSON, as are the other configurations.
    std::string_view brand_config() const noexcept { return detail::view(tsq_community_config_brand_config(get())); }
    std::string_view assets_config() const noexcept { return detail::view(tsq_community_config_assets_config(get())); }
    std::string_view community_config() const noexcept { return detail::view(tsq_community_config_community_config(get())); }
    std::string_view fidgets_config() const noexcept { return detail::view(tsq_community_config_fidgets_config(get())); }
    std::optional<std::string_view> navigation_config() const noexcept {
        return detail::optional_view(tsq_community_config_navigation_config(get()));
    }
    std::optional<std::string_view> ui_config() const noexcept {
        return detail::optional_view(tsq_community_config_ui_config(get()));
    }
    std::optional<std::vector<std::string_view>> admin_identity_public_keys() const {
        std::size_t size = 0;
        if (!tsq_community_config_admin_identity_public_keys_len(get(), &size)) return std::nullopt;
        std::vector<std::string_view> keys(size);
        for (std::size_t i = 0; i < size; i++) {
            keys[i] = detail::view(tsq_community_config_admin_identity_public_keys_at(get(), i));
        }
        return keys;
    }
    bool is_published() const noexcept { return tsq_community_config_is_published(get()); }
    bool custom_domain_authorized() const noexcept { return tsq_community_config_custom_domain_authorized(get()); }
    std::optional<std::string_view> admin_email() const noexcept {
        return detail::optional_view(tsq_community_config_admin_email(get()));
    }
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_community_config_json(get(), out, err); });
    }

    const tsq_community_config *get() const noexcept { return handle_.get(); }

private:
    Handle handle_;
};

/// A domain of a community.
class CommunityDomain {
public:
    using Handle = detail::Owned<tsq_community_domain, tsq_community_domain_free>;

    explicit CommunityDomain(Handle handle) noexcept : handle_(std::move(handle)) {}
    std::string_view id() const noexcept { return detail::view(tsq_community_domain_id(get())); }
    std::string_view community_id() const noexcept { return detail::view(tsq_community_domain_community_id(get())); }
    /// Normalised.
    std::string_view domain() const noexcept { return detail::view(tsq_community_domain_domain(get())); }
    std::string_view domain_type() const noexcept { return detail::view(tsq_community_domain_domain_type(get())); }
    Timestamp created_at() const noexcept { return detail::timestamp(tsq_community_domain_created_at(get())); }
    Timestamp updated_at() const noexcept { return detail::timestamp(tsq_community_domain_updated_at(get())); }
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_community_domain_json(get(), out, err); });
    }

    const tsq_community_domain *get() const noexcept { return handle_.get(); }

private:
    Handle handle_;
};

/// A registered space.
class SpaceRegistration {
public:
    using Handle = detail::Owned<tsq_space_registration, tsq_space_registration_free>;

    explicit SpaceRegistration(Handle handle) noexcept : handle_(std::move(handle)) {}
    std::string_view space_id() const noexcept { return detail::view(tsq_space_registration_space_id(get())); }
    std::optional<std::int32_t> fid() const noexcept {
        std::int32_t fid = 0;
        return tsq_space_registration_fid(get(), &fid) ? std::optional(fid) : std::nullopt;
    }
    std::string_view space_name() const noexcept { return detail::view(tsq_space_registration_space_name(get())); }
    std::string_view space_type() const noexcept { return detail::view(tsq_space_registration_space_type(get())); }
    std::optional<std::string_view> identity_public_key() const noexcept {
        return detail::optional_view(tsq_space_registration_identity_public_key(get()));
    }
    std::optional<std::string_view> signature() const noexcept {
        return detail::optional_view(tsq_space_registration_signature(get()));
    }
    Timestamp timestamp() const noexcept { return detail::timestamp(tsq_space_registration_timestamp(get())); }
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_space_registration_json(get(), out, err); });
    }

    const tsq_space_registration *get() const noexcept { return handle_.get(); }

private:
    Handle handle_;
};

/// Communities: a view of its client.
class Communities {
public:
    explicit Communities(const tsq_client *client) noexcept : client_(client) {}

    CommunityConfig save_community_config(std::string_view community_id, const CommunityPatch &changes) const {
        const std::vector<tsq_str> keys = detail::texts(changes.admin_identity_public_keys.value());
        const tsq_community_patch patch{
            changes.brand_config.borrowed(),
            changes.assets_config.borrowed(),
            changes.community_config.borrowed(),
            changes.fidgets_config.borrowed(),
            changes.navigation_config.borrowed(),
            changes.ui_config.borrowed(),
            {changes.admin_identity_public_keys.change(), keys.data(), keys.size()},
            changes.is_published.borrowed(),
            changes.custom_domain_authorized.borrowed(),
            changes.admin_email.borrowed(),
        };
        return CommunityConfig(detail::make<CommunityConfig::Handle>([&](auto out, auto err) {
            return tsq_communities_save_community_config(client_, detail::text(community_id), &patch, out, err);
        }));
    }
    /// JSON; absent when nothing is published.
    std::optional<std::string> get_active_community_config(std::string_view community_id) const {
        return text([&](auto out, auto err) {
            return tsq_communities_get_active_community_config(client_, detail::text(community_id), out, err);
        });
    }
    /// `domain_type` is `blank_subdomain` or `custom`.
    CommunityDomain save_community_domain(std::string_view community_id, std::string_view domain,
                                          std::string_view domain_type) const {
        return CommunityDomain(detail::make<CommunityDomain::Handle>([&](auto out, auto err) {
            return tsq_communities_save_community_domain(client_, detail::text(community_id), detail::text(domain),
                                                         detail::text(domain_type), out, err);
        }));
    }
    void delete_community_domain(std::string_view domain) const {
        detail::act([&](auto err) { return tsq_communities_delete_community_domain(client_, detail::text(domain), err); });
    }
    /// JSON; std::nullopt clears.
    CommunityConfig update_navigation(std::string_view community_id, const std::optional<std::string> &navigation) const {
        return CommunityConfig(detail::make<CommunityConfig::Handle>([&](auto out, auto err) {
            return tsq_communities_update_navigation(client_, detail::text(community_id), detail::optional_text(navigation), out, err);
        }));
    }
    /// The community's id; absent when nothing published answers there.
    std::optional<std::string> resolve_community(std::string_view host) const {
        return text([&](auto out, auto err) {
            return tsq_communities_resolve_community(client_, detail::text(host), out, err);
        });
    }
    SpaceRegistration register_space(const NewRegistration &registration) const {
        const tsq_new_registration borrowed{
            detail::text(registration.space_id),
            detail::optional_text(registration.space_name),
            detail::text(registration.space_type),
            registration.fid ? &*registration.fid : nullptr,
            detail::optional_text(registration.identity_public_key),
            detail::optional_text(registration.signature),
        };
        return SpaceRegistration(detail::make<SpaceRegistration::Handle>([&](auto out, auto err) {
            return tsq_communities_register_space(client_, &borrowed, out, err);
        }));
    }
    /// Absent when the space is not registered.
    std::optional<SpaceRegistration> get_space_registration(std::string_view space_id) const {
        SpaceRegistration::Handle found = detail::make<SpaceRegistration::Handle>([&](auto out, auto err) {
            return tsq_communities_get_space_registration(client_, detail::text(space_id), out, err);
        });
        if (found == nullptr) return std::nullopt;
        return SpaceRegistration(std::move(found));
    }

private:
    template <typename Call>
    static std::optional<std::string> text(Call call) {
        const auto string = detail::make<detail::Owned<tsq_string, tsq_string_free>>(call);
        if (string == nullptr) return std::nullopt;
        return std::string(detail::view(tsq_string_view(string.get())));
    }

    const tsq_client *client_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_COMMUNITIES_HPP
