/* Functions of FMI 3.0 that do not depend on what is inside. Included after `Instance`, which has `now` (a State with
   its time `t`), `fresh` (0: evaluate anew), `exchange`, `log` and `environment`, and after `reset`. */
EXPORT const char *fmi3GetVersion(void) { return "3.0"; }

EXPORT Status fmi3SetDebugLogging(void *m, bool on, size_t n, const char *const categories[]) {
    (void)m, (void)on, (void)n, (void)categories;
    return OK;
}

static Instance *instantiate(const char *token, int exchange, void *environment, Log log) {
    Instance *m = calloc(1, sizeof *m);
    if (!m) return 0;
    m->log = log;
    m->environment = environment;
    m->exchange = exchange;
    if (!token || strcmp(token, TOKEN)) {
        complain(m, ERROR_, "the instantiation token is not this model's");
        free(m);
        return 0;
    }
    reset(m);
    return m;
}

EXPORT void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible,
                                          bool logging, void *environment, Log log) {
    (void)name, (void)resources, (void)visible, (void)logging;
    return instantiate(token, 1, environment, log);
}

EXPORT void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
                                         bool logging, bool events, bool early, const Reference required[], size_t n,
                                         void *environment, Log log, void *intermediate) {
    (void)name, (void)resources, (void)visible, (void)logging, (void)events, (void)early, (void)required, (void)n;
    (void)intermediate;
    return instantiate(token, 0, environment, log);
}

EXPORT void *fmi3InstantiateScheduledExecution(void) { return 0; }
EXPORT void fmi3FreeInstance(void *m) { free(m); }

EXPORT Status fmi3EnterInitializationMode(void *instance, bool defined, double tolerance, double start, bool stops,
                                          double stop) {
    (void)defined, (void)tolerance, (void)stops, (void)stop;
    ((Instance *)instance)->now.t = start;
    return OK;
}

EXPORT Status fmi3EnterEventMode(void *m) { (void)m; return OK; }
EXPORT Status fmi3Terminate(void *m) { (void)m; return OK; }
EXPORT Status fmi3Reset(void *m) { reset(m); return OK; }
EXPORT Status fmi3EnterStepMode(void *m) { (void)m; return OK; }
EXPORT Status fmi3EnterConfigurationMode(void *m) { (void)m; return OK; }
EXPORT Status fmi3ExitConfigurationMode(void *m) { (void)m; return OK; }
EXPORT Status fmi3EnterContinuousTimeMode(void *m) { (void)m; return OK; }
EXPORT Status fmi3EvaluateDiscreteStates(void *m) { (void)m; return OK; }

#ifndef OWN_COMPLETED_STEP
EXPORT Status fmi3CompletedIntegratorStep(void *m, bool unused, bool *event, bool *terminate) {
    (void)m, (void)unused;
    *event = *terminate = 0;
    return OK;
}
#endif

EXPORT Status fmi3SetTime(void *m, double t) { ((Instance *)m)->now.t = t; return OK; }

EXPORT Status fmi3GetNominalsOfContinuousStates(void *m, double x[], size_t n) {
    size_t k;
    (void)m;
    for (k = 0; k < n; k++) x[k] = 1.0;
    return OK;
}

#define NONE(NAME) \
    EXPORT Status fmi3Get##NAME(void *m, const Reference at[], size_t n, void *values, size_t size) { \
        (void)at, (void)values, (void)size; return n ? complain(m, ERROR_, "there are no variables of this type") : OK; } \
    EXPORT Status fmi3Set##NAME(void *m, const Reference at[], size_t n, const void *values, size_t size) { \
        (void)at, (void)values, (void)size; return n ? complain(m, ERROR_, "there are no variables of this type") : OK; }
NONE(Float32) NONE(Int8) NONE(UInt8) NONE(Int16) NONE(UInt16) NONE(Int32) NONE(UInt32) NONE(Int64) NONE(UInt64)
NONE(Boolean) NONE(String)
#define REFUSE(NAME) EXPORT Status fmi3##NAME(void *m) { return complain(m, ERROR_, #NAME " is not provided"); }
REFUSE(GetBinary) REFUSE(SetBinary) REFUSE(GetClock) REFUSE(SetClock) REFUSE(GetAdjointDerivative)
REFUSE(GetIntervalDecimal) REFUSE(GetIntervalFraction) REFUSE(GetShiftDecimal) REFUSE(GetShiftFraction)
REFUSE(SetIntervalDecimal) REFUSE(SetIntervalFraction) REFUSE(SetShiftDecimal) REFUSE(SetShiftFraction)
REFUSE(ActivateModelPartition) REFUSE(GetOutputDerivatives) REFUSE(GetNumberOfVariableDependencies)
REFUSE(GetVariableDependencies)

EXPORT Status fmi3GetFMUState(void *instance, void **state) {
    if (!*state) *state = malloc(sizeof(State));
    if (!*state) return complain(instance, ERROR_, "no memory");
    memcpy(*state, &((Instance *)instance)->now, sizeof(State));
    return OK;
}

EXPORT Status fmi3SetFMUState(void *instance, const void *state) {
    Instance *m = instance;
    memcpy(&m->now, state, sizeof(State));
    m->fresh = 0;
    return OK;
}

EXPORT Status fmi3FreeFMUState(void *m, void **state) {
    (void)m;
    free(*state);
    *state = 0;
    return OK;
}

EXPORT Status fmi3SerializedFMUStateSize(void *m, void *state, size_t *size) {
    (void)m, (void)state;
    *size = sizeof(State);
    return OK;
}

EXPORT Status fmi3SerializeFMUState(void *m, void *state, uint8_t bytes[], size_t size) {
    if (size < sizeof(State)) return complain(m, ERROR_, "too few bytes");
    memcpy(bytes, state, sizeof(State));
    return OK;
}

EXPORT Status fmi3DeserializeFMUState(void *m, const uint8_t bytes[], size_t size, void **state) {
    if (size != sizeof(State)) return complain(m, ERROR_, "the bytes are of another model");
    if (!*state) *state = malloc(sizeof(State));
    if (!*state) return complain(m, ERROR_, "no memory");
    memcpy(*state, bytes, sizeof(State));
    return OK;
}
