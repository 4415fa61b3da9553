// Tiers of the incremental Valiant recognizer: grammars and states as a block sees them, and the memory that it works in. docs/algorithms/valiant.md has the
// equations (T1 to T3, P1 to P3); fill.cuh computes the first three, predict.cuh the others.
#pragma once
#include "layout.cuh"

struct Grammar {
    const u32* image;
    u32 n_symbols, symbol_words, n_lefts, n_terminals, terminal_words, start, is_start_nullable;
    const u32 *left_symbol, *rules, *right, *parent, *lexical, *lexical_symbols, *up, *first, *first_inverse;
    // Sets of symbols: right children; parents of two; those that are enough for another.
    const u32 *is_right, *is_parent, *is_enough;
};

DEVICE Grammar open_grammar(const u32* image) {
    const Image& at = *(const Image*)image;
    Grammar g;
    g.image = image;
    g.n_symbols = at.n_symbols, g.symbol_words = at.symbol_words, g.n_lefts = at.n_lefts;
    g.n_terminals = at.n_terminals, g.terminal_words = at.terminal_words;
    g.start = at.start, g.is_start_nullable = at.is_start_nullable;
    g.left_symbol = image + at.left_symbol, g.rules = image + at.rules, g.right = image + at.right, g.parent = image + at.parent;
    g.lexical = image + at.lexical, g.lexical_symbols = image + at.lexical_symbols;
    g.up = image + at.up, g.first = image + at.first, g.first_inverse = image + at.first_inverse;
    g.is_right = image + at.is_right, g.is_parent = image + at.is_parent, g.is_enough = image + at.is_enough;
    return g;
}

// The states of a sequence, and after them those of a path that goes on from it.
struct View {
    const u32* memory;
    const u32* states;
    u32 n_states;
    const u32* path;
};

DEVICE const u32* record_of(const View& view, u32 row) {
    return view.memory + (row < view.n_states ? view.states[row] : load(view.path + (row - view.n_states)));
}
DEVICE const u32* predicted_of(const u32* record) { return record + RECORD_HEADER; }
DEVICE const u32* viable_of(const Grammar& g, const u32* record) { return record + RECORD_HEADER + g.symbol_words; }
DEVICE u32 spans_at(const Grammar& g) { return aligned(RECORD_HEADER + g.symbol_words + g.terminal_words); }
DEVICE const Span* spans_of(const Grammar& g, const u32* record) { return (const Span*)(record + spans_at(g)); }

// What threads of a block tell each other.
enum Vars { ANY_READ, ANY_CARRIED, ROOT, SENTENCE, N_SPANS, ROW_WORDS, RESULT, ADDRESS, STATES, STATES_TOO, N_VARS };

// The memory of a block for a chart of `n_rows` rows. ../src/layout.rs computes how much that is (`small_words`, `middle_words`, `draft_words`).
struct Scratch {
    u32 n_rows, n_words, stride;
    // The blocks that work on this chart, and which of them this is; it has the words w with w % n_ranks == rank.
    u32 rank, n_ranks;
    // [2] in a team: the words that are final, and the blocks that are done.
    u32* team;
    // [n_vars], [symbol_words] twice, [terminal_words], and for each of the block's words whether it has any rows.
    u32 *vars, *seeds, *predicted, *viable, *any;
    // [n_symbols] rows of the word at work: those that predictions allow, those that are new, those that are known.
    u32 *may, *fresh, *done;
    // [n_lefts]
    u32 *list, *firsts, *lengths, *addresses;
    // [n_lefts][VALUES] a word of rows of a left child that ends in one of 32 states.
    u32* values;
    // [words of the block][stride] rows in the making; [n_words][stride] rows that are final, which is the same array if the block is alone.
    u32 *draft, *board;
};

// One more than the states of a word, so that neither 32 states nor 32 left children lie in one bank.
static const u32 VALUES = 33;

