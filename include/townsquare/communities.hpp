// Part of townsquare.hpp, which programs include: communities, their domains, and registered spaces.

#ifndef TOWNSQUARE_COMMUNITIES_HPP
#define TOWNSQUARE_COMMUNITIES_HPP

#include <townsquare/base.hpp>
#include <townsquare/change.hpp>

namespace townsquare {

/// Changes of the configuration of a community; configurations are JSON.
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

/// A registration to be created.
struct NewRegistration {
    /// Required.
    Text space_id = {};
    /// Required.
    Text space_name = {};
    /// `profile`, `token`, `proposal`, `channel` or `navPage`; required.
    Text space_type = {};
    std::optional<std::int32_t> fid = std::nullopt;
    Text identity_public_key = {};
    Text signature = {};
};

/// The configuration of a community: a view.
class CommunityConfig {
public:
    using Handle = detail::Handle<tsq_community_config, tsq_community_config_free>;

    explicit CommunityConfig(const tsq_community_config *record) noexcept : record_(record) {}
    [[nodiscard]] std::string_view id() const noexcept { return detail::view(record_->id); }
    [[nodiscard]] std::string_view community_id() const noexcept { return detail::view(record_->community_id); }
    [[nodiscard]] Timestamp updated_at() const noexcept { return detail::timestamp(record_->updated_at); }
    /// JSON, like the other configurations.
    [[nodiscard]] std::string_view brand_config() const noexcept { return detail::view(record_->brand_config); }
    [[nodiscard]] std::string_view assets_config() const noexcept { return detail::view(record_->assets_config); }
    [[nodiscard]] std::string_view community_config() const noexcept { return detail::view(record_->community_config); }
    [[nodiscard]] std::string_view fidgets_config() const noexcept { return detail::view(record_->fidgets_config); }
    [[nodiscard]] std::optional<std::string_view> navigation_config() const noexcept { return detail::optional_view(record_->navigation_config); }
    [[nodiscard]] std::optional<std::string_view> ui_config() const noexcept { return detail::optional_view(record_->ui_config); }
    [[nodiscard]] std::optional<std::vector<std::string_view>> admin_identity_public_keys() const {
        if (record_->admin_identity_public_keys == nullptr) return std::nullopt;
        std::vector<std::string_view> keys(record_->admin_identity_public_keys_len);
        for (std::size_t i = 0; i < keys.size(); i++) keys[i] = detail::view(record_->admin_identity_public_keys[i]);
        return keys;
    }
    [[nodiscard]] bool is_published() const noexcept { return record_->is_published; }
    [[nodiscard]] bool custom_domain_authorized() const noexcept { return record_->custom_domain_authorized; }
    [[nodiscard]] std::optional<std::string_view> admin_email() const noexcept { return detail::optional_view(record_->admin_email); }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_community_config_json(record_, out, err); });
    }

    [[nodiscard]] const tsq_community_config *get() const noexcept { return record_; }

private:
    const tsq_community_config *record_;
};

using CommunityConfigListView = ListView<CommunityConfig, tsq_community_config_list, tsq_community_config_list_len, tsq_community_config_list_at>;
/// Configurations of communities, by id.
using CommunityConfigList = List<CommunityConfigListView, tsq_community_config_list, tsq_community_config_list_free, tsq_community_config_list_json>;

/// A domain of a community: a view.
class CommunityDomain {
public:
    using Handle = detail::Handle<tsq_community_domain, tsq_community_domain_free>;

    explicit CommunityDomain(const tsq_community_domain *record) noexcept : record_(record) {}
    [[nodiscard]] std::string_view id() const noexcept { return detail::view(record_->id); }
    [[nodiscard]] std::string_view community_id() const noexcept { return detail::view(record_->community_id); }
    /// Normalised.
    [[nodiscard]] std::string_view domain() const noexcept { return detail::view(record_->domain); }
    [[nodiscard]] std::string_view domain_type() const noexcept { return detail::view(record_->domain_type); }
    [[nodiscard]] Timestamp created_at() const noexcept { return detail::timestamp(record_->created_at); }
    [[nodiscard]] Timestamp updated_at() const noexcept { return detail::timestamp(record_->updated_at); }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_community_domain_json(record_, out, err); });
    }

    [[nodiscard]] const tsq_community_domain *get() const noexcept { return record_; }

private:
    const tsq_community_domain *record_;
};

using CommunityDomainListView = ListView<CommunityDomain, tsq_community_domain_list, tsq_community_domain_list_len, tsq_community_domain_list_at>;
/// Domains of communities, by id.
using CommunityDomainList = List<CommunityDomainListView, tsq_community_domain_list, tsq_community_domain_list_free, tsq_community_domain_list_json>;

/// A registered space: a view.
class SpaceRegistration {
public:
    using Handle = detail::Handle<tsq_space_registration, tsq_space_registration_free>;

    explicit SpaceRegistration(const tsq_space_registration *record) noexcept : record_(record) {}
    [[nodiscard]] std::string_view space_id() const noexcept { return detail::view(record_->space_id); }
    [[nodiscard]] std::optional<std::int64_t> fid() const noexcept {
        return record_->has_fid ? std::optional(record_->fid) : std::nullopt;
    }
    [[nodiscard]] std::string_view space_name() const noexcept { return detail::view(record_->space_name); }
    [[nodiscard]] std::string_view space_type() const noexcept { return detail::view(record_->space_type); }
    [[nodiscard]] std::optional<std::string_view> identity_public_key() const noexcept { return detail::optional_view(record_->identity_public_key); }
    [[nodiscard]] std::optional<std::string_view> signature() const noexcept { return detail::optional_view(record_->signature); }
    [[nodiscard]] Timestamp timestamp() const noexcept { return detail::timestamp(record_->timestamp); }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_space_registration_json(record_, out, err); });
    }

    [[nodiscard]] const tsq_space_registration *get() const noexcept { return record_; }

