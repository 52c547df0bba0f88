// Prints the committed changes of spaces as lines of JSON from the event loop of Qt, until its input ends.
//
//   qt DATA_DIR
//
// The callbacks run on the thread of the loop, so they may use widgets and other objects of Qt without a lock. An exception must
// not leave a function that Qt calls.

#include <townsquare.hpp>

#include <QCoreApplication>
#include <QSocketNotifier>
#include <QThread>

#include <cstdio>
#include <unistd.h>

namespace {

int failed(const townsquare::Error &error) {
    std::fprintf(stderr, "qt: %s\n", error.what());
    return 1;
}

// Runs the loop of Qt until the input ends.
int run(const QCoreApplication &loop, const townsquare::Client &service) {
    // Before the subscription, so that its callback runs in the loop.
    const QSocketNotifier library(service.poll_fd(), QSocketNotifier::Read);
    QObject::connect(&library, &QSocketNotifier::activated, &loop, [&service] {
        try {
            service.dispatch();
        } catch (const townsquare::Error &error) {
            QCoreApplication::exit(failed(error));
        }
    });

    townsquare::ChangeRequest request;
    request.table = "spaces";
    const auto subscription = service.realtime().subscribe("qt", request, [&loop](townsquare::RowChange change) {
        Q_ASSERT(QThread::currentThread() == loop.thread());
        std::puts(change.json().c_str());
        std::fflush(stdout);
    });

    const QSocketNotifier input(STDIN_FILENO, QSocketNotifier::Read);
    QObject::connect(&input, &QSocketNotifier::activated, &loop, [] {
        char ignored[256];
        if (read(STDIN_FILENO, ignored, sizeof ignored) <= 0) QCoreApplication::quit();
    });
    std::fprintf(stderr, "watching spaces\n");
    return QCoreApplication::exec();
}

}  // namespace

int main(int argc, char **argv) {
    const QCoreApplication loop(argc, argv);
    if (argc != 2) {
        std::fprintf(stderr, "usage: qt DATA_DIR\n");
        return 2;
    }
    try {
        townsquare::Config config;
        config.set("data_dir", argv[1]);
        const townsquare::Client client(config);
        return run(loop, client.as_service());
    } catch (const townsquare::Error &error) {
        return failed(error);
    }
}
