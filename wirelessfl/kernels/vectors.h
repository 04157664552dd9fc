/* Passes of a kernel, for AVX-512 and for AVX2 with fused multiplications. The including file has defined PASSES, the path of a
 * file from here that is written in the names below. RUN calls the function of that name for the processor that it runs on, and
 * does nothing where that has neither. Whoever defines WITHOUT_AVX512 sees what other processors do. */

#if defined(__x86_64__)
#include <immintrin.h>

typedef float vector_of_16 __attribute__((vector_size(64)));
typedef float vector_of_8 __attribute__((vector_size(32)));

/* Sets `count` numbers to 0, a multiple of VECTOR. */
#define ZEROS                                                                       \
    FUNCTION void NAMED(zeros)(float *numbers, int64_t count) {                     \
        for (int64_t at = 0; at < count; at += VECTOR) STORE(numbers + at, ALL(0)); \
    }

#define NAMED(name) name##_by_16
#define FUNCTION INLINED __attribute__((target("avx512f")))
#define ALONE static __attribute__((noinline, target("avx512f"))) /* not inlined */
#define vector vector_of_16
#define VECTOR 16
#define REGISTERS 32
#define LOAD(from) ((vector)_mm512_loadu_ps(from))
#define STORE(to, value) _mm512_storeu_ps(to, (__m512)(value))
#define ALL(value) ((vector)_mm512_set1_ps(value))
#define MULTIPLY_ADD(one, other, sum) ((vector)_mm512_fmadd_ps((__m512)(one), (__m512)(other), (__m512)(sum)))
ZEROS
#include PASSES
#undef NAMED
#undef FUNCTION
#undef ALONE
#undef vector
#undef VECTOR
#undef REGISTERS
#undef LOAD
#undef STORE
#undef ALL
#undef MULTIPLY_ADD

#define NAMED(name) name##_by_8
#define FUNCTION INLINED __attribute__((target("avx2,fma")))
#define ALONE static __attribute__((noinline, target("avx2,fma")))
#define vector vector_of_8
#define VECTOR 8
#define REGISTERS 16
#define LOAD(from) ((vector)_mm256_loadu_ps(from))
#define STORE(to, value) _mm256_storeu_ps(to, (__m256)(value))
#define ALL(value) ((vector)_mm256_set1_ps(value))
#define MULTIPLY_ADD(one, other, sum) ((vector)_mm256_fmadd_ps((__m256)(one), (__m256)(other), (__m256)(sum)))
ZEROS
#include PASSES

#ifdef WITHOUT_AVX512
#define HAS_16 0
#else
#define HAS_16 __builtin_cpu_supports("avx512f")
#endif
#define HAS_8 (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define RUN(name, ...) HAS_16 ? name##_by_16(__VA_ARGS__) : HAS_8 ? name##_by_8(__VA_ARGS__) : (void)0
#else
#define RUN(name, ...) (void)0
#endif
