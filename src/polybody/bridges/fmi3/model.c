/* A mechanism as an FMU (FMI 3.0, model exchange and co-simulation), written by polybody.

   The equations are in the generated model.c/.h; shape.h has sizes, start values, limits and these calls:
     equations(q, v, tau, p, qdot, a, trust)          q' = V(q) v, v' = forward dynamics
     directional(q, v, tau, p, dq, dv, dtau, dp, dqdot, da)
     back(q, v, p, step, change, trust), walk(q, d, q_next)   the way back to closed loops (HAS_LOOPS)
     polybody_check_parameters(p), polybody_parameter_name(k)  which parameters are not possible (NP > 0)

   Parameters out of their bounds are refused when they are set. Several that are not possible together (an inertia and a
   mass may be set one after the other) are refused where they are first used.

   Stops: a limited joint that meets its limit rebounds with `restitution`; one that rests there is held by the force
   that keeps it from going on, and freed when that force would have to pull. Joints that meet their stops together are
   solved together: reactions r >= 0 with A r + a >= 0, r (A r + a) = 0, by projected Gauss-Seidel over the held ones.

   Types and functions follow the FMI 3.0 standard. Nothing is allocated but the instance. */
#include <stdio.h>

#include "types.h"
#include "shape.h"

typedef struct {
    double t, q[NQ_ROOM], v[NV_ROOM], tau[NV_ROOM], p[NP_ROOM], restitution, step;
    double level[NL_ROOM][2]; /* how far beyond its lower and upper limit a joint that is at it may go */
    int held[NL_ROOM]; /* 1: rests on its lower limit, -1: on its upper one */
    int checked, last; /* 1: the parameters together are possible; which of them was set last */
} State;

typedef struct {
    State now;
    double qdot[NQ_ROOM], a[NV_ROOM], reaction[NL_ROOM];
    int fresh, exchange;
    Log log;
    void *environment;
} Instance;

/* value references, in this order: time, q, v, der(q), der(v), tau, parameters, restitution, step, event indicators */
enum { R_TIME = 0, R_Q = 1, R_V = R_Q + NQ, R_QDOT = R_V + NV, R_A = R_QDOT + NQ, R_TAU = R_A + NV, R_P = R_TAU + NV,
       R_RESTITUTION = R_P + NP, R_STEP, R_STOP, R_END = R_STOP + 2 * NL };

#include "complain.h"

static const double REST_SPEED = 1e-6; /* a joint that rebounds slower than this rests on its stop */

/* ---- parameters */

static Status complain_of(const Instance *m, const char *before, int k, const char *after) {
#if NP
    char message[400];
    snprintf(message, sizeof message, "%s %.200s %s", before, polybody_parameter_name(k), after);
    return complain(m, ERROR_, message);
#else
    (void)before, (void)k, (void)after;
    return complain(m, ERROR_, "a model without parameters");
#endif
}

static Status possible(Instance *m) {
#if NP
    if (!m->now.checked) {
        const int found = polybody_check_parameters(m->now.p);
        if (found > NP)
            return complain_of(m, "the parameters are not possible together (the inertia of a body that cannot exist, or an "
                                  "axis not of unit length); the last one set was", m->now.last, "");
        if (found) return complain_of(m, "parameter", found - 1, "is out of its bounds");
        m->now.checked = 1;
    }
#else
    (void)m;
#endif
    return OK;
}

/* ---- the equations, with stops */

/* Forces at the held joints' stops change accelerations: response[i][j] of limit i to a unit force at limit j. */
static void responses(const State *s, const double *a, const int *at, int count, double *response) {
    double tau[NV_ROOM], qdot[NQ_ROOM], pushed[NV_ROOM], trust[TRUST_ROOM];
    int i, j;
    for (j = 0; j < count; j++) {
        memcpy(tau, s->tau, sizeof tau);
        tau[LIMIT_V[at[j]]] += 1.0;
        equations(s->q, s->v, tau, s->p, qdot, pushed, trust);
        for (i = 0; i < count; i++) response[i * NL_ROOM + j] = pushed[LIMIT_V[at[i]]] - a[LIMIT_V[at[i]]];
    }
}

