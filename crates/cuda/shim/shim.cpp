// The fibers behind shim.h, and the kernels compiled against it.
#include "../kernels/anygram.cu"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#define SHIM_UCONTEXT
#endif

namespace shim {

thread_local Thread* now = nullptr;

namespace {

const size_t STACK = 128 << 10;

enum Wait { RUNS, SPINS, AT_BARRIER, AT_WARP, DONE_FIBER };

struct Block;

struct Fiber {
    Thread thread;
    Block* block = nullptr;
    Wait wait = DONE_FIBER;
    u32 generation = 0;
    // Its warp and its block sleep when their lots are drawn.
    u32 lot_of_warp = 0, lot_of_block = 0;
    char* stack = nullptr;
#ifdef SHIM_UCONTEXT
    ucontext_t context;
#else
    void* context = nullptr;
#endif
};

struct Barrier {
    u32 arrived = 0, generation = 0;
    int collected = 0, result = 0;
};

struct Warp {
    u32 arrived = 0, generation = 0;
    u32 values[2][32];
};

struct Block {
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    Barrier barrier;
    u32 n_running = 0;
    bool is_there = false;
    u32* shared = nullptr;
    // What was posted since the last fence.
    std::vector<std::pair<u32*, u32>> posts;
};

struct Launch {
    std::vector<Block> resident;
    u64 random = 1;
    // Atomic operations so far, which is how those that wait may come to see something.
    u64 n_atomics = 0;
    bool is_cooperative = false;
    void (*kernel)(const void*) = nullptr;
    const void* params = nullptr;
#ifdef SHIM_UCONTEXT
    ucontext_t scheduler;
#else
    void* scheduler = nullptr;
#endif
};

thread_local Launch* launch = nullptr;
thread_local Fiber* current = nullptr;

u64 draw() {
    u64& x = launch->random;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x * 0x2545f4914f6cdd1dull >> 32;
}

#ifdef SHIM_UCONTEXT
void to_scheduler(Fiber& fiber) { swapcontext(&fiber.context, &launch->scheduler); }
void to_fiber(Fiber& fiber) { swapcontext(&launch->scheduler, &fiber.context); }
#else
// Saves the registers that a call keeps, and goes on where another stack was left.
extern "C" void anygram_shim_switch(void** save, void* to);
asm(R"(
.text
.globl anygram_shim_switch
anygram_shim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
void to_scheduler(Fiber& fiber) { anygram_shim_switch(&fiber.context, launch->scheduler); }
void to_fiber(Fiber& fiber) { anygram_shim_switch(&launch->scheduler, fiber.context); }
#endif

void run_fiber() {
    launch->kernel(launch->params);
    current->wait = DONE_FIBER;
    current->block->n_running--;
    for (;;) to_scheduler(*current);
}

void start(Fiber& fiber) {
    fiber.wait = RUNS;
#ifdef SHIM_UCONTEXT
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = STACK;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_fiber, 0);
#else
    void** top = (void**)(fiber.stack + STACK);
    *--top = nullptr;
    *--top = (void*)run_fiber;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    fiber.context = top;
#endif
}

bool can_run(const Fiber& fiber) {
    const Block& block = *fiber.block;
    switch (fiber.wait) {
        case RUNS:
        case SPINS: return true;
        case AT_BARRIER: return block.barrier.generation != fiber.generation;
        case AT_WARP: return block.warps[fiber.thread.thread.x / 32].generation != fiber.generation;
        default: return false;
    }
}

}  // namespace

int barrier(int value) {
    Fiber& fiber = *current;
    Barrier& barrier = fiber.block->barrier;
    barrier.collected |= value;
    fiber.generation = barrier.generation;
    if (++barrier.arrived == fiber.block->fibers.size()) {
        barrier.result = barrier.collected;
        barrier.arrived = 0, barrier.collected = 0;
        barrier.generation++;
    }
    // The one who came last waits too, so that it does not always go first.
    fiber.wait = AT_BARRIER;
    to_scheduler(fiber);
    return barrier.result;
}

const u32* exchange(u32 value) {
    Fiber& fiber = *current;
    u32 lane = fiber.thread.thread.x % 32;
    Warp& warp = fiber.block->warps[fiber.thread.thread.x / 32];
    // Nobody can be two exchanges ahead, so two sets of values are enough.
    u32* values = warp.values[warp.generation % 2];
    values[lane] = value;
    fiber.generation = warp.generation;
    if (++warp.arrived == 32) {
        warp.arrived = 0;
        warp.generation++;
    } else {
        fiber.wait = AT_WARP;
        to_scheduler(fiber);
    }
    return values;
}

void pause() {
    if (draw() % 16 == 0) {
        current->wait = RUNS;
        to_scheduler(*current);
    }
    // The operation follows before anything else runs.
    launch->n_atomics++;
}

void spin() {
    current->wait = SPINS;
    to_scheduler(*current);
}

void post(u32* place, u32 value) {
    if (launch->is_cooperative) current->block->posts.push_back({place, value});
    else *place = value;
}

void fence() {
    for (auto& [place, value] : current->block->posts) *place = value;
    current->block->posts.clear();
}

namespace {

void start(Block& block, u32 number, Dimensions grid) {
    u32 threads = (u32)block.fibers.size();
    block.warps.assign(threads / 32, Warp());
    block.barrier = Barrier();
    block.n_running = threads, block.is_there = true;
    u32 lot_of_block = (u32)draw() % 32, lot_of_warp = 0;
    for (u32 i = 0; i < threads; i++) {
        Fiber& fiber = block.fibers[i];
        if (i % 32 == 0) lot_of_warp = (u32)draw() % 32;
        fiber.lot_of_block = lot_of_block, fiber.lot_of_warp = lot_of_warp;
        fiber.block = &block;
        fiber.thread = {{i, 0, 0}, {number % grid.x, number / grid.x, 0}, {threads, 1, 1}, grid, block.shared};
        start(fiber);
    }
}

// Runs all blocks, in this order, as many at a time as are resident. False if some threads wait for others that never come.
bool run(Launch& self, const std::vector<u32>& blocks, Dimensions grid, u32 shared_words) {
    std::vector<Fiber*> order;
    size_t next = 0, n_left = blocks.size();
    auto take = [&](Block& block) {
        if (next == blocks.size()) return;
        std::memset(block.shared, 0xa5, shared_words * sizeof(u32));
        start(block, blocks[next++], grid);
    };
    for (Block& block : self.resident) {
        for (Fiber& fiber : block.fibers) order.push_back(&fiber);
        take(block);
    }
    size_t n = order.size();
    // For some rounds some warps, and some blocks, do nothing, so that they fall behind.
    u32 sleeping_warps = 0, sleeping_blocks = 0, n_rounds = 0;
    while (n_left > 0) {
        if (n_rounds == 0) {
            sleeping_warps = draw() % 2 ? (u32)(draw() & draw()) : 0, sleeping_blocks = draw() % 4 ? 0 : (u32)draw();
            n_rounds = 1 + (u32)draw() % (sleeping_blocks ? 1024 : 32);
        }
        n_rounds--;
        bool progress = false;
        u64 n_atomics = launch->n_atomics;
        // A new order each round: some steps of a shuffle, which costs less than a whole one.
        for (u32 i = 0; i < 4 + n / 16; i++) std::swap(order[draw() % n], order[draw() % n]);
        for (Fiber* fiber : order) {
            if (!can_run(*fiber) || (sleeping_warps >> fiber->lot_of_warp & 1) || (sleeping_blocks >> fiber->lot_of_block & 1)) continue;
            fiber->wait = RUNS;
            current = fiber;
            now = &fiber->thread;
            to_fiber(*fiber);
            // Who spins has found nothing new, and if nobody has or brings anything, nobody will.
            if (fiber->wait != SPINS) progress = true;
        }
        if (!progress && launch->n_atomics == n_atomics) {
            if (!sleeping_warps && !sleeping_blocks) return false;
            sleeping_warps = sleeping_blocks = 0;
        }
        for (Block& block : self.resident) {
            if (!block.is_there || block.n_running > 0) continue;
            n_left--;
            block.is_there = false;
            take(block);
        }
    }
    return true;
}

template <typename P, void (*kernel)(P)>
void call(const void* params) { kernel(*(const P*)params); }

void (*const KERNELS[])(const void*) = {
    call<StepParams, step>,           call<UpParams, ancestor_up>,         call<MoveParams, fork_slots>,
    call<MoveParams, give_back>,      call<SearchParams, search_clear>,    call<SearchParams, search_roots>,
    call<SearchParams, search_level>, call<SearchParams, search_depth>,    call<MaskOrParams, mask_or>,
    call<LogitsParams, mask_logits>,
};

}  // namespace
}  // namespace shim

