/* A network as an FMU (FMI 3.0, model exchange and co-simulation), written by polybody.

   The equations and the machine of modes are in polybody.c/.h; shape.h has the token and start values. Conditions to
   leave modes are the event indicators. Co-simulation takes implicit, adaptive steps (Rosenbrock) of at most `step`, to
   the tolerance `tolerance`, and finds switches inside them. */
#include <stdio.h>
#include "types.h"
#include "shape.h"
#include "polybody.h"

enum { NX = POLYBODY_NX, NU = POLYBODY_NU, NP = POLYBODY_NP, NZ = POLYBODY_NZ, NC = POLYBODY_NC, NPARTS = POLYBODY_NPARTS };

typedef struct {
    double t, step, tolerance;
    polybody_state run;
} State;

typedef struct {
    State now;
    double rates[POLYBODY_NX_ROOM], values[POLYBODY_NZ_ROOM], conditions[POLYBODY_NC_ROOM];
    int fresh, exchange;
    Log log;
    void *environment;
} Instance;

/* value references, in this order: time, x, der(x), u, p, what is observed, modes, tolerance, step, event indicators */
enum { R_TIME = 0, R_X = 1, R_RATE = R_X + NX, R_U = R_RATE + NX, R_P = R_U + NU, R_Z = R_P + NP, R_MODE = R_Z + NZ,
       R_TOLERANCE = R_MODE + NPARTS, R_STEP, R_INDICATOR, R_END = R_INDICATOR + NC };

#include "complain.h"

static const char *const WRONG[] = {"", "numbers are not finite any more", "the algebraic equations found no solution",
    "modes that contradict each other, or a singular configuration of loops",
    "a state would jump: an ideal part asks for an impulse", "the modes find no agreement",
    "loops or other constraints among states could not be kept", "the step became too small",
    "not a value of this parameter"};

static Status told(const Instance *m, Status status, int bad) {
    if (bad == POLYBODY_BAD_VALUE) {
        const int k = polybody_check_parameters(&m->now.run) - 1;
        return complain(m, status, k >= 0 && k < NP ? polybody_parameter_names[k] : "parameters that are not possible together");
    }
    return bad ? complain(m, status, WRONG[bad]) : OK;
}

/* What is wrong with one parameter, by its name. */
static Status refused(const Instance *m, int k, double value) {
    char text[300];
    snprintf(text, sizeof text, "%g is not a value of the parameter %.200s", value, polybody_parameter_names[k]);
    return complain(m, ERROR_, text);
}

/* Positive where a condition holds for certain: what `settle` then acts on. */
static double indicator(double condition) { return condition - 2e-9 * (1.0 + fabs(condition)); }

static Status evaluate(Instance *m) {
    polybody_state *s = &m->now.run;
    int bad;
    if (m->fresh) return OK;
    s->t = m->now.t;
    bad = polybody_rates(s, m->rates);
    if (!bad) bad = polybody_observe(s, m->values);
    if (!bad) bad = polybody_conditions(s, m->conditions);
    if (bad) return told(m, DISCARD, bad);
    m->fresh = 1;
    return OK;
}

/* ---- FMI 3.0 */

static void reset(Instance *m) {
    memset(&m->now, 0, sizeof m->now);
    polybody_start(&m->now.run);
    m->now.step = START_STEP;
    m->now.tolerance = START_TOLERANCE;
    m->fresh = 0;
}

#define OWN_COMPLETED_STEP
#include "interface.h"

/* Constraints among states (loops, quaternions) that the importer's steps have left: an event puts x back to them. */
EXPORT Status fmi3CompletedIntegratorStep(void *instance, bool unused, bool *event, bool *terminate) {
    const Instance *m = instance;
    (void)unused;
    *event = polybody_drift(&m->now.run) > m->now.tolerance;
    *terminate = 0;
    return OK;
}

static Status settle(Instance *m) {
    int bad;
    m->now.run.t = m->now.t;
    bad = polybody_settle(&m->now.run);
    m->fresh = 0;
    return told(m, ERROR_, bad);
}

EXPORT Status fmi3ExitInitializationMode(void *instance) { return settle(instance); }

EXPORT Status fmi3GetFloat64(void *instance, const Reference at[], size_t n, double values[], size_t size) {
    Instance *m = instance;
    size_t k;
    if (size < n) return complain(m, ERROR_, "fewer values than references");
    for (k = 0; k < n; k++) {
        const int r = (int)at[k];
        if (at[k] >= (Reference)R_END) return complain(m, ERROR_, "no variable has this value reference");
        if (((r >= R_RATE && r < R_U) || (r >= R_Z && r < R_MODE) || r >= R_INDICATOR) && evaluate(m) != OK) return DISCARD;
        if (r == R_TIME) values[k] = m->now.t;
        else if (r < R_RATE) values[k] = m->now.run.x[r - R_X];
        else if (r < R_U) values[k] = m->rates[r - R_RATE];
        else if (r < R_P) values[k] = m->now.run.u[r - R_U];
        else if (r < R_Z) values[k] = m->now.run.p[r - R_P];
        else if (r < R_MODE) values[k] = m->values[r - R_Z];
        else if (r < R_TOLERANCE) values[k] = (double)polybody_mode_of(&m->now.run, r - R_MODE);
        else if (r == R_TOLERANCE) values[k] = m->now.tolerance;
        else if (r == R_STEP) values[k] = m->now.step;
        else values[k] = indicator(m->conditions[r - R_INDICATOR]);
    }
    return OK;
}

