// Generates texts with a model of llama.cpp under a constraint, and reads each back.
//
//   generate MODEL.gguf FORMAT SOURCE-FILE N-TEXTS N-TOKENS
//
// FORMAT and SOURCE-FILE as for `anygram_compile`. Prints the texts; fails where one that ended is not a
// sentence, or where one did not end within its tokens.
#include "anygram-sampler.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

anygram_error error{};

// Ends the program where something did not work.
template <class T>
T check(T made, const char *what) {
    if (made) return made;
    std::fprintf(stderr, "%s: %s\n", what, error.message);
    std::exit(1);
}

} // namespace

int main(int n_arguments, char **arguments) {
    if (n_arguments != 6) {
        std::fprintf(stderr, "generate MODEL.gguf FORMAT SOURCE-FILE N-TEXTS N-TOKENS\n");
        return 2;
    }
    error.struct_size = sizeof error;
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_backend_init();
    auto model = check(llama_model_load_from_file(arguments[1], llama_model_default_params()), "the model");
    auto vocab = llama_model_get_vocab(model);
    std::ifstream file(arguments[3]);
    const std::string source{std::istreambuf_iterator<char>(file), {}};

    auto vocabulary = check(anygram_llama_vocabulary(vocab, &error), "the vocabulary");
    anygram_language *language = nullptr;
    anygram_compile(arguments[2], reinterpret_cast<const uint8_t *>(source.data()), source.size(), nullptr, 0, nullptr,
                    &language, &error);
    check(language, arguments[3]);
    anygram_constraint *constraint = nullptr;
    anygram_constraint_new(language, vocabulary, &constraint, &error);
    check(constraint, "the constraint");

    const int n_texts = std::atoi(arguments[4]);
    const auto budget = static_cast<uint32_t>(std::atoi(arguments[5]));
    int n_wrong = 0;
    for (int text = 0; text < n_texts; text++) {
        auto parameters = llama_context_default_params();
        parameters.n_ctx = budget + 16;
        // The model is tiny: more threads would wait for one another.
        parameters.n_threads = parameters.n_threads_batch = 1;
        auto context = check(llama_init_from_model(model, parameters), "the context");
        auto constrained = check(anygram_llama_sampler(constraint, vocab, budget, &error), "the sampler");
        auto chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
        llama_sampler_chain_add(chain, constrained);
        llama_sampler_chain_add(chain, llama_sampler_init_top_k(40));
        llama_sampler_chain_add(chain, llama_sampler_init_dist(static_cast<uint32_t>(text)));
        // A clone in the middle of a text goes on like the original.
        llama_token token = llama_vocab_bos(vocab) < 0 ? 0 : llama_vocab_bos(vocab);
        std::vector<uint32_t> tokens;
        bool has_ended = false;
        while (!has_ended && tokens.size() <= budget) {
            llama_decode(context, llama_batch_get_one(&token, 1));
            token = llama_sampler_sample(chain, context, -1);
            if (anygram_llama_status(constrained, &error) != ANYGRAM_OK) break;
            has_ended = llama_vocab_is_eog(vocab, token);
            if (!has_ended) tokens.push_back(static_cast<uint32_t>(token));
            if (tokens.size() == 3) {
                auto copy = llama_sampler_clone(chain);
                llama_sampler_free(chain);
                chain = copy;
                constrained = llama_sampler_chain_get(chain, 0);
            }
        }
        std::string written(16 * tokens.size() + 16, '\0');
        size_t n_bytes = 0;
        anygram_vocabulary_decode(vocabulary, tokens.data(), tokens.size(), reinterpret_cast<uint8_t *>(&written[0]),
                                  written.size(), &n_bytes, &error);
        written.resize(n_bytes);
        bool is_sentence = false;
        anygram_language_read(language, reinterpret_cast<const uint8_t *>(written.data()), n_bytes, &is_sentence, nullptr,
                              nullptr, &error);
        std::printf("%s\n", written.c_str());
        if (!has_ended || !is_sentence) {
            std::printf("WRONG: has_ended %d, is_sentence %d: %s\n", has_ended, is_sentence, error.message);
            n_wrong++;
        }
        llama_sampler_free(chain);
        llama_free(context);
    }
    anygram_constraint_free(constraint, nullptr);
    anygram_language_free(language, nullptr);
    anygram_vocabulary_free(vocabulary, nullptr);
    llama_model_free(model);
    std::printf("%d texts, %d wrong\n", n_texts, n_wrong);
    return n_wrong == 0 ? 0 : 1;
}
