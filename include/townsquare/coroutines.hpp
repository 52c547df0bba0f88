// Changes for coroutines, with C++20. townsquare.hpp does not include this file. Not on Windows.

#ifndef TOWNSQUARE_COROUTINES_HPP
#define TOWNSQUARE_COROUTINES_HPP

#include <townsquare.hpp>

#ifndef __cpp_impl_coroutine
#error "townsquare/coroutines.hpp needs coroutines: compile with -std=c++20"
#endif

#include <algorithm>
#include <coroutine>
#include <deque>
#include <exception>

namespace townsquare {

/// Resumes coroutines that wait for changes, on the program's own loop and thread. Any coroutine can wait: the program chooses its
/// type, for example `Task`.
///
///     Task print(ChangeLoop &loop, const ChangeStream &changes) {
///         while (const auto change = co_await loop.next(changes)) std::puts((*change)->json().c_str());
///     }
///
///     ChangeLoop loop(client);
///     const ChangeStream changes = client.realtime().changes(request);
///     print(loop, changes);
///     pollfd waiting{loop.descriptor(), POLLIN, 0};
///     while (poll(&waiting, 1, -1) == 1) loop.dispatch();
///
/// The streams belong to the client of the loop, or to handles made from it after the loop. One thread uses the loop and its
/// coroutines; any thread may close a stream. The loop lives longer than its coroutines, as does the client.
class ChangeLoop {
public:
    /// What `co_await` takes. Its result is absent after the end of the stream. Throws as ChangeStream::next.
    class [[nodiscard]] Next {
    public:
        Next(const Next &) = delete;
        Next(Next &&) = delete;
        Next &operator=(const Next &) = delete;
        Next &operator=(Next &&) = delete;
        /// A coroutine that is destroyed while it waits loses no change.
        ~Next() {
            loop_.forget(this);
            tsq_error_free(error_);
        }

        [[nodiscard]] bool await_ready() { return is_ready(); }
        void await_suspend(std::coroutine_handle<> coroutine) {
            coroutine_ = coroutine;
            loop_.waiting_.push_back(this);
        }
        [[nodiscard]] std::optional<Owned<RowChange>> await_resume() {
            detail::act([this](tsq_error **err) {
                *err = std::exchange(error_, nullptr);
                return status_;
            });
            if (!change_) return std::nullopt;
            return Owned<RowChange>(std::move(change_));
        }

    private:
        friend class ChangeLoop;
        Next(ChangeLoop &loop, ChangeStreamView stream) noexcept : loop_(loop), stream_(stream) {}

        // Takes the next change, if there is one. If not, a change makes the descriptor readable.
        bool is_ready() {
            tsq_row_change *change = nullptr;
            status_ = tsq_change_stream_next(stream_.get(), 0, &change, &error_);
            change_.reset(change);
            return change_ || status_ != TSQ_OK || stream_.has_ended();
        }

        ChangeLoop &loop_;
        ChangeStreamView stream_;
        std::coroutine_handle<> coroutine_;
        RowChange::Handle change_;
        tsq_status status_ = TSQ_OK;
        tsq_error *error_ = nullptr;
    };

    /// Makes the descriptor of the client (Client::poll_fd): its callbacks run inside dispatch() alone from now on.
    explicit ChangeLoop(const Client &client) : client_(client), descriptor_(client.poll_fd()) {}
    ChangeLoop(const Client &&) = delete;
    ChangeLoop(const ChangeLoop &) = delete;
    ChangeLoop(ChangeLoop &&) = delete;
    ChangeLoop &operator=(const ChangeLoop &) = delete;
    ChangeLoop &operator=(ChangeLoop &&) = delete;
    ~ChangeLoop() = default;

    /// A file descriptor that is readable while dispatch() has something to do, for poll, epoll, libuv and Qt.
    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

    /// Runs the client's callbacks that wait, and resumes each coroutine whose change has come or whose stream has ended, also by
    /// Client::close. It does not wait. An exception that leaves a coroutine comes out of dispatch() when the others were resumed; of
    /// several, the first one.
    void dispatch() {
        detail::act([this](tsq_error **err) {
            const tsq_status status = tsq_client_dispatch(client_.get(), err);
            if (status != TSQ_CLOSED) return status;
            tsq_error_free(std::exchange(*err, nullptr));
            return TSQ_OK;
        });
#ifndef TSQ_NO_EXCEPTIONS
        std::exception_ptr thrown;
#endif
        // A resumed coroutine may wait again, and it may destroy others.
        for (std::size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
            Next *next = waiting_.front();
            waiting_.pop_front();
            if (!next->is_ready()) {
                waiting_.push_back(next);
                continue;
            }
#ifdef TSQ_NO_EXCEPTIONS
            next->coroutine_.resume();
        }
#else
            try {
                next->coroutine_.resume();
            } catch (...) {
                if (!thrown) thrown = std::current_exception();
            }
        }
        if (thrown) std::rethrow_exception(thrown);
#endif
    }

    /// Waits for the next change of a stream. One coroutine at a time waits for a stream.
    Next next(ChangeStreamView stream) noexcept { return Next(*this, stream); }
    Next next(const ChangeStream &stream) noexcept { return Next(*this, stream.view()); }
    Next next(const ChangeStream &&) = delete;

private:
    void forget(const Next *next) noexcept {
        const auto found = std::find(waiting_.begin(), waiting_.end(), next);
        if (found != waiting_.end()) waiting_.erase(found);
    }

    const Client &client_;
    int descriptor_;
    std::deque<Next *> waiting_;
};

}  // namespace townsquare

#endif  // TOWNSQUARE_COROUTINES_HPP
