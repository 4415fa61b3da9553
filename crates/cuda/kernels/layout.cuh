// What lies where. Every structure here has its twin in ../src/layout.rs.
//
// All of a pool's memory is 32-bit words. A *record* is a state of a chart:
//
//   flags | n_spans | end_page | end_used | predicted[symbol_words] | viable[terminal_words] | up to 3 unused
//   | n_spans * (left, first, length, address)
//
// `predicted` is ANCESTOR↓: the symbols that may begin here. `viable` has a bit for each terminal that may
// come next and, behind them, one that says whether the text is a sentence. A *span* is the rows of one left
// child: `length` words at `address`, of which the first is word `first`, none empty at either end. Records
// and spans begin at multiples of 16 bytes. Records are written once and never again, and no page moves: so
// sequences that have a beginning in common share its pages.
#pragma once
#include "device.cuh"

static const u32 IS_SENTENCE = 1;
static const u32 IS_ROOT = 2;
static const u32 RECORD_HEADER = 4;
static const u32 SPAN_WORDS = 4;
static const u32 ALIGNED = 4;
static const u32 RESULT_WORDS = 5;

DEVICE u32 aligned(u32 words) { return (words + ALIGNED - 1) / ALIGNED * ALIGNED; }

// Read and written in one piece, as a `uint4`.
struct Span {
    u32 left, first, length, address;
};

// What became of a request.
enum Status {
    DONE = 0,
    NOT_VIABLE = 1,
    IN_DOUBT = 2,
    OUT_OF_PAGES = 3,
    TOO_MANY_STATES = 4,
    TOO_MANY_PAGES = 5,
    TOO_LARGE = 6,
    OUT_OF_QUEUE = 7,
    OUT_OF_ARENA = 8,
    OUT_OF_STACK = 9
};

// A grammar in a normal form: an array of words that begins with this header. The rest is found by offsets
// from the beginning.
struct Image {
    u32 n_symbols, symbol_words, n_lefts, n_terminals, terminal_words, start, is_start_nullable;
    // [n_lefts] the symbol of each left child; [n_lefts + 1] where its rules begin, which are sorted by left
    // child.
    u32 left_symbol, rules;
    // [n_rules] right child and parent.
    u32 right, parent;
    // [n_terminals + 1] and what that points into: the symbols that are just this terminal.
    u32 lexical, lexical_symbols;
    // Rows of symbol_words, one a symbol: the symbols that it is enough for; those that it may begin with;
    // those that may begin with it. All closed.
    u32 up, first, first_inverse;
    // [symbol_words] the symbols that are a right child; those that are a parent of two; those that are
    // enough for another.
    u32 is_right, is_parent, is_enough;
};

// The tiers of many sequences.
struct Pool {
    u32* memory;
    // Of each page how many sequences hold it; the pages that none holds, and how many they are.
    u32* references;
    u32* free_pages;
    int* n_free;
    // Of each sequence: n_states | n_pages | used | n_owned | pages[max_pages] | states[max_states]. `used`
    // counts words of the last page in use; pages beyond `n_pages` are owned and empty.
    u32* slots;
    u32 page_words, max_pages, max_states;
    // Words of dynamic shared memory of a block; where a draft does not fit it is in the block's part of
    // `workspace`.
    u32 shared_words;
    u32* workspace;
    u64 workspace_words;
    // Of each sequence that several blocks work on: its board (`board_words`), and two counters that are zero
    // between launches.
    u32* boards;
    u64 board_words;
    u32* teams;
};

static const u32 SLOT_HEADER = 4;

DEVICE u32* slot_of(const Pool& pool, u32 slot) {
    return pool.slots + (u64)slot * (SLOT_HEADER + pool.max_pages + pool.max_states);
}
DEVICE u32* pages_of(u32* slot) { return slot + SLOT_HEADER; }
DEVICE const u32* pages_of(const u32* slot) { return slot + SLOT_HEADER; }
DEVICE u32* states_of(const Pool& pool, u32* slot) { return slot + SLOT_HEADER + pool.max_pages; }
DEVICE const u32* states_of(const Pool& pool, const u32* slot) { return slot + SLOT_HEADER + pool.max_pages; }

