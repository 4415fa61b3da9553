// Masks: a search of the trees of terminal sequences for the nodes that the parser can follow (the paper's
// section 6). In breadth to a level, a launch each: a block takes a node, whose tier goes into an arena. Then
// in depth: a block is a worker with a stack of tiers of its own. Launches follow each other on one stream,
// so blocks never wait for blocks.
#include "predict.cuh"

// Requests, trees and what earlier launches left are fetched; entries of the level at work, records on the
// way and masks are being written in the same launch.

DEVICE void complain(const SearchParams& p, const Config& config, u32 status) {
    atomicMax(p.status + fetch(&config.mask), status);
}

// A table of a tree.
DEVICE const u32* table(const u32* image, u32 Tree::*of) {
    return image + fetch(&(((const Tree*)image)->*of));
}

// The state of a reading; NONE if it was to be made and was not.
DEVICE u32 state_of(const SearchParams& p, const Config& config) {
    u32 at = fetch(&config.result);
    if (at == NONE) return fetch(&config.state);
    const u32* result = p.results + RESULT_WORDS * at;
    return fetch(result) == DONE ? fetch(result + 1) : NONE;
}

// The memory of a search in a block, before that of the charts: the way from the config's state, the nodes of
// a stack, and where the states are after so many ends of pieces.
enum Frame { FRAME_NODE, FRAME_NEXT, FRAME_ROW, FRAME_ROWS, FRAME_ADDRESS, FRAME_TOP, FRAME_WORDS };
enum Shared { TAKE, TOP, SEARCH_VARS };

DEVICE u32 search_words(const SearchParams& p) {
    return SEARCH_VARS + (1 + FRAME_WORDS) * (p.max_depth + 1) + p.max_depth + 2;
}
DEVICE u32* search_vars() { return shared_memory(); }
DEVICE u32* path_of(const SearchParams&) { return shared_memory() + SEARCH_VARS; }
DEVICE u32* frames_of(const SearchParams& p) { return shared_memory() + SEARCH_VARS + p.max_depth + 1; }
DEVICE u32* ways_of(const SearchParams& p) {
    return shared_memory() + SEARCH_VARS + (1 + FRAME_WORDS) * (p.max_depth + 1);
}

// Whether a row of terminals and what is viable in a state have something in common. A warp.
template <Age AGE>
DEVICE bool intersects(const Grammar& g, const u32* row, const u32* viable) {
    u32 common = 0;
    for (u32 i = lane(); i < g.terminal_words; i += LANES) common |= fetch(row + i) & read<AGE>(viable + i);
    return __ballot_sync(ALL_LANES, common != 0) != 0;
}

// Whether one of some foes is viable on the way, whose records are `AGE`. Each warp alike.
template <Age AGE>
DEVICE bool has_foes(const Grammar& g, const SearchParams& p, const u32* image, u32 first, u32 end) {
    const u32 *foes = table(image, &Tree::foes), *sets = table(image, &Tree::sets);
    for (u32 i = first; i < end; i++) {
        const u32* record = p.pool.memory + ways_of(p)[fetch(foes + 2 * i)];
        if (intersects<AGE>(g, sets + (u64)fetch(foes + 2 * i + 1) * g.terminal_words, viable_of(g, record)))
            return true;
    }
    return false;
}

