// Part of townsquare.hpp, which programs include: errors, times, and how handles, texts and calls cross.

#ifndef TOWNSQUARE_BASE_HPP
#define TOWNSQUARE_BASE_HPP

#include <townsquare.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace townsquare {

/// Points in time, as precise as the library keeps them.
using Timestamp = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

/// Why an operation failed. Copies share one error object.
class Error : public std::exception {
public:
    /// Takes `error`.
    Error(tsq_status kind, tsq_error *error) : kind_(kind), error_(error, tsq_error_free) {}

    /// What a program branches on: TSQ_NOT_FOUND, TSQ_INVALID_INPUT, ...
    tsq_status kind() const noexcept { return kind_; }
    /// The whole sentence, the operation's prefix included.
    const char *what() const noexcept override {
        const tsq_str text = tsq_error_text(error_.get());
        return text.ptr != nullptr ? text.ptr : tsq_status_name(kind_).ptr;
    }
    /// The sentence without the prefix.
    std::string_view message() const noexcept { return view(tsq_error_message(error_.get())); }
    /// The operation that failed: `search_mini_apps`; empty when none was under way.
    std::string_view operation() const noexcept { return view(tsq_error_operation(error_.get())); }
    /// The SQLSTATE (`23505`); empty for a failure without one.
    std::string_view code() const noexcept { return view(tsq_error_code(error_.get())); }
    /// The file store's status (404, 413, ...).
    std::optional<std::uint16_t> status() const noexcept {
        std::uint16_t status = 0;
        return tsq_error_status(error_.get(), &status) ? std::optional(status) : std::nullopt;
    }
    /// How long to wait before another try.
    std::optional<std::chrono::milliseconds> retry_after() const noexcept {
        std::uint64_t wait = 0;
        if (!tsq_error_retry_after_ms(error_.get(), &wait)) return std::nullopt;
        return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(wait));
    }
    /// Whether the same call may succeed later.
    bool is_retryable() const noexcept { return tsq_error_is_retryable(error_.get()); }

private:
    static std::string_view view(tsq_str text) noexcept { return {text.ptr, text.len}; }

    tsq_status kind_;
    std::shared_ptr<tsq_error> error_;
};

namespace detail {

template <typename T, void (*Free)(T *)>
struct Freed {
    void operator()(T *handle) const noexcept { Free(handle); }
};

template <typename T, void (*Free)(T *)>
using Owned = std::unique_ptr<T, Freed<T, Free>>;

inline tsq_str text(std::string_view text) noexcept { return {text.data(), text.size()}; }

inline std::vector<tsq_str> texts(const std::vector<std::string> &strings) {
    std::vector<tsq_str> out;
    out.reserve(strings.size());
    for (const std::string &string : strings) out.push_back(text(string));
    return out;
}

inline std::string_view view(tsq_str text) noexcept { return {text.ptr, text.len}; }

inline std::optional<std::string_view> optional_view(tsq_str text) noexcept {
    return text.ptr != nullptr ? std::optional(view(text)) : std::nullopt;
}

inline Timestamp timestamp(std::int64_t micros) noexcept { return Timestamp(std::chrono::microseconds(micros)); }

/// Runs a call that takes `err`; throws what it fails with.
template <typename Call>
void act(Call call) {
    tsq_error *err = nullptr;
    const tsq_status status = call(&err);
    if (status != TSQ_OK) throw Error(status, err);
}

/// Runs a call that takes `out` and `err`; owns what it makes, throws what it fails with.
template <typename Owner, typename Call>
Owner make(Call call) {
    typename Owner::pointer out = nullptr;
    act([&](tsq_error **err) { return call(&out, err); });
    return Owner(out);
}

/// An input iterator over anything with `operator[]`.
template <typename List>
class Iterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = typename List::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = value_type;

    Iterator(const List *list, std::size_t index) noexcept : list_(list), index_(index) {}
    value_type operator*() const noexcept { return (*list_)[index_]; }
    Iterator &operator++() noexcept {
        ++index_;
        return *this;
    }
    Iterator operator++(int) noexcept {
        Iterator before = *this;
        ++index_;
        return before;
    }
    friend bool operator==(Iterator a, Iterator b) noexcept { return a.index_ == b.index_; }
    friend bool operator!=(Iterator a, Iterator b) noexcept { return a.index_ != b.index_; }

private:
    const List *list_;
    std::size_t index_;
};

/// Runs a call that makes JSON.
template <typename Call>
std::string json(Call call) {
    const auto json = make<Owned<tsq_string, tsq_string_free>>(call);
    return std::string(view(tsq_string_view(json.get())));
}

}  // namespace detail

}  // namespace townsquare

#endif  // TOWNSQUARE_BASE_HPP
