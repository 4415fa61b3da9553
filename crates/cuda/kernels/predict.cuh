// What follows from the rows and seeds of a tier: its spans, whether it is a sentence, ANCESTOR↓ (P1 and P3),
// the terminals that may come, and the record of all that.
#pragma once
#include "fill.cuh"

// Whether the start spans all that was read from a root on, as the flag `var`. A warp takes a word, its lanes
// the states.
template <Age AGE>
DEVICE void reach_root(const Grammar& g, const Scratch& s, const View<AGE>& view, u32 var) {
    u32 start = g.field(&Image::start);
    for (u32 w = warp(); w < s.n_words; w += n_warps()) {
        if (is_set(board_of(s, w)[start], lane()) && (read<AGE>(record_of(view, w * 32 + lane())) & IS_ROOT))
            atomicOr(s.vars() + var, 1u);
    }
}

// Which left children have rows, from which word to which, and how many words that are in all.
DEVICE void find_spans(const Grammar& g, const Scratch& s) {
    const u32* left_symbols = g.table(&Image::left_symbol);
    for (u32 left = threadIdx.x; left < g.n_lefts; left += blockDim.x) {
        const u32* column = s.board + fetch(left_symbols + left);
        u32 first = NONE, end = 0;
        // All words, so that no read waits for the one before.
        FOUR_AT_A_TIME
        for (u32 w = 0; w < s.n_words; w++) {
            if (column[(u64)w * s.stride()]) first = min_of(first, w), end = w + 1;
        }
        s.firsts()[left] = first, s.lengths()[left] = end ? end - first : 0;
    }
    __syncthreads();
    if (warp() != 0) return;
    u32 n_spans = 0, n_words = 0;
    for (u32 base = 0; base < g.n_lefts; base += LANES) {
        u32 left = base + lane(), length = left < g.n_lefts ? s.lengths()[left] : 0, before = length;
        u32 there = __ballot_sync(ALL_LANES, length > 0);
        for (u32 width = 1; width < LANES; width *= 2) {
            u32 other = __shfl_up_sync(ALL_LANES, before, width);
            if (lane() >= width) before += other;
        }
        if (length > 0) {
            u32 at = n_spans + __popc(there & ((1u << lane()) - 1));
            // Where its rows begin among the rows of all.
            s.list()[at] = left, s.addresses()[at] = n_words + before - length;
        }
        n_spans += __popc(there);
        n_words += __shfl_sync(ALL_LANES, before, LANES - 1);
    }
    if (lane() == 0) s.vars()[N_SPANS] = n_spans, s.vars()[ROW_WORDS] = n_words;
}

// P3: what seeds may begin with. A warp takes 32 symbols; a seed that another one may begin with adds
// nothing.
DEVICE void close_seeds(const Grammar& g, const Scratch& s) {
    const u32* first = g.table(&Image::first);
    u32* predicted = s.predicted();
    for (u32 j = warp(); j < g.symbol_words; j += n_warps()) {
        for (u32 seeds = s.seeds()[j]; seeds; seeds &= seeds - 1) {
            u32 symbol = j * 32 + lowest_bit(seeds);
            // The first lane looks before any has added of this seed.
            if (__shfl_sync(ALL_LANES, (u32)has_bit(predicted, symbol), 0)) continue;
            const u32* row = first + (u64)symbol * g.symbol_words;
            for (u32 i = lane(); i < g.symbol_words; i += LANES) {
                u32 more = fetch(row + i);
                if (more & ~load(predicted + i)) atomicOr(predicted + i, more);
            }
        }
    }
}

