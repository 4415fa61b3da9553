// What follows from the rows of a tier: its spans, whether it is a sentence, ANCESTOR↓ (P1 to P3), the terminals that may come, and the record of all that.
#pragma once
#include "fill.cuh"

// Which left children have rows, from which word to which, and how many words that are in all.
DEVICE void find_spans(const Grammar& g, Scratch& s) {
    for (u32 left = threadIdx.x; left < g.n_lefts; left += blockDim.x) {
        const u32* column = s.board + g.left_symbol[left];
        u32 first = 0, end = s.n_words;
        while (first < end && load(column + (u64)first * s.stride) == 0) first++;
        while (end > first && load(column + (u64)(end - 1) * s.stride) == 0) end--;
        s.firsts[left] = first, s.lengths[left] = end - first;
    }
    __syncthreads();
    if (warp() != 0) return;
    u32 n_spans = 0, n_words = 0;
    for (u32 base = 0; base < g.n_lefts; base += LANES) {
        u32 left = base + lane(), length = left < g.n_lefts ? s.lengths[left] : 0, before = length;
        u32 there = __ballot_sync(ALL_LANES, length > 0);
        for (u32 width = 1; width < LANES; width *= 2) {
            u32 other = __shfl_up_sync(ALL_LANES, before, width);
            if (lane() >= width) before += other;
        }
        if (length > 0) {
            u32 at = n_spans + __popc(there & ((1u << lane()) - 1));
            // Where its rows begin among the rows of all.
            s.list[at] = left, s.addresses[at] = n_words + before - length;
        }
        n_spans += __popc(there);
        n_words += __shfl_sync(ALL_LANES, before, LANES - 1);
    }
    if (lane() == 0) s.vars[N_SPANS] = n_spans, s.vars[ROW_WORDS] = n_words;
}

// P2: right children wait where a left child ends and, where that began, the parent was predicted. A warp takes a left child, its lanes the rules.
DEVICE void find_seeds(const Grammar& g, Scratch& s, const View& view) {
    for (u32 at = warp(); at < s.vars[N_SPANS]; at += n_warps()) {
        u32 left = s.list[at], first = s.firsts[left];
        const u32* column = s.board + g.left_symbol[left];
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
}

// P3: what seeds may begin with. A warp takes 32 symbols; a seed that another one may begin with adds nothing.
DEVICE void close_seeds(const Grammar& g, Scratch& s) {
    for (u32 j = warp(); j < g.symbol_words; j += n_warps()) {
        for (u32 seeds = s.seeds[j]; seeds; seeds &= seeds - 1) {
            u32 symbol = j * 32 + lowest_bit(seeds);
            // The first lane looks before any has added of this seed.
            if (__shfl_sync(ALL_LANES, (u32)has_bit(s.predicted, symbol), 0)) continue;
            const u32* row = g.first + (u64)symbol * g.symbol_words;
            for (u32 i = lane(); i < g.symbol_words; i += LANES) {
                if (row[i] & ~load(s.predicted + i)) atomicOr(s.predicted + i, row[i]);
            }
        }
    }
}

DEVICE void find_viable(const Grammar& g, Scratch& s) {
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
}

// Everything about a state whose rows are on the board. Ends with a barrier.
DEVICE void predict(const Grammar& g, Scratch& s, const View& view) {
    for (u32 w = threadIdx.x; w < s.n_words; w += blockDim.x) {
        for (u32 rows = load(board_of(s, w) + g.start); rows; rows &= rows - 1) {
            if (record_of(view, w * 32 + lowest_bit(rows))[0] & IS_ROOT) atomicOr(s.vars + SENTENCE, 1u);
        }
    }
    // P1.
    if (threadIdx.x == 0 && s.vars[ROOT]) {
        set_bit(s.seeds, g.start);
        if (g.is_start_nullable) atomicOr(s.vars + SENTENCE, 1u);
    }
    find_spans(g, s);
    __syncthreads();
    find_seeds(g, s, view);
    __syncthreads();
    close_seeds(g, s);
    __syncthreads();
    find_viable(g, s);
    __syncthreads();
}

// The words of a record without the rows of its spans.
DEVICE u32 record_words(const Grammar& g, u32 n_spans) { return spans_at(g) + SPAN_WORDS * n_spans; }

// The words of a record with all rows, for memory in which it may lie in one piece.
DEVICE u32 whole_words(const Grammar& g, const Scratch& s) { return record_words(g, s.vars[N_SPANS]) + s.vars[ROW_WORDS]; }

// Lays the rows one after the other behind the record.
DEVICE void place_behind(const Grammar& g, Scratch& s, u32 address) {
    u32 n_spans = s.vars[N_SPANS], rows = address + record_words(g, n_spans);
    for (u32 at = threadIdx.x; at < n_spans; at += blockDim.x) s.addresses[at] += rows;
    if (threadIdx.x == 0) s.vars[ADDRESS] = address;
    __syncthreads();
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
    Span* spans = (Span*)(record + spans_at(g));
    for (u32 at = warp(); at < n_spans; at += n_warps()) {
        u32 left = s.list[at], first = s.firsts[left], length = s.lengths[left];
        if (lane() == 0) {
            Span span = {left, first, length, s.addresses[at]};
            spans[at] = span;
        }
        const u32* column = s.board + g.left_symbol[left];
        for (u32 i = lane(); i < length; i += LANES) memory[s.addresses[at] + i] = load(column + (u64)(first + i) * s.stride);
    }
    __syncthreads();
}