// Adds the tokens of a node that was reached: groups of which something wanted is viable. A warp takes a
// group. The record of the node may have been written in this launch, those on the way are `WAY`.
template <Age AGE, Age WAY>
DEVICE void visit(const Grammar& g, const SearchParams& p, const Config& config, u32 node,
    const u32* viable) {
    const u32 *image = fetch(&config.tree), *starts = table(image, &Tree::group_starts);
    u32 row_of_mask = fetch(&config.mask), end = fetch(starts + node + 1);
    u32* mask = p.masks + row_of_mask * p.mask_stride;
    for (u32 group = fetch(starts + node) + warp(); group < end; group += n_warps()) {
        if (!intersects<AGE>(g, table(image, &Tree::wanted) + (u64)group * g.terminal_words, viable))
            continue;
        const u32* foes = table(image, &Tree::group_foes) + 2 * group;
        if (has_foes<WAY>(g, p, image, fetch(foes), fetch(foes + 1))) continue;
        bool in_doubt = fetch(table(image, &Tree::in_doubt) + group);
        u32* bits = in_doubt ? p.doubts + (u64)row_of_mask * p.mask_words : mask;
        const u32 *places = table(image, &Tree::token_places) + 2 * group,
            *tokens = table(image, &Tree::tokens);
        u32 begin = fetch(places), stop = fetch(places + 1);
        for (u32 i = begin + lane(); i < stop; i += LANES) {
            u32 token = fetch(tokens + i);
            if (!has_bit(bits, token)) set_bit(bits, token);
        }
        if (begin == stop) {
            const u32* row = table(image, &Tree::dense)
                + (u64)fetch(table(image, &Tree::dense_row) + group) * p.mask_words;
            if (!in_doubt) {
                u32 at = 0;
                if (lane() == 0) at = atomicAdd(p.n_accepted + row_of_mask, 1u);
                at = __shfl_sync(ALL_LANES, at, 0);
                if (at < p.max_accepted) {
                    if (lane() == 0) put(p.accepted + (u64)row_of_mask * p.max_accepted + at, (u64)row);
                    continue;
                }
            }
            for (u32 i = lane(); i < p.mask_words; i += LANES) {
                u32 more = fetch(row + i);
                if (more & ~load(bits + i)) atomicOr(bits + i, more);
            }
        }
    }
    if (threadIdx.x == 0) atomicAdd(p.counts, 1u);
}

// Puts the children of a node into the queue of a level.
DEVICE void push_children(const SearchParams& p, u32 config, u32 node, u32 parent, u32 level) {
    const u32 *image = fetch(&p.configs[config].tree), *starts = table(image, &Tree::child_starts),
        *children = table(image, &Tree::children);
    u32 first = fetch(starts + node), end = fetch(starts + node + 1);
    for (u32 i = first + threadIdx.x; i < end; i += blockDim.x) {
        u32 at = atomicAdd(p.counters + level, 1u);
        if (at >= p.capacity) {
            complain(p, p.configs[config], OUT_OF_QUEUE);
            continue;
        }
        Entry entry = {config, fetch(children + i), parent, 0, 0, NONE, 0, 0};
        put(p.entries + (u64)level * p.capacity + at, entry);
    }
}

// Empty masks and queues. A block a mask.
KERNEL search_clear(SearchParams p) {
    u32* mask = p.masks + blockIdx.x * p.mask_stride;
    for (u32 i = threadIdx.x; i < p.mask_words; i += blockDim.x) {
        mask[i] = 0;
        if (p.doubts) p.doubts[(u64)blockIdx.x * p.mask_words + i] = 0;
    }
    if (threadIdx.x == 0) p.n_accepted[blockIdx.x] = 0, p.status[blockIdx.x] = DONE;
    if (blockIdx.x == 0) {
        for (u32 i = threadIdx.x; i < p.n_levels + 2; i += blockDim.x) p.counters[i] = 0;
        if (threadIdx.x < 3) p.counts[threadIdx.x] = 0;
    }
}

// The roots: nothing to be read. A block a config.
KERNEL search_roots(SearchParams p) {
    const Config& config = p.configs[blockIdx.x];
    if (fetch(&config.mask) == NONE) return;
    u32 state = state_of(p, config);
    if (state == NONE) return;
    Grammar g = open_grammar(fetch(&config.grammar));
    u32 address = fetch(states_of(p.pool, slot_of(p.pool, fetch(&config.slot))) + state);
    if (threadIdx.x == 0) ways_of(p)[0] = address;
    __syncthreads();
    visit<SETTLED, SETTLED>(g, p, config, 0, viable_of(g, p.pool.memory + address));
    push_children(p, blockIdx.x, 0, NONE, 0);
}

// A state on the way, and the number of states that the way has added.
struct Reached {
    u32 row, rows, address;
};

// What a record is written to: `top` and `end` are words of the pool's memory; the arena's is moved by all
// blocks.
struct Store {
    u32* top;
    u32 begin, end, status;
};

