// Logits masked in place. They are moved as bits, so half and bfloat16 need no arithmetic: minus infinity has
// the same meaning in all.
#include "layout.cuh"

KERNEL mask_logits(LogitsParams p) {
    const u32* mask = p.masks + blockIdx.y * p.mask_stride;
    for (u32 column = blockIdx.x * blockDim.x + threadIdx.x; column < p.n_columns;
         column += gridDim.x * blockDim.x) {
        if (column < p.n_tokens && is_set(fetch(mask + column / 32), column)) continue;
        u64 at = blockIdx.y * p.stride + column;
        if (p.bytes == 2) ((u16*)p.logits)[at] = (u16)p.minus_infinity;
        else ((u32*)p.logits)[at] = p.minus_infinity;
    }
}
