/* Softmax regression on one kind of processor; the including file has defined its vectors, see there. */

#define CLASSES (REGISTERS < 32 ? 1 : 5) /* of which the logits of TOGETHER samples are formed at once */
#define FACTORS (REGISTERS < 32 ? 5 : 10) /* classes, of two vectors of whose update are formed at once */
#define HALF ((FACTORS + 1) / 2)
#define PARTS (LANES / VECTOR) /* vectors that hold the running sums of an inner product */

/* The first `count` numbers of a vector, up to all of them, zeros behind; none where it is negative. */
FUNCTION vector NAMED(load_some)(const float *from, int64_t count) {
#if VECTOR == 16
    return (vector)_mm512_maskz_loadu_ps((__mmask16)(count < 0 ? 0 : count < VECTOR ? (1 << count) - 1 : 0xffff), from);
#else
    const __m256 lanes = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
    return (vector)_mm256_maskload_ps(from, _mm256_castps_si256(_mm256_cmp_ps(lanes, _mm256_set1_ps(count), _CMP_LT_OQ)));
#endif
}

FUNCTION void NAMED(store_some)(float *to, vector value, int64_t count) {
#if VECTOR == 16
    _mm512_mask_storeu_ps(to, (__mmask16)(count < VECTOR ? (1 << count) - 1 : 0xffff), (__m512)value);
#else
    const __m256 lanes = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_maskstore_ps(to, _mm256_castps_si256(_mm256_cmp_ps(lanes, _mm256_set1_ps(count), _CMP_LT_OQ)), (__m256)value);
#endif
}

/* Of four inner products the sums of their running sums, by halves. */
FUNCTION __m128 NAMED(four_sums)(vector sums[TOGETHER][PARTS]) {
    __m128 half[TOGETHER];
    for (int row = 0; row < TOGETHER; row++) {
#if VECTOR == 16
        const __m256d above = _mm512_extractf64x4_pd(_mm512_castps_pd((__m512)sums[row][0]), 1);
        const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256((__m512)sums[row][0]), _mm256_castpd_ps(above));
#else
        const __m256 eight = _mm256_add_ps((__m256)sums[row][0], (__m256)sums[row][PARTS - 1]);
#endif
        half[row] = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    }
    const __m128 one = _mm_add_ps(_mm_movelh_ps(half[0], half[1]), _mm_movehl_ps(half[1], half[0]));
    const __m128 two = _mm_add_ps(_mm_movelh_ps(half[2], half[3]), _mm_movehl_ps(half[3], half[2]));
    return _mm_add_ps(_mm_shuffle_ps(one, two, _MM_SHUFFLE(2, 0, 2, 0)), _mm_shuffle_ps(one, two, _MM_SHUFFLE(3, 1, 3, 1)));
}

/* Adds the products of the numbers of samples and weights from `at` on, of LANES, or of `count` where these are fewer. */
FUNCTION void NAMED(add_lanes)(const int rows, const int classes, const int whole, const float *const *samples, const float *weights,
                               int64_t features, int64_t at, int64_t count, vector sums[CLASSES][TOGETHER][PARTS]) {
    for (int part = 0; part < PARTS; part++) {
        const int64_t first = at + part * VECTOR, some = count - part * VECTOR;
        vector numbers[TOGETHER];
        for (int row = 0; row < rows; row++)
            numbers[row] = whole ? LOAD(samples[row] + first) : NAMED(load_some)(samples[row] + first, some);
        for (int class = 0; class < classes; class++) {
            const float *own = weights + class * features + first;
            const vector other = whole ? LOAD(own) : NAMED(load_some)(own, some);
            for (int row = 0; row < rows; row++)
                sums[class][row][part] = MULTIPLY_ADD(numbers[row], other, sums[class][row][part]);
        }
    }
}

/* Logits without bias of `rows` samples, for some classes of all; those `ahead`, if any, are asked for from memory meanwhile. */
FUNCTION void NAMED(multiply)(const int rows, const int classes, const float *const *samples, const float *const *ahead,
                              const float *weights, int64_t features, float *logits, int64_t all) {
    vector sums[CLASSES][TOGETHER][PARTS];
    for (int class = 0; class < classes; class++)
        for (int row = 0; row < TOGETHER; row++)
            for (int part = 0; part < PARTS; part++) sums[class][row][part] = ALL(0);
    int64_t at = 0;
    for (; at + LANES <= features; at += LANES) {
        for (int row = 0; ahead && row < rows; row++) __builtin_prefetch(ahead[row] + at);
        NAMED(add_lanes)(rows, classes, 1, samples, weights, features, at, LANES, sums);
    }
    if (at < features) NAMED(add_lanes)(rows, classes, 0, samples, weights, features, at, features - at, sums);
    for (int class = 0; class < classes; class++) {
        float found[TOGETHER];
        _mm_storeu_ps(found, NAMED(four_sums)(sums[class]));
        for (int row = 0; row < rows; row++) logits[row * all + class] = found[row];
    }
}

