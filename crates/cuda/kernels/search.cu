// Masks: a search of the trees of terminal sequences for the nodes that the parser can follow (the paper's section 6). In breadth to a level, a launch
// each: a block takes a node, whose tier goes into an arena. Then in depth: a block is a worker with a stack of tiers of its own. Launches follow
// each other on one stream, so blocks never wait for blocks.
#include "predict.cuh"

DEVICE void complain(const SearchParams& p, const Config& config, u32 status) { atomicMax(p.status + config.mask, status); }

// The state of a reading; NONE if it was to be made and was not.
DEVICE u32 state_of(const SearchParams& p, const Config& config) {
    if (config.result == NONE) return config.state;
    const u32* result = p.results + RESULT_WORDS * config.result;
    return result[0] == DONE ? result[1] : NONE;
}

// The memory of a search in a block, before that of the charts: the way from the config's state, the nodes of a stack, and where the states are after so many
// ends of pieces.
enum Frame { FRAME_NODE, FRAME_NEXT, FRAME_ROW, FRAME_ROWS, FRAME_ADDRESS, FRAME_TOP, FRAME_WORDS };
enum Shared { TAKE, TOP, SEARCH_VARS };

DEVICE u32 search_words(const SearchParams& p) { return SEARCH_VARS + (1 + FRAME_WORDS) * (p.max_depth + 1) + p.max_depth + 2; }
DEVICE u32* search_vars() { return shared_memory(); }
DEVICE u32* path_of(const SearchParams&) { return shared_memory() + SEARCH_VARS; }
DEVICE u32* frames_of(const SearchParams& p) { return shared_memory() + SEARCH_VARS + p.max_depth + 1; }
DEVICE u32* ways_of(const SearchParams& p) { return shared_memory() + SEARCH_VARS + (1 + FRAME_WORDS) * (p.max_depth + 1); }

// Whether a row of terminals and what is viable have something in common. A warp.
DEVICE bool intersects(const Grammar& g, const u32* row, const u32* viable) {
    u32 common = 0;
    for (u32 i = lane(); i < g.terminal_words; i += LANES) common |= row[i] & load(viable + i);
    return __ballot_sync(ALL_LANES, common != 0) != 0;
}

// Whether one of some foes is viable on the way. Each warp alike.
DEVICE bool has_foes(const Grammar& g, const SearchParams& p, const u32* image, u32 first, u32 end) {
    const Tree& tree = *(const Tree*)image;
    const u32 *foes = image + tree.foes, *sets = image + tree.sets;
    for (u32 i = first; i < end; i++) {
        const u32* record = p.pool.memory + ways_of(p)[foes[2 * i]];
        if (intersects(g, sets + (u64)foes[2 * i + 1] * g.terminal_words, viable_of(g, record))) return true;
    }
    return false;
}

// Adds the tokens of a node that was reached: groups of which something wanted is viable. A warp takes a group.
DEVICE void visit(const Grammar& g, const SearchParams& p, const Config& config, u32 node, const u32* viable) {
    const u32* image = config.tree;
    const Tree& tree = *(const Tree*)image;
    u32* mask = p.masks + config.mask * p.mask_stride;
    const u32 *places = image + tree.token_places, *tokens = image + tree.tokens, *foes = image + tree.group_foes;
    u32 end = image[tree.group_starts + node + 1];
    for (u32 group = image[tree.group_starts + node] + warp(); group < end; group += n_warps()) {
        if (!intersects(g, image + tree.wanted + (u64)group * g.terminal_words, viable)) continue;
        if (has_foes(g, p, image, foes[2 * group], foes[2 * group + 1])) continue;
        bool in_doubt = image[tree.in_doubt + group];
        u32* bits = in_doubt ? p.doubts + (u64)config.mask * p.mask_words : mask;
        u32 begin = places[2 * group], stop = places[2 * group + 1];
        for (u32 i = begin + lane(); i < stop; i += LANES) {
            if (!has_bit(bits, tokens[i])) set_bit(bits, tokens[i]);
        }
        if (begin == stop) {
            const u32* row = image + tree.dense + (u64)image[tree.dense_row + group] * p.mask_words;
            if (in_doubt) {
                for (u32 i = lane(); i < p.mask_words; i += LANES) {
                    if (row[i] & ~load(bits + i)) atomicOr(bits + i, row[i]);
                }
                continue;
            }
            u32 at = 0;
            if (lane() == 0) at = atomicAdd(p.n_accepted + config.mask, 1u);
            at = __shfl_sync(ALL_LANES, at, 0);
            if (at < p.max_accepted) {
                if (lane() == 0) p.accepted[(u64)config.mask * p.max_accepted + at] = (u64)row;
            } else {
                for (u32 i = lane(); i < p.mask_words; i += LANES) {
                    if (row[i] & ~load(mask + i)) atomicOr(mask + i, row[i]);
                }
            }
        }
    }
    if (threadIdx.x == 0) atomicAdd(p.counts, 1u);
}

