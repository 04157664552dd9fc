/* What all kernels have in common: each is compiled for several processors, of which the one that it runs on is taken. */

#include <stdint.h>

#if defined(__x86_64__) && defined(__gnu_linux__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif
#define UNROLLED(times) _Pragma(STRING(GCC unroll times)) /* clang knows it too */
#define STRING(text) #text
#define INLINED static inline __attribute__((always_inline))

#define LANES 16 /* numbers side by side in a vector register */

INLINED int64_t smaller(int64_t one, int64_t other) { return one < other ? one : other; }

INLINED int64_t larger(int64_t one, int64_t other) { return one > other ? one : other; }

/* The sum of all lanes, by halves; what is in them is lost. */
INLINED float over_lanes(float *lanes) {
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
    return lanes[0];
}

INLINED int64_t rounded_up(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

/* Products in the next running sum, of those that are left: as in matrix products of MKL the last two are of equal length. */
INLINED int64_t running(int64_t left, int64_t longest) {
    return left > 2 * longest ? longest : left > longest ? (left + 1) / 2 : left;
}

/* The next place in `room` where a vector lies in one line of the cache. */
INLINED float *aligned(float *room) {
    const uintptr_t line = LANES * sizeof(float);
    return (float *)(((uintptr_t)room + line - 1) / line * line);
}
