// townsquare for C++17: townsquare.h in RAII types. The manual is at the head of townsquare.h. In addition:
//
//   - failures are thrown as townsquare::Error; its what() is the whole sentence;
//   - Config, Client, Subscription, Owned<Space>, Buffer, FileReader, FileWriter, the lists and other results own their
//     handle and can only be moved;
//   - MiniApp, Space, Fidget, FileInfo, Owner, Author, User, Session and every std::string_view are views: they live as long
//     as the owner that they were read from. Discovery, Auth, Spaces, Fidgets, Communities and Storage are views of their
//     Client. Reading a view from a temporary owner does not compile, nor does a FileRequest with a temporary string as its
//     body: name the owner first. Name it also where the compiler cannot see it, in a temporary std::expected or std::optional:
//     `attempt(...).value()->name()` compiles, and its view dangles;
//   - with `std::expected` (C++23), attempt([&] { return client.spaces().get_space(id); }) returns std::expected with the result or the Error;
//     with C++20, the lists are ranges;
//   - without exceptions (-fno-exceptions, or TSQ_NO_EXCEPTIONS defined before the include) a failing call writes the
//     sentence to stderr and ends the program with std::abort, as an exception that nobody catches does. A program that goes
//     on after a failure calls the C function with get(). Compile all files of a program with the same setting;
//   - every method may be called from any thread; a moved-from object may only be assigned to or destroyed.
//
//     townsquare::Client client;
//     const townsquare::Owned<townsquare::Space> space = client.spaces().get_space(id);
//     std::cout << space->name() << '\n';
//     for (townsquare::MiniApp app : client.discovery().get_trending_mini_apps("24h", {20}))
//         std::cout << app.name() << "  " << app.home_url() << '\n';
//
// Header-only: each method calls the C function of its name.

#ifndef TOWNSQUARE_HPP
#define TOWNSQUARE_HPP

#include <townsquare/auth.hpp>
#include <townsquare/base.hpp>
#include <townsquare/communities.hpp>
#include <townsquare/discovery.hpp>
#include <townsquare/realtime.hpp>
#include <townsquare/spaces.hpp>
#include <townsquare/storage.hpp>

namespace townsquare {

/// A configuration; see OPTIONS in townsquare.h.
class Config {
public:
    /// The defaults.
    Config() : handle_(tsq_config_new()) {}
    /// `townsquare:/var/lib/town?durability=normal`, `sqlite:PATH`, `postgres://...`
    [[nodiscard]] static Config from_url(std::string_view url) {
        return Config(detail::make<Handle>(
            [&](auto out, auto err) { return tsq_config_from_url(detail::text(url), out, err); }));
    }
    /// From the variables TOWNSQUARE_<NAME>.
    [[nodiscard]] static Config from_env() { return Config(detail::make<Handle>(tsq_config_from_env)); }

    /// Sets an option by its name.
    Config &set(std::string_view name, std::string_view value) & {
        detail::act([&](auto err) { return tsq_config_set(get(), detail::text(name), detail::text(value), err); });
        return *this;
    }
    /// By value: a reference to a temporary configuration would dangle.
    [[nodiscard]] Config set(std::string_view name, std::string_view value) && { return std::move(set(name, value)); }

    [[nodiscard]] tsq_config *get() const & noexcept { return handle_.get(); }
    [[nodiscard]] tsq_config *get() const && = delete;

private:
    using Handle = detail::Handle<tsq_config, tsq_config_free>;
    explicit Config(Handle handle) : handle_(std::move(handle)) {}
    Handle handle_;
};

/// Something that is wrong, or will be: a view.
class Finding {
public:
    explicit Finding(const tsq_finding *finding) noexcept : finding_(finding) {}
    /// The kind of fault, such as `file_missing`.
    [[nodiscard]] std::string_view code() const noexcept { return detail::view(finding_->code); }
    /// `error`, `warning` or `note`.
    [[nodiscard]] std::string_view severity() const noexcept { return detail::view(finding_->severity); }
    /// A sentence that names the file, the table or the part.
    [[nodiscard]] std::string_view message() const noexcept { return detail::view(finding_->message); }
    /// What to do about it.
    [[nodiscard]] std::string_view advice() const noexcept { return detail::view(finding_->advice); }

private:
    const tsq_finding *finding_;
};

using FindingsView = ListView<Finding, tsq_findings, tsq_findings_len, tsq_findings_at>;
/// Findings, the worst first.
using Findings = List<FindingsView, tsq_findings, tsq_findings_free, tsq_findings_json>;
/// The name of what a target is (`empty`).
[[nodiscard]] inline std::string_view name(tsq_move_target target) noexcept { return detail::view(tsq_move_target_name(target)); }

/// What Client::move_to copies.
struct MoveOptions {
    /// Whether sessions are copied, so that the users stay signed in.
    bool sessions = true;
    /// If it is set, others may write the source meanwhile: at the end their writes wait at most this long, and then the source takes
    /// no writes any more.
    std::optional<std::chrono::milliseconds> follow = std::nullopt;
};

/// What Client::move_to has copied: a view.
class MoveReport {
public:
    using Handle = detail::Handle<tsq_move_report, tsq_move_report_free>;

