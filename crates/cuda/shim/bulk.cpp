// The kernels once more, with predictions loaded by the unit that copies blocks of memory.
#define ANYGRAM_TMA
#define VARIANT bulk
#include "kernels.cpp"
