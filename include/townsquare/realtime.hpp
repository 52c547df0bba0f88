// Part of townsquare.hpp, which programs include: changes of rows, as they are committed.

#ifndef TOWNSQUARE_REALTIME_HPP
#define TOWNSQUARE_REALTIME_HPP

#include <townsquare/auth.hpp>
#include <townsquare/base.hpp>
#include <townsquare/storage.hpp>

#include <chrono>
#include <functional>

namespace townsquare {

/// The name of an event type (`INSERT`).
[[nodiscard]] inline std::string_view name(tsq_event_type event) noexcept { return detail::view(tsq_event_type_name(event)); }

/// A change of one row: a view.
class RowChange {
public:
    using Handle = detail::Handle<tsq_row_change, tsq_row_change_free>;

    explicit RowChange(const tsq_row_change *change) noexcept : change_(change) {}
    [[nodiscard]] std::string_view schema() const noexcept { return detail::view(change_->schema); }
    [[nodiscard]] std::string_view table() const noexcept { return detail::view(change_->table); }
    [[nodiscard]] tsq_event_type event() const noexcept { return change_->event; }
    /// The row after the change as JSON; empty for a row that is gone.
    [[nodiscard]] std::string_view new_row() const noexcept { return detail::view(change_->new_row); }
    /// The row before the change as JSON; empty for a row that came into the view. After a TSQ_EVENT_DELETE it is the whole row if the
    /// row was deleted, and the key only in the cases that tsq_row_change names.
    [[nodiscard]] std::string_view old_row() const noexcept { return detail::view(change_->old_row); }
    [[nodiscard]] Timestamp commit_timestamp() const noexcept { return detail::timestamp(change_->commit_timestamp); }
    /// The position after this change, for ChangeRequest::since and ChangeRequest::until.
    [[nodiscard]] std::string_view cursor() const noexcept { return detail::view(change_->cursor); }
    /// By the names in the JSON of a change.
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_row_change_json(change_, out, err); });
    }

    [[nodiscard]] const tsq_row_change *get() const noexcept { return change_; }

private:
    const tsq_row_change *change_;
};

/// Receives the changes of a subscription; a change lives until the callback returns. Runs on threads of the library;
/// exceptions that it throws are dropped.
using ChangeCallback = std::function<void(RowChange change)>;

/// Is told once that a subscription has ended: nullptr after unsubscribe, for a closed client and at ChangeRequest::until, else
/// the reason, which lives until the callback returns.
using CloseCallback = std::function<void(const Error *reason)>;

/// The changes that a subscription or a stream gets. The texts are borrowed for the call.
struct ChangeRequest {
    /// `spaces`, or another that `ChangeRequest` takes.
    Text table = {};
    tsq_event_type event = TSQ_EVENT_ANY;
    /// Conditions `column=op.value`, joined by `&`.
    Text filter = {};
    /// A cursor: the changes after it come first.
    Text since = {};
    /// For Realtime::subscribe only.
    CloseCallback on_close = {};
    /// A cursor at which the subscription or the stream ends. Changes after it are not delivered.
    Text until = {};
};

namespace detail {

/// The callbacks of a subscription.
struct ChangeCallbacks {
    ChangeCallback change;
    CloseCallback close;
};

/// Calls a ChangeCallback from C.
inline void call_change(const tsq_row_change *change, void *callbacks) noexcept {
    TSQ_DETAIL_TRY {
        static_cast<ChangeCallbacks *>(callbacks)->change(RowChange(change));
    } TSQ_DETAIL_CATCH_ALL {
    }
}

/// Calls a CloseCallback from C.
inline void call_close(const tsq_error *reason, void *callbacks) noexcept {
    TSQ_DETAIL_TRY {
        const auto &close = static_cast<ChangeCallbacks *>(callbacks)->close;
        if (reason == nullptr) {
            close(nullptr);
        } else {
            const Error copy = Error::copy_of(reason);
            close(&copy);
        }
    } TSQ_DETAIL_CATCH_ALL {
    }
}

inline void delete_change(void *callbacks) noexcept { delete static_cast<ChangeCallbacks *>(callbacks); }

/// The C input of a request, without `on_close`.
inline tsq_change_request change_request(const ChangeRequest &request) noexcept {
    tsq_change_request borrowed{};
    borrowed.size = sizeof borrowed;
    borrowed.table = request.table.borrowed();
    borrowed.event = request.event;
    borrowed.filter = request.filter.borrowed();
    borrowed.since = request.since.borrowed();
    borrowed.until = request.until.borrowed();
    return borrowed;
}

}  // namespace detail