/* Functions of their own, here and below: in one with much else the compiler has no registers left for the loop. */
#define FOR_SIZE(name, rows, classes)                                                                                   \
    ALONE void NAMED(name)(const float *const *samples, const float *const *ahead, const float *weights,                \
                           int64_t features, float *logits, int64_t all) {                                              \
        NAMED(multiply)(rows, classes, samples, ahead, weights, features, logits, all);                                 \
    }
FOR_SIZE(multiply_piece, TOGETHER, CLASSES)
FOR_SIZE(multiply_one_class, TOGETHER, 1)
FOR_SIZE(multiply_one_sample, 1, CLASSES)
FOR_SIZE(multiply_one, 1, 1)
#undef FOR_SIZE

/* Logits (count, classes) of the samples of a batch; behind them, where that is faster, logits of the last sample again. */
FUNCTION void NAMED(form_logits)(const regression *of, const tables *at, const float *model, int64_t count) {
    const int64_t all = of->classes, features = of->features;
    for (int64_t last = count; last % TOGETHER; last++) at->samples[last] = at->samples[count - 1];
    for (int64_t row = 0; row < count; row += TOGETHER) {
        const int is_one = row + 1 == count;
        const float *const *samples = at->samples + row;
        for (int64_t class = 0, classes; class < all; class += classes) {
            classes = all - class < CLASSES ? 1 : CLASSES;
            const float *weights = model + class * features;
            const float *const *ahead = class == 0 && row + TOGETHER < count ? samples + TOGETHER : 0;
            float *logits = at->logits + row * all + class;
            if (!is_one && classes > 1) NAMED(multiply_piece)(samples, ahead, weights, features, logits, all);
            else if (!is_one) NAMED(multiply_one_class)(samples, ahead, weights, features, logits, all);
            else if (classes > 1) NAMED(multiply_one_sample)(samples, ahead, weights, features, logits, all);
            else NAMED(multiply_one)(samples, ahead, weights, features, logits, all);
        }
    }
    const float *biases = model + all * features;
    for (int64_t row = 0; row < count && of->has_biases; row++)
        for (int64_t class = 0; class < all; class++) at->logits[row * all + class] += biases[class];
}

/* Where a sum over the samples of a batch goes: to <- kept * to + sum, of which nothing matters that was there where `kept` is 0; and
 * model <- start + to, where there is a model. */
typedef struct {
    float kept, *to, *model;
    const float *start;
} NAMED(place);

FUNCTION NAMED(place) NAMED(from_class)(const NAMED(place) *at, int64_t first) {
    return (NAMED(place)){at->kept, at->to + first, at->model ? at->model + first : at->model, at->start + first};
}

/* Of `classes` rows `across` vectors, or `some` numbers of one, to which samples add with their factors. */
FUNCTION void NAMED(add_piece)(const int classes, const int across, int64_t some, int64_t count, const float *const *samples, int64_t at,
                               const float *factors, int64_t all, int64_t features, const NAMED(place) *place) {
    vector sums[FACTORS][2];
    for (int class = 0; class < classes; class++)
        for (int n = 0; n < across; n++) sums[class][n] = ALL(0);
    for (int64_t sample = 0; sample < count; sample++, factors += all) {
        vector numbers[2];
        for (int n = 0; n < across; n++)
            numbers[n] = some ? NAMED(load_some)(samples[sample] + at, some) : LOAD(samples[sample] + at + n * VECTOR);
        for (int class = 0; class < classes; class++)
            for (int n = 0; n < across; n++) sums[class][n] = MULTIPLY_ADD(ALL(factors[class]), numbers[n], sums[class][n]);
    }
    for (int class = 0; class < classes; class++)
        for (int n = 0; n < across; n++) {
            const int64_t first = class * features + at + n * VECTOR;
            float *const to = place->to + first;
            vector sum = sums[class][n];
            if (place->kept != 0) sum = MULTIPLY_ADD(ALL(place->kept), some ? NAMED(load_some)(to, some) : LOAD(to), sum);
            if (some) NAMED(store_some)(to, sum, some);
            else STORE(to, sum);
            if (!place->model) continue;
            if (some) NAMED(store_some)(place->model + first, NAMED(load_some)(place->start + first, some) + sum, some);
            else STORE(place->model + first, LOAD(place->start + first) + sum);
        }
}

#define FOR_CLASSES(name, classes)                                                                                          \
    ALONE void NAMED(name)(int64_t count, const float *const *samples, const float *factors, int64_t all, int64_t features, \
                           const NAMED(place) *place) {                                                                     \
        int64_t at = 0;                                                                                                     \
        for (; at + 2 * VECTOR <= features; at += 2 * VECTOR)                                                               \
            NAMED(add_piece)(classes, 2, 0, count, samples, at, factors, all, features, place);                             \
        for (; at + VECTOR <= features; at += VECTOR)                                                                       \
            NAMED(add_piece)(classes, 1, 0, count, samples, at, factors, all, features, place);                             \
        if (at < features) NAMED(add_piece)(classes, 1, features - at, count, samples, at, factors, all, features, place);  \
    }
