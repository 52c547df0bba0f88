// Part of townsquare.hpp, which programs include: spaces and fidgets.

#ifndef TOWNSQUARE_SPACES_HPP
#define TOWNSQUARE_SPACES_HPP

#include <townsquare/base.hpp>
#include <townsquare/change.hpp>

namespace townsquare {

/// A space to be created.
struct NewSpace {
    /// Required.
    Text name = {};
    Text description = {};
    /// Absent: the caller.
    Text owner_id = {};
    bool is_public = false;
    /// Absent: a random id. With an id the call can be repeated.
    Text id = {};
};

/// Changes of a space.
struct SpacePatch {
    Change<std::string> name = {};
    Change<std::string> description = {};
    Change<bool> is_public = {};
};

/// A fidget to be created.
struct NewFidget {
    /// Required.
    Text kind = {};
    /// JSON.
    Text config = {};
    /// JSON.
    Text position = {};
    /// Absent: a random id. With an id the call can be repeated.
    Text id = {};
};

/// Changes of a fidget.
struct FidgetPatch {
    Change<std::string> kind = {};
    /// JSON.
    Change<std::string> config = {};
    /// JSON.
    Change<std::string> position = {};
};

/// A new position of a fidget.
struct Position {
    /// Required.
    Text fidget_id = {};
    /// JSON; absent: no position.
    Text position = {};
};

/// A fidget: a view.
class Fidget {
public:
    using Handle = detail::Handle<tsq_fidget, tsq_fidget_free>;

    explicit Fidget(const tsq_fidget *fidget) noexcept : fidget_(fidget) {}
    [[nodiscard]] std::string_view id() const noexcept { return detail::view(fidget_->id); }
    [[nodiscard]] std::optional<std::string_view> space_id() const noexcept { return detail::optional_view(fidget_->space_id); }
    [[nodiscard]] std::string_view kind() const noexcept { return detail::view(fidget_->kind); }
    /// JSON.
    [[nodiscard]] std::optional<std::string_view> config() const noexcept { return detail::optional_view(fidget_->config); }
    /// JSON.
    [[nodiscard]] std::optional<std::string_view> position() const noexcept { return detail::optional_view(fidget_->position); }
    [[nodiscard]] Timestamp created_at() const noexcept { return detail::timestamp(fidget_->created_at); }
    [[nodiscard]] Timestamp updated_at() const noexcept { return detail::timestamp(fidget_->updated_at); }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_fidget_json(fidget_, out, err); });
    }

    [[nodiscard]] const tsq_fidget *get() const noexcept { return fidget_; }

private:
    const tsq_fidget *fidget_;
};

/// The fidgets of a space: a view.
using FidgetListView = ListView<Fidget, tsq_fidget_list, tsq_fidget_list_len, tsq_fidget_list_at>;
/// Fidgets, oldest first unless the call says otherwise.
using FidgetList = List<FidgetListView, tsq_fidget_list, tsq_fidget_list_free, tsq_fidget_list_json>;

/// The owner of a public space: a view.
class Owner {
public:
    explicit Owner(const tsq_owner *owner) noexcept : owner_(owner) {}
    [[nodiscard]] std::string_view id() const noexcept { return detail::view(owner_->id); }
    /// Absent unless the option `expose_owner_email` shows it.
    [[nodiscard]] std::optional<std::string_view> email() const noexcept { return detail::optional_view(owner_->email); }

private:
    const tsq_owner *owner_;
};

/// A space: a view.
class Space {
public:
    using Handle = detail::Handle<tsq_space, tsq_space_free>;

    explicit Space(const tsq_space *space) noexcept : space_(space) {}
    [[nodiscard]] std::string_view id() const noexcept { return detail::view(space_->id); }
    [[nodiscard]] std::string_view name() const noexcept { return detail::view(space_->name); }
    [[nodiscard]] std::optional<std::string_view> description() const noexcept { return detail::optional_view(space_->description); }
    [[nodiscard]] std::optional<std::string_view> owner_id() const noexcept { return detail::optional_view(space_->owner_id); }
    [[nodiscard]] bool is_public() const noexcept { return space_->is_public; }
    [[nodiscard]] Timestamp created_at() const noexcept { return detail::timestamp(space_->created_at); }
    [[nodiscard]] Timestamp updated_at() const noexcept { return detail::timestamp(space_->updated_at); }
    /// Empty where the call does not return fidgets.
    [[nodiscard]] FidgetListView fidgets() const noexcept { return FidgetListView(space_->fidgets); }
    /// Absent for a space without an owner, and where the call does not return owners.
    [[nodiscard]] std::optional<Owner> owner() const noexcept {
        return space_->owner != nullptr ? std::optional(Owner(space_->owner)) : std::nullopt;
    }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_space_json(space_, out, err); });
    }

    [[nodiscard]] const tsq_space *get() const noexcept { return space_; }

private:
    const tsq_space *space_;
};

using SpaceListView = ListView<Space, tsq_space_list, tsq_space_list_len, tsq_space_list_at>;
/// Spaces, in the order of the call.
using SpaceList = List<SpaceListView, tsq_space_list, tsq_space_list_free, tsq_space_list_json>;

