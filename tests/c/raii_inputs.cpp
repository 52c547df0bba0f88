// townsquare.hpp passes the size of each input (manual, INPUTS). The program replaces the functions that borrow an input by
// objects that look at `size` before they call the library.
//
// raii_inputs CATALOG FOLDER: the folder is empty; the catalog is not read.

#include <townsquare.h>

#include <cstddef>
#include <set>
#include <type_traits>
#include <typeindex>
#include <utility>

namespace {

struct Seen {
    std::set<std::type_index> types = {};
    bool is_sizeof = true;
} seen;

// Whether a struct begins with its size.
template <typename T, typename = void>
constexpr bool is_input = false;
template <typename T>
constexpr bool is_input<T, std::void_t<decltype(std::declval<T>().size)>> = std::is_same_v<decltype(std::declval<T>().size), std::size_t>;

template <typename Argument>
void look_at(Argument argument) {
    using Input = std::remove_cv_t<std::remove_pointer_t<Argument>>;
    if constexpr (std::is_pointer_v<Argument> && is_input<Input>) {
        seen.types.insert(typeid(Input));
        seen.is_sizeof = seen.is_sizeof && argument->size == sizeof(Input);
    } else {
        static_cast<void>(argument);
    }
}

template <auto Function>
struct LookingAt {
    template <typename... Arguments>
    tsq_status operator()(Arguments... arguments) const {
        (look_at(arguments), ...);
        return Function(arguments...);
    }
};

}  // namespace

#define tsq_auth_import_credentials (LookingAt<tsq_auth_import_credentials>{})
#define tsq_auth_update_user (LookingAt<tsq_auth_update_user>{})
#define tsq_client_handle_request (LookingAt<tsq_client_handle_request>{})
#define tsq_client_move_to (LookingAt<tsq_client_move_to>{})
#define tsq_communities_register_space (LookingAt<tsq_communities_register_space>{})
#define tsq_communities_save_community_config (LookingAt<tsq_communities_save_community_config>{})
#define tsq_discovery_handle_request (LookingAt<tsq_discovery_handle_request>{})
#define tsq_discovery_search_mini_apps (LookingAt<tsq_discovery_search_mini_apps>{})
#define tsq_fidgets_create_fidget (LookingAt<tsq_fidgets_create_fidget>{})
#define tsq_fidgets_create_fidgets (LookingAt<tsq_fidgets_create_fidgets>{})
#define tsq_fidgets_update_fidget (LookingAt<tsq_fidgets_update_fidget>{})
#define tsq_realtime_changes (LookingAt<tsq_realtime_changes>{})
#define tsq_realtime_subscribe (LookingAt<tsq_realtime_subscribe>{})
#define tsq_signed_file_encrypt (LookingAt<tsq_signed_file_encrypt>{})
#define tsq_signed_file_sign (LookingAt<tsq_signed_file_sign>{})
#define tsq_spaces_create_space (LookingAt<tsq_spaces_create_space>{})
#define tsq_spaces_create_spaces (LookingAt<tsq_spaces_create_spaces>{})
#define tsq_spaces_update_space (LookingAt<tsq_spaces_update_space>{})
#define tsq_storage_handle_file (LookingAt<tsq_storage_handle_file>{})
#define tsq_storage_signed_url (LookingAt<tsq_storage_signed_url>{})
#define tsq_storage_upload (LookingAt<tsq_storage_upload>{})

#include <townsquare.hpp>

#include "check.h"
#include "throws.hpp"

#include <string>

using townsquare::Client;
using townsquare::Config;

