// The rows of a tier (T1 to T3 of docs/algorithms/valiant.md), by one block or by several.
//
// A *word* of rows is 32 states in which symbols begin, all symbols of a word lie together, and words are completed from the highest down. A word gets rows
// from its own states and from those of higher words only, so when all higher words are final it can be completed by itself: by rounds, each of
// which takes up what the one before has added, for all 32 states at once, until nothing is new. All of T1 to T3, and the mask of predictions, only ever add
// what is in the least solution, and a round that adds nothing has found all of it; so neither the order of threads nor the number of blocks changes the result.
//
// Several blocks: each has some of the words, what is final is written to a board that all read, and a counter says how many words are. They wait for each
// other, so they have to run at the same time (a cooperative launch).
#pragma once
#ifdef ANYGRAM_TMA
#include "bulk.cuh"
#else
#include "chart.cuh"
#endif

// Adds rows of a symbol to a word of the block.
DEVICE void add_rows(Scratch& s, u32 symbol, u32 word, u32 rows) {
    if (!is_own(s, word)) return;
    u32* place = own_draft(s, word) + symbol;
    if (rows & ~load(place)) atomicOr(place, rows);
    *own_any(s, word) = 1;
}

// The states of a word that are there.
DEVICE u32 states_in(const Scratch& s, u32 word) {
    u32 n = s.n_rows - word * 32;
    return n < 32 ? (1u << n) - 1 : 0xffffffffu;
}

// `may`: of each symbol the states of a word that predict it. A warp turns 32 states by 32 symbols over.
DEVICE void load_predictions(const Grammar& g, Scratch& s, const View& view, u32 word) {
    u32 row = word * 32 + lane();
    const u32* predicted = row < s.n_rows ? predicted_of(record_of(view, row)) : 0;
#ifdef ANYGRAM_TMA
    if (g.symbol_words <= STAGE_WORDS) {
        const u32* stage = copy_predictions(g, s, view, word);
        predicted = predicted ? stage + lane() * STAGE_WORDS : 0;
    }
#endif
    for (u32 i = warp(); i < g.symbol_words; i += n_warps()) {
        u32 bits = transpose(predicted ? predicted[i] : 0), symbol = i * 32 + lane();
        if (symbol < g.n_symbols) s.may[symbol] = bits;
    }
}

// `values`: of each left child, word `word` of its rows in each of some states of the word `source`. A warp takes a state.
DEVICE void load_values(const Grammar& g, Scratch& s, const View& view, u32 source, u32 states, u32 word) {
    for (u32 k = warp(); k < 32; k += n_warps()) {
        for (u32 left = lane(); left < g.n_lefts; left += LANES) s.values[left * VALUES + k] = 0;
        if (!(states >> k & 1)) continue;
        __syncwarp();
        const u32* record = record_of(view, source * 32 + k);
        const Span* spans = spans_of(g, record);
        for (u32 at = lane(); at < record[1]; at += LANES) {
            Span span = spans[at];
            u32 i = word - span.first;
            if (i < span.length) s.values[span.left * VALUES + k] = view.memory[span.address + i];
        }
    }
}

// T3: a right child begins in the states `fresh`, a left child that ends there has `values`, so the parent has those rows, if it `may`. A warp takes a left
// child, its lanes the rules. Whether this thread added anything.
DEVICE bool combine(const Grammar& g, const Scratch& s, u32* draft, const u32* may) {
    bool added = false;
    for (u32 left = warp(); left < g.n_lefts; left += n_warps()) {
        const u32* values = s.values + left * VALUES;
        u32 there = __ballot_sync(ALL_LANES, values[lane()] != 0);
        u32 end = there ? g.rules[left + 1] : 0;
        for (u32 rule = there ? g.rules[left] + lane() : 0; rule < end; rule += LANES) {
            u32 states = s.fresh[g.right[rule]] & there;
            if (states == 0) continue;
            u32 parent = g.parent[rule], rows = 0;
            u32 missing = ~load(draft + parent) & (may ? may[parent] : 0xffffffffu);
            for (; states && (missing & ~rows); states &= states - 1) rows |= values[lowest_bit(states)];
            if (rows & missing) atomicOr(draft + parent, rows & missing), added = true;
        }
    }
    return added;
}