EXPORT Status fmi3SetFloat64(void *instance, const Reference at[], size_t n, const double values[], size_t size) {
    Instance *m = instance;
    size_t k;
    if (size < n) return complain(m, ERROR_, "fewer values than references");
    for (k = 0; k < n; k++) {
        const int r = (int)at[k];
        if (!isfinite(values[k])) return complain(m, ERROR_, "a value is not finite");
        if (r >= R_X && r < R_RATE) m->now.run.x[r - R_X] = values[k];
        else if (r >= R_U && r < R_P) m->now.run.u[r - R_U] = values[k];
        else if (r >= R_P && r < R_Z) {
            if (polybody_set(&m->now.run, r - R_P, values[k])) return refused(m, r - R_P, values[k]);
        }
        else if (r == R_TOLERANCE && values[k] > 0.0) m->now.tolerance = values[k];
        else if (r == R_STEP && values[k] > 0.0) m->now.step = values[k];
        else return complain(m, ERROR_, "this variable cannot be set, or not to this value");
        m->fresh = 0;
    }
    return OK;
}

EXPORT Status fmi3GetDirectionalDerivative(void *instance, const Reference unknowns[], size_t n_unknowns,
                                           const Reference knowns[], size_t n_knowns, const double seed[], size_t n_seed,
                                           double change[], size_t n_change) {
    Instance *m = instance;
    double dx[POLYBODY_NX_ROOM] = {0.0}, du[POLYBODY_NU_ROOM] = {0.0}, df[POLYBODY_NX_ROOM], dz[POLYBODY_NZ_ROOM];
    size_t k;
    int bad;
    if (n_seed < n_knowns || n_change < n_unknowns) return complain(m, ERROR_, "fewer values than references");
    for (k = 0; k < n_knowns; k++) {
        const int r = (int)knowns[k];
        if (r >= R_X && r < R_RATE) dx[r - R_X] += seed[k];
        else if (r >= R_U && r < R_P) du[r - R_U] += seed[k];
        else return complain(m, ERROR_, "derivatives are by states and inputs");
    }
    m->now.run.t = m->now.t;
    bad = polybody_tangent(&m->now.run, dx, du, df, dz);
    if (bad) return told(m, DISCARD, bad);
    for (k = 0; k < n_unknowns; k++) {
        const int r = (int)unknowns[k];
        if (r >= R_X && r < R_RATE) change[k] = dx[r - R_X];
        else if (r >= R_RATE && r < R_U) change[k] = df[r - R_RATE];
        else if (r >= R_Z && r < R_MODE) change[k] = dz[r - R_Z];
        else if (r >= R_MODE && r < R_TOLERANCE) change[k] = 0.0;
        else return complain(m, ERROR_, "derivatives are of rates and outputs");
    }
    return OK;
}

EXPORT Status fmi3UpdateDiscreteStates(void *instance, bool *again, bool *terminate, bool *nominals, bool *states,
                                       bool *next, double *time) {
    Instance *m = instance;
    const Status status = settle(m);
    *again = *terminate = *nominals = *next = 0;
    *states = 1; /* what is no state in these modes was put where it follows from the others */
    *time = 0.0;
    return status;
}

EXPORT Status fmi3SetContinuousStates(void *instance, const double x[], size_t n) {
    Instance *m = instance;
    if (n != NX) return complain(m, ERROR_, "another number of states");
    memcpy(m->now.run.x, x, sizeof(double) * NX);
    m->fresh = 0;
    return OK;
}

EXPORT Status fmi3GetContinuousStates(void *instance, double x[], size_t n) {
    Instance *m = instance;
    if (n != NX) return complain(m, ERROR_, "another number of states");
    memcpy(x, m->now.run.x, sizeof(double) * NX);
    return OK;
}

EXPORT Status fmi3GetContinuousStateDerivatives(void *instance, double x[], size_t n) {
    Instance *m = instance;
    const Status status = evaluate(m);
    if (n != NX) return complain(m, ERROR_, "another number of states");
    if (status != OK) return status;
    memcpy(x, m->rates, sizeof(double) * NX);
    return OK;
}

EXPORT Status fmi3GetEventIndicators(void *instance, double z[], size_t n) {
    Instance *m = instance;
    int i;
    if (n != NC) return complain(m, ERROR_, "another number of event indicators");
    if (evaluate(m) != OK) return DISCARD;
    for (i = 0; i < NC; i++) z[i] = indicator(m->conditions[i]);
    return OK;
}

EXPORT Status fmi3GetNumberOfEventIndicators(void *m, size_t *n) { (void)m; *n = NC; return OK; }
EXPORT Status fmi3GetNumberOfContinuousStates(void *m, size_t *n) { (void)m; *n = NX; return OK; }

EXPORT Status fmi3DoStep(void *instance, double t, double h, bool no_return, bool *event, bool *terminate, bool *early,
                         double *last) {
    Instance *m = instance;
    int bad;
    (void)no_return;
    *event = *terminate = *early = 0;
    m->now.run.t = t;
    bad = polybody_settle(&m->now.run); /* inputs may have changed */
    if (!bad)
        bad = polybody_advance(&m->now.run, t + h, m->now.step, m->now.tolerance, 1e-2 * m->now.tolerance);
    m->now.t = *last = m->now.run.t;
    m->fresh = 0;
    return told(m, DISCARD, bad);
}