namespace detail {

inline tsq_new_space borrowed(const NewSpace &space) noexcept {
    return {sizeof(tsq_new_space), space.name.borrowed(), space.description.borrowed(), space.owner_id.borrowed(),
            space.is_public, space.id.borrowed()};
}

inline tsq_new_fidget borrowed(const NewFidget &fidget) noexcept {
    return {sizeof(tsq_new_fidget), fidget.kind.borrowed(), fidget.config.borrowed(), fidget.position.borrowed(),
            fidget.id.borrowed()};
}

inline tsq_position borrowed(const Position &position) noexcept {
    return {position.fidget_id.borrowed(), position.position.borrowed()};
}

template <typename T>
auto borrowed(const std::vector<T> &items) {
    std::vector<decltype(borrowed(items.front()))> out;
    out.reserve(items.size());
    for (const T &item : items) out.push_back(borrowed(item));
    return out;
}

}  // namespace detail

/// The public spaces one by one, for a range-based for loop: a view of the client. Moving on may throw.
class PublicSpaces {
public:
    /// An input iterator. Copies share one position.
    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Space;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = Space;

        /// The end.
        Iterator() = default;
        /// The space lives until the iterator moves on or is destroyed.
        [[nodiscard]] Space operator*() const & { return (*page_)[index_]; }
        // A view of a temporary iterator would dangle: name the iterator first.
        [[nodiscard]] Space operator*() const && = delete;
        Iterator &operator++() {
            if (++index_ == page_->size()) read();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const Iterator &one, const Iterator &other) noexcept {
            return one.page_ == other.page_ && (one.page_ == nullptr || one.index_ == other.index_);
        }
        friend bool operator!=(const Iterator &one, const Iterator &other) noexcept { return !(one == other); }

    private:
        friend class PublicSpaces;
        Iterator(const tsq_client *client, std::uint32_t page_size) : client_(client), page_size_(page_size) { read(); }

        /// Reads the next page; becomes the end if there is none.
        void read() {
            const tsq_space *after = page_ != nullptr ? (*page_)[page_->size() - 1].get() : nullptr;
            auto next = std::make_shared<SpaceList>(detail::make<SpaceList::Handle>([&](auto out, auto err) {
                return tsq_spaces_get_public_spaces_after(client_, page_size_, after, out, err);
            }));
            page_ = next->size() != 0 ? std::move(next) : nullptr;
            index_ = 0;
        }

        const tsq_client *client_ = nullptr;
        std::uint32_t page_size_ = 0;
        std::shared_ptr<SpaceList> page_;
        std::size_t index_ = 0;
    };

    PublicSpaces(const tsq_client *client, std::uint32_t page_size) noexcept : client_(client), page_size_(page_size) {}
    /// Reads the first page.
    [[nodiscard]] Iterator begin() const { return Iterator(client_, page_size_); }
    [[nodiscard]] Iterator end() const { return Iterator(); }

private:
    const tsq_client *client_;
    std::uint32_t page_size_;
};

/// Operations on spaces: a view of the client.
class Spaces {
public:
    explicit Spaces(const tsq_client *client) noexcept : client_(client) {}

