// What the kernels use of a device: everything that CUDA offers beyond C++ comes in through this file, so
// that the shim (../shim/shim.h), which runs the same sources on the CPU, knows what it has to offer.
#pragma once

#ifdef __CUDACC__
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
// Blocks of any size, so at most 64 registers a thread; no kernel spills. Without the 1 the assembler makes
// do with 32, and spills.
#define KERNEL extern "C" __global__ void __launch_bounds__(1024, 1)
// Kernels that would spill with 64 registers have smaller blocks, and 128.
#define HEAVY_KERNEL extern "C" __global__ void __launch_bounds__(HEAVY_THREADS, 1)
static const u32 HEAVY_THREADS = 512;
#define DEVICE static __device__ __forceinline__
#define METHOD __device__ __forceinline__
// The compiler unrolls the next loop four times, so that four loads are under way.
#define FOUR_AT_A_TIME _Pragma("unroll 4")
extern __shared__ u32 dynamic_shared[];
DEVICE u32* shared_memory() { return dynamic_shared; }
// Reads what nothing writes during the whole launch, through the read-only path of the multiprocessor
// (`ld.global.nc`), which does not see writes of the launch. The compiler may move such a read anywhere. The
// shim ends a launch that reads a word so and writes it too.
template <typename T>
DEVICE T fetch(const T* place) { return __ldg(place); }
DEVICE const u32* fetch(const u32* const* place) { return (const u32*)__ldg((const u64*)place); }
// Writes to global memory what later launches, or this block after a barrier, will read. The shim notes the
// place.
template <typename T>
DEVICE void put(T* place, T value) { *place = value; }
// Static shared memory of a block.
#define BLOCK_SHARED(TYPE, NAME) \
    DEVICE TYPE& NAME() {        \
        __shared__ TYPE it;      \
        return it;               \
    }
#ifdef ANYGRAM_TMA
// The unit that copies blocks of memory (sm_90), and an object on which threads wait for its copies.
DEVICE u32 place_in_shared(const void* place) { return (u32)__cvta_generic_to_shared(place); }
DEVICE void bulk_init(u64* object) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place_in_shared(object)) : "memory");
}
// What this thread wrote is seen by copies that are started after a barrier.
DEVICE void fence_proxy() { asm volatile("fence.proxy.async;" ::: "memory"); }
// What threads have read before the last barrier is not changed by copies that this one starts now. The same
// instruction; the shim does not take it for a fence after writes.
DEVICE void fence_reuse() { fence_proxy(); }
DEVICE void bulk_expect(u64* object, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place_in_shared(object)),
        "r"(bytes) : "memory");
}
DEVICE void bulk_copy(u32* to, const u32* from, u32 bytes, u64* object) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(place_in_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(place_in_shared(object))
                 : "memory");
}
// Until the phase with this parity is over.
DEVICE void bulk_wait(u64* object, u32 parity) {
    for (u32 done = 0; !done;) {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(place_in_shared(object)), "r"(parity)
                     : "memory");
    }
}
#endif
// A word for other blocks, which look at it after a fence and a counter.
DEVICE void post(u32* place, u32 value) { *(volatile u32*)place = value; }
// In a loop that waits for another block.
DEVICE void relax() { __nanosleep(32); }
#else
#include "shim.h"
#endif

static const u32 NONE = 0xffffffffu;
static const u32 LANES = 32;
static const u32 ALL_LANES = 0xffffffffu;

// Three ways to read a word, by who may be writing it.
//
//   load other threads of the block, or other blocks, may be writing it now. Volatile. Bits only ever appear,
//   so a stale value costs a superfluous atomic and no more. *place threads of this block wrote it, and a
//   barrier lies between; or other blocks did, and a fence and a counter lie between. fetch an earlier
//   launch, or the host, wrote it, and nobody writes it in this launch.
DEVICE u32 load(const u32* place) { return *(const volatile u32*)place; }

DEVICE bool is_set(u32 word, u32 bit) { return word >> (bit % 32) & 1; }
DEVICE bool has_bit(const u32* words, u32 bit) { return is_set(load(words + bit / 32), bit); }
DEVICE void set_bit(u32* words, u32 bit) { atomicOr(words + bit / 32, 1u << (bit % 32)); }
DEVICE u32 lane() { return threadIdx.x % LANES; }
DEVICE u32 warp() { return threadIdx.x / LANES; }
DEVICE u32 n_warps() { return blockDim.x / LANES; }
DEVICE u32 min_of(u32 a, u32 b) { return a < b ? a : b; }
DEVICE u32 highest_bit(u32 word) { return 31 - __clz((int)word); }
DEVICE u32 lowest_bit(u32 word) { return __ffs((int)word) - 1; }

// 32 words of 32 bits turned over: bit `k` of what lane `j` gets is bit `j` of what lane `k` has. By halves,
// quarters, and so on.
DEVICE u32 transpose(u32 bits) {
    for (u32 width = 16, mask = 0x0000ffffu; width; width /= 2, mask ^= mask << width) {
        u32 other = __shfl_xor_sync(ALL_LANES, bits, (int)width);
        bits = lane() & width ? (bits & ~mask) | ((other >> width) & mask)
            : (bits & mask) | ((other & mask) << width);
    }
    return bits;
}
