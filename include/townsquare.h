/*
 * townsquare: a community backend and mini app directory in your process.
 *
 * C++ programs include townsquare.hpp, which wraps this API in RAII types.
 *
 *
 * EXAMPLE
 *
 * #include <stdio.h>
 * #include <townsquare.h>
 *
 * int main(void) {
 *     tsq_client *client = NULL;
 *     tsq_mini_apps *apps = NULL;
 *     tsq_space_list *spaces = NULL;
 *     tsq_error *err = NULL;
 *     tsq_selection first = TSQ_SELECTION(20);
 *
 *     if (tsq_client_open(NULL, &client, &err) == TSQ_OK &&
 *         tsq_discovery_get_trending_mini_apps(client, TSQ_STR("24h"), &first, &apps, &err) == TSQ_OK &&
 *         tsq_spaces_get_public_spaces(client, TSQ_DEFAULT_PAGE, 0, &spaces, &err) == TSQ_OK) {
 *         for (size_t i = 0; i < tsq_mini_apps_len(apps); i++) {
 *             const tsq_mini_app *app = tsq_mini_apps_at(apps, i);
 *             printf("%.*s  %.*s\n", TSQ_ARG(tsq_mini_app_name(app)), TSQ_ARG(tsq_mini_app_home_url(app)));
 *         }
 *         for (size_t i = 0; i < tsq_space_list_len(spaces); i++) {
 *             const tsq_space *space = tsq_space_list_at(spaces, i);
 *             printf("%.*s\n", TSQ_ARG(space->name));
 *         }
 *     } else {
 *         fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_text(err)));
 *     }
 *     int failed = err != NULL;
 *     tsq_error_free(err);
 *     tsq_space_list_free(spaces);
 *     tsq_mini_apps_free(apps);
 *     tsq_client_free(client);
 *     return failed;
 * }
 *
 * Without the option catalog_api_key the list of apps is empty; with TOWNSQUARE_CATALOG_URL=sample: in the environment it has
 * invented ones.
 *
 * Further programs are in ffi/examples of the sources: watch.c prints changes from a loop with poll, sync.c makes a bucket equal to a folder,
 * uv.c prints them from a loop of libuv, qt.cpp from one of Qt, browse.c (with ncurses) and browse.cpp search the directory in the
 * terminal as the user types.
 *
 *
 * INSTALLING
 *
 * ffi/install.sh PREFIX in the sources builds the library with cargo and installs it: libtownsquare.so with the soname
 * libtownsquare.so.0.1, libtownsquare.a, the headers, townsquare.pc and a CMake package. `cargo cinstall -p townsquare-ffi
 * --profile dist-c`, of cargo-c, installs the same files; ffi/deb.sh makes Debian packages. With EMBEDDED=1 install.sh leaves
 * PostgreSQL and S3 out (for CMake -DTOWNSQUARE_EMBEDDED=ON, for cargo cinstall --no-default-features). Then link with one of
 *
 *   cc $(pkg-config --cflags townsquare) program.c $(pkg-config --libs townsquare)
 *
 *   find_package(townsquare 0.1 CONFIG REQUIRED)
 *   target_link_libraries(program PRIVATE townsquare::shared)     # or townsquare::static
 *
 *   dependency('townsquare')                                      # Meson
 *
 * pkg-config names what the static library needs: the system libraries, with -lgcc_s. -ltownsquare means the shared library where
 * both are installed, so name the static one by its file:
 *
 *   cc $(pkg-config --cflags townsquare) program.c $(pkg-config --variable=libdir townsquare)/libtownsquare.a \
 *       $(pkg-config --static --libs townsquare | sed s/-ltownsquare//)
 *
 * A CMake project may contain the sources instead: add_subdirectory(townsquare) or FetchContent builds the library with cargo and
 * has the same targets. The configuration Debug builds it with the profile dev, every other with dist-c; TOWNSQUARE_PROFILE names
 * another. The shared library exports the functions of this header and nothing
 * else; ffi/abi.txt lists them with the layout of the structs.
 *
 * The soname has two numbers: before version 1.0 another minor version may break what an earlier one promised. So another minor
 * version has another soname (libtownsquare.so.0.2), and both can be installed. A later patch version (0.1.1) keeps the soname: it
 * replaces the shared library without a new build of the program.
 *
 *
 * OWNERSHIP, in four terms
 *
 *   borrows         the function reads the argument during the call and keeps no pointer to it
 *   takes           the function frees the argument; do not use it again
 *   returns owned   the result is yours; free it with the _free function of its type
 *   returns a view  the result belongs to the value it was read from and lives as long as that value
 *
 * Functions that read one field (tsq_mini_app_name, tsq_error_code, ...) borrow their receiver and return a view: views of
 * an app live as long as its list. Results do not depend on the client: they may be read after it was closed and freed.
 * Results never change. Every _free function allows NULL.
 *
 *
 * RECORDS: tsq_space, tsq_fidget, tsq_user, tsq_session, tsq_community_config, ...
 *
 * A record is a struct that shows a row or a result: space->name. Only the library creates records. A call returns a
 * record owned, through a `tsq_space **`; a list and other records show it as a view, a `const tsq_space *`. All that its
 * members point at lives as long as the record.
 *
 * Records only grow at their end: a later version may add members. So do not copy records by value, do not create them,
 * and do not make arrays of them. The structs that a record shows as an array (tsq_range, tsq_http_header, ...) are no records:
 * they do not grow, as their comments say. Optional texts are absent ({NULL, 0}); an optional number has a bool has_... beside it;
 * optional records and lists are NULL. Ids are UUIDs as text. Times are microseconds since 1970-01-01T00:00:00Z. Members
 * that say "as JSON" are JSON as text. The _json functions return a whole record as JSON.
 *
 * A mini app is not a record: the library stores apps in a packed form, and tsq_mini_app_... functions read its fields.
 *
 *
 * INPUTS: tsq_new_space, tsq_space_patch, tsq_selection, ...
 *
 * An input is a struct of yours, borrowed for the call with everything that it points at. Zero it ({0} in C, {} in C++),
 * then fill it in. In a patch each column has a tsq_change beside its value: TSQ_KEEP, which is 0, TSQ_CLEAR or TSQ_SET. A
 * bool is read as a byte: any non-zero byte is true.
 *
 *     tsq_space_patch patch = {0};
 *     patch.description.change = TSQ_CLEAR;
 *     patch.is_public.change = TSQ_SET;
 *     patch.is_public.value = true;
 *     tsq_spaces_update_space(client, id, &patch, NULL, &err);
 *
 * Inputs grow at their end: a later version may add members. The first member, size, tells the library which members the struct
 * has. Set it to sizeof of the struct; 0 means the members of version 0.1. A program that sets it may use every member of its
 * header, also with an older library: the library accepts the members that it does not know while they are 0. If one is not 0,
 * the call fails with TSQ_INVALID_INPUT, as it does for a size that is too small, not aligned, or over 4,096.
 *
 *     tsq_new_space space = {0};
 *     space.size = sizeof space;
 *     space.name = TSQ_STR("Harbor");
 *     tsq_spaces_create_space(client, &space, NULL, &err);
 *
 * A function with an array of inputs also needs the size of an item: pass sizeof. townsquare.hpp sets all sizes. Structs that
 * say so (tsq_str_change, tsq_position, tsq_http_header, ...) do not grow and have no size.
 *
 *
 * ERRORS
 *
 * Functions that can fail return a tsq_status: TSQ_OK is 0, any other value is the kind of the failure. Their last
 * argument is a `tsq_error **err`. It may be NULL: then the call makes no error object. Otherwise every call sets `*err`: to
 * NULL after TSQ_OK, else to an error that you own. Free an error before you pass its variable again. Outputs are set too:
 * to a handle after TSQ_OK (to NULL where a function says so), to NULL after a failure.
 *
 * A NULL handle, text that is not UTF-8 and a number out of range fail with TSQ_INVALID_INPUT; the message names the
 * argument. Every error has an HTTP status (tsq_error_status) and, in tsq_error_explanation, a sentence that says what to
 * do about it. tsq_error_text is a fixed sentence. If there is more to say, a colon and tsq_error_reason follow:
 * "Create space failed: Required field is missing: spaces.name". tsq_error_row tells which item of a list failed,
 * tsq_error_column which column has no value. Functions that cannot fail answer a NULL receiver and an index beyond the
 * end with 0, false, NULL or the absent text. A panic inside the library becomes TSQ_INTERNAL and a log event; it prints
 * nothing. The library cannot detect a pointer that was freed or that it did not return.
 *
 * TSQ_NOT_FOUND, TSQ_UNAUTHORIZED and TSQ_FORBIDDEN: reading, changing or deleting a row that a policy hides from the
 * caller fails with TSQ_NOT_FOUND, as if the row did not exist. Creating a row that a policy forbids fails with
 * TSQ_FORBIDDEN, for every caller (files: see STORAGE). A call for the service or for holders of a key (tsq_auth_delete_user,
 * tsq_communities_save_...) fails with TSQ_UNAUTHORIZED for an anonymous caller, who may sign in and try again, and with
 * TSQ_FORBIDDEN for a user. A wrong password, an unknown token and an ended session fail with TSQ_UNAUTHORIZED.
 *
 *
 * TEXT AND JSON
 *
 * tsq_str is a pointer and a length, UTF-8, in and out. It is not NUL-terminated unless a function says so.
 * TSQ_STR("literal") makes one inside a function (an initializer of a static variable cannot), tsq_str_from(s) makes one of a C string, and TSQ_ARG(text) passes one to printf's "%.*s".
 * {NULL, 0} is the absent text: as an argument "not given", as a result NULL.
 *
 * JSON columns store values, not text. Read back, object members are sorted by key, of equal keys the last one stays, and
 * white space is gone. A number that would not come back equal is refused with TSQ_INVALID_INPUT: an integer outside -2^63
 * to 2^64-1, and a number with a fraction or an exponent that no double holds (1e400, 0.10000000000000000001; 1.10 equals
 * 1.1). The absent text is SQL's NULL; the text null is the JSON value null.
 *
 *
 * SIZE LIMITS
 *
 *   limit arguments             1 to 1,000
 *   nesting of JSON             100 levels; no NUL character in its texts and keys
 *   text that is stored         no NUL character; option max_text_size, 1 MiB
 *   name, type of a fidget      option max_name_size, 1 KiB
 *   JSON without white space    option max_json_size, 256 KiB
 *   rows of a call              option max_bulk_rows, 10,000 (create_spaces, create_fidgets, save_positions,
 *                               import_credentials)
 *   community id                1 to 50 characters
 *   e-mail address              254 bytes
 *   new password                8 to 1,024 bytes
 *   body of an HTTP request     64 KiB (the response has status 413)
 *   page of a catalog           option catalog_max_page_bytes
 *   file                        option max_file_size, 50 MiB; with verify option max_verified_size, 1 MiB
 *   files and spaces of a user  options max_owner_bytes, max_owner_files, max_owner_spaces; no limit by default
 *                               (TSQ_QUOTA_EXCEEDED)
 *   fidgets of a space          option max_space_fidgets, 1,000, except those of the service (TSQ_QUOTA_EXCEEDED)
 *   identity keys of a user     100 (TSQ_QUOTA_EXCEEDED)
 *   path of a file              1,024 bytes; 255 between slashes; a new one has 32 segments at most, and no bidirectional
 *                               control
 *   metadata of a file          64 names of 64 characters; 1,024 bytes a value; 8 KiB together
 *   rows of a list              64 MiB of memory: a page ends early, a result without pages fails with TSQ_TOO_LARGE
 *   change log                  options change_retention, change_retention_rows, change_retention_bytes: 7 days, 1,000,000
 *                               changes, 1 GiB; four times as much while a subscription of the process lags
 *   filter of changes           8 conditions, 1,024 bytes
 *   unread subscription         1 MiB of memory, and one larger row; it falls behind in the log
 *   one client key              64 event streams, 16 uploads and 8 password checks at the same time; 50 failed sign-ins
 *
 * A text, JSON or list over its limit fails with TSQ_TOO_LARGE before anything is written; the message names the argument. JSON
 * that is nested deeper, a NUL character, a limit argument out of its range, and an id, an address, a password, a path or a filter
 * of another length fail with TSQ_INVALID_INPUT. A search and a password may have a NUL character.
 *
 * An open client has 3 or 4 file descriptors in memory and 9 to 15 in a folder, and there 2 more for each further call that reads the
 * database at the same time (at most 64). A file reader of a large file has one. A closed client keeps 3 or 4 until its last handle is
 * freed, and the process keeps up to 3 until it ends.
 *
 *
 * TABLES: tsq_spaces_, tsq_fidgets_, tsq_communities_
 *
 * A new space or fidget may have an id that the host chooses. Such a call can be repeated, for example when its answer was
 * lost: with the same id and the same content it returns the row of the first call. A taken id is TSQ_ALREADY_EXISTS,
 * whoever owns the row. The id of a registered page, of a folder `spaces/<id>` that has files, or of a deleted space is
 * TSQ_FORBIDDEN for callers other than the service. The rows of one call keep their order in lists: created_at increases by a
 * microsecond from row to row.
 *
 * A client handle acts for a caller: anonymous when it is opened, the user after tsq_auth_sign_in, the service on handles
 * of tsq_client_as_service. Policies decide what a caller sees and changes; none applies to the service.
 *
 * Lists have pages by offset, and pages that begin after a row, which stay right while other callers write. A page may be
 * shorter than its limit and not be the last one; only an empty page says that nothing follows:
 *
 *     tsq_space_list *page = NULL;
 *     do {
 *         size_t len = tsq_space_list_len(page);
 *         const tsq_space *last = len > 0 ? tsq_space_list_at(page, len - 1) : NULL;
 *         tsq_space_list *next = NULL;
 *         if (tsq_spaces_get_public_spaces_after(client, 100, last, &next, &err) != TSQ_OK) break;
 *         tsq_space_list_free(page);
 *         page = next;
 *         for (size_t i = 0; i < tsq_space_list_len(page); i++)
 *             printf("%.*s\n", TSQ_ARG(tsq_space_list_at(page, i)->name));
 *     } while (tsq_space_list_len(page) > 0);
 *     tsq_space_list_free(page);
 *
 * A write on PostgreSQL whose connection is lost before the server answers fails with TSQ_UNAVAILABLE and the code 08007,
 * "outcome unknown". It may have happened, so tsq_error_is_retryable is false, unless a repeated call has the effect of
 * one, like a call that creates rows and gives an id for each. It is also false for a write to a database that has moved to
 * another place (25006). A write of a large file has the code 08007 on SQLite, too, if the disk is full when the file gets its row.
 * The next look of the client at the path learns how the write ended; other processes learn it within ten seconds.
 *
 *
 * STORAGE: tsq_storage_, tsq_file_
 *
 * A file has a bucket and a path in it. Policies decide who may read and write it:
 *
 *   bucket              reads               writes
 *   spaces              every caller        the owner of the space whose id the path begins with
 *   private             see writes          the user whose id, or whose linked identity key, the path begins with
 *   assets              every caller        any user a new file; its owner afterwards; below images/ and videos/ only the
 *                                           service adds files
 *   declared public     every caller        any user a new file; its owner afterwards
 *   declared private    as in private       as in private
 *
 * The option buckets declares further buckets. The service may write everywhere. tsq_space_path_...,
 * tsq_private_path_... and tsq_asset_path_... make the paths of tabs, homebases and assets.
 *
 * A path is UTF-8 in the normal form NFC, of names joined by slashes. No name is empty, "." or ".."; no character is a
 * control character or a backslash. Case matters. A file and a folder do not share a name. Another path is refused with
 * status 400, never changed. A bucket is not a folder of the host: no path leads out of it.
 *
 * A failure of the file store has one of these statuses and messages:
 *
 *   status  tsq_status            message
 *   400     TSQ_INVALID_INPUT     Invalid file or request
 *   401     TSQ_UNAUTHORIZED      Unauthorized file access
 *   403     TSQ_FORBIDDEN         Forbidden file access
 *   404     TSQ_NOT_FOUND         File not found
 *   409     TSQ_ALREADY_EXISTS    Storage error: ...
 *   412     TSQ_CONFLICT          Storage error: ...
 *   413     TSQ_TOO_LARGE         File too large
 *   504     TSQ_UNAVAILABLE       Storage error: ...
 *   507     TSQ_UNAVAILABLE       Storage error: ...
 *
 * The message of the statuses 400 to 413 goes on with the reason, if there is one. A file that the caller may not see is
 * not found, also in downloads. Writing what a policy forbids fails with TSQ_UNAUTHORIZED for an anonymous caller and with
 * TSQ_FORBIDDEN for a user.
 *
 * An upload is durable when the call returns. Until then, and after a failure, every reader gets the old file, whole.
 * Files up to the option inline_file_limit are in the database, larger ones in the object store; no function shows the
 * difference.
 *
 * The etag of a file is new with every write, also of the same bytes. To change a file that others change too, read it,
 * and upload with its etag as if_match: TSQ_CONFLICT tells that somebody else wrote it since.
 *
 * tsq_storage_upload and tsq_storage_download hold the file in memory. For large files there are three ways with bounded
 * memory: a file of the host (tsq_storage_upload_from, tsq_storage_download_to), callbacks (tsq_storage_upload_stream,
 * tsq_storage_download_stream) and handles (tsq_file_writer, tsq_file_reader):
 *
 *     tsq_file_writer *writer = NULL;
 *     if (tsq_storage_open_writer(client, TSQ_STR("assets"), TSQ_STR("notes/a.txt"), NULL, &writer, &err) == TSQ_OK &&
 *         tsq_file_writer_write(writer, TSQ_BYTES("first line\n"), &err) == TSQ_OK &&
 *         tsq_file_writer_write(writer, TSQ_BYTES("second line\n"), &err) == TSQ_OK) {
 *         tsq_file_writer_finish(writer, NULL, &err);
 *     }
 *     tsq_file_writer_free(writer);
 *
 * Without tsq_file_writer_finish, tsq_file_writer_free discards what was written. A reader gives the version of the file
 * that was there when it was opened, also while others overwrite and delete the file. Once the client is closed, a read fails with
 * TSQ_CLOSED, also of bytes that were read ahead. The host may use a writer or
 * reader on any thread; calls on one of them run one after the other, those of tsq_file_reader_read_at together.
 *
 * tsq_storage_handle_file answers the requests of the host's HTTP server:
 *
 *     tsq_file_request request = {0};
 *     request.method = TSQ_STR("GET");
 *     request.target = TSQ_STR("/assets/notes/a.txt");
 *     tsq_file_response *response = NULL;
 *     if (tsq_storage_handle_file(client, &request, &response, &err) == TSQ_OK) {
 *         uint8_t buffer[4096];
 *         size_t length = 0;
 *         // send response->status and response->headers, then the body
 *         while (tsq_file_response_read(response, buffer, sizeof buffer, &length, &err) == TSQ_OK && length > 0) send(buffer, length);
 *     }
 *     tsq_file_response_free(response);
 *
 * tsq_client_handle_request answers the requests for every endpoint in the same way, at the paths /api/miniapp-discovery,
 * /directory (a page for people), /files/BUCKET/PATH, /events and /health.
 *
 * tsq_signed_file_... make and check signed files, the format of tabs and private files. They need no client.
 *
 *
 * SIGN-IN: tsq_auth_
 *
 * tsq_auth_sign_in makes the handle act as that user, tsq_auth_sign_out as anonymous again. A server with many users signs
 * users in on a tsq_client_as_service handle, whose caller does not change. It gives each user the session's tokens. It
 * answers each request on a tsq_client_as_user handle. A handle of tsq_client_with_client_key counts the guesses, streams and
 * uploads of a peer: make the tsq_client_as_user handle from it. Calls for a session that has ended, in this or another process,
 * fail with TSQ_UNAUTHORIZED.
 *
 * Passwords, tokens and private keys are borrowed for the call and appear in no message and no log event. A tsq_session
 * and its JSON contain the tokens: a program with a token acts as the user.
 *
 *
 * DISCOVERY WITHOUT BLOCKING
 *
 * The first discovery call on a client waits for the catalog, up to the option catalog_refresh_timeout.
 * tsq_discovery_preload loads it in the background and calls back. Afterwards calls answer from memory and refresh in the
 * background; the first call for another timeframe may wait for its order. tsq_discovery_get_stats never waits: source is
 * none until a catalog is loaded.
 *
 *
 * THREADS
 *
 * Every function may be called from any thread, and any number of threads may use a handle at the same time. No other
 * thread may use a handle while it is freed. Calls block until they have their answer and need no event loop.
 *
 * A thread must not be cancelled (pthread_cancel) or leave by longjmp while it is in a function of the library: the
 * behaviour is undefined. Let it return first.
 *
 * If the system has too few threads, tsq_client_open fails with TSQ_UNAVAILABLE, and so does a later call that needs a
 * thread that the system does not have. If SQLite gets no memory, the call fails with TSQ_UNAVAILABLE; if the library's own
 * code gets none, the process is aborted, as by most programs in Rust. Linux overcommits memory: there a process seldom
 * sees either.
 *
 * A client belongs to the process that opened it. Start workers before opening a client, or spawn them (fork and exec).
 * A child forked while a client is open opens none: tsq_client_open and tsq_client_shared fail there with TSQ_CONFIG. In
 * a forked child, calls on a handle of the parent fail with TSQ_CLOSED, tsq_client_close does nothing, and
 * tsq_client_free only forgets the handle. LeakSanitizer reports in such a child what was forgotten.
 *
 * A thread that nobody joins may be in a call while another closes the client: the call ends or fails with TSQ_CLOSED. Do not
 * free the handle that it uses; the process may end without freeing it. main may return meanwhile.
 *
 * A process must not open one SQLite database with two copies of the library (two files that dlopen loads, or a static and a
 * shared one): the system gives the locks of a file to the process, so the copies do not see each other's, and the database
 * can lose writes or become corrupt. On Linux tsq_client_open of the second copy fails with TSQ_CONFIG; elsewhere nothing notices it.
 * Another SQLite library in the process does the same harm and is not noticed: do not open townsquare.db with it while a client is
 * open. Copies with a data folder each, and copies in different processes, are safe.
 *
 * On ELF systems (Linux, BSD) the shared library stays loaded after dlclose, which is therefore safe at any time. On
 * Windows do not unload it after it was used.
 *
 *
 * SIGNALS AND exit()
 *
 * The library installs no signal handlers. Its threads block all signals but those of their own faults (SIGSEGV, SIGBUS,
 * SIGFPE, SIGILL, SIGTRAP, SIGSYS). So a host may block signals before or after tsq_client_open and wait for them with
 * sigwait or signalfd, and handlers of the host run on threads of the host only. A thread or process that a callback
 * starts inherits the blocked signals: unblock them there if it needs them. Do not call its functions in a signal handler.
 * A signal does not interrupt a blocking call. A write to a connection that the server closed may raise SIGPIPE: ignore it
 * (signal(SIGPIPE, SIG_IGN)), as any network program does. Where the host limits file sizes (RLIMIT_FSIZE), ignore
 * SIGXFSZ: writes then fail with TSQ_UNAVAILABLE.
 *
 * A process may call exit() or die at any time: committed writes stay, and the database needs no repair. exit() does not
 * wait for the library's threads, so a callback may run while the host's destructors do: close clients with callbacks
 * first.
 *
 *
 * CALLBACKS
 *
 * A callback is a function, its user_data, and a destroy function for the data. Callbacks run on threads of the library.
 * The calls of one subscription run one at a time and in order. A callback may take its time, call the library,
 * unsubscribe itself and others, free handles, and close handles of tsq_client_as_user and tsq_client_as_service. Views
 * that it receives live until it returns. It must not close an opened client: tsq_client_close inside a callback or a
 * destroy then fails with TSQ_INVALID_INPUT. No exception may leave it (townsquare.hpp catches them).
 *
 * Callbacks of a transfer (tsq_progress_callback, tsq_read_callback, tsq_write_callback) run during the call that receives them, on
 * the calling thread or on one of the library, one at a time. They have no destroy. To end the call they return another number than 0:
 * the call fails with TSQ_CANCELLED and leaves nothing. They must not free the handle that the call borrows.
 *
 * The output of a subscribing call is set before the first call of the callback. After tsq_subscription_unsubscribe
 * returned, the callback is not running and never runs again. Inside any callback tsq_subscription_unsubscribe does not wait, so
 * two callbacks can end each other's subscriptions: no further call starts, and a call that runs ends. Outside of callbacks it
 * first delivers the events of sessions and of the catalog that happened before. tsq_client_free does the same for the subscriptions
 * of its handle: hold no lock that such a callback takes. In every case, also when the subscribing call fails, user_data is
 * destroyed exactly once, when no callback uses it any more.
 *
 *
 * A LOOP OF THE HOST
 *
 * A host with a loop of its own (poll, epoll, libuv, Qt) gets callbacks on its own thread: tsq_client_poll_fd returns a file
 * descriptor that is readable while callbacks wait, and tsq_client_dispatch runs them. Callbacks of subscriptions that the handle
 * made before, the log and transfers are as above. All other rules of CALLBACKS hold, with tsq_client_dispatch in place of the
 * library's threads. Several threads may call it; the calls of one subscription still run one at a time.
 *
 *     int descriptor = 0;
 *     struct pollfd waits = {0};
 *     if (tsq_client_poll_fd(client, &descriptor, &err) != TSQ_OK) return;
 *     waits.fd = descriptor;
 *     waits.events = POLLIN;
 *     while (poll(&waits, 1, -1) > 0 && tsq_client_dispatch(client, &err) == TSQ_OK) {
 *         // the callbacks have run
 *     }
 *
 * C++20 programs may include townsquare/coroutines.hpp: a coroutine then waits for changes with co_await, on this loop.
 *
 * libuv: uv_poll_init with the descriptor, UV_READABLE and a callback that calls tsq_client_dispatch. Qt: a QSocketNotifier of the
 * kind Read, with activated connected to such a function. ffi/examples has a program for each.
 *
 * The descriptor also becomes readable when a change waits in a stream of the handle (tsq_realtime_changes, tsq_realtime_live). The
 * host then calls tsq_client_dispatch first, and tsq_change_stream_next with the time-out 0 on each stream until it returns NULL:
 * only after NULL the next change makes the descriptor readable again.
 *
 * A subscription on the loop ends with its handle, also with one of tsq_client_shared. Windows has no such descriptor: call
 * tsq_change_stream_next with the time-out 0 there.
 *
 *
 * CHANGES
 *
 * tsq_realtime_subscribe calls a callback with each committed change of the rows that the caller may see. A host with a loop of
 * its own (a game, a window) takes them when it likes, see A LOOP OF THE HOST; or it polls: tsq_realtime_changes returns a stream, and tsq_change_stream_next with
 * the time-out 0 returns the next change or NULL at once. tsq_realtime_live returns the rows first, then their changes.
 * Neither loses a change that the host takes late: it waits in the database for the option change_retention. To go on
 * after a restart, store the cursor of the last change that was handled and give it as since. For a row that was deleted since, or
 * that the caller no longer sees, only a DELETE with the primary key is delivered then; the service gets every change. A request
 * with until ends at that cursor: with the cursor of tsq_realtime_cursor it delivers the changes up to now.
 *
 * Changes are logged from tsq_realtime_start, or from the first subscription of the host, until tsq_realtime_stop. A request over
 * HTTP does not switch the log on: tsq_realtime_handle_events answers 503 while the log is off.
 *
 * A subscription ends when it is unsubscribed, when its client is closed, at until of its request, when the log no longer has the
 * next changes, and when its handle of tsq_client_as_user may no longer act for the user (TSQ_UNAUTHORIZED): the session has ended,
 * or its token is invalid. The on_close of its request gets the reason, after the last change and before user_data is destroyed.
 *
 *
 * METRICS
 *
 * tsq_client_metrics_json and tsq_client_metrics_prometheus return what the client has counted and measured since it was opened. For
 * each metric: name, kind and labels, unit, meaning. Counting takes no lock. A metric without a value yet is left out: calls and
 * callbacks before the first one, the age of the catalog before it is loaded.
 *
 *   townsquare_operations_total: counter by operation, outcome, calls.
 *       calls of an operation that have ended, by outcome: `ok`, the kind of the error, or `dropped` if the program dropped the future
 *   townsquare_operation_seconds: histogram by operation, seconds.
 *       time from the first poll of an operation to its end
 *   townsquare_operations_running: gauge, calls.
 *       calls that run, the one that reads the metrics among them
 *   townsquare_callback_seconds: histogram, seconds.
 *       time that a callback of the program took for one event
 *   townsquare_jobs_waiting: gauge by pool, jobs.
 *       jobs that wait for a thread: `callbacks` for the program, `blocking` for files and SQLite
 *   townsquare_database_connections: gauge by state, connections.
 *       connections to the database, `busy` and `idle`. On SQLite those that read
 *   townsquare_database_writes_waiting: gauge, transactions.
 *       transactions that wait for the writer of SQLite
 *   townsquare_replica_reads_total: counter by answered_by, reads.
 *       reads that the replica may answer, by the server that did: `replica` or `primary`
 *   townsquare_staged_bytes: gauge, bytes.
 *       bytes of large uploads that are not finished
 *   townsquare_catalog_apps: gauge, apps.
 *       mini apps in the catalog
 *   townsquare_catalog_age_seconds: gauge, seconds.
 *       time since the catalog was fetched
 *   townsquare_catalog_stale: gauge, 0 or 1.
 *       1 if the catalog is older than it should be
 *   townsquare_feed_subscriptions: gauge, subscriptions.
 *       subscriptions, streams and live queries of this client
 *   townsquare_feed_retained: gauge, changes.
 *       changes that the change log keeps
 *   townsquare_feed_lag_seconds: gauge, seconds.
 *       age of the oldest change that was not delivered
 *
 *
 * LOG
 *
 * The library writes nothing to the terminal and no files but the database, large files of the storage and, with
 * persist_session, the session.
 * tsq_set_log sets a callback for log events of the process: failures that no function returns, such as a background
 * refresh that failed. Unlike other callbacks it may run on several threads at once and inside a call of the library, and
 * it must not call the library.
 *
 *
 * CHECK
 *
 * tsq_client_check says what is wrong, or will be: a tsq_findings list, empty if all is well. It changes nothing. A host
 * branches on the code of a finding, which is stable, and shows its message and advice to the person who operates it.
 *
 *
 * FILES AND PATHS
 *
 * Paths are UTF-8 texts. A relative path belongs to the working directory at the time when the library opens the file, so
 * use absolute paths when the host changes its working directory.
 *
 * The library makes files for their owner alone, whatever the umask allows to others: the data folder with mode 0700; the database, its
 * companions, backups, the session file and files of the storage with 0600. A folder or a database that exists keeps its
 * mode; the log warns when others may read it.
 *
 * While a client is open, SQLite keeps townsquare.db-wal and townsquare.db-shm beside the database; all three belong
 * together, on a local disk. After tsq_client_close, townsquare.db alone holds every row, unless townsquare.db-wal still has
 * bytes: another process has the database open, an export was open, or the disk was full. townsquare.db-shm may stay; it has no rows.
 *
 * The library contains its own copy of SQLite. Its symbols are hidden in the shared library and in the static library of
 * ffi/install.sh, so a host may link another SQLite; the static library of cargo cinstall conflicts with it. The host's
 * SQLite may open any other file. It must not open the library's database in the same process while a client has it open:
 * closing any descriptor of the file drops the library's POSIX locks, which can corrupt the database. Other processes may
 * open it.
 *
 *
 * RACE DETECTORS
 *
 * The library synchronises its threads with atomic instructions and futex calls, which Helgrind and ThreadSanitizer do not
 * see in it. share/townsquare below the prefix of the installation, and ffi/races in the source, have suppressions for their
 * false reports:
 *
 *   valgrind --tool=helgrind --suppressions=helgrind.supp --history-level=none --check-stack-refs=no PROGRAM
 *   cc -fsanitize=thread ...;  TSAN_OPTIONS="suppressions=tsan.supp ignore_noninstrumented_modules=1" PROGRAM
 *
 * They hide reports with a function of the library in their stack, so also races inside callbacks. Helgrind still reports
 * the host's first reads of texts that a thread of the library wrote: call VALGRIND_HG_DISABLE_CHECKING(text.ptr,
 * text.len) before.
 *
 * Memcheck reports a block of 48 bytes as possibly lost for a thread that called the library and has not ended: Rust's handle of the
 * thread, which is kept by a pointer into the block. --errors-for-leak-kinds=definite leaves it out.
 *
 *
 * OPTIONS of tsq_config_set, of the query of tsq_config_from_url and, as `TOWNSQUARE_<NAME>`, of the environment
 *
 * When a client opens, an option that its configuration does not set is read from the environment.
 *
 *   data_dir                 Folder of the database, the files and the session file; it is created when it is missing. With :memory: nothing is on the disk. Default: $TOWNSQUARE_DATA_DIR, else ./townsquare-data.
 *   database_url             Database: sqlite:PATH, sqlite::memory: or postgres://HOST/NAME. Default: the file townsquare.db in data_dir.
 *   database_replica_url     PostgreSQL: a streaming standby of database_url. Some reads of anonymous callers and of the service go to it. Default: none, all reads go to database_url.
 *   database_replica_wait    Time that a read waits until the replica has replayed what the client has written; then database_url answers. Default: 1 s.
 *   database_replica_max_lag How old at most the answer of the replica may be; a replica that is further behind is not used. Default: 10 s.
 *   durability               Failures that a commit to SQLite survives: a power loss (full), or only a crash of the process (normal). Default: full (full or normal).
 *   busy_timeout             Time a write to SQLite waits for another process's write lock. Default: 10 s.
 *   database_pooler          How the PostgreSQL server, or a pooler before it, shares connections; auto finds out at open. Default: auto (auto, session or transaction).
 *   max_connections          Maximum number of connections to PostgreSQL. Default: 16 (1 to 10000).
 *   operation_timeout        Time limit of one step on PostgreSQL, the wait for a connection included; an upload has several steps. Default: 30 s.
 *   connect_timeout          Time that one host of a PostgreSQL URL has to accept a connection before the next host is tried. Default: 2 s.
 *   idle_timeout             Time after which an idle connection to PostgreSQL is closed. Default: 600 s.
 *   max_lifetime             Time after which a connection to PostgreSQL is replaced. Default: 1800 s.
 *   adopt                    Adds what is missing to a PostgreSQL database that has the tables but was not made by this library. Default: false (true or false).
 *   migrate                  Whether open may create or migrate the database; without it, a database that needs that is refused unchanged. Default: true (true or false).
 *   catalog_url              Catalog: the base URL of an upstream API, file:PATH or a path for a catalog file, or sample: for invented mini apps. Default: https://api.neynar.com.
 *   catalog_api_key          Key of the upstream API; with an empty key, discovery returns no mini apps. Default: $CATALOG_API_KEY.
 *   catalog_key_header       Name of the HTTP header that carries the key. Default: x-api-key.
 *   refresh_interval         Time for which a fetched catalog counts as fresh. Default: 900 s.
 *   catalog_timeout          Time limit of one upstream request, body included. Default: 10 s.
 *   catalog_refresh_timeout  Time limit for fetching one whole list, retries and waits included. Default: 30 s.
 *   catalog_page_size        Number of rows requested in one page. Default: 100 (1 to 100).
 *   catalog_max_pages        Maximum number of pages fetched for one list. Default: 100 (1 to 1000000).
 *   catalog_max_page_bytes   Maximum size in bytes of a page or of a catalog file. Default: 33554432 (1 to 1099511627776).
 *   catalog_tries            Number of attempts to fetch one page before the refresh fails. Default: 3 (1 to 10).
 *   catalog_max_lists        Maximum number of further lists in the catalog: the orders of other timeframes, and the apps of networks. Default: 20 (0 to 100).
 *   catalog_format           Format of an upstream API: neynar, or farcaster (camelCase rows with their chains, without a key). Default: neynar.
 *   max_staleness            Age of the catalog from which a read waits for a refresh; without it, reads are answered from a catalog of any age. Default: no limit.
 *   endpoint_refresh         Whether callers of the discovery endpoint may refresh the catalog. Default: true (true or false).
 *   endpoint_refresh_age     Age of the catalog below which a refresh by the discovery endpoint fetches nothing. Default: 60 s.
 *   endpoint_lists           Whether callers of the discovery endpoint may have further lists fetched, which the program itself has not read: the orders of other timeframes, and the apps of networks. Default: false (true or false).
 *   endpoint_origins         Origins whose pages may call the HTTP endpoints (CORS), separated by commas; * allows every origin. Default: empty.
 *   persist_session          Keeps the session of the signed-in user in a file in data_dir, so that the user is still signed in when the program starts again; for a program with one user. Processes with the same data_dir share the session. Default: false (true or false).
 *   max_text_size            Maximum size in bytes of a text in a table. Default: 1048576 (1 to 1000000000).
 *   max_name_size            Maximum size in bytes of a name in a table: of a space, of a registration, and of the type of a fidget. Default: 1024 (1 to 1000000000).
 *   max_json_size            Maximum size in bytes of a JSON value in a table, written without white space, and its numbers without an exponent. Default: 262144 (1 to 1000000000).
 *   max_bulk_rows            Maximum number of rows that one call creates or changes. Default: 10000 (1 to 1000000).
 *   sign_up_limit            Number of accounts that can be created per hour, by all processes on the database together; 0 is no limit. Default: 0 (0 to 1000000).
 *   identity_audience        Name of the deployment that identity claims must be for. Default: the incarnation id of the database.
 *   storage_url              Object store of large files: memory:, file:PATH, s3://BUCKET/PREFIX, gs://… or az://…. Default: the folder files in data_dir, or memory: if the database is in memory.
 *   claim_store              Takes over the object store for this database, if the store has its files but belongs to another database: the original of this copy, which is no longer in use. Set it for one open. Default: false (true or false).
 *   url_signing_key          Key of signed URLs: at least 32 bytes of random text, the same for every client of the database. Default: a key in the database, which no backup contains.
 *   inline_file_limit        Maximum size in bytes of a file that is kept in the database instead of the object store. Default: 65536, or 0 when storage_url is given (0 to 1000000000).
 *   max_file_size            Maximum size in bytes of a file. Default: 52428800 (1 to 1099511627776).
 *   max_verified_size        Maximum size in bytes of an upload with verify, which needs up to 100 times as much memory. Default: 1048576 (1 to 1099511627776).
 *   max_owner_bytes          Maximum size in bytes of all files of one owner; beyond it, the owner's writes fail with QuotaExceeded. Default: no limit (0 to 1000000000000000000).
 *   max_owner_files          Maximum number of files of one owner; beyond it, the owner's writes fail with QuotaExceeded. Default: no limit (0 to 1000000000000000000).
 *   max_owner_spaces         Maximum number of spaces of one owner; beyond it, the owner's new spaces fail with QuotaExceeded. Default: no limit (0 to 1000000000000000000).
 *   max_space_fidgets        Maximum number of fidgets of one space; beyond it, new fidgets fail with QuotaExceeded, except those of the service. Default: 1000 (0 to 1000000000).
 *   buckets                  Further buckets as NAME=public or NAME=private, separated by commas. Default: empty.
 *   change_retention         Time for which the change feed keeps a change, for subscriptions that continue from a cursor. Default: 604800 s.
 *   change_retention_rows    Number of changes that the change feed keeps; four times as many while a subscription of the process has not read them. Default: 1000000 (100 to 1000000000).
 *   change_retention_bytes   Size in bytes of the changes that the change feed keeps; four times that while a subscription has not read them. Default: 1073741824 (65536 to 1099511627776).
 *   event_heartbeat          Time between two heartbeats of server-sent events. Default: 15 s.
 *   expose_owner_email       Owners of public spaces who show their e-mail addresses: every one, those with a verified address, or none. Default: always (always, verified or never; also true or false).
 *
 *
 * VERSIONS
 *
 * TSQ_VERSION is the version of this header, tsq_version() that of the library. Before 1.0, their minor versions must be
 * equal. From 1.0 on, functions, status numbers and members at the end of records and of inputs are only added.
 */

