// Tiers of the incremental Valiant recognizer: grammars and states as a block sees them, and the memory that
// it works in. docs/algorithms/valiant.md has the equations (T1 to T3, P1 to P3); fill.cuh computes the first
// three and P2, predict.cuh the others.
#pragma once
#include "layout.cuh"

struct Grammar {
    const u32* image;
    u32 n_symbols, symbol_words, n_lefts, n_terminals, terminal_words;

    // A header field, and the table that one points to. Both are read where they are needed: a dozen
    // addresses would take registers that the kernels lack.
    METHOD u32 field(u32 Image::*of) const { return fetch(&(((const Image*)image)->*of)); }
    METHOD const u32* table(u32 Image::*of) const { return image + field(of); }
    // Whether a set of symbols of the image has one.
    METHOD bool has(u32 Image::*set, u32 symbol) const {
        return is_set(fetch(table(set) + symbol / 32), symbol);
    }
};

DEVICE Grammar open_grammar(const u32* image) {
    Grammar g = {image, 0, 0, 0, 0, 0};
    g.n_symbols = g.field(&Image::n_symbols), g.symbol_words = g.field(&Image::symbol_words),
        g.n_lefts = g.field(&Image::n_lefts);
    g.n_terminals = g.field(&Image::n_terminals), g.terminal_words = g.field(&Image::terminal_words);
    return g;
}

// How old the records are that a piece of code reads.
//
//   SETTLED earlier launches wrote all of them: the read-only path may have them. RECENT this block wrote
//   some of them in this launch, before a barrier: ordinary reads see them, the read-only path might not.
enum Age { SETTLED, RECENT };

template <Age AGE, typename T>
DEVICE T read(const T* place) {
    if constexpr (AGE == SETTLED) return fetch(place);
    else return *place;
}

// The states of a sequence, and after them those of a path that goes on from it, whose addresses are in
// shared memory.
template <Age AGE>
struct View {
    const u32* memory;
    const u32* states;
    u32 n_states;
    const u32* path;
};

// The list of states is settled in every launch: `step` adds an entry behind those that it reads.
template <Age AGE>
DEVICE const u32* record_of(const View<AGE>& view, u32 row) {
    return view.memory + (row < view.n_states ? fetch(view.states + row) : view.path[row - view.n_states]);
}
DEVICE const u32* predicted_of(const u32* record) { return record + RECORD_HEADER; }
DEVICE const u32* viable_of(const Grammar& g, const u32* record) {
    return record + RECORD_HEADER + g.symbol_words;
}
DEVICE u32 spans_at(const Grammar& g) { return aligned(RECORD_HEADER + g.symbol_words + g.terminal_words); }
template <Age AGE>
DEVICE Span read_span(const Grammar& g, const u32* record, u32 at) {
    uint4 span = read<AGE>((const uint4*)(record + spans_at(g)) + at);
    return {span.x, span.y, span.z, span.w};
}

// What threads of a block tell each other.
enum Vars { ANY_READ, ANY_CARRIED, ROOT, SENTENCE, N_SPANS, ROW_WORDS, RESULT, ADDRESS, STATES, STATES_TOO,
    N_VARS };

// One more than the states of a word, so that neither 32 states nor 32 left children lie in one bank.
static const u32 VALUES = 33;

// The memory of a block for a chart of `n_rows` rows. ../src/layout.rs computes how much that is
// (`small_words`, `middle_words`, `draft_words`, `board_words`). Three pieces, whose parts are found by
// adding: what is held in registers is few addresses.
struct Scratch {
    u32 n_rows, n_words;
    // The blocks that work on this chart, and which of them this is; it has the words w with w % n_ranks ==
    // rank.
    u32 rank, n_ranks;
    // Words of shared memory before the small part; and of the grammar.
    u32 taken, n_symbols, symbol_words, terminal_words, n_lefts;
    // [2] in a team: the words that are final, and the blocks that are done.
    u32* team;
    u32* middle;
    // [words of the block][stride] rows in the making; [n_words][stride] rows that are final, which is the
    // same array if the block is alone. In a team, behind them, [n_ranks][symbol_words]: the seeds that each
    // block has found.
    u32 *draft, *board;