FOR_CLASSES(add_all, FACTORS)
FOR_CLASSES(add_half, HALF)
FOR_CLASSES(add_two, 2)
FOR_CLASSES(add_one, 1)
#undef FOR_CLASSES

/* The samples of a batch with their factors, each with a 1 behind its numbers where there are biases. */
FUNCTION void NAMED(add_samples)(const regression *of, const tables *at, int64_t count, const NAMED(place) *place) {
    const int64_t all = of->classes, features = of->features;
    for (int64_t class = 0, classes; class < all; class += classes) {
        const float *factors = at->logits + class;
        const NAMED(place) own = NAMED(from_class)(place, class * features);
        if (all - class >= FACTORS) classes = FACTORS, NAMED(add_all)(count, at->samples, factors, all, features, &own);
        else if (all - class >= HALF) classes = HALF, NAMED(add_half)(count, at->samples, factors, all, features, &own);
        else if (all - class >= 2) classes = 2, NAMED(add_two)(count, at->samples, factors, all, features, &own);
        else classes = 1, NAMED(add_one)(count, at->samples, factors, all, features, &own);
    }
    for (int64_t class = 0; class < all && of->has_biases; class++) {
        const NAMED(place) own = NAMED(from_class)(place, all * features + class);
        float sum = 0;
        for (int64_t sample = 0; sample < count; sample++) sum += at->logits[sample * all + class];
        *own.to = own.kept == 0 ? sum : own.kept * *own.to + sum;
        if (own.model) *own.model = *own.start + *own.to;
    }
}

/* The velocity, shrunk towards the start, moves the update and with it the model. */
FUNCTION void NAMED(move)(float *restrict velocity, float *restrict update, const float *restrict start, float *restrict model,
                          float pull, int64_t count) {
    for (int64_t at = 0; at < count; at++) {
        velocity[at] -= pull * update[at];
        update[at] += velocity[at];
        model[at] = start[at] + update[at];
    }
}

/* The squared norm of an update, class by class. */
FUNCTION double NAMED(energy)(const regression *of, const float *update) {
    double energy = 0;
    for (int64_t class = 0; class < of->classes; class++, update += of->features) {
        float lanes[LANES] = {0};
        int64_t at = 0;
        for (; at + LANES <= of->features; at += LANES)
            for (int lane = 0; lane < LANES; lane++) lanes[lane] += update[at + lane] * update[at + lane];
        for (int lane = 0; at + lane < of->features; lane++) lanes[lane] += update[at + lane] * update[at + lane];
        energy += over_lanes(lanes);
    }
    for (int64_t class = 0; class < of->classes && of->has_biases; class++) energy += (double)update[class] * update[class];
    return energy;
}

/* All steps of a client that has one at least; returns the sum of the losses. After the first step velocity and update are equal. */
FUNCTION double NAMED(train_one)(const regression *of, const descent *by, const tables *at, const batch *batches, int64_t client,
                                 const float *samples, const int64_t *targets, const float *start, float *update) {
    const int64_t numbers = of->classes * (of->features + (of->has_biases ? 1 : 0));
    const float pull = by->rate * by->pull;
    const float *model = start;
    double losses = 0;
    for (int64_t step = 0; step < of->steps && client < batches[step].clients; step++, model = at->model) {
        const batch *const now = batches + step;
        const int is_last = step + 1 == of->steps || client >= now[1].clients;
        const int64_t *const rows = now->rows + client * now->rows_apart;
        const float *const weights = now->weights + client * now->weights_apart;
        int64_t count = 0;
        for (; count < now->samples && weights[count] != 0; count++) at->samples[count] = samples + rows[count] * of->features;
        NAMED(form_logits)(of, at, model, count);
        losses += form_factors(at, count, of->classes, rows, targets, weights, by->rate);
        if (step && by->momentum) {
            if (step == 1) memcpy(at->velocity, update, numbers * sizeof *update);
            NAMED(add_samples)(of, at, count, &(NAMED(place)){by->momentum, at->velocity, 0, start});
            NAMED(move)(at->velocity, update, start, at->model, pull, numbers);
        } else
            NAMED(add_samples)(of, at, count, &(NAMED(place)){step ? 1.0f - pull : 0, update, is_last ? 0 : at->model, start});
    }
    return losses;
}

ALONE void NAMED(train)(const regression *of, const descent *by, const batch *batches, const float *samples, const int64_t *targets,
                        const float *start, float *updates, double *losses, double *energies, void *room) {
    const tables at = tables_in(of, room);
    for (int64_t client = 0; client < of->clients; client++, updates += of->apart) {
        if (of->steps && client < batches[0].clients)
            losses[client] = NAMED(train_one)(of, by, &at, batches, client, samples, targets, start, updates);
        else {
            losses[client] = 0;
            memset(updates, 0, of->apart * sizeof *updates);
        }
        energies[client] = NAMED(energy)(of, updates);
    }
}
#undef CLASSES
#undef FACTORS
#undef HALF
#undef PARTS
