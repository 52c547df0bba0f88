// Part of townsquare.hpp, which programs include: errors, times, lists, and the conversions between C and C++.

#ifndef TOWNSQUARE_BASE_HPP
#define TOWNSQUARE_BASE_HPP

#include <townsquare.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_expected
#include <expected>
#endif
#ifdef __cpp_lib_ranges
#include <ranges>
#endif

// Without exceptions (-fno-exceptions), or when the program defines TSQ_NO_EXCEPTIONS, a failing call ends the program.
#if !defined(TSQ_NO_EXCEPTIONS) && !defined(__cpp_exceptions) && !defined(_CPPUNWIND)
#define TSQ_NO_EXCEPTIONS
#endif

// `try` and `catch (...)`; only the first block without exceptions.
#ifdef TSQ_NO_EXCEPTIONS
#define TSQ_DETAIL_TRY if constexpr (true)
#define TSQ_DETAIL_CATCH_ALL else
#else
#define TSQ_DETAIL_TRY try
#define TSQ_DETAIL_CATCH_ALL catch (...)
#endif

namespace townsquare {

/// A point in time, in microseconds.
using Timestamp = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

namespace detail {

inline std::string_view view(tsq_str text) noexcept { return {text.ptr, text.len}; }

inline std::optional<std::string_view> optional_view(tsq_str text) noexcept {
    return text.ptr != nullptr ? std::optional(view(text)) : std::nullopt;
}

inline Timestamp timestamp(std::int64_t micros) noexcept { return Timestamp(std::chrono::microseconds(micros)); }

inline tsq_str text(std::string_view text) noexcept { return {text.data(), text.size()}; }

inline std::vector<tsq_str> texts(const std::vector<std::string> &strings) {
    std::vector<tsq_str> out;
    out.reserve(strings.size());
    for (const std::string &string : strings) out.push_back(text(string));
    return out;
}

/// The names and values of HTTP headers for the C functions.
template <typename Headers>
std::vector<tsq_http_header> http_headers(const Headers &headers) {
    std::vector<tsq_http_header> out;
    out.reserve(headers.size());
    for (const auto &[name, value] : headers) out.push_back({text(name), text(value)});
    return out;
}

}  // namespace detail

/// The name of a status (`not_found`).
[[nodiscard]] inline std::string_view name(tsq_status status) noexcept { return detail::view(tsq_status_name(status)); }

/// Why an operation failed. Copies share one error object; a moved-from error stays usable.
// NOLINTNEXTLINE(cppcoreguidelines-special-member-functions): moves copy.
class Error : public std::exception {
public:
    /// Takes `error`.
    Error(tsq_status kind, tsq_error *error) : kind_(kind), error_(error, tsq_error_free) {}
    /// A copy of an error object that stays with its owner.
    [[nodiscard]] static Error copy_of(const tsq_error *error) {
        return Error(tsq_error_kind(error), tsq_error_clone(error));
    }
    // Without a move constructor, moves copy.
    Error(const Error &) noexcept = default;
    Error &operator=(const Error &) noexcept = default;