#ifndef TOWNSQUARE_H
#define TOWNSQUARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The version of this header; `tsq_version` is that of the library. */
#define TSQ_VERSION "0.1.0"

/** A string literal as a `tsq_str`. */
#ifdef __cplusplus
#define TSQ_STR(literal) (tsq_str{("" literal), sizeof("" literal) - 1})
#else
#define TSQ_STR(literal) ((tsq_str){("" literal), sizeof("" literal) - 1})
#endif

/** The bytes of a string literal, without its NUL, as a `tsq_bytes`. */
#ifdef __cplusplus
#define TSQ_BYTES(literal) (tsq_bytes{reinterpret_cast<const uint8_t *>("" literal), sizeof("" literal) - 1})
#else
#define TSQ_BYTES(literal) ((tsq_bytes){(const uint8_t *)("" literal), sizeof("" literal) - 1})
#endif

/** The `tsq_selection` of the first `limit` apps, without filters. */
#ifdef __cplusplus
#define TSQ_SELECTION(limit) (tsq_selection{sizeof(tsq_selection), static_cast<uint32_t>(limit), false, nullptr, 0, nullptr, 0, 0})
#else
#define TSQ_SELECTION(limit) ((tsq_selection){sizeof(tsq_selection), (limit), false, NULL, 0, NULL, 0, 0})
#endif

/** A `tsq_str` for printf's "%.*s". Evaluates its argument twice: pass a variable, a member or a read of one field. */
#ifdef __cplusplus
#define TSQ_ARG(text) static_cast<int>((text).len), ((text).ptr ? (text).ptr : "")
#else
#define TSQ_ARG(text) (int)(text).len, ((text).ptr ? (text).ptr : "")
#endif

/// The default page size of `tsq_spaces_get_public_spaces`.
#define TSQ_DEFAULT_PAGE 20

/// The result of a call. `TSQ_OK` is 0; every other value is the kind of a failure.
typedef enum {
    /// Success.
    TSQ_OK = 0,
    /// A unique value is already in use.
    TSQ_ALREADY_EXISTS = 1,
    /// A referenced row does not exist.
    TSQ_REFERENCE_MISSING = 2,
    /// A required field has no value.
    TSQ_FIELD_MISSING = 3,
    /// A table of the database does not exist.
    TSQ_TABLE_MISSING = 4,
    /// The row or file does not exist, or a policy hides it from the caller.
    TSQ_NOT_FOUND = 5,
    /// An argument is NULL, not UTF-8, malformed or out of range; the message names it.
    TSQ_INVALID_INPUT = 6,
    /// The call needs a user and the caller is anonymous, or the credentials or session are not valid.
    TSQ_UNAUTHORIZED = 7,
    /// The caller is known and a policy denies the call.
    TSQ_FORBIDDEN = 8,
    /// Too many attempts; `tsq_error_retry_after_ms` says how long to wait.
    TSQ_RATE_LIMITED = 9,
    /// A text, a JSON value, a list of rows, a file or a body is over its size limit.
    TSQ_TOO_LARGE = 10,
    /// The database, the upstream or the disk does not answer, or there is no catalog yet. A later try may succeed.
    TSQ_UNAVAILABLE = 11,
    /// The client was closed.
    TSQ_CLOSED = 12,
    /// The configuration is wrong; the message names the option.
    TSQ_CONFIG = 13,
    /// A fault of the library or of the database.
    TSQ_INTERNAL = 14,
    /// The file has another version than `if_match` names: somebody else has written it since.
    TSQ_CONFLICT = 15,
    /// The change feed no longer keeps the changes after the cursor, or the cursor is of another incarnation or history of the database.
    TSQ_CURSOR_EXPIRED = 16,
    /// A callback of the host cancelled the call.
    TSQ_CANCELLED = 17,
    /// The caller would have more than the option `max_owner_bytes`, `max_owner_files`, `max_owner_spaces` or `max_space_fidgets` allows, or more than 100 identity keys.
    TSQ_QUOTA_EXCEEDED = 18,
} tsq_status;

/// How severe a log event is.
typedef enum {
    /// An operation failed, and no function returns the failure.
    TSQ_LOG_ERROR = 1,
    /// The library continues with limits, for example with an old catalog.
    TSQ_LOG_WARN = 2,
    /// Information.
    TSQ_LOG_INFO = 3,
    /// Details for debugging.
    TSQ_LOG_DEBUG = 4,
    /// More details for debugging.
    TSQ_LOG_TRACE = 5,
} tsq_log_level;

/// How much `tsq_client_check` reads.
typedef enum {
    /// Every row of the files, and the names and sizes of their objects, but not the bytes.
    TSQ_CHECK_QUICK = 0,
    /// Every byte of the database and of the files.
    TSQ_CHECK_FULL = 1,
} tsq_check_depth;

/// The state of the target of a move: the result of `tsq_client_check_move`.
typedef enum {
    /// The call has failed: the move would be refused, or the target could not be read.
    TSQ_MOVE_TARGET_REFUSED = 0,
    /// There is no database yet, or it has no tables. The move makes them.
    TSQ_MOVE_TARGET_NEW = 1,
    /// A database without rows, and a store without files.
    TSQ_MOVE_TARGET_EMPTY = 2,
    /// An unfinished move from the same source, which the move continues.
    TSQ_MOVE_TARGET_UNFINISHED = 3,
} tsq_move_target;

/// The sessions that `tsq_auth_sign_out_scope` ends.
typedef enum {
    /// The session of the handle.
    TSQ_SIGN_OUT_LOCAL = 0,
    /// Every other session of the user.
    TSQ_SIGN_OUT_OTHERS = 1,
    /// Every session of the user.
    TSQ_SIGN_OUT_GLOBAL = 2,
} tsq_sign_out_scope;

/// An event of a handle's session.
typedef enum {
    /// The first event of every subscription, with the current session or none.
    TSQ_INITIAL_SESSION = 0,
    /// A user signed in.
    TSQ_SIGNED_IN = 1,
    /// The session ended: by a sign-out, or elsewhere, which the handle learns by its next call or refresh.
    TSQ_SIGNED_OUT = 2,
    /// The session has new tokens.
    TSQ_TOKEN_REFRESHED = 3,
    /// The signed-in user has another address or password.
    TSQ_USER_UPDATED = 4,
} tsq_auth_event;

/// What a partial update does to one column.
typedef enum {
    /// The column stays as it is.
    TSQ_KEEP = 0,
    /// The column becomes NULL.
    TSQ_CLEAR = 1,
    /// The column becomes the value beside this.
    TSQ_SET = 2,
} tsq_change;

/// Whether a copy or a move replaces a file at its target.
typedef enum {
    /// A file at the target fails the call with `TSQ_ALREADY_EXISTS`.
    TSQ_OVERWRITE_REFUSE = 0,
    /// A file at the target is replaced.
    TSQ_OVERWRITE_REPLACE = 1,
} tsq_overwrite;