private:
    const tsq_space_registration *record_;
};

using SpaceRegistrationListView = ListView<SpaceRegistration, tsq_space_registration_list, tsq_space_registration_list_len, tsq_space_registration_list_at>;
/// Registered spaces, by the id of the space.
using SpaceRegistrationList = List<SpaceRegistrationListView, tsq_space_registration_list, tsq_space_registration_list_free, tsq_space_registration_list_json>;

/// Operations on communities: a view of the client.
class Communities {
public:
    explicit Communities(const tsq_client *client) noexcept : client_(client) {}

    Owned<CommunityConfig> save_community_config(std::string_view community_id, const CommunityPatch &changes) const {
        const std::vector<tsq_str> keys = detail::texts(changes.admin_identity_public_keys.value());
        const tsq_community_patch patch{
            sizeof(tsq_community_patch),
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
        return detail::owned<CommunityConfig>([&](auto out, auto err) {
            return tsq_communities_save_community_config(client_, detail::text(community_id), &patch, out, err);
        });
    }
    /// JSON; absent when nothing is published.
    [[nodiscard]] std::optional<std::string> get_active_community_config(std::string_view community_id) const {
        return text([&](auto out, auto err) {
            return tsq_communities_get_active_community_config(client_, detail::text(community_id), out, err);
        });
    }
    /// `domain_type` is `blank_subdomain` or `custom`.
    Owned<CommunityDomain> save_community_domain(std::string_view community_id, std::string_view domain,
                                          std::string_view domain_type) const {
        return detail::owned<CommunityDomain>([&](auto out, auto err) {
            return tsq_communities_save_community_domain(client_, detail::text(community_id), detail::text(domain),
                                                         detail::text(domain_type), out, err);
        });
    }
    void delete_community_domain(std::string_view domain) const {
        detail::act([&](auto err) { return tsq_communities_delete_community_domain(client_, detail::text(domain), err); });
    }
    /// JSON; std::nullopt clears.
    Owned<CommunityConfig> update_navigation(std::string_view community_id, const Text &navigation) const {
        return detail::owned<CommunityConfig>([&](auto out, auto err) {
            return tsq_communities_update_navigation(client_, detail::text(community_id), navigation.borrowed(), out, err);
        });
    }
    /// The community's id; absent when no published community matches.
    [[nodiscard]] std::optional<std::string> resolve_community(std::string_view host) const {
        return text([&](auto out, auto err) {
            return tsq_communities_resolve_community(client_, detail::text(host), out, err);
        });
    }
    Owned<SpaceRegistration> register_space(const NewRegistration &registration) const {
        const tsq_new_registration borrowed{
            sizeof(tsq_new_registration),
            registration.space_id.borrowed(),
            registration.space_name.borrowed(),
            registration.space_type.borrowed(),
            registration.fid ? &*registration.fid : nullptr,
            registration.identity_public_key.borrowed(),
            registration.signature.borrowed(),
        };
        return detail::owned<SpaceRegistration>([&](auto out, auto err) {
            return tsq_communities_register_space(client_, &borrowed, out, err);
        });
    }
    /// Absent when the space is not registered.
    [[nodiscard]] std::optional<Owned<SpaceRegistration>> get_space_registration(std::string_view space_id) const {
        return detail::owned_if_any<SpaceRegistration>([&](auto out, auto err) {
            return tsq_communities_get_space_registration(client_, detail::text(space_id), out, err);
        });
    }
    /// The service only. Configurations, published or not, that follow the one with the id `after`; the first ones when it is absent.
    [[nodiscard]] CommunityConfigList list_community_configs(std::uint32_t limit = 100, const Text &after = {}) const {
        return CommunityConfigList(detail::make<CommunityConfigList::Handle>([&](auto out, auto err) {
            return tsq_communities_list_community_configs(client_, limit, after.borrowed(), out, err);
        }));
    }
    /// The service only. Domains that follow the one with the id `after`; the first ones when it is absent.
    [[nodiscard]] CommunityDomainList list_community_domains(std::uint32_t limit = 100, const Text &after = {}) const {
        return CommunityDomainList(detail::make<CommunityDomainList::Handle>([&](auto out, auto err) {
            return tsq_communities_list_community_domains(client_, limit, after.borrowed(), out, err);
        }));
    }
    /// The service only. Registrations that follow the space `after`; the first ones when it is absent.
    [[nodiscard]] SpaceRegistrationList list_space_registrations(std::uint32_t limit = 100, const Text &after = {}) const {
        return SpaceRegistrationList(detail::make<SpaceRegistrationList::Handle>([&](auto out, auto err) {
            return tsq_communities_list_space_registrations(client_, limit, after.borrowed(), out, err);
        }));
    }

private:
    template <typename Call>
    static std::optional<std::string> text(Call call) {
        const auto string = detail::make<detail::Handle<tsq_string, tsq_string_free>>(call);
        if (string == nullptr) return std::nullopt;
        return std::string(detail::view(tsq_string_view(string.get())));
    }

    const tsq_client *client_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_COMMUNITIES_HPP