    /// The kind of the failure: TSQ_NOT_FOUND, TSQ_INVALID_INPUT, ...
    [[nodiscard]] tsq_status kind() const noexcept { return kind_; }
    /// The whole sentence, the operation's prefix included.
    [[nodiscard]] const char *what() const noexcept override {
        const tsq_str text = tsq_error_text(error_.get());
        return text.ptr != nullptr ? text.ptr : "townsquare: unknown error";
    }
    /// The sentence without the prefix.
    [[nodiscard]] std::string_view message() const & noexcept { return detail::view(tsq_error_message(error_.get())); }
    /// The failed operation (`search_mini_apps`); empty for a failure outside an operation.
    [[nodiscard]] std::string_view operation() const & noexcept { return detail::view(tsq_error_operation(error_.get())); }
    /// The SQLSTATE (`23505`); empty for a failure without one.
    [[nodiscard]] std::string_view code() const & noexcept { return detail::view(tsq_error_code(error_.get())); }
    /// The HTTP status for the error (404, 413, 503, ...).
    [[nodiscard]] std::uint16_t status() const noexcept { return tsq_error_status(error_.get()); }
    /// What to do about the error, in one sentence.
    [[nodiscard]] std::string_view explanation() const & noexcept {
        return detail::view(tsq_error_explanation(error_.get()));
    }
    /// The part of the message behind the fixed sentence, for the developer of the program; often empty.
    [[nodiscard]] std::string_view reason() const & noexcept { return detail::view(tsq_error_reason(error_.get())); }
    /// How long to wait before another try.
    [[nodiscard]] std::optional<std::chrono::milliseconds> retry_after() const noexcept {
        std::uint64_t wait = 0;
        if (!tsq_error_retry_after_ms(error_.get(), &wait)) return std::nullopt;
        return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(wait));
    }
    /// The index of the item that failed, for calls that create several rows.
    [[nodiscard]] std::optional<std::size_t> row() const noexcept {
        std::size_t row = 0;
        return tsq_error_row(error_.get(), &row) ? std::optional(row) : std::nullopt;
    }
    /// The column that has no value, or whose value cannot be read; empty for other failures.
    [[nodiscard]] std::string_view column() const & noexcept { return detail::view(tsq_error_column(error_.get())); }
    /// Whether the same call may succeed later.
    [[nodiscard]] bool is_retryable() const noexcept { return tsq_error_is_retryable(error_.get()); }
    // Views of a temporary error would dangle: name the error first.
    [[nodiscard]] std::string_view message() const && = delete;
    [[nodiscard]] std::string_view operation() const && = delete;
    [[nodiscard]] std::string_view code() const && = delete;
    [[nodiscard]] std::string_view explanation() const && = delete;
    [[nodiscard]] std::string_view reason() const && = delete;
    [[nodiscard]] std::string_view column() const && = delete;

private:
    tsq_status kind_;
    std::shared_ptr<const tsq_error> error_;
};

/// Text for the library, absent by default. Made of everything that converts to std::string_view, except nullptr. A `const char *`
/// that is null, as std::getenv returns, makes it absent.
class Text {
public:
    Text() = default;
    Text(std::nullopt_t) noexcept {}
    Text(std::nullptr_t) = delete;
    template <typename T, typename = std::enable_if_t<std::is_convertible_v<const T &, std::string_view> &&
                                                      !std::is_null_pointer_v<T>>>
    Text(const T &text) {
        set(text);
    }
    /// Absent when `text` is.
    template <typename T, typename = std::enable_if_t<std::is_convertible_v<const T &, std::string_view>>>
    Text(const std::optional<T> &text) {
        if (text) set(*text);
    }

    [[nodiscard]] const std::optional<std::string> &value() const & noexcept { return text_; }
    /// A view for the C functions.
    [[nodiscard]] tsq_str borrowed() const & noexcept { return text_ ? detail::text(*text_) : tsq_str{nullptr, 0}; }
    // Views of a temporary text would dangle: name the text first.
    [[nodiscard]] const std::optional<std::string> &value() const && = delete;
    [[nodiscard]] tsq_str borrowed() const && = delete;

private:
    template <typename T>
    void set(const T &text) {
        if constexpr (std::is_pointer_v<T>) {
            if (text == nullptr) return;
        }
        text_ = std::string(std::string_view(text));
    }

    std::optional<std::string> text_;
};

