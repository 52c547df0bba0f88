// The first program of the book once more, in C++: results free themselves, failures are exceptions.
#include <iostream>
#include <townsquare.hpp>

int main() {
    try {
        townsquare::Client client(townsquare::Config().set("data_dir", ":memory:").set("catalog_url", "sample:"));
        const auto apps = client.discovery().search_mini_apps("chess", {3});
        for (const townsquare::MiniApp app : apps) std::cout << app.name() << ' ' << app.home_url() << '\n';

        client.auth().sign_up("ann@town.example", "correct horse");
        client.auth().sign_in("ann@town.example", "correct horse");  // from here on the client acts for Ann
        townsquare::NewSpace harbor;
        harbor.name = "Harbor";
        harbor.is_public = true;
        client.spaces().create_space(harbor);

        const auto spaces = client.spaces().get_public_spaces();
        for (const townsquare::Space space : spaces) std::cout << "public space: " << space.name() << '\n';
    } catch (const townsquare::Error &error) {
        std::cerr << error.what() << '\n' << error.explanation() << '\n';
        return 1;
    }
    return 0;
}
