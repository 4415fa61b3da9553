// Predictions loaded by the unit that copies blocks of memory (TMA; sm_90 and later), instead of by the
// threads: a variant to be measured, compiled with ANYGRAM_TMA. The paper found that such loads do not help.
//
// The unit is another *proxy*: it sees what threads wrote, and they see what it wrote, only behind fences of
// their own kind.
//
//   what a launch wrote to records, then copied each thread that wrote has a fence, then a barrier
//   (`write_record`) the stage read by threads, then copied to a barrier, then a fence of each thread that
//   starts copies the stage copied to, then read by threads the threads wait for the barrier object that
//   counts the bytes
//
// What earlier launches wrote needs no fence. Nobody but the unit writes to the stage.
#pragma once
#include "chart.cuh"

// Words of a state's predictions that there is room for: 2,048 symbols.
static const u32 STAGE_WORDS = 64;
// Words from one state to the next: a multiple of four, as the unit wants it, and such that reading four
// words a lane is free of conflicts.
static const u32 STAGE_STRIDE = 68;

// How many of eight lanes, which read 16 bytes each at the same time, want the same bank, at worst.
DEVICE constexpr u32 worst_conflict(u32 stride) {
    u32 worst = 0;
    for (u32 first = 0; first < 32; first += 8) {
        u32 wanted[32] = {};
        for (u32 lane = first; lane < first + 8; lane++) {
            for (u32 word = 0; word < 4; word++) {
                u32 bank = (lane * stride + word) % 32;
                wanted[bank]++;
                worst = wanted[bank] > worst ? wanted[bank] : worst;
            }
        }
    }
    return worst;
}
static_assert(STAGE_STRIDE >= STAGE_WORDS && STAGE_STRIDE % 4 == 0,
    "rows have room and begin at multiples of 16 bytes");
static_assert(worst_conflict(STAGE_STRIDE) == 1, "each bank is wanted once");
static_assert(worst_conflict(64) == 8 && worst_conflict(66) == 2, "the count tells strides apart");

// What a block copies to, and the barrier object on which it waits.
struct alignas(16) Stage {
    u32 rows[LANES * STAGE_STRIDE];
    u64 arrived;
    // How often the object has been waited for, modulo 2, and one more.
    u32 phase, pad;
};

BLOCK_SHARED(Stage, stage)

// Sets up the barrier object, once a launch. All threads take part.
DEVICE void begin_copies() {
    if (threadIdx.x == 0) {
        stage().phase = 1;
        bulk_init(&stage().arrived);
        fence_proxy();
    }
    __syncthreads();
}

// Predictions of the states of a word, side by side in shared memory, STAGE_STRIDE words apart. All threads
// take part; between two calls there is a barrier.
template <Age AGE>
DEVICE const u32* copy_predictions(const Grammar& g, const Scratch& s, const View<AGE>& view, u32 word) {
    u32 n = min_of(s.n_rows - word * 32, LANES), bytes = aligned(g.symbol_words) * 4;
    if (threadIdx.x == 0) stage().phase ^= 1;
    // All have read what the stage held.
    __syncthreads();
    u32 phase = stage().phase;
    if (warp() == 0) {
        if (lane() == 0) bulk_expect(&stage().arrived, n * bytes);
        __syncwarp();
        if (lane() < n) {
            fence_reuse();
            bulk_copy(stage().rows + lane() * STAGE_STRIDE,
                predicted_of(record_of(view, word * 32 + lane())), bytes, &stage().arrived);
        }
    }
    bulk_wait(&stage().arrived, phase);
    return stage().rows;
}