// T2: symbols that have something new give it to all that they are enough for. The closure is that of the grammar: what is on the way from a symbol to one
// that is predicted is predicted too. A warp takes 32 symbols.
DEVICE void close(const Grammar& g, Scratch& s, u32* draft, const u32* closure, const u32* is_enough) {
    for (u32 i = warp(); i < g.symbol_words; i += n_warps()) {
        u32 symbol = i * 32 + lane(), fresh = 0;
        if (symbol < g.n_symbols && (is_enough == 0 || has_bit(is_enough, symbol))) fresh = load(draft + symbol) & s.may[symbol] & ~s.done[symbol];
        for (u32 some = __ballot_sync(ALL_LANES, fresh != 0); some; some &= some - 1) {
            u32 from = lowest_bit(some), rows = __shfl_sync(ALL_LANES, fresh, (int)from);
            const u32* row = closure + (u64)(i * 32 + from) * g.symbol_words;
            for (u32 j = lane(); j < g.symbol_words; j += LANES) {
                for (u32 bits = row[j]; bits; bits &= bits - 1) {
                    u32 to = j * 32 + lowest_bit(bits), more = rows & s.may[to] & ~load(draft + to);
                    if (more) atomicOr(draft + to, more);
                }
            }
        }
    }
}

// Completes a word, all higher ones being final: `done` has its rows. Its predictions may be there already.
DEVICE void solve(const Grammar& g, Scratch& s, const View& view, u32 word, bool is_loaded, const u32* closure, const u32* is_enough) {
    u32* draft = own_draft(s, word);
    if (!is_loaded) load_predictions(g, s, view, word);
    load_values(g, s, view, word, states_in(s, word), word);
    for (u32 symbol = threadIdx.x; symbol < g.n_symbols; symbol += blockDim.x) s.done[symbol] = 0;
    __syncthreads();
    for (;;) {
        close(g, s, draft, closure, is_enough);
        __syncthreads();
        u32 begun = 0;
        for (u32 symbol = threadIdx.x; symbol < g.n_symbols; symbol += blockDim.x) {
            u32 rows = load(draft + symbol) & s.may[symbol], fresh = rows & ~s.done[symbol];
            s.fresh[symbol] = fresh, s.done[symbol] = rows;
            if (fresh && has_bit(g.is_right, symbol)) begun = 1;
        }
        if (!__syncthreads_or((int)begun)) break;
        if (!__syncthreads_or((int)combine(g, s, draft, s.may))) break;
    }
}

// Writes a word that is final to the board. In a team that is the only moment in which others look at what this block has.
DEVICE void publish(const Grammar& g, Scratch& s, u32 word, bool is_empty) {
    u32* board = board_of(s, word);
    for (u32 symbol = threadIdx.x; symbol < g.n_symbols; symbol += blockDim.x) post(board + symbol, is_empty ? 0 : s.done[symbol]);
    __syncthreads();
    if (s.team && threadIdx.x == 0) {
        __threadfence();
        atomicAdd(s.team, 1u);
    }
}

// Waits until so many words are final.
DEVICE void await(const Scratch& s, u32 n_words) {
    if (!s.team) return;
    if (threadIdx.x == 0) {
        while (load(s.team) < n_words) relax();
        __threadfence();
    }
    __syncthreads();
}

// The end of what a team does together. The first block waits until the others have looked at everything that it goes on to change, and leaves the counters as
// they were, for the next launch. Ends with a barrier.
DEVICE void leave(const Scratch& s) {
    __syncthreads();
    if (!s.team) return;
    if (threadIdx.x == 0) {
        if (s.rank > 0) atomicAdd(s.team + 1, 1u);
        else {
            while (load(s.team + 1) < s.n_ranks - 1) relax();
            s.team[0] = 0, s.team[1] = 0;
            __threadfence();
        }
    }
    __syncthreads();
}

// Takes a word that is final into `fresh`: the states in which a right child begins.
DEVICE u32 take(const Grammar& g, Scratch& s, u32 word, u32 turn) {
    const u32* board = is_own(s, word) ? 0 : board_of(s, word);
    u32* states = s.vars + STATES + turn;
    u32 begun = 0;
    for (u32 symbol = threadIdx.x; symbol < g.n_symbols; symbol += blockDim.x) {
        u32 rows = board ? load(board + symbol) : s.done[symbol];
        s.fresh[symbol] = rows;
        if (rows && has_bit(g.is_right, symbol)) begun |= rows;
    }
    if (begun) atomicOr(states, begun);
    // That of the turn before, which all have seen: there was a barrier since.
    if (threadIdx.x == 0) s.vars[STATES + (turn ^ 1)] = 0;
    __syncthreads();
    return load(states);
}