DEVICE u32 own_words(u32 n_words, u32 n_ranks) { return (n_words + n_ranks - 1) / n_ranks; }
DEVICE u32 small_words(const Grammar& g, u32 n_own) { return N_VARS + 2 * g.symbol_words + g.terminal_words + n_own; }
DEVICE u32 middle_words(const Grammar& g) { return 3 * g.n_symbols + (4 + VALUES) * g.n_lefts; }
// Odd, so that the words of one symbol are in different banks.
DEVICE u32 stride_of(const Grammar& g) { return g.n_symbols | 1; }
DEVICE u64 draft_words(const Grammar& g, u32 n_own) { return (u64)stride_of(g) * n_own; }

// Lays out the memory for a chart behind `taken` words of shared memory: all of it there, or all but the draft, or the small part only. The rest is in the
// block's part of the workspace. False if there is too little.
DEVICE bool open_scratch(const Grammar& g, const Pool& pool, u32 n_rows, u32 taken, u32 rank, u32 n_ranks, Scratch& s) {
    s.n_rows = n_rows, s.n_words = (n_rows + 31) / 32;
    s.stride = stride_of(g);
    s.rank = rank, s.n_ranks = n_ranks;
    u32 n_own = own_words(s.n_words, n_ranks);
    u32 small = taken + small_words(g, n_own), middle = middle_words(g);
    u64 draft = draft_words(g, n_own), outside = 0;
    if (small > pool.shared_words) return false;
    if ((u64)small + middle > pool.shared_words) outside = middle + draft;
    else if (small + middle + draft > pool.shared_words) outside = draft;
    if (outside > pool.workspace_words) return false;
    u32* at = shared_memory() + taken;
    u32* workspace = pool.workspace + (u64)(blockIdx.y * gridDim.x + blockIdx.x) * pool.workspace_words;
    s.vars = at, at += N_VARS;
    s.seeds = at, at += g.symbol_words;
    s.predicted = at, at += g.symbol_words;
    s.viable = at, at += g.terminal_words;
    s.any = at, at += n_own;
    if (outside > draft) at = workspace;
    s.may = at, at += g.n_symbols;
    s.fresh = at, at += g.n_symbols;
    s.done = at, at += g.n_symbols;
    s.list = at, at += g.n_lefts;
    s.firsts = at, at += g.n_lefts;
    s.lengths = at, at += g.n_lefts;
    s.addresses = at, at += g.n_lefts;
    s.values = at, at += VALUES * g.n_lefts;
    s.draft = outside == draft ? workspace : at;
    s.board = s.draft, s.team = 0;
    if (n_ranks > 1) {
        if (draft_words(g, s.n_words) > pool.board_words) return false;
        s.board = pool.boards + blockIdx.y * pool.board_words;
        s.team = pool.teams + blockIdx.y * 2;
    }
    return true;
}

DEVICE bool is_own(const Scratch& s, u32 word) { return word % s.n_ranks == s.rank; }
DEVICE u32* own_any(const Scratch& s, u32 word) { return s.any + word / s.n_ranks; }
DEVICE u32* own_draft(const Scratch& s, u32 word) { return s.draft + (u64)(word / s.n_ranks) * s.stride; }
DEVICE u32* board_of(const Scratch& s, u32 word) { return s.board + (u64)word * s.stride; }

DEVICE void clear(const Grammar& g, Scratch& s) {
    u32 n_own = own_words(s.n_words, s.n_ranks);
    __syncthreads();
    for (u64 i = threadIdx.x; i < draft_words(g, n_own); i += blockDim.x) s.draft[i] = 0;
    for (u32 i = threadIdx.x; i < n_own; i += blockDim.x) s.any[i] = 0;
    for (u32 i = threadIdx.x; i < g.symbol_words; i += blockDim.x) s.seeds[i] = 0, s.predicted[i] = 0;
    if (threadIdx.x < N_VARS) s.vars[threadIdx.x] = 0;
    __syncthreads();
}