/* r >= 0, w = A r + w0 >= 0, r w = 0, for forces along `sign` at each limit; w0 in place of accelerations or speeds. */
static void complementary(const double *response, const double *sign, const double *w0, int count, double *r) {
    int i, j, turn;
    for (i = 0; i < count; i++) r[i] = 0.0;
    for (turn = 0; turn < 200; turn++) {
        double change = 0.0, size = 0.0;
        for (i = 0; i < count; i++) {
            double w = w0[i], own = response[i * NL_ROOM + i], next;
            for (j = 0; j < count; j++) w += sign[i] * response[i * NL_ROOM + j] * sign[j] * r[j];
            if (!(own > 0.0)) continue;
            next = r[i] - w / own;
            if (next < 0.0) next = 0.0;
            change += fabs(next - r[i]);
            size += fabs(next);
            r[i] = next;
        }
        if (change <= 1e-14 * size) break;
    }
}

static Status evaluate(Instance *m) {
    State *s = &m->now;
    double trust[TRUST_ROOM], tau[NV_ROOM], response[NL_ROOM * NL_ROOM], sign[NL_ROOM], w0[NL_ROOM], r[NL_ROOM];
    int i, at[NL_ROOM], count = 0;
    if (m->fresh) return OK;
    if (possible(m) != OK) return ERROR_;
    equations(s->q, s->v, s->tau, s->p, m->qdot, m->a, trust);
    for (i = 0; i < NL; i++) {
        m->reaction[i] = 0.0;
        if (s->held[i]) at[count++] = i;
    }
    if (count) {
        responses(s, m->a, at, count, response);
        for (i = 0; i < count; i++) {
            sign[i] = s->held[at[i]];
            w0[i] = sign[i] * m->a[LIMIT_V[at[i]]];
        }
        complementary(response, sign, w0, count, r);
        memcpy(tau, s->tau, sizeof tau);
        for (i = 0; i < count; i++) {
            m->reaction[at[i]] = r[i];
            tau[LIMIT_V[at[i]]] += sign[i] * r[i];
        }
        equations(s->q, s->v, tau, s->p, m->qdot, m->a, trust);
        for (i = 0; i < count; i++)
            if (r[i] > 0.0) m->a[LIMIT_V[at[i]]] = 0.0;
    }
    for (i = 0; i < NV; i++)
        if (!isfinite(m->a[i])) return complain(m, DISCARD, "accelerations are not finite: a singular state or input");
#if HAS_LOOPS
    if (!(trust[2] < 1e10 && trust[4] < 1e10)) return complain(m, DISCARD, "the loops are singular here");
#endif
    m->fresh = 1;
    return OK;
}

/* How far limit i is from being met, on the side `side` (1 lower, -1 upper). */
static double room(const State *s, int i, int side) {
    return side > 0 ? s->q[LIMIT_Q[i]] - LIMIT_LOWER[i] : LIMIT_UPPER[i] - s->q[LIMIT_Q[i]];
}

/* The room of a joint at its limit is zero or rounding: its sign could not tell when the joint is pushed into it. */
static void note_levels(State *s) {
    int i, side;
    for (i = 0; i < NL; i++)
        for (side = 0; side < 2; side++) {
            const double beyond = -room(s, i, side ? -1 : 1);
            s->level[i][side] = fabs(beyond) <= 1e-9 ? fmax(beyond, 0.0) + 5e-10 : 0.0;
        }
}

/* Joints that run into their limits rebound or come to rest; those that are pulled off are freed. 1: states changed. */
static int hit(Instance *m) {
    State *s = &m->now;
    double response[NL_ROOM * NL_ROOM], sign[NL_ROOM], w0[NL_ROOM], r[NL_ROOM], trust[TRUST_ROOM], tau[NV_ROOM];
    double base[NV_ROOM], moved[NV_ROOM], qdot[NQ_ROOM];
    int i, at[NL_ROOM], count = 0;
    m->fresh = 0;
    evaluate(m);
    for (i = 0; i < NL; i++)
        if (s->held[i] && !(m->reaction[i] > 0.0)) {
            s->held[i] = 0;
            m->fresh = 0;
        }
    for (i = 0; i < NL; i++) {
        int side;
        for (side = 1; side >= -1; side -= 2)
            if (!s->held[i] && room(s, i, side) <= 1e-9 && side * s->v[LIMIT_V[i]] < 0.0) {
                sign[count] = side;
                w0[count] = (1.0 + s->restitution) * side * s->v[LIMIT_V[i]];
                at[count++] = i;
            }
    }
    if (!count) return 0;
    equations(s->q, s->v, s->tau, s->p, qdot, base, trust);
    responses(s, base, at, count, response);
    complementary(response, sign, w0, count, r);
    memcpy(tau, s->tau, sizeof tau);
    for (i = 0; i < count; i++) tau[LIMIT_V[at[i]]] += sign[i] * r[i];
    equations(s->q, s->v, tau, s->p, qdot, moved, trust);
    for (i = 0; i < NV; i++) s->v[i] += moved[i] - base[i]; /* an impulse acts on speeds as a force on accelerations */
    for (i = 0; i < count; i++)
        if (sign[i] * s->v[LIMIT_V[at[i]]] < REST_SPEED) {
            s->held[at[i]] = sign[i] > 0 ? 1 : -1;
            s->v[LIMIT_V[at[i]]] = 0.0;
            if (!HAS_LOOPS) s->q[LIMIT_Q[at[i]]] = sign[i] > 0 ? LIMIT_LOWER[at[i]] : LIMIT_UPPER[at[i]];
        }
    m->fresh = 0;
    return 1;
}