namespace detail {

template <typename T, void (*Free)(T *)>
struct Deleter {
    void operator()(T *handle) const noexcept { Free(handle); }
};

/// An owned C handle.
template <typename T, void (*Free)(T *)>
using Handle = std::unique_ptr<T, Deleter<T, Free>>;

/// Throws the error. Without exceptions it ends the program, as an exception that nobody catches does.
[[noreturn]] inline void fail(const Error &error) {
#ifdef TSQ_NO_EXCEPTIONS
    std::fprintf(stderr, "townsquare: %s\n", error.what());
    std::abort();
#else
    throw error;
#endif
}

/// Runs a call that takes `err`; throws its error.
template <typename Call>
void act(Call call) {
    tsq_error *err = nullptr;
    const tsq_status status = call(&err);
    if (status != TSQ_OK) fail(Error(status, err));
}

/// Runs a call that takes `out` and `err`; returns the output, throws the error.
template <typename Owner, typename Call>
Owner make(Call call) {
    typename Owner::pointer out = nullptr;
    act([&](tsq_error **err) { return call(&out, err); });
    return Owner(out);
}

/// Runs a call that returns JSON.
template <typename Call>
std::string json(Call call) {
    const auto json = make<Handle<tsq_string, tsq_string_free>>(call);
    return std::string(view(tsq_string_view(json.get())));
}

/// A random access iterator over a view with `operator[]`. It holds a copy of the view, so it outlives that object.
template <typename View>
class Iterator {
public:
    // Dereferencing returns a value: an input iterator for C++17, a random access iterator for C++20.
    using iterator_category = std::input_iterator_tag;
    using iterator_concept = std::random_access_iterator_tag;
    using value_type = typename View::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = value_type;

    Iterator() = default;
    Iterator(View view, std::size_t index) noexcept : view_(view), index_(static_cast<difference_type>(index)) {}
    reference operator*() const noexcept { return view_[static_cast<std::size_t>(index_)]; }
    reference operator[](difference_type offset) const noexcept { return *(*this + offset); }
    Iterator &operator+=(difference_type offset) noexcept {
        index_ += offset;
        return *this;
    }
    Iterator &operator-=(difference_type offset) noexcept { return *this += -offset; }
    Iterator &operator++() noexcept { return *this += 1; }
    Iterator &operator--() noexcept { return *this -= 1; }
    Iterator operator++(int) noexcept {
        Iterator before = *this;
        ++*this;
        return before;
    }
    Iterator operator--(int) noexcept {
        Iterator before = *this;
        --*this;
        return before;
    }
    friend Iterator operator+(Iterator it, difference_type offset) noexcept { return it += offset; }
    friend Iterator operator+(difference_type offset, Iterator it) noexcept { return it += offset; }
    friend Iterator operator-(Iterator it, difference_type offset) noexcept { return it -= offset; }
    friend difference_type operator-(const Iterator &a, const Iterator &b) noexcept { return a.index_ - b.index_; }
    friend bool operator==(const Iterator &a, const Iterator &b) noexcept { return a.index_ == b.index_; }
    friend bool operator!=(const Iterator &a, const Iterator &b) noexcept { return a.index_ != b.index_; }
    friend bool operator<(const Iterator &a, const Iterator &b) noexcept { return a.index_ < b.index_; }
    friend bool operator>(const Iterator &a, const Iterator &b) noexcept { return a.index_ > b.index_; }
    friend bool operator<=(const Iterator &a, const Iterator &b) noexcept { return a.index_ <= b.index_; }
    friend bool operator>=(const Iterator &a, const Iterator &b) noexcept { return a.index_ >= b.index_; }

private:
    View view_ = {};
    difference_type index_ = 0;
};

}  // namespace detail

#if defined(__cpp_lib_expected) && !defined(TSQ_NO_EXCEPTIONS)
/// Runs `call`; returns its result, or the Error that it throws: attempt([&] { return client.spaces().get_space(id); }).
/// For a standard library with `std::expected` (`__cpp_lib_expected`, C++23). `call` returns a value, no reference.
template <typename Call>
[[nodiscard]] std::expected<std::invoke_result_t<Call>, Error> attempt(Call &&call) {
    try {
        if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
            std::forward<Call>(call)();
            return {};
        } else {
            return std::forward<Call>(call)();
        }
    } catch (const Error &error) {
        return std::unexpected<Error>(error);
    }
}
#endif

/// A view of a list of the C library.
template <typename Item, typename Raw, std::size_t (*Len)(const Raw *), auto At>
class ListView {
public:
    using value_type = Item;

