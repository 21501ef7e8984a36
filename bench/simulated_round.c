/* The simulated round by hand, for the bench to stand beside: OTFLinUCB with the buffered width (Vernade et al., ICML
   2020), d = 5, K = 10, m = 500, lambda = 1, delta = 0.1; ten actions of {0,1}^5 without zero, normalised; Bernoulli
   rewards of mean <a, theta>; geometric delays of mean 100 on {1, 2, ...}. It does what a simulation needs and no more:
   no V beside its inverse, no check of it, no delay for a round that does not convert. */

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { DIM = 5, COUNT = 10, WINDOW = 500, SLOTS = 512 };

static const double LAMBDA = 1.0, DELTA = 0.1, MEAN_DELAY = 100.0;

static const double ENTRY[6]={0,1,0.70710678118654752,0.57735026918962576,0.5,0.44721359549995794};
typedef struct {
    uint64_t s[4];
} Rng;

static inline uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

/* xoshiro256++ of Blackman and Vigna */
static inline uint64_t next(Rng *rng) {
    uint64_t *s = rng->s, result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

static inline double uniform(Rng *rng) { return (double)(next(rng) >> 11) * 0x1.0p-53; }

static void seed_rng(Rng *rng, uint64_t seed) { /* SplitMix64 */
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        rng->s[i] = z ^ (z >> 31);
    }
}

typedef struct {
    double action[DIM];
    double norm; /* as it was when the action was played */
    int32_t next; /* the next slot that arrives in the same round, -1 for none */
} Round;

static void draw_actions(Rng *rng, double actions[COUNT][DIM]) {
    uint64_t bits = 0;
    int left = 0;
    for (int k = 0; k < COUNT; k++) {
        unsigned pattern;
        do {
            if (left < DIM) {
                bits = next(rng);
                left = 64;
            }
            pattern = bits & ((1u << DIM) - 1);
            bits >>= DIM;
            left -= DIM;
        } while (!pattern);
        double entry = ENTRY[__builtin_popcount(pattern)];
        for (int i = 0; i < DIM; i++) actions[k][i] = (double)(pattern >> i & 1) * entry;
    }
}

/* Play a run; return the cumulative pseudo-regret. */
double simulate(const double *theta, int64_t horizon, uint64_t seed) {
    Rng rng;
    seed_rng(&rng, seed);
    static _Thread_local Round ring[SLOTS];
    int32_t due[SLOTS]; /* the first slot that arrives in a round, by round */
    memset(due, -1, sizeof due);
    double V_inv[DIM][DIM] = {{0}}, B[DIM] = {0}, pending_width = 0.0, regret = 0.0;
    for (int i = 0; i < DIM; i++) V_inv[i][i] = 1.0 / LAMBDA;
    const double log_miss = log1p(-1.0 / MEAN_DELAY);

    for (int64_t t = 1; t <= horizon; t++) {
        double actions[COUNT][DIM], means[COUNT], theta_hat[DIM];
        draw_actions(&rng, actions);
        double best = 0.0;
        for (int k = 0; k < COUNT; k++) {
            means[k] = 0.0;
            for (int i = 0; i < DIM; i++) means[k] += actions[k][i] * theta[i];
            if (means[k] > best) best = means[k];
        }

        if (t > WINDOW + 1) pending_width -= ring[(t - WINDOW - 1) % SLOTS].norm;
        double radius = sqrt(LAMBDA) + sqrt(-2.0 * log(DELTA) + DIM * log((DIM * LAMBDA + (double)t) / (DIM * LAMBDA)));
        double width = 2.0 * radius + pending_width;
        for (int i = 0; i < DIM; i++) {
            theta_hat[i] = 0.0;
            for (int j = 0; j < DIM; j++) theta_hat[i] += V_inv[i][j] * B[j];
        }
        int index = 0;
        double highest = -INFINITY, scores[COUNT];
        for (int k = 0; k < COUNT; k++) {
            double estimate = 0.0, square = 0.0;
            for (int i = 0; i < DIM; i++) {
                double row = 0.0;
                for (int j = 0; j < DIM; j++) row += V_inv[i][j] * actions[k][j];
                square += row * actions[k][i];
                estimate += theta_hat[i] * actions[k][i];
            }
            scores[k] = estimate + width * sqrt(square);
        }
        for (int k = 0; k < COUNT; k++)
            if (scores[k] > highest) {
                highest = scores[k];
                index = k;
            }

        double u[DIM], c = 0.0;
        const double *action = actions[index];
        for (int i = 0; i < DIM; i++) {
            u[i] = 0.0;
            for (int j = 0; j < DIM; j++) u[i] += V_inv[i][j] * action[j];
            c += u[i] * action[i];
        }
        double shrink = 1.0 / (1.0 + c);
        for (int i = 0; i < DIM; i++)
            for (int j = 0; j < DIM; j++) V_inv[i][j] -= u[i] * shrink * u[j];
        Round *played = &ring[t % SLOTS];
        memcpy(played->action, action, sizeof played->action);
        played->norm = sqrt(c);
        pending_width += played->norm;

        regret += best - means[index];
        if (uniform(&rng) < means[index]) {
            double delay = 1.0 + floor(log(1.0 - uniform(&rng)) / log_miss);
            if (delay <= WINDOW) {
                int32_t *first = &due[(t + (int64_t)delay) % SLOTS];
                played->next = *first;
                *first = (int32_t)(t % SLOTS);
            }
        }
        for (int32_t slot = due[t % SLOTS]; slot >= 0; slot = ring[slot].next)
            for (int i = 0; i < DIM; i++) B[i] += ring[slot].action[i];
        due[t % SLOTS] = -1;
    }
    return regret;
}