static int settle(Instance *m) {
    const int changed = hit(m);
    note_levels(&m->now);
    return changed;
}

/* What changes its sign when limit i is met on a side, or when a joint that rests there is pulled off. */
static double indicator(const Instance *m, int i, int side) {
    if (m->now.held[i] == side) return m->reaction[i] - 1e-12;
    return fmin(room(&m->now, i, side) + m->now.level[i][side < 0], 1e6); /* a side without a limit is far */
}

/* ---- steps of order 4, for co-simulation */

static void normalize(State *s) {
    int i, k;
    for (i = 0; i < NQUATERNIONS; i++) {
        double *x = s->q + QUATERNION[i], size = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]);
        for (k = 0; k < 4; k++) x[k] /= size;
    }
}

static Status close_loops(Instance *m) {
#if HAS_LOOPS
    State *s = &m->now;
    double step[NV_ROOM], change[NV_ROOM], trust[TRUST_ROOM], next[NQ_ROOM], size = INFINITY;
    int i, turn;
    for (turn = 0; turn < 12; turn++) {
        back(s->q, s->v, s->p, step, change, trust);
        if (trust[0] < 1e-28 || !(trust[0] < size)) break;
        size = trust[0];
        walk(s->q, step, next);
        memcpy(s->q, next, sizeof(double) * NQ);
    }
    for (i = 0; i < NV; i++) s->v[i] += change[i];
    if (!(trust[0] < 1e-18)) return complain(m, ERROR_, "the loops could not be kept closed: take smaller steps");
#endif
    m->fresh = 0;
    return OK;
}

