// The tables of townsquare.hpp: ownership, views, inputs, changes and exceptions (DESIGN 10).
//
// raii_tables CATALOG FOLDER: FOLDER/town contains a database with one user, ADA; the catalog is not read.

#include <townsquare.hpp>

#include "check.h"
#include "throws.hpp"

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>
#if __cplusplus >= 202002L
#include <ranges>
#endif

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

// What would dangle does not compile.
template <typename T, typename = void>
constexpr bool reads = false;
template <typename T>
constexpr bool reads<T, std::void_t<decltype(std::declval<T>().operator->()->id())>> = true;
static_assert(reads<const Owned<Space> &> && !reads<Owned<Space>> && !reads<const Owned<Space>>, "no view of a temporary record");

template <typename T, typename = void>
constexpr bool iterates = false;
template <typename T>
constexpr bool iterates<T, std::void_t<decltype(std::declval<T>().begin())>> = true;
static_assert(iterates<const SpaceList &> && !iterates<SpaceList>, "no view of a temporary list");
static_assert(iterates<townsquare::FidgetListView>, "a view may be a temporary");

template <typename T, typename = void>
constexpr bool dereferences = false;
template <typename T>
constexpr bool dereferences<T, std::void_t<decltype(*std::declval<T>())>> = true;
using PublicSpace = townsquare::PublicSpaces::Iterator;
static_assert(dereferences<const PublicSpace &> && !dereferences<PublicSpace>, "the page of a temporary iterator ends with it");

// Text is set from string views, optional or not, and not from nullptr.
using townsquare::Change;
using townsquare::Text;
static_assert(std::is_convertible_v<std::string_view, Text> && std::is_convertible_v<std::optional<std::string_view>, Text>);
static_assert(std::is_convertible_v<std::string_view, Change<std::string>> && std::is_convertible_v<const char *, Change<std::string>>);
static_assert(!std::is_constructible_v<Text, std::nullptr_t> && !std::is_constructible_v<Change<std::string>, std::nullptr_t>);
static_assert(!std::is_assignable_v<Change<std::string> &, std::nullptr_t>);
static_assert(!std::is_constructible_v<Change<bool>, const char *>, "a text is not a bool");

#if __cplusplus >= 202002L
static_assert(std::ranges::input_range<townsquare::PublicSpaces>);
static_assert(std::ranges::random_access_range<const SpaceList> && std::ranges::sized_range<const SpaceList>);
static_assert(std::ranges::random_access_range<const FidgetList> && std::ranges::random_access_range<townsquare::FidgetListView>);
#endif