// Reads the pieces of a node from the state `at`. False if the parser cannot follow. `added`: a state was
// made. `AGE`: that of the states on the way.
template <Age AGE>
DEVICE bool follow(const Grammar& g, const SearchParams& p, const Config& config, u32 node, Reached& at,
    const Store& store, bool& added) {
    const u32 *image = fetch(&config.tree), *starts = table(image, &Tree::scan_starts) + node,
        *foes = table(image, &Tree::node_foes) + 2 * node;
    u32 first = fetch(starts), n = fetch(starts + 1) - first;
    if (has_foes<AGE>(g, p, image, fetch(foes), fetch(foes + 1))) return false;
    added = n > 0;
    if (n == 0) return true;
    const u32* slot = slot_of(p.pool, fetch(&config.slot));
    View<AGE> view = {p.pool.memory, states_of(p.pool, slot), fetch(slot), path_of(p)};
    Scratch s;
    if (!open_scratch(g, p.pool, view.n_states + at.rows, search_words(p), 0, 1, s)) {
        if (threadIdx.x == 0) complain(p, config, TOO_LARGE);
        return false;
    }
    Edges edges = {0, table(image, &Tree::scans) + first, at.row, n, fetch(table(image, &Tree::skip) + node)};
    if (!compute_tier(g, s, view, edges)) return false;
    predict(g, s, view);
    if (threadIdx.x == 0) {
        u32 words = aligned(whole_words(g, s));
        u32 used = atomicAdd(store.top, words);
        bool fits = (u64)used + words <= store.end - store.begin;
        if (!fits) complain(p, config, store.status);
        s.vars()[RESULT] = fits ? (u32)DONE : store.status;
        s.vars()[ADDRESS] = store.begin + used;
    }
    __syncthreads();
    if (s.vars()[RESULT] != DONE) return false;
    place_behind(g, s, s.vars()[ADDRESS]);
    write_record<AGE>(g, s, p.pool.memory, 0, 0);
    at.row = view.n_states + at.rows;
    at.rows++;
    at.address = s.vars()[ADDRESS];
    return true;
}

// Where the parent of an entry of this level is; lists the states on the way to it.
DEVICE Reached come_to(const SearchParams& p, const Entry& entry) {
    const Config& config = p.configs[entry.config];
    const u32* states = states_of(p.pool, slot_of(p.pool, fetch(&config.slot)));
    Reached at;
    if (entry.parent == NONE) {
        at.row = state_of(p, config), at.rows = 0;
        at.address = fetch(states + at.row);
    } else {
        const Entry* parent = p.entries + entry.parent;
        at.row = fetch(&parent->row), at.rows = fetch(&parent->rows), at.address = fetch(&parent->address);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 depth = p.level;
        // Entries of higher levels, which earlier launches have completed.
        for (u32 e = entry.parent; e != NONE; e = fetch(&p.entries[e].parent)) {
            u32 address = fetch(&p.entries[e].address);
            if (fetch(&p.entries[e].added)) path_of(p)[fetch(&p.entries[e].rows) - 1] = address;
            ways_of(p)[depth--] = address;
        }
        ways_of(p)[0] = fetch(states + state_of(p, config));
    }
    __syncthreads();
    return at;
}

// The nodes of a level.
HEAVY_KERNEL search_level(SearchParams p) {
    begin_copies();
    u32 n = min_of(fetch(p.counters + p.level), p.capacity);
    Store arena = {p.counters + p.n_levels + 1, p.arena, p.arena + p.arena_words, OUT_OF_ARENA};
    for (u32 i = blockIdx.x; i < n; i += gridDim.x) {
        u32 id = p.level * p.capacity + i;
        // Not fetched: it is completed below.
        Entry entry = p.entries[id];
        const Config& config = p.configs[entry.config];
        Grammar g = open_grammar(fetch(&config.grammar));
        Reached at = come_to(p, entry);
        bool added;
        // The path is that of other levels, so it is settled; the record that is added is read by nobody else
        // in this launch.
        if (!follow<SETTLED>(g, p, config, entry.node, at, arena, added)) continue;
        visit<RECENT, SETTLED>(g, p, config, entry.node, viable_of(g, p.pool.memory + at.address));
        if (threadIdx.x == 0) {
            entry.row = at.row, entry.rows = at.rows, entry.address = at.address, entry.added = added;
            put(p.entries + id, entry);
            atomicAdd(p.counts + 1, 1u);
        }
        push_children(p, entry.config, entry.node, id, p.level + 1);
    }
}

