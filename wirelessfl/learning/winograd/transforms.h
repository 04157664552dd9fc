/* Winograd's transforms along one axis, of vectors that lie `step` apart, to vectors that lie `apart`.
 *
 * A tile has 6 pixels d along the axis, a kernel g r = 3 or 5 numbers, and there are 7 - r outputs A' [(G g) * (B' d)] (Lavin and
 * Gray, "Fast algorithms for convolutional neural networks", CVPR 2016). The derivative by the kernel is G' [(A y) * (B' d)] for
 * derivatives y by the outputs. The points are 0, n, -n, f, -f and infinity with n = 1 / sqrt(2), f = sqrt(2), where the usual
 * 1 and 2 lose twice as much to rounding (Barabasz et al., "Error analysis and improving the accuracy of Winograd convolution for
 * deep neural networks", ACM TOMS 2020). With h(x) = x (x^2 - 1/2) (x^2 - 2), h' is 1 at 0, -3/2 at n and -n, 6 at f and -f. */

#define NEAR 0.70710678f
#define FAR 1.41421356f

/* B' d: pixel by pixel the coefficients of h(x) / (x - point), and of h for infinity */
TRANSFORM(of_pixels)(const vector *d, int64_t step, vector *out, int64_t apart) {
    const vector near_even = d[4 * step] - 2 * d[2 * step], near_odd = NEAR * (d[3 * step] - 2 * d[step]);
    const vector far_even = d[4 * step] - 0.5f * d[2 * step], far_odd = FAR * (d[3 * step] - 0.5f * d[step]);
    out[0] = d[0] - 2.5f * d[2 * step] + d[4 * step];
    out[apart] = near_even + near_odd;
    out[2 * apart] = near_even - near_odd;
    out[3 * apart] = far_even + far_odd;
    out[4 * apart] = far_even - far_odd;
    out[5 * apart] = d[step] - 2.5f * d[3 * step] + d[5 * step];
}

/* G g: the kernel as a polynomial at each point, over h' there */
TRANSFORM(of_kernel)(const int r, const vector *g, int64_t step, vector *out, int64_t apart) {
    vector near_even = g[0] + 0.5f * g[2 * step], near_odd = g[step], far_even = g[0] + 2 * g[2 * step], far_odd = g[step];
    if (r == 5) {
        near_even += 0.25f * g[4 * step], near_odd += 0.5f * g[3 * step];
        far_even += 4 * g[4 * step], far_odd += 2 * g[3 * step];
    }
    near_even *= -2.0f / 3, near_odd *= -2.0f / 3 * NEAR, far_even *= 1.0f / 6, far_odd *= 1.0f / 6 * FAR;
    out[0] = g[0];
    out[apart] = near_even + near_odd;
    out[2 * apart] = near_even - near_odd;
    out[3 * apart] = far_even + far_odd;
    out[4 * apart] = far_even - far_odd;
    out[5 * apart] = g[(r - 1) * step];
}

/* G' u */
TRANSFORM(to_kernel)(const int r, const vector *u, int64_t step, vector *out, int64_t apart) {
    const vector near_even = -2.0f / 3 * (u[step] + u[2 * step]), near_odd = -2.0f / 3 * NEAR * (u[step] - u[2 * step]);
    const vector far_even = 1.0f / 6 * (u[3 * step] + u[4 * step]), far_odd = 1.0f / 6 * FAR * (u[3 * step] - u[4 * step]);
    out[0] = u[0] + near_even + far_even;
    out[apart] = near_odd + far_odd;
    out[2 * apart] = 0.5f * near_even + 2 * far_even;
    if (r == 5) {
        out[3 * apart] = 0.5f * near_odd + 2 * far_odd;
        out[4 * apart] = 0.25f * near_even + 4 * far_even;
    }
    out[(r - 1) * apart] += u[5 * step];
}

/* A' m: powers of each point times the products there */
TRANSFORM(to_outputs)(const int r, const vector *m, int64_t step, vector *out, int64_t apart) {
    const vector near_even = m[step] + m[2 * step], near_odd = NEAR * (m[step] - m[2 * step]);
    const vector far_even = m[3 * step] + m[4 * step], far_odd = FAR * (m[3 * step] - m[4 * step]);
    out[0] = m[0] + near_even + far_even;
    out[apart] = near_odd + far_odd;
    if (r == 3) {
        out[2 * apart] = 0.5f * near_even + 2 * far_even;
        out[3 * apart] = 0.5f * near_odd + 2 * far_odd;
    }
    out[(6 - r) * apart] += m[5 * step];
}

/* A y */
TRANSFORM(of_outputs)(const int r, const vector *y, int64_t step, vector *out, int64_t apart) {
    vector near_even = y[0], near_odd = y[step], far_even = y[0], far_odd = y[step];
    if (r == 3) {
        near_even += 0.5f * y[2 * step], near_odd += 0.5f * y[3 * step];
        far_even += 2 * y[2 * step], far_odd += 2 * y[3 * step];
    }
    near_odd *= NEAR, far_odd *= FAR;
    out[0] = y[0];
    out[apart] = near_even + near_odd;
    out[2 * apart] = near_even - near_odd;
    out[3 * apart] = far_even + far_odd;
    out[4 * apart] = far_even - far_odd;
    out[5 * apart] = y[(6 - r) * step];
}

#undef NEAR
#undef FAR
