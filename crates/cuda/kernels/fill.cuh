// The rows of a tier (T1 to T3 of docs/algorithms/valiant.md) and its seeds (P2), by one block or by several.
//
// A *word* of rows is 32 states in which symbols begin, all symbols of a word lie together, and words are
// completed from the highest down. A word gets rows from its own states and from those of higher words only,
// so when all higher words are final it can be completed by itself: by rounds, each of which takes up what
// the one before has added, for all 32 states at once, until nothing is new. All of T1 to T3, and the mask of
// predictions, only ever add what is in the least solution, and a round that adds nothing has found all of
// it; so neither the order of threads nor the number of blocks changes the result.
//
// Several blocks: each has some of the words, what is final is written to a board that all read, and a
// counter says how many words are. They wait for each other, so they have to run at the same time (a
// cooperative launch).
#pragma once
#ifdef ANYGRAM_TMA
#include "bulk.cuh"
#else
#include "chart.cuh"
DEVICE void begin_copies() {}
#endif

// Adds rows of a symbol to a word of the block.
DEVICE void add_rows(const Scratch& s, u32 symbol, u32 word, u32 rows) {
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

// `may`: of each symbol the states of a word that predict it. A warp takes four words of symbols: a lane
// reads those of its state in one piece, and the warp turns 32 states by 32 symbols over four times.
template <Age AGE>
DEVICE void load_predictions(const Grammar& g, const Scratch& s, const View<AGE>& view, u32 word) {
    u32 row = word * 32 + lane();
    const u32* predicted = row < s.n_rows ? predicted_of(record_of(view, row)) : 0;
#ifdef ANYGRAM_TMA
    const u32* staged = g.symbol_words <= STAGE_WORDS
        ? copy_predictions(g, s, view, word) + lane() * STAGE_STRIDE : 0;
#endif
    u32* may = s.may();
    for (u32 at = 4 * warp(); at < g.symbol_words; at += 4 * n_warps()) {
        uint4 four = {0, 0, 0, 0};
        // Up to three words behind the predictions are read too; they belong to the same record, and to no
        // symbol.
#ifdef ANYGRAM_TMA
        if (predicted)
            four = staged ? *(const uint4*)(staged + at) : read<AGE>((const uint4*)(predicted + at));
#else
        if (predicted) four = read<AGE>((const uint4*)(predicted + at));
#endif
        for (u32 k = 0; k < 4 && at + k < g.symbol_words; k++) {
            u32 bits = transpose(k == 0 ? four.x : k == 1 ? four.y : k == 2 ? four.z : four.w),
                symbol = (at + k) * 32 + lane();
            if (symbol < g.n_symbols) may[symbol] = bits;
        }
    }
}

// `values`: of each left child, word `word` of its rows in each of some states of the word `source`; `there`:
// in which of them that is not empty. The threads of the block share the spans of all those states, so that a
// thread waits for four reads, each of which depends on the one before, and not for four a state. All threads
// take part; there is a barrier.
template <Age AGE>
DEVICE void load_values(const Grammar& g, const Scratch& s, const View<AGE>& view, u32 source, u32 states,
    u32 word) {
    u32 *values = s.values(), *there = s.there();
    for (u32 left = threadIdx.x; left < g.n_lefts; left += blockDim.x) there[left] = 0;
    // Each warp counts alike: lane k has the spans of the state k, and `end` those of the states up to it.
    u32 record = 0, end = 0;
    if (is_set(states, lane())) {
        const u32* place = record_of(view, source * 32 + lane());
        record = (u32)(place - view.memory), end = read<AGE>(place + 1);
    }
    for (u32 width = 1; width < LANES; width *= 2) {
        u32 other = __shfl_up_sync(ALL_LANES, end, width);
        if (lane() >= width) end += other;
    }
    u32 n_spans = __shfl_sync(ALL_LANES, end, LANES - 1);
    __syncthreads();
    for (u32 base = warp() * LANES; base < n_spans; base += blockDim.x) {
        // The first state with more spans, up to it, than come before this one.
        u32 item = base + lane(), k = 0;
        for (u32 width = LANES / 2; width; width /= 2) {
            if (__shfl_sync(ALL_LANES, end, (int)(k + width - 1)) <= item) k += width;
        }
        u32 before = __shfl_sync(ALL_LANES, end, (int)(k > 0 ? k - 1 : 0)),
            place = __shfl_sync(ALL_LANES, record, (int)k);
        if (item >= n_spans) continue;
        Span span = read_span<AGE>(g, view.memory + place, item - (k > 0 ? before : 0));
        u32 i = word - span.first;
        u32 rows = i < span.length ? read<AGE>(view.memory + span.address + i) : 0;
        if (rows) values[span.left * VALUES + k] = rows, set_bit(there + span.left, k);
    }
}

// T3: a right child begins in the states `fresh`, a left child that ends there has `values`, so the parent
// has those rows, if it `may`. A lane looks at a left child, and the warp takes those that end somewhere one
// by one, its lanes the rules. Whether this thread added anything.
DEVICE bool combine(const Grammar& g, const Scratch& s, u32* draft, const u32* may) {
    bool added = false;
    const u32 *rules = g.table(&Image::rules), *rights = g.table(&Image::right),
        *parents = g.table(&Image::parent), *fresh = s.fresh();
    // Neighbours go to different warps, so that all have much the same number.
    for (u32 base = warp(); base < g.n_lefts; base += LANES * n_warps()) {
        u32 own = base + lane() * n_warps(), ends = own < g.n_lefts ? s.there()[own] : 0;
        for (u32 some = __ballot_sync(ALL_LANES, ends != 0); some; some &= some - 1) {
            u32 from = lowest_bit(some), left = base + from * n_warps(),
                there = __shfl_sync(ALL_LANES, ends, (int)from);
            const u32* values = s.values() + left * VALUES;
            u32 end = fetch(rules + left + 1);
            for (u32 rule = fetch(rules + left) + lane(); rule < end; rule += LANES) {
                u32 states = fresh[fetch(rights + rule)] & there;
                if (states == 0) continue;
                u32 parent = fetch(parents + rule), rows = 0;
                u32 missing = ~load(draft + parent) & (may ? may[parent] : 0xffffffffu);
                for (; states && (missing & ~rows); states &= states - 1) rows |= values[lowest_bit(states)];
                if (rows & missing) atomicOr(draft + parent, rows & missing), added = true;
            }
        }
    }
    return added;
}

// T2: symbols that have something new give it to all that they are enough for. The closure is that of the
// grammar: what is on the way from a symbol to one that is predicted is predicted too. A warp takes 32
// symbols.
DEVICE void close(const Grammar& g, const Scratch& s, u32* draft, const u32* closure, const u32* is_enough) {
    const u32 *may = s.may(), *done = s.done();
    for (u32 i = warp(); i < g.symbol_words; i += n_warps()) {
        u32 symbol = i * 32 + lane(), fresh = 0;
        if (symbol < g.n_symbols && (is_enough == 0 || is_set(fetch(is_enough + i), lane())))
            fresh = load(draft + symbol) & may[symbol] & ~done[symbol];
        for (u32 some = __ballot_sync(ALL_LANES, fresh != 0); some; some &= some - 1) {
            u32 from = lowest_bit(some), rows = __shfl_sync(ALL_LANES, fresh, (int)from);
            const u32* row = closure + (u64)(i * 32 + from) * g.symbol_words;
            for (u32 j = lane(); j < g.symbol_words; j += LANES) {
                for (u32 bits = fetch(row + j); bits; bits &= bits - 1) {
                    u32 to = j * 32 + lowest_bit(bits), more = rows & may[to] & ~load(draft + to);
                    if (more) atomicOr(draft + to, more);
                }
            }
        }
    }
}

// Completes a word, all higher ones being final: `done` has its rows. Its predictions may be there already.
template <Age AGE>
DEVICE void solve(const Grammar& g, const Scratch& s, const View<AGE>& view, u32 word, bool is_loaded,
    const u32* closure, const u32* is_enough) {
    u32 *draft = own_draft(s, word), *fresh = s.fresh(), *done = s.done();
    const u32 *may = s.may(), *is_right = g.table(&Image::is_right);
    if (!is_loaded) load_predictions(g, s, view, word);
    load_values(g, s, view, word, states_in(s, word), word);
    for (u32 symbol = threadIdx.x; symbol < g.n_symbols; symbol += blockDim.x) done[symbol] = 0;
    __syncthreads();
    for (;;) {
        close(g, s, draft, closure, is_enough);
        __syncthreads();
        u32 begun = 0;
        for (u32 symbol = threadIdx.x; symbol < g.n_symbols; symbol += blockDim.x) {
            u32 rows = draft[symbol] & may[symbol], some = rows & ~done[symbol];
            fresh[symbol] = some, done[symbol] = rows;
            if (some && is_set(fetch(is_right + symbol / 32), symbol)) begun = 1;
        }
        if (!__syncthreads_or((int)begun)) break;
        if (!__syncthreads_or((int)combine(g, s, draft, may))) break;
    }
}

// P2 for a word that is final: a right child may begin where a left child ends that began in a state of the
// word, if that state predicts the parent. `done` has the rows of the word and `may` its predictions, as
// `solve` leaves them, so a rule is one AND for 32 states. A lane looks at a left child, and the warp takes
// those with rows one by one, its lanes the rules.
DEVICE void find_seeds(const Grammar& g, const Scratch& s) {
    const u32 *left_symbols = g.table(&Image::left_symbol), *rules = g.table(&Image::rules),
        *rights = g.table(&Image::right);
    const u32 *parents = g.table(&Image::parent), *may = s.may(), *done = s.done();
    u32* seeds = s.seeds();
    for (u32 base = warp(); base < g.n_lefts; base += LANES * n_warps()) {
        u32 own = base + lane() * n_warps(), rows = own < g.n_lefts ? done[fetch(left_symbols + own)] : 0;
        for (u32 some = __ballot_sync(ALL_LANES, rows != 0); some; some &= some - 1) {
            u32 from = lowest_bit(some), left = base + from * n_warps(),
                begun = __shfl_sync(ALL_LANES, rows, (int)from);
            u32 end = fetch(rules + left + 1);
            for (u32 rule = fetch(rules + left) + lane(); rule < end; rule += LANES) {
                if ((begun & may[fetch(parents + rule)]) == 0) continue;
                u32 right = fetch(rights + rule);
                if (!has_bit(seeds, right)) set_bit(seeds, right);
            }
        }
    }
}

// Writes a word that is final to the board. In a team that is the only moment in which others look at what
// this block has.
DEVICE void publish(const Grammar& g, const Scratch& s, u32 word, bool is_empty) {
    u32 *board = board_of(s, word), *done = s.done();
    for (u32 symbol = threadIdx.x; symbol < g.n_symbols; symbol += blockDim.x)
        post(board + symbol, is_empty ? 0 : done[symbol]);
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

// The end of what a team does together: the first block gets the seeds that the others have found. It waits
// until they have looked at everything that it goes on to change, and leaves the counters as they were, for
// the next launch. Ends with a barrier.
DEVICE void leave(const Grammar& g, const Scratch& s) {
    __syncthreads();
    if (!s.team) return;
    if (s.rank > 0) {
        for (u32 i = threadIdx.x; i < g.symbol_words; i += blockDim.x)
            post(seeds_of(s, s.rank) + i, s.seeds()[i]);
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(s.team + 1, 1u);
        }
        return;
    }
    if (threadIdx.x == 0) {
        while (load(s.team + 1) < s.n_ranks - 1) relax();
        put(s.team, 0u), put(s.team + 1, 0u);
        __threadfence();
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < g.symbol_words; i += blockDim.x) {
        u32 seeds = s.seeds()[i];
        FOUR_AT_A_TIME
        for (u32 rank = 1; rank < s.n_ranks; rank++) seeds |= seeds_of(s, rank)[i];
        s.seeds()[i] = seeds;
    }
    __syncthreads();
}

// Takes a word that is final into `fresh`: the states in which a right child begins.
DEVICE u32 take(const Grammar& g, const Scratch& s, u32 word, u32 turn) {
    const u32 *board = is_own(s, word) ? 0 : board_of(s, word), *done = s.done(),
        *is_right = g.table(&Image::is_right);
    u32 *states = s.vars() + STATES + turn, *fresh = s.fresh();
    u32 begun = 0;
    for (u32 symbol = threadIdx.x; symbol < g.n_symbols; symbol += blockDim.x) {
        u32 rows = board ? load(board + symbol) : done[symbol];
        fresh[symbol] = rows;
        if (rows && is_set(fetch(is_right + symbol / 32), symbol)) begun |= rows;
    }
    if (begun) atomicOr(states, begun);
    // That of the turn before, which all have seen: there was a barrier since.
    if (threadIdx.x == 0) s.vars()[STATES + (turn ^ 1)] = 0;
    __syncthreads();
    return *states;
}

// What the states of a word, which is final, give to the lower words of this block. For one of them the
// values are there already, if it is not NONE.
template <Age AGE>
DEVICE void give(const Grammar& g, const Scratch& s, const View<AGE>& view, u32 word, u32 turn, u32 loaded) {
    u32 states = take(g, s, word, turn);
    const u32* is_parent = g.table(&Image::is_parent);
    for (u32 lower = word; states && lower-- > 0;) {
        if (!is_own(s, lower)) continue;
        u32* draft = own_draft(s, lower);
        // Where every parent has all rows there is nothing to be gained; dense charts come to that after a
        // few words.
        bool open = false;
        for (u32 symbol = threadIdx.x; symbol < g.n_symbols; symbol += blockDim.x) {
            if (draft[symbol] != 0xffffffffu && is_set(fetch(is_parent + symbol / 32), symbol)) open = true;
        }
        // A barrier also between what was combined last and the values that are loaded next.
        if (!__syncthreads_or((int)open)) continue;
        if (lower != loaded) {
            load_values(g, s, view, word, states, lower);
            __syncthreads();
        }
        if (combine(g, s, draft, 0)) *own_any(s, lower) = 1;
    }
}

// Completes a draft: whatever follows from the rows that are set. `closure` is `up` for a tier,
// `first_inverse` for ANCESTOR↑, and the seeds are those of a tier. Ends with a barrier, and with the board
// complete for the block of rank 0.
template <bool SEEDS, Age AGE>
DEVICE void fill(const Grammar& g, const Scratch& s, const View<AGE>& view, const u32* closure,
    const u32* is_enough) {
    u32 turn = 0, next_predicted = NONE;
    // The lowest word of this block is that of its rank; there may be none.
    for (u32 word = s.n_words; word-- > s.rank;) {
        if (is_own(s, word)) {
            __syncthreads();
            bool is_empty = *own_any(s, word) == 0;
            if (!is_empty) solve(g, s, view, word, next_predicted == word, closure, is_enough);
            if (!is_empty || s.team) publish(g, s, word, is_empty);
            // Others of a team go on meanwhile.
            if (SEEDS && !is_empty) find_seeds(g, s);
            if (word == s.rank) break;
            if (is_empty) continue;
            give(g, s, view, word, turn, NONE);
        } else {
            // What does not depend on the word that is waited for is loaded meanwhile: for the next word of
            // this block.
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
DEVICE u32 from_of(const Edges& edges, u32 at) {
    return edges.pairs ? fetch(edges.pairs + 2 * at) : edges.from;
}
DEVICE u32 terminal_of(const Edges& edges, u32 at) {
    if (edges.pairs) return fetch(edges.pairs + 2 * at + 1);
    return at < edges.n ? fetch(edges.scans + at) : NONE;
}

// T1 for all edges that read; what is known of those that carry over. A warp takes an edge.
template <Age AGE>
DEVICE void read_edges(const Grammar& g, const Scratch& s, const View<AGE>& view, const Edges& edges) {
    const u32 *lexical = g.table(&Image::lexical), *lexical_symbols = g.table(&Image::lexical_symbols);
    for (u32 at = warp(); at < n_edges(edges); at += n_warps()) {
        u32 from = from_of(edges, at), terminal = terminal_of(edges, at);
        // An edge from a state that was not made leads nowhere.
        if (from >= s.n_rows) continue;
        const u32* record = record_of(view, from);
        if (terminal == NONE) {
            if (lane() == 0) {
                u32 flags = read<AGE>(record);
                atomicOr(s.vars() + ANY_CARRIED, 1u);
                if (flags & IS_ROOT) atomicOr(s.vars() + ROOT, 1u);
                if (flags & IS_SENTENCE) atomicOr(s.vars() + SENTENCE, 1u);
            }
        } else if (is_set(read<AGE>(viable_of(g, record) + terminal / 32), terminal)) {
            if (lane() == 0) atomicOr(s.vars() + ANY_READ, 1u);
            u32 end = fetch(lexical + terminal + 1);
            for (u32 i = fetch(lexical + terminal) + lane(); i < end; i += LANES) {
                u32 symbol = fetch(lexical_symbols + i);
                if (is_set(read<AGE>(predicted_of(record) + symbol / 32), symbol))
                    add_rows(s, symbol, from / 32, 1u << (from % 32));
            }
        }
    }
    __syncthreads();
}

// Adds what edges carry over to the board, by the block of rank 0. It was completed where it comes from, and
// so were its predictions: they follow from its rows, state by state, as do those of the rows that were read.
template <Age AGE>
DEVICE void carry_over(const Grammar& g, const Scratch& s, const View<AGE>& view, const Edges& edges) {
    const u32* left_symbols = g.table(&Image::left_symbol);
    for (u32 at = 0; at < n_edges(edges); at++) {
        u32 from = from_of(edges, at);
        if (terminal_of(edges, at) != NONE || from >= s.n_rows) continue;
        const u32* record = record_of(view, from);
        for (u32 i = threadIdx.x; i < g.symbol_words; i += blockDim.x)
            s.predicted()[i] |= read<AGE>(predicted_of(record) + i);
        u32 n_spans = read<AGE>(record + 1);
        for (u32 k = warp(); k < n_spans; k += n_warps()) {
            Span span = read_span<AGE>(g, record, k);
            u32* column = s.board + fetch(left_symbols + span.left);
            for (u32 i = lane(); i < span.length; i += LANES) {
                u32 *place = column + (u64)(span.first + i) * s.stride(),
                    rows = read<AGE>(view.memory + span.address + i);
                if (rows & ~load(place)) atomicOr(place, rows);
            }
        }
    }
}

// The tier that some edges lead to, on the board of the block of rank 0, with its seeds and what it is known
// to predict. False (for all threads of all blocks) if nothing viable leads there.
template <Age AGE>
DEVICE bool compute_tier(const Grammar& g, const Scratch& s, const View<AGE>& view, const Edges& edges) {
    clear(g, s);
    read_edges(g, s, view, edges);
    if (s.vars()[ANY_READ]) fill<true>(g, s, view, g.table(&Image::up), g.table(&Image::is_enough));
    else clear_board(g, s);
    if (s.rank == 0 && s.vars()[ANY_CARRIED]) carry_over(g, s, view, edges);
    leave(g, s);
    return s.vars()[ANY_READ] || s.vars()[ANY_CARRIED];
}