    Owned<Space> create_space(const NewSpace &space) const {
        const tsq_new_space borrowed = detail::borrowed(space);
        return detail::owned<Space>([&](auto out, auto err) { return tsq_spaces_create_space(client_, &borrowed, out, err); });
    }
    /// All or none.
    SpaceList create_spaces(const std::vector<NewSpace> &spaces) const {
        const auto items = detail::borrowed(spaces);
        return list([&](auto out, auto err) {
            return tsq_spaces_create_spaces(client_, items.data(), items.size(), sizeof(tsq_new_space), out, err);
        });
    }
    [[nodiscard]] Owned<Space> get_space(std::string_view id) const {
        return detail::owned<Space>([&](auto out, auto err) { return tsq_spaces_get_space(client_, detail::text(id), out, err); });
    }
    Owned<Space> update_space(std::string_view id, const SpacePatch &changes) const {
        const tsq_space_patch patch{sizeof(tsq_space_patch), changes.name.borrowed(), changes.description.borrowed(), changes.is_public.borrowed()};
        return detail::owned<Space>([&](auto out, auto err) {
            return tsq_spaces_update_space(client_, detail::text(id), &patch, out, err);
        });
    }
    void delete_space(std::string_view id) const {
        detail::act([&](auto err) { return tsq_spaces_delete_space(client_, detail::text(id), err); });
    }
    [[nodiscard]] SpaceList get_user_spaces(std::string_view user_id) const {
        return list([&](auto out, auto err) {
            return tsq_spaces_get_user_spaces(client_, detail::text(user_id), out, err);
        });
    }
    [[nodiscard]] SpaceList get_public_spaces(std::uint32_t limit = TSQ_DEFAULT_PAGE, std::uint64_t offset = 0) const {
        return list([&](auto out, auto err) {
            return tsq_spaces_get_public_spaces(client_, limit, offset, out, err);
        });
    }
    /// The public spaces that follow a space of an earlier page. Such pages are stable under concurrent writes, and cost
    /// the same at any depth.
    [[nodiscard]] SpaceList get_public_spaces_after(std::uint32_t limit, const Space &after) const {
        return list([&](auto out, auto err) {
            return tsq_spaces_get_public_spaces_after(client_, limit, after.get(), out, err);
        });
    }
    /// The public spaces that follow the public space with this id.
    [[nodiscard]] SpaceList get_public_spaces_after(std::uint32_t limit, std::string_view after_id) const {
        return list([&](auto out, auto err) {
            return tsq_spaces_get_public_spaces_after_id(client_, limit, detail::text(after_id), out, err);
        });
    }
    /// All public spaces one by one: for (const Space &space : spaces.iter_public_spaces()). Reads page_size at a time. A
    /// space is a view that lives until the iterator moves on.
    [[nodiscard]] PublicSpaces iter_public_spaces(std::uint32_t page_size = 100) const {
        return PublicSpaces(client_, page_size);
    }
    [[nodiscard]] Owned<Space> get_space_with_fidgets(std::string_view id) const {
        return detail::owned<Space>([&](auto out, auto err) {
            return tsq_spaces_get_space_with_fidgets(client_, detail::text(id), out, err);
        });
    }
    /// Also a space without fidgets.
    [[nodiscard]] Owned<Space> get_space_with_any_fidgets(std::string_view id) const {
        return detail::owned<Space>([&](auto out, auto err) {
            return tsq_spaces_get_space_with_any_fidgets(client_, detail::text(id), out, err);
        });
    }
    /// The service only. Spaces that follow the one with the id `after`; the first ones when it is absent.
    [[nodiscard]] SpaceList list_spaces(std::uint32_t limit = 100, const Text &after = {}) const {
        return SpaceList(detail::make<SpaceList::Handle>([&](auto out, auto err) {
            return tsq_spaces_list_spaces(client_, limit, after.borrowed(), out, err);
        }));
    }
    /// The service only. Hands a space to another owner.
    Owned<Space> set_owner(std::string_view id, std::string_view owner_id) const {
        return detail::owned<Space>([&](auto out, auto err) {
            return tsq_spaces_set_owner(client_, detail::text(id), detail::text(owner_id), out, err);
        });
    }

private:
    template <typename Call>
    static SpaceList list(Call call) {
        return SpaceList(detail::make<SpaceList::Handle>(call));
    }

    const tsq_client *client_;
};

/// Operations on fidgets: a view of the client.
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
    FidgetList create_fidgets(std::string_view space_id, const std::vector<NewFidget> &fidgets) const {
        const auto items = detail::borrowed(fidgets);
        return list([&](auto out, auto err) {
            return tsq_fidgets_create_fidgets(client_, detail::text(space_id), items.data(), items.size(),
                                              sizeof(tsq_new_fidget), out, err);
        });
    }
    /// All or none.
    FidgetList save_positions(std::string_view space_id, const std::vector<Position> &positions) const {
        const auto items = detail::borrowed(positions);
        return list([&](auto out, auto err) {
            return tsq_fidgets_save_positions(client_, detail::text(space_id), items.data(), items.size(), out, err);
        });
    }
    [[nodiscard]] Owned<Fidget> get_fidget(std::string_view id) const {
        return detail::owned<Fidget>([&](auto out, auto err) { return tsq_fidgets_get_fidget(client_, detail::text(id), out, err); });
    }
    Owned<Fidget> update_fidget(std::string_view id, const FidgetPatch &changes) const {
        const tsq_fidget_patch patch{sizeof(tsq_fidget_patch), changes.kind.borrowed(), changes.config.borrowed(), changes.position.borrowed()};
        return detail::owned<Fidget>([&](auto out, auto err) {
            return tsq_fidgets_update_fidget(client_, detail::text(id), &patch, out, err);
        });
    }
    void delete_fidget(std::string_view id) const {
        detail::act([&](auto err) { return tsq_fidgets_delete_fidget(client_, detail::text(id), err); });
    }
    [[nodiscard]] FidgetList get_space_fidgets(std::string_view space_id) const {
        return list([&](auto out, auto err) {
            return tsq_fidgets_get_space_fidgets(client_, detail::text(space_id), out, err);
        });
    }
    /// The first fidgets of a space. Only an empty page is the last one.
    [[nodiscard]] FidgetList get_space_fidgets_after(std::string_view space_id, std::uint32_t limit) const {
        return list([&](auto out, auto err) {
            return tsq_fidgets_get_space_fidgets_after(client_, detail::text(space_id), limit, nullptr, out, err);
        });
    }
    /// The fidgets of a space that follow a fidget of an earlier page.
    [[nodiscard]] FidgetList get_space_fidgets_after(
        std::string_view space_id, std::uint32_t limit, const Fidget &after) const {
        return list([&](auto out, auto err) {
            return tsq_fidgets_get_space_fidgets_after(client_, detail::text(space_id), limit, after.get(), out, err);
        });
    }

private:
    template <typename Call>
    static FidgetList list(Call call) {
        return FidgetList(detail::make<FidgetList::Handle>(call));
    }

    const tsq_client *client_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_SPACES_HPP
