// The check of the C++ programs that a call throws an error with an exact sentence.
#ifndef THROWS_HPP
#define THROWS_HPP

#include <townsquare.hpp>

#include <cstdio>
#include <string>
#include <string_view>

// Whether a call throws an error of this kind whose text is this sentence and, if there is one, the reason.
template <typename Call>
int throws(tsq_status kind, std::string_view sentence, Call call) {
    try {
        static_cast<void>(call());
    } catch (const townsquare::Error &error) {
        std::string text(sentence);
        if (!error.reason().empty()) text.append(": ").append(error.reason());
        if (error.kind() == kind && text == error.what()) return 1;
        std::fprintf(stderr, "  threw %d: %s\n", static_cast<int>(error.kind()), error.what());
    }
    return 0;
}

#endif