    explicit MoveReport(const tsq_move_report *report) noexcept : report_(report) {}
    /// The number of rows of a table; 0 for a table that was not moved.
    [[nodiscard]] std::uint64_t rows(std::string_view table) const noexcept {
        for (std::size_t i = 0; i < report_->tables_len; i++) {
            if (detail::view(report_->tables[i].name) == table) return report_->tables[i].rows;
        }
        return 0;
    }
    [[nodiscard]] std::uint64_t files() const noexcept { return report_->files; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return report_->bytes; }
    [[nodiscard]] double seconds() const noexcept { return report_->seconds; }
    /// Whether the call continued a move that an earlier call had begun.
    [[nodiscard]] bool resumed() const noexcept { return report_->resumed; }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_move_report_json(report_, out, err); });
    }

private:
    const tsq_move_report *report_;
};

/// A row of an export: a view.
class ExportedRow {
public:
    using Handle = detail::Handle<tsq_exported_row, tsq_exported_row_free>;

    explicit ExportedRow(const tsq_exported_row *row) noexcept : row_(row) {}
    [[nodiscard]] std::string_view table() const noexcept { return detail::view(row_->table); }
    /// The values by column: a JSON object.
    [[nodiscard]] std::string_view values() const noexcept { return detail::view(row_->values); }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_exported_row_json(row_, out, err); });
    }

    [[nodiscard]] const tsq_exported_row *get() const noexcept { return row_; }

private:
    const tsq_exported_row *row_;
};

/// The rows of tables as they were at one moment. Its destructor ends the read transaction that it holds.
class [[nodiscard]] RowExport {
public:
    using Handle = detail::Handle<tsq_row_export, tsq_row_export_free>;

    explicit RowExport(Handle handle) noexcept : handle_(std::move(handle)) {}
    /// The next row. Absent at the end.
    [[nodiscard]] std::optional<Owned<ExportedRow>> next() {
        return detail::owned_if_any<ExportedRow>([this](auto out, auto err) { return tsq_row_export_next(handle_.get(), out, err); });
    }

    [[nodiscard]] tsq_row_export *get() const & noexcept { return handle_.get(); }
    [[nodiscard]] tsq_row_export *get() const && = delete;

private:
    Handle handle_;
};

/// Why Client::import_rows cannot import a row: a view.
class RowProblem {
public:
    explicit RowProblem(const tsq_row_problem *problem) noexcept : problem_(problem) {}
    /// The index of the row in the call.
    [[nodiscard]] std::size_t row() const noexcept { return problem_->row; }
    /// `differs`, `taken` or `reference_missing`.
    [[nodiscard]] std::string_view kind() const noexcept { return detail::view(problem_->kind); }
    [[nodiscard]] std::string_view column() const noexcept { return detail::view(problem_->column); }
    /// The table of a missing row.
    [[nodiscard]] std::optional<std::string_view> table() const noexcept { return detail::optional_view(problem_->table); }
    /// The value that no row of the table has.
    [[nodiscard]] std::optional<std::string_view> value() const noexcept { return detail::optional_view(problem_->value); }

private:
    const tsq_row_problem *problem_;
};

/// What Client::import_rows did; in a dry run, what it would do: a view.
class RowImportReport {
public:
    using Handle = detail::Handle<tsq_row_import_report, tsq_row_import_report_free>;

