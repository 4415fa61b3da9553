// The fibers behind shim.h, and the kernels compiled against it.
#include "../kernels/anygram.cu"

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

enum Wait { RUNS, AT_BARRIER, AT_WARP, DONE_FIBER };

struct Fiber {
    Thread thread;
    Wait wait = RUNS;
    u32 generation = 0;
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
    u32 current = 0, n_running = 0;
    u64 random = 1;
    void (*kernel)(const void*) = nullptr;
    const void* params = nullptr;
#ifdef SHIM_UCONTEXT
    ucontext_t scheduler;
#else
    void* scheduler = nullptr;
#endif
};

thread_local Block* block = nullptr;

u64 draw() {
    u64& x = block->random;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x * 0x2545f4914f6cdd1dull >> 32;
}

#ifdef SHIM_UCONTEXT
void to_scheduler(Fiber& fiber) { swapcontext(&fiber.context, &block->scheduler); }
void to_fiber(Fiber& fiber) { swapcontext(&block->scheduler, &fiber.context); }
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
void to_scheduler(Fiber& fiber) { anygram_shim_switch(&fiber.context, block->scheduler); }
void to_fiber(Fiber& fiber) { anygram_shim_switch(&block->scheduler, fiber.context); }
#endif

void run_fiber() {
    block->kernel(block->params);
    Fiber& fiber = block->fibers[block->current];
    fiber.wait = DONE_FIBER;
    block->n_running--;
    for (;;) to_scheduler(fiber);
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
    switch (fiber.wait) {
        case RUNS: return true;
        case AT_BARRIER: return block->barrier.generation != fiber.generation;
        case AT_WARP: return block->warps[fiber.thread.thread.x / 32].generation != fiber.generation;
        default: return false;
    }
}

}  // namespace

int barrier(int value) {
    Fiber& fiber = block->fibers[block->current];
    Barrier& barrier = block->barrier;
    barrier.collected |= value;
    fiber.generation = barrier.generation;
    if (++barrier.arrived == block->fibers.size()) {
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
    Fiber& fiber = block->fibers[block->current];
    u32 lane = fiber.thread.thread.x % 32;
    Warp& warp = block->warps[fiber.thread.thread.x / 32];
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
    if (draw() % 16) return;
    Fiber& fiber = block->fibers[block->current];
    fiber.wait = RUNS;
    to_scheduler(fiber);
}

namespace {

// Runs a block to its end. False if some threads wait for others that never come.
bool run(Block& self) {
    size_t n = self.fibers.size();
    std::vector<u32> order(n);
    for (u32 i = 0; i < n; i++) order[i] = i;
    while (self.n_running > 0) {
        bool progress = false;
        // A new order each round: some steps of a shuffle, which costs less than a whole one.
        for (u32 i = 0; i < 4 + n / 16; i++) std::swap(order[draw() % n], order[draw() % n]);
        for (u32 i : order) {
            Fiber& fiber = self.fibers[i];
            if (!can_run(fiber)) continue;
            progress = true;
            fiber.wait = RUNS;
            self.current = i;
            now = &fiber.thread;
            to_fiber(fiber);
        }
        if (!progress) return false;
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
extern "C" int anygram_shim_launch(u32 kernel, u32 grid_x, u32 grid_y, u32 threads, u32 shared_words, const void* params, u64 seed) {
    using namespace shim;
    if (kernel >= sizeof(KERNELS) / sizeof(*KERNELS) || threads == 0 || threads % 32 || threads > 1024) return 2;
    Block self;
    self.kernel = KERNELS[kernel], self.params = params;
    self.random = (seed * 0x9e3779b97f4a7c15ull) | 1;
    self.fibers.resize(threads);
    // The stacks are kept from one launch to the next.
    static thread_local std::vector<char*> stacks;
    while (stacks.size() < threads) stacks.push_back((char*)std::malloc(STACK));
    u32* shared = (u32*)std::malloc(shared_words * sizeof(u32) + 1);
    block = &self;
    std::vector<u32> blocks(grid_x * grid_y);
    for (u32 i = 0; i < blocks.size(); i++) blocks[i] = i;
    for (u32 i = (u32)blocks.size(); i > 1; i--) std::swap(blocks[i - 1], blocks[draw() % i]);
    bool done = true;
    for (u32 b : blocks) {
        std::memset(shared, 0xa5, shared_words * sizeof(u32));
        self.warps.assign(threads / 32, Warp());
        self.barrier = Barrier();
        self.n_running = threads;
        for (u32 i = 0; i < threads; i++) {
            Fiber& fiber = self.fibers[i];
            fiber.thread = {{i, 0, 0}, {b % grid_x, b / grid_x, 0}, {threads, 1, 1}, {grid_x, grid_y, 1}, shared};
            fiber.stack = stacks[i];
            start(fiber);
        }
        if (!(done = run(self))) break;
    }
    std::free(shared);
    block = nullptr, now = nullptr;
    return done ? 0 : 1;
}
