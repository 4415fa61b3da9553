// Small kernels that do what kernels must not do, each beside one that does it right: the tests of the shim itself.
#include "shim.h"

namespace wrong {

// [64] words, of which the first 32 hold their own numbers and the others rubbish; `result` has a word for each thread of a warp.
struct Params {
    u32 *words, *result;
};

struct alignas(16) Room {
    u32 words[64];
    u64 object;
};
BLOCK_SHARED(Room, room)

static void fetch_what_is_settled(Params p) {
    put(p.words + 32 + threadIdx.x, fetch(p.words + threadIdx.x));
    __syncthreads();
    p.result[threadIdx.x] = p.words[32 + (threadIdx.x ^ 1)];
}

static void fetch_what_was_put(Params p) {
    put(p.words + 32 + threadIdx.x, threadIdx.x);
    __syncthreads();
    p.result[threadIdx.x] = fetch(p.words + 32 + (threadIdx.x ^ 1));
}

static void add_to_what_was_fetched(Params p) {
    p.result[threadIdx.x] = fetch(p.words + threadIdx.x);
    __syncthreads();
    atomicAdd(p.words + (threadIdx.x ^ 1), 1u);
}

static void fetch_shared_memory(Params p) {
    shared_memory()[threadIdx.x] = 0;
    p.result[threadIdx.x] = fetch(shared_memory() + threadIdx.x);
}

// Numbers that the threads write, copied twice, from the end of the words to the room; fences and waits as wanted.
static void copy(Params p, bool fences, bool waits, u32 shift) {
    if (threadIdx.x == 0) bulk_init(&room().object);
    for (u32 turn = 0; turn < 2; turn++) {
        put(p.words + 32 + threadIdx.x, threadIdx.x + turn);
        if (fences) fence_proxy();
        __syncthreads();
        if (threadIdx.x == 0) bulk_expect(&room().object, 32 * 4 - 16);
        if (threadIdx.x < 7) bulk_copy(room().words + 4 * threadIdx.x + shift, p.words + 32 + 4 * threadIdx.x, 16, &room().object);
        if (waits) bulk_wait(&room().object, turn);
        p.result[threadIdx.x] = room().words[threadIdx.x];
        __syncthreads();
    }
}
static void copy_rightly(Params p) { copy(p, true, true, 0); }
static void copy_without_a_fence(Params p) { copy(p, false, true, 0); }
static void copy_without_waiting(Params p) { copy(p, true, false, 0); }
static void copy_to_odd_places(Params p) { copy(p, true, true, 1); }

using shim::call;

const shim::Kernel KERNELS[shim::N_WRONG] = {
    call<Params, fetch_what_is_settled>, call<Params, fetch_what_was_put>,   call<Params, add_to_what_was_fetched>,
    call<Params, fetch_shared_memory>,   call<Params, copy_rightly>,         call<Params, copy_without_a_fence>,
    call<Params, copy_without_waiting>,  call<Params, copy_to_odd_places>,
};
}  // namespace wrong
