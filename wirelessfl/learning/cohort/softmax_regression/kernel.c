/* Local training of many clients whose model is softmax regression, by gradient descent: all steps of one client after the other.
 *
 * The weights and the samples of a client stay in the cache for all of its steps. Logits are inner products in LANES running sums,
 * gradients are sums over the samples of a batch: a piece of either is formed at once, in registers, with a single rounding for a
 * product and its addition. So all processors round alike. On a processor without instructions for that nothing is written. */

#include "../../../kernels/elementary.h"

#define TOGETHER 4 /* samples whose logits are formed at once */

/* Numbers of clients and of steps. A sample has `features`; a model has as many weights for each class and, behind all of them, a
 * bias each where it `has_biases`. Updates are `apart` numbers apart; a batch has at most `samples`. */
typedef struct {
    int64_t clients, steps, features, classes, has_biases, apart, samples;
} regression;

/* Batches of a step, of each of the first so many clients up to so many samples: their rows and the weights of their losses, 0 behind
 * a client's last. Those of one client and the next are so many numbers apart. */
typedef struct {
    const int64_t *rows;
    const float *weights;
    int64_t clients, samples, rows_apart, weights_apart;
} batch;

/* Gradient descent: v <- momentum v + gradient + pull * update, update <- update - rate v. */
typedef struct {
    float rate, momentum, pull;
} descent;

/* Memory for one client: weights and biases, -rate v of them, and of a batch the logits, which become factors of the samples; of each
 * sample where it is, the logit of its class, which becomes its loss, and the sum of exponentials. */
typedef struct {
    float *model, *velocity, *logits, *own, *totals;
    const float **samples;
} tables;

static tables tables_in(const regression *of, void *room) {
    const int64_t samples = rounded_up(of->samples, TOGETHER), numbers = of->classes * (of->features + 1);
    tables at = {.samples = room};
    at.model = aligned((float *)(at.samples + samples));
    at.velocity = aligned(at.model + numbers);
    at.logits = aligned(at.velocity + numbers);
    at.own = at.logits + of->classes * samples;
    at.totals = at.own + samples;
    return at;
}

/* The logits of a batch, of samples of the classes `targets`, become factors of the samples in a step: -rate times derivatives of the
 * loss. Returns the sum of the cross entropies. Of a sample all is NaN where one of its logits is. */
INLINED double form_factors(const tables *at, int64_t count, int64_t classes, const int64_t *rows, const int64_t *targets,
                            const float *weights, float rate) {
    float *logits = at->logits;
    for (int64_t sample = 0; sample < count; sample++, logits += classes) {
        float largest = logits[0];
        for (int64_t class = 1; class < classes; class++) largest = logits[class] > largest ? logits[class] : largest;
        for (int64_t class = 0; class < classes; class++) logits[class] -= largest;
        at->own[sample] = logits[targets[rows[sample]]];
    }
    for (int64_t number = 0; number < count * classes; number++) at->logits[number] = exponential(at->logits[number]);
    logits = at->logits;
    for (int64_t sample = 0; sample < count; sample++, logits += classes) {
        float total = 0;
        for (int64_t class = 0; class < classes; class++) total += logits[class];
        at->totals[sample] = total;
        const float length = rate * weights[sample], factor = -length / total;
        for (int64_t class = 0; class < classes; class++) logits[class] *= factor;
        logits[targets[rows[sample]]] += length;
    }
    for (int64_t sample = 0; sample < count; sample++) {
        const float total = at->totals[sample];
        at->own[sample] = total == total ? logarithm(total) - at->own[sample] : total;
    }
    double losses = 0;
    for (int64_t sample = 0; sample < count; sample++) losses += at->own[sample];
    return losses;
}

#define PASSES "../learning/cohort/softmax_regression/passes.h"
#include "../../../kernels/vectors.h"

/* From samples (rows, features) and their classes `targets`, and a model `start`, updates (clients, weights and biases), and of each
 * client the sum of the losses and the squared norm of its update. */
void wirelessfl_train_softmax_regression(const regression *of, const descent *by, const batch *batches, const float *samples,
                                         const int64_t *targets, const float *start, float *updates, double *losses,
                                         double *energies, void *room) {
    RUN(train, of, by, batches, samples, targets, start, updates, losses, energies, room);
}