/// The method that a signed URL permits.
typedef enum {
    /// Reading the file: GET and HEAD.
    TSQ_URL_GET = 0,
    /// Writing the file: PUT.
    TSQ_URL_PUT = 1,
} tsq_url_method;

/// What happened to a row, as a subscription sees it.
typedef enum {
    /// Every event; in a request only.
    TSQ_EVENT_ANY = 0,
    /// The row came into the view.
    TSQ_EVENT_INSERT = 1,
    /// The row changed and stays in the view.
    TSQ_EVENT_UPDATE = 2,
    /// The row left the view.
    TSQ_EVENT_DELETE = 3,
} tsq_event_type;

/// The publisher of a mini app: a view that lives as long as the list of the app, like all texts read from it.
typedef struct tsq_author tsq_author;

/// Bytes that the caller owns: read them with `tsq_buffer_view`, free them with `tsq_buffer_free`.
typedef struct tsq_buffer tsq_buffer;

/// A subscription from which the host takes one change after another. Owned, freed with `tsq_change_stream_free`.
typedef struct tsq_change_stream tsq_change_stream;

/// A handle of a client: a database, a catalog in memory and a caller. Owned, freed with `tsq_client_free`.
typedef struct tsq_client tsq_client;

/// A list of configurations. Freed with `tsq_community_config_list_free`.
typedef struct tsq_community_config_list tsq_community_config_list;

/// A list of domains. Freed with `tsq_community_domain_list_free`.
typedef struct tsq_community_domain_list tsq_community_domain_list;

/// Options for opening a client. Owned by the caller, who frees it with `tsq_config_free`; clients keep a copy.
typedef struct tsq_config tsq_config;

/// Why a call failed. Owned by the caller, who frees it with `tsq_error_free`.
typedef struct tsq_error tsq_error;

/// A list of facets, most apps first. Owned, freed with `tsq_facets_free`.
typedef struct tsq_facets tsq_facets;

/// A list of fidgets, oldest first unless the call says otherwise. Freed with `tsq_fidget_list_free` where a call
/// returns it owned; a view where it is a member of a space.
typedef struct tsq_fidget_list tsq_fidget_list;

/// A list of files, in the order of their paths. Freed with `tsq_file_list_free`.
typedef struct tsq_file_list tsq_file_list;

/// A file that is being read: one version from beginning to end, also while others overwrite or delete it. Owned, freed
/// with `tsq_file_reader_free`.
typedef struct tsq_file_reader tsq_file_reader;

/// A file that is being written. Owned, freed with `tsq_file_writer_free`.
typedef struct tsq_file_writer tsq_file_writer;

/// A list of findings, the worst first. Owned, freed with `tsq_findings_free`.
typedef struct tsq_findings tsq_findings;

/// A list of highlights, the name first. Owned, freed with `tsq_highlights_free`.
typedef struct tsq_highlights tsq_highlights;

/// The rows of a table, and every change after them. Owned, freed with `tsq_live_query_free`.
typedef struct tsq_live_query tsq_live_query;

/// A mini app: a view that lives as long as its list, like all texts read from it.
typedef struct tsq_mini_app tsq_mini_app;

/// A list of mini apps, best first: one page of a longer list. Owned, freed with `tsq_mini_apps_free`.
typedef struct tsq_mini_apps tsq_mini_apps;

/// The rows of tables as they were at one moment: the result of `tsq_client_export_rows`. Owned, freed with
/// `tsq_row_export_free`.
typedef struct tsq_row_export tsq_row_export;

/// A list of sessions. Owned, freed with `tsq_session_infos_free`.
typedef struct tsq_session_infos tsq_session_infos;

/// A list of spaces, in the order that the call's documentation states. Freed with `tsq_space_list_free`.
typedef struct tsq_space_list tsq_space_list;

/// A list of registrations. Freed with `tsq_space_registration_list_free`.
typedef struct tsq_space_registration_list tsq_space_registration_list;

/// Text that the caller owns: read it with `tsq_string_view`, free it with `tsq_string_free`.
typedef struct tsq_string tsq_string;

/// A subscription. It lasts until `tsq_subscription_unsubscribe`, until the client handle that made it is freed, or
/// until the client is closed. Handles of `tsq_client_shared` do not end it when they are freed, unless its callback runs in
/// `tsq_client_dispatch`. Owned, freed with
/// `tsq_subscription_free`; it may outlive its client.
typedef struct tsq_subscription tsq_subscription;

/// A list of suggestions, best first. Owned, freed with `tsq_suggestions_free`.
typedef struct tsq_suggestions tsq_suggestions;

/// A list of users. Freed with `tsq_user_list_free`.
typedef struct tsq_user_list tsq_user_list;

/// UTF-8 text: a pointer and a length in bytes. Not NUL-terminated unless a function says so. This struct does not grow.
///
/// `{NULL, 0}` is the absent text. As an argument it means "not given"; where a text is required, it reads as the empty
/// text. As a result it means NULL.
typedef struct {
    /// First byte; NULL for the absent text.
    const char *ptr;
    /// Length in bytes.
    size_t len;
} tsq_str;

/// Bytes: a pointer and a length. `{NULL, 0}` is empty. This struct does not grow.
typedef struct {
    /// First byte.
    const uint8_t *ptr;
    /// Length in bytes.
    size_t len;
} tsq_bytes;

/// A log event. A record (manual, RECORDS) that lives until the callback returns.
typedef struct {
    /// How severe the event is.
    tsq_log_level level;
    /// The module of the library, `townsquare::discovery`.
    tsq_str target;
    /// The message, with the event's fields behind it as ` name=value`.
    tsq_str message;
} tsq_log_event;

/// Receives log events: on any thread, on several threads at once, also during a call of the library. It must not call
/// the library.
typedef void (*tsq_log_callback)(const tsq_log_event *event, void *user_data);

/// Destroys the `user_data` of a callback. It is called exactly once, on any thread, when the callback is not running
/// and never runs again; also when the call that takes the callback fails. May be NULL.
typedef void (*tsq_destroy)(void *user_data);

/// Something that is wrong, or will be. A record (manual, RECORDS).
typedef struct {
    /// The kind of fault, such as `file_missing`: stable, for programs. `advice` says what to do about it.
    tsq_str code;
    /// How bad it is: `error`, `warning` or `note`.
    tsq_str severity;
    /// A sentence that names the file, the table or the part. It has no secret, no e-mail address and no token.
    tsq_str message;
    /// What to do about it.
    tsq_str advice;
} tsq_finding;

/// A migration of the library. This struct does not grow.
typedef struct {
    /// The name, such as `0005_files`.
    tsq_str name;
    /// What the migration does.
    tsq_str about;
    /// Whether the database has it.
    bool is_applied;
} tsq_planned_migration;

/// What `tsq_client_open` would do to a database. A record (manual, RECORDS); freed with `tsq_migration_plan_free`.
typedef struct {
    /// Every migration that this version of the library knows, in the order in which they are applied: an array.
    const tsq_planned_migration *migrations;
    /// Number of the migrations.
    size_t migrations_len;
    /// Whether there is no database yet, or one without the tables of the library.
    bool is_new;
    /// Whether `tsq_client_open` changes nothing. False also if only triggers, policies or roles are not those of this version.
    bool is_current;
} tsq_migration_plan;

/// The number of rows of a table. This struct does not grow.
typedef struct {
    /// The name. The tables of the library itself have no prefix: `credentials`, `sessions`, ….
    tsq_str name;
    /// Number of its rows.
    uint64_t rows;
} tsq_table_rows;

/// What `tsq_client_move_to` has copied, as it was verified. A record (manual, RECORDS); freed with `tsq_move_report_free`.
typedef struct {
    /// The tables by name: an array.
    const tsq_table_rows *tables;
    /// Number of the tables.
    size_t tables_len;
    /// Number of the files.
    uint64_t files;
    /// Bytes of the files.
    uint64_t bytes;
    /// How long the call took, in seconds.
    double seconds;
    /// Whether the call continued a move that an earlier call had begun.
    bool resumed;
} tsq_move_report;

/// What `tsq_client_move_to` copies. Zeroed, and for NULL, everything: `tsq_move_options options = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// Whether the sessions stay behind, so that the users sign in again; any non-zero byte is true.
    bool without_sessions;
    /// If not 0, others may write the source meanwhile. At the end their writes wait for the last copy and comparison, at most this
    /// long, in milliseconds; then the source takes no writes any more (25006). Choose less than the `busy_timeout` (SQLite) or
    /// `operation_timeout` (PostgreSQL) of the writers and of the source. `tsq_client_reopen_for_writes` allows writes again.
    uint64_t follow_ms;
} tsq_move_options;

/// Tells how far a transfer is: `done` of `total`, in bytes or files. Returns 0 to continue; any other number cancels the
/// call, which then fails with `TSQ_CANCELLED`. Runs during the call. See CALLBACKS in the manual.
typedef int32_t (*tsq_progress_callback)(uint64_t done, uint64_t total, void *user_data);

/// A row of an export. A record (manual, RECORDS); freed with `tsq_exported_row_free`.
typedef struct {
    /// The name of the table.
    tsq_str table;
    /// The values by column as a JSON object: ids and times as text (times in RFC 3339), JSON columns as the JSON that they hold.
    /// NULL is `null`. A JSON column that is NULL is left out, because `null` in it is the JSON value.
    tsq_str values;
} tsq_exported_row;

/// Why `tsq_client_import_rows` cannot import a row. This struct does not grow.
typedef struct {
    /// The index of the row in the call.
    size_t row;
    /// What is wrong. `differs`: there is a row with the key, and it has another value in the column. `taken`: another row has the
    /// value of the column, which is unique. `reference_missing`: the row that the column references is not there.
    tsq_str kind;
    /// The column: the first that differs, the one with the taken value, or the reference.
    tsq_str column;
    /// For `reference_missing`, the table of the missing row; else absent.
    tsq_str table;
    /// For `reference_missing`, the value that no row of `table` has; else absent.
    tsq_str value;
} tsq_row_problem;

/// What `tsq_client_import_rows` did; in a dry run, what it would do. A record (manual, RECORDS); freed with
/// `tsq_row_import_report_free`.
typedef struct {
    /// Rows that were inserted.
    uint64_t inserted;
    /// Existing rows with the same values.
    uint64_t unchanged;
    /// The rows that conflict with existing rows, in order: an array with one problem for each. Empty unless it is a dry run.
    const tsq_row_problem *problems;
    /// Number of the problems.
    size_t problems_len;
} tsq_row_import_report;

/// The page and the filters of a discovery call. Start from `TSQ_SELECTION(20)`, the first 20 apps; NULL means the first 50.
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// Maximum number of apps, 1 to 1,000; else the call fails with `TSQ_INVALID_INPUT`.
    uint32_t limit;
    /// Whether near-copies (apps with the same name and author) are returned once; any non-zero byte is true.
    bool is_collapsed;
    /// Only apps of one of these categories (`games`, `social`, …); empty: of any.
    const tsq_str *categories;
    /// Number of categories.
    size_t categories_len;
    /// Only apps that run on one of these networks (`base`, `optimism`, …); empty: on any.
    const tsq_str *networks;
    /// Number of networks.
    size_t networks_len;
    /// Number of apps to leave out at the start of the list.
    uint64_t offset;
} tsq_selection;

/// The state of the catalog at the moment of the call. A record (manual, RECORDS); freed with
/// `tsq_discovery_stats_free`.
typedef struct {
    /// Number of apps in the catalog; 0 when none is loaded yet.
    size_t total;
    /// Rows that the last fetch received.
    size_t received;
    /// Received rows that were left out: malformed, or marked `noindex`.
    size_t skipped;
    /// Received rows that repeated an earlier one.
    size_t duplicates;
    /// Whether a catalog key is set; a catalog of the format `neynar` is empty without one, unless it is a file or `sample:`.
    bool has_api_key;
    /// Origin of the catalog: `upstream`, `file`, `database` or `none`.
    tsq_str source;
    /// Whether `fetched_at` has a value.
    bool has_fetched_at;
    /// Time of the fetch, in microseconds; 0 without a catalog.
    int64_t fetched_at;
    /// Whether the catalog is older than the refresh interval or its last refresh failed.
    bool is_stale;
    /// Whether a refresh is running.
    bool is_refreshing;
    /// Why the last refresh failed, of the catalog or of a further list; absent after a success.
    tsq_str last_error;
    /// The further lists (`7d`, `networks=base`) that are older than the catalog or could not be fetched: an array.
    const tsq_str *stale_lists;
    /// Number of stale lists.
    size_t stale_lists_len;
    /// Whether the source has more apps: the fetch ended at the option `catalog_max_pages`.
    bool truncated;
} tsq_discovery_stats;

/// Receives the state of the catalog after a refresh that changed it; a view that lives until the callback returns. See
/// CALLBACKS in the manual.
typedef void (*tsq_catalog_callback)(const tsq_discovery_stats *stats, void *user_data);

/// Receives the result of `tsq_discovery_preload`: NULL when the catalog is loaded, else the error, a view that lives
/// until the callback returns. See CALLBACKS in the manual.
typedef void (*tsq_preload_callback)(const tsq_error *error, void *user_data);

/// A header of a request or a response. This struct does not grow.
typedef struct {
    /// Name, in lower case.
    tsq_str name;
    /// Value.
    tsq_str value;
} tsq_http_header;

/// A response of the HTTP endpoint. A record (manual, RECORDS); freed with `tsq_http_response_free`.
typedef struct {
    /// The HTTP status: 200, 204, 304, 400, 403, 404, 405, 413, 429, 500, 503.
    uint16_t status;
    /// The headers: an array.
    const tsq_http_header *headers;
    /// Number of headers.
    size_t headers_len;
    /// The body: JSON, or empty; compressed if the header `content-encoding` says so.
    tsq_bytes body;
} tsq_http_response;

/// An HTTP request to the endpoint. Zero it, then fill it in: `tsq_http_request request = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// The method: `GET`, `HEAD`, `POST`, `OPTIONS`.
    tsq_str method;
    /// The request target: path and query (`/api/miniapp-discovery?category=games&limit=20`).
    tsq_str target;
    /// The headers: an array. Names in any case.
    const tsq_http_header *headers;
    /// Number of headers.
    size_t headers_len;
    /// The body of a POST.
    tsq_bytes body;
} tsq_http_request;

/// A category or a network with its number of apps. A record (manual, RECORDS).
typedef struct {
    /// The name, as a selection takes it.
    tsq_str name;
    /// Number of apps.
    size_t count;
} tsq_facet;

/// A part of a text in characters (Unicode code points), from `start` up to `end`. This struct does not grow.
typedef struct {
    /// The first character.
    size_t start;
    /// The character after the last.
    size_t end;
} tsq_range;

/// A text of an app that matches a query. A record (manual, RECORDS).
typedef struct {
    /// The field: `name`, `tags`, `category`, `subtitle`, `tagline`, `author_display_name`, `author_username`,
    /// `description` or `domain`.
    tsq_str field;
    /// The whole text of the field; of `tags`, one tag.
    tsq_str text;
    /// The matched words, in order.
    const tsq_range *matches;
    /// Number of matched words.
    size_t matches_len;
} tsq_highlight;

/// A suggestion. A record (manual, RECORDS).
typedef struct {
    /// The app: a view that lives as long as the list.
    const tsq_mini_app *app;
    /// The text to show: the app's name.
    tsq_str text;
    /// The parts of `text` that the input matches, in order; none if it matches another text of the app.
    const tsq_range *matches;
    /// Number of parts.
    size_t matches_len;
} tsq_suggestion;

/// A user. A record (manual, RECORDS); freed with `tsq_user_free` where a call returns it owned.
typedef struct {
    /// Primary key: a UUID.
    tsq_str id;
    /// The e-mail address, trimmed and in lower case.
    tsq_str email;
    /// Time of the sign-up, in microseconds.
    int64_t created_at;
    /// Time of the last change, in microseconds; never goes back.
    int64_t updated_at;
    /// Whether `email_verified_at` has a value.
    bool has_email_verified_at;
    /// Time at which the user proved to receive mail at the address, in microseconds; 0 without one.
    int64_t email_verified_at;
} tsq_user;

/// A session with its two tokens; both are secrets. A record (manual, RECORDS); freed with `tsq_session_free` where a
/// call returns it owned. It does not change when the client's session does.
typedef struct {
    /// Proves the user to `tsq_client_as_user`; valid for an hour.
    tsq_str access_token;
    /// Exchanged once, within 30 days, for the next pair of tokens. Empty on a handle of `tsq_client_as_user`, which
    /// knows only the access token.
    tsq_str refresh_token;
    /// End of the access token, in microseconds.
    int64_t expires_at;
    /// The signed-in user; never NULL.
    const tsq_user *user;
} tsq_session;

/// Changes of the signed-in user. Zeroed, it changes nothing: `tsq_user_patch patch = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// New e-mail address; absent: no change.
    tsq_str email;
    /// New password, 8 to 1,024 bytes; absent: no change.
    tsq_str password;
} tsq_user_patch;

/// The identity keys of a user, in the order in which they were linked. A record (manual, RECORDS); freed with
/// `tsq_identities_free`.
typedef struct {
    /// Public keys in 64 hex digits.
    const tsq_str *public_keys;
    /// Number of public keys.
    size_t public_keys_len;
} tsq_identities;

/// The password hash of an existing user. Zero it, then fill it in: `tsq_new_credential credential = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// The user (a UUID); absent: `email` names the user.
    tsq_str user_id;
    /// The user's address, in any spelling; absent: `user_id` names the user.
    tsq_str email;
    /// A bcrypt hash (`$2a$`, `$2b$` or `$2y$`) or an Argon2 hash in PHC format; required. A secret.
    tsq_str password_hash;
} tsq_new_credential;

/// What `tsq_auth_import_credentials` did. A record (manual, RECORDS); freed with `tsq_import_report_free`.
typedef struct {
    /// Users who had no password and have the imported one.
    uint64_t imported;
    /// Users who had a password, which stays.
    uint64_t unchanged;
} tsq_import_report;

/// A session of a user, without tokens. A record (manual, RECORDS).
typedef struct {
    /// The id of the session, a UUID. A refresh replaces the tokens and keeps the id.
    tsq_str id;
    /// Time of the sign-in, in microseconds.
    int64_t created_at;
    /// Time at which the session got its present tokens, in microseconds: at sign-in, or at the last refresh.
    int64_t refreshed_at;
    /// Time at which the session ends unless it is refreshed before, in microseconds.
    int64_t expires_at;
} tsq_session_info;

/// Receives events of a handle's session: the event, and the session after it (NULL: none), a view that lives until the
/// callback returns. See CALLBACKS in the manual.
typedef void (*tsq_auth_callback)(tsq_auth_event event, const tsq_session *session, void *user_data);

/// A fidget: a widget placed in a space. A record (manual, RECORDS); freed with `tsq_fidget_free` where a call returns
/// it owned.
typedef struct {
    /// Primary key: a UUID.
    tsq_str id;
    /// The space that contains it: a UUID; may be absent.
    tsq_str space_id;
    /// The kind of widget: the column `type`.
    tsq_str kind;
    /// Settings, as JSON; may be absent.
    tsq_str config;
    /// Position, as JSON; may be absent.
    tsq_str position;
    /// Creation time, in microseconds.
    int64_t created_at;
    /// Time of the last change, in microseconds; never goes back.
    int64_t updated_at;
} tsq_fidget;

/// The owner of a public space. A record (manual, RECORDS), always a member of a space.
typedef struct {
    /// The user's id: a UUID.
    tsq_str id;
    /// The user's e-mail address; absent unless the option `expose_owner_email` shows it.
    tsq_str email;
} tsq_owner;

/// A space. A record (manual, RECORDS); freed with `tsq_space_free` where a call returns it owned.
typedef struct {
    /// Primary key: a UUID.
    tsq_str id;
    /// Display name.
    tsq_str name;
    /// Description; may be absent.
    tsq_str description;
    /// The user who owns it: a UUID; may be absent.
    tsq_str owner_id;
    /// Whether every caller may see it.
    bool is_public;
    /// Creation time, in microseconds.
    int64_t created_at;
    /// Time of the last change, in microseconds; never goes back.
    int64_t updated_at;
    /// Its fidgets, oldest first, in results of `tsq_spaces_get_user_spaces` and `tsq_spaces_get_space_with_fidgets`;
    /// else NULL.
    const tsq_fidget_list *fidgets;
    /// Its owner, in results of `tsq_spaces_get_public_spaces`; NULL there for a space without an owner, and elsewhere.
    const tsq_owner *owner;
} tsq_space;

/// A space to be created. Zero it, then fill it in: `tsq_new_space space = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// Display name; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    tsq_str name;
    /// Description; may be absent.
    tsq_str description;
    /// The owner (a UUID); absent: the caller. Only the service may name another user.
    tsq_str owner_id;
    /// Whether every caller may see it; any non-zero byte is true.
    bool is_public;
    /// The id (a UUID), so that the call can be repeated: it returns the caller's space of this id if the content is the
    /// same. Absent: a random id.
    tsq_str id;
} tsq_new_space;

/// A change of a text or of JSON (as text). This struct does not grow.
typedef struct {
    /// Keep, clear or set.
    tsq_change change;
    /// The new value, read for `TSQ_SET` only; the absent text clears the column.
    tsq_str value;
} tsq_str_change;

/// A change of a bool. This struct does not grow.
typedef struct {
    /// Keep, clear or set.
    tsq_change change;
    /// The new value, read for `TSQ_SET` only; any non-zero byte is true.
    bool value;
} tsq_bool_change;

/// Changes of a space. Zeroed, it changes nothing: `tsq_space_patch patch = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// Display name; cleared, the call fails with `TSQ_FIELD_MISSING`.
    tsq_str_change name;
    /// Description.
    tsq_str_change description;
    /// Whether every caller may see it; cannot be cleared.
    tsq_bool_change is_public;
} tsq_space_patch;

/// A fidget to be created. Zero it, then fill it in: `tsq_new_fidget fidget = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// Kind of widget; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    tsq_str kind;
    /// Settings, as JSON; may be absent.
    tsq_str config;
    /// Position, as JSON; may be absent.
    tsq_str position;
    /// The id (a UUID), so that the call can be repeated: it returns the space's fidget of this id if the content is the
    /// same. Absent: a random id.
    tsq_str id;
} tsq_new_fidget;

/// A new position of a fidget: a pair. This struct does not grow.
typedef struct {
    /// The fidget (a UUID).
    tsq_str fidget_id;
    /// The new position, as JSON; absent: no position.
    tsq_str position;
} tsq_position;

/// Changes of a fidget. Zeroed, it changes nothing: `tsq_fidget_patch patch = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// Kind of widget; cleared, the call fails with `TSQ_FIELD_MISSING`.
    tsq_str_change kind;
    /// Settings, as JSON.
    tsq_str_change config;
    /// Position, as JSON.
    tsq_str_change position;
} tsq_fidget_patch;

