// The kernels, compiled against the shim; bulk.cpp compiles them again.
#include "shim.h"

#ifndef VARIANT
#define VARIANT plain
#endif

namespace VARIANT {
#include "../kernels/anygram.cu"

using shim::call;

// In the order of `Kernel` in ../src/layout.rs.
const shim::Kernel KERNELS[shim::N_KERNELS] = {
    call<StepParams, step>,           call<UpParams, ancestor_up>,         call<MoveParams, fork_slots>,
    call<MoveParams, give_back>,      call<SearchParams, search_clear>,    call<SearchParams, search_roots>,
    call<SearchParams, search_level>, call<SearchParams, search_depth>,    call<MaskOrParams, mask_or>,
    call<LogitsParams, mask_logits>,
};
}  // namespace VARIANT
