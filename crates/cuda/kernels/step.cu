// Sequences: a tier more (`step`), whether a terminal may follow, asked from below (`ancestor_up`), and fork, rollback and release (`fork_slots`, `give_back`).
#include "predict.cuh"

// Where the next words of a sequence go, in thread 0: a page that has room for them, or a fresh one.
struct Cursor {
    u32 n_pages, used, n_owned;
};

// Words that follow each other, all in one page; a multiple of `step` words into it. False if there is no page; `status` then says why.
DEVICE bool place(const Pool& pool, u32* slot, Cursor& cursor, u32 words, u32 step, u32& address, u32& status) {
    if (words > pool.page_words) return status = TOO_LARGE, false;
    u32 used = (cursor.used + step - 1) / step * step;
    if (cursor.n_pages == 0 || used + words > pool.page_words) {
        if (cursor.n_pages == cursor.n_owned) {
            if (cursor.n_owned == pool.max_pages) return status = TOO_MANY_PAGES, false;
            // Pages are only taken here and only given back elsewhere, so the stack of free ones needs no more than a counter.
            int left = atomicSub(pool.n_free, 1);
            if (left <= 0) return atomicAdd(pool.n_free, 1), status = OUT_OF_PAGES, false;
            u32 page = pool.free_pages[left - 1];
            pool.references[page] = 1;
            pages_of(slot)[cursor.n_owned++] = page;
        }
        cursor.n_pages++;
        used = 0;
    }
    address = pages_of(slot)[cursor.n_pages - 1] * pool.page_words + used;
    cursor.used = used + words;
    return true;
}

// Places for the record and the rows of all its spans: in one piece if the page at hand has room, or a fresh one has to be taken anyway; else wherever each
// fits. `whole` is the words of that one piece, or 0. Ends with a barrier.
DEVICE u32 place_record(const Grammar& g, const Pool& pool, u32* slot, Scratch& s, u32& whole) {
    whole = whole_words(g, s);
    u32 n_spans = s.vars[N_SPANS], room = slot[1] > 0 ? pool.page_words - min_of(aligned(slot[2]), pool.page_words) : 0;
    bool fits = whole <= room || (record_words(g, n_spans) > room && whole <= pool.page_words);
    __syncthreads();
    if (threadIdx.x == 0) {
        Cursor cursor = {slot[1], slot[2], slot[3]};
        u32 status = DONE;
        bool placed = place(pool, slot, cursor, fits ? whole : record_words(g, n_spans), ALIGNED, s.vars[ADDRESS], status);
        for (u32 at = 0; placed && !fits && at < n_spans; at++) {
            placed = place(pool, slot, cursor, s.lengths[s.list[at]], 1, s.addresses[at], status);
        }
        // Pages that were taken in vain stay with the sequence, which may need them next.
        slot[3] = cursor.n_owned;
        if (placed) slot[1] = cursor.n_pages, slot[2] = cursor.used;
        s.vars[RESULT] = status;
    }
    __syncthreads();
    u32 status = s.vars[RESULT];
    if (fits) place_behind(g, s, s.vars[ADDRESS]);
    else whole = 0;
    return status;
}

// A block, or a team of blocks, a request: gridDim.x blocks in a team.
KERNEL step(StepParams params) {
    const Pool& pool = params.pool;
    const StepRequest& request = params.requests[blockIdx.y];
    if (request.slot == NONE) return;
    Grammar g = open_grammar(request.grammar);
    u32* slot = slot_of(pool, request.slot);
    u32 n_states = slot[0];
    View view = {pool.memory, states_of(pool, slot), n_states, 0};
    Scratch s;
    u32 status = DONE;
    if (n_states == pool.max_states) status = TOO_MANY_STATES;
    else if (!open_scratch(g, pool, n_states > 0 ? n_states : 1, 0, blockIdx.x, gridDim.x, s)) status = TOO_LARGE;
    else if (n_states == 0) {
        clear(g, s);
        if (threadIdx.x == 0) s.vars[ROOT] = 1;
        __syncthreads();
    } else {
        Edges edges = {params.edges + 2 * request.first_edge, 0, 0, request.n_edges, 0};
        if (!compute_tier(g, s, view, edges)) status = NOT_VIABLE;
    }
    // The first block of a team writes the result; the others have nothing left to do, and look at nothing that is written.
    if (blockIdx.x > 0) return;
    u32 whole = 0;
    if (status == DONE) {
        predict(g, s, view);
        status = place_record(g, pool, slot, s, whole);
    }
    if (status == DONE) write_record(g, s, pool.memory, slot[1], slot[2]);
    if (threadIdx.x == 0) {
        if (status == DONE) {
            states_of(pool, slot)[n_states] = s.vars[ADDRESS];
            slot[0] = n_states + 1;
        }
        u32* result = params.results + RESULT_WORDS * request.result;
        result[0] = status, result[1] = n_states;
        if (status == DONE) result[2] = s.vars[ROW_WORDS], result[3] = s.vars[ADDRESS], result[4] = whole;
    }
}