    explicit RowImportReport(const tsq_row_import_report *report) noexcept : report_(report) {}
    [[nodiscard]] std::uint64_t inserted() const noexcept { return report_->inserted; }
    /// Existing rows with the same values.
    [[nodiscard]] std::uint64_t unchanged() const noexcept { return report_->unchanged; }
    /// Number of rows that conflict with existing rows; 0 unless it is a dry run.
    [[nodiscard]] std::size_t problems() const noexcept { return report_->problems_len; }
    /// `index` must be below problems().
    [[nodiscard]] RowProblem problem(std::size_t index) const noexcept { return RowProblem(report_->problems + index); }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_row_import_report_json(report_, out, err); });
    }

    [[nodiscard]] const tsq_row_import_report *get() const noexcept { return report_; }

private:
    const tsq_row_import_report *report_;
};

/// How Client::import_rows works.
struct ImportOptions {
    /// Inserts nothing; the report says what would happen.
    bool dry_run = false;
};

/// A migration of the library: a view.
class PlannedMigration {
public:
    explicit PlannedMigration(const tsq_planned_migration *migration) noexcept : migration_(migration) {}
    [[nodiscard]] std::string_view name() const noexcept { return detail::view(migration_->name); }
    /// What the migration does.
    [[nodiscard]] std::string_view about() const noexcept { return detail::view(migration_->about); }
    /// Whether the database has it.
    [[nodiscard]] bool is_applied() const noexcept { return migration_->is_applied; }

private:
    const tsq_planned_migration *migration_;
};

/// What opening a client would do to a database: a view.
class MigrationPlan {
public:
    using Handle = detail::Handle<tsq_migration_plan, tsq_migration_plan_free>;

    explicit MigrationPlan(const tsq_migration_plan *plan) noexcept : plan_(plan) {}
    /// Number of migrations that this version of the library knows.
    [[nodiscard]] std::size_t size() const noexcept { return plan_->migrations_len; }
    /// A migration, in the order in which they are applied; `index` must be below size().
    [[nodiscard]] PlannedMigration operator[](std::size_t index) const noexcept {
        return PlannedMigration(plan_->migrations + index);
    }
    /// Whether there is no database yet, or one without the tables of the library.
    [[nodiscard]] bool is_new() const noexcept { return plan_->is_new; }
    /// Whether opening changes nothing.
    [[nodiscard]] bool is_current() const noexcept { return plan_->is_current; }
    [[nodiscard]] std::string json() const {
        return detail::json([this](auto out, auto err) { return tsq_migration_plan_json(plan_, out, err); });
    }

    [[nodiscard]] const tsq_migration_plan *get() const noexcept { return plan_; }

private:
    const tsq_migration_plan *plan_;
};

/// A handle of a client. Its destructor frees the handle; freeing the last handle closes the client.
class Client {
public:
    /// Opens with the defaults.
    Client() : Client(detail::make<Handle>([](auto out, auto err) { return tsq_client_open(nullptr, out, err); })) {}
    /// Opens with a configuration, which is copied.
    explicit Client(const Config &config)
        : Client(detail::make<Handle>([&](auto out, auto err) { return tsq_client_open(config.get(), out, err); })) {}
    /// The shared client of the process; the first call opens it with the defaults.
    [[nodiscard]] static Client shared() {
        return Client(detail::make<Handle>([](auto out, auto err) { return tsq_client_shared(nullptr, out, err); }));
    }
    /// The shared client of the process; throws TSQ_CONFIG when it is open with other options.
    [[nodiscard]] static Client shared(const Config &config) {
        return Client(detail::make<Handle>([&](auto out, auto err) { return tsq_client_shared(config.get(), out, err); }));
    }