static Status advance(Instance *m, double h) {
    static const double PART[4] = {0.0, 0.5, 0.5, 1.0}, WEIGHT[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
    const State start = m->now;
    double dq[NQ_ROOM] = {0}, dv[NV_ROOM] = {0}, lastq[NQ_ROOM] = {0}, lastv[NV_ROOM] = {0};
    int i, stage;
    for (stage = 0; stage < 4; stage++) {
        Status status;
        for (i = 0; i < NQ; i++) m->now.q[i] = start.q[i] + PART[stage] * h * lastq[i];
        for (i = 0; i < NV; i++) m->now.v[i] = start.v[i] + PART[stage] * h * lastv[i];
        normalize(&m->now);
        m->fresh = 0;
        status = evaluate(m);
        if (status != OK) {
            m->now = start;
            m->fresh = 0;
            return status;
        }
        for (i = 0; i < NQ; i++) dq[i] += WEIGHT[stage] * (lastq[i] = m->qdot[i]);
        for (i = 0; i < NV; i++) dv[i] += WEIGHT[stage] * (lastv[i] = m->a[i]);
    }
    for (i = 0; i < NQ; i++) m->now.q[i] = start.q[i] + h * dq[i];
    for (i = 0; i < NV; i++) m->now.v[i] = start.v[i] + h * dv[i];
    m->now.t = start.t + h;
    normalize(&m->now);
    return close_loops(m);
}

static int passed(const State *s) {
    int i;
    for (i = 0; i < NL; i++)
        if (!s->held[i] && ((room(s, i, 1) < -1e-10 && s->v[LIMIT_V[i]] < 0.0) ||
                            (room(s, i, -1) < -1e-10 && s->v[LIMIT_V[i]] > 0.0)))
            return 1;
    return 0;
}

static Status run(Instance *m, double end) {
    while (m->now.t < end - 1e-12 * (1.0 + fabs(end))) {
        double h = fmin(m->now.step, end - m->now.t);
        const State before = m->now;
        Status status = advance(m, h);
        if (status != OK) return status;
        if (passed(&m->now)) { /* go back to where the first limit is met */
            double low = 0.0, high = h;
            int turn;
            for (turn = 0; turn < 40 && high - low > 1e-13; turn++) {
                const double middle = 0.5 * (low + high);
                m->now = before;
                m->fresh = 0;
                status = advance(m, middle);
                if (status != OK) return status;
                if (passed(&m->now)) high = middle;
                else low = middle;
            }
            m->now = before;
            m->fresh = 0;
            status = advance(m, high);
            if (status != OK) return status;
        }
        settle(m);
    }
    return OK;
}

/* ---- FMI 3.0 */

static void reset(Instance *m) {
    memset(&m->now, 0, sizeof m->now);
    memcpy(m->now.q, START_Q, sizeof(double) * NQ);
    memcpy(m->now.v, START_V, sizeof(double) * NV);
    memcpy(m->now.p, START_P, sizeof(double) * NP);
    m->now.restitution = 0.0;
    m->now.step = START_STEP;
    m->fresh = m->now.checked = 0;
}

#include "interface.h"

EXPORT Status fmi3ExitInitializationMode(void *instance) {
    Instance *m = instance;
    normalize(&m->now);
    m->fresh = m->now.checked = 0;
    if (possible(m) != OK) return ERROR_;
    if (HAS_LOOPS) {
        Status status = close_loops(m);
        if (status != OK) return status;
    }
    if (!m->exchange) settle(m);
    else note_levels(&m->now);
    return OK;
}

EXPORT Status fmi3GetFloat64(void *instance, const Reference at[], size_t n, double values[], size_t size) {
    Instance *m = instance;
    size_t k;
    if (size < n) return complain(m, ERROR_, "fewer values than references");
    for (k = 0; k < n; k++) {
        const int r = (int)at[k];
        Status status = OK;
        if (at[k] >= (Reference)R_END) return complain(m, ERROR_, "no variable has this value reference");
        if ((r >= R_QDOT && r < R_TAU) || r >= R_STOP) status = evaluate(m);
        if (status != OK) return status;
        if (r == R_TIME) values[k] = m->now.t;
        else if (r < R_V) values[k] = m->now.q[r - R_Q];
        else if (r < R_QDOT) values[k] = m->now.v[r - R_V];
        else if (r < R_A) values[k] = m->qdot[r - R_QDOT];
        else if (r < R_TAU) values[k] = m->a[r - R_A];
        else if (r < R_P) values[k] = m->now.tau[r - R_TAU];
        else if (r < R_RESTITUTION) values[k] = m->now.p[r - R_P];
        else if (r == R_RESTITUTION) values[k] = m->now.restitution;
        else if (r == R_STEP) values[k] = m->now.step;
        else values[k] = indicator(m, (r - R_STOP) / 2, (r - R_STOP) % 2 ? -1 : 1);
    }
    return OK;
}

/* One that is out of its bounds leaves the parameter as it was. */
static Status set_parameter(Instance *m, int k, double value) {
#if NP
    const double before = m->now.p[k];
    m->now.p[k] = value;
    m->now.checked = 0;
    m->now.last = k;
    if (polybody_check_parameters(m->now.p) == k + 1) {
        m->now.p[k] = before;
        return complain_of(m, "parameter", k, "cannot have this value: it is out of its bounds");
    }
#else
    (void)m, (void)k, (void)value;
#endif
    return OK;
}

EXPORT Status fmi3SetFloat64(void *instance, const Reference at[], size_t n, const double values[], size_t size) {
    Instance *m = instance;
    size_t k;
    if (size < n) return complain(m, ERROR_, "fewer values than references");
    for (k = 0; k < n; k++) {
        const int r = (int)at[k];
        if (!isfinite(values[k])) return complain(m, ERROR_, "a value is not finite");
        if (r >= R_Q && r < R_V) m->now.q[r - R_Q] = values[k];
        else if (r >= R_V && r < R_QDOT) m->now.v[r - R_V] = values[k];
        else if (r >= R_TAU && r < R_P) m->now.tau[r - R_TAU] = values[k];
        else if (r >= R_P && r < R_RESTITUTION) {
            const Status status = set_parameter(m, r - R_P, values[k]);
            if (status != OK) return status;
        } else if (r == R_RESTITUTION && values[k] >= 0.0 && values[k] <= 1.0) m->now.restitution = values[k];
        else if (r == R_STEP && values[k] > 0.0) m->now.step = values[k];
        else return complain(m, ERROR_, "this variable cannot be set, or not to this value");
        m->fresh = 0;
    }
    return OK;
}

EXPORT Status fmi3GetDirectionalDerivative(void *instance, const Reference of[], size_t nof, const Reference by[],
                                           size_t nby, const double seed[], size_t nseed, double result[],
                                           size_t nresult) {
    Instance *m = instance;
    double dq[NQ_ROOM] = {0}, dv[NV_ROOM] = {0}, dtau[NV_ROOM] = {0}, dp[NP_ROOM] = {0}, dqdot[NQ_ROOM], da[NV_ROOM];
    size_t k;
    int i;
    if (nseed != nby || nresult != nof) return complain(m, ERROR_, "every variable needs one number");
    if (possible(m) != OK) return ERROR_;
    for (i = 0; i < NL; i++)
        if (m->now.held[i]) return complain(m, DISCARD, "no derivatives while a joint rests on its stop");
    for (k = 0; k < nby; k++) {
        const int r = (int)by[k];
        if (r >= R_Q && r < R_V) dq[r - R_Q] += seed[k];
        else if (r >= R_V && r < R_QDOT) dv[r - R_V] += seed[k];
        else if (r >= R_TAU && r < R_P) dtau[r - R_TAU] += seed[k];
        else if (r >= R_P && r < R_RESTITUTION) dp[r - R_P] += seed[k];
        else if (r != R_RESTITUTION && r != R_STEP) return complain(m, ERROR_, "no derivative by this variable");
    }
    directional(m->now.q, m->now.v, m->now.tau, m->now.p, dq, dv, dtau, dp, dqdot, da);
    for (k = 0; k < nof; k++) {
        const int r = (int)of[k];
        if (r >= R_QDOT && r < R_A) result[k] = dqdot[r - R_QDOT];
        else if (r >= R_A && r < R_TAU) result[k] = da[r - R_A];
        else if (r >= R_Q && r < R_V) result[k] = dq[r - R_Q];
        else if (r >= R_V && r < R_QDOT) result[k] = dv[r - R_V];
        else return complain(m, ERROR_, "no derivative of this variable");
    }
    return OK;
}

EXPORT Status fmi3UpdateDiscreteStates(void *instance, bool *again, bool *terminate, bool *nominals, bool *states,
                                       bool *next, double *time) {
    int changed;
    if (possible(instance) != OK) return ERROR_;
    changed = settle(instance);
    *again = *terminate = *nominals = *next = 0;
    *states = changed;
    *time = 0.0;
    return OK;
}

EXPORT Status fmi3SetContinuousStates(void *instance, const double x[], size_t n) {
    Instance *m = instance;
    if (n != NQ + NV) return complain(m, ERROR_, "another number of states");
    memcpy(m->now.q, x, sizeof(double) * NQ);
    memcpy(m->now.v, x + NQ, sizeof(double) * NV);
    m->fresh = 0;
    return OK;
}

EXPORT Status fmi3GetContinuousStates(void *instance, double x[], size_t n) {
    Instance *m = instance;
    if (n != NQ + NV) return complain(m, ERROR_, "another number of states");
    memcpy(x, m->now.q, sizeof(double) * NQ);
    memcpy(x + NQ, m->now.v, sizeof(double) * NV);
    return OK;
}

EXPORT Status fmi3GetContinuousStateDerivatives(void *instance, double x[], size_t n) {
    Instance *m = instance;
    const Status status = evaluate(m);
    if (n != NQ + NV) return complain(m, ERROR_, "another number of states");
    if (status != OK) return status;
    memcpy(x, m->qdot, sizeof(double) * NQ);
    memcpy(x + NQ, m->a, sizeof(double) * NV);
    return OK;
}

EXPORT Status fmi3GetEventIndicators(void *instance, double z[], size_t n) {
    Instance *m = instance;
    Status status;
    int i;
    if (n != 2 * NL) return complain(m, ERROR_, "another number of event indicators");
    status = evaluate(m);
    if (status != OK) return status;
    for (i = 0; i < NL; i++) {
        z[2 * i] = indicator(m, i, 1);
        z[2 * i + 1] = indicator(m, i, -1);
    }
    return OK;
}

EXPORT Status fmi3GetNumberOfEventIndicators(void *m, size_t *n) { (void)m; *n = 2 * NL; return OK; }
EXPORT Status fmi3GetNumberOfContinuousStates(void *m, size_t *n) { (void)m; *n = NQ + NV; return OK; }

EXPORT Status fmi3DoStep(void *instance, double t, double h, bool no_return, bool *event, bool *terminate, bool *early,
                         double *last) {
    Instance *m = instance;
    Status status;
    (void)no_return;
    m->now.t = t;
    status = run(m, t + h);
    *event = *terminate = *early = 0;
    *last = m->now.t;
    if (status == OK) m->now.t = *last = t + h;
    return status;
}
