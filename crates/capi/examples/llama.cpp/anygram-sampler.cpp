#include "anygram-sampler.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

anygram_error no_error() {
    anygram_error error{};
    error.struct_size = sizeof error;
    return error;
}

struct State {
    anygram_matcher *matcher = nullptr;
    const llama_vocab *vocab = nullptr;
    std::vector<uint32_t> mask;
    // 0 for none; and how many tokens are left of it.
    uint32_t budget = 0, left = 0;
    anygram_error failed = no_error();

    ~State() { anygram_matcher_free(matcher, nullptr); }

    bool is_ok() const { return failed.code == ANYGRAM_OK; }
};

State *state(const llama_sampler *sampler) { return static_cast<State *>(sampler->ctx); }

const char *name(const llama_sampler *) { return "anygram"; }

void accept(llama_sampler *sampler, llama_token token) {
    auto own = state(sampler);
    if (!own->is_ok()) return;
    bool has_ended = false;
    anygram_matcher_state(own->matcher, nullptr, &has_ended, nullptr, &own->failed);
    // llama.cpp goes on with what its caller likes behind the end.
    if (has_ended) return;
    if (anygram_matcher_advance(own->matcher, static_cast<uint32_t>(token), &own->failed) == ANYGRAM_OK && own->left > 0)
        own->left--;
}

void apply(llama_sampler *sampler, llama_token_data_array *candidates) {
    auto own = state(sampler);
    if (own->is_ok()) {
        if (own->budget > 0)
            anygram_matcher_mask_with_budget(own->matcher, own->left, own->mask.data(), own->mask.size(), &own->failed);
        else
            anygram_matcher_mask(own->matcher, own->mask.data(), own->mask.size(), &own->failed);
    }
    for (size_t at = 0; at < candidates->size; at++) {
        auto &candidate = candidates->data[at];
        auto id = static_cast<uint32_t>(candidate.id);
        bool is_allowed = own->is_ok() ? id / 32 < own->mask.size() && (own->mask[id / 32] >> (id % 32) & 1)
                                       : llama_vocab_is_eog(own->vocab, candidate.id);
        if (!is_allowed) candidate.logit = -INFINITY;
    }
    // What was sorted by logits is not any more.
    candidates->sorted = false;
}

void reset(llama_sampler *sampler) {
    auto own = state(sampler);
    own->failed = no_error();
    own->left = own->budget;
    anygram_matcher_reset(own->matcher, &own->failed);
}

void release(llama_sampler *sampler) { delete state(sampler); }

llama_sampler *clone(const llama_sampler *sampler);

llama_sampler_i interface() {
    llama_sampler_i functions{};
    functions.name = name;
    functions.accept = accept;
    functions.apply = apply;
    functions.reset = reset;
    functions.clone = clone;
    functions.free = release;
    return functions;
}

llama_sampler *make(std::unique_ptr<State> own) {
    static llama_sampler_i functions = interface();
    return llama_sampler_init(&functions, own.release());
}

llama_sampler *clone(const llama_sampler *sampler) {
    auto from = state(sampler);
    auto own = std::make_unique<State>();
    own->vocab = from->vocab;
    own->mask = from->mask;
    own->budget = from->budget;
    own->left = from->left;
    own->failed = from->failed;
    if (anygram_matcher_fork(from->matcher, &own->matcher, nullptr) != ANYGRAM_OK) return nullptr;
    return make(std::move(own));
}

} // namespace

anygram_vocabulary *anygram_llama_vocabulary(const llama_vocab *vocab, anygram_error *error) {
    const int32_t n_tokens = llama_vocab_n_tokens(vocab);
    std::string bytes;
    std::vector<size_t> offsets{0};
    std::vector<uint32_t> eos;
    std::vector<std::string> texts;
    std::vector<std::pair<uint32_t, size_t>> named;
    for (llama_token id = 0; id < n_tokens; id++) {
        const auto attributes = llama_vocab_get_attr(vocab, id);
        const bool is_special = attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_UNUSED);
        if (llama_vocab_is_eog(vocab, id)) eos.push_back(static_cast<uint32_t>(id));
        // The text of a special token is its name, not what it writes.
        std::string piece(64, '\0');
        int32_t length = llama_token_to_piece(vocab, id, &piece[0], static_cast<int32_t>(piece.size()), 0, true);
        if (length < 0) {
            piece.resize(static_cast<size_t>(-length));
            length = llama_token_to_piece(vocab, id, &piece[0], static_cast<int32_t>(piece.size()), 0, true);
        }
        piece.resize(static_cast<size_t>(length < 0 ? 0 : length));
        if (!is_special && !llama_vocab_is_eog(vocab, id)) {
            bytes += piece;
        } else if (!piece.empty()) {
            named.emplace_back(static_cast<uint32_t>(id), texts.size());
            texts.push_back(piece);
        }
        offsets.push_back(bytes.size());
    }
    std::vector<anygram_name> names;
    for (auto &pair : named) names.push_back({pair.first, texts[pair.second].c_str()});
    anygram_special special{};
    special.struct_size = sizeof special;
    special.eos = eos.data();
    special.n_eos = eos.size();
    special.pad = special.mask = ANYGRAM_NO_TOKEN;
    special.names = names.data();
    special.n_names = names.size();
    anygram_vocabulary *vocabulary = nullptr;
    anygram_vocabulary_from_tokens(reinterpret_cast<const uint8_t *>(bytes.data()), offsets.data(),
                                   static_cast<size_t>(n_tokens), &special, &vocabulary, error);
    return vocabulary;
}

llama_sampler *anygram_llama_sampler(const anygram_constraint *constraint, const llama_vocab *vocab, uint32_t budget,
                                     anygram_error *error) {
    auto own = std::make_unique<State>();
    size_t n_words = 0;
    if (anygram_constraint_mask_words(constraint, &n_words, error) != ANYGRAM_OK ||
        anygram_matcher_new(constraint, &own->matcher, error) != ANYGRAM_OK)
        return nullptr;
    own->vocab = vocab;
    own->mask.resize(n_words);
    own->budget = own->left = budget;
    return make(std::move(own));
}

anygram_code anygram_llama_status(const llama_sampler *sampler, anygram_error *error) {
    const auto &failed = state(sampler)->failed;
    if (error != nullptr && error->struct_size >= sizeof *error) *error = failed;
    return failed.code;
}
