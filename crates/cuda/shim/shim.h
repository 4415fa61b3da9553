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
#define METHOD inline
#define KERNEL static void
// The shim does not know a kernel by its macro; `anygram_shim_max_threads` has a list.
#define HEAVY_KERNEL KERNEL
#define FOUR_AT_A_TIME

static const u32 HEAVY_THREADS = 512;

struct alignas(16) uint4 {
    u32 x, y, z, w;
};

struct Dimensions {
    u32 x, y, z;
};

namespace shim {
// Bytes of static shared memory.
static const size_t FIXED = 16 << 10;

struct Thread {
    Dimensions thread, block, block_dim, grid_dim;
    u32* shared;
    void* fixed;
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
// Words that were read by the read-only path, or written. No word may be both in one launch, in whatever order.
void fetched(const void* place, size_t bytes);
void written(const void* place, size_t bytes);
// Copies as another proxy makes them: they come at any time before they are waited for, and read rubbish where a thread has written in this launch without having
// passed a fence of its own since.
void fence_proxy();
void bulk_init(u64* object);
void bulk_expect(u64* object, u32 bytes);
void bulk_copy(u32* to, const u32* from, u32 bytes, u64* object);
void bulk_wait(u64* object, u32 parity);

typedef void (*Kernel)(const void* params);
template <typename P, void (*kernel)(P)>
void call(const void* params) { kernel(*(const P*)params); }
static const u32 N_KERNELS = 10, N_WRONG = 8;
}  // namespace shim

// The kernels, the variant that copies blocks of memory, and some for the tests of the shim itself.
namespace plain {
extern const shim::Kernel KERNELS[shim::N_KERNELS];
}
namespace bulk {
extern const shim::Kernel KERNELS[shim::N_KERNELS];
}
namespace wrong {
extern const shim::Kernel KERNELS[shim::N_WRONG];
}

#define threadIdx (shim::now->thread)
#define blockIdx (shim::now->block)
#define blockDim (shim::now->block_dim)
#define gridDim (shim::now->grid_dim)

DEVICE u32* shared_memory() { return shim::now->shared; }
#define BLOCK_SHARED(TYPE, NAME)                                            \
    static_assert(sizeof(TYPE) <= shim::FIXED, "static shared memory");     \
    DEVICE TYPE& NAME() { return *(TYPE*)shim::now->fixed; }
template <typename T>
DEVICE T fetch(const T* place) {
    shim::fetched(place, sizeof(T));
    return *place;
}
template <typename T>
DEVICE void put(T* place, T value) {
    shim::written(place, sizeof(T));
    *place = value;
}
DEVICE void fence_proxy() { shim::fence_proxy(); }
DEVICE void fence_reuse() {}
DEVICE void bulk_init(u64* object) { shim::bulk_init(object); }
DEVICE void bulk_expect(u64* object, u32 bytes) { shim::bulk_expect(object, bytes); }
DEVICE void bulk_copy(u32* to, const u32* from, u32 bytes, u64* object) { shim::bulk_copy(to, from, bytes, object); }
DEVICE void bulk_wait(u64* object, u32 parity) { shim::bulk_wait(object, parity); }
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
        shim::written(place, sizeof(T));                      \
        T old = *place;                                       \
        *place = (NEW);                                       \
        return old;                                           \
    }
SHIM_ATOMIC(atomicOr, old | value)
SHIM_ATOMIC(atomicAnd, old & value)
SHIM_ATOMIC(atomicAdd, old + value)
SHIM_ATOMIC(atomicSub, old - value)
SHIM_ATOMIC(atomicMax, old < value ? value : old)
