// townsquare.hpp on tables: what owns, what is a view, changes, and exceptions (DESIGN 10).
//
// raii_tables CATALOG FOLDER: in FOLDER/town lies a database with one user, ADA; the catalog is not looked at.

#include <townsquare.hpp>

#include "check.h"

#include <string>
#include <type_traits>
#include <vector>

using townsquare::Client;
using townsquare::CommunityPatch;
using townsquare::Config;
using townsquare::Error;
using townsquare::Fidget;
using townsquare::FidgetList;
using townsquare::NewSpace;
using townsquare::Owned;
using townsquare::Space;
using townsquare::SpaceList;

static_assert(!std::is_copy_constructible_v<Owned<Space>> && std::is_nothrow_move_constructible_v<Owned<Space>>);
static_assert(!std::is_copy_constructible_v<SpaceList> && std::is_nothrow_move_assignable_v<SpaceList>);
static_assert(sizeof(Space) == sizeof(void *) && sizeof(Fidget) == sizeof(void *), "a view is a pointer");
static_assert(std::is_constructible_v<Space, const Owned<Space> &>, "a view of what somebody keeps");
static_assert(!std::is_constructible_v<Space, Owned<Space>>, "no view of what is about to end");
static_assert(!std::is_constructible_v<townsquare::Change<bool>, const char *>, "a text is no truth value");

