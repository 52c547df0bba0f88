// Part of townsquare.hpp, which programs include: spaces and fidgets.

#ifndef TOWNSQUARE_SPACES_HPP
#define TOWNSQUARE_SPACES_HPP

#include <townsquare/base.hpp>
#include <townsquare/change.hpp>

namespace townsquare {

/// A space to be made.
struct NewSpace {
    /// Required.
    std::optional<std::string> name = std::nullopt;
    std::optional<std::string> description = std::nullopt;
    /// The caller, when absent.
    std::optional<std::string> owner_id = std::nullopt;
    bool is_public = false;
};

/// What changes of a space.
struct SpacePatch {
    Change<std::string> name = {};
    Change<std::string> description = {};
    Change<bool> is_public = {};
};

/// A fidget to be made.
struct NewFidget {
    /// Required.
    std::optional<std::string> kind = std::nullopt;
    /// JSON.
    std::optional<std::string> config = std::nullopt;
    /// JSON.
    std::optional<std::string> position = std::nullopt;
};

/// What changes of a fidget.
struct FidgetPatch {
    Change<std::string> kind = {};
    /// JSON.
    Change<std::string> config = {};
    /// JSON.
    Change<std::string> position = {};
};

/// A new place of a fidget.
struct Position {
    std::string fidget_id;
    /// JSON; absent: nowhere.
    std::optional<std::string> position = std::nullopt;
};

/// One fidget: a view, or the base of what owns it.
class Fidget {
public:
    using Handle = detail::Owned<tsq_fidget, tsq_fidget_free>;

    Fidget(townsquare::Owned<Fidget> &&) = delete;
    explicit Fidget(const tsq_fidget *fidget) noexcept : fidget_(fidget) {}
    std::string_view id() const noexcept { return detail::view(tsq_fidget_id(fidget_)); }
    std::optional<std::string_view> space_id() const noexcept { return detail::optional_view(tsq_fidget_space_id(fidget_)); }
    std::string_view kind() const noexcept { return detail::view(tsq_fidget_kind(fidget_)); }
    /// JSON.
    std::optional<std::string_view> config() const noexcept { return detail::optional_view(tsq_fidget_config(fidget_)); }
    /// JSON.
    std::optional<std::string_view> position() const noexcept { return detail::optional_view(tsq_fidget_position(fidget_)); }
    Timestamp created_at() const noexcept { return detail::timestamp(tsq_fidget_created_at(fidget_)); }
    Timestamp updated_at() const noexcept { return detail::timestamp(tsq_fidget_updated_at(fidget_)); }
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_fidget_json(fidget_, out, err); });
    }

    const tsq_fidget *get() const noexcept { return fidget_; }

private:
    const tsq_fidget *fidget_;
};

/// Fidgets, oldest first: a view, or the base of what owns it.
class FidgetList {
public:
    using value_type = Fidget;
    using Handle = detail::Owned<tsq_fidget_list, tsq_fidget_list_free>;

    FidgetList(townsquare::Owned<FidgetList> &&) = delete;
    explicit FidgetList(const tsq_fidget_list *list) noexcept : list_(list) {}
    std::size_t size() const noexcept { return tsq_fidget_list_len(list_); }
    bool empty() const noexcept { return size() == 0; }
    /// `index` below size().
    Fidget operator[](std::size_t index) const noexcept { return Fidget(tsq_fidget_list_at(list_, index)); }
    detail::Iterator<FidgetList> begin() const noexcept { return {this, 0}; }
    detail::Iterator<FidgetList> end() const noexcept { return {this, size()}; }
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_fidget_list_json(list_, out, err); });
    }

    const tsq_fidget_list *get() const noexcept { return list_; }

private:
    const tsq_fidget_list *list_;
};

/// The owner of a public space: a view.
class Owner {
public:
    explicit Owner(const tsq_owner *owner) noexcept : owner_(owner) {}
    std::string_view id() const noexcept { return detail::view(tsq_owner_id(owner_)); }
    std::optional<std::string_view> email() const noexcept { return detail::optional_view(tsq_owner_email(owner_)); }

private:
    const tsq_owner *owner_;
};