    /// A handle of the same client that acts as the service, to which no policy applies. For trusted code. It closes alone.
    [[nodiscard]] Client as_service() const {
        return Client(detail::make<Handle>([this](auto out, auto err) { return tsq_client_as_service(get(), out, err); }));
    }
    /// A handle of the same client that acts for nobody, whoever signs in on the client. It closes alone.
    [[nodiscard]] Client as_anonymous() const {
        return Client(detail::make<Handle>([this](auto out, auto err) { return tsq_client_as_anonymous(get(), out, err); }));
    }
    /// A handle of the same client that acts as the user of a session, for servers with many users. It closes alone.
    [[nodiscard]] Client as_user(std::string_view access_token) const {
        return Client(detail::make<Handle>(
            [&](auto out, auto err) { return tsq_client_as_user(get(), detail::text(access_token), out, err); }));
    }
    /// A handle like this one with limits for one client of a server: the peer's address, whose port does not count, or a
    /// device. It closes as this one.
    [[nodiscard]] Client with_client_key(std::string_view client_key) const {
        return Client(detail::make<Handle>(
            [&](auto out, auto err) { return tsq_client_with_client_key(get(), detail::text(client_key), out, err); }));
    }
    /// The position of everything that this client has written. A client of another process that is told it reads all of it, also
    /// where a replica answers. Empty before the first write, and on SQLite.
    [[nodiscard]] std::string read_position() const {
        return detail::json([this](auto out, auto err) { return tsq_client_read_position(get(), out, err); });
    }
    /// Has later reads of this handle see what was written before this position of read_position().
    void read_after(std::string_view position) const {
        detail::act([&](auto err) { return tsq_client_read_after(get(), detail::text(position), err); });
    }
    /// A file descriptor that is readable while callbacks wait, for the loop of the program (poll, epoll, libuv, Qt). From this
    /// call on, callbacks of subscriptions of this handle, and of handles made from it, run inside dispatch() alone. The library
    /// owns the descriptor. Not on Windows.
    [[nodiscard]] int poll_fd() const {
        int descriptor = 0;
        detail::act([&](auto err) { return tsq_client_poll_fd(get(), &descriptor, err); });
        return descriptor;
    }
    /// Runs the callbacks that wait, on the calling thread. It does not wait.
    void dispatch() const {
        detail::act([this](auto err) { return tsq_client_dispatch(get(), err); });
    }
    /// Writes a copy of the SQLite database to a file that must not exist; writers go on meanwhile.
    void backup(std::string_view target) const {
        detail::act([&](auto err) { return tsq_client_backup(get(), detail::text(target), err); });
    }
    /// What the client has counted and measured since it was opened, as a JSON object by name.
    [[nodiscard]] std::string metrics_json() const {
        return detail::json([this](auto out, auto err) { return tsq_client_metrics_json(get(), out, err); });
    }
    /// The same in the text format of Prometheus.
    [[nodiscard]] std::string metrics_prometheus() const {
        return detail::json([this](auto out, auto err) { return tsq_client_metrics_prometheus(get(), out, err); });
    }

    /// Answers an HTTP request for any endpoint: `/api/miniapp-discovery`, `/directory`, `/files/BUCKET/PATH`, `/events` and
    /// `/health`. A bad request gets a response too. The body of `/events` has no end: FileResponse::read waits for events.
    [[nodiscard]] FileResponse handle_request(const FileRequest &request) const {
        return detail::handle_request(get(), request, tsq_client_handle_request);
    }
    /// Says what is wrong, or will be; nothing if all is well. Changes nothing. TSQ_CHECK_FULL reads every byte.
    [[nodiscard]] Findings check(tsq_check_depth depth = TSQ_CHECK_QUICK) const {
        return Findings(detail::make<Findings::Handle>(
            [&](auto out, auto err) { return tsq_client_check(get(), depth, out, err); }));
    }
    /// Restores such a copy into a data folder without a database that no client has open.
    static void restore(std::string_view source, std::string_view data_dir) {
        detail::act([&](auto err) { return tsq_restore(detail::text(source), detail::text(data_dir), err); });
    }
    /// Copies everything into an empty database and file store, which `target` names, and verifies it. A repeated call continues
    /// a move that ended early. Nobody may write the source meanwhile, unless the move follows it.
    Owned<MoveReport> move_to(const Config &target, const MoveOptions &options = {}, const Progress &progress = {}) const {
        tsq_move_options borrowed = {};
        borrowed.size = sizeof borrowed;
        borrowed.without_sessions = !options.sessions;
        // 0 is no pause in C. The shortest one is too short, which the library says.
        if (options.follow) borrowed.follow_ms = static_cast<std::uint64_t>(options.follow->count() < 1 ? 1 : options.follow->count());
        detail::Callback<Progress> callback(progress);
        return callback.run([&] {
            return detail::owned<MoveReport>([&](auto out, auto err) {
                return tsq_client_move_to(get(), target.get(), &borrowed, progress ? detail::call_progress : nullptr,
                                          callback.data(), out, err);
            });
        });
    }
    /// Accepts writes again after a move that followed this database. Returns whether writes were refused.
    bool reopen_for_writes() const {
        bool was_moved = false;
        detail::act([&](auto err) { return tsq_client_reopen_for_writes(get(), &was_moved, err); });
        return was_moved;
    }
    /// Says whether move_to would accept `target`, and what it would find there; throws the error of move_to for another target.
    /// Writes nothing.
    [[nodiscard]] tsq_move_target check_move(const Config &target) const {
        tsq_move_target state = TSQ_MOVE_TARGET_REFUSED;
        detail::act([&](auto err) { return tsq_client_check_move(get(), target.get(), &state, err); });
        return state;
    }