    // Always in shared memory: [n_vars], [symbol_words] twice, [terminal_words], and for each of the block's
    // words whether it has any rows.
    METHOD u32* vars() const { return shared_memory() + taken; }
    METHOD u32* seeds() const { return vars() + N_VARS; }
    METHOD u32* predicted() const { return seeds() + symbol_words; }
    METHOD u32* viable() const { return predicted() + symbol_words; }
    METHOD u32* any() const { return viable() + terminal_words; }
    // [n_symbols] rows of the word at work: those that predictions allow, those that are new, those that are
    // known.
    METHOD u32* may() const { return middle; }
    METHOD u32* fresh() const { return middle + n_symbols; }
    METHOD u32* done() const { return middle + 2 * n_symbols; }
    // [n_lefts] while rows are computed: in which of 32 states a left child has `values`.
    METHOD u32* there() const { return middle + 3 * n_symbols; }
    // [n_lefts] afterwards, of the spans.
    METHOD u32* list() const { return middle + 3 * n_symbols; }
    METHOD u32* firsts() const { return list() + n_lefts; }
    METHOD u32* lengths() const { return list() + 2 * n_lefts; }
    METHOD u32* addresses() const { return list() + 3 * n_lefts; }
    // [n_lefts][VALUES] a word of rows of a left child that ends in one of 32 states; rubbish where `there`
    // has no bit.
    METHOD u32* values() const { return list() + 4 * n_lefts; }
    // Odd, so that the words of one symbol are in different banks.
    METHOD u32 stride() const { return n_symbols | 1; }
};

DEVICE u32 own_words(u32 n_words, u32 n_ranks) { return (n_words + n_ranks - 1) / n_ranks; }
DEVICE u32 small_words(const Grammar& g, u32 n_own) {
    return N_VARS + 2 * g.symbol_words + g.terminal_words + n_own;
}
DEVICE u32 middle_words(const Grammar& g) { return 3 * g.n_symbols + (4 + VALUES) * g.n_lefts; }
DEVICE u64 draft_words(const Grammar& g, u32 n_own) { return (u64)(g.n_symbols | 1) * n_own; }
DEVICE u64 board_words(const Grammar& g, u32 n_words, u32 n_ranks) {
    return draft_words(g, n_words) + (u64)n_ranks * g.symbol_words;
}

// Lays out the memory for a chart behind `taken` words of shared memory: all of it there, or all but the
// draft, or the small part only. The rest is in the block's part of the workspace. False if there is too
// little.
DEVICE bool open_scratch(const Grammar& g, const Pool& pool, u32 n_rows, u32 taken, u32 rank, u32 n_ranks,
    Scratch& s) {
    s.n_rows = n_rows, s.n_words = (n_rows + 31) / 32;
    s.rank = rank, s.n_ranks = n_ranks;
    s.taken = taken, s.n_symbols = g.n_symbols, s.symbol_words = g.symbol_words,
        s.terminal_words = g.terminal_words, s.n_lefts = g.n_lefts;
    u32 n_own = own_words(s.n_words, n_ranks);
    u32 small = taken + small_words(g, n_own), middle = middle_words(g);
    u64 draft = draft_words(g, n_own), outside = 0;
    if (small > pool.shared_words) return false;
    if ((u64)small + middle > pool.shared_words) outside = middle + draft;
    else if (small + middle + draft > pool.shared_words) outside = draft;
    if (outside > pool.workspace_words) return false;
    u32* workspace = pool.workspace + (u64)(blockIdx.y * gridDim.x + blockIdx.x) * pool.workspace_words;
    s.middle = outside > draft ? workspace : shared_memory() + small;
    s.draft = outside == draft ? workspace : s.middle + middle;
    s.board = s.draft, s.team = 0;
    if (n_ranks > 1) {
        if (board_words(g, s.n_words, n_ranks) > pool.board_words) return false;
        s.board = pool.boards + blockIdx.y * pool.board_words;
        s.team = pool.teams + blockIdx.y * 2;
    }
    return true;
}

DEVICE bool is_own(const Scratch& s, u32 word) { return word % s.n_ranks == s.rank; }
DEVICE u32* own_any(const Scratch& s, u32 word) { return s.any() + word / s.n_ranks; }
DEVICE u32* own_draft(const Scratch& s, u32 word) { return s.draft + (u64)(word / s.n_ranks) * s.stride(); }
DEVICE u32* board_of(const Scratch& s, u32 word) { return s.board + (u64)word * s.stride(); }
DEVICE u32* seeds_of(const Scratch& s, u32 rank) {
    return board_of(s, s.n_words) + (u64)rank * s.symbol_words;
}

DEVICE void clear(const Grammar& g, const Scratch& s) {
    u32 n_own = own_words(s.n_words, s.n_ranks);
    __syncthreads();
    for (u64 i = threadIdx.x; i < draft_words(g, n_own); i += blockDim.x) s.draft[i] = 0;
    for (u32 i = threadIdx.x; i < n_own; i += blockDim.x) s.any()[i] = 0;
    for (u32 i = threadIdx.x; i < g.symbol_words; i += blockDim.x) s.seeds()[i] = 0, s.predicted()[i] = 0;
    if (threadIdx.x < N_VARS) s.vars()[threadIdx.x] = 0;
    __syncthreads();
}

// No rows at all on the board of a team, which may still have those of another launch. Ends with a barrier.
DEVICE void clear_board(const Grammar& g, const Scratch& s) {
    if (s.team && s.rank == 0) {
        for (u64 i = threadIdx.x; i < draft_words(g, s.n_words); i += blockDim.x) s.board[i] = 0;
    }
    __syncthreads();
}