/// The configuration of a community. A record (manual, RECORDS); freed with `tsq_community_config_free`.
typedef struct {
    /// Primary key: a UUID.
    tsq_str id;
    /// The community's id, 1 to 50 characters.
    tsq_str community_id;
    /// Time of the last change, in microseconds; never goes back.
    int64_t updated_at;
    /// Brand, as JSON.
    tsq_str brand_config;
    /// Assets, as JSON.
    tsq_str assets_config;
    /// The community itself, as JSON.
    tsq_str community_config;
    /// The fidgets that it offers, as JSON.
    tsq_str fidgets_config;
    /// Navigation, as JSON; may be absent.
    tsq_str navigation_config;
    /// Look, as JSON; may be absent.
    tsq_str ui_config;
    /// Public keys of users who may edit the navigation; NULL when the column is NULL.
    const tsq_str *admin_identity_public_keys;
    /// Number of public keys.
    size_t admin_identity_public_keys_len;
    /// Whether every caller may read it.
    bool is_published;
    /// Whether it may have its own domain.
    bool custom_domain_authorized;
    /// E-mail address of the administrator; may be absent.
    tsq_str admin_email;
} tsq_community_config;

/// A domain of a community. A record (manual, RECORDS); freed with `tsq_community_domain_free`.
typedef struct {
    /// Primary key: a UUID.
    tsq_str id;
    /// The community's id.
    tsq_str community_id;
    /// The domain, normalised.
    tsq_str domain;
    /// `blank_subdomain` or `custom`; `other` for another word, which an adopted database may hold.
    tsq_str domain_type;
    /// Creation time, in microseconds.
    int64_t created_at;
    /// Time of the last change, in microseconds; never goes back.
    int64_t updated_at;
} tsq_community_domain;

/// A registered space. A record (manual, RECORDS); freed with `tsq_space_registration_free`.
typedef struct {
    /// The space: a UUID; the space may be deleted.
    tsq_str space_id;
    /// Whether `fid` has a value.
    bool has_fid;
    /// Farcaster id; 0 without one.
    int64_t fid;
    /// The space's name.
    tsq_str space_name;
    /// `profile`, `token`, `proposal`, `channel` or `navPage`; `other` for another word, which an adopted database may hold.
    tsq_str space_type;
    /// The key that registered the space; may be absent.
    tsq_str identity_public_key;
    /// The registration's signature; may be absent.
    tsq_str signature;
    /// Time of the registration, in microseconds.
    int64_t timestamp;
} tsq_space_registration;

/// A change of a list of texts. This struct does not grow.
typedef struct {
    /// Keep, clear or set.
    tsq_change change;
    /// The new texts, read for `TSQ_SET` only.
    const tsq_str *items;
    /// Number of texts.
    size_t items_len;
} tsq_strs_change;

/// Changes of the configuration of a community. A kept column stays as it is; in a new row it has the default of the
/// table. Zeroed, it changes nothing: `tsq_community_patch patch = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// Brand, as JSON; required in a new row.
    tsq_str_change brand_config;
    /// Assets, as JSON; required in a new row.
    tsq_str_change assets_config;
    /// The community itself, as JSON; required in a new row.
    tsq_str_change community_config;
    /// The fidgets that it offers, as JSON; required in a new row.
    tsq_str_change fidgets_config;
    /// Navigation, as JSON.
    tsq_str_change navigation_config;
    /// Look, as JSON.
    tsq_str_change ui_config;
    /// Public keys of users who may edit the navigation.
    tsq_strs_change admin_identity_public_keys;
    /// Whether every caller may read it; true in a new row; cannot be cleared.
    tsq_bool_change is_published;
    /// Whether it may have its own domain; false in a new row; cannot be cleared.
    tsq_bool_change custom_domain_authorized;
    /// E-mail address of the administrator.
    tsq_str_change admin_email;
} tsq_community_patch;

/// A registration to be created. Zero it, then fill it in: `tsq_new_registration registration = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// The space: a UUID; required.
    tsq_str space_id;
    /// The space's name; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    tsq_str space_name;
    /// `profile`, `token`, `proposal`, `channel` or `navPage`; required.
    tsq_str space_type;
    /// Farcaster id; NULL for none.
    const int32_t *fid;
    /// The key that registers the space; may be absent.
    tsq_str identity_public_key;
    /// The registration's signature; may be absent.
    tsq_str signature;
} tsq_new_registration;

/// A name and its value in the metadata of a file. This struct does not grow.
typedef struct {
    /// Name: letters, digits, hyphens and underscores, at most 64.
    tsq_str name;
    /// Value: at most 1,024 bytes, no control character.
    tsq_str value;
} tsq_file_metadata;

/// The options of an upload. Zeroed, and for NULL, they are the defaults: `tsq_upload_options options = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// Media type; absent: guessed from the name and the content.
    tsq_str content_type;
    /// The etag that the file must have now, or the empty text (`TSQ_STR("")`) if there must be no file; otherwise the call
    /// fails with `TSQ_CONFLICT`. Absent: not checked.
    tsq_str if_match;
    /// Names and values to store with the file: an array of at most 64. Of equal names the last one counts.
    const tsq_file_metadata *metadata;
    /// Number of names.
    size_t metadata_len;
    /// Whether `cache_control` is given; any non-zero byte is true.
    bool has_cache_control;
    /// Whether an existing file fails the call with `TSQ_ALREADY_EXISTS` instead of being replaced.
    bool insert_only;
    /// Whether the content must be a signed file with a valid signature; otherwise the call fails with
    /// `TSQ_INVALID_INPUT`.
    bool verify;
    /// How long a cache may keep the file, in seconds: 0 to 31,536,000. Not given: 3,600.
    uint32_t cache_control;
} tsq_upload_options;

/// What is known about a file. A record (manual, RECORDS); freed with `tsq_file_info_free` where a call returns it
/// owned.
typedef struct {
    /// The bucket: `spaces`, `private`, `assets`, or one of the option `buckets`.
    tsq_str bucket;
    /// The path in the bucket.
    tsq_str path;
    /// Size in bytes.
    uint64_t size;
    /// Media type: `application/json`, `image/png`, …
    tsq_str content_type;
    /// How long a cache may keep the file, in seconds.
    uint32_t cache_control;
    /// The version: new with every write, also of the same bytes.
    tsq_str etag;
    /// The metadata, sorted by name: an array.
    const tsq_file_metadata *metadata;
    /// Number of names in the metadata.
    size_t metadata_len;
    /// The user who wrote it: a UUID; absent when the service wrote it or the user was deleted.
    tsq_str owner_id;
    /// Time of the last write, in microseconds; it grows with every write of the path.
    int64_t updated_at;
} tsq_file_info;

/// What a PUT by a signed URL may store. Zeroed, and for NULL, it may store what an upload of the caller may:
/// `tsq_url_options options = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// Media type of the file: a request with another `Content-Type` is refused. Absent: any.
    tsq_str content_type;
    /// Whether `max_size` is given; any non-zero byte is true.
    bool has_max_size;
    /// Largest size of the file in bytes. Not given: the option `max_file_size` is the limit.
    uint64_t max_size;
} tsq_url_options;

/// What `tsq_storage_repair` did and found. A record (manual, RECORDS); freed with `tsq_repair_report_free`.
typedef struct {
    /// Unfinished writes and deletes that were finished or undone, and files of a remote store that got the version of
    /// their object.
    uint64_t finished;
    /// Bytes without a row that were removed.
    uint64_t orphans_removed;
    /// Rows that were removed because their bytes had vanished.
    uint64_t rows_removed;
    /// `BUCKET/PATH` of each file with bytes of another size or version than its row says: an array. They stay, and are never
    /// served.
    const tsq_str *mismatched;
    /// Number of these files.
    size_t mismatched_len;
} tsq_repair_report;

/// Gives the next bytes: writes up to `len` of them to `buffer` and their number to `read`; 0 bytes are the end. Returns 0
/// to continue; any other number cancels the call, which then fails with `TSQ_CANCELLED`. Runs during the call. See
/// CALLBACKS in the manual.
typedef int32_t (*tsq_read_callback)(uint8_t *buffer, size_t len, size_t *read, void *user_data);

/// Receives the next bytes, which live until it returns. Returns 0 to continue; any other number cancels the call, which then
/// fails with `TSQ_CANCELLED`. Runs during the call. See CALLBACKS in the manual.
typedef int32_t (*tsq_write_callback)(const uint8_t *data, size_t len, void *user_data);

/// An HTTP request, for `tsq_storage_handle_file` or `tsq_client_handle_request`. Zero it, then fill it in: `tsq_file_request request = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// The method: `GET`, `HEAD`, `PUT`, `DELETE`.
    tsq_str method;
    /// The request target: for a file `/BUCKET/PATH`, with a query for a signed URL.
    tsq_str target;
    /// The headers: an array. `authorization` names the caller.
    const tsq_http_header *headers;
    /// Number of headers.
    size_t headers_len;
    /// The body of a PUT or POST; read when `body_source` is NULL.
    tsq_bytes body;
    /// Gives the body in pieces, so that memory does not grow with it.
    tsq_read_callback body_source;
    /// The data of `body_source`.
    void *body_user_data;
} tsq_file_request;

/// The response of `tsq_storage_handle_file`, `tsq_realtime_handle_events` and `tsq_client_handle_request`. A record (manual, RECORDS) with a body that
/// `tsq_file_response_read` reads; freed with `tsq_file_response_free`.
typedef struct {
    /// The HTTP status: 200, 201, 204, 206, 304, 400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 416, 429, 500, 503, 507.
    uint16_t status;
    /// The headers: an array.
    const tsq_http_header *headers;
    /// Number of headers.
    size_t headers_len;
    /// Number of bytes of the body; UINT64_MAX for events, which come until the stream ends.
    uint64_t body_size;
} tsq_file_response;

/// A bucket and a path, for the `tsq_storage_` functions. A record (manual, RECORDS); freed with `tsq_storage_path_free`.
typedef struct {
    /// The bucket: `spaces`, `private` or `assets`.
    tsq_str bucket;
    /// The path in the bucket.
    tsq_str path;
} tsq_storage_path;

/// What a signed file says besides its data. Zeroed, and for NULL: type `json`, no name, the current time.
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// The member `fileType`; absent: `json`.
    tsq_str file_type;
    /// The member `fileName`; absent: none.
    tsq_str file_name;
    /// Whether `timestamp` is given; any non-zero byte is true.
    bool has_timestamp;
    /// The member `timestamp`, in microseconds; whole milliseconds are kept. Not given: the current time.
    int64_t timestamp;
} tsq_sign_options;

/// Is called once, after the last change, with the reason why a subscription ended. `reason` is NULL after
/// `tsq_subscription_unsubscribe`, when the client was closed, and at `until` of the request, else a view that lives until the
/// callback returns. `user_data` is the one of the subscription.
typedef void (*tsq_close_callback)(const tsq_error *reason, void *user_data);

/// The changes that a subscription or a stream gets. Zero it, then fill it in: `tsq_change_request request = {0};`
///
/// An input (manual, INPUTS).
typedef struct {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    size_t size;
    /// The table: `community_configs`, `community_domains`, `spaceRegistrations`, `users`, `spaces`, `fidgets` or `files`.
    /// Required.
    tsq_str table;
    /// Only changes that are delivered as this event: a `tsq_event_type`; 0, `TSQ_EVENT_ANY`, for every event.
    int32_t event;
    /// Conditions `column=op.value` on the row, joined by `&`: `id=eq.…`. The operators are eq, neq, lt, lte, gt, gte, in,
    /// like, ilike and is. At most 8 conditions and 1,024 bytes. A value that may have an `&` stands in double quotes, with
    /// a backslash before `"` and `\`; `%` and `*` of a pattern stand for any text, `_` for one character. Absent or empty: every row.
    tsq_str filter;
    /// A cursor: the changes after it come first, then the new ones, with no gap and no repeat. Absent: the new ones.
    tsq_str since;
    /// The schema; absent for `public`, the only one.
    tsq_str schema;
    /// Is told when the subscription ends; may be NULL. For `tsq_realtime_subscribe` only: a stream tells its end by itself.
    tsq_close_callback on_close;
    /// A cursor at which the subscription or the stream ends, as if the host had ended it. Changes after it are not delivered;
    /// `tsq_realtime_cursor` returns the cursor of now. Absent: no end.
    tsq_str until;
} tsq_change_request;

/// A change of one row, as the subscription's caller may see it. A record (manual, RECORDS); freed with
/// `tsq_row_change_free` where a call returns it owned.
typedef struct {
    /// The schema: `public`.
    tsq_str schema;
    /// The table: `spaces`, or another that `tsq_change_request` takes.
    tsq_str table;
    /// What happened.
    tsq_event_type event;
    /// The row after the change, as JSON: an object with a member for each column. Absent for a row that is gone.
    tsq_str new_row;
    /// The row before the change, as JSON; absent for a row that came into the view. After a `TSQ_EVENT_DELETE` it is the
    /// whole row if the row was deleted. It has the key only if the row still exists outside the view, if it was a row of a
    /// deleted user, and, for callers other than the service, if it was gone already when a subscription `since` a cursor
    /// read the change.
    tsq_str old_row;
    /// When the change was made, in microseconds.
    int64_t commit_timestamp;
    /// The position after this change, for `since` and `until` of a request.
    tsq_str cursor;
} tsq_row_change;

/// Receives the changes of a subscription, one at a time: a view that lives until the callback returns. See CALLBACKS in
/// the manual.
typedef void (*tsq_change_callback)(const tsq_row_change *change, void *user_data);

/// The figures of the change feed. A record (manual, RECORDS); freed with `tsq_realtime_stats_free`.
typedef struct {
    /// The subscriptions, streams and live queries of this client.
    uint64_t subscriptions;
    /// The changes that the feed keeps for subscriptions since a cursor.
    uint64_t retained;
    /// Whether `oldest` has a value.
    bool has_oldest;
    /// The time of the oldest of these changes, in microseconds; 0 without one.
    int64_t oldest;
    /// How far the feed is behind the last commit, in seconds; on PostgreSQL also because a transaction stays open.
    double lag_seconds;
} tsq_realtime_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// The text of a C string up to its NUL; absent for NULL. For literals use `TSQ_STR("…")`.
///
/// Borrows `text`; returns a view that lives as long as `text`.
tsq_str tsq_str_from(const char *text);

/// The version of the loaded library (`0.1.0`); `TSQ_VERSION` is the version of the header.
///
/// Returns a view that lives for ever.
tsq_str tsq_version(void);

/// The name of a status: `ok`, `already_exists`, `invalid_input`, …; absent for an unknown number.
///
/// Returns a view that lives for ever.
tsq_str tsq_status_name(int32_t status);

/// The text. NUL-terminated; `len` does not include the NUL.
///
/// Borrows `string`; returns a view that lives as long as `string`. Absent for NULL.
tsq_str tsq_string_view(const tsq_string *string);

/// Frees a text. Takes `string`; NULL is allowed.
void tsq_string_free(tsq_string *string);

/// The bytes.
///
/// Borrows `buffer`; returns a view that lives as long as `buffer`. Empty for NULL.
tsq_bytes tsq_buffer_view(const tsq_buffer *buffer);

/// Frees bytes. Takes `buffer`; NULL is allowed.
void tsq_buffer_free(tsq_buffer *buffer);

/// The kind of the failure: the status that the call returned. `TSQ_OK` for NULL.
///
/// Borrows `error`.
tsq_status tsq_error_kind(const tsq_error *error);

/// The whole sentence, the operation's prefix included:
/// `Search mini apps failed: Argument query is not UTF-8 at byte 3`. NUL-terminated.
///
/// Borrows `error`; returns a view that lives as long as `error`. Absent for NULL.
tsq_str tsq_error_text(const tsq_error *error);

/// The sentence without the prefix. NUL-terminated.
///
/// Borrows `error`; returns a view that lives as long as `error`. Absent for NULL.
tsq_str tsq_error_message(const tsq_error *error);

/// The name of the failed operation (`search_mini_apps`); absent for a failure outside an operation.
///
/// Borrows `error`; returns a view that lives for ever.
tsq_str tsq_error_operation(const tsq_error *error);

/// The SQLSTATE of a failure of the database (`23505`, `42P01`, …); absent for other failures.
///
/// Borrows `error`; returns a view that lives as long as `error`.
tsq_str tsq_error_code(const tsq_error *error);

/// The HTTP status for the error: 404 for a missing row or file, 413, 503, … Every error has one. 0 for NULL.
///
/// Borrows `error`.
uint16_t tsq_error_status(const tsq_error *error);

/// What to do about the error, in one sentence for the developer of the program
/// (`Correct the argument as the message says.`).
///
/// Borrows `error`; returns a view that lives for ever.
tsq_str tsq_error_explanation(const tsq_error *error);

/// The part of `tsq_error_text` behind the fixed sentence, if there is one: `segment 2 of the path is empty`, `spaces.name`,
/// `cannot connect to localhost:5432: Connection refused`. It is for the developer of the program: a server that shows errors
/// to strangers leaves it out.
///
/// Borrows `error`; returns a view that lives as long as `error`.
tsq_str tsq_error_reason(const tsq_error *error);

/// How long to wait before another try, in milliseconds. Returns true and writes it to `out`, or returns false and
/// writes 0 when the wait is unknown.
///
/// Borrows `error`; `out` may be NULL.
bool tsq_error_retry_after_ms(const tsq_error *error,
                              uint64_t *out);

/// The index of the item that failed, for calls that create several rows. Returns true and writes it to `out`, or returns
/// false and writes 0.
///
/// Borrows `error`; `out` may be NULL.
bool tsq_error_row(const tsq_error *error,
                   size_t *out);

/// The column that has no value (`TSQ_FIELD_MISSING`), or that cannot be read (code `XX001`); absent for other failures.
///
/// Borrows `error`; returns a view that lives as long as `error`.
tsq_str tsq_error_column(const tsq_error *error);

/// Whether the same call with the same arguments may succeed later. False for NULL.
///
/// Borrows `error`.
bool tsq_error_is_retryable(const tsq_error *error);

/// Copies an error: the copy may be used after the callback that got the error. NULL for NULL.
///
/// Borrows `error`; returns owned.
tsq_error *tsq_error_clone(const tsq_error *error);

/// Frees an error. Takes `error`; NULL is allowed.
void tsq_error_free(tsq_error *error);

/// Sets the log callback of the process, in place of an earlier one; a NULL `callback` removes it. When the function
/// returns, the earlier callback is not running, never runs again, and its data is destroyed. Without a log callback
/// the library writes nothing anywhere.
///
/// Takes `user_data`: `destroy` (may be NULL) destroys it, also when this call fails. Fails with `TSQ_INVALID_INPUT`
/// inside a log callback, `TSQ_ALREADY_EXISTS` when a Rust host that links the library statically has its own `tracing`
/// subscriber.
tsq_status tsq_set_log(tsq_log_callback callback,
                       void *user_data,
                       tsq_destroy destroy,
                       tsq_error **err);

/// Creates a configuration that sets no option: clients read each from the environment, and else take its default. Returns
/// owned.
tsq_config *tsq_config_new(void);

/// Reads a configuration from a URL: `townsquare:DATA_DIR`, `sqlite:PATH` or `postgres://…`, with options by name in
/// the query: `townsquare:/var/lib/town?durability=normal&refresh_interval=60`.
///
/// Borrows `url`; returns owned in `out`. Fails with `TSQ_CONFIG` for another scheme, an unknown option, an invalid value, and
/// an option that is given twice with different values.
tsq_status tsq_config_from_url(tsq_str url,
                               tsq_config **out,
                               tsq_error **err);

/// Reads options from the environment variables `TOWNSQUARE_<NAME>`; options without a variable have their defaults.
/// `tsq_client_open` does that by itself for the options that its configuration does not set.
///
/// Returns owned in `out`. Fails with `TSQ_CONFIG` naming the first variable with an invalid value.
tsq_status tsq_config_from_env(tsq_config **out,
                               tsq_error **err);

/// Sets an option by its name; the section OPTIONS of the manual lists them. Values are text: `"60"`, `"normal"`.
///
/// Borrows all. Fails with `TSQ_CONFIG` naming the option when it is unknown, when the value is not of its type, and when the URL of
/// `tsq_config_from_url` gives the option another value; the configuration then does not change.
tsq_status tsq_config_set(tsq_config *config,
                          tsq_str name,
                          tsq_str value,
                          tsq_error **err);

/// Frees a configuration. Takes `config`; NULL is allowed.
void tsq_config_free(tsq_config *config);

/// The number of findings; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_findings_len(const tsq_findings *list);

/// The item at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_finding *tsq_findings_at(const tsq_findings *list, size_t index);

/// The list as a JSON array of objects: `code`, `severity`, `message` and `advice`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_findings_json(const tsq_findings *list, tsq_string **out, tsq_error **err);

/// Frees a list with its items. Takes `list`; NULL is allowed.
void tsq_findings_free(tsq_findings *list);

/// The plan as a JSON object: `migrations`, an array of the members of `tsq_planned_migration`, `is_new` and `is_current`.
///
/// Borrows `plan`; returns owned in `out`.
tsq_status tsq_migration_plan_json(const tsq_migration_plan *plan,
                                   tsq_string **out,
                                   tsq_error **err);

/// Frees a plan. Takes `plan`; NULL is allowed.
void tsq_migration_plan_free(tsq_migration_plan *plan);

/// Lists the migrations of this library, and which of them the database of `config` lacks. Changes nothing, and creates no
/// database. `tsq_client_open` applies the missing ones. The object store is not opened, and the option `migrate` has no effect.
///
/// Borrows `config` (NULL: no option is set); returns owned in `out`. Fails with `TSQ_CONFIG` if the file is no townsquare database,
/// if the database needs a newer version of the library, or if another build of this version made it; `TSQ_UNAVAILABLE` if the
/// server does not answer.
tsq_status tsq_client_plan_migrations(const tsq_config *config,
                                      tsq_migration_plan **out,
                                      tsq_error **err);

/// The report as a JSON object: `files`, `bytes`, `seconds`, `resumed`, and `rows`, an object with the number of rows by table.
///
/// Borrows `report`; returns owned in `out`.
tsq_status tsq_move_report_json(const tsq_move_report *report,
                                tsq_string **out,
                                tsq_error **err);

/// Frees a report. Takes `report`; NULL is allowed.
void tsq_move_report_free(tsq_move_report *report);

/// The name of a state: `new`, `empty`, `unfinished`; absent for `TSQ_MOVE_TARGET_REFUSED` and for an unknown number.
///
/// Returns a view that lives for ever.
tsq_str tsq_move_target_name(int32_t target);

/// Opens a client. Creates the data folder and the database when they are missing.
///
/// Borrows `config` (NULL: no option is set), which may change afterwards; options that it does not set are read from the
/// environment variables `TOWNSQUARE_<NAME>`; returns owned in `out`. Fails with `TSQ_CONFIG`
/// for unusable options, and in a forked child if the parent had a SQLite database open; `TSQ_UNAVAILABLE` or
/// `TSQ_INTERNAL` when the database does not open.
tsq_status tsq_client_open(const tsq_config *config,
                           tsq_client **out,
                           tsq_error **err);

/// Opens the shared client of the process. The first call opens it; later calls return further handles of the same
/// client.
///
/// Borrows `config`: NULL means the options of the environment in the first call and any options in later ones. Returns owned
/// in `out`.
/// Freeing all handles leaves the client open; `tsq_client_close` closes it, and the next call opens another. Fails
/// like `tsq_client_open`, and with `TSQ_CONFIG` if the first call had other options, and in a forked child if the
/// parent had the shared client open.
tsq_status tsq_client_shared(const tsq_config *config,
                             tsq_client **out,
                             tsq_error **err);

/// Creates a handle of the same client that acts as the service, to which no policy applies. For trusted code.
///
/// Borrows `client` and does not change its caller; returns owned in `out`. `tsq_client_close` on the new handle closes that
/// handle only. Fails with `TSQ_CLOSED`.
tsq_status tsq_client_as_service(const tsq_client *client,
                                 tsq_client **out,
                                 tsq_error **err);