    ListView() = default;
    explicit ListView(const Raw *list) noexcept : list_(list) {}
    [[nodiscard]] std::size_t size() const noexcept { return Len(list_); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// `index` must be below size().
    [[nodiscard]] Item operator[](std::size_t index) const noexcept {
        if constexpr (std::is_same_v<Item, std::string_view>) {
            return detail::view(At(list_, index));
        } else {
            return Item(At(list_, index));
        }
    }
    [[nodiscard]] detail::Iterator<ListView> begin() const noexcept { return {*this, 0}; }
    [[nodiscard]] detail::Iterator<ListView> end() const noexcept { return {*this, size()}; }

    [[nodiscard]] const Raw *get() const noexcept { return list_; }

private:
    const Raw *list_ = nullptr;
};

/// A list that owns its items. It can be moved; views of its items live as long as the list.
template <typename View, typename Raw, void (*Free)(Raw *), tsq_status (*Json)(const Raw *, tsq_string **, tsq_error **)>
class List {
public:
    using value_type = typename View::value_type;
    using Handle = detail::Handle<Raw, Free>;

    explicit List(Handle handle) noexcept : handle_(std::move(handle)) {}
    [[nodiscard]] std::size_t size() const noexcept { return View(get()).size(); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// `index` must be below size().
    [[nodiscard]] value_type operator[](std::size_t index) const & noexcept { return View(get())[index]; }
    [[nodiscard]] detail::Iterator<View> begin() const & noexcept { return View(get()).begin(); }
    [[nodiscard]] detail::Iterator<View> end() const & noexcept { return View(get()).end(); }
    // Views of a temporary list would dangle: name the list first.
    [[nodiscard]] value_type operator[](std::size_t index) const && = delete;
    [[nodiscard]] detail::Iterator<View> begin() const && = delete;
    [[nodiscard]] detail::Iterator<View> end() const && = delete;
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return Json(get(), out, err); });
    }

    [[nodiscard]] const Raw *get() const & noexcept { return handle_.get(); }
    [[nodiscard]] const Raw *get() const && = delete;

private:
    Handle handle_;
};

/// A result that owns a record. Read it with `->`. It can be moved; views of it live as long as it.
template <typename View>
class Owned {
public:
    explicit Owned(typename View::Handle handle) noexcept : handle_(std::move(handle)), view_(handle_.get()) {}
    [[nodiscard]] const View *operator->() const & noexcept { return &view_; }
    [[nodiscard]] const View &operator*() const & noexcept { return view_; }
    // Views of a temporary result would dangle: name the result first.
    [[nodiscard]] const View *operator->() const && = delete;
    [[nodiscard]] const View &operator*() const && = delete;

private:
    typename View::Handle handle_;
    View view_;
};

namespace detail {

/// Runs a call that returns a record.
template <typename View, typename Call>
townsquare::Owned<View> owned(Call call) {
    return townsquare::Owned<View>(make<typename View::Handle>(call));
}

/// Runs a call that returns a record or none.
template <typename View, typename Call>
std::optional<townsquare::Owned<View>> owned_if_any(Call call) {
    auto handle = make<typename View::Handle>(call);
    if (handle == nullptr) return std::nullopt;
    return std::optional<townsquare::Owned<View>>(std::in_place, std::move(handle));
}

}  // namespace detail

}  // namespace townsquare

#ifdef __cpp_lib_ranges
// A ListView is a view for std::views, and its iterators outlive it.
template <typename Item, typename Raw, std::size_t (*Len)(const Raw *), auto At>
inline constexpr bool std::ranges::enable_view<townsquare::ListView<Item, Raw, Len, At>> = true;
template <typename Item, typename Raw, std::size_t (*Len)(const Raw *), auto At>
inline constexpr bool std::ranges::enable_borrowed_range<townsquare::ListView<Item, Raw, Len, At>> = true;
#endif

#endif  // TOWNSQUARE_BASE_HPP
