// A canvas is filled in any order: which tokens its holes can hold, and the likeliest completion.
//
//   c++ -std=c++17 -I ../include canvas.cpp -lanygram_c && ./a.out
#include <anygram.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

// Calls a function with an error at the end, and throws what it says.
template <class Function, class... Arguments>
void call(Function function, Arguments... arguments) {
    anygram_error error{};
    error.struct_size = sizeof error;
    if (function(arguments..., &error) != ANYGRAM_OK) throw std::runtime_error(error.message);
}

// A handle that is freed in the end.
template <class Handle, anygram_code (*Free)(Handle *, anygram_error *)>
struct Freed {
    void operator()(Handle *handle) const { Free(handle, nullptr); }
};
template <class Handle, anygram_code (*Free)(Handle *, anygram_error *)>
using Owned = std::unique_ptr<Handle, Freed<Handle, Free>>;

// What a function makes, which writes a handle before the error.
template <class Result, class Function, class... Arguments>
Result make(Function function, Arguments... arguments) {
    typename Result::pointer handle = nullptr;
    call(function, arguments..., &handle);
    return Result(handle);
}

using Vocabulary = Owned<anygram_vocabulary, anygram_vocabulary_free>;
using Language = Owned<anygram_language, anygram_language_free>;
using Constraint = Owned<anygram_constraint, anygram_constraint_free>;
using Solver = Owned<anygram_solver, anygram_solver_free>;

} // namespace

int main() try {
    const std::string_view tokens[] = {"(", ")", "x", "+", "x+", ""};
    const uint32_t eos = 5;
    std::string bytes;
    std::vector<size_t> offsets{0};
    for (auto token : tokens) offsets.push_back((bytes += token).size());
    anygram_special special{};
    special.struct_size = sizeof special;
    special.eos = &eos;
    special.n_eos = 1;
    special.pad = special.mask = ANYGRAM_NO_TOKEN;
    auto data = reinterpret_cast<const uint8_t *>(bytes.data());
    auto vocabulary = make<Vocabulary>(anygram_vocabulary_from_tokens, data, offsets.data(), size_t{6},
                                       static_cast<const anygram_special *>(&special));

    const std::string grammar = "start: sum\nsum: item (\"+\" item)*\nitem: \"x\" | \"(\" sum \")\"";
    auto source = reinterpret_cast<const uint8_t *>(grammar.data());
    auto language = make<Language>(anygram_compile, "lark", source, grammar.size(),
                                   static_cast<const anygram_option *>(nullptr), size_t{0},
                                   static_cast<const anygram_cancel *>(nullptr));
    auto constraint = make<Constraint>(anygram_constraint_new, language.get(), vocabulary.get());
    auto solver = make<Solver>(anygram_solver_new, constraint.get());

    // ( _ _ ) _ _: four holes, of which the last two may be EOS.
    const std::vector<int64_t> slots{0, ANYGRAM_HOLE, ANYGRAM_HOLE, 1, ANYGRAM_HOLE, ANYGRAM_HOLE};
    const anygram_canvas canvas{sizeof canvas, slots.data(), slots.size(), ANYGRAM_SENTENCE, -1};
    std::vector<uint32_t> rows(4);
    call(anygram_solver_admissible, solver.get(), &canvas, rows.data(), size_t{4}, size_t{1}, size_t{1},
         static_cast<bool *>(nullptr));
    const char *names[] = {"(", ")", "x", "+", "x+", "EOS"};
    for (size_t hole = 0; hole < rows.size(); hole++) {
        std::printf("hole %zu:", hole);
        for (int id = 0; id < 6; id++)
            if (rows[hole] >> id & 1) std::printf(" %s", names[id]);
        std::printf("\n");
    }

    // The likeliest completion where the model prefers `+` everywhere, then EOS.
    std::vector<float> log_probs;
    for (int hole = 0; hole < 4; hole++)
        for (float value : {-3.f, -3.f, -3.f, -1.f, -3.f, -2.f}) log_probs.push_back(value);
    std::vector<uint32_t> best(slots.size());
    size_t n_best = 0;
    double log_prob = 0;
    call(anygram_solver_best, solver.get(), &canvas, log_probs.data(), size_t{4}, size_t{6}, best.data(),
         best.size(), &n_best, &log_prob);
    std::printf("likeliest (%.1f):", log_prob);
    for (auto token : best) std::printf(" %s", names[token]);
    std::printf("\n");
    return rows[0] == 0x11 && rows[2] == 0x2a && n_best == 6 ? 0 : 1;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
