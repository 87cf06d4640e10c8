/* The state of one run: time, states x, iterated unknowns a, inputs u, parameters p, the combination of modes; h is the
   adaptive method's own step. */
typedef struct {
    double t, h, x[@P@_NX_ROOM], a[@P@_NA_ROOM], u[@P@_NU_ROOM], d[@P@_ND_ROOM], p[@P@_NP_ROOM];
    int mode;
} @p@_state;

extern const char *const @p@_state_names[];
extern const char *const @p@_input_names[];
extern const char *const @p@_observed_names[];
extern const char *const @p@_parameter_names[];
extern const char *const @p@_part_names[];

/* All of these return @P@_DONE, or what is wrong. */
int @p@_start(@p@_state *s);
/* After x was set: quaternions of unit length, loops closed, modes that agree with x. */
int @p@_settle(@p@_state *s);
/* How far x is from the constraints that settle puts it on (loops, quaternions), relative to its largest number. */
double @p@_drift(const @p@_state *s);
int @p@_rates(@p@_state *s, double *rates);
int @p@_observe(@p@_state *s, double *values);
/* Conditions to leave the modes, positive where they hold. */
int @p@_conditions(@p@_state *s, double *conditions);
/* One step of order 4 (Runge and Kutta), inputs held, with switches inside it; a failed step changes nothing. */
int @p@_step(@p@_state *s, double dt);
/* Until a time by an implicit method of order 4 (Rosenbrock) with steps of at most `longest`; on failure s is where it
   came to. */
int @p@_advance(@p@_state *s, double until, double longest, double rtol, double atol);
/* Sets a parameter: @P@_BAD_VALUE where it is not finite, or out of its bounds. Call settle after the last one. */
int @p@_set(@p@_state *s, int k, double value);
/* 0 if the parameters are possible; k + 1 if parameter k is not; @P@_NP + 1 if several together are not (an inertia that
   no body has, an axis that is not of unit length). settle returns @P@_BAD_VALUE where this is not 0. */
int @p@_check_parameters(const @p@_state *s);
/* The change of rates and of observed values along a change of states and inputs. */
int @p@_tangent(@p@_state *s, const double *dx, const double *du, double *drates, double *dvalues);
/* The mode of a part that switches: the number of its mode. */
int @p@_mode_of(const @p@_state *s, int part);