/// Creates a handle of the same client that acts for nobody, whoever signs in on the client: for the requests of a server that
/// have no credentials.
///
/// Borrows `client`, whose caller does not change; returns owned in `out`. `tsq_client_close` on the new handle closes that
/// handle only. Fails with `TSQ_CLOSED`.
tsq_status tsq_client_as_anonymous(const tsq_client *client,
                                   tsq_client **out,
                                   tsq_error **err);

/// Creates a handle like `client` with limits for one client of a server: the address of the peer, or a device that proves its
/// name. Sign-ins, password checks and the requests of `tsq_storage_handle_file` and `tsq_realtime_handle_events` count for
/// this client first. One client has at most 64 streams of events and 16 uploads at the same time; beyond them the answer is
/// 429. IPv6 addresses with the same first 64 bits are one client. White space around the key, and the port of an address, do
/// not count: `10.0.0.1:80` and `10.0.0.1` are one client.
///
/// Borrows all; returns owned in `out`. The new handle has the caller of `client` and closes as `client` does. Handles made
/// from it have the same client key. Fails with `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_client_with_client_key(const tsq_client *client,
                                      tsq_str client_key,
                                      tsq_client **out,
                                      tsq_error **err);

/// Reads the position of everything that this client has written, and of what this handle was told by `tsq_client_read_after`. A
/// client of another process that is told this position reads all of it, also where a replica answers (option
/// `database_replica_url`). All handles of one client read what any of them has written without it. A short text without secrets:
/// a web server returns it with the response to a write, and the browser sends it with the next request.
///
/// Borrows `client`; returns owned in `out`. The text is empty if nothing was written, and on SQLite. Fails with `TSQ_CLOSED`, and
/// when the database fails: what was written is committed all the same.
tsq_status tsq_client_read_position(const tsq_client *client,
                                    tsq_string **out,
                                    tsq_error **err);

/// Has later reads of this handle see what was written before `position`, which `tsq_client_read_position` returned. A read waits
/// up to the option `database_replica_wait` until the replica has it, and is then answered by the server of `database_url`. Without
/// replicas, and with an empty position, nothing changes. The position of another database is not an error: the server of
/// `database_url` then answers the reads of this handle. So a position may come from outside, as in the header of a request.
///
/// Borrows all. Fails with `TSQ_INVALID_INPUT` for a text that is no position, `TSQ_CLOSED`.
tsq_status tsq_client_read_after(const tsq_client *client,
                                 tsq_str position,
                                 tsq_error **err);

/// Creates a handle of the same client that acts as the user of a session, for servers with many users. Signing in or
/// out does not change its caller.
///
/// Borrows all; returns owned in `out`. `tsq_client_close` on the new handle closes that handle only. Fails with
/// `TSQ_UNAUTHORIZED` for a token that is unknown or expired, and after the end of its session; `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`. When the session ends later, every call for the user fails with `TSQ_UNAUTHORIZED`; calls that need no user,
/// such as those of the discovery, go on.
tsq_status tsq_client_as_user(const tsq_client *client,
                              tsq_str access_token,
                              tsq_client **out,
                              tsq_error **err);

/// Returns a file descriptor for the host's own loop (poll, epoll, libuv, Qt): it is readable while callbacks wait. The host then
/// calls `tsq_client_dispatch`. See A LOOP OF THE HOST in the manual.
///
/// From this call on, the callbacks of subscriptions that this handle makes, and handles made from it, run inside
/// `tsq_client_dispatch` and nowhere else, except the last ones of a subscription that another thread ends: `on_close` and `destroy`,
/// and the events of sessions and of the catalog that happened before, run on the thread that calls `tsq_subscription_unsubscribe`.
/// A second call returns the same descriptor. The library owns it: the host only waits for
/// it, and does so no longer once it frees the last of these handles.
///
/// Borrows `client`. Sets `*out` to 0 after a failure. Fails with `TSQ_UNAVAILABLE` when the process has too many open files,
/// `TSQ_CLOSED`, and on Windows, which has no such descriptor, with `TSQ_INVALID_INPUT`.
tsq_status tsq_client_poll_fd(const tsq_client *client,
                              int *out,
                              tsq_error **err);

/// Runs the callbacks that wait, on the calling thread, and makes the descriptor of `tsq_client_poll_fd` not readable until others
/// wait. A subscription with many calls has some of them in each dispatch, and the descriptor stays readable. It does not wait. A
/// callback may call it, too: the loop of a dialog does.
///
/// Borrows `client`. Fails with `TSQ_INVALID_INPUT` if `tsq_client_poll_fd` was not called before; `TSQ_CLOSED` after the callbacks that
/// are told the end.
tsq_status tsq_client_dispatch(const tsq_client *client,
                               tsq_error **err);

/// Writes a copy of the SQLite database and its files at one moment to the file `target`, which must not exist, and the
/// folder `<target>.files`. Other calls may write meanwhile. It is an operation of the host, not of a caller: every handle may
/// make a backup, and the copy has every row and file, also rows and files that policies hide from the handle's caller.
///
/// Borrows all. Fails with `TSQ_INVALID_INPUT` when the target exists, or for a PostgreSQL database (use pg_dump);
/// `TSQ_CONFIG` when the target cannot be written; `TSQ_UNAVAILABLE` when the disk is full; `TSQ_INTERNAL` when the bytes of
/// files are gone or of another size: the message names them, and there is no backup; `TSQ_CLOSED`.
tsq_status tsq_client_backup(const tsq_client *client,
                             tsq_str target,
                             tsq_error **err);

/// Says what is wrong, or will be: integrity of the database, migrations, policies, files against their rows, the object store,
/// the change feed, room on the disks, the clock and the modes of files. The list is empty if all is well, and has at most 100
/// findings of a code. It changes nothing. Writers go on meanwhile; what they write or delete is no finding. With
/// `TSQ_CHECK_FULL` it takes as long as reading every byte takes. It is an operation of the host, not of a caller: every handle
/// may call it, and findings name files and tables, also those that policies hide from the handle's caller.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for an unknown depth; `TSQ_CLOSED`. Every other
/// failure is a finding.
tsq_status tsq_client_check(const tsq_client *client,
                            tsq_check_depth depth,
                            tsq_findings **out,
                            tsq_error **err);

/// What the client has counted and measured since it was opened, as a JSON object: by the name of the metric its `kind` (`counter`,
/// `gauge`, `histogram`), its `unit` and its `samples`. A sample has its `labels` and a `value`, or, of a histogram, `count`, `sum`
/// and `buckets`: pairs of an upper bound and how many values were at most as large. The manual's METRICS lists them. Every handle of a client returns
/// the same. The figures are for the program: show them to no stranger.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
tsq_status tsq_client_metrics_json(const tsq_client *client,
                                   tsq_string **out,
                                   tsq_error **err);

/// The metrics of `tsq_client_metrics_json` in the text format of Prometheus, for an endpoint that it scrapes
/// (`text/plain; version=0.0.4`).
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
tsq_status tsq_client_metrics_prometheus(const tsq_client *client, tsq_string **out, tsq_error **err);

/// Restores a copy made by `tsq_client_backup` into a data folder without a database. While it runs, `tsq_client_open` of the
/// folder fails with `TSQ_UNAVAILABLE`. Sessions of the backup, and its tokens of recovery and verification, stay valid in the
/// restored database until they end; signed URLs of the original are refused. Either everything is restored or nothing, also if
/// the process is killed: then call it again. Until then `tsq_client_open` of the folder fails with `TSQ_CONFIG`.
///
/// Borrows all. Fails with `TSQ_UNAVAILABLE` when the disk is full; `TSQ_CONFIG` for a file that is not such a copy, is
/// damaged or of a newer version, and for a folder with a database or with files in `files`.
tsq_status tsq_restore(tsq_str source,
                       tsq_str data_dir,
                       tsq_error **err);

/// Closes the client for all its handles: cancels reads, finishes accepted writes, ends the library's threads. On PostgreSQL a write
/// that waits for the server fails with `TSQ_UNAVAILABLE` and the code 08007: it may happen. The call waits for
/// running callbacks, 10 seconds at most, and first lets the callbacks of sessions and of the catalog run for what happened before it.
/// Later calls fail with `TSQ_CLOSED`; results stay valid. Closing again does nothing.
///
/// A handle of `tsq_client_as_user` or `tsq_client_as_service` closes alone: later calls on it fail with `TSQ_CLOSED`, its
/// subscriptions end, and calls that run complete. The client and its other handles stay open. This waits for nothing and is
/// allowed inside a callback.
///
/// Borrows `client`. Fails with `TSQ_INVALID_INPUT` for an opened client inside a callback or a `destroy`, because it
/// would wait for its own caller; the client then stays open.
tsq_status tsq_client_close(const tsq_client *client,
                            tsq_error **err);

/// Whether the handle or its client is closed. True for NULL, and in a forked child for a handle of its parent.
///
/// Borrows `client`.
bool tsq_client_is_closed(const tsq_client *client);

/// Frees a handle, and ends the subscriptions that it made (not those of `tsq_client_shared`) as `tsq_subscription_unsubscribe`
/// does: it waits for a callback of them that runs, and afterwards their callbacks do not run and their data is destroyed, unless this is
/// called inside a callback. So hold no lock that such a callback takes. Freeing the last handle closes the client without waiting for
/// its threads. Takes `client`; NULL is allowed. No other thread may be in a call with this handle. Allowed inside a callback.
void tsq_client_free(tsq_client *client);

/// Copies everything into an empty database and file store: rows, users with their password hashes, linked identities, sessions,
/// files with versions, metadata and times, and the catalog. Compares every table and every file with one moment of the source
/// at the end. The engines and the kinds of stores may differ. `target` names the new place, by `data_dir` or `database_url` at
/// least. Calls `progress` (may be NULL) with the rows and files that are copied and the number of all; it may cancel.
///
/// A call that was cancelled, that failed, or whose process was killed is continued by the same call. Until it is complete, no
/// client opens the target, and one that has it open cannot write (25006). The source is only read; others must not write it meanwhile,
/// unless the move follows it (`follow_ms`). It is an operation of the host, not of a caller: every handle may move, and the target has
/// every row and file, also those that policies hide from the handle's caller.
/// The target refuses cursors and signed URLs of the source. Sessions are valid in both databases, in each until they end there.
///
/// Borrows all; `options` may be NULL; returns owned in `out`, which may be NULL. Fails with `TSQ_CONFIG` when the target is in memory, is the source,
/// has rows or files, or has an unfinished move from another source: then nothing is changed; `TSQ_CONFLICT` when the source
/// was written during the comparison: the message names the tables, and when the changes of a source that is followed cannot be copied
/// in the pause; `TSQ_INTERNAL`, naming the file, when its bytes are gone or
/// of another version; `TSQ_CANCELLED`, `TSQ_CLOSED`, `TSQ_UNAVAILABLE`.
tsq_status tsq_client_move_to(const tsq_client *client,
                              const tsq_config *target,
                              const tsq_move_options *options,
                              tsq_progress_callback progress,
                              void *user_data,
                              tsq_move_report **out,
                              tsq_error **err);

/// Accepts writes again after a move that followed this database. Sets `*out` to whether writes were refused. Call it if the target is given up: what is written from now on is in this database alone. It is an operation of the host,
/// not of a caller.
///
/// Borrows `client`. Fails with `TSQ_CLOSED`, and when the database fails.
tsq_status tsq_client_reopen_for_writes(const tsq_client *client,
                                        bool *out,
                                        tsq_error **err);

/// Checks whether `tsq_client_move_to` would accept `target`, and says what it would find there. Writes nothing. It looks at the
/// target alone; `tsq_client_check` looks for faults of the source.
///
/// Borrows all. Sets `*out` to `TSQ_MOVE_TARGET_REFUSED` after a failure. Fails with `TSQ_CONFIG` when the move would be refused,
/// with the error of the move; `TSQ_INVALID_INPUT`, `TSQ_CLOSED`, and when the database or the store of the target fails.
tsq_status tsq_client_check_move(const tsq_client *client,
                                 const tsq_config *target,
                                 tsq_move_target *out,
                                 tsq_error **err);

/// The row as a JSON object: `table`, and `row` with the values by column.
///
/// Borrows `row`; returns owned in `out`.
tsq_status tsq_exported_row_json(const tsq_exported_row *row, tsq_string **out, tsq_error **err);

/// Frees a row that a call returned owned. Takes `row`; NULL is allowed.
void tsq_exported_row_free(tsq_exported_row *row);

/// Reads the next row. `*out` is NULL after `TSQ_OK` at the end.
///
/// Borrows `rows`; returns owned in `out`. Fails with `TSQ_INTERNAL` for a row with a value that is not of its column's type, as
/// another program may have written it; `TSQ_INVALID_INPUT`, `TSQ_CLOSED`, and when the database fails. After a failure there are
/// no further rows.
tsq_status tsq_row_export_next(tsq_row_export *rows,
                               tsq_exported_row **out,
                               tsq_error **err);

/// Frees an export, which ends its read transaction. Takes `rows`; NULL is allowed.
void tsq_row_export_free(tsq_row_export *rows);

/// The report as a JSON object: `inserted`, `unchanged` and `problems`, an array of the members of `tsq_row_problem`.
///
/// Borrows `report`; returns owned in `out`.
tsq_status tsq_row_import_report_json(const tsq_row_import_report *report,
                                      tsq_string **out,
                                      tsq_error **err);

/// Frees a report. Takes `report`; NULL is allowed.
void tsq_row_import_report_free(tsq_row_import_report *report);

/// Begins to read every row of tables, as the database is at this moment; `tsq_row_export_next` returns the rows. Reads all tables
/// if none is named: `community_configs`, `community_domains`, `spaceRegistrations`, `users`, `spaces` and `fidgets`. A row comes
/// after the rows that it references. Others may write meanwhile. For the service.
///
/// A row has every column of its table. It has no password, token, session or identity key: `tsq_client_move_to` and
/// `tsq_client_backup` copy accounts. The export holds a read transaction of the database until its end: free it before the client
/// closes.
///
/// Borrows all (`tables` is an array of `tables_len`); returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for an unknown table,
/// `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers other than the service, `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
tsq_status tsq_client_export_rows(const tsq_client *client,
                                  const tsq_str *tables,
                                  size_t tables_len,
                                  tsq_row_export **out,
                                  tsq_error **err);

/// Inserts rows of a table with their ids and times, all or none, in one transaction. A row that is there with the same values
/// counts as unchanged, so a call may be repeated. An existing row is never changed. Values are checked as for a new row. No
/// quota applies. A user who is imported has no password. For the service.
///
/// `rows` is a JSON array of objects in the form of `tsq_exported_row.values`. With `dry_run` nothing is inserted: the report says
/// what would happen, with a problem for each row that conflicts with existing rows. A row that is not valid fails the call, as
/// without `dry_run`.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` for a missing column, and for `null` where
/// the table requires a value; `TSQ_INVALID_INPUT` for an unknown table or column, a value of another type, a value that a create
/// refuses, and two rows with one id; `TSQ_TOO_LARGE`; `TSQ_ALREADY_EXISTS` for a row that is there and differs, and for a value of
/// a unique column that another row has; `TSQ_REFERENCE_MISSING` for a row that references none; `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for callers other than the service; `TSQ_CLOSED`. `tsq_error_row` is the index of the row and `tsq_error_column`
/// its column, if they are known.
tsq_status tsq_client_import_rows(const tsq_client *client,
                                  tsq_str table,
                                  tsq_str rows,
                                  bool dry_run,
                                  tsq_row_import_report **out,
                                  tsq_error **err);

/// Ends the subscription. It waits for a callback that runs on another thread. After it returns the callback is not
/// running, never runs again, and its `user_data` is destroyed. Inside any callback of the library it returns at once: no
/// further call starts, and the data is destroyed after a call that runs has returned. Unsubscribing again does nothing.
/// In a forked child of the process that subscribed, this function does nothing.
///
/// Borrows `subscription`; NULL is allowed.
void tsq_subscription_unsubscribe(const tsq_subscription *subscription);

/// Frees the handle; the subscription continues. Takes `subscription`; NULL is allowed.
void tsq_subscription_free(tsq_subscription *subscription);

/// Lists trending mini apps, best first. `timeframe` is `1h`, `6h`, `12h`, `24h` or `7d`; absent: `24h`.
///
/// The first call on a client, and the first call for a timeframe, may wait for a fetch; later calls answer from
/// memory. `tsq_discovery_preload` fetches without blocking. Without a catalog key the list is empty. Borrows `client`,
/// `timeframe` and `selection` (NULL: the first 50); returns owned in `out`. Fails with `TSQ_INVALID_INPUT`,
/// `TSQ_UNAVAILABLE` (no catalog), `TSQ_CLOSED`.
tsq_status tsq_discovery_get_trending_mini_apps(const tsq_client *client,
                                                tsq_str timeframe,
                                                const tsq_selection *selection,
                                                tsq_mini_apps **out,
                                                tsq_error **err);

/// Lists the mini apps of any of these categories, in trending order.
///
/// Borrows `client`, `categories` (an array of `categories_len`) and `selection` (NULL: the first 50); returns owned in
/// `out`. Fails like `tsq_discovery_get_trending_mini_apps`.
tsq_status tsq_discovery_get_mini_apps_by_category(const tsq_client *client,
                                                   const tsq_str *categories,
                                                   size_t categories_len,
                                                   const tsq_selection *selection,
                                                   tsq_mini_apps **out,
                                                   tsq_error **err);

/// Lists the mini apps that match a query, best match first. Word prefixes, several words and small typos match; case
/// and accents are ignored.
///
/// Borrows `client`, `query` and `selection` (NULL: the first 50); returns owned in `out`. Fails like
/// `tsq_discovery_get_trending_mini_apps`.
tsq_status tsq_discovery_search_mini_apps(const tsq_client *client,
                                          tsq_str query,
                                          const tsq_selection *selection,
                                          tsq_mini_apps **out,
                                          tsq_error **err);

/// Lists the mini apps that were first seen last, latest first; apps of one time in trending order.
///
/// Borrows `client` and `selection` (NULL: the first 50); returns owned in `out`. Fails like
/// `tsq_discovery_get_trending_mini_apps`.
tsq_status tsq_discovery_get_new_mini_apps(const tsq_client *client,
                                           const tsq_selection *selection,
                                           tsq_mini_apps **out,
                                           tsq_error **err);

/// Lists the mini apps that are like another one, best first: by shared words, author and category. `id` is an id, a home
/// URL or a domain. The app itself and its near-copies are not in the list.
///
/// Borrows `client` and `id`; returns owned in `out`. Fails with `TSQ_NOT_FOUND` for an unknown id, `TSQ_INVALID_INPUT`
/// for a limit outside 1 to 1,000, `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
tsq_status tsq_discovery_get_similar_mini_apps(const tsq_client *client,
                                               tsq_str id,
                                               uint32_t limit,
                                               tsq_mini_apps **out,
                                               tsq_error **err);

/// Finds the mini app of an id, of a home URL in any spelling, or of a domain (its best ranked app). The list has that app,
/// or is empty when there is none.
///
/// Borrows `client` and `id`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`, `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
tsq_status tsq_discovery_get_mini_app(const tsq_client *client,
                                      tsq_str id,
                                      tsq_mini_apps **out,
                                      tsq_error **err);

/// Lists suggestions for a search box while the user types, best first: at most `limit`, near-copies once.
///
/// Borrows `client` and `text`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`, `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
tsq_status tsq_discovery_suggest_mini_apps(const tsq_client *client,
                                           tsq_str text,
                                           uint32_t limit,
                                           tsq_suggestions **out,
                                           tsq_error **err);

/// Lists the categories with their numbers of apps, most first. Of `selection` only the networks count.
///
/// Borrows `client` and `selection` (NULL: no filters); returns owned in `out`. Fails like
/// `tsq_discovery_get_trending_mini_apps`.
tsq_status tsq_discovery_categories(const tsq_client *client,
                                    const tsq_selection *selection,
                                    tsq_facets **out,
                                    tsq_error **err);

/// Lists the networks with their numbers of apps, most first. Of `selection` only the categories count. An app that names
/// no network counts for each. When no app of the catalog names one, the list has the networks that calls filtered by.
///
/// Borrows `client` and `selection` (NULL: no filters); returns owned in `out`. Fails like
/// `tsq_discovery_get_trending_mini_apps`.
tsq_status tsq_discovery_networks(const tsq_client *client,
                                  const tsq_selection *selection,
                                  tsq_facets **out,
                                  tsq_error **err);

/// Calls `callback` after each refresh that changed the apps, their texts or an order.
///
/// Borrows `client`; takes `user_data`: `destroy` (may be NULL) destroys it, also when this call fails. Returns the
/// subscription owned in `out`, which may be NULL: the subscription then lasts as long as the handle. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_discovery_on_catalog_change(const tsq_client *client,
                                           tsq_catalog_callback callback,
                                           void *user_data,
                                           tsq_destroy destroy,
                                           tsq_subscription **out,
                                           tsq_error **err);

/// Loads the catalog in the background and returns at once. Calls `callback` when discovery calls answer from memory,
/// or when loading failed. When the client is closed first, `callback` is not called.
///
/// Borrows `client`; takes `user_data`: `destroy` (may be NULL) destroys it, also when this call fails. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`. The callback's error is `TSQ_UNAVAILABLE` when there is no catalog.
tsq_status tsq_discovery_preload(const tsq_client *client,
                                 tsq_preload_callback callback,
                                 void *user_data,
                                 tsq_destroy destroy,
                                 tsq_error **err);

/// Fetches the catalog, whatever its age, and waits for it. Concurrent calls share one fetch. A catalog that lost most
/// of its apps is refused, and the old one stays.
///
/// Borrows `client`; returns the new state owned in `out`, which may be NULL. Fails with `TSQ_UNAVAILABLE` when the
/// fetch fails (the old catalog stays), `TSQ_CLOSED`.
tsq_status tsq_discovery_refresh(const tsq_client *client,
                                 tsq_discovery_stats **out,
                                 tsq_error **err);

/// Like `tsq_discovery_refresh`, but accepts a catalog that lost most of its apps, and each further list as it comes.
tsq_status tsq_discovery_force_refresh(const tsq_client *client,
                                       tsq_discovery_stats **out,
                                       tsq_error **err);

/// Reads the state of the catalog. Starts no fetch and never waits.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
tsq_status tsq_discovery_get_stats(const tsq_client *client, tsq_discovery_stats **out, tsq_error **err);

/// Answers an HTTP request to `/api/miniapp-discovery` without headers: `tsq_discovery_handle_request` for a method, a
/// target and a body.
///
/// `method` is the method of the request (`GET`, `POST`, …), `target` its path with
/// query (`/api/miniapp-discovery?category=games&limit=20`). Borrows all; returns owned in `out`. A bad request gets a
/// response too (`TSQ_OK` with status 400, 404, 405, 413, …). Fails with `TSQ_CLOSED`, and `TSQ_INVALID_INPUT` for
/// NULL or text that is not UTF-8.
tsq_status tsq_discovery_handle(const tsq_client *client,
                                tsq_str method,
                                tsq_str target,
                                tsq_bytes body,
                                tsq_http_response **out,
                                tsq_error **err);