namespace {

constexpr const char *ADA = "00000000-0000-4000-8000-0000000000ad";

void absent_texts() {
    // What std::getenv returns for a variable that is not set.
    const char *const unset = nullptr;
    char *const writable = nullptr;
    for (const Text &absent : {Text(unset), Text(writable), Text(std::optional<const char *>(unset))}) CHECK(!absent.value());
    Text text("set");
    CHECK(text.value() == "set");
    text = std::optional<const char *>("other");
    CHECK(text.value() == "other");
    text = "";
    CHECK(text.value() == "");
    text = unset;
    CHECK(text.borrowed().ptr == nullptr && text.borrowed().len == 0);
    Change<std::string> change(unset);
    CHECK(change.change() == TSQ_CLEAR && change.value().empty());
    change = "set";
    CHECK(change.change() == TSQ_SET && change.value() == "set");
    change = writable;
    CHECK(change.change() == TSQ_CLEAR && change.value().empty());
}

void spaces(const Client &client, const Client &service) {
    Owned<Space> space = service.spaces().create_space({"Harbour", std::nullopt, ADA});
    CHECK(space->name() == "Harbour" && !space->description() && space->owner_id() == ADA && !space->is_public());
    CHECK(space->created_at() == space->updated_at() && space->created_at() <= std::chrono::system_clock::now());
    const std::string id(space->id());
    CHECK(throws(TSQ_NOT_FOUND, "Get space failed: Record not found", [&] { return client.spaces().get_space(id); }));

    // A string_view, also one that is not NUL-terminated.
    const std::string_view view_of_text = std::string_view("Where ships are, and more").substr(0, 15);
    townsquare::SpacePatch patch;
    patch.description = view_of_text;
    patch.is_public = true;
    space = service.spaces().update_space(id, patch);
    CHECK(space->name() == "Harbour" && space->description() == "Where ships are" && space->is_public());
    patch = {};
    patch.description = std::nullopt;
    space = service.spaces().update_space(id, patch);
    CHECK(!space->description() && space->is_public());
    const Owned<Space> unchanged = service.spaces().update_space(id, {});
    CHECK(unchanged->updated_at() == space->updated_at());
    CHECK(space->json().find("\"name\":\"Harbour\"") != std::string::npos);
    const Owned<Space> copy = service.spaces().create_space({space->name(), space->description(), space->owner_id()});
    CHECK(copy->name() == space->name() && !copy->description() && copy->owner_id() == ADA);
    service.spaces().delete_space(copy->id());

    // A create with an id can be repeated.
    townsquare::NewSpace chosen{"Chosen"};
    chosen.id = "0f0f0f0f-0000-4000-8000-0000000000cc";
    const Owned<Space> first = service.spaces().create_space(chosen);
    const Owned<Space> repeated = service.spaces().create_space(chosen);
    CHECK(first->id() == *chosen.id.value() && repeated->created_at() == first->created_at());
    chosen.is_public = true;
    CHECK(throws(TSQ_ALREADY_EXISTS, "Create space failed: Record already exists", [&] { return service.spaces().create_space(chosen); }));
    service.spaces().delete_space(first->id());
    try {
        service.fidgets().create_fidgets(id, {{"a"}, {}});
        CHECK(false);
    } catch (const Error &error) {
        CHECK(error.kind() == TSQ_FIELD_MISSING && error.row() == 1 && error.column() == "type");
    }

    const Owned<Fidget> fidget = service.fidgets().create_fidget(id, {"feed", "{\"of\":1}"});
    CHECK(fidget->kind() == "feed" && fidget->config() == "{\"of\":1}" && !fidget->position() && fidget->space_id() == id);
    const FidgetList more = service.fidgets().create_fidgets(id, {{"links"}, {"gallery", std::nullopt, "[1]"}});
    CHECK(more.size() == 2 && more[1].position() == "[1]");
    CHECK(service.fidgets().save_positions(id, {{fidget->id(), "[0]"}, {more[1].id()}}).size() == 2);
    const Owned<Fidget> saved = service.fidgets().get_fidget(fidget->id());
    CHECK(saved->position() == "[0]" && fidget->created_at() <= saved->updated_at());
    townsquare::FidgetPatch moved;
    moved.position = "[2]";
    const Owned<Fidget> updated = service.fidgets().update_fidget(fidget->id(), moved);
    CHECK(updated->config() == "{\"of\":1}" && updated->position() == "[2]");
    service.fidgets().delete_fidget(more[0].id());
    CHECK(client.fidgets().get_space_fidgets(id).size() == 2 && more.json().front() == '[');
    const FidgetList page = client.fidgets().get_space_fidgets_after(id, 1);
    CHECK(page.size() == 1 && client.fidgets().get_space_fidgets_after(id, 2, page[0]).size() == 1);

    // Views live as long as their owner, also after it moved.
    Owned<Space> whole = client.spaces().get_space_with_fidgets(id);
    const Owned<Space> kept = std::move(whole);
    const Space view = *kept;
    std::string kinds;
    for (Fidget one : view.fidgets()) kinds.append(one.kind()).append(one.json().empty() ? "?" : "|");
    CHECK(kinds == "feed|gallery|");
    CHECK(space->fidgets().empty() && !space->owner());

    const SpaceList made = service.spaces().create_spaces({{"one", "1", ADA, true}, {"two"}});
    CHECK(made.size() == 2 && made[0].description() == "1" && !made[1].owner_id());
    CHECK((made.begin() + 1)[0].name() == "two" && made.end() - made.begin() == 2 && made.begin() < made.end());
    CHECK(service.spaces().get_user_spaces(ADA).size() == 2);
    const SpaceList open = client.spaces().get_public_spaces();
    CHECK(open.size() == 2 && open[0].owner() && open[0].owner()->id() == ADA && open[0].owner()->email() == "ada@example.com");
    CHECK(open.json().find("\"owner\":{") != std::string::npos && client.spaces().get_public_spaces(1, 1).size() == 1);
    for (Space one : open) service.spaces().delete_space(one.id());
    CHECK(client.spaces().get_public_spaces().empty());

    CHECK(throws(TSQ_FIELD_MISSING, "Create space failed: Required field is missing",
                 [&] { return service.spaces().create_space(NewSpace{}); }));
    CHECK(throws(TSQ_INVALID_INPUT, "Get space failed: Argument id is not a UUID", [&] { return service.spaces().get_space("17"); }));
}

void communities(const Client &client, const Client &service) {
    CommunityPatch patch{"{\"name\":\"Town\"}", "[]", "1", "null"};
    patch.admin_identity_public_keys = std::vector<std::string>{"0xaa", "0xbb"};
    const auto config = service.communities().save_community_config("town", patch);
    CHECK(config->community_id() == "town" && config->brand_config() == "{\"name\":\"Town\"}" && config->assets_config() == "[]");
    CHECK(config->community_config() == "1" && config->fidgets_config() == "null" && !config->navigation_config());
    CHECK(!config->ui_config() && config->is_published() && !config->custom_domain_authorized() && !config->admin_email());
    CHECK(config->admin_identity_public_keys() == std::vector<std::string_view>({"0xaa", "0xbb"}));
    CHECK(config->id().size() == 36 && config->updated_at() <= std::chrono::system_clock::now() && config->json().front() == '{');
    patch = {};
    patch.admin_identity_public_keys = std::nullopt;
    const auto without_keys = service.communities().save_community_config("town", patch);
    CHECK(!without_keys->admin_identity_public_keys());
    const auto with_navigation = service.communities().update_navigation("town", "[7]");
    CHECK(with_navigation->navigation_config() == "[7]");
    CHECK(client.communities().get_active_community_config("town")->find("\"navigation\":[7]") != std::string::npos);
    const auto without_navigation = service.communities().update_navigation("town", std::nullopt);
    CHECK(!without_navigation->navigation_config());
    CHECK(!client.communities().get_active_community_config("village"));

    const auto domain = service.communities().save_community_domain("town", "Town.Example", "custom");
    CHECK(domain->domain() == "town.example" && domain->domain_type() == "custom" && domain->community_id() == "town");
    CHECK(domain->id().size() == 36 && domain->created_at() == domain->updated_at() && domain->json().front() == '{');
    CHECK(client.communities().resolve_community("town.example") == "town");
    service.communities().delete_community_domain("town.example");
    CHECK(!client.communities().resolve_community("town.example"));
    CHECK(throws(TSQ_UNAUTHORIZED,
                 "Delete community domain failed: Database error: permission denied for table community_domains",
                 [&] { client.communities().delete_community_domain("town.example"); }));

    CHECK(!client.communities().get_space_registration(ADA));
    const auto registration = service.communities().register_space({ADA, "Harbour", "navPage", 42});
    CHECK(registration->space_id() == ADA && registration->space_name() == "Harbour" && registration->space_type() == "navPage");
    CHECK(registration->fid() == 42 && !registration->identity_public_key() && !registration->signature());
    CHECK(registration->timestamp() <= std::chrono::system_clock::now() && registration->json().front() == '{');
    const auto found = client.communities().get_space_registration(ADA);
    CHECK(found && (*found)->fid() == 42);
    CHECK(throws(TSQ_ALREADY_EXISTS, "Register space failed: Record already exists",
                 [&] { return service.communities().register_space({ADA, "Harbour", "navPage"}); }));
}

void pages(const Client &client, const Client &service) {
    for (int number = 0; number < 5; number++) {
        NewSpace space;
        space.name = "Row";
        space.is_public = true;
        service.spaces().create_space(space);
    }
    const SpaceList all = client.spaces().get_public_spaces(1000);
    CHECK(all.size() >= 5);
    const SpaceList after = client.spaces().get_public_spaces_after(2, all[1]);
    const SpaceList after_id = client.spaces().get_public_spaces_after(1, all[1].id());
    CHECK(after.size() == 2 && after[0].id() == all[2].id() && after[1].id() == all[3].id());
    CHECK(after_id.size() == 1 && after_id[0].id() == all[2].id());
    CHECK(throws(TSQ_INVALID_INPUT, "Get public spaces failed: after names no public space: 00000000-0000-4000-8000-000000000000",
                 [&] { return client.spaces().get_public_spaces_after(1, "00000000-0000-4000-8000-000000000000"); }));
    const townsquare::Spaces rows = client.spaces();
    for (const std::uint32_t size : {1u, 2u, 5u, 100u}) {
        std::size_t seen = 0;
        for (const Space &space : rows.iter_public_spaces(size)) {
            CHECK(seen < all.size() && space.id() == all[seen].id());
            seen++;
        }
        CHECK(seen == all.size());
    }
    CHECK(throws(TSQ_INVALID_INPUT, "Get public spaces failed: limit is 1 to 1000, not 0",
                 [&] { return rows.iter_public_spaces(0).begin(); }));
}

void lists(const Client &client, const Client &service) {
    const Owned<Space> space = service.spaces().create_space({"Listed"});
    CHECK(service.spaces().list_spaces().size() >= 1);
    CHECK(service.spaces().list_spaces(1).size() == 1);
    const Owned<Space> found = service.spaces().get_space_with_any_fidgets(space->id());
    CHECK(found->name() == "Listed");
    const townsquare::UserList users = service.auth().list_users();
    CHECK(users.size() == 1 && users[0].email() == "ada@example.com");
    CHECK(service.auth().list_users(10, users[0].id()).empty());
    const Owned<Space> handed = service.spaces().set_owner(space->id(), users[0].id());
    CHECK(handed->owner_id() == users[0].id());
    const townsquare::CommunityConfigList configs = service.communities().list_community_configs();
    for (const townsquare::CommunityConfig &config : configs) CHECK(!config.community_id().empty());
    const townsquare::CommunityDomainList domains = service.communities().list_community_domains();
    for (const townsquare::CommunityDomain &domain : domains) CHECK(!domain.domain().empty());
    const townsquare::SpaceRegistrationList registrations = service.communities().list_space_registrations();
    for (const townsquare::SpaceRegistration &row : registrations) CHECK(!row.space_id().empty());
    const Client anonymous = service.as_anonymous();
    CHECK(throws(TSQ_UNAUTHORIZED, "List spaces failed: Database error: permission denied for table spaces",
                 [&] { return anonymous.spaces().list_spaces(); }));
    CHECK(!client.is_closed());
}

void rows(const Client &client, const Client &service, const std::string &folder) {
    std::string spaces = "[";
    std::size_t count = 0;
    {
        townsquare::RowExport exported = service.export_rows({"spaces"});
        while (const std::optional<Owned<townsquare::ExportedRow>> row = exported.next()) {
            CHECK((*row)->table() == "spaces" && (*row)->json().find("{\"table\":\"spaces\",\"row\":{") == 0);
            spaces.append(count++ == 0 ? "" : ",").append((*row)->values());
        }
        CHECK(!exported.next() && count > 0);
    }
    spaces.append("]");
    const Owned<townsquare::RowImportReport> report = service.import_rows("spaces", spaces);
    CHECK(report->inserted() == 0 && report->unchanged() == count && report->problems() == 0);
    const Client other(Config().set("data_dir", folder + "/other").set("catalog_api_key", ""));
    const Client target = other.as_service();
    const Owned<townsquare::RowImportReport> dry = target.import_rows("spaces", spaces, {true});
    CHECK(dry->inserted() + dry->problems() == count && dry->problems() > 0 && dry->json().find("reference_missing") != std::string::npos);
    const townsquare::RowProblem problem = dry->problem(0);
    CHECK(problem.kind() == "reference_missing" && problem.column() == "owner_id" && problem.table() == "users" && problem.value() == ADA);
    CHECK(problem.row() < count && target.spaces().list_spaces().empty());
    std::size_t all = 0;
    townsquare::RowExport exported = service.export_rows();
    while (exported.next()) all++;
    CHECK(all > count);
    CHECK(throws(TSQ_UNAUTHORIZED, "Export rows failed: Database error: permission denied for table users",
                 [&] { return client.export_rows(); }));
    CHECK(throws(TSQ_UNAUTHORIZED, "Import rows failed: Database error: permission denied for table users",
                 [&] { return client.import_rows("spaces", "[]"); }));

    const Owned<townsquare::MigrationPlan> plan = Client::plan_migrations(Config().set("data_dir", folder + "/town"));
    CHECK(plan->is_current() && !plan->is_new() && plan->size() > 0 && (*plan)[0].is_applied());
    CHECK(!(*plan)[0].name().empty() && !(*plan)[0].about().empty() && plan->json().find("\"is_current\":true") != std::string::npos);
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
    absent_texts();
    spaces(client, service);
    communities(client, service);

    client.backup(folder + "/copy.db");
    Client::restore(folder + "/copy.db", folder + "/restored");
    {
        const Client restored(Config().set("data_dir", folder + "/restored").set("catalog_api_key", ""));
        CHECK(restored.communities().get_active_community_config("town"));
    }

    pages(client, service);
    lists(client, service);
    rows(client, service, folder);
    const Owned<Space> kept = service.spaces().create_space({"Kept"});
    Client other = client.as_service();
    other.close();
    CHECK(other.is_closed() && !service.is_closed() && !client.is_closed());
    CHECK(throws(TSQ_CLOSED, "Get space failed: The handle is closed", [&] { return other.spaces().get_space(kept->id()); }));
    const Owned<Space> again = service.spaces().get_space(kept->id());
    CHECK(again->name() == "Kept");
    client.close();
    CHECK(client.is_closed() && service.is_closed());
    CHECK(throws(TSQ_CLOSED, "Get space failed: The client is closed", [&] { return client.spaces().get_space(kept->id()); }));
    CHECK(kept->name() == "Kept");
    return checks_done("raii_tables");
}
