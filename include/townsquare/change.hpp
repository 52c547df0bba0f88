// Part of townsquare.hpp, which programs include: changes of columns, and results that own what they are views of.

#ifndef TOWNSQUARE_CHANGE_HPP
#define TOWNSQUARE_CHANGE_HPP

#include <townsquare/base.hpp>

#include <type_traits>

namespace townsquare {

/// What a partial update does to one column: by default it stays as it is; a value sets it, std::nullopt clears it.
template <typename T>
class Change {
public:
    Change() = default;
    Change(std::nullopt_t) noexcept : change_(TSQ_CLEAR) {}
    /// Sets. A truth value wants a bool: a pointer is not taken for one.
    template <typename U,
              typename = std::enable_if_t<!std::is_same_v<std::decay_t<U>, Change> && std::is_convertible_v<U, T> &&
                                          (!std::is_same_v<T, bool> || std::is_same_v<std::decay_t<U>, bool>)>>
    Change(U &&value) : change_(TSQ_SET), value_(std::forward<U>(value)) {}

    /// As the C functions want it: a view.
    auto borrowed() const {
        if constexpr (std::is_same_v<T, bool>) {
            return tsq_bool_change{change_, value_};
        } else {
            return tsq_str_change{change_, detail::text(value_)};
        }
    }
    /// What it does.
    tsq_change change() const noexcept { return change_; }
    /// The new value, after TSQ_SET.
    const T &value() const noexcept { return value_; }

private:
    tsq_change change_ = TSQ_KEEP;
    T value_ = {};
};

/// A result that owns what `View` is a view of: it can be moved, and read like the view. A `View` of it lives as long as it
/// does, so that none can be made of a result that is about to end.
template <typename View>
class Owned : public View {
public:
    explicit Owned(typename View::Handle handle) noexcept : View(handle.get()), handle_(std::move(handle)) {}

private:
    typename View::Handle handle_;
};

namespace detail {

/// The absent text for nothing.
inline tsq_str optional_text(const std::optional<std::string> &optional) noexcept {
    return optional ? text(std::string_view(*optional)) : tsq_str{nullptr, 0};
}

/// Runs a call that returns a record or a list.
template <typename View, typename Call>
townsquare::Owned<View> owned(Call call) {
    return townsquare::Owned<View>(make<typename View::Handle>(call));
}

}  // namespace detail

}  // namespace townsquare

#endif  // TOWNSQUARE_CHANGE_HPP