// Runs a kernel. 0: done; 1: threads waited for each other in vain; 2: there is no such kernel, or no such grid.
extern "C" int anygram_shim_launch(u32 kernel, u32 grid_x, u32 grid_y, u32 threads, u32 shared_words, u32 is_cooperative, const void* params,
                                   u64 seed) {
    using namespace shim;
    if (kernel >= sizeof(KERNELS) / sizeof(*KERNELS) || threads == 0 || threads % 32 || threads > 1024) return 2;
    Launch self;
    launch = &self;
    self.kernel = KERNELS[kernel], self.params = params, self.is_cooperative = is_cooperative != 0;
    self.random = (seed * 0x9e3779b97f4a7c15ull) | 1;
    std::vector<u32> blocks(grid_x * grid_y);
    for (u32 i = 0; i < blocks.size(); i++) blocks[i] = i;
    for (u32 i = (u32)blocks.size(); i > 1; i--) std::swap(blocks[i - 1], blocks[draw() % i]);
    // Blocks that do not have to be there at the same time are so by chance.
    size_t n_resident = is_cooperative ? blocks.size() : std::min<size_t>(blocks.size(), 1 + draw() % 4);
    self.resident.resize(n_resident);
    // The stacks are kept from one launch to the next.
    static thread_local std::vector<char*> stacks;
    while (stacks.size() < n_resident * threads) stacks.push_back((char*)std::malloc(STACK));
    auto stack = stacks.begin();
    for (Block& block : self.resident) {
        block.fibers.resize(threads);
        for (Fiber& fiber : block.fibers) fiber.stack = *stack++;
        block.shared = (u32*)std::malloc(shared_words * sizeof(u32) + 1);
    }
    bool done = run(self, blocks, {grid_x, grid_y, 1}, shared_words);
    for (Block& block : self.resident) {
        for (auto& [place, value] : block.posts) *place = value;
        std::free(block.shared);
    }
    launch = nullptr, current = nullptr, now = nullptr;
    return done ? 0 : 1;
}