// What the states of a word, which is final, give to the lower words of this block. For one of them the values are there already, if it is not NONE.
DEVICE void give(const Grammar& g, Scratch& s, const View& view, u32 word, u32 turn, u32 loaded) {
    u32 states = take(g, s, word, turn);
    for (u32 lower = word; states && lower-- > 0;) {
        if (!is_own(s, lower)) continue;
        u32* draft = own_draft(s, lower);
        // Where every parent has all rows there is nothing to be gained; dense charts come to that after a few words.
        bool open = false;
        for (u32 symbol = threadIdx.x; symbol < g.n_symbols; symbol += blockDim.x) {
            if (load(draft + symbol) != 0xffffffffu && has_bit(g.is_parent, symbol)) open = true;
        }
        if (!__syncthreads_or((int)open)) continue;
        if (lower != loaded) {
            load_values(g, s, view, word, states, lower);
            __syncthreads();
        }
        if (combine(g, s, draft, 0)) *own_any(s, lower) = 1;
    }
}

// Completes a draft: whatever follows from the rows that are set. `closure` is `up` for a tier, `first_inverse` for ANCESTOR↑. Ends with a barrier, and with
// the board complete for the block of rank 0.
DEVICE void fill(const Grammar& g, Scratch& s, const View& view, const u32* closure, const u32* is_enough) {
    u32 turn = 0, next_predicted = NONE;
    // The lowest word of this block is that of its rank; there may be none.
    for (u32 word = s.n_words; word-- > s.rank;) {
        if (is_own(s, word)) {
            __syncthreads();
            bool is_empty = load(own_any(s, word)) == 0;
            if (!is_empty) solve(g, s, view, word, next_predicted == word, closure, is_enough);
            if (!is_empty || s.team) publish(g, s, word, is_empty);
            if (word == s.rank) break;
            if (is_empty) continue;
            give(g, s, view, word, turn, NONE);
        } else {
            // What does not depend on the word that is waited for is loaded meanwhile: for the next word of this block.
            u32 next = word - 1 - (word - 1 - s.rank) % s.n_ranks;
            __syncthreads();
            if (next_predicted != next) load_predictions(g, s, view, next);
            next_predicted = next;
            load_values(g, s, view, word, states_in(s, word), next);
            await(s, s.n_words - word);
            give(g, s, view, word, turn, next);
        }
        turn ^= 1;
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

// T1 for all edges that read; what is known of those that carry over. A warp takes an edge.
DEVICE void read_edges(const Grammar& g, Scratch& s, const View& view, const Edges& edges) {
    for (u32 at = warp(); at < n_edges(edges); at += n_warps()) {
        u32 from = from_of(edges, at), terminal = terminal_of(edges, at);
        // An edge from a state that was not made leads nowhere.
        if (from >= s.n_rows) continue;
        const u32* record = record_of(view, from);
        if (terminal == NONE) {
            if (lane() == 0) {
                atomicOr(s.vars + ANY_CARRIED, 1u);
                if (record[0] & IS_ROOT) atomicOr(s.vars + ROOT, 1u);
                if (record[0] & IS_SENTENCE) atomicOr(s.vars + SENTENCE, 1u);
            }
        } else if (has_bit(viable_of(g, record), terminal)) {
            if (lane() == 0) atomicOr(s.vars + ANY_READ, 1u);
            for (u32 i = g.lexical[terminal] + lane(); i < g.lexical[terminal + 1]; i += LANES) {
                u32 symbol = g.lexical_symbols[i];
                if (has_bit(predicted_of(record), symbol)) add_rows(s, symbol, from / 32, 1u << (from % 32));
            }
        }
    }
    __syncthreads();
}

// The tier that some edges lead to, on the board of the block of rank 0. False (for all threads of all blocks) if nothing viable does.
DEVICE bool compute_tier(const Grammar& g, Scratch& s, const View& view, const Edges& edges) {
    clear(g, s);
    read_edges(g, s, view, edges);
    if (s.vars[ANY_READ]) fill(g, s, view, g.up, g.is_enough);
    else if (s.team && s.rank == 0) {
        for (u64 i = threadIdx.x; i < draft_words(g, s.n_words); i += blockDim.x) s.board[i] = 0;
        __syncthreads();
    }
    // What is carried over was completed where it comes from.
    for (u32 at = 0; s.rank == 0 && s.vars[ANY_CARRIED] && at < n_edges(edges); at++) {
        u32 from = from_of(edges, at);
        if (terminal_of(edges, at) != NONE || from >= s.n_rows) continue;
        const u32* record = record_of(view, from);
        const Span* spans = spans_of(g, record);
        for (u32 k = warp(); k < record[1]; k += n_warps()) {
            Span span = spans[k];
            for (u32 i = lane(); i < span.length; i += LANES) {
                u32* place = board_of(s, span.first + i) + g.left_symbol[span.left];
                u32 rows = view.memory[span.address + i];
                if (rows & ~load(place)) atomicOr(place, rows);
            }
        }
    }
    leave(s);
    return s.vars[ANY_READ] || s.vars[ANY_CARRIED];
}
