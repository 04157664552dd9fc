/* Elementary functions in single precision, which a compiler can do for many numbers side by side.
 *
 * Every operation rounds by itself (hatch_build.py forbids contraction), so that all processors give the same numbers. */

#include <string.h>

#include "processors.h"

INLINED float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINED uint32_t as_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ln u for normal u > 0, by the polynomial of the Cephes library on [sqrt(1/2), sqrt(2)). */
INLINED float logarithm(float u) {
    const uint32_t bits = as_bits(u);
    const int32_t exponent = (int32_t)(bits - 0x3f3504f3u) >> 23;
    const float x = as_float(bits - ((uint32_t)exponent << 23)) - 1.0f;
    float p = 7.0376836292e-2f;
    p = p * x - 1.1514610310e-1f;
    p = p * x + 1.1676998740e-1f;
    p = p * x - 1.2420140846e-1f;
    p = p * x + 1.4249322787e-1f;
    p = p * x - 1.6668057665e-1f;
    p = p * x + 2.0000714765e-1f;
    p = p * x - 2.4999993993e-1f;
    p = p * x + 3.3333331174e-1f;
    const float z = x * x;
    return x - 0.5f * z + x * z * p + (float)exponent * 0.6931471805599453f;
}

/* exp x for x <= 0, by the polynomial of the Cephes library on [-ln 2 / 2, ln 2 / 2]; 0 below -87, NaN of NaN. */
INLINED float exponential(float x) {
    const float bounded = x < -87.0f ? -87.0f : x;
    const float shifted = bounded * 1.44269504088896341f + 12582912.0f; /* whose last bits are the nearest whole number */
    const float whole = shifted - 12582912.0f;
    const float rest = bounded - whole * 0.693359375f + whole * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * rest + 1.3981999507e-3f;
    p = p * rest + 8.3334519073e-3f;
    p = p * rest + 4.1665795894e-2f;
    p = p * rest + 1.6666665459e-1f;
    p = p * rest + 5.0000001201e-1f;
    const float value = (p * rest * rest + rest + 1.0f) * as_float((as_bits(shifted) << 23) + 0x3f800000u);
    return x < -87.0f ? 0.0f : value; /* whose products would be denormal numbers, which are slow */
}