/// A stream of changes that the program polls: a view of an owner's stream. Any thread may close it.
class ChangeStreamView {
public:
    explicit ChangeStreamView(tsq_change_stream *stream) noexcept : stream_(stream) {}
    /// Waits for the next change. Absent after the end.
    [[nodiscard]] std::optional<Owned<RowChange>> next() const { return next_ms(-1); }
    /// Waits at most `timeout`. Absent at the time-out and after the end; has_ended tells them apart.
    [[nodiscard]] std::optional<Owned<RowChange>> next(std::chrono::milliseconds timeout) const {
        return next_ms(timeout.count() < 0 ? 0 : static_cast<std::int64_t>(timeout.count()));
    }
    [[nodiscard]] bool has_ended() const noexcept { return tsq_change_stream_has_ended(stream_); }
    /// Ends the stream, also for a thread that waits in next().
    void close() const {
        detail::act([this](auto err) { return tsq_change_stream_close(stream_, err); });
    }

    [[nodiscard]] tsq_change_stream *get() const noexcept { return stream_; }

private:
    [[nodiscard]] std::optional<Owned<RowChange>> next_ms(std::int64_t timeout_ms) const {
        return detail::owned_if_any<RowChange>(
            [&](auto out, auto err) { return tsq_change_stream_next(stream_, timeout_ms, out, err); });
    }

    tsq_change_stream *stream_;
};

/// A stream of changes. Its destructor ends it.
class [[nodiscard]] ChangeStream {
public:
    using Handle = detail::Handle<tsq_change_stream, tsq_change_stream_free>;

    explicit ChangeStream(Handle handle) noexcept : handle_(std::move(handle)) {}
    [[nodiscard]] ChangeStreamView view() const & noexcept { return ChangeStreamView(handle_.get()); }
    // A view of a temporary stream would dangle: name the stream first.
    [[nodiscard]] ChangeStreamView view() const && = delete;
    [[nodiscard]] std::optional<Owned<RowChange>> next() const { return view().next(); }
    [[nodiscard]] std::optional<Owned<RowChange>> next(std::chrono::milliseconds timeout) const { return view().next(timeout); }
    [[nodiscard]] bool has_ended() const noexcept { return view().has_ended(); }
    void close() const { view().close(); }

private:
    Handle handle_;
};

/// The rows of a table, and every change after them. Its destructor ends it.
class [[nodiscard]] LiveQuery {
public:
    using Handle = detail::Handle<tsq_live_query, tsq_live_query_free>;

    explicit LiveQuery(Handle handle) noexcept : handle_(std::move(handle)) {}
    [[nodiscard]] std::size_t size() const noexcept { return tsq_live_query_len(handle_.get()); }
    /// The row as JSON; empty beyond the end.
    [[nodiscard]] std::string_view operator[](std::size_t index) const & noexcept {
        return detail::view(tsq_live_query_row_at(handle_.get(), index));
    }
    [[nodiscard]] std::string_view operator[](std::size_t index) const && = delete;
    [[nodiscard]] ChangeStreamView changes() const & noexcept { return ChangeStreamView(tsq_live_query_changes(handle_.get())); }
    [[nodiscard]] ChangeStreamView changes() const && = delete;

private:
    Handle handle_;
};

/// The figures of the change feed: a view.
class RealtimeStats {
public:
    using Handle = detail::Handle<tsq_realtime_stats, tsq_realtime_stats_free>;

    explicit RealtimeStats(const tsq_realtime_stats *stats) noexcept : stats_(stats) {}
    [[nodiscard]] std::uint64_t subscriptions() const noexcept { return stats_->subscriptions; }
    [[nodiscard]] std::uint64_t retained() const noexcept { return stats_->retained; }
    [[nodiscard]] std::optional<Timestamp> oldest() const noexcept {
        if (!stats_->has_oldest) return std::nullopt;
        return detail::timestamp(stats_->oldest);
    }
    [[nodiscard]] double lag_seconds() const noexcept { return stats_->lag_seconds; }

private:
    const tsq_realtime_stats *stats_;
};