namespace {

constexpr const char *BCRYPT = "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe";
constexpr const char *EMAIL = "user@town.example";
constexpr const char *KEY = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
constexpr const char *PASSWORD = "correct horse";

// Whether the last calls passed inputs of exactly these types, and sizeof in each.
template <typename... Inputs>
bool passed() {
    const Seen last = std::exchange(seen, Seen());
    return last.is_sizeof && last.types == std::set<std::type_index>{typeid(Inputs)...};
}

void rows(const Client &service) {
    const auto space = service.spaces().create_space({"Harbor"});
    CHECK(passed<tsq_new_space>());
    CHECK(service.spaces().create_spaces({{"one"}, {"two"}, {"three"}}).size() == 3);
    CHECK(passed<tsq_new_space>());
    townsquare::SpacePatch renamed;
    renamed.name = "Quay";
    service.spaces().update_space(space->id(), renamed);
    CHECK(passed<tsq_space_patch>());

    const auto fidget = service.fidgets().create_fidget(space->id(), {"clock"});
    CHECK(passed<tsq_new_fidget>());
    CHECK(service.fidgets().create_fidgets(space->id(), {{"one"}, {"two"}}).size() == 2);
    CHECK(passed<tsq_new_fidget>());
    townsquare::FidgetPatch changed;
    changed.kind = "feed";
    service.fidgets().update_fidget(fidget->id(), changed);
    CHECK(passed<tsq_fidget_patch>());

    townsquare::CommunityPatch community;
    community.brand_config = community.assets_config = community.community_config = community.fidgets_config = "{}";
    service.communities().save_community_config("town", community);
    CHECK(passed<tsq_community_patch>());
    service.communities().register_space({space->id(), "Harbor", "profile"});
    CHECK(passed<tsq_new_registration>());
}

void accounts(const Client &service, const Client &user) {
    service.auth().import_credentials({{std::nullopt, EMAIL, BCRYPT}});
    CHECK(passed<tsq_new_credential>());
    user.auth().update_user(PASSWORD, {EMAIL});
    CHECK(passed<tsq_user_patch>());
}

void files(const Client &user) {
    townsquare::UploadOptions options;
    options.content_type = "text/plain";
    user.storage().upload("assets", "notes", "text", options);
    CHECK(passed<tsq_upload_options>());
    CHECK(!user.storage().signed_url("assets", "notes", TSQ_URL_GET, std::chrono::minutes(1)).empty());
    CHECK(passed<tsq_url_options>());
    CHECK(user.storage().handle_file({"GET", "/assets/notes"}).status() == 200);
    CHECK(passed<tsq_file_request>());
    CHECK(user.handle_request({"GET", "/health"}).status() == 200);
    CHECK(passed<tsq_file_request>());
    CHECK(townsquare::verify_file(townsquare::sign_file("{}", KEY)));
    CHECK(passed<tsq_sign_options>());
    const townsquare::Buffer decrypted = townsquare::decrypt_file(townsquare::encrypt_file("text", KEY), KEY);
    CHECK(decrypted.view() == "text");
    CHECK(passed<tsq_sign_options>());
}

void requests(const Client &user, const std::string &folder) {
    CHECK(user.discovery().search_mini_apps("game").empty());
    CHECK(passed<tsq_selection>());
    const auto response = user.discovery().handle("GET", "/api/miniapp-discovery", {}, {{"accept", "*/*"}});
    CHECK(response->status() == 200);
    CHECK(passed<tsq_http_request>());
    townsquare::ChangeRequest request;
    request.table = "spaces";
    CHECK(!user.realtime().changes(request).next(std::chrono::milliseconds(0)));
    CHECK(passed<tsq_change_request>());
    const townsquare::Subscription subscription = user.realtime().subscribe("channel", request, [](const townsquare::RowChange &) {});
    CHECK(passed<tsq_change_request>());
    user.move_to(Config().set("data_dir", folder + "/moved"));
    CHECK(passed<tsq_move_options>());
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    const std::string folder = argv[2];
    const Client client(Config().set("data_dir", folder + "/town").set("catalog_api_key", ""));
    const Client service = client.as_service();
    service.auth().sign_up(EMAIL, PASSWORD);
    const auto session = service.auth().sign_in(EMAIL, PASSWORD);
    const Client user = client.as_user(session->access_token());
    service.realtime().start();
    CHECK(passed<>());
    rows(service);
    accounts(service, user);
    files(user);
    requests(user, folder);
    return checks_done("raii_inputs");
}
