// Part of townsquare.hpp, which programs include: changes of columns.

#ifndef TOWNSQUARE_CHANGE_HPP
#define TOWNSQUARE_CHANGE_HPP

#include <townsquare/base.hpp>

namespace townsquare {

/// What a partial update does to one column. By default the column stays; a value sets it, std::nullopt clears it, and so does a
/// `const char *` that is null.
template <typename T>
class Change {
    // std::string is set from everything that converts to std::string_view; a bool from a bool only, not from a pointer.
    template <typename U>
    static constexpr bool sets = std::is_same_v<T, std::string> ? std::is_convertible_v<const U &, std::string_view>
                                 : std::is_same_v<T, bool>      ? std::is_same_v<U, bool>
                                                                : std::is_convertible_v<const U &, T>;

public:
    Change() = default;
    Change(std::nullopt_t) noexcept : change_(TSQ_CLEAR) {}
    Change(std::nullptr_t) = delete;
    /// Sets; a null pointer to characters clears.
    template <typename U, typename = std::enable_if_t<!std::is_same_v<U, Change> && !std::is_null_pointer_v<U> && sets<U>>>
    Change(const U &value) : change_(is_null(value) ? TSQ_CLEAR : TSQ_SET), value_(is_null(value) ? T{} : converted(value)) {}

    /// A view for the C functions.
    [[nodiscard]] auto borrowed() const & {
        if constexpr (std::is_same_v<T, bool>) {
            return tsq_bool_change{change_, value_};
        } else {
            return tsq_str_change{change_, detail::text(value_)};
        }
    }
    /// What it does.
    [[nodiscard]] tsq_change change() const noexcept { return change_; }
    /// The new value, for TSQ_SET.
    [[nodiscard]] const T &value() const & noexcept { return value_; }
    // Views of a temporary would dangle: name the change first.
    [[nodiscard]] auto borrowed() const && = delete;
    [[nodiscard]] const T &value() const && = delete;

private:
    template <typename U>
    static bool is_null([[maybe_unused]] const U &value) noexcept {
        if constexpr (std::is_pointer_v<U>) {
            return value == nullptr;
        } else {
            return false;
        }
    }

    template <typename U>
    static T converted(const U &value) {
        if constexpr (std::is_same_v<T, std::string>) {
            return T(std::string_view(value));
        } else {
            return value;
        }
    }

    tsq_change change_ = TSQ_KEEP;
    T value_ = {};
};

}  // namespace townsquare

#endif  // TOWNSQUARE_CHANGE_HPP
