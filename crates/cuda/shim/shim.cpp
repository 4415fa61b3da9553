// The fibers behind shim.h.
#include "shim.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
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
    // What it wrote since its last fence for other proxies.
    std::vector<const u32*> unfenced;
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

// A barrier object that counts bytes of copies, and those that are under way. A block has one.
struct Copies {
    struct Copy {
        u32* to;
        const u32* from;
        u32 words;
    };
    u64* object = nullptr;
    std::vector<Copy> copies;
    bool is_armed = false;
    u32 expected = 0, started = 0, phase = 0;
};

struct Block {
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    Barrier barrier;
    u32 n_running = 0;
    bool is_there = false;
    u32* shared = nullptr;
    void* fixed = nullptr;
    Copies bulk;
    // What was posted since the last fence.
    std::vector<std::pair<u32*, u32>> posts;
};

// Which of 1,024 words were read by the read-only path, and which were written.
struct Marks {
    u32 fetched[32] = {}, written[32] = {};
};

// What a launch answers.
enum Outcome { ALL_DONE = 0, IN_VAIN = 1, NO_SUCH_LAUNCH = 2, FETCHED_AND_WRITTEN = 3, WRONG_COPY = 4 };

struct Launch {
    std::vector<Block> resident;
    size_t shared_bytes = 0;
    Outcome outcome = ALL_DONE;
    std::unordered_map<u64, Marks> marks;
    // Those that were looked for last, by the end of their numbers.
    std::pair<u64, Marks*> recent[64] = {};
    bool has_copies = false;
    // Words that were written by a fiber and not fenced since.
    std::unordered_map<const u32*, Fiber*> unfenced;
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

namespace {

void complain(Outcome outcome) {
    if (launch->outcome == ALL_DONE) launch->outcome = outcome;
}

bool is_shared(const void* place) {
    auto lies_in = [&](const void* from, size_t bytes) { return (const char*)place >= (const char*)from && (const char*)place < (const char*)from + bytes; };
    return lies_in(current->block->shared, launch->shared_bytes) || lies_in(current->block->fixed, FIXED);
}

Marks& marks_of(u64 number) {
    auto& [key, marks] = launch->recent[number % 64];
    if (!marks || key != number) key = number, marks = &launch->marks[number];
    return *marks;
}

void mark(const void* place, size_t bytes, u32 (Marks::*set)[32], u32 (Marks::*other)[32]) {
    for (u64 word = (u64)place / 4; word < ((u64)place + bytes + 3) / 4; word++) {
        Marks& marks = marks_of(word / 1024);
        u32 at = word % 1024 / 32, bit = 1u << (word % 32);
        (marks.*set)[at] |= bit;
        if ((marks.*other)[at] & bit) complain(FETCHED_AND_WRITTEN);
    }
}

}  // namespace

void fetched(const void* place, size_t bytes) {
    if (is_shared(place)) complain(FETCHED_AND_WRITTEN);
    else mark(place, bytes, &Marks::fetched, &Marks::written);
}

void written(const void* place, size_t bytes) {
    if (is_shared(place)) return;
    mark(place, bytes, &Marks::written, &Marks::fetched);
    for (size_t i = 0; launch->has_copies && i < bytes / 4; i++) {
        launch->unfenced[(const u32*)place + i] = current;
        current->unfenced.push_back((const u32*)place + i);
    }
}

void fence_proxy() {
    for (const u32* word : current->unfenced) {
        auto found = launch->unfenced.find(word);
        if (found != launch->unfenced.end() && found->second == current) launch->unfenced.erase(found);
    }
    current->unfenced.clear();
}

void bulk_init(u64* object) {
    current->block->bulk = Copies();
    current->block->bulk.object = object;
}

void bulk_expect(u64* object, u32 bytes) {
    Copies& bulk = current->block->bulk;
    if (bulk.object != object || bulk.is_armed) complain(WRONG_COPY);
    bulk.is_armed = true, bulk.expected += bytes;
    pause();
}

void bulk_copy(u32* to, const u32* from, u32 bytes, u64* object) {
    Copies& bulk = current->block->bulk;
    if (bulk.object != object || ((size_t)to | (size_t)from | bytes) % 16 || !is_shared(to) || !is_shared(to + bytes / 4 - 1)) return complain(WRONG_COPY);
    // It may come at any time, so nobody may look before it was waited for.
    std::memset(to, 0xa5, bytes);
    bulk.copies.push_back({to, from, bytes / 4});
    bulk.started += bytes;
    pause();
}

void bulk_wait(u64* object, u32 parity) {
    Copies& bulk = current->block->bulk;
    if (bulk.object != object) return complain(WRONG_COPY);
    while (bulk.phase % 2 == parity) {
        if (launch->outcome != ALL_DONE) return;
        if (!bulk.is_armed || bulk.started != bulk.expected) {
            spin();
            continue;
        }
        for (auto& [to, from, words] : bulk.copies) {
            for (u32 i = 0; i < words; i++) to[i] = launch->unfenced.count(from + i) ? 0xa5a5a5a5u : from[i];
        }
        bulk.copies.clear();
        bulk.is_armed = false, bulk.expected = bulk.started = 0, bulk.phase++;
    }
}

void post(u32* place, u32 value) {
    written(place, sizeof(u32));
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
        fiber.thread = {{i, 0, 0}, {number % grid.x, number / grid.x, 0}, {threads, 1, 1}, grid, block.shared, block.fixed};
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
        std::memset(block.fixed, 0xa5, FIXED);
        block.bulk = Copies();
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

const struct {
    const Kernel* kernels;
    u32 n;
} VARIANTS[] = {{plain::KERNELS, N_KERNELS}, {bulk::KERNELS, N_KERNELS}, {wrong::KERNELS, N_WRONG}};

}  // namespace
}  // namespace shim

// The most threads that a block of a kernel may have: `search_level` and `search_depth` are those that need many registers.
extern "C" u32 anygram_shim_max_threads(u32 kernel) { return kernel == 6 || kernel == 7 ? HEAVY_THREADS : 1024; }

// Runs a kernel of a variant: 0 as they are, 1 with copies of blocks of memory, 2 those of tests. The answer is an `Outcome`: done; threads waited for each other in
// vain; there is no such kernel, or no such grid; a word was read by the read-only path and written in the same launch; a copy was not what the unit can do.
extern "C" int anygram_shim_launch(u32 variant, u32 kernel, u32 grid_x, u32 grid_y, u32 threads, u32 shared_words, u32 is_cooperative,
                                   const void* params, u64 seed) {
    using namespace shim;
    if (variant > 2 || kernel >= VARIANTS[variant].n || threads == 0 || threads % 32 || threads > anygram_shim_max_threads(kernel)) return NO_SUCH_LAUNCH;
    Launch self;
    launch = &self;
    self.kernel = VARIANTS[variant].kernels[kernel], self.params = params, self.is_cooperative = is_cooperative != 0;
    self.shared_bytes = shared_words * sizeof(u32), self.has_copies = variant > 0;
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
        block.fixed = std::malloc(FIXED);
    }
    bool done = run(self, blocks, {grid_x, grid_y, 1}, shared_words);
    for (Block& block : self.resident) {
        for (auto& [place, value] : block.posts) *place = value;
        std::free(block.shared);
        std::free(block.fixed);
    }
    launch = nullptr, current = nullptr, now = nullptr;
    return done || self.outcome != ALL_DONE ? self.outcome : IN_VAIN;
}
