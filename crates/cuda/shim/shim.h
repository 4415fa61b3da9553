// A CUDA device in a few hundred lines, for tests: some blocks at a time, or all of a cooperative launch, with threads as fibers that are switched at barriers,
// at the collectives of a warp, and, now and then, at atomics; in an order drawn from a seed. docs/gpu.md says what this can show and what not.
#pragma once
#include <cstddef>
#include <cstdint>

typedef uint32_t u32;
// As CUDA has it: 64 bits, and not `long` on any system.
typedef unsigned long long u64;
typedef uint16_t u16;

#define DEVICE static inline
#define KERNEL static void

struct Dimensions {
    u32 x, y, z;
};

namespace shim {
struct Thread {
    Dimensions thread, block, block_dim, grid_dim;
    u32* shared;
};
// The fiber that runs now.
extern thread_local Thread* now;
// Waits for all threads of the block; the OR of what they bring.
int barrier(int value);
// Waits for all lanes of the warp; what each brought.
const u32* exchange(u32 value);
// Perhaps lets others run.
void pause();
// Lets others run, since without them nothing goes on here.
void spin();
// A word that other blocks of a cooperative launch see after a fence of this one.
void post(u32* place, u32 value);
void fence();
}  // namespace shim

#define threadIdx (shim::now->thread)
#define blockIdx (shim::now->block)
#define blockDim (shim::now->block_dim)
#define gridDim (shim::now->grid_dim)

DEVICE u32* shared_memory() { return shim::now->shared; }
DEVICE void __syncthreads() { shim::barrier(0); }
DEVICE int __syncthreads_or(int value) { return shim::barrier(value != 0); }
DEVICE void __threadfence() { shim::fence(); }
DEVICE void post(u32* place, u32 value) { shim::post(place, value); }
DEVICE void relax() { shim::spin(); }
DEVICE void __syncwarp() { shim::exchange(0); }

DEVICE u32 __ballot_sync(u32, bool value) {
    const u32* all = shim::exchange(value);
    u32 bits = 0;
    for (u32 i = 0; i < 32; i++) bits |= (all[i] != 0) << i;
    return bits;
}
DEVICE u32 __shfl_sync(u32, u32 value, int from) { return shim::exchange(value)[from]; }
DEVICE u32 __shfl_up_sync(u32, u32 value, u32 by) {
    u32 own = threadIdx.x % 32;
    return shim::exchange(value)[own < by ? own : own - by];
}
DEVICE u32 __shfl_xor_sync(u32, u32 value, int by) {
    u32 own = threadIdx.x % 32;
    return shim::exchange(value)[own ^ (u32)by];
}

DEVICE int __clz(int word) { return word ? __builtin_clz((u32)word) : 32; }
DEVICE int __ffs(int word) { return __builtin_ffs(word); }
DEVICE u32 __popc(u32 word) { return (u32)__builtin_popcount(word); }

// All fibers are of one thread of the machine, so plain operations are atomic; what they are on a device is a matter of order between threads, which `pause` varies.
#define SHIM_ATOMIC(NAME, NEW)                                \
    template <typename T>                                     \
    DEVICE T NAME(T* place, T value) {                        \
        shim::pause();                                        \
        T old = *place;                                       \
        *place = (NEW);                                       \
        return old;                                           \
    }
SHIM_ATOMIC(atomicOr, old | value)
SHIM_ATOMIC(atomicAnd, old & value)
SHIM_ATOMIC(atomicAdd, old + value)
SHIM_ATOMIC(atomicSub, old - value)
SHIM_ATOMIC(atomicMax, old < value ? value : old)