// From the nodes of the last level on, in depth.
HEAVY_KERNEL search_depth(SearchParams p) {
    begin_copies();
    u32 n = min_of(fetch(p.counters + p.level), p.capacity);
    u32* vars = search_vars();
    u32* frames = frames_of(p);
    u32 begin = p.stacks + blockIdx.x * p.stack_words;
    Store stack = {vars + TOP, begin, begin + p.stack_words, OUT_OF_STACK};
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) vars[TAKE] = atomicAdd(p.counters + p.n_levels, 1u), vars[TOP] = 0;
        __syncthreads();
        u32 i = vars[TAKE];
        if (i >= n) break;
        const Entry* place = p.entries + p.level * p.capacity + i;
        Entry entry = {fetch(&place->config), fetch(&place->node), fetch(&place->parent), 0, 0, 0, 0, 0};
        const Config& config = p.configs[entry.config];
        Grammar g = open_grammar(fetch(&config.grammar));
        const u32 *image = fetch(&config.tree), *child_starts = table(image, &Tree::child_starts),
            *children = table(image, &Tree::children);
        Reached at = come_to(p, entry);
        u32 depth = 0, node = entry.node, top = 0;
        for (;;) {
            // The node is to be reached from `at`, its parent's.
            bool added, reached = follow<RECENT>(g, p, config, node, at, stack, added);
            if (reached) visit<RECENT, RECENT>(g, p, config, node, viable_of(g, p.pool.memory + at.address));
            __syncthreads();
            if (threadIdx.x == 0) {
                if (!reached) vars[TOP] = top;
                else {
                    u32* frame = frames + depth * FRAME_WORDS;
                    frame[FRAME_NODE] = node, frame[FRAME_NEXT] = fetch(child_starts + node);
                    frame[FRAME_ROW] = at.row, frame[FRAME_ROWS] = at.rows,
                        frame[FRAME_ADDRESS] = at.address, frame[FRAME_TOP] = top;
                    if (added) path_of(p)[at.rows - 1] = at.address;
                    ways_of(p)[p.level + 1 + depth] = at.address;
                    atomicMax(p.counts + 2, depth + 1);
                }
            }
            if (reached) depth++;
            __syncthreads();
            // The next child of the last node that has one left.
            bool found = false;
            while (depth > 0 && !found) {
                u32* frame = frames + (depth - 1) * FRAME_WORDS;
                u32 next = frame[FRAME_NEXT];
                top = vars[TOP];
                found = next < fetch(child_starts + frame[FRAME_NODE] + 1);
                __syncthreads();
                if (found) {
                    node = fetch(children + next);
                    at.row = frame[FRAME_ROW], at.rows = frame[FRAME_ROWS], at.address = frame[FRAME_ADDRESS];
                    __syncthreads();
                    if (threadIdx.x == 0) frame[FRAME_NEXT] = next + 1;
                } else {
                    if (threadIdx.x == 0) vars[TOP] = frame[FRAME_TOP];
                    depth--;
                }
                __syncthreads();
            }
            if (!found) break;
        }
    }
}

// The OR of dense rows of token sets into masks: a thread owns a word of a mask, so nothing is atomic.
// gridDim.y masks.
KERNEL mask_or(MaskOrParams p) {
    u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= p.mask_words) return;
    const u64* rows = p.rows + (u64)blockIdx.y * p.max_rows;
    u32* place = p.masks + blockIdx.y * p.mask_stride + word;
    u32 bits = *place, n = min_of(fetch(p.n_rows + blockIdx.y), p.max_rows);
    FOUR_AT_A_TIME
    for (u32 i = 0; i < n; i++) bits |= fetch((const u32*)fetch(rows + i) + word);
    *place = bits;
    if (p.doubts && (p.doubts[(u64)blockIdx.y * p.mask_words + word] & ~bits))
        atomicMax(p.status + blockIdx.y, (u32)IN_DOUBT);
}