/// Answers an HTTP request to `/api/miniapp-discovery` or below it, for the HTTP server of the host. Caches, compression and
/// CORS work by the headers `if-none-match`, `accept-encoding` and `origin`.
///
/// Borrows all; returns owned in `out`. A bad request gets a response too (`TSQ_OK` with status 400, 404, 405, 413, …).
/// Fails with `TSQ_CLOSED`, and `TSQ_INVALID_INPUT` for NULL or text that is not UTF-8.
tsq_status tsq_discovery_handle_request(const tsq_client *client,
                                        const tsq_http_request *request,
                                        tsq_http_response **out,
                                        tsq_error **err);

/// Farcaster id.
uint64_t tsq_author_fid(const tsq_author *author);

/// Username, without `@`.
tsq_str tsq_author_username(const tsq_author *author);

/// Display name; may be absent.
tsq_str tsq_author_display_name(const tsq_author *author);

/// URL of the profile picture; may be absent.
tsq_str tsq_author_pfp_url(const tsq_author *author);

/// Number of followers.
uint64_t tsq_author_follower_count(const tsq_author *author);

/// The quality score of the catalog, 0 to 1. Returns true and writes it to `out` (may be NULL), or returns false and
/// writes 0.
bool tsq_author_score(const tsq_author *author,
                      double *out);

/// Whether the author has the power badge of older catalogs.
bool tsq_author_is_power_user(const tsq_author *author);

/// The number of facets, most apps first; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_facets_len(const tsq_facets *list);

/// The item at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_facet *tsq_facets_at(const tsq_facets *list, size_t index);

/// The list as a JSON array of objects: `name` and `count`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_facets_json(const tsq_facets *list, tsq_string **out, tsq_error **err);

/// Frees a list with its items. Takes `list`; NULL is allowed.
void tsq_facets_free(tsq_facets *list);

/// The number of highlights, the name first; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_highlights_len(const tsq_highlights *list);

/// The item at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_highlight *tsq_highlights_at(const tsq_highlights *list, size_t index);

/// The list as a JSON array of objects: `field`, `text` and `matches`, an array of `[start, end]`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_highlights_json(const tsq_highlights *list, tsq_string **out, tsq_error **err);

/// Frees a list with its items. Takes `list`; NULL is allowed.
void tsq_highlights_free(tsq_highlights *list);

/// The app's id: its normalised home URL without the scheme.
tsq_str tsq_mini_app_id(const tsq_mini_app *app);

/// Host of the home URL.
tsq_str tsq_mini_app_domain(const tsq_mini_app *app);

/// Display name, at most 200 characters.
tsq_str tsq_mini_app_name(const tsq_mini_app *app);

/// Description, at most 2,000 characters; may be absent.
tsq_str tsq_mini_app_description(const tsq_mini_app *app);

/// URL of the icon, or else of the image; empty when the catalog has neither.
tsq_str tsq_mini_app_icon_url(const tsq_mini_app *app);

/// URL that opens the app: http or https.
tsq_str tsq_mini_app_home_url(const tsq_mini_app *app);

/// Category: a known one (`games`) or the app's own word; may be absent.
tsq_str tsq_mini_app_category(const tsq_mini_app *app);

/// Number of networks that the app requires; 0 when it runs on any.
size_t tsq_mini_app_networks_len(const tsq_mini_app *app);

/// The network at `index`, counted from 0; absent beyond the end.
tsq_str tsq_mini_app_networks_at(const tsq_mini_app *app, size_t index);

/// Number of search tags.
size_t tsq_mini_app_tags_len(const tsq_mini_app *app);

/// The search tag at `index`, counted from 0; absent beyond the end.
tsq_str tsq_mini_app_tags_at(const tsq_mini_app *app, size_t index);

/// Number of screenshots.
size_t tsq_mini_app_screenshots_len(const tsq_mini_app *app);

/// The URL of the screenshot at `index`, counted from 0; absent beyond the end.
tsq_str tsq_mini_app_screenshots_at(const tsq_mini_app *app, size_t index);

/// The publisher of the app; NULL when the catalog does not name one.
///
/// Returns a view that lives as long as the list.
const tsq_author *tsq_mini_app_author(const tsq_mini_app *app);

/// Engagement: number of followers of the author; 0 without an author.
uint64_t tsq_mini_app_follower_count(const tsq_mini_app *app);

/// Engagement: the app's rank in the trending order of its list, counted from 1. Returns true and writes it to `out`
/// (may be NULL), or returns false and writes 0 when the order does not contain the app.
bool tsq_mini_app_trending_rank(const tsq_mini_app *app,
                                uint32_t *out);

/// URL of a wide image; may be absent.
tsq_str tsq_mini_app_hero_image_url(const tsq_mini_app *app);

/// Tagline; may be absent.
tsq_str tsq_mini_app_tagline(const tsq_mini_app *app);

/// Subtitle; may be absent.
tsq_str tsq_mini_app_subtitle(const tsq_mini_app *app);

/// Version of the app's manifest.
tsq_str tsq_mini_app_version(const tsq_mini_app *app);

/// Text of the button that opens the app; may be absent.
tsq_str tsq_mini_app_button_title(const tsq_mini_app *app);

/// URL of the image for a feed; may be absent.
tsq_str tsq_mini_app_image_url(const tsq_mini_app *app);

/// URL of the image shown while the app loads; may be absent.
tsq_str tsq_mini_app_splash_image_url(const tsq_mini_app *app);

/// Background colour of that image (`#rrggbb`); may be absent.
tsq_str tsq_mini_app_splash_background_color(const tsq_mini_app *app);

/// Time of the fetch, in microseconds.
int64_t tsq_mini_app_last_fetched(const tsq_mini_app *app);

/// Time at which the app was first in the catalog, in microseconds.
int64_t tsq_mini_app_first_seen(const tsq_mini_app *app);

/// The words of the app that match a search query, by field. Texts without a match are left out.
///
/// Borrows `app` and `query`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_mini_app_highlights(const tsq_mini_app *app,
                                   tsq_str query,
                                   tsq_highlights **out,
                                   tsq_error **err);

/// The app as a JSON object, as in responses of the HTTP endpoint: camelCase.
///
/// Borrows `app`; returns owned in `out`.
tsq_status tsq_mini_app_json(const tsq_mini_app *app, tsq_string **out, tsq_error **err);

/// The number of apps; 0 for NULL.
///
/// Borrows `apps`.
size_t tsq_mini_apps_len(const tsq_mini_apps *apps);

/// The number of apps that the call would list without limit and offset; 0 for NULL. The first call for a filtered or
/// searched list counts them and may take as long as the call that made the list.
///
/// Borrows `apps`.
size_t tsq_mini_apps_total(const tsq_mini_apps *apps);

/// The app at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `apps`; returns a view that lives as long as the list.
const tsq_mini_app *tsq_mini_apps_at(const tsq_mini_apps *apps, size_t index);

/// The list as a JSON array of the objects of `tsq_mini_app_json`.
///
/// Borrows `apps`; returns owned in `out`.
tsq_status tsq_mini_apps_json(const tsq_mini_apps *apps, tsq_string **out, tsq_error **err);

/// Frees a list and ends all views of its apps. Takes `apps`; NULL is allowed.
void tsq_mini_apps_free(tsq_mini_apps *apps);

/// The number of suggestions, best first; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_suggestions_len(const tsq_suggestions *list);

/// The item at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_suggestion *tsq_suggestions_at(const tsq_suggestions *list, size_t index);

/// The list as a JSON array of objects: `app`, `text` and `matches`, an array of `[start, end]`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_suggestions_json(const tsq_suggestions *list, tsq_string **out, tsq_error **err);

/// Frees a list with its items. Takes `list`; NULL is allowed.
void tsq_suggestions_free(tsq_suggestions *list);

/// Frees a state. Takes `stats`; NULL is allowed.
void tsq_discovery_stats_free(tsq_discovery_stats *stats);

/// Frees a response. Takes `response`; NULL is allowed.
void tsq_http_response_free(tsq_http_response *response);

/// Creates an account without signing in. The address is stored trimmed and in lower case. A password has 8 to 1,024
/// bytes.
///
/// Borrows all; returns the user owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for an address with
/// an account, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_sign_up(const tsq_client *client,
                            tsq_str email,
                            tsq_str password,
                            tsq_user **out,
                            tsq_error **err);

/// Signs in: the handle acts as this user from now on. A handle of `tsq_client_as_user` or `tsq_client_as_service`
/// keeps its caller; there the call only creates a session, and a server hands out its tokens.
///
/// Borrows all; returns the session owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` for an unknown
/// address and for a wrong password alike, `TSQ_RATE_LIMITED` after too many failures of the address
/// (`tsq_error_retry_after_ms`), `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_sign_in(const tsq_client *client,
                            tsq_str email,
                            tsq_str password,
                            tsq_session **out,
                            tsq_error **err);

/// Creates a session for the user of a request; a server hands out its tokens. The handle's caller does not change. On a
/// handle of `tsq_client_with_client_key` each client has its own limit of guesses, before the limit of all clients.
///
/// Borrows all; returns the session owned in `out`. Fails as `tsq_auth_sign_in`.
tsq_status tsq_auth_create_session(const tsq_client *client,
                                   tsq_str email,
                                   tsq_str password,
                                   tsq_session **out,
                                   tsq_error **err);

/// Ends the session in every handle and process that uses it. Succeeds without a session, too.
///
/// Borrows `client`. Fails with `TSQ_CLOSED`, and when the database fails.
tsq_status tsq_auth_sign_out(const tsq_client *client, tsq_error **err);

/// Ends the sessions of `scope`: the handle's own, the user's other sessions, or all of them. Does nothing without a
/// session.
///
/// Borrows `client`. Fails with `TSQ_UNAUTHORIZED` for the scopes other than `TSQ_SIGN_OUT_LOCAL` when the session has
/// ended, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_sign_out_scope(const tsq_client *client,
                                   tsq_sign_out_scope scope,
                                   tsq_error **err);

/// Reads the current session. An expired access token is refreshed first. After NULL an opened client is anonymous, also if its
/// session has ended elsewhere: its calls no longer fail with `TSQ_UNAUTHORIZED`. Those of a handle of `tsq_client_as_user` go on failing.
///
/// Borrows `client`; returns owned in `out`: NULL without a session. Fails with `TSQ_CLOSED`, and when the database
/// fails.
tsq_status tsq_auth_get_session(const tsq_client *client,
                                tsq_session **out,
                                tsq_error **err);

/// Replaces both tokens of the session. The library does this by itself before the access token expires.
///
/// Borrows `client`; returns the session owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` without a
/// session or when it has ended, `TSQ_CLOSED`.
tsq_status tsq_auth_refresh_session(const tsq_client *client,
                                    tsq_session **out,
                                    tsq_error **err);

/// Replaces both tokens of the session with this refresh token, for servers. The handle changes only when the session
/// is its own.
///
/// Borrows all; returns the session owned in `out`. Fails with `TSQ_UNAUTHORIZED` for a token that is unknown or
/// expired, or that was used before, which also ends its session; `TSQ_INVALID_INPUT`, `TSQ_CLOSED`. After a lost
/// reply the call may be repeated: for 10 s the same refresh token gives the same new tokens, unless these were used in turn.
tsq_status tsq_auth_refresh_session_of(const tsq_client *client,
                                       tsq_str refresh_token,
                                       tsq_session **out,
                                       tsq_error **err);

/// Resumes a session from a stored refresh token: the handle acts as its user from now on, with new tokens.
///
/// Borrows all; returns the session owned in `out`, which may be NULL. Fails like `tsq_auth_refresh_session_of`, and
/// with `TSQ_INVALID_INPUT` on a handle of `tsq_client_as_user` or `tsq_client_as_service`.
tsq_status tsq_auth_set_session(const tsq_client *client,
                                tsq_str refresh_token,
                                tsq_session **out,
                                tsq_error **err);

/// Changes the signed-in user's address or password and ends the user's other sessions. A zeroed patch only checks the
/// password. A new password also replaces both tokens of this session: `tsq_auth_get_session` returns the new ones.
///
/// Borrows all; returns the changed user owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` without a
/// session or for a wrong password, `TSQ_RATE_LIMITED`, `TSQ_ALREADY_EXISTS` for an address with an account,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_update_user(const tsq_client *client,
                                tsq_str current_password,
                                const tsq_user_patch *patch,
                                tsq_user **out,
                                tsq_error **err);

/// Deletes the signed-in user as tsq_auth_delete_user does.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` without a session or for a wrong password, `TSQ_RATE_LIMITED`,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_delete_own_user(const tsq_client *client, tsq_str current_password, tsq_error **err);

/// Deletes a user with their spaces, fidgets, private files and sessions. The service only. If the user has more than 100
/// spaces, 32 fidgets or 100 files, most of them are deleted in steps before; a call that fails may have deleted some of
/// them, and can be repeated.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` for an unknown user, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers other
/// than the service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_delete_user(const tsq_client *client,
                                tsq_str user_id,
                                tsq_error **err);

/// Links an identity key to the signed-in user, by a claim of `tsq_identity_claim`. Linking a key again does nothing. A
/// user with a linked key may set the navigation of communities that list the key in `admin_identity_public_keys`.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` without a session, and for a claim with a wrong signature, of another
/// user or for another audience, older than five minutes or more than a minute in the future; `TSQ_ALREADY_EXISTS` for a key that another user has linked;
/// `TSQ_QUOTA_EXCEEDED` for a user who has linked 100 other keys; `TSQ_INVALID_INPUT` for text that is not a claim; `TSQ_CLOSED`.
tsq_status tsq_auth_link_identity(const tsq_client *client,
                                  tsq_str claim,
                                  tsq_error **err);

/// Removes an identity key, in 64 hex digits, from the signed-in user. Its rights end at once.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` without a session, `TSQ_NOT_FOUND` for a key that the user has not linked,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_unlink_identity(const tsq_client *client,
                                    tsq_str public_key,
                                    tsq_error **err);

/// Lists the identity keys of the signed-in user, in the order in which they were linked.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` without a session, `TSQ_CLOSED`.
tsq_status tsq_auth_identities(const tsq_client *client, tsq_identities **out, tsq_error **err);

/// Lists the identity keys of a user, in the order in which they were linked; none for a user that does not exist. The service
/// only.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other callers,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_identities_of(const tsq_client *client,
                                  tsq_str user_id,
                                  tsq_identities **out,
                                  tsq_error **err);

/// Reads the audience that identity claims must be for: the option `identity_audience`, by default the incarnation id of
/// the database.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`, and when the database fails.
tsq_status tsq_auth_identity_audience(const tsq_client *client,
                                      tsq_string **out,
                                      tsq_error **err);

/// Makes a token with which the user with this address can recover the account; the program mails it to the stored address
/// (`tsq_auth_find_user`), never to the address that was asked for, and gives the same answer for a known and for an
/// unknown address. The service only. The token works once, within an hour, while
/// the user has this address and password.
///
/// Borrows all; returns owned in `out`: NULL for an unknown address. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for
/// callers other than the service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_create_recovery_token(const tsq_client *client,
                                          tsq_str email,
                                          tsq_string **out,
                                          tsq_error **err);

/// Uses a recovery token: sets the password, ends every session of the user, and signs in like `tsq_auth_sign_in`.
///
/// Borrows all; returns the session owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` for a token that is
/// unknown, used, expired or void, `TSQ_INVALID_INPUT` for a password that is not 8 to 1,024 bytes long,
/// `TSQ_RATE_LIMITED`, `TSQ_CLOSED`.
tsq_status tsq_auth_recover(const tsq_client *client,
                            tsq_str recovery_token,
                            tsq_str new_password,
                            tsq_session **out,
                            tsq_error **err);

/// Makes a token with which a user proves that they receive mail at the present address; the program mails it. The service only.
/// The token works once, within a day, while the user has this address.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` for an unknown user, `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for callers other than the service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_create_verification_token(const tsq_client *client,
                                              tsq_str user_id,
                                              tsq_string **out,
                                              tsq_error **err);

/// Uses a verification token: sets the user's `email_verified_at`. Every caller may do this; it signs nobody in.
///
/// Borrows all; returns the user owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` for a token that is
/// unknown, used, expired or void, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_verify_email(const tsq_client *client,
                                 tsq_str verification_token,
                                 tsq_user **out,
                                 tsq_error **err);

/// Lists the `limit` users that follow `after`, by id; the first ones when `after` is absent. For the service. A page has
/// fewer rows when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all (`after` is the id of the last user of the page before); returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other
/// callers, `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
tsq_status tsq_auth_list_users(const tsq_client *client,
                               uint32_t limit,
                               tsq_str after,
                               tsq_user_list **out,
                               tsq_error **err);

/// Finds the user with an address, in any case. The service only.
///
/// Borrows all; returns owned in `out`: NULL when no user has the address. Fails with `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for callers other than the service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_find_user(const tsq_client *client, tsq_str email, tsq_user **out, tsq_error **err);

/// Sets a user's password and ends every session of the user. The service only.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` for an unknown user, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers other
/// than the service, `TSQ_RATE_LIMITED`, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_set_password(const tsq_client *client,
                                 tsq_str user_id,
                                 tsq_str password,
                                 tsq_error **err);

/// Gives existing users the passwords that another system hashed, all or none. A user who has a password keeps it. The
/// service only. The first sign-in replaces a bcrypt hash by Argon2id; the lengths of new passwords do not bind imported
/// ones. Hashes are bcrypt (`$2a$`, `$2b$`, `$2y$`, costs 4 to 14) or Argon2 in PHC format (up to 256 MiB, and 1 GiB over
/// all passes).
///
/// Borrows all (`rows` is an array of `rows_len`, `item_size` is `sizeof(tsq_new_credential)`); returns owned in `out`,
/// which may be NULL. Fails with `TSQ_INVALID_INPUT` for a hash that cannot be used, for a row without a user and for two rows of one user,
/// `TSQ_REFERENCE_MISSING` for an unknown user (`tsq_error_row` is the index), `TSQ_TOO_LARGE`, `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for callers other than the service, `TSQ_CLOSED`. No message shows a hash.
tsq_status tsq_auth_import_credentials(const tsq_client *client,
                                       const tsq_new_credential *rows,
                                       size_t rows_len,
                                       size_t item_size,
                                       tsq_import_report **out,
                                       tsq_error **err);

/// The user as a JSON object: its columns by their names.
///
/// Borrows `user`; returns owned in `out`.
tsq_status tsq_user_json(const tsq_user *user, tsq_string **out, tsq_error **err);

/// Frees a user that a call returned owned. Takes `user`; NULL is allowed.
void tsq_user_free(tsq_user *user);

/// The number of users; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_user_list_len(const tsq_user_list *list);

/// The user at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_user *tsq_user_list_at(const tsq_user_list *list, size_t index);

/// The list as a JSON array of the objects of `tsq_user_json`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_user_list_json(const tsq_user_list *list, tsq_string **out, tsq_error **err);

/// Frees a list with its users. Takes `list`; NULL is allowed.
void tsq_user_list_free(tsq_user_list *list);

/// The session as a JSON object: `access_token`, `refresh_token`, `expires_at` and `user`. It contains both tokens: do
/// not log it.
///
/// Borrows `session`; returns owned in `out`.
tsq_status tsq_session_json(const tsq_session *session,
                            tsq_string **out,
                            tsq_error **err);

/// Frees a session object that a call returned owned; the session itself stays valid. Takes `session`; NULL is allowed.
void tsq_session_free(tsq_session *session);

/// The number of sessions; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_session_infos_len(const tsq_session_infos *list);

/// The session at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_session_info *tsq_session_infos_at(const tsq_session_infos *list, size_t index);

/// The list as a JSON array of objects: `id`, `created_at`, `refreshed_at` and `expires_at`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_session_infos_json(const tsq_session_infos *list, tsq_string **out, tsq_error **err);

/// Frees a list with its items; the sessions themselves go on. Takes `list`; NULL is allowed.
void tsq_session_infos_free(tsq_session_infos *list);

/// Lists the sessions of a user that have not ended, the latest first; none for a user that does not exist. The service only.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other callers,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_sessions_of(const tsq_client *client,
                                tsq_str user_id,
                                tsq_session_infos **out,
                                tsq_error **err);

/// Ends a session of a user, by its id in `tsq_auth_sessions_of`. Its tokens are refused from then on, and its streams
/// end. An upload of a large file completes once its bytes are staged; others store nothing. The service only.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` if the user has no such session, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers
/// other than the service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_end_session(const tsq_client *client,
                                tsq_str user_id,
                                tsq_str session_id,
                                tsq_error **err);

/// Ends every session of a user, and the user's signed URLs. `*out` is the number of sessions. The service only.
///
/// Borrows all. Sets `*out` to 0 after a failure. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers other than the
/// service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_end_sessions(const tsq_client *client,
                                 tsq_str user_id,
                                 uint64_t *out,
                                 tsq_error **err);

/// The name of an event: `INITIAL_SESSION`, `SIGNED_IN`, …; absent for an unknown number.
///
/// Returns a view that lives for ever.
tsq_str tsq_auth_event_name(int32_t event);

/// Calls `callback` with `TSQ_INITIAL_SESSION` and the current session, then with every event of this handle's session,
/// in order. `*out` is set before the first call. At most 1,024 events wait for the callback; one that falls further
/// behind misses the oldest of them, and always gets the last one. See CALLBACKS in the manual.
///
/// Borrows `client`; takes `user_data`: `destroy` (may be NULL) destroys it, also when this call fails. Returns the
/// subscription owned in `out`, which may be NULL: the subscription then lasts as long as the handle. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_on_auth_state_change(const tsq_client *client,
                                         tsq_auth_callback callback,
                                         void *user_data,
                                         tsq_destroy destroy,
                                         tsq_subscription **out,
                                         tsq_error **err);

/// Signs a claim for `tsq_auth_link_identity` that the user holds this Ed25519 key. The claim is a JSON object:
/// `{"audience", "publicKey", "signature", "timestamp", "userId"}`. `private_key` is the seed of the key in 64 hex
/// digits; `audience` comes from `tsq_auth_identity_audience`. The claim is valid from one minute before `timestamp`
/// (microseconds) until five minutes after it. Needs no client, so it can run where the key is stored.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_identity_claim(tsq_str user_id,
                              tsq_str private_key,
                              tsq_str audience,
                              int64_t timestamp,
                              tsq_string **out,
                              tsq_error **err);

/// The keys as a JSON array of texts.
///
/// Borrows `identities`; returns owned in `out`.
tsq_status tsq_identities_json(const tsq_identities *identities, tsq_string **out, tsq_error **err);

/// Frees identity keys that a call returned owned; the keys stay linked. Takes `identities`; NULL is allowed.
void tsq_identities_free(tsq_identities *identities);

/// The report as a JSON object: the members of the struct by their names.
///
/// Borrows `report`; returns owned in `out`.
tsq_status tsq_import_report_json(const tsq_import_report *report, tsq_string **out, tsq_error **err);

/// Frees a report. Takes `report`; NULL is allowed.
void tsq_import_report_free(tsq_import_report *report);

/// The fidget as a JSON object: its columns by their names.
///
/// Borrows `fidget`; returns owned in `out`.
tsq_status tsq_fidget_json(const tsq_fidget *fidget, tsq_string **out, tsq_error **err);

/// Frees a fidget that a call returned owned. Takes `fidget`; NULL is allowed.
void tsq_fidget_free(tsq_fidget *fidget);

/// The number of fidgets; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_fidget_list_len(const tsq_fidget_list *list);

/// The fidget at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_fidget *tsq_fidget_list_at(const tsq_fidget_list *list, size_t index);

