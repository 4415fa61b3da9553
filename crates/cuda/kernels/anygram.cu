// All kernels, as one module.
#include "step.cu"
#include "search.cu"
#include "logits.cu"