// One sequence is to be extended by the edges `first_edge ..`, pairs (from, terminal or NONE). A request
// without a slot (NONE) is none.
struct StepRequest {
    const u32* grammar;
    u32 slot, first_edge, n_edges, result;
};

struct StepParams {
    Pool pool;
    const StepRequest* requests;
    const u32* edges;
    // [n_requests][RESULT_WORDS] status, state, the words of its rows, where its record is, and the words of
    // record and rows if they are one piece, else 0.
    u32* results;
};

// Whether a state can be extended by a terminal, from the terminal upwards.
struct UpRequest {
    const u32* grammar;
    u32 slot, state, terminal, result;
};

struct UpParams {
    Pool pool;
    const UpRequest* requests;
    // [n_requests] 0 or 1; a Status above that.
    u32* results;
};

// `from` is a slot to be copied (fork) or NONE (go back to `n_states`; none: give everything back).
struct MoveRequest {
    u32 slot, from, n_states, pad;
};

struct MoveParams {
    Pool pool;
    const MoveRequest* requests;
};

// The tree of terminal sequences that tokens can hold, from one lexeme; see ../src/tree.rs.
struct Tree {
    u32 n_nodes, n_groups;
    // Of each node, [n_nodes + 1] each: the terminals that it reads at once, its children, its groups of
    // tokens.
    u32 scan_starts, scans, child_starts, children, group_starts;
    // [n_nodes] whether the piece may be ignored as well.
    u32 skip;
    // [n_groups] rows of terminal_words: the group may come if one of these is viable. [n_groups] pairs,
    // where its tokens begin and end; where that has no members (both equal) the tokens are the dense row
    // `dense[g]`.
    u32 wanted, token_places, tokens, dense_row;
    u32 dense;
    // [n_nodes] and [n_groups] pairs, where the foes of nodes and groups begin and end: pairs of a number of
    // ends and a row of `sets`, each of terminal_words. Of these terminals none may be viable after so many
    // ends on the way.
    u32 node_foes, group_foes, foes, sets;
    // [n_groups] whether the parser would have to be asked whether the group may come.
    u32 in_doubt;
};

// A reading of a sequence: a state and the tree of its lexeme. `mask` is the row of masks that it adds to;
// NONE if there is no such reading. Where `result` is not NONE the state is the one that this step of the
// same graph has made.
struct Config {
    const u32* grammar;
    const u32* tree;
    u32 slot, state, mask, result;
};

// A node to be reached, or reached. `row` is the number of its state, `rows` the states on the way from the
// config's.
struct Entry {
    u32 config, node, parent, row, rows, address, added, pad;
};

struct SearchParams {
    Pool pool;
    const Config* configs;
    const u32* results;
    // The level at work, and how many there are; each has `capacity` entries.
    u32 level, n_levels, capacity;
    u32 max_accepted;
    Entry* entries;
    // [n_levels] how many entries each level has; then the next entry that a worker takes in depth, and the
    // words of the arena in use.
    u32* counters;
    // Parts of pool.memory, in words: the records of nodes reached in breadth; a stack of `stack_words` for
    // each worker.
    u32 arena, arena_words, stacks, stack_words;
    // The longest way in any tree.
    u32 max_depth, mask_words;
    u64 mask_stride;
    u32* masks;
    // Dense rows that are to be added: [n_masks][max_accepted], and how many.
    u64* accepted;
    u32* n_accepted;
    // [n_masks] rows of mask_words: tokens that may be in the mask. None if no tree at hand has any.
    u32* doubts;
    // [n_masks] the worst Status.
    u32* status;
    // [3] nodes reached in all, in breadth, the deepest stack.
    u32* counts;
};

struct MaskOrParams {
    u32* masks;
    u64 mask_stride;
    const u64* rows;
    const u32* n_rows;
    u32 max_rows, mask_words;
    // As of a search; none if nothing is in doubt.
    const u32* doubts;
    u32* status;
};

// Logits of `n_columns` columns; what a mask has no bit for becomes minus infinity. `bytes` is 2 or 4,
// `minus_infinity` its bits.
struct LogitsParams {
    void* logits;
    u64 stride;
    const u32* masks;
    u64 mask_stride;
    u32 n_columns, n_tokens, bytes, minus_infinity;
};
