// Browses the mini app directory in the terminal: the list follows every key, the arrows choose, Enter prints the address of the
// app, Escape leaves.
//
//   browse DATA_DIR CATALOG_URL      browse /tmp/town sample:
//
// One loop waits for the keyboard and for the library, whose callbacks run on this thread: no lock is needed.

#include <townsquare.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace {

void print(const std::string &text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

// Leaves the second screen and restores the settings of the terminal.
struct Restore {
    void operator()(const termios *before) const {
        print("\x1b[?1049l");
        tcsetattr(STDIN_FILENO, TCSAFLUSH, before);
    }
};

winsize window() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 4) size.ws_row = 24;
    if (size.ws_col < 20) size.ws_col = 80;
    return size;
}

// The first `columns` characters. Control characters are left out: the catalog may be hostile.
std::string fitting(std::string_view text, std::size_t columns) {
    std::string out;
    unsigned char before = 0;
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        const bool is_control = byte < 0x20 || byte == 0x7F || (before == 0xC2 && byte < 0xA0);
        if (before == 0xC2 && is_control) out.pop_back();
        before = byte;
        if (is_control) continue;
        if ((byte & 0xC0U) != 0x80U && columns-- == 0) break;
        out += character;
    }
    return out;
}

class Browser {
public:
    explicit Browser(const townsquare::Client &client) : client_(client) {
        client.discovery().preload([this](const townsquare::Error *error) {
            status_ = error != nullptr ? error->what() : "";
            is_loaded_ = error == nullptr;
        });
    }

    void draw() {
        const winsize size = window();
        const std::string typed = fitting(query_, size.ws_col - 3U);
        std::string screen = "\x1b[H\x1b[2J> " + typed + "\n" + fitting(status_, size.ws_col) + "\n";
        if (is_loaded_) {
            townsquare::Selection selection;
            selection.limit = size.ws_row - 3U;
            apps_ = query_.empty() ? client_.discovery().get_trending_mini_apps("24h", selection)
                                   : client_.discovery().search_mini_apps(query_, selection);
            chosen_ = apps_->empty() ? 0 : std::min(chosen_, apps_->size() - 1);
            for (std::size_t i = 0; i < apps_->size(); i++) {
                const townsquare::MiniApp app = (*apps_)[i];
                const std::string line = std::string(app.name()) + "  " + std::string(app.subtitle().value_or(""));
                screen += (i == chosen_ ? "\x1b[7m" : "") + fitting(line, size.ws_col) + "\x1b[0m\n";
            }
        }
        print(screen + "\x1b[1;" + std::to_string(3 + typed.size()) + "H");
    }

    // Takes the bytes of keys. Returns false when the user leaves.
    bool press(std::string_view keys) {
        for (std::size_t i = 0; i < keys.size(); i++) {
            const char key = keys[i];
            if (key == '\x1b' && keys.substr(i + 1, 1) == "[") {
                const char arrow = i + 2 < keys.size() ? keys[i + 2] : '\0';
                if (arrow == 'A' && chosen_ > 0) chosen_--;
                if (arrow == 'B') chosen_++;
                i += 2;
            } else if (key == '\r' || key == '\n') {
                if (apps_ && !apps_->empty()) address_ = (*apps_)[std::min(chosen_, apps_->size() - 1)].home_url();
                return false;
            } else if (key == '\x1b' || key == '\x03' || key == '\x04') {
                return false;
            } else if (key == '\x7f' || key == '\b') {
                while (!query_.empty() && (static_cast<unsigned char>(query_.back()) & 0xC0U) == 0x80U) query_.pop_back();
                if (!query_.empty()) query_.pop_back();
            } else if (static_cast<unsigned char>(key) >= 0x20) {
                query_ += key;
                chosen_ = 0;
            }
        }
        return true;
    }

    // Of the app that the user chose; empty without one.
    [[nodiscard]] const std::string &address() const { return address_; }

private:
    const townsquare::Client &client_;
    std::string query_, address_, status_ = "loading";
    bool is_loaded_ = false;
    std::size_t chosen_ = 0;
    std::optional<townsquare::MiniApps> apps_;
};

std::string browse(const townsquare::Client &client) {
    pollfd waits[2] = {{STDIN_FILENO, POLLIN, 0}, {client.poll_fd(), POLLIN, 0}};
    Browser browser(client);
    termios before{};
    tcgetattr(STDIN_FILENO, &before);
    termios raw = before;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    const std::unique_ptr<termios, Restore> restore(&before);
    print("\x1b[?1049h");
    char keys[64];
    for (browser.draw(); poll(waits, 2, -1) > 0; browser.draw()) {
        if (waits[1].revents != 0) client.dispatch();
        if (waits[0].revents == 0) continue;
        const ssize_t length = read(STDIN_FILENO, keys, sizeof keys);
        if (length <= 0 || !browser.press({keys, static_cast<std::size_t>(length)})) break;
    }
    return browser.address();
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3 || isatty(STDIN_FILENO) == 0) {
        std::fputs("usage, in a terminal: browse DATA_DIR CATALOG_URL\n", stderr);
        return 2;
    }
    try {
        townsquare::Config config;
        config.set("data_dir", argv[1]).set("catalog_url", argv[2]);
        const townsquare::Client client(config);
        const std::string address = browse(client);
        if (!address.empty()) std::printf("%s\n", address.c_str());
        return 0;
    } catch (const townsquare::Error &error) {
        std::fprintf(stderr, "browse: %s\n", error.what());
        return 1;
    }
}
