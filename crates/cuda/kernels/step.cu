// Sequences: a tier more (`step`), whether a terminal may follow, asked from below (`ancestor_up`), and fork,
// rollback and release (`fork_slots`, `give_back`).
#include "predict.cuh"

// Where the next words of a sequence go, in thread 0: a page that has room for them, or a fresh one.
struct Cursor {
    u32 n_pages, used, n_owned;
};

// Words that follow each other, all in one page; a multiple of `step` words into it. False if there is no
// page; `status` then says why.
DEVICE bool place(const Pool& pool, u32* slot, Cursor& cursor, u32 words, u32 step, u32& address,
    u32& status) {
    if (words > pool.page_words) return status = TOO_LARGE, false;
    u32 used = (cursor.used + step - 1) / step * step;
    if (cursor.n_pages == 0 || used + words > pool.page_words) {
        if (cursor.n_pages == cursor.n_owned) {
            if (cursor.n_owned == pool.max_pages) return status = TOO_MANY_PAGES, false;
            // Pages are only taken here and only given back elsewhere, so the stack of free ones needs no
            // more than a counter.
            int left = atomicSub(pool.n_free, 1);
            if (left <= 0) return atomicAdd(pool.n_free, 1), status = OUT_OF_PAGES, false;
            u32 page = pool.free_pages[left - 1];
            put(pool.references + page, 1u);
            put(pages_of(slot) + cursor.n_owned++, page);
        }
        cursor.n_pages++;
        used = 0;
    }
    address = pages_of(slot)[cursor.n_pages - 1] * pool.page_words + used;
    cursor.used = used + words;
    return true;
}

// Places for the record and the rows of all its spans: in one piece if the page at hand has room, or a fresh
// one has to be taken anyway; else wherever each fits. `whole` is the words of that one piece, or 0. Ends
// with a barrier.
DEVICE u32 place_record(const Grammar& g, const Pool& pool, u32* slot, const Scratch& s, u32& whole) {
    whole = whole_words(g, s);
    u32 n_spans = s.vars()[N_SPANS];
    u32 room = slot[1] > 0 ? pool.page_words - min_of(aligned(slot[2]), pool.page_words) : 0;
    bool fits = whole <= room || (record_words(g, n_spans) > room && whole <= pool.page_words);
    __syncthreads();
    if (threadIdx.x == 0) {
        Cursor cursor = {slot[1], slot[2], slot[3]};
        u32 status = DONE;
        u32 words = fits ? whole : record_words(g, n_spans);
        bool placed = place(pool, slot, cursor, words, ALIGNED, s.vars()[ADDRESS], status);
        for (u32 at = 0; placed && !fits && at < n_spans; at++) {
            placed = place(pool, slot, cursor, s.lengths()[s.list()[at]], 1, s.addresses()[at], status);
        }
        // Pages that were taken in vain stay with the sequence, which may need them next.
        put(slot + 3, cursor.n_owned);
        if (placed) put(slot + 1, cursor.n_pages), put(slot + 2, cursor.used);
        s.vars()[RESULT] = status;
    }
    __syncthreads();
    u32 status = s.vars()[RESULT];
    if (fits) place_behind(g, s, s.vars()[ADDRESS]);
    else whole = 0;
    return status;
}

// A block, or a team of blocks, a request: gridDim.x blocks in a team.
KERNEL step(StepParams params) {
    begin_copies();
    const Pool& pool = params.pool;
    const StepRequest& request = params.requests[blockIdx.y];
    u32 number = fetch(&request.slot);
    if (number == NONE) return;
    Grammar g = open_grammar(fetch(&request.grammar));
    // Not fetched: the first block writes to it at the end.
    u32* slot = slot_of(pool, number);
    u32 n_states = slot[0];
    View<SETTLED> view = {pool.memory, states_of(pool, slot), n_states, 0};
    Scratch s;
    u32 status = DONE;
    if (n_states == pool.max_states) status = TOO_MANY_STATES;
    else if (!open_scratch(g, pool, n_states > 0 ? n_states : 1, 0, blockIdx.x, gridDim.x, s))
        status = TOO_LARGE;
    else if (n_states == 0) {
        // The first state of a sequence has no rows. The host gives such requests to one block; a team makes
        // the same of them.
        clear(g, s);
        if (threadIdx.x == 0) s.vars()[ROOT] = 1;
        clear_board(g, s);
        leave(g, s);
    } else {
        Edges edges = {params.edges + 2 * fetch(&request.first_edge), 0, 0, fetch(&request.n_edges), 0};
        if (!compute_tier(g, s, view, edges)) status = NOT_VIABLE;
    }
    // The first block of a team writes the result; the others have nothing left to do, and look at nothing
    // that is written.
    if (blockIdx.x > 0) return;
    u32 whole = 0;
    if (status == DONE) {
        predict(g, s, view);
        status = place_record(g, pool, slot, s, whole);
    }
    if (status == DONE) write_record<SETTLED>(g, s, pool.memory, slot[1], slot[2]);
    if (threadIdx.x == 0) {
        if (status == DONE) {
            put(states_of(pool, slot) + n_states, s.vars()[ADDRESS]);
            put(slot, n_states + 1);
        }
        u32* result = params.results + RESULT_WORDS * fetch(&request.result);
        put(result, status), put(result + 1, n_states);
        if (status == DONE)
            put(result + 2, s.vars()[ROW_WORDS]), put(result + 3, s.vars()[ADDRESS]), put(result + 4, whole);
    }
}