/// The list as a JSON array of the objects of `tsq_fidget_json`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_fidget_list_json(const tsq_fidget_list *list, tsq_string **out, tsq_error **err);

/// Frees a list that a call returned, with its fidgets. Takes `list`; NULL is allowed.
void tsq_fidget_list_free(tsq_fidget_list *list);

/// The space as a JSON object: its columns by their names, and `fidgets` or `owner` where the call returns them.
///
/// Borrows `space`; returns owned in `out`.
tsq_status tsq_space_json(const tsq_space *space,
                          tsq_string **out,
                          tsq_error **err);

/// Frees a space that a call returned owned. Takes `space`; NULL is allowed.
void tsq_space_free(tsq_space *space);

/// The number of spaces; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_space_list_len(const tsq_space_list *list);

/// The space at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_space *tsq_space_list_at(const tsq_space_list *list, size_t index);

/// The list as a JSON array of the objects of `tsq_space_json`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_space_list_json(const tsq_space_list *list, tsq_string **out, tsq_error **err);

/// Frees a list with its spaces. Takes `list`; NULL is allowed.
void tsq_space_list_free(tsq_space_list *list);

/// Creates a space. Its owner is the caller; the service may name another owner.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` without a name,
/// `TSQ_REFERENCE_MISSING` for an unknown owner, `TSQ_FORBIDDEN` for another owner than the caller and for the id of a
/// page or of a deleted space, `TSQ_ALREADY_EXISTS` for an id that another space has, `TSQ_INVALID_INPUT`,
/// `TSQ_TOO_LARGE`, `TSQ_CLOSED`.
tsq_status tsq_spaces_create_space(const tsq_client *client,
                                   const tsq_new_space *space,
                                   tsq_space **out,
                                   tsq_error **err);

/// Creates spaces in one transaction: all or none.
///
/// Borrows all (`spaces` is an array of `spaces_len`, `item_size` is `sizeof(tsq_new_space)`); returns the rows, in the
/// order of `spaces`, owned in `out`, which may be NULL. `created_at` increases in this order. Fails like `tsq_spaces_create_space`, for the first item that
/// fails: `tsq_error_row` is its index.
tsq_status tsq_spaces_create_spaces(const tsq_client *client,
                                    const tsq_new_space *spaces,
                                    size_t spaces_len,
                                    size_t item_size,
                                    tsq_space_list **out,
                                    tsq_error **err);

/// Reads a space by its id.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when no visible space has this id,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_spaces_get_space(const tsq_client *client, tsq_str id, tsq_space **out, tsq_error **err);

/// Changes the columns that `patch` sets or clears. A zeroed patch changes nothing, not even `updated_at`.
///
/// Borrows all; returns the changed row owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` when the caller
/// owns no space with this id, `TSQ_FIELD_MISSING` when `name` or `is_public` is cleared, `TSQ_INVALID_INPUT`, `TSQ_TOO_LARGE`,
/// `TSQ_CLOSED`.
tsq_status tsq_spaces_update_space(const tsq_client *client,
                                   tsq_str id,
                                   const tsq_space_patch *patch,
                                   tsq_space **out,
                                   tsq_error **err);

/// Deletes a space with its fidgets and files. If it has more than 32 fidgets or 100 files, they are deleted in steps before;
/// a call that fails may have deleted some of them, and can be repeated.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` when the caller owns no space with this id, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_spaces_delete_space(const tsq_client *client,
                                   tsq_str id,
                                   tsq_error **err);

/// Lists the visible spaces of a user with their fidgets, newest first, then by id. The list of an unknown user is
/// empty.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_TOO_LARGE` when they take more than 64 MiB of
/// memory, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_spaces_get_user_spaces(const tsq_client *client,
                                      tsq_str user_id,
                                      tsq_space_list **out,
                                      tsq_error **err);

/// Lists public spaces with their owners, newest first, then by id: rows `offset` to `offset + limit - 1`.
/// `TSQ_DEFAULT_PAGE` and 0 are the first page. Every caller sees the e-mail addresses of the owners that the
/// option `expose_owner_email` names. For further pages prefer `tsq_spaces_get_public_spaces_after`: the database reads and
/// skips `offset` rows, and rows that come or go meanwhile shift the pages. A page has fewer rows when they take more than
/// 64 MiB of memory.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000,
/// `TSQ_CLOSED`.
tsq_status tsq_spaces_get_public_spaces(const tsq_client *client,
                                        uint32_t limit,
                                        uint64_t offset,
                                        tsq_space_list **out,
                                        tsq_error **err);

/// Lists the public spaces that follow `after`, the last space of an earlier page. Such pages contain no space twice and
/// leave none out, whatever is inserted or deleted meanwhile, and a page costs the same at any depth. NULL is the first
/// page. A page has fewer spaces when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// The position of a space from a page of public spaces stays valid when the space is deleted or unpublished. A space from
/// another call must be public now.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000 and for a space
/// from another call that is not public, `TSQ_CLOSED`.
tsq_status tsq_spaces_get_public_spaces_after(const tsq_client *client,
                                              uint32_t limit,
                                              const tsq_space *after,
                                              tsq_space_list **out,
                                              tsq_error **err);

/// Lists the public spaces that follow the public space with this id, like `tsq_spaces_get_public_spaces_after`: for a
/// position that came from outside, such as a parameter of a request.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for an id that names no public space and for a
/// limit outside 1 to 1,000, `TSQ_CLOSED`.
tsq_status tsq_spaces_get_public_spaces_after_id(const tsq_client *client,
                                                 uint32_t limit,
                                                 tsq_str after,
                                                 tsq_space_list **out,
                                                 tsq_error **err);

/// Reads a space with its fidgets, oldest first. A space without fidgets is not found.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when no visible space with a fidget has this id,
/// `TSQ_TOO_LARGE` when the fidgets take more than 64 MiB of memory, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_spaces_get_space_with_fidgets(const tsq_client *client,
                                             tsq_str id,
                                             tsq_space **out,
                                             tsq_error **err);

/// Reads a space with its fidgets, oldest first, of which there may be none.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when no visible space has this id, `TSQ_TOO_LARGE` when the
/// fidgets take more than 64 MiB of memory, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_spaces_get_space_with_any_fidgets(const tsq_client *client,
                                                 tsq_str id,
                                                 tsq_space **out,
                                                 tsq_error **err);

/// Lists the `limit` spaces that follow `after`, by id; the first ones when `after` is absent. For the service. A page has
/// fewer rows when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all (`after` is the id of the last space of the page before); returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other
/// callers, `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
tsq_status tsq_spaces_list_spaces(const tsq_client *client,
                                  uint32_t limit,
                                  tsq_str after,
                                  tsq_space_list **out,
                                  tsq_error **err);

/// Changes the owner of a space and of its files. For the service. The quota of the new owner is not checked here.
///
/// Borrows all; returns the changed row owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` for an unknown space,
/// `TSQ_REFERENCE_MISSING` for an unknown user, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other callers, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_spaces_set_owner(const tsq_client *client,
                                tsq_str id,
                                tsq_str owner_id,
                                tsq_space **out,
                                tsq_error **err);

/// Creates a fidget in a space.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` without a kind,
/// `TSQ_REFERENCE_MISSING` for an unknown space (as the service), `TSQ_FORBIDDEN` for a space that the caller does not
/// own, `TSQ_ALREADY_EXISTS` for an id that another fidget has, `TSQ_INVALID_INPUT` (also for JSON nested deeper than 100),
/// `TSQ_TOO_LARGE`, `TSQ_QUOTA_EXCEEDED` beyond the option max_space_fidgets (not as the service), `TSQ_CLOSED`.
tsq_status tsq_fidgets_create_fidget(const tsq_client *client,
                                     tsq_str space_id,
                                     const tsq_new_fidget *fidget,
                                     tsq_fidget **out,
                                     tsq_error **err);

/// Creates fidgets in a space in one transaction: all or none.
///
/// Borrows all (`fidgets` is an array of `fidgets_len`, `item_size` is `sizeof(tsq_new_fidget)`); returns the rows, in the
/// order of `fidgets`, owned in `out`, which may be NULL. `created_at` increases in this order. Fails like `tsq_fidgets_create_fidget`, for the first item that
/// fails: `tsq_error_row` is its index.
tsq_status tsq_fidgets_create_fidgets(const tsq_client *client,
                                      tsq_str space_id,
                                      const tsq_new_fidget *fidgets,
                                      size_t fidgets_len,
                                      size_t item_size,
                                      tsq_fidget_list **out,
                                      tsq_error **err);

/// Saves positions of a space's fidgets in one transaction: all or none.
///
/// Borrows all (`positions` is an array of `positions_len`); returns the moved fidgets, oldest first, owned in `out`,
/// which may be NULL. Fails with `TSQ_NOT_FOUND` when the caller does not own the space or a fidget is not in it;
/// `TSQ_INVALID_INPUT`, also when a fidget appears twice; `TSQ_TOO_LARGE`; `TSQ_CLOSED`.
tsq_status tsq_fidgets_save_positions(const tsq_client *client,
                                      tsq_str space_id,
                                      const tsq_position *positions,
                                      size_t positions_len,
                                      tsq_fidget_list **out,
                                      tsq_error **err);

/// Reads a fidget by its id.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when no visible fidget has this id,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_fidgets_get_fidget(const tsq_client *client, tsq_str id, tsq_fidget **out, tsq_error **err);

/// Changes the columns that `patch` sets or clears. A zeroed patch changes nothing, not even `updated_at`.
///
/// Borrows all; returns the changed row owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` when no space of
/// the caller contains the fidget, `TSQ_FIELD_MISSING` when the kind is cleared, `TSQ_INVALID_INPUT`, `TSQ_TOO_LARGE`,
/// `TSQ_CLOSED`.
tsq_status tsq_fidgets_update_fidget(const tsq_client *client,
                                     tsq_str id,
                                     const tsq_fidget_patch *patch,
                                     tsq_fidget **out,
                                     tsq_error **err);

/// Deletes a fidget.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` when no space of the caller contains the fidget, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_fidgets_delete_fidget(const tsq_client *client,
                                     tsq_str id,
                                     tsq_error **err);

/// Lists the fidgets of a space, oldest first, then by id. The list of a missing or hidden space is empty.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_TOO_LARGE` when they take more than 64 MiB of memory,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_fidgets_get_space_fidgets(const tsq_client *client,
                                         tsq_str space_id,
                                         tsq_fidget_list **out,
                                         tsq_error **err);

/// Lists at most `limit` fidgets of a space that follow `after`, the last fidget of an earlier page, which may be deleted
/// meanwhile. NULL is the first page. Such pages contain no fidget twice and leave none out, whatever is inserted or deleted
/// meanwhile. A page has fewer fidgets when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
tsq_status tsq_fidgets_get_space_fidgets_after(const tsq_client *client,
                                               tsq_str space_id,
                                               uint32_t limit,
                                               const tsq_fidget *after,
                                               tsq_fidget_list **out,
                                               tsq_error **err);

/// The configuration as a JSON object: its columns by their names.
///
/// Borrows `config`; returns owned in `out`.
tsq_status tsq_community_config_json(const tsq_community_config *config, tsq_string **out, tsq_error **err);

/// Frees a configuration. Takes `config`; NULL is allowed.
void tsq_community_config_free(tsq_community_config *config);

/// The number of configurations; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_community_config_list_len(const tsq_community_config_list *list);

/// The configuration at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_community_config *tsq_community_config_list_at(const tsq_community_config_list *list, size_t index);

/// The list as a JSON array of the objects of `tsq_community_config_json`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_community_config_list_json(const tsq_community_config_list *list,
                                          tsq_string **out,
                                          tsq_error **err);

/// Frees a list with its configurations. Takes `list`; NULL is allowed.
void tsq_community_config_list_free(tsq_community_config_list *list);

/// The domain as a JSON object: its columns by their names.
///
/// Borrows `domain`; returns owned in `out`.
tsq_status tsq_community_domain_json(const tsq_community_domain *domain, tsq_string **out, tsq_error **err);

/// Frees a domain. Takes `domain`; NULL is allowed.
void tsq_community_domain_free(tsq_community_domain *domain);

/// The number of domains; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_community_domain_list_len(const tsq_community_domain_list *list);

/// The domain at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_community_domain *tsq_community_domain_list_at(const tsq_community_domain_list *list, size_t index);

/// The list as a JSON array of the objects of `tsq_community_domain_json`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_community_domain_list_json(const tsq_community_domain_list *list,
                                          tsq_string **out,
                                          tsq_error **err);

/// Frees a list with its domains. Takes `list`; NULL is allowed.
void tsq_community_domain_list_free(tsq_community_domain_list *list);

/// The registration as a JSON object: its columns by their names, camelCase.
///
/// Borrows `registration`; returns owned in `out`.
tsq_status tsq_space_registration_json(const tsq_space_registration *registration,
                                       tsq_string **out,
                                       tsq_error **err);

/// Frees a registration. Takes `registration`; NULL is allowed.
void tsq_space_registration_free(tsq_space_registration *registration);

/// The number of registrations; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_space_registration_list_len(const tsq_space_registration_list *list);

/// The registration at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_space_registration *tsq_space_registration_list_at(const tsq_space_registration_list *list,
                                                             size_t index);

/// The list as a JSON array of the objects of `tsq_space_registration_json`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_space_registration_list_json(const tsq_space_registration_list *list,
                                            tsq_string **out,
                                            tsq_error **err);

/// Frees a list with its registrations. Takes `list`; NULL is allowed.
void tsq_space_registration_list_free(tsq_space_registration_list *list);

/// Creates the configuration of a community, or updates it when `community_id` has one. The service only.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` for a new row without
/// its four required configurations and when a bool is cleared, `TSQ_INVALID_INPUT` (also for an empty id, and for one of more than
/// 50 characters), `TSQ_TOO_LARGE`, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers other than the service, `TSQ_CLOSED`.
tsq_status tsq_communities_save_community_config(const tsq_client *client,
                                                 tsq_str community_id,
                                                 const tsq_community_patch *patch,
                                                 tsq_community_config **out,
                                                 tsq_error **err);

/// Reads the published configuration of a community: a JSON object with the keys `brand`, `assets`, `community`,
/// `fidgets`, `navigation` and `ui`.
///
/// Borrows all; returns owned in `out`: NULL when nothing is published. Fails with `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_communities_get_active_community_config(const tsq_client *client,
                                                       tsq_str community_id,
                                                       tsq_string **out,
                                                       tsq_error **err);

/// Sets the domain of a community, in place of an earlier one of the same type. The service only. The domain is stored
/// normalised: trimmed, in lower case, without scheme, port, path and a leading `www.`. `domain_type` is
/// `blank_subdomain` or `custom`.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for a domain that is
/// taken, `TSQ_REFERENCE_MISSING` for an unknown community, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN`
/// for callers other than the service, `TSQ_CLOSED`.
tsq_status tsq_communities_save_community_domain(const tsq_client *client,
                                                 tsq_str community_id,
                                                 tsq_str domain,
                                                 tsq_str domain_type,
                                                 tsq_community_domain **out,
                                                 tsq_error **err);

/// Deletes a domain. A row with exactly this text comes first, then the normal form: a row that another program wrote may have another
/// form. The service only.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` for an unknown domain, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for callers other than the service, `TSQ_CLOSED`.
tsq_status tsq_communities_delete_community_domain(const tsq_client *client,
                                                   tsq_str domain,
                                                   tsq_error **err);

/// Sets the navigation of a community. `navigation_config` is JSON as text; the absent text clears the column. Allowed
/// for the service and for users with a linked identity key of the community (`tsq_auth_link_identity`). A user gets the row
/// without what only the service reads: keys and address are absent, and `custom_domain_authorized` is false.
///
/// Borrows all; returns the changed row owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` for an unknown
/// community, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other callers, `TSQ_CLOSED`.
tsq_status tsq_communities_update_navigation(const tsq_client *client,
                                             tsq_str community_id,
                                             tsq_str navigation_config,
                                             tsq_community_config **out,
                                             tsq_error **err);

/// Finds the id of the community of a host: the value of an HTTP `Host` header. A community is found by its domain or
/// by its own id.
///
/// Borrows all; returns owned in `out`: NULL when no published community matches. Fails with `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_communities_resolve_community(const tsq_client *client,
                                             tsq_str host,
                                             tsq_string **out,
                                             tsq_error **err);

/// Registers a space, once. Allowed for the service and the space's owner. A user may name only a linked identity key, and no
/// `fid` and no `signature`: readers take them for proven, so the service checks and stores them.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for a registered
/// space, `TSQ_FIELD_MISSING` without a name, `TSQ_FORBIDDEN` for a space that the caller does not own,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_communities_register_space(const tsq_client *client,
                                          const tsq_new_registration *registration,
                                          tsq_space_registration **out,
                                          tsq_error **err);

/// Reads the registration of a space.
///
/// Borrows all; returns owned in `out`: NULL when the space is not registered. Fails with `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_communities_get_space_registration(const tsq_client *client,
                                                  tsq_str space_id,
                                                  tsq_space_registration **out,
                                                  tsq_error **err);

/// Lists the `limit` community configurations, published or not, that follow `after`, by id; the first ones when `after` is absent. For the service. A page has
/// fewer rows when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all (`after` is the id of the last row of the page before); returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other
/// callers, `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
tsq_status tsq_communities_list_community_configs(const tsq_client *client,
                                                  uint32_t limit,
                                                  tsq_str after,
                                                  tsq_community_config_list **out,
                                                  tsq_error **err);

/// Lists the `limit` domains of communities that follow `after`, by id; the first ones when `after` is absent. For the service. A page has
/// fewer rows when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all (`after` is the id of the last row of the page before); returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other
/// callers, `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
tsq_status tsq_communities_list_community_domains(const tsq_client *client,
                                                  uint32_t limit,
                                                  tsq_str after,
                                                  tsq_community_domain_list **out,
                                                  tsq_error **err);

/// Lists the `limit` registrations of spaces that follow `after`, by id; the first ones when `after` is absent. For the service. A page has
/// fewer rows when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all (`after` is the space of the last row of the page before); returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other
/// callers, `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
tsq_status tsq_communities_list_space_registrations(const tsq_client *client,
                                                    uint32_t limit,
                                                    tsq_str after,
                                                    tsq_space_registration_list **out,
                                                    tsq_error **err);

/// Stores a file. The bytes are durable when the call returns. `options` NULL means a cache control of 3,600 seconds and
/// that an existing file is replaced.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_INVALID_INPUT` (status 400) for a malformed path,
/// option or, with `verify`, signature; `TSQ_UNAUTHORIZED` (401) for an anonymous caller and `TSQ_FORBIDDEN` (403) for a user
/// whom the policy refuses; `TSQ_NOT_FOUND` (404) for an unknown bucket; `TSQ_TOO_LARGE` (413) over the option
/// `max_file_size`; `TSQ_ALREADY_EXISTS` (409) for an existing file with `insert_only`, and when a file and a folder would
/// share a name; `TSQ_CONFLICT` (412) when `if_match` names another version; `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
tsq_status tsq_storage_upload(const tsq_client *client,
                              tsq_str bucket,
                              tsq_str path,
                              tsq_bytes data,
                              const tsq_upload_options *options,
                              tsq_file_info **out,
                              tsq_error **err);

/// Stores a file like `tsq_storage_upload` if the caller is the user `user_id`. The service may name any user.
///
/// Borrows all; returns owned in `out`, which may be NULL. For another user it fails with `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` and the sentence `Unauthorized file upload`, without prefix. Else it fails like `tsq_storage_upload`.
tsq_status tsq_storage_secure_upload(const tsq_client *client,
                                     tsq_str bucket,
                                     tsq_str path,
                                     tsq_bytes data,
                                     tsq_str user_id,
                                     const tsq_upload_options *options,
                                     tsq_file_info **out,
                                     tsq_error **err);

/// Opens a file for writing, in bounded memory. The file changes when `tsq_file_writer_finish` returns, and not before.
///
/// Borrows all; returns owned in `out`. Fails like `tsq_storage_upload`, except for what depends on the bytes.
tsq_status tsq_storage_open_writer(const tsq_client *client,
                                   tsq_str bucket,
                                   tsq_str path,
                                   const tsq_upload_options *options,
                                   tsq_file_writer **out,
                                   tsq_error **err);

/// Reads a file whole. For large files prefer `tsq_storage_open_reader`.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` (status 404) when no visible file has this path,
/// `TSQ_INVALID_INPUT` (400), `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
tsq_status tsq_storage_download(const tsq_client *client,
                                tsq_str bucket,
                                tsq_str path,
                                tsq_buffer **out,
                                tsq_error **err);

/// Reads the bytes of a file from `start` to before `end`, counted from 0. An end beyond the file is the file's end;
/// `UINT64_MAX` means all the rest.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` (status 400) for a start after the end or beyond the
/// file. Else it fails like `tsq_storage_download`.
tsq_status tsq_storage_download_range(const tsq_client *client,
                                      tsq_str bucket,
                                      tsq_str path,
                                      uint64_t start,
                                      uint64_t end,
                                      tsq_buffer **out,
                                      tsq_error **err);

/// Opens a file for reading, in bounded memory. The reader gives one version of the file.
///
/// Borrows all; returns owned in `out`. Fails like `tsq_storage_download`.
tsq_status tsq_storage_open_reader(const tsq_client *client,
                                   tsq_str bucket,
                                   tsq_str path,
                                   tsq_file_reader **out,
                                   tsq_error **err);

/// Reads what is known about a file.
///
/// Borrows all; returns owned in `out`. Fails like `tsq_storage_download`.
tsq_status tsq_storage_stat(const tsq_client *client,
                            tsq_str bucket,
                            tsq_str path,
                            tsq_file_info **out,
                            tsq_error **err);

/// Writes to `out`, which may not be NULL, whether a visible file has this path; false after a failure.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` (status 404) for an unknown bucket, `TSQ_INVALID_INPUT` (400) for a malformed path,
/// `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
tsq_status tsq_storage_exists(const tsq_client *client,
                              tsq_str bucket,
                              tsq_str path,
                              bool *out,
                              tsq_error **err);

/// Lists the visible files of a bucket, ordered by the bytes of their paths: the files with a path that starts with `prefix`
/// (absent: all) and follows `after`, the last path of an earlier page (absent: the first page). The prefix may end within a name.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` (status 400) for a limit outside 1 to 1,000,
/// `TSQ_NOT_FOUND` (404) for an unknown bucket, `TSQ_CLOSED`.
tsq_status tsq_storage_list(const tsq_client *client,
                            tsq_str bucket,
                            tsq_str prefix,
                            uint32_t limit,
                            tsq_str after,
                            tsq_file_list **out,
                            tsq_error **err);

/// Copies a file within its bucket. The copy has the type, cache control and metadata of the source; its owner is the caller.
///
/// Borrows all; returns the copy owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` (status 404) when no visible
/// file has the path `source`; else, for `target`, like `tsq_storage_upload`.
tsq_status tsq_storage_copy(const tsq_client *client,
                            tsq_str bucket,
                            tsq_str source,
                            tsq_str target,
                            tsq_overwrite overwrite,
                            tsq_file_info **out,
                            tsq_error **err);

/// Moves a file within its bucket. It keeps its owner, type, cache control and metadata.
///
/// Borrows all; returns the moved file owned in `out`, which may be NULL. Fails like `tsq_storage_copy` and
/// `tsq_storage_delete`.
tsq_status tsq_storage_move(const tsq_client *client,
                            tsq_str bucket,
                            tsq_str source,
                            tsq_str target,
                            tsq_overwrite overwrite,
                            tsq_file_info **out,
                            tsq_error **err);

