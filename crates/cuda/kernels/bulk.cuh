// Loads by the unit that copies blocks of memory (TMA; sm_90 and later), instead of by the threads: a variant to be measured, compiled with ANYGRAM_TMA. The paper found
// that such loads do not help. The shim does not have them.
#pragma once
#include "chart.cuh"

// Words of a state's predictions that there is room for: 2,048 symbols.
static const u32 STAGE_WORDS = 64;

// Predictions of the states of a word, side by side in shared memory. All threads take part; ends with what was copied visible to all.
DEVICE const u32* copy_predictions(const Grammar& g, const Scratch& s, const View& view, u32 word) {
    __shared__ alignas(16) u32 stage[LANES * STAGE_WORDS];
    __shared__ alignas(8) u64 barrier;
    u32 n = s.n_rows - word * 32 < LANES ? s.n_rows - word * 32 : LANES, bytes = aligned(g.symbol_words) * 4;
    u32 place = (u32)__cvta_generic_to_shared(&barrier);
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place), "r"(n * bytes) : "memory");
    }
    __syncthreads();
    if (threadIdx.x < n) {
        const u32* predicted = predicted_of(record_of(view, word * 32 + threadIdx.x));
        u32 to = (u32)__cvta_generic_to_shared(stage + threadIdx.x * STAGE_WORDS);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                     "l"(__cvta_generic_to_global(predicted)), "r"(bytes), "r"(place)
                     : "memory");
    }
    u32 done = 0;
    while (!done) {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(place)
                     : "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(place) : "memory");
    return stage;
}