// Puts the children of a node into the queue of a level.
DEVICE void push_children(const SearchParams& p, u32 config, u32 node, u32 parent, u32 level) {
    const u32* image = p.configs[config].tree;
    const Tree& tree = *(const Tree*)image;
    u32 first = image[tree.child_starts + node], end = image[tree.child_starts + node + 1];
    for (u32 i = first + threadIdx.x; i < end; i += blockDim.x) {
        u32 at = atomicAdd(p.counters + level, 1u);
        if (at >= p.capacity) {
            complain(p, p.configs[config], OUT_OF_QUEUE);
            continue;
        }
        Entry entry = {config, image[tree.children + i], parent, 0, 0, NONE, 0, 0};
        p.entries[(u64)level * p.capacity + at] = entry;
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
    if (config.mask == NONE) return;
    u32 state = state_of(p, config);
    if (state == NONE) return;
    Grammar g = open_grammar(config.grammar);
    u32* slot = slot_of(p.pool, config.slot);
    u32 address = states_of(p.pool, slot)[state];
    if (threadIdx.x == 0) ways_of(p)[0] = address;
    __syncthreads();
    visit(g, p, config, 0, viable_of(g, p.pool.memory + address));
    push_children(p, blockIdx.x, 0, NONE, 0);
}

// A state on the way, and the number of states that the way has added.
struct Reached {
    u32 row, rows, address;
};

// What a record is written to: `top` and `end` are words of the pool's memory; the arena's is moved by all blocks.
struct Store {
    u32* top;
    u32 begin, end, status;
};

// Reads the pieces of a node from the state `at`. False if the parser cannot follow. `added`: a state was made.
DEVICE bool follow(const Grammar& g, const SearchParams& p, const Config& config, u32 node, Reached& at, const Store& store, bool& added) {
    const u32* image = config.tree;
    const Tree& tree = *(const Tree*)image;
    u32 first = image[tree.scan_starts + node], n = image[tree.scan_starts + node + 1] - first;
    const u32* foes = image + tree.node_foes + 2 * node;
    if (has_foes(g, p, image, foes[0], foes[1])) return false;
    added = n > 0;
    if (n == 0) return true;
    u32* slot = slot_of(p.pool, config.slot);
    View view = {p.pool.memory, states_of(p.pool, slot), slot[0], path_of(p)};
    Scratch s;
    if (!open_scratch(g, p.pool, view.n_states + at.rows, search_words(p), 0, 1, s)) {
        if (threadIdx.x == 0) complain(p, config, TOO_LARGE);
        return false;
    }
    Edges edges = {0, image + tree.scans + first, at.row, n, image[tree.skip + node]};
    if (!compute_tier(g, s, view, edges)) return false;
    predict(g, s, view);
    if (threadIdx.x == 0) {
        u32 words = aligned(whole_words(g, s));
        u32 used = atomicAdd(store.top, words);
        bool fits = (u64)used + words <= store.end - store.begin;
        if (!fits) complain(p, config, store.status);
        s.vars[RESULT] = fits ? (u32)DONE : store.status;
        s.vars[ADDRESS] = store.begin + used;
    }
    __syncthreads();
    if (s.vars[RESULT] != DONE) return false;
    place_behind(g, s, s.vars[ADDRESS]);
    write_record(g, s, p.pool.memory, 0, 0);
    at.row = view.n_states + at.rows;
    at.rows++;
    at.address = s.vars[ADDRESS];
    return true;
}

// Where the parent of an entry of this level is; lists the states on the way to it.
DEVICE Reached come_to(const SearchParams& p, const Entry& entry) {
    const Config& config = p.configs[entry.config];
    Reached at;
    if (entry.parent == NONE) {
        at.row = state_of(p, config), at.rows = 0;
        at.address = states_of(p.pool, slot_of(p.pool, config.slot))[at.row];
    } else {
        const Entry& parent = p.entries[entry.parent];
        at.row = parent.row, at.rows = parent.rows, at.address = parent.address;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 depth = p.level;
        for (u32 e = entry.parent; e != NONE; e = p.entries[e].parent) {
            if (p.entries[e].added) path_of(p)[p.entries[e].rows - 1] = p.entries[e].address;
            ways_of(p)[depth--] = p.entries[e].address;
        }
        ways_of(p)[0] = states_of(p.pool, slot_of(p.pool, config.slot))[state_of(p, config)];
    }
    __syncthreads();
    return at;
}

// The nodes of a level.
KERNEL search_level(SearchParams p) {
    u32 n = p.counters[p.level] < p.capacity ? p.counters[p.level] : p.capacity;
    Store arena = {p.counters + p.n_levels + 1, p.arena, p.arena + p.arena_words, OUT_OF_ARENA};
    for (u32 i = blockIdx.x; i < n; i += gridDim.x) {
        u32 id = p.level * p.capacity + i;
        Entry entry = p.entries[id];
        const Config& config = p.configs[entry.config];
        Grammar g = open_grammar(config.grammar);
        Reached at = come_to(p, entry);
        bool added;
        if (!follow(g, p, config, entry.node, at, arena, added)) continue;
        visit(g, p, config, entry.node, viable_of(g, p.pool.memory + at.address));
        if (threadIdx.x == 0) {
            Entry& place = p.entries[id];
            place.row = at.row, place.rows = at.rows, place.address = at.address, place.added = added;
            atomicAdd(p.counts + 1, 1u);
        }
        __threadfence();
        push_children(p, entry.config, entry.node, id, p.level + 1);
    }
}

// From the nodes of the last level on, in depth.
KERNEL search_depth(SearchParams p) {
    u32 n = p.counters[p.level] < p.capacity ? p.counters[p.level] : p.capacity;
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
        Entry entry = p.entries[p.level * p.capacity + i];
        const Config& config = p.configs[entry.config];
        Grammar g = open_grammar(config.grammar);
        const u32* image = config.tree;
        const Tree& tree = *(const Tree*)image;
        Reached at = come_to(p, entry);
        u32 depth = 0, node = entry.node, top = 0;
        for (;;) {
            // The node is to be reached from `at`, its parent's.
            bool added, reached = follow(g, p, config, node, at, stack, added);
            if (reached) visit(g, p, config, node, viable_of(g, p.pool.memory + at.address));
            __syncthreads();
            if (threadIdx.x == 0) {
                if (!reached) vars[TOP] = top;
                else {
                    u32* frame = frames + depth * FRAME_WORDS;
                    frame[FRAME_NODE] = node, frame[FRAME_NEXT] = image[tree.child_starts + node];
                    frame[FRAME_ROW] = at.row, frame[FRAME_ROWS] = at.rows, frame[FRAME_ADDRESS] = at.address, frame[FRAME_TOP] = top;
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
                found = next < image[tree.child_starts + frame[FRAME_NODE] + 1];
                __syncthreads();
                if (found) {
                    node = image[tree.children + next];
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

// The OR of dense rows of token sets into masks: a thread owns a word of a mask, so nothing is atomic. gridDim.y masks.
KERNEL mask_or(MaskOrParams p) {
    u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= p.mask_words) return;
    const u64* rows = p.rows + (u64)blockIdx.y * p.max_rows;
    u32* place = p.masks + blockIdx.y * p.mask_stride + word;
    u32 bits = *place, n = p.n_rows[blockIdx.y] < p.max_rows ? p.n_rows[blockIdx.y] : p.max_rows, i = 0;
    // Four at a time, so that four loads are under way.
    for (; i + 4 <= n; i += 4) {
        bits |= ((const u32*)rows[i])[word] | ((const u32*)rows[i + 1])[word] | ((const u32*)rows[i + 2])[word] | ((const u32*)rows[i + 3])[word];
    }
    for (; i < n; i++) bits |= ((const u32*)rows[i])[word];
    *place = bits;
    if (p.doubts && (p.doubts[(u64)blockIdx.y * p.mask_words + word] & ~bits)) atomicMax(p.status + blockIdx.y, (u32)IN_DOUBT);
}
