// A program outside of the repository: it opens a client and writes and reads a row, with and without exceptions. C++17 and
// newer.
//
// program FOLDER: the data folder, which does not exist.

#include <townsquare.hpp>

#include <cstdio>

using townsquare::Client;

namespace {

int row(const Client &client) {
    const Client service = client.as_service();
    townsquare::NewSpace harbor;
    harbor.name = "Harbor";
    const auto space = service.spaces().create_space(harbor);
    const auto file = service.storage().upload("assets", "images/a.txt", "bytes");
    const tsq_str name = space->get()->name;
    std::printf("townsquare %s: %.*s\n", TSQ_VERSION, TSQ_ARG(name));
    return space->name() == "Harbor" && file->size() == 5 && service.spaces().list_spaces().size() == 1 ? 0 : 1;
}

constexpr const char *missing_id = "00000000-0000-4000-8000-000000000000";

void failure(const Client &client) {
    (void)client.spaces().get_space(missing_id);
}

}  // namespace

// An exception ends it.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char **argv) {
    if (argc != 2) return 2;
    townsquare::Config config;
    config.set("data_dir", argv[1]);
    const Client client(config);
    const townsquare::Subscription changes = client.realtime().on_space_changes(missing_id, [](townsquare::RowChange) {});
    if (row(client) != 0) return 1;
    std::fflush(stdout);
#if defined(__cpp_lib_expected) && !defined(TSQ_NO_EXCEPTIONS)
    const auto missing = townsquare::attempt([&] { return client.spaces().get_space(missing_id); });
    if (missing || missing.error().kind() != TSQ_NOT_FOUND) return 1;
    if (townsquare::attempt([&] { failure(client); }) || !townsquare::attempt([] {})) return 1;
#endif
#ifdef TSQ_NO_EXCEPTIONS
    // Ends the program with SIGABRT.
    failure(client);
    return 1;
#else
    try {
        failure(client);
    } catch (const townsquare::Error &error) {
        return error.kind() == TSQ_NOT_FOUND ? 0 : 1;
    }
    return 1;
#endif
}