/// One space: a view, or the base of what owns it.
class Space {
public:
    using Handle = detail::Owned<tsq_space, tsq_space_free>;

    Space(townsquare::Owned<Space> &&) = delete;
    explicit Space(const tsq_space *space) noexcept : space_(space) {}
    std::string_view id() const noexcept { return detail::view(tsq_space_id(space_)); }
    std::string_view name() const noexcept { return detail::view(tsq_space_name(space_)); }
    std::optional<std::string_view> description() const noexcept {
        return detail::optional_view(tsq_space_description(space_));
    }
    std::optional<std::string_view> owner_id() const noexcept { return detail::optional_view(tsq_space_owner_id(space_)); }
    bool is_public() const noexcept { return tsq_space_is_public(space_); }
    Timestamp created_at() const noexcept { return detail::timestamp(tsq_space_created_at(space_)); }
    Timestamp updated_at() const noexcept { return detail::timestamp(tsq_space_updated_at(space_)); }
    /// A view; empty from calls that return spaces without them.
    FidgetList fidgets() const noexcept { return FidgetList(tsq_space_fidgets(space_)); }
    /// From get_public_spaces.
    std::optional<Owner> owner() const noexcept {
        const tsq_owner *owner = tsq_space_owner(space_);
        return owner != nullptr ? std::optional(Owner(owner)) : std::nullopt;
    }
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_space_json(space_, out, err); });
    }

    const tsq_space *get() const noexcept { return space_; }

private:
    const tsq_space *space_;
};

/// Spaces in the order of the call that returned them.
class SpaceList {
public:
    using value_type = Space;
    using Handle = detail::Owned<tsq_space_list, tsq_space_list_free>;

    explicit SpaceList(Handle handle) noexcept : handle_(std::move(handle)) {}
    std::size_t size() const noexcept { return tsq_space_list_len(get()); }
    bool empty() const noexcept { return size() == 0; }
    /// `index` below size().
    Space operator[](std::size_t index) const & noexcept { return Space(tsq_space_list_at(get(), index)); }
    /// A view into a list that is about to end would dangle: keep the list.
    Space operator[](std::size_t index) const && = delete;
    detail::Iterator<SpaceList> begin() const noexcept { return {this, 0}; }
    detail::Iterator<SpaceList> end() const noexcept { return {this, size()}; }
    std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_space_list_json(get(), out, err); });
    }

    const tsq_space_list *get() const noexcept { return handle_.get(); }

private:
    Handle handle_;
};

namespace detail {

inline tsq_new_space borrowed(const NewSpace &space) noexcept {
    return {optional_text(space.name), optional_text(space.description), optional_text(space.owner_id), space.is_public};
}

inline tsq_new_fidget borrowed(const NewFidget &fidget) noexcept {
    return {optional_text(fidget.kind), optional_text(fidget.config), optional_text(fidget.position)};
}

inline tsq_position borrowed(const Position &position) noexcept {
    return {text(position.fidget_id), optional_text(position.position)};
}

/// An array as the C functions want it, for the length of a call.
template <typename Item>
auto borrowed(const std::vector<Item> &items) {
    std::vector<decltype(borrowed(items.front()))> out;
    out.reserve(items.size());
    for (const Item &item : items) out.push_back(borrowed(item));
    return out;
}

}  // namespace detail

/// Spaces: a view of its client.
class Spaces {
public:
    explicit Spaces(const tsq_client *client) noexcept : client_(client) {}