/// Deletes a file. Also cancels an upload of the caller that ended with code 08007, so that it adds no file later.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` (status 404) when no visible file has this path, `TSQ_UNAUTHORIZED` (401) for an
/// anonymous caller and `TSQ_FORBIDDEN` (403) for a user whom the policy refuses, `TSQ_INVALID_INPUT` (400), `TSQ_CLOSED`.
tsq_status tsq_storage_delete(const tsq_client *client,
                              tsq_str bucket,
                              tsq_str path,
                              tsq_error **err);

/// Deletes the visible files of a bucket that have a path that starts with `prefix` (absent: all). Deletes 100 files at a time, in
/// the order of their paths: all of them or, if the caller may not delete one of them, none of them. Then the call fails, and
/// the files before these 100 are deleted. Writes the number of files to `out`, which may not be NULL; 0 after a failure.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` (status 401) or `TSQ_FORBIDDEN` (403) when the caller may not delete a visible
/// file, `TSQ_NOT_FOUND` (404) for an unknown bucket, `TSQ_INVALID_INPUT` (400), `TSQ_CLOSED`.
tsq_status tsq_storage_delete_prefix(const tsq_client *client,
                                     tsq_str bucket,
                                     tsq_str prefix,
                                     uint64_t *out,
                                     tsq_error **err);

/// Signs a target for `tsq_storage_handle_file` that needs no session: `/BUCKET/PATH?…`. It acts for the caller of this call.
/// It ends after `expires_in_ms` (1 ms to 7 days) or up to a second later, with the caller's right, when the user gets a new
/// password or signs out everywhere, and with `tsq_storage_rotate_url_key`. `options` limits the file that a PUT may store; NULL
/// sets no limit.
///
/// Borrows all; returns owned in `out`. Fails like `tsq_storage_download` for `TSQ_URL_GET` and like `tsq_storage_upload` for
/// `TSQ_URL_PUT`: a URL is only for what the caller may do; `TSQ_INVALID_INPUT` (status 400) for another time, and for
/// `options` that set a limit with `TSQ_URL_GET`.
tsq_status tsq_storage_signed_url(const tsq_client *client,
                                  tsq_str bucket,
                                  tsq_str path,
                                  tsq_url_method method,
                                  uint64_t expires_in_ms,
                                  const tsq_url_options *options,
                                  tsq_string **out,
                                  tsq_error **err);

/// Replaces the key of signed URLs: every URL that was signed before is refused from now on. A request that has
/// begun goes on. For the service.
///
/// Borrows `client`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for every other caller, `TSQ_INVALID_INPUT` if the key is
/// the option `url_signing_key`, `TSQ_CLOSED`.
tsq_status tsq_storage_rotate_url_key(const tsq_client *client,
                                      tsq_error **err);

/// Finishes writes that a crash interrupted, removes bytes without a row and rows without bytes, and reports files with bytes
/// of another size or version than their row says. For the service. `tsq_client_open` finishes unfinished writes too.
///
/// Bytes that a killed writer staged are removed by the next `tsq_client_open`, if the store is a folder that no other client
/// uses; else by a repair when they are an hour old. Nothing is removed while the id in the store's `.townsquare/store` is
/// not the id that the database has recorded.
///
/// Borrows `client`; returns owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for every
/// other caller, `TSQ_CONFIG` for another object store, `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
tsq_status tsq_storage_repair(const tsq_client *client,
                              tsq_repair_report **out,
                              tsq_error **err);

/// The file as a JSON object: the members of the struct by their names, `metadata` as an object.
///
/// Borrows `file`; returns owned in `out`.
tsq_status tsq_file_info_json(const tsq_file_info *file, tsq_string **out, tsq_error **err);

/// Frees what a call returned owned; the file stays. Takes `file`; NULL is allowed.
void tsq_file_info_free(tsq_file_info *file);

/// The number of files; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_file_list_len(const tsq_file_list *list);

/// The file at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_file_info *tsq_file_list_at(const tsq_file_list *list, size_t index);

/// The list as a JSON array of the objects of `tsq_file_info_json`.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_file_list_json(const tsq_file_list *list, tsq_string **out, tsq_error **err);

/// Frees a list; the files stay. Takes `list`; NULL is allowed.
void tsq_file_list_free(tsq_file_list *list);

/// Appends bytes.
///
/// Borrows all. Fails with `TSQ_TOO_LARGE` over the option `max_file_size`, `TSQ_UNAVAILABLE` when the disk is full,
/// `TSQ_INVALID_INPUT` after the writer was finished or aborted. After a failure `tsq_file_writer_finish` fails too.
tsq_status tsq_file_writer_write(tsq_file_writer *writer,
                                 tsq_bytes data,
                                 tsq_error **err);

/// Makes the written bytes the file: durable and whole when the call returns. The writer then only remains to be freed.
///
/// Borrows `writer`; returns owned in `out`, which may be NULL. Fails like `tsq_storage_upload`, and then leaves the file
/// as it was; `TSQ_UNAUTHORIZED` (401) if another user has signed in to the client since the writer was opened, or nobody is signed
/// in any more; `TSQ_INVALID_INPUT` after the writer was finished or aborted.
tsq_status tsq_file_writer_finish(tsq_file_writer *writer,
                                  tsq_file_info **out,
                                  tsq_error **err);

/// Discards the written bytes: the file stays as it was. Does nothing after the writer was finished or aborted.
///
/// Borrows `writer`; NULL is allowed.
void tsq_file_writer_abort(tsq_file_writer *writer);

/// Frees a writer; aborts it unless it was finished. Takes `writer`; NULL is allowed.
void tsq_file_writer_free(tsq_file_writer *writer);

/// What is known about the version that the reader gives; NULL for NULL.
///
/// Borrows `reader`; returns a view that lives as long as `reader`.
const tsq_file_info *tsq_file_reader_info(const tsq_file_reader *reader);

/// Reads the next bytes, up to `len`, into `buffer` and moves on. Writes their number to `out`; 0 is the end. A call may
/// give fewer bytes than `len` before the end.
///
/// Borrows all. Fails with `TSQ_UNAVAILABLE` or `TSQ_INTERNAL` when the file store fails, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_file_reader_read(tsq_file_reader *reader,
                                uint8_t *buffer,
                                size_t len,
                                size_t *out,
                                tsq_error **err);

/// Reads the bytes from `offset`, counted from 0, into `buffer`: `len` of them, or fewer at the end of the file. Writes their
/// number to `out`. The position of `tsq_file_reader_read` does not change.
///
/// Borrows all. Fails with `TSQ_INVALID_INPUT` for an offset beyond the size, and like `tsq_file_reader_read`.
tsq_status tsq_file_reader_read_at(const tsq_file_reader *reader,
                                   uint64_t offset,
                                   uint8_t *buffer,
                                   size_t len,
                                   size_t *out,
                                   tsq_error **err);

/// Frees a reader. Takes `reader`; NULL is allowed.
void tsq_file_reader_free(tsq_file_reader *reader);

/// The report as a JSON object: the members of the struct by their names.
///
/// Borrows `report`; returns owned in `out`.
tsq_status tsq_repair_report_json(const tsq_repair_report *report, tsq_string **out, tsq_error **err);

/// Frees a report. Takes `report`; NULL is allowed.
void tsq_repair_report_free(tsq_repair_report *report);

/// Stores the file `source` of the host, in bounded memory. Calls `progress` (may be NULL) with the bytes that were read
/// and the size of the source; it may cancel.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_INVALID_INPUT` (status 400) when `source` cannot
/// be read, `TSQ_CANCELLED`, and like `tsq_storage_upload`.
tsq_status tsq_storage_upload_from(const tsq_client *client,
                                   tsq_str bucket,
                                   tsq_str path,
                                   tsq_str source,
                                   const tsq_upload_options *options,
                                   tsq_progress_callback progress,
                                   void *user_data,
                                   tsq_file_info **out,
                                   tsq_error **err);

/// Stores what `source` gives, in bounded memory: calls it until it gives no bytes.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_CANCELLED`, and like `tsq_storage_upload`.
tsq_status tsq_storage_upload_stream(const tsq_client *client,
                                     tsq_str bucket,
                                     tsq_str path,
                                     tsq_read_callback source,
                                     void *user_data,
                                     const tsq_upload_options *options,
                                     tsq_file_info **out,
                                     tsq_error **err);

/// Writes a file to `target` on the host, in bounded memory. `target` is whole and durable when the call returns; after a
/// failure it is as before. A new file is for its owner only; an existing file keeps its permissions; of a symbolic link,
/// the file that it names is replaced. Calls `progress` (may be NULL) with the bytes that were written and the size; it may
/// cancel.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_INVALID_INPUT` (status 400) when `target` cannot
/// be written, or is a folder, a device, a pipe, or a symbolic link to such or to nothing; `TSQ_CANCELLED`; and like
/// `tsq_storage_download`.
tsq_status tsq_storage_download_to(const tsq_client *client,
                                   tsq_str bucket,
                                   tsq_str path,
                                   tsq_str target,
                                   tsq_progress_callback progress,
                                   void *user_data,
                                   tsq_file_info **out,
                                   tsq_error **err);

/// Gives a file to `target`, in bounded memory: one version of the file, in pieces and in order.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_CANCELLED`, and like `tsq_storage_download`.
tsq_status tsq_storage_download_stream(const tsq_client *client,
                                       tsq_str bucket,
                                       tsq_str path,
                                       tsq_write_callback target,
                                       void *user_data,
                                       tsq_file_info **out,
                                       tsq_error **err);

/// Writes every file to `TARGET/BUCKET/PATH` on the host, for people and other tools, and their number to `out`: the files
/// of every bucket that was ever declared. For the service. Calls `progress` (may be NULL) with the files that were written and the number of all; it may cancel, which
/// leaves the files that were written.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for every other caller; `TSQ_INVALID_INPUT` (status 400)
/// when `target` is not a new or empty folder or cannot be written; `TSQ_INTERNAL` (status 500) when the bytes of files are
/// gone or of another size: the message names them, and all others are exported; `TSQ_CANCELLED`, `TSQ_CLOSED`.
tsq_status tsq_storage_export_files(const tsq_client *client,
                                    tsq_str target,
                                    tsq_progress_callback progress,
                                    void *user_data,
                                    uint64_t *out,
                                    tsq_error **err);

/// Answers an HTTP request for a file, under the policies: GET, HEAD, PUT and DELETE with `If-Match`, `If-None-Match` and
/// `Range`. The header `Authorization: Bearer TOKEN` names the caller, never the session of `client`; without it and
/// without a signed URL the caller is anonymous.
///
/// Borrows all; returns owned in `out`. A bad request gets a response too (`TSQ_OK` with status 400, 404, …). Fails with
/// `TSQ_CANCELLED` when `body_source` cancels, which leaves nothing; `TSQ_CLOSED`; and `TSQ_INVALID_INPUT` for NULL or
/// text that is not UTF-8.
tsq_status tsq_storage_handle_file(const tsq_client *client,
                                   const tsq_file_request *request,
                                   tsq_file_response **out,
                                   tsq_error **err);

/// Answers an HTTP request for any endpoint: `/api/miniapp-discovery` and below, `/directory` and below (the directory as a page
/// for people), `/files/BUCKET/PATH`, `/events`, and `/health`, which is 200 while the database answers, else 503. Other paths get 404. `request.target` is the target as the client sent it.
/// The header `Authorization: Bearer TOKEN` names the caller, never the session of `client`; without it and without a signed URL
/// the caller is anonymous. The body of GET `/events` has no end: `tsq_file_response_read` waits for the next event.
///
/// Borrows all; returns owned in `out`. A bad request gets a response too (`TSQ_OK` with status 400, 404, …). Fails with
/// `TSQ_CANCELLED` when `body_source` cancels, which leaves nothing; `TSQ_CLOSED`; and `TSQ_INVALID_INPUT` for NULL or
/// text that is not UTF-8.
tsq_status tsq_client_handle_request(const tsq_client *client,
                                     const tsq_file_request *request,
                                     tsq_file_response **out,
                                     tsq_error **err);

/// Reads the next bytes of the body, up to `len`, into `buffer` and moves on. Writes their number to `out`; 0 is the end. A
/// call may give fewer bytes than `len` before the end.
///
/// Borrows all. Fails with `TSQ_UNAVAILABLE` or `TSQ_INTERNAL` when the file store fails, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_file_response_read(tsq_file_response *response,
                                  uint8_t *buffer,
                                  size_t len,
                                  size_t *out,
                                  tsq_error **err);

/// Frees a response. Takes `response`; NULL is allowed.
void tsq_file_response_free(tsq_file_response *response);

/// The path of the order of a space's tabs: `<space_id>/tabOrder` in `spaces`.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_space_path_tab_order(tsq_str space_id, tsq_storage_path **out, tsq_error **err);

/// The path of a tab of a space: `<space_id>/tabs/<name>` in `spaces`. A tab's name consists of letters and digits of any
/// script, hyphens, underscores and spaces.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_space_path_tab(tsq_str space_id,
                              tsq_str name,
                              tsq_storage_path **out,
                              tsq_error **err);

/// The path of an asset of a space: `<space_id>/assets/<name>` in `spaces`. The name may contain folders.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_space_path_asset(tsq_str space_id, tsq_str name, tsq_storage_path **out, tsq_error **err);

/// The path of the private space file: `<owner>/homebase` in `private`. The owner is a user's id or an identity key that the
/// user has linked.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_private_path_homebase(tsq_str owner,
                                     tsq_storage_path **out,
                                     tsq_error **err);

/// The path of a private tab: `<owner>/tabs/<name>` in `private`, with an owner as for `tsq_private_path_homebase` and a
/// name as for `tsq_space_path_tab`.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_private_path_tab(tsq_str owner,
                                tsq_str name,
                                tsq_storage_path **out,
                                tsq_error **err);

/// The path of a shared image, which only the service may write: `images/<name>` in `assets`. The name may contain folders.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_asset_path_image(tsq_str name,
                                tsq_storage_path **out,
                                tsq_error **err);

/// The path of a shared video, which only the service may write: `videos/<name>` in `assets`. The name may contain folders.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_asset_path_video(tsq_str name,
                                tsq_storage_path **out,
                                tsq_error **err);

/// Frees a path. Takes `path`; NULL is allowed.
void tsq_storage_path_free(tsq_storage_path *path);

/// Makes a signed file of the text `file_data`, usually JSON: the JSON object `{"publicKey", "fileData", "fileType",
/// "isEncrypted", "timestamp", "fileName", "signature"}`. `private_key` is the seed of an Ed25519 key in 64 hex digits.
/// Needs no client.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_signed_file_sign(tsq_str file_data,
                                tsq_str private_key,
                                const tsq_sign_options *options,
                                tsq_string **out,
                                tsq_error **err);

/// Whether the JSON text `signed` is a signed file with a valid signature by its `publicKey`. False for every other text.
/// A signature says who signed, not who may write the file: compare `publicKey` with a key that you trust.
///
/// Borrows `signed`.
bool tsq_signed_file_verify(tsq_str signed_);

/// Makes a signed file with encrypted data: only the same private key decrypts it. Needs no client.
///
/// Borrows all; returns the JSON text owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_signed_file_encrypt(tsq_bytes data,
                                   tsq_str private_key,
                                   const tsq_sign_options *options,
                                   tsq_string **out,
                                   tsq_error **err);

/// Verifies the signed file of the JSON text `signed` and decrypts its data.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for text that is not JSON and for a file that does
/// not verify, is not encrypted, or is of another key.
tsq_status tsq_signed_file_decrypt(tsq_str signed_,
                                   tsq_str private_key,
                                   tsq_buffer **out,
                                   tsq_error **err);

/// Switches the change log on, in the database and so for all processes. Does nothing if it is on. The first subscription of the
/// host does so, too; `tsq_realtime_handle_events` never does.
///
/// Borrows `client`. Fails with `TSQ_CLOSED`.
tsq_status tsq_realtime_start(const tsq_client *client,
                              tsq_error **err);

/// Switches the change log off, for all processes, and empties it. Every subscription ends with `TSQ_UNAVAILABLE`, and every cursor
/// expires. The next subscription of a host switches the log on again. The service only.
///
/// Borrows `client`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for another caller, `TSQ_CLOSED`.
tsq_status tsq_realtime_stop(const tsq_client *client,
                             tsq_error **err);

/// Calls `callback` with every committed change that `request` selects, in the order of the commits, exactly once. (On
/// PostgreSQL the statements of transactions that overlap in time are interleaved; the changes of one row are in order.) The
/// subscription is live when this returns. `channel` is a name for logs. See CALLBACKS in the manual.
///
/// Borrows all but `user_data`, which it takes: `destroy` (may be NULL) destroys it, also when this call fails. Returns the
/// subscription owned in `out`, which may be NULL: the subscription then lasts as long as the handle. Fails with
/// `TSQ_INVALID_INPUT` for an unknown table, column or operator, for a value that does not fit its column and for text that is
/// no cursor, `TSQ_CURSOR_EXPIRED` when the feed no longer keeps every change after a cursor and for a cursor of another database,
/// `TSQ_CLOSED`.
tsq_status tsq_realtime_subscribe(const tsq_client *client,
                                  tsq_str channel,
                                  const tsq_change_request *request,
                                  tsq_change_callback callback,
                                  void *user_data,
                                  tsq_destroy destroy,
                                  tsq_subscription **out,
                                  tsq_error **err);

/// The subscription `space-changes`: every change of the space with the id `space_id`.
///
/// As `tsq_realtime_subscribe`.
tsq_status tsq_realtime_on_space_changes(const tsq_client *client,
                                         tsq_str space_id,
                                         tsq_change_callback callback,
                                         void *user_data,
                                         tsq_destroy destroy,
                                         tsq_subscription **out,
                                         tsq_error **err);

/// The subscription `fidget-changes`: every change of the fidgets in the space with the id `space_id`.
///
/// As `tsq_realtime_subscribe`.
tsq_status tsq_realtime_on_fidget_changes(const tsq_client *client,
                                          tsq_str space_id,
                                          tsq_change_callback callback,
                                          void *user_data,
                                          tsq_destroy destroy,
                                          tsq_subscription **out,
                                          tsq_error **err);

/// Returns every committed change that `request` selects as a stream that the host polls. It is live when this returns.
///
/// Borrows all; returns owned in `out`. Fails as `tsq_realtime_subscribe`; with `TSQ_INVALID_INPUT` also for `on_close`.
tsq_status tsq_realtime_changes(const tsq_client *client,
                                const tsq_change_request *request,
                                tsq_change_stream **out,
                                tsq_error **err);

/// Returns the rows of `table` that match `filter` (absent: all) and that the caller may see, and every change after them, with
/// no gap and no repeat. The query keeps the caller that it began with.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_TOO_LARGE` when they take more than 64 MiB of
/// memory, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_realtime_live(const tsq_client *client,
                             tsq_str table,
                             tsq_str filter,
                             tsq_live_query **out,
                             tsq_error **err);

/// Returns the position after the last commit, for `since` and `until` of a request.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
tsq_status tsq_realtime_cursor(const tsq_client *client, tsq_string **out, tsq_error **err);

/// Returns the figures of the feed.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
tsq_status tsq_realtime_get_stats(const tsq_client *client, tsq_realtime_stats **out, tsq_error **err);

/// Answers a request for server-sent events: `/events?table=spaces&filter=id=eq.…`. `method` is GET, HEAD, or OPTIONS for a
/// preflight of another origin; others get 405. The header
/// `Authorization: Bearer TOKEN` names the caller, never the session of `client`; without it the caller is anonymous.
/// `Last-Event-ID` is the cursor to continue from. `tsq_file_response_read` waits for the next event or heartbeat, and
/// `tsq_file_response_free` ends the subscription. If the subscription ends by itself, for instance because the access token
/// expires, is replaced or is revoked, the last event is `event: end` with the status and the reason as JSON.
///
/// Borrows all; returns owned in `out`. A bad request gets a response too: `TSQ_OK` with status 400, 401, 404, 410, or 503
/// while the change log is switched off: a request never switches it on. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_realtime_handle_events(const tsq_client *client,
                                      tsq_str method,
                                      tsq_str target,
                                      const tsq_http_header *headers,
                                      size_t headers_len,
                                      tsq_file_response **out,
                                      tsq_error **err);

/// The name of an event type: `INSERT`, `UPDATE`, `DELETE`, and `*` for `TSQ_EVENT_ANY`; absent for an unknown number.
///
/// Returns a view that lives for ever.
tsq_str tsq_event_type_name(int32_t event);

/// The change as a JSON object: schema, table, eventType, new, old, commit_timestamp, cursor.
///
/// Borrows `change`; returns owned in `out`.
tsq_status tsq_row_change_json(const tsq_row_change *change, tsq_string **out, tsq_error **err);

/// Frees a change. Takes `change`; NULL is allowed.
void tsq_row_change_free(tsq_row_change *change);

/// Waits for the next change, at most `timeout_ms` milliseconds: 0 returns at once, a negative number waits for ever. `*out` is
/// NULL after `TSQ_OK` at the time-out and after the end of the stream; `tsq_change_stream_has_ended` tells them apart. After
/// NULL, the descriptor of `tsq_client_poll_fd` is readable again when a change waits or the stream has ended.
///
/// Borrows `stream`; returns owned in `out`. Fails with the reason that ended the stream, once: `TSQ_CURSOR_EXPIRED` when the
/// host fell too far behind, `TSQ_UNAUTHORIZED` when the session of a live query ended; with `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_change_stream_next(tsq_change_stream *stream,
                                  int64_t timeout_ms,
                                  tsq_row_change **out,
                                  tsq_error **err);

/// Whether `tsq_change_stream_next` has found the end of the stream: it or its client was closed, it has reached `until` of its
/// request, or a call has failed with the reason of the end. False for NULL.
///
/// Borrows `stream`.
bool tsq_change_stream_has_ended(const tsq_change_stream *stream);

/// Ends the stream. A call of `tsq_change_stream_next` that waits on another thread returns. A second call does nothing.
///
/// Borrows `stream`. Fails with `TSQ_INVALID_INPUT`, `TSQ_CLOSED` in a forked child.
tsq_status tsq_change_stream_close(const tsq_change_stream *stream,
                                   tsq_error **err);

/// Frees a stream, which ends it. No other thread may use it any more. Takes `stream`; NULL is allowed.
void tsq_change_stream_free(tsq_change_stream *stream);

/// Number of rows; 0 for NULL.
///
/// Borrows `live`.
size_t tsq_live_query_len(const tsq_live_query *live);

/// The row at `index` when the query began, as JSON: an object with a member for each column. Absent beyond the end.
///
/// Borrows `live`; returns a view that lives as long as `live`.
tsq_str tsq_live_query_row_at(const tsq_live_query *live,
                              size_t index);

/// The changes after these rows. It ends with the caller's session. NULL for NULL.
///
/// Borrows `live`; returns a view that lives as long as `live`: do not free it.
tsq_change_stream *tsq_live_query_changes(const tsq_live_query *live);

/// Frees a live query, which ends its stream. Takes `live`; NULL is allowed.
void tsq_live_query_free(tsq_live_query *live);

/// Frees figures. Takes `stats`; NULL is allowed.
void tsq_realtime_stats_free(tsq_realtime_stats *stats);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOWNSQUARE_H */