    /// Begins to read every row of tables, as the database is at this moment; of all tables if none is named. The service only.
    [[nodiscard]] RowExport export_rows(const std::vector<std::string> &tables = {}) const {
        const std::vector<tsq_str> names = detail::texts(tables);
        return RowExport(detail::make<RowExport::Handle>(
            [&](auto out, auto err) { return tsq_client_export_rows(get(), names.data(), names.size(), out, err); }));
    }
    /// Inserts rows of a table with their ids and times, all or none: a JSON array of the objects of ExportedRow::values. The
    /// service only.
    Owned<RowImportReport> import_rows(std::string_view table, std::string_view rows, const ImportOptions &options = {}) const {
        return detail::owned<RowImportReport>([&](auto out, auto err) {
            return tsq_client_import_rows(get(), detail::text(table), detail::text(rows), options.dry_run, out, err);
        });
    }
    /// Lists the migrations that opening a client with this configuration would apply. Changes nothing.
    [[nodiscard]] static Owned<MigrationPlan> plan_migrations(const Config &config) {
        return detail::owned<MigrationPlan>(
            [&](auto out, auto err) { return tsq_client_plan_migrations(config.get(), out, err); });
    }

    /// Closes an opened client for all its handles; a handle of as_user or as_service only itself. Throws
    /// TSQ_INVALID_INPUT for an opened client inside a callback.
    void close() {
        detail::act([this](auto err) { return tsq_client_close(get(), err); });
    }
    [[nodiscard]] bool is_closed() const noexcept { return tsq_client_is_closed(get()); }
    // Views of a temporary client would dangle: name the client first.
    [[nodiscard]] Discovery discovery() const & noexcept { return Discovery(get()); }
    [[nodiscard]] Discovery discovery() const && = delete;
    [[nodiscard]] Auth auth() const & noexcept { return Auth(get()); }
    [[nodiscard]] Auth auth() const && = delete;
    [[nodiscard]] Spaces spaces() const & noexcept { return Spaces(get()); }
    [[nodiscard]] Spaces spaces() const && = delete;
    [[nodiscard]] Fidgets fidgets() const & noexcept { return Fidgets(get()); }
    [[nodiscard]] Fidgets fidgets() const && = delete;
    [[nodiscard]] Communities communities() const & noexcept { return Communities(get()); }
    [[nodiscard]] Communities communities() const && = delete;
    [[nodiscard]] Storage storage() const & noexcept { return Storage(get()); }
    [[nodiscard]] Storage storage() const && = delete;
    [[nodiscard]] Realtime realtime() const & noexcept { return Realtime(get()); }
    [[nodiscard]] Realtime realtime() const && = delete;

    [[nodiscard]] tsq_client *get() const & noexcept { return handle_.get(); }
    [[nodiscard]] tsq_client *get() const && = delete;

private:
    using Handle = detail::Handle<tsq_client, tsq_client_free>;
    explicit Client(Handle handle) noexcept : handle_(std::move(handle)) {}
    Handle handle_;
};

/// Receives log events, on any thread and on several threads at once. It must not call the library; exceptions that it
/// throws are dropped.
using LogCallback = std::function<void(tsq_log_level level, std::string_view target, std::string_view message)>;

namespace detail {

/// Calls a LogCallback from C.
inline void call_log(const tsq_log_event *event, void *callback) noexcept {
    TSQ_DETAIL_TRY {
        (*static_cast<const LogCallback *>(callback))(event->level, view(event->target), view(event->message));
    } TSQ_DETAIL_CATCH_ALL {
    }
}

inline void delete_log(void *callback) noexcept { delete static_cast<LogCallback *>(callback); }

}  // namespace detail

/// Sets the log callback of the process in place of an earlier one; an empty function removes it.
inline void set_log(LogCallback callback) {
    const tsq_log_callback call = callback ? detail::call_log : nullptr;
    auto data = std::make_unique<LogCallback>(std::move(callback));
    detail::act([&](auto err) { return tsq_set_log(call, data.release(), detail::delete_log, err); });
}

}  // namespace townsquare

#endif  // TOWNSQUARE_HPP