// Algorithm 3: the symbols that can begin with what was read from each row on and then `terminal`; whether
// the start is one of them at a root.
KERNEL ancestor_up(UpParams params) {
    begin_copies();
    const Pool& pool = params.pool;
    const UpRequest& request = params.requests[blockIdx.x];
    Grammar g = open_grammar(fetch(&request.grammar));
    const u32* slot = slot_of(pool, fetch(&request.slot));
    View<SETTLED> view = {pool.memory, states_of(pool, slot), fetch(slot), 0};
    Scratch s;
    u32 *result = params.results + fetch(&request.result), row = fetch(&request.state),
        terminal = fetch(&request.terminal);
    if (!open_scratch(g, pool, row + 1, 0, 0, 1, s)) {
        if (threadIdx.x == 0) put(result, (u32)TOO_LARGE);
        return;
    }
    clear(g, s);
    const u32 *lexical = g.table(&Image::lexical), *lexical_symbols = g.table(&Image::lexical_symbols);
    for (u32 i = fetch(lexical + terminal) + threadIdx.x; i < fetch(lexical + terminal + 1);
         i += blockDim.x) {
        add_rows(s, fetch(lexical_symbols + i), row / 32, 1u << (row % 32));
    }
    fill<false>(g, s, view, g.table(&Image::first_inverse), 0);
    reach_root(g, s, view, RESULT);
    __syncthreads();
    if (threadIdx.x == 0) put(result, s.vars()[RESULT]);
}

// A sequence that begins like another: pages are shared, only the lists of pages and states are copied. The
// new one writes to none of them; the old one goes on behind what the new one reads.
KERNEL fork_slots(MoveParams params) {
    const Pool& pool = params.pool;
    const MoveRequest& request = params.requests[blockIdx.x];
    const u32* from = slot_of(pool, fetch(&request.from));
    u32 *slot = slot_of(pool, fetch(&request.slot)), n_states = fetch(from), n_pages = fetch(from + 1);
    for (u32 i = threadIdx.x; i < n_states; i += blockDim.x)
        put(states_of(pool, slot) + i, fetch(states_of(pool, from) + i));
    for (u32 i = threadIdx.x; i < n_pages; i += blockDim.x) {
        u32 page = fetch(pages_of(from) + i);
        put(pages_of(slot) + i, page);
        atomicAdd(pool.references + page, 1u);
    }
    if (threadIdx.x == 0)
        put(slot, n_states), put(slot + 1, n_pages), put(slot + 2, pool.page_words), put(slot + 3, n_pages);
}

// Back to the first `n_states` states: the pages beyond are given back, to the pool if nobody else holds
// them.
KERNEL give_back(MoveParams params) {
    const Pool& pool = params.pool;
    const MoveRequest& request = params.requests[blockIdx.x];
    u32 *slot = slot_of(pool, fetch(&request.slot)), n_states = fetch(&request.n_states), n_pages = 0,
        used = 0;
    if (n_states > 0) {
        const u32* record = pool.memory + fetch(states_of(pool, slot) + n_states - 1);
        n_pages = fetch(record + 2), used = fetch(record + 3);
    }
    for (u32 i = n_pages + threadIdx.x; i < slot[3]; i += blockDim.x) {
        u32 page = pages_of(slot)[i];
        if (atomicSub(pool.references + page, 1u) == 1)
            put(pool.free_pages + atomicAdd(pool.n_free, 1), page);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        // Others may read what follows in the last page. Blocks that give it back at the same time may make
        // this true in vain, never false in vain.
        bool is_shared = n_pages > 0 && load(pool.references + fetch(pages_of(slot) + n_pages - 1)) > 1;
        put(slot, n_states), put(slot + 1, n_pages), put(slot + 2, is_shared ? pool.page_words : used),
            put(slot + 3, n_pages);
    }
}
