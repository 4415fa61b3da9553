// A tier of the incremental Valiant recognizer by one block of threads. docs/algorithms/valiant.md has the equations (T1 to T3, P1 to P3) and the proof
// that each row need be visited once, from the highest down; what is done here is that, with these differences:
//
// - a *draft* is stored by words and then by symbols, so the threads of a warp look at neighbouring symbols and a ballot makes bits of them;
// - closures are rows of bits that were computed beforehand, since under a prediction they need no intermediate steps;
// - a warp takes a stored left child, its lanes the rules of that left child, and a rule that fires is done by the lane or, where rows are many words,
//   by all lanes.
#pragma once
#include "layout.cuh"

struct Grammar {
    const u32* image;
    u32 n_symbols, symbol_words, n_lefts, n_terminals, terminal_words, start, is_start_nullable;
    const u32 *left_symbol, *rules, *right, *parent, *lexical, *lexical_symbols, *up, *first, *first_inverse, *is_right;
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
    g.up = image + at.up, g.first = image + at.first, g.first_inverse = image + at.first_inverse, g.is_right = image + at.is_right;
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
DEVICE const u32* spans_of(const Grammar& g, const u32* record) { return viable_of(g, record) + g.terminal_words; }

// What threads of a block tell each other.
enum Vars { ANY_READ, ANY_CARRIED, ROOT, SENTENCE, N_SPANS, RESULT, ADDRESS, TAKEN, N_VARS };

// The memory of a block. ../src/layout.rs computes how much that is (`small_words`, `draft_words`).
struct Scratch {
    u32 n_words, stride;
    u32 *vars, *raw, *active, *closed, *full, *seeds, *predicted, *viable, *any;
    u32 *draft, *list, *firsts, *lengths, *addresses;
};

DEVICE u32 small_words(const Grammar& g, u32 n_words) { return N_VARS + 6 * g.symbol_words + g.terminal_words + n_words; }
// Odd, so that the words of one symbol are in different banks.
DEVICE u32 stride_of(const Grammar& g) { return g.n_symbols | 1; }
DEVICE u64 draft_words(const Grammar& g, u32 n_words) { return (u64)stride_of(g) * n_words + 4 * g.n_lefts; }

// Lays out the memory for charts of `n_rows` rows behind `taken` words of shared memory. False if there is too little.
DEVICE bool open_scratch(const Grammar& g, const Pool& pool, u32 n_rows, u32 taken, Scratch& s) {
    s.n_words = (n_rows + 31) / 32;
    s.stride = stride_of(g);
    u32 small = taken + small_words(g, s.n_words);
    u64 big = draft_words(g, s.n_words);
    if (small > pool.shared_words) return false;
    u32* at = shared_memory() + taken;
    s.vars = at, at += N_VARS;
    s.raw = at, at += g.symbol_words;
    s.active = at, at += g.symbol_words;
    s.closed = at, at += g.symbol_words;
    s.full = at, at += g.symbol_words;
    s.seeds = at, at += g.symbol_words;
    s.predicted = at, at += g.symbol_words;
    s.viable = at, at += g.terminal_words;
    s.any = at, at += s.n_words;
    if (small + big > pool.shared_words) {
        if (big > pool.workspace_words) return false;
        at = pool.workspace + blockIdx.x * pool.workspace_words;
    }
    s.list = at, at += g.n_lefts;
    s.firsts = at, at += g.n_lefts;
    s.lengths = at, at += g.n_lefts;
    s.addresses = at, at += g.n_lefts;
    s.draft = at;
    return true;
}

DEVICE void clear(const Grammar& g, Scratch& s) {
    __syncthreads();
    for (u32 i = threadIdx.x; i < s.stride * s.n_words; i += blockDim.x) s.draft[i] = 0;
    for (u32 i = threadIdx.x; i < s.n_words; i += blockDim.x) s.any[i] = 0;
    for (u32 i = threadIdx.x; i < g.symbol_words; i += blockDim.x) s.seeds[i] = 0;
    if (threadIdx.x < N_VARS) s.vars[threadIdx.x] = 0;
    __syncthreads();
}

// Adds rows of a symbol, a word of them.
DEVICE void add_rows(Scratch& s, u32 symbol, u32 word, u32 rows) {
    u32* place = s.draft + (u64)word * s.stride + symbol;
    if (rows & ~load(place)) atomicOr(place, rows);
    if (rows & ~load(s.any + word)) atomicOr(s.any + word, rows);
}

// The symbols that have all rows up to those of a word: T3 cannot give them any more.
DEVICE void find_full(const Grammar& g, Scratch& s, u32 word) {
    for (u32 base = warp() * LANES; base < g.symbol_words * LANES; base += n_warps() * LANES) {
        u32 symbol = base + lane();
        bool full = symbol < g.n_symbols;
        for (u32 w = word + 1; full && w-- > 0;) full = load(s.draft + (u64)w * s.stride + symbol) == 0xffffffffu;
        u32 bits = __ballot_sync(ALL_LANES, full);
        if (lane() == 0) s.full[base / LANES] = bits;
    }
}

// T3 at a row: for each left child that ends there and each rule with a right child that begins there, the rows of the one become rows of the parent.
DEVICE void combine(const Grammar& g, Scratch& s, const View& view, const u32* record) {
    const u32 SHORT = 4;
    const u32* spans = spans_of(g, record);
    for (u32 at = warp(); at < record[1]; at += n_warps()) {
        const u32* span = spans + at * SPAN_WORDS;
        u32 left = span[0], first = span[1], length = span[2];
        const u32* rows = view.memory + span[3];
        u32 end = g.rules[left + 1];
        for (u32 base = g.rules[left]; base < end; base += LANES) {
            u32 rule = base + lane(), parent = 0;
            bool fires = false;
            if (rule < end && has_bit(s.closed, g.right[rule])) {
                parent = g.parent[rule];
                fires = !has_bit(s.full, parent);
            }
            u32 hits = __ballot_sync(ALL_LANES, fires);
            if (length <= SHORT) {
                for (u32 i = 0; fires && i < length; i++) add_rows(s, parent, first + i, rows[i]);
            } else {
                for (; hits; hits &= hits - 1) {
                    u32 target = __shfl_sync(ALL_LANES, parent, (int)lowest_bit(hits));
                    for (u32 i = lane(); i < length; i += LANES) add_rows(s, target, first + i, rows[i]);
                }
            }
        }
    }
}

// Completes a draft: whatever follows from the rows that are set. `closure` is `up` for a tier, `first_inverse` for ANCESTOR↑. Ends with a barrier.
DEVICE void fill(const Grammar& g, Scratch& s, const View& view, const u32* closure) {
    for (u32 word = s.n_words; word-- > 0;) {
        __syncthreads();
        if (load(s.any + word) == 0) continue;
        find_full(g, s, word);
        // Rows of this word that were visited, and those above.
        u32 visited = 0;
        for (;;) {
            __syncthreads();
            u32 pending = load(s.any + word) & ~visited;
            if (pending == 0) break;
            u32 bit = highest_bit(pending);
            visited = ~((1u << bit) - 1);
            const u32* record = record_of(view, word * 32 + bit);
            const u32* predicted = predicted_of(record);
            // Mask: what is not predicted here is taken away.
            u32* draft = s.draft + (u64)word * s.stride;
            for (u32 base = warp() * LANES; base < g.symbol_words * LANES; base += n_warps() * LANES) {
                u32 symbol = base + lane();
                u32 bits = __ballot_sync(ALL_LANES, symbol < g.n_symbols && (load(draft + symbol) >> bit & 1));
                if (lane() == 0) {
                    s.raw[base / LANES] = bits;
                    s.active[base / LANES] = bits & predicted[base / LANES];
                }
            }
            __syncthreads();
            // Close: T2.
            u32 is_right = 0;
            for (u32 i = threadIdx.x; i < g.symbol_words; i += blockDim.x) {
                u32 bits = s.active[i];
                for (u32 j = 0; j < g.symbol_words; j++) {
                    for (u32 left = s.active[j]; left; left &= left - 1) {
                        bits |= closure[(u64)(j * 32 + lowest_bit(left)) * g.symbol_words + i];
                    }
                }
                bits &= predicted[i];
                s.closed[i] = bits;
                is_right |= bits & g.is_right[i];
                for (u32 changed = bits ^ s.raw[i]; changed; changed &= changed - 1) {
                    u32* place = draft + i * 32 + lowest_bit(changed);
                    if (bits & changed & (0 - changed)) atomicOr(place, 1u << bit);
                    else atomicAnd(place, ~(1u << bit));
                }
            }
            if (__syncthreads_or((int)(is_right != 0))) combine(g, s, view, record);
        }
    }
    __syncthreads();
}

// Edges: pairs (from, terminal or NONE), or from one state by some terminals and, if `skip`, by none.
struct Edges {
    const u32* pairs;
    const u32* scans;
    u32 from, n, skip;
};

DEVICE u32 n_edges(const Edges& edges) { return edges.n + edges.skip; }
DEVICE u32 from_of(const Edges& edges, u32 at) { return edges.pairs ? edges.pairs[2 * at] : edges.from; }
DEVICE u32 terminal_of(const Edges& edges, u32 at) {
    if (edges.pairs) return edges.pairs[2 * at + 1];
    return at < edges.n ? edges.scans[at] : NONE;
}

// The tier that some edges lead to, as a draft. False (for all threads) if nothing viable does.
DEVICE bool compute_tier(const Grammar& g, Scratch& s, const View& view, const Edges& edges) {
    clear(g, s);
    for (u32 at = threadIdx.x; at < n_edges(edges); at += blockDim.x) {
        u32 from = from_of(edges, at), terminal = terminal_of(edges, at);
        const u32* record = record_of(view, from);
        if (terminal == NONE) {
            atomicOr(s.vars + ANY_CARRIED, 1u);
            if (record[0] & IS_ROOT) atomicOr(s.vars + ROOT, 1u);
            if (record[0] & IS_SENTENCE) atomicOr(s.vars + SENTENCE, 1u);
        } else if (has_bit(viable_of(g, record), terminal)) {
            // T1.
            atomicOr(s.vars + ANY_READ, 1u);
            for (u32 i = g.lexical[terminal]; i < g.lexical[terminal + 1]; i++) {
                u32 symbol = g.lexical_symbols[i];
                if (has_bit(predicted_of(record), symbol)) add_rows(s, symbol, from / 32, 1u << (from % 32));
            }
        }
    }
    __syncthreads();
    if (s.vars[ANY_READ]) fill(g, s, view, g.up);
    // What is carried over was completed where it comes from.
    for (u32 at = 0; s.vars[ANY_CARRIED] && at < n_edges(edges); at++) {
        if (terminal_of(edges, at) != NONE) continue;
        const u32* record = record_of(view, from_of(edges, at));
        const u32* spans = spans_of(g, record);
        for (u32 k = warp(); k < record[1]; k += n_warps()) {
            const u32* span = spans + k * SPAN_WORDS;
            for (u32 i = lane(); i < span[2]; i += LANES) {
                add_rows(s, g.left_symbol[span[0]], span[1] + i, view.memory[span[3] + i]);
            }
        }
    }
    __syncthreads();
    return s.vars[ANY_READ] || s.vars[ANY_CARRIED];
}

// The spans of a draft, whether it is a sentence, and ANCESTOR↓: what may come next.
DEVICE void predict(const Grammar& g, Scratch& s, const View& view) {
    for (u32 left = threadIdx.x; left < g.n_lefts; left += blockDim.x) {
        const u32* column = s.draft + g.left_symbol[left];
        u32 first = 0, end = s.n_words;
        while (first < end && load(column + (u64)first * s.stride) == 0) first++;
        while (end > first && load(column + (u64)(end - 1) * s.stride) == 0) end--;
        s.firsts[left] = first, s.lengths[left] = end - first;
    }
    for (u32 w = threadIdx.x; w < s.n_words; w += blockDim.x) {
        for (u32 rows = load(s.draft + (u64)w * s.stride + g.start); rows; rows &= rows - 1) {
            if (record_of(view, w * 32 + lowest_bit(rows))[0] & IS_ROOT) atomicOr(s.vars + SENTENCE, 1u);
        }
    }
    if (threadIdx.x == 0 && s.vars[ROOT]) {
        set_bit(s.seeds, g.start);
        if (g.is_start_nullable) atomicOr(s.vars + SENTENCE, 1u);
    }
    __syncthreads();
    if (warp() == 0) {
        u32 n_spans = 0;
        for (u32 base = 0; base < g.n_lefts; base += LANES) {
            u32 left = base + lane();
            bool there = left < g.n_lefts && s.lengths[left] > 0;
            u32 bits = __ballot_sync(ALL_LANES, there);
            if (there) s.list[n_spans + __popc(bits & ((1u << lane()) - 1))] = left;
            n_spans += __popc(bits);
        }
        if (lane() == 0) s.vars[N_SPANS] = n_spans;
    }
    __syncthreads();
    // P2: right children wait where a left child ends and, where that began, the parent was predicted.
    for (u32 at = warp(); at < s.vars[N_SPANS]; at += n_warps()) {
        u32 left = s.list[at], first = s.firsts[left];
        const u32* column = s.draft + g.left_symbol[left];
        for (u32 rule = g.rules[left] + lane(); rule < g.rules[left + 1]; rule += LANES) {
            u32 right = g.right[rule], parent = g.parent[rule];
            bool found = has_bit(s.seeds, right);
            for (u32 w = first + s.lengths[left]; !found && w-- > first;) {
                for (u32 rows = load(column + (u64)w * s.stride); !found && rows;) {
                    u32 bit = highest_bit(rows);
                    rows ^= 1u << bit;
                    found = has_bit(predicted_of(record_of(view, w * 32 + bit)), parent);
                    if (found) set_bit(s.seeds, right);
                }
            }
        }
    }
    __syncthreads();
    // P3.
    for (u32 i = threadIdx.x; i < g.symbol_words; i += blockDim.x) {
        u32 bits = 0;
        for (u32 j = 0; j < g.symbol_words; j++) {
            for (u32 seeds = s.seeds[j]; seeds; seeds &= seeds - 1) {
                bits |= g.first[(u64)(j * 32 + lowest_bit(seeds)) * g.symbol_words + i];
            }
        }
        s.predicted[i] = bits;
    }
    __syncthreads();
    for (u32 base = warp() * LANES; base < g.terminal_words * LANES; base += n_warps() * LANES) {
        u32 terminal = base + lane();
        bool viable = terminal == g.n_terminals && s.vars[SENTENCE];
        if (terminal < g.n_terminals) {
            for (u32 i = g.lexical[terminal]; !viable && i < g.lexical[terminal + 1]; i++) {
                viable = has_bit(s.predicted, g.lexical_symbols[i]);
            }
        }
        u32 bits = __ballot_sync(ALL_LANES, viable);
        if (lane() == 0) s.viable[base / LANES] = bits;
    }
    __syncthreads();
}

// The words of a record without the rows of its spans.
DEVICE u32 record_words(const Grammar& g, u32 n_spans) {
    return RECORD_HEADER + g.symbol_words + g.terminal_words + SPAN_WORDS * n_spans;
}

// The words of a record with all rows, for memory in which it may lie in one piece. For thread 0.
DEVICE u32 whole_words(const Grammar& g, const Scratch& s) {
    u32 words = record_words(g, s.vars[N_SPANS]);
    for (u32 at = 0; at < s.vars[N_SPANS]; at++) words += s.lengths[s.list[at]];
    return words;
}

// Lays the rows one after the other behind the record. For thread 0.
DEVICE void place_behind(const Grammar& g, Scratch& s, u32 address) {
    s.vars[ADDRESS] = address;
    u32 at = address + record_words(g, s.vars[N_SPANS]);
    for (u32 k = 0; k < s.vars[N_SPANS]; k++) {
        s.addresses[k] = at;
        at += s.lengths[s.list[k]];
    }
}

// Writes the record to the places that were chosen for it and its rows.
DEVICE void write_record(const Grammar& g, const Scratch& s, u32* memory, u32 end_page, u32 end_used) {
    u32* record = memory + s.vars[ADDRESS];
    u32 n_spans = s.vars[N_SPANS];
    if (threadIdx.x == 0) {
        record[0] = (s.vars[SENTENCE] ? IS_SENTENCE : 0) | (s.vars[ROOT] ? IS_ROOT : 0);
        record[1] = n_spans, record[2] = end_page, record[3] = end_used;
    }
    u32* predicted = record + RECORD_HEADER;
    for (u32 i = threadIdx.x; i < g.symbol_words; i += blockDim.x) predicted[i] = s.predicted[i];
    u32* viable = predicted + g.symbol_words;
    for (u32 i = threadIdx.x; i < g.terminal_words; i += blockDim.x) viable[i] = s.viable[i];
    u32* spans = viable + g.terminal_words;
    for (u32 at = warp(); at < n_spans; at += n_warps()) {
        u32 left = s.list[at], first = s.firsts[left], length = s.lengths[left];
        if (lane() == 0) {
            u32* span = spans + at * SPAN_WORDS;
            span[0] = left, span[1] = first, span[2] = length, span[3] = s.addresses[at];
        }
        const u32* column = s.draft + g.left_symbol[left];
        for (u32 i = lane(); i < length; i += LANES) memory[s.addresses[at] + i] = load(column + (u64)(first + i) * s.stride);
    }
    __syncthreads();
}