// Algorithm 3: the symbols that can begin with what was read from each row on and then `terminal`; whether the start is one of them at a root.
KERNEL ancestor_up(UpParams params) {
    const Pool& pool = params.pool;
    const UpRequest& request = params.requests[blockIdx.x];
    Grammar g = open_grammar(request.grammar);
    u32* slot = slot_of(pool, request.slot);
    View view = {pool.memory, states_of(pool, slot), slot[0], 0};
    Scratch s;
    u32* result = params.results + request.result;
    if (!open_scratch(g, pool, request.state + 1, 0, 0, 1, s)) {
        if (threadIdx.x == 0) *result = TOO_LARGE;
        return;
    }
    clear(g, s);
    u32 row = request.state;
    for (u32 i = g.lexical[request.terminal] + threadIdx.x; i < g.lexical[request.terminal + 1]; i += blockDim.x) {
        add_rows(s, g.lexical_symbols[i], row / 32, 1u << (row % 32));
    }
    fill(g, s, view, g.first_inverse, 0);
    for (u32 w = threadIdx.x; w < s.n_words; w += blockDim.x) {
        for (u32 rows = load(board_of(s, w) + g.start); rows; rows &= rows - 1) {
            if (record_of(view, w * 32 + lowest_bit(rows))[0] & IS_ROOT) atomicOr(s.vars + RESULT, 1u);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) *result = s.vars[RESULT];
}

// A sequence that begins like another: pages are shared, only the lists of pages and states are copied. The new one writes to none of them; the old
// one goes on behind what the new one reads.
KERNEL fork_slots(MoveParams params) {
    const Pool& pool = params.pool;
    const MoveRequest& request = params.requests[blockIdx.x];
    u32 *from = slot_of(pool, request.from), *slot = slot_of(pool, request.slot);
    for (u32 i = threadIdx.x; i < from[0]; i += blockDim.x) states_of(pool, slot)[i] = states_of(pool, from)[i];
    for (u32 i = threadIdx.x; i < from[1]; i += blockDim.x) {
        u32 page = pages_of(from)[i];
        pages_of(slot)[i] = page;
        atomicAdd(pool.references + page, 1u);
    }
    if (threadIdx.x == 0) slot[0] = from[0], slot[1] = from[1], slot[2] = pool.page_words, slot[3] = from[1];
}

// Back to the first `n_states` states: the pages beyond are given back, to the pool if nobody else holds them.
KERNEL give_back(MoveParams params) {
    const Pool& pool = params.pool;
    const MoveRequest& request = params.requests[blockIdx.x];
    u32* slot = slot_of(pool, request.slot);
    u32 n_pages = 0, used = 0;
    if (request.n_states > 0) {
        const u32* record = pool.memory + states_of(pool, slot)[request.n_states - 1];
        n_pages = record[2], used = record[3];
    }
    for (u32 i = n_pages + threadIdx.x; i < slot[3]; i += blockDim.x) {
        u32 page = pages_of(slot)[i];
        if (atomicSub(pool.references + page, 1u) == 1) pool.free_pages[atomicAdd(pool.n_free, 1)] = page;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        // Others may read what follows in the last page.
        bool is_shared = n_pages > 0 && pool.references[pages_of(slot)[n_pages - 1]] > 1;
        slot[0] = request.n_states, slot[1] = n_pages, slot[2] = is_shared ? pool.page_words : used, slot[3] = n_pages;
    }
}