DEVICE void find_viable(const Grammar& g, const Scratch& s) {
    const u32 *lexical = g.table(&Image::lexical), *lexical_symbols = g.table(&Image::lexical_symbols);
    for (u32 base = warp() * LANES; base < g.terminal_words * LANES; base += n_warps() * LANES) {
        u32 terminal = base + lane();
        bool viable = terminal == g.n_terminals && s.vars()[SENTENCE];
        if (terminal < g.n_terminals) {
            u32 end = fetch(lexical + terminal + 1);
            for (u32 i = fetch(lexical + terminal); !viable && i < end; i++) {
                u32 symbol = fetch(lexical_symbols + i);
                viable = is_set(s.predicted()[symbol / 32], symbol);
            }
        }
        u32 bits = __ballot_sync(ALL_LANES, viable);
        if (lane() == 0) s.viable()[base / LANES] = bits;
    }
}

// Everything about a state whose rows are on the board. Ends with a barrier.
template <Age AGE>
DEVICE void predict(const Grammar& g, const Scratch& s, const View<AGE>& view) {
    reach_root(g, s, view, SENTENCE);
    // P1.
    if (threadIdx.x == 0 && s.vars()[ROOT]) {
        set_bit(s.seeds(), g.field(&Image::start));
        if (g.field(&Image::is_start_nullable)) atomicOr(s.vars() + SENTENCE, 1u);
    }
    find_spans(g, s);
    __syncthreads();
    close_seeds(g, s);
    __syncthreads();
    find_viable(g, s);
    __syncthreads();
}

// The words of a record without the rows of its spans.
DEVICE u32 record_words(const Grammar& g, u32 n_spans) { return spans_at(g) + SPAN_WORDS * n_spans; }

// The words of a record with all rows, for memory in which it may lie in one piece.
DEVICE u32 whole_words(const Grammar& g, const Scratch& s) {
    return record_words(g, s.vars()[N_SPANS]) + s.vars()[ROW_WORDS];
}

// Lays the rows one after the other behind the record.
DEVICE void place_behind(const Grammar& g, const Scratch& s, u32 address) {
    u32 n_spans = s.vars()[N_SPANS], rows = address + record_words(g, n_spans);
    for (u32 at = threadIdx.x; at < n_spans; at += blockDim.x) s.addresses()[at] += rows;
    if (threadIdx.x == 0) s.vars()[ADDRESS] = address;
    __syncthreads();
}

// Writes the record to the places that were chosen for it and its rows. Ends with a barrier. `AGE`: RECENT if
// this launch will read it as a state of a path.
template <Age AGE>
DEVICE void write_record(const Grammar& g, const Scratch& s, u32* memory, u32 end_page, u32 end_used) {
    u32* record = memory + s.vars()[ADDRESS];
    u32 n_spans = s.vars()[N_SPANS];
    if (threadIdx.x == 0) {
        u32 flags = (s.vars()[SENTENCE] ? IS_SENTENCE : 0) | (s.vars()[ROOT] ? IS_ROOT : 0);
        put((uint4*)record, uint4{flags, n_spans, end_page, end_used});
    }
    u32* predicted = record + RECORD_HEADER;
    for (u32 i = threadIdx.x; i < g.symbol_words; i += blockDim.x) put(predicted + i, s.predicted()[i]);
    u32* viable = predicted + g.symbol_words;
    for (u32 i = threadIdx.x; i < g.terminal_words; i += blockDim.x) put(viable + i, s.viable()[i]);
    uint4* spans = (uint4*)(record + spans_at(g));
    const u32* left_symbols = g.table(&Image::left_symbol);
    for (u32 at = warp(); at < n_spans; at += n_warps()) {
        u32 left = s.list()[at], first = s.firsts()[left], length = s.lengths()[left],
            address = s.addresses()[at];
        if (lane() == 0) put(spans + at, uint4{left, first, length, address});
        const u32* column = s.board + fetch(left_symbols + left) + (u64)first * s.stride();
        for (u32 i = lane(); i < length; i += LANES) put(memory + address + i, column[(u64)i * s.stride()]);
    }
#ifdef ANYGRAM_TMA
    // Later tiers of this launch have these predictions copied.
    if (AGE == RECENT) fence_proxy();
#endif
    __syncthreads();
}
