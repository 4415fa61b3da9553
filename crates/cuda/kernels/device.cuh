// What the kernels use of a device: everything that CUDA offers beyond C++ comes in through this file, so that the shim (../shim/shim.h), which
// runs the same sources on the CPU, knows what it has to offer.
#pragma once

#ifdef __CUDACC__
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
// Any number of threads that a block may have can be launched.
#define KERNEL extern "C" __global__ void __launch_bounds__(1024)
#define DEVICE static __device__ __forceinline__
extern __shared__ u32 dynamic_shared[];
DEVICE u32* shared_memory() { return dynamic_shared; }
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

// A word that other threads of the block may be adding bits to: bits only ever appear, so a stale value costs a superfluous atomic and no more.
DEVICE u32 load(const u32* place) { return *(const volatile u32*)place; }

DEVICE bool has_bit(const u32* words, u32 bit) { return load(words + bit / 32) >> (bit % 32) & 1; }
DEVICE void set_bit(u32* words, u32 bit) { atomicOr(words + bit / 32, 1u << (bit % 32)); }
DEVICE u32 lane() { return threadIdx.x % LANES; }
DEVICE u32 warp() { return threadIdx.x / LANES; }
DEVICE u32 n_warps() { return blockDim.x / LANES; }
DEVICE u32 min_of(u32 a, u32 b) { return a < b ? a : b; }
DEVICE u32 highest_bit(u32 word) { return 31 - __clz((int)word); }
DEVICE u32 lowest_bit(u32 word) { return __ffs((int)word) - 1; }

// 32 words of 32 bits turned over: bit `k` of what lane `j` gets is bit `j` of what lane `k` has. By halves, quarters, and so on.
DEVICE u32 transpose(u32 bits) {
    for (u32 width = 16, mask = 0x0000ffffu; width; width /= 2, mask ^= mask << width) {
        u32 other = __shfl_xor_sync(ALL_LANES, bits, (int)width);
        bits = lane() & width ? (bits & ~mask) | ((other >> width) & mask) : (bits & mask) | ((other & mask) << width);
    }
    return bits;
}