    Owned<Space> create_space(const NewSpace &space) const {
        const tsq_new_space borrowed = detail::borrowed(space);
        return detail::owned<Space>([&](auto out, auto err) { return tsq_spaces_create_space(client_, &borrowed, out, err); });
    }
    /// All or none.
    SpaceList create_spaces(const std::vector<NewSpace> &spaces) const {
        const std::vector<tsq_new_space> items = detail::borrowed(spaces);
        return list([&](auto out, auto err) {
            return tsq_spaces_create_spaces(client_, items.data(), items.size(), out, err);
        });
    }
    Owned<Space> get_space(std::string_view id) const {
        return detail::owned<Space>([&](auto out, auto err) { return tsq_spaces_get_space(client_, detail::text(id), out, err); });
    }
    Owned<Space> update_space(std::string_view id, const SpacePatch &changes) const {
        const tsq_space_patch patch{changes.name.borrowed(), changes.description.borrowed(), changes.is_public.borrowed()};
        return detail::owned<Space>([&](auto out, auto err) {
            return tsq_spaces_update_space(client_, detail::text(id), &patch, out, err);
        });
    }
    void delete_space(std::string_view id) const {
        detail::act([&](auto err) { return tsq_spaces_delete_space(client_, detail::text(id), err); });
    }
    SpaceList get_user_spaces(std::string_view user_id) const {
        return list([&](auto out, auto err) {
            return tsq_spaces_get_user_spaces(client_, detail::text(user_id), out, err);
        });
    }
    SpaceList get_public_spaces(std::uint32_t limit = TSQ_DEFAULT_PAGE, std::uint64_t offset = 0) const {
        return list([&](auto out, auto err) {
            return tsq_spaces_get_public_spaces(client_, limit, offset, out, err);
        });
    }
    Owned<Space> get_space_with_fidgets(std::string_view id) const {
        return detail::owned<Space>([&](auto out, auto err) {
            return tsq_spaces_get_space_with_fidgets(client_, detail::text(id), out, err);
        });
    }

private:
    template <typename Call>
    static SpaceList list(Call call) {
        return SpaceList(detail::make<SpaceList::Handle>(call));
    }

    const tsq_client *client_;
};

/// The fidgets of spaces: a view of its client.
class Fidgets {
public:
    explicit Fidgets(const tsq_client *client) noexcept : client_(client) {}

    Owned<Fidget> create_fidget(std::string_view space_id, const NewFidget &fidget) const {
        const tsq_new_fidget borrowed = detail::borrowed(fidget);
        return detail::owned<Fidget>([&](auto out, auto err) {
            return tsq_fidgets_create_fidget(client_, detail::text(space_id), &borrowed, out, err);
        });
    }
    /// All or none.
    Owned<FidgetList> create_fidgets(std::string_view space_id, const std::vector<NewFidget> &fidgets) const {
        const std::vector<tsq_new_fidget> items = detail::borrowed(fidgets);
        return detail::owned<FidgetList>([&](auto out, auto err) {
            return tsq_fidgets_create_fidgets(client_, detail::text(space_id), items.data(), items.size(), out, err);
        });
    }
    /// All or none.
    Owned<FidgetList> save_positions(std::string_view space_id, const std::vector<Position> &positions) const {
        const std::vector<tsq_position> items = detail::borrowed(positions);
        return detail::owned<FidgetList>([&](auto out, auto err) {
            return tsq_fidgets_save_positions(client_, detail::text(space_id), items.data(), items.size(), out, err);
        });
    }
    Owned<Fidget> get_fidget(std::string_view id) const {
        return detail::owned<Fidget>([&](auto out, auto err) { return tsq_fidgets_get_fidget(client_, detail::text(id), out, err); });
    }
    Owned<Fidget> update_fidget(std::string_view id, const FidgetPatch &changes) const {
        const tsq_fidget_patch patch{changes.kind.borrowed(), changes.config.borrowed(), changes.position.borrowed()};
        return detail::owned<Fidget>([&](auto out, auto err) {
            return tsq_fidgets_update_fidget(client_, detail::text(id), &patch, out, err);
        });
    }
    void delete_fidget(std::string_view id) const {
        detail::act([&](auto err) { return tsq_fidgets_delete_fidget(client_, detail::text(id), err); });
    }
    Owned<FidgetList> get_space_fidgets(std::string_view space_id) const {
        return detail::owned<FidgetList>([&](auto out, auto err) {
            return tsq_fidgets_get_space_fidgets(client_, detail::text(space_id), out, err);
        });
    }

private:
    const tsq_client *client_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_SPACES_HPP