namespace {

constexpr const char *ADA = "00000000-0000-4000-8000-0000000000ad";

template <typename Call>
int throws(tsq_status kind, std::string_view sentence, Call call) {
    try {
        call();
    } catch (const Error &error) {
        if (error.kind() == kind && sentence == error.what()) return 1;
        std::fprintf(stderr, "  threw %d: %s\n", static_cast<int>(error.kind()), error.what());
    }
    return 0;
}

void spaces(const Client &client, const Client &service) {
    Owned<Space> space = service.spaces().create_space({"Harbour", std::nullopt, ADA});
    CHECK(space.name() == "Harbour" && !space.description() && space.owner_id() == ADA && !space.is_public());
    CHECK(space.created_at() == space.updated_at() && space.created_at() <= std::chrono::system_clock::now());
    const std::string id(space.id());
    CHECK(throws(TSQ_NOT_FOUND, "Get space failed: Record not found", [&] { client.spaces().get_space(id); }));

    townsquare::SpacePatch patch;
    patch.description = "Where ships are";
    patch.is_public = true;
    space = service.spaces().update_space(id, patch);
    CHECK(space.name() == "Harbour" && space.description() == "Where ships are" && space.is_public());
    patch = {};
    patch.description = std::nullopt;
    space = service.spaces().update_space(id, patch);
    CHECK(!space.description() && space.is_public());
    CHECK(service.spaces().update_space(id, {}).updated_at() == space.updated_at());
    CHECK(client.spaces().get_space(id).json().find("\"name\":\"Harbour\"") != std::string::npos);

    const Owned<Fidget> fidget = service.fidgets().create_fidget(id, {"feed", "{\"of\":1}"});
    CHECK(fidget.kind() == "feed" && fidget.config() == "{\"of\":1}" && !fidget.position() && fidget.space_id() == id);
    const Owned<FidgetList> more = service.fidgets().create_fidgets(id, {{"links"}, {"gallery", std::nullopt, "[1]"}});
    CHECK(more.size() == 2 && more[1].position() == "[1]");
    CHECK(service.fidgets().save_positions(id, {{std::string(fidget.id()), "[0]"}, {std::string(more[1].id())}}).size() == 2);
    CHECK(service.fidgets().get_fidget(fidget.id()).position() == "[0]");
    townsquare::FidgetPatch moved;
    moved.position = "[2]";
    CHECK(service.fidgets().update_fidget(fidget.id(), moved).config() == "{\"of\":1}");
    CHECK(fidget.created_at() <= service.fidgets().get_fidget(fidget.id()).updated_at());
    service.fidgets().delete_fidget(more[0].id());
    CHECK(client.fidgets().get_space_fidgets(id).size() == 2 && more.json().front() == '[');

    // Views of what is kept; a moved result is the same one.
    Owned<Space> whole = client.spaces().get_space_with_fidgets(id);
    const Owned<Space> kept = std::move(whole);
    const Space view = kept;
    std::string kinds;
    for (Fidget one : view.fidgets()) kinds.append(one.kind()).append(one.json().empty() ? "?" : "|");
    CHECK(kinds == "feed|gallery|");
    CHECK(space.fidgets().empty() && !space.owner());

    const SpaceList made = service.spaces().create_spaces({{"one", "1", ADA, true}, {"two"}});
    CHECK(made.size() == 2 && made[0].description() == "1" && !made[1].owner_id());
    CHECK(service.spaces().get_user_spaces(ADA).size() == 2);
    const SpaceList open = client.spaces().get_public_spaces();
    CHECK(open.size() == 2 && open[0].owner() && open[0].owner()->id() == ADA && open[0].owner()->email() == "ada@example.com");
    CHECK(open.json().find("\"owner\":{") != std::string::npos && client.spaces().get_public_spaces(1, 1).size() == 1);
    for (Space one : open) service.spaces().delete_space(one.id());
    CHECK(client.spaces().get_public_spaces().empty());

    CHECK(throws(TSQ_FIELD_MISSING, "Create space failed: Required field is missing",
                 [&] { service.spaces().create_space(NewSpace{}); }));
    CHECK(throws(TSQ_INVALID_INPUT, "Get space failed: Argument id is not a UUID", [&] { service.spaces().get_space("17"); }));
}

void communities(const Client &client, const Client &service) {
    CommunityPatch patch{"{\"name\":\"Town\"}", "[]", "1", "null"};
    patch.admin_identity_public_keys = std::vector<std::string>{"0xaa", "0xbb"};
    const auto config = service.communities().save_community_config("town", patch);
    CHECK(config.community_id() == "town" && config.brand_config() == "{\"name\":\"Town\"}" && config.assets_config() == "[]");
    CHECK(config.community_config() == "1" && config.fidgets_config() == "null" && !config.navigation_config());
    CHECK(!config.ui_config() && config.is_published() && !config.custom_domain_authorized() && !config.admin_email());
    CHECK(config.admin_identity_public_keys() == std::vector<std::string_view>({"0xaa", "0xbb"}));
    CHECK(config.id().size() == 36 && config.updated_at() <= std::chrono::system_clock::now() && config.json().front() == '{');
    patch = {};
    patch.admin_identity_public_keys = std::nullopt;
    CHECK(!service.communities().save_community_config("town", patch).admin_identity_public_keys());
    CHECK(service.communities().update_navigation("town", "[7]").navigation_config() == "[7]");
    CHECK(client.communities().get_active_community_config("town")->find("\"navigation\":[7]") != std::string::npos);
    CHECK(!service.communities().update_navigation("town", std::nullopt).navigation_config());
    CHECK(!client.communities().get_active_community_config("village"));

    const auto domain = service.communities().save_community_domain("town", "Town.Example", "custom");
    CHECK(domain.domain() == "town.example" && domain.domain_type() == "custom" && domain.community_id() == "town");
    CHECK(domain.id().size() == 36 && domain.created_at() == domain.updated_at() && domain.json().front() == '{');
    CHECK(client.communities().resolve_community("town.example") == "town");
    service.communities().delete_community_domain("town.example");
    CHECK(!client.communities().resolve_community("town.example"));
    CHECK(throws(TSQ_UNAUTHORIZED,
                 "Delete community domain failed: Database error: permission denied for table community_domains",
                 [&] { client.communities().delete_community_domain("town.example"); }));

    CHECK(!client.communities().get_space_registration(ADA));
    const auto registration = service.communities().register_space({ADA, "Harbour", "navPage", 42});
    CHECK(registration.space_id() == ADA && registration.space_name() == "Harbour" && registration.space_type() == "navPage");
    CHECK(registration.fid() == 42 && !registration.identity_public_key() && !registration.signature());
    CHECK(registration.timestamp() <= std::chrono::system_clock::now() && registration.json().front() == '{');
    CHECK(client.communities().get_space_registration(ADA)->fid() == 42);
    CHECK(throws(TSQ_ALREADY_EXISTS, "Register space failed: Record already exists",
                 [&] { service.communities().register_space({ADA, "Harbour", "navPage"}); }));
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    const std::string folder = argv[2];
    Client client(Config().set("data_dir", folder + "/town").set("catalog_api_key", ""));
    Client service = client.as_service();
    spaces(client, service);
    communities(client, service);

    client.backup(folder + "/copy.db");
    Client::restore(folder + "/copy.db", folder + "/restored");
    {
        const Client restored(Config().set("data_dir", folder + "/restored").set("catalog_api_key", ""));
        CHECK(restored.communities().get_active_community_config("town"));
    }

    const Owned<Space> kept = service.spaces().create_space({"Kept"});
    service.close();
    CHECK(client.is_closed());
    CHECK(throws(TSQ_CLOSED, "Get space failed: The client is closed", [&] { client.spaces().get_space(kept.id()); }));
    CHECK(kept.name() == "Kept");
    return checks_done("raii_tables");
}