/// Subscriptions to changes of rows: a view of the client.
class Realtime {
public:
    explicit Realtime(const tsq_client *client) noexcept : client_(client) {}

    /// Switches the change log on, for all processes. The first subscription of the program does so, too.
    void start() const {
        detail::act([this](auto err) { return tsq_realtime_start(client_, err); });
    }
    /// Switches the change log off, for all processes, and empties it. For the service.
    void stop() const {
        detail::act([this](auto err) { return tsq_realtime_stop(client_, err); });
    }
    /// Calls `callback` with every change. The subscription is live when this returns.
    [[nodiscard]] Subscription subscribe(std::string_view channel, const ChangeRequest &request, ChangeCallback callback) const {
        tsq_change_request borrowed = detail::change_request(request);
        if (request.on_close) borrowed.on_close = detail::call_close;
        return subscription(std::move(callback), request.on_close, [&](auto call, auto data, auto out, auto err) {
            return tsq_realtime_subscribe(client_, detail::text(channel), &borrowed, call, data, detail::delete_change, out, err);
        });
    }
    /// The subscription `space-changes`.
    [[nodiscard]] Subscription on_space_changes(std::string_view space_id, ChangeCallback callback) const {
        return subscription(std::move(callback), {}, [&](auto call, auto data, auto out, auto err) {
            return tsq_realtime_on_space_changes(client_, detail::text(space_id), call, data, detail::delete_change, out, err);
        });
    }
    /// The subscription `fidget-changes`.
    [[nodiscard]] Subscription on_fidget_changes(std::string_view space_id, ChangeCallback callback) const {
        return subscription(std::move(callback), {}, [&](auto call, auto data, auto out, auto err) {
            return tsq_realtime_on_fidget_changes(client_, detail::text(space_id), call, data, detail::delete_change, out, err);
        });
    }
    /// The changes as a stream that the program polls. Fails with `TSQ_INVALID_INPUT` for `on_close`: a stream says how it ended.
    [[nodiscard]] ChangeStream changes(const ChangeRequest &request) const {
        tsq_change_request borrowed = detail::change_request(request);
        if (request.on_close) borrowed.on_close = detail::call_close;
        return ChangeStream(detail::make<ChangeStream::Handle>(
            [&](auto out, auto err) { return tsq_realtime_changes(client_, &borrowed, out, err); }));
    }
    /// The rows now, and every change after them.
    [[nodiscard]] LiveQuery live(std::string_view table, const Text &filter = {}) const {
        return LiveQuery(detail::make<LiveQuery::Handle>([&](auto out, auto err) {
            return tsq_realtime_live(client_, detail::text(table), filter.borrowed(), out, err);
        }));
    }
    /// The position after the last commit.
    [[nodiscard]] std::string cursor() const {
        return detail::json([this](auto out, auto err) { return tsq_realtime_cursor(client_, out, err); });
    }
    [[nodiscard]] Owned<RealtimeStats> stats() const {
        return detail::owned<RealtimeStats>([this](auto out, auto err) { return tsq_realtime_get_stats(client_, out, err); });
    }
    /// Answers a request (GET, HEAD or OPTIONS) for server-sent events, `/events?table=spaces`. The body of GET has no end:
    /// FileResponse::read waits for events.
    [[nodiscard]] FileResponse handle_events(
        std::string_view method, std::string_view target,
        const std::vector<std::pair<std::string_view, std::string_view>> &headers = {}) const {
        const auto borrowed = detail::http_headers(headers);
        return FileResponse(detail::make<FileResponse::Handle>([&](auto out, auto err) {
            return tsq_realtime_handle_events(
                client_, detail::text(method), detail::text(target), borrowed.data(), borrowed.size(), out, err);
        }));
    }

private:
    template <typename Call>
    static Subscription subscription(ChangeCallback callback, CloseCallback on_close, Call call) {
        const tsq_change_callback function = callback ? detail::call_change : nullptr;
        auto data = std::make_unique<detail::ChangeCallbacks>();
        data->change = std::move(callback);
        data->close = std::move(on_close);
        return Subscription(detail::make<Subscription::Handle>(
            [&](auto out, auto err) { return call(function, data.release(), out, err); }));
    }

    const tsq_client *client_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_REALTIME_HPP
