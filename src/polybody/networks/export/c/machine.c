/* ---- a machine of modes: x' = f(x, a, u, d, t), 0 = g(x, a, u, d, t); nothing here depends on the network */

static double largest(const double *x, int n) {
    double most = 0.0;
    int i;
    for (i = 0; i < n; i++) {
        if (!isfinite(x[i])) return INFINITY;
        if (fabs(x[i]) > most) most = fabs(x[i]);
    }
    return most;
}

/* LU factors of a matrix, row by row, with the rows' order; 0: done. */
static int factor(double *A, int n, int *order) {
    int i, j, k;
    for (k = 0; k < n; k++) {
        int best = k;
        for (i = k + 1; i < n; i++) if (fabs(A[i * n + k]) > fabs(A[best * n + k])) best = i;
        order[k] = best;
        if (!(fabs(A[best * n + k]) > 0.0) || !isfinite(A[best * n + k])) return 1;
        if (best != k)
            for (j = 0; j < n; j++) {
                const double kept = A[k * n + j];
                A[k * n + j] = A[best * n + j];
                A[best * n + j] = kept;
            }
        for (i = k + 1; i < n; i++) {
            const double part = A[i * n + k] /= A[k * n + k];
            if (part != 0.0)
                for (j = k + 1; j < n; j++) A[i * n + j] -= part * A[k * n + j];
        }
    }
    return 0;
}

static void solve(const double *A, int n, const int *order, double *b) {
    int i, j;
    for (i = 0; i < n; i++) {
        const double kept = b[order[i]];
        b[order[i]] = b[i];
        b[i] = kept;
    }
    for (i = 1; i < n; i++)
        for (j = 0; j < i; j++) b[i] -= A[i * n + j] * b[j];
    for (i = n - 1; i >= 0; i--) {
        for (j = i + 1; j < n; j++) b[i] -= A[i * n + j] * b[j];
        b[i] /= A[i * n + i];
    }
}

/* How many unknowns are iterated; the bound is for compilers that look for overruns. */
static int iterated(const @p@_state *s) {
    return ITERATED[s->mode] < @P@_NA ? ITERATED[s->mode] : @P@_NA;
}

/* The algebraic unknowns by Newton's method from those of before. */
static int iterate(@p@_state *s) {
    double g[NA_ROOM], slopes[NA_ROOM * NA_ROOM], own[NA_ROOM], before = INFINITY;
    int order[NA_ROOM], i, turn;
    const int n = iterated(s);
    const int *place = PLACE[s->mode];
    if (!n) return @P@_DONE;
    for (turn = 0; turn < 30; turn++) {
        double size;
        ALGEBRA[s->mode](s->x, s->a, s->u, s->d, s->p, &s->t, g, slopes);
        if (!isfinite(largest(g, n)) || factor(slopes, n, order)) return @P@_NO_SOLUTION;
        solve(slopes, n, order, g);
        for (i = 0; i < n; i++) own[i] = s->a[place[i]];
        size = largest(g, n) / (1.0 + largest(own, n));
        for (i = 0; i < n; i++) s->a[place[i]] -= size < 1e3 || turn > 5 ? g[i] : g[i] / size;
        if (size < 1e-13 || (size < 1e-10 && size >= before)) return @P@_DONE;
        before = size;
    }
    return @P@_NO_SOLUTION;
}

/* f_x and f_t with the algebraic unknowns eliminated. */
static int slopes(@p@_state *s, double *f_x, double *f_t) {
    double f_a[NX_ROOM * NA_ROOM], g_x[NA_ROOM * NX_ROOM], g_t[NA_ROOM], g_a[NA_ROOM * NA_ROOM], b[NA_ROOM];
    int order[NA_ROOM], i, j, k;
    const int n = iterated(s), bad = iterate(s);
    if (bad) return bad;
    SLOPES[s->mode](s->x, s->a, s->u, s->d, s->p, &s->t, f_x, f_a, f_t, g_x, g_t);
    if (!n) return @P@_DONE;
    ALGEBRA[s->mode](s->x, s->a, s->u, s->d, s->p, &s->t, b, g_a);
    if (factor(g_a, n, order)) return @P@_NO_SOLUTION;
    for (j = 0; j <= @P@_NX; j++) { /* a column of g_x, or g_t */
        for (k = 0; k < n; k++) b[k] = j < @P@_NX ? g_x[k * @P@_NX + j] : g_t[k];
        solve(g_a, n, order, b);
        for (i = 0; i < @P@_NX; i++) {
            double change = 0.0;
            for (k = 0; k < n; k++) change += f_a[i * n + k] * b[k];
            if (j < @P@_NX) f_x[i * @P@_NX + j] -= change;
            else f_t[i] -= change;
        }
    }
    return @P@_DONE;
}

int @p@_rates(@p@_state *s, double *rates) {
    const int bad = iterate(s);
    if (bad) return bad;
    RATES[s->mode](s->x, s->a, s->u, s->d, s->p, &s->t, rates);
    return isfinite(largest(rates, @P@_NX)) ? @P@_DONE : @P@_NOT_FINITE;
}

int @p@_observe(@p@_state *s, double *values) {
    const int bad = iterate(s);
    if (bad) return bad;
    OBSERVE[s->mode](s->x, s->a, s->u, s->d, s->p, &s->t, values);
    return @P@_DONE;
}

int @p@_conditions(@p@_state *s, double *conditions) {
    int i;
    const int bad = iterate(s);
    if (bad) return bad;
    for (i = 0; i < @P@_NC; i++) conditions[i] = -1.0;
    WATCH[s->mode](s->x, s->a, s->u, s->d, s->p, &s->t, conditions);
    return @P@_DONE;
}

/* Unknowns of other combinations of modes follow from the states of this one. */
static int complete(@p@_state *s) {
    const int bad = iterate(s);
    if (bad) return bad;
    COMPLETE[s->mode](s->x, s->a, s->u, s->d, s->p, &s->t, s->x, s->a);
    return @P@_DONE;
}

/* The first condition that holds after `skipped` others, or the last one; -1: none does. */
static int one_that_holds(const double *w, int skipped) {
    int i, found = -1;
    for (i = 0; i < @P@_NC && skipped >= 0; i++)
        if (w[i] > 1e-9 * (1.0 + fabs(w[i]))) {
            found = i;
            skipped--;
        }
    return found;
}

/* Newton's way back to loops that must stay closed: q first, then v. */
static int close_loops(@p@_state *s) {
#if NLOOPS
    double q[NX_ROOM], v[NX_ROOM], step[NX_ROOM], change[NX_ROOM], trust[8], next[NX_ROOM];
    int i, k, turn;
    for (k = 0; k < NLOOPS; k++) {
        const int nq = LOOP_NQ[k], nv = LOOP_NV[k], *at = LOOP_AT + LOOP_FROM[k];
        double size = INFINITY;
        for (i = 0; i < nq; i++) q[i] = s->x[at[i]];
        for (i = 0; i < nv; i++) v[i] = s->x[at[nq + i]];
        for (turn = 0; turn < 12; turn++) {
            BACK[k](q, v, s->p, step, change, trust);
            if (!(trust[2] < 1e10 && trust[4] < 1e10)) return @P@_SINGULAR;
            if (trust[0] < 1e-28 || !(trust[0] < size)) break;
            size = trust[0];
            WALK[k](q, step, s->p, next);
            for (i = 0; i < nq; i++) q[i] = next[i];
        }
        if (!(trust[0] < 1e-18)) return @P@_OFF_LOOPS;
        for (i = 0; i < nq; i++) s->x[at[i]] = q[i];
        for (i = 0; i < nv; i++) s->x[at[nq + i]] = v[i] + change[i];
    }
#endif
    (void)s;
    return @P@_DONE;
}

/* The nearest x at which the constraints among states hold, by Newton's method; 0: done. */
static int hold(@p@_state *s) {
    double h[NH_ROOM], h_x[NH_ROOM * NX_ROOM], square[NH_ROOM * NH_ROOM] = {0.0}, before = INFINITY;
    int order[NH_ROOM], i, j, k, turn;
    const int n = HELD[s->mode] < @P@_NH ? HELD[s->mode] : @P@_NH;
    if (!n) return 0;
    for (turn = 0; turn < 12; turn++) {
        double size = 0.0;
        HOLD[s->mode](s->x, s->a, s->u, s->d, s->p, &s->t, h, h_x);
        if (!isfinite(largest(h, n))) return 1;
        for (i = 0; i < n; i++) { /* rows of length one */
            double length = 0.0;
            for (k = 0; k < @P@_NX; k++) length += h_x[i * @P@_NX + k] * h_x[i * @P@_NX + k];
            length = sqrt(length);
            if (!(length > 0.0)) return 1;
            h[i] /= length;
            for (k = 0; k < @P@_NX; k++) h_x[i * @P@_NX + k] /= length;
        }
        for (i = 0; i < n; i++)
            for (j = 0; j < n; j++) {
                square[i * n + j] = i == j ? 1e-14 : 0.0; /* redundant constraints agree with each other */
                for (k = 0; k < @P@_NX; k++) square[i * n + j] += h_x[i * @P@_NX + k] * h_x[j * @P@_NX + k];
            }
        if (factor(square, n, order)) return 1;
        solve(square, n, order, h);
        for (k = 0; k < @P@_NX; k++) {
            double change = 0.0;
            for (i = 0; i < n; i++) change += h[i] * h_x[i * @P@_NX + k];
            s->x[k] -= change;
            if (fabs(change) > size) size = fabs(change);
        }
        size /= 1.0 + largest(s->x, @P@_NX);
        if (size < 1e-14 || (size < 1e-11 && size >= before)) return 0;
        before = size;
    }
    return 1;
}

/* Quaternions of unit length, loops closed, constraints among states kept. */
static int project(@p@_state *s) {
    int i, k;
    for (k = 0; k < NQUATERNIONS; k++) {
        double length = 0.0;
        for (i = 0; i < 4; i++) length += s->x[QUATERNION[4 * k + i]] * s->x[QUATERNION[4 * k + i]];
        length = sqrt(length);
        for (i = 0; i < 4; i++) s->x[QUATERNION[4 * k + i]] /= length;
    }
    if ((k = close_loops(s))) return k;
    return hold(s) ? @P@_OFF_LOOPS : @P@_DONE;
}

#if NLIMITS
/* 0 <= z, W z + u >= 0, one of them zero in each row, by exchange of the first row at fault (Murty); 0: done. */
static int complementary(const double *W, const double *u, int n, double *z) {
    double A[NLIMITS * NLIMITS] = {0.0}, b[NLIMITS] = {0.0};
    int in[NLIMITS] = {0}, at[NLIMITS] = {0}, order[NLIMITS], i, j, m, turn;
    for (turn = 0; turn < 1000; turn++) {
        int fault = -1;
        for (i = m = 0; i < n; i++) if (in[i]) at[m++] = i;
        for (i = 0; i < m; i++) {
            b[i] = -u[at[i]];
            for (j = 0; j < m; j++)
                A[i * m + j] = W[at[i] * n + at[j]] + (i == j ? 1e-14 * fabs(W[at[i] * n + at[i]]) : 0.0);
        }
        if (factor(A, m, order)) return 1;
        solve(A, m, order, b);
        for (i = 0; i < n; i++) z[i] = 0.0;
        for (i = 0; i < m; i++) z[at[i]] = b[i];
        for (i = 0; i < n && fault < 0; i++) {
            double rest = u[i], size = fabs(u[i]);
            for (j = 0; j < n; j++) {
                rest += W[i * n + j] * z[j];
                size += fabs(W[i * n + j] * z[j]);
            }
            if (in[i] ? z[i] < 0.0 : rest < -1e-13 * size) fault = i;
        }
        if (fault < 0) return 0;
        in[fault] = !in[fault];
    }
    return 1;
}

/* The impact of joints that are at their limits: their speeds change, and every state with them, as the equations of
   modes in which nothing sticks say. */
static int strike(@p@_state *s) {
    double f_x[NX_ROOM * NX_ROOM], f_a[NX_ROOM * NA_ROOM], f_t[NX_ROOM], g_x[NA_ROOM * NX_ROOM], g_t[NA_ROOM];
    double g[NA_ROOM], g_a[NA_ROOM * NA_ROOM], column[NA_ROOM], f_push[NX_ROOM * NLIMITS], g_push[NA_ROOM * NLIMITS];
    double w_x[NLIMITS * NX_ROOM], w_a[NLIMITS * NA_ROOM], w[NLIMITS], W[NLIMITS * NLIMITS] = {0.0};
    double u[NLIMITS] = {0.0}, z[NLIMITS] = {0.0}, away[NLIMITS] = {0.0}, fastest = 0.0;
    int order[NA_ROOM], at[NLIMITS] = {0}, i, j, k, m = 0, n, bad;
    @p@_state r = *s;
    for (k = 0; k < NLIMITS; k++) {
        const int mode = (int)s->d[LIMIT_SELECTOR[k]];
        if (mode != LIMIT_UPPER[k] && mode != LIMIT_LOWER[k]) continue;
        away[m] = mode == LIMIT_UPPER[k] ? -1.0 : 1.0;
        at[m++] = k;
    }
    for (k = 0; k < @P@_ND; k++) r.d[k] = (double)RELEASED[k * MODES_ROOM + (int)s->d[k]];
    r.mode = RELEASED_MODE[s->mode];
    if (r.mode < 0) return @P@_SINGULAR;
    if ((bad = iterate(&r))) return bad;
    n = iterated(&r);
    STRIKE[r.mode](r.x, r.a, r.u, r.d, r.p, &r.t, f_push, g_push, w_x, w_a, w);
    if (n) {
        SLOPES[r.mode](r.x, r.a, r.u, r.d, r.p, &r.t, f_x, f_a, f_t, g_x, g_t);
        ALGEBRA[r.mode](r.x, r.a, r.u, r.d, r.p, &r.t, g, g_a);
        if (factor(g_a, n, order)) return @P@_NO_SOLUTION;
        for (j = 0; j < NLIMITS; j++) {
            for (k = 0; k < n; k++) column[k] = g_push[k * NLIMITS + j];
            solve(g_a, n, order, column);
            for (i = 0; i < @P@_NX; i++)
                for (k = 0; k < n; k++) f_push[i * NLIMITS + j] -= f_a[i * n + k] * column[k];
        }
        for (j = 0; j < @P@_NX; j++) {
            for (k = 0; k < n; k++) column[k] = g_x[k * @P@_NX + j];
            solve(g_a, n, order, column);
            for (i = 0; i < NLIMITS; i++)
                for (k = 0; k < n; k++) w_x[i * @P@_NX + j] -= w_a[i * n + k] * column[k];
        }
    }
    for (i = 0; i < m; i++) {
        u[i] = away[i] * w[at[i]];
        fastest = fmax(fastest, RESTITUTION * fabs(u[i]));
    }
    for (i = 0; i < m; i++) {
        double size = 0.0;
        if (fastest >= REST) u[i] *= 1.0 + RESTITUTION;
        for (j = 0; j < m; j++) {
            W[i * m + j] = 0.0;
            for (k = 0; k < @P@_NX; k++) {
                const double part = away[i] * w_x[at[i] * @P@_NX + k] * f_push[k * NLIMITS + at[j]] * away[j];
                W[i * m + j] += part;
                if (i == j) size += fabs(part);
            }
        }
        if (!(W[i * m + i] > 1e-14 * size)) return @P@_JUMP; /* something gives the joint its speed */
    }
    if (complementary(W, u, m, z)) return @P@_NO_SOLUTION;
    for (k = 0; k < @P@_NX; k++)
        for (j = 0; j < m; j++) s->x[k] += f_push[k * NLIMITS + at[j]] * away[j] * z[j];
    return project(s);
}

static int meets(const @p@_state *s, int selector) {
    int k;
    for (k = 0; k < NLIMITS; k++)
        if (LIMIT_SELECTOR[k] == selector)
            return (int)s->d[selector] == LIMIT_UPPER[k] || (int)s->d[selector] == LIMIT_LOWER[k];
    return 0;
}
#endif

/* Enters modes until no condition to leave one holds, after `which` first (-1: none). */
static int switched(@p@_state *s, int which, int starting) {
    double w[NC_ROOM];
    @p@_state before;
    const @p@_state first = *s;
    int i, turn, bad = complete(s);
    const int forced = which >= 0;
    unsigned chance = 0u;
    if (bad) return bad;
    before = *s;
    for (turn = 0; turn < 60 + 40 * @P@_NPARTS && !bad; turn++) {
        if (which >= 0) {
            const int k = s->mode * NC_ROOM + which, selector = TO_SELECTOR[k];
            for (i = 0; i < @P@_NX; i++) s->x[i] = before.x[i];
            for (i = 0; i < @P@_NA; i++) s->a[i] = before.a[i];
            if (selector >= 0) s->d[selector] = (double)TO_VALUE[k];
            else s->mode = TO_MODE[k];
            if (s->mode < 0) {
                bad = @P@_SINGULAR;
                break;
            }
#if NLIMITS
            if (!starting && selector >= 0 && meets(s, selector)) {
                if ((bad = strike(s))) break;
                for (i = 0; i < @P@_NX; i++) before.x[i] = s->x[i];
            }
#endif
        }
        if ((bad = @p@_conditions(s, w))) break;
        /* the first one (Murty's rule); where that goes round in circles, any */
        chance = turn < 20 ? 0u : chance * 1103515245u + 12345u;
        which = one_that_holds(w, (int)(chance >> 16) % 3);
        if (which < 0) {
            if ((bad = complete(s))) break;
            for (i = 0; forced && i < @P@_NX; i++)
                if (fabs(s->x[i] - before.x[i]) > 1e-6 * (1.0 + fabs(before.x[i]))) bad = @P@_JUMP;
            if (bad) break;
            return @P@_DONE;
        }
    }
    (void)starting;
    *s = first;
    return bad ? bad : @P@_CHATTER;
}

static int possible(int k, double value) {
    return isfinite(value) && value >= LOWER[k] && value <= UPPER[k] && !(BEYOND[k] && value == LOWER[k])
        && !(NONZERO[k] && value == 0.0);
}

int @p@_check_parameters(const @p@_state *s) {
    double margin;
    int k;
    for (k = 0; k < @P@_NP; k++) if (!possible(k, s->p[k])) return k + 1;
    for (k = 0; k < NMARGINS; k++) {
        MARGIN[k](s->p, &margin);
        if (!(margin >= 0.0)) return @P@_NP + 1;
    }
    return 0;
}

double @p@_drift(const @p@_state *s) {
    @p@_state r = *s;
    int i;
    if (project(&r)) return INFINITY;
    for (i = 0; i < @P@_NX; i++) r.x[i] -= s->x[i];
    return largest(r.x, @P@_NX) / (1.0 + largest(s->x, @P@_NX));
}

int @p@_settle(@p@_state *s) {
    const int bad = @p@_check_parameters(s) ? @P@_BAD_VALUE : project(s);
    return bad ? bad : switched(s, -1, 0);
}

int @p@_start(@p@_state *s) {
    int i;
    s->t = s->h = 0.0;
    s->mode = 0;
    for (i = 0; i < @P@_NX; i++) s->x[i] = START_X[i];
    for (i = 0; i < @P@_NA; i++) s->a[i] = START_A[i];
    for (i = 0; i < @P@_NU; i++) s->u[i] = START_U[i];
    for (i = 0; i < @P@_ND; i++) s->d[i] = START_D[i];
    for (i = 0; i < @P@_NP; i++) s->p[i] = START_P[i];
    return switched(s, -1, 1);
}

/* ---- steps within one combination of modes */

static int runge_kutta(@p@_state *s, double h, double *error) {
    static const double reach[4] = {0.0, 0.5, 0.5, 1.0}, weight[4] = {1.0, 2.0, 2.0, 1.0};
    double k[NX_ROOM] = {0.0}, sum[NX_ROOM] = {0.0};
    const @p@_state start = *s;
    int i, stage, bad;
    for (stage = 0; stage < 4; stage++) {
        s->t = start.t + reach[stage] * h;
        for (i = 0; i < @P@_NX; i++) s->x[i] = start.x[i] + reach[stage] * h * k[i];
        if ((bad = @p@_rates(s, k))) return bad;
        for (i = 0; i < @P@_NX; i++) sum[i] += weight[stage] * k[i];
    }
    s->t = start.t + h;
    for (i = 0; i < @P@_NX; i++) s->x[i] = start.x[i] + h / 6.0 * sum[i];
    *error = 0.0;
    return project(s);
}

/* Rodas (Hairer and Wanner): six stages, order 4, stiffly accurate; error relative to the tolerances. */
static int rosenbrock(@p@_state *s, double h, double rtol, double atol, double *error) {
    static const double A[5][5] = {{1.544}, {0.9466785280815826, 0.2557011698983284},
        {3.314825187068521, 2.896124015972201, 0.9986419139977817},
        {1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950},
        {1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950, 1.0}};
    static const double C[5][5] = {{-5.6688}, {-2.430093356833875, -0.2063599157091915},
        {-0.1073529058151375, -9.594562251023355, -20.47028614809616},
        {7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160},
        {8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054}};
    static const double reach[6] = {0.0, 0.386, 0.21, 0.63, 1.0, 1.0};
    static const double slope[6] = {0.25, -0.1043, 0.1035, -0.03620000000000023, 0.0, 0.0};
    double matrix[NX_ROOM * NX_ROOM], f_t[NX_ROOM], f[NX_ROOM], U[6][NX_ROOM];
    const @p@_state start = *s;
    int order[NX_ROOM], i, j, stage, bad;
    if ((bad = slopes(s, matrix, f_t))) return bad;
    for (i = 0; i < @P@_NX * @P@_NX; i++) matrix[i] = -matrix[i];
    for (i = 0; i < @P@_NX; i++) matrix[i * @P@_NX + i] += 1.0 / (0.25 * h);
    if (factor(matrix, @P@_NX, order)) return @P@_NOT_FINITE;
    for (stage = 0; stage < 6; stage++) {
        s->t = start.t + reach[stage] * h;
        for (i = 0; i < @P@_NX; i++) {
            s->x[i] = start.x[i];
            for (j = 0; j < stage; j++) s->x[i] += A[stage - 1][j] * U[j][i];
        }
        if ((bad = @p@_rates(s, f))) return bad;
        for (i = 0; i < @P@_NX; i++) {
            U[stage][i] = f[i] + h * slope[stage] * f_t[i];
            for (j = 0; j < stage; j++) U[stage][i] += C[stage - 1][j] / h * U[j][i];
        }
        solve(matrix, @P@_NX, order, U[stage]);
    }
    *error = 0.0;
    for (i = 0; i < @P@_NX; i++) {
        s->x[i] += U[5][i];
        f[i] = fabs(U[5][i]) / (atol + rtol * fmax(fabs(start.x[i]), fabs(s->x[i])));
    }
    s->t = start.t + h;
    *error = largest(f, @P@_NX);
    if (!isfinite(*error)) return @P@_NOT_FINITE;
    return project(s);
}

/* One step of either method; rtol = 0: Runge and Kutta's. */
static int stepped(@p@_state *s, double h, double rtol, double atol, double *error) {
    return rtol > 0.0 ? rosenbrock(s, h, rtol, atol, error) : runge_kutta(s, h, error);
}

/* The first condition above its level, or -1. */
static int first_above(const double *w, const double *level) {
    int i;
    for (i = 0; i < @P@_NC; i++) if (w[i] > level[i]) return i;
    return -1;
}

/* A step up to h, or to where the first condition begins to hold: then modes are entered there. `told` are the
   conditions where the step begins, and then where s is. */
static int to_the_next_switch(@p@_state *s, const @p@_state *before, double h, double rtol, double atol, double *told) {
    double w[NC_ROOM], level[NC_ROOM], low = 0.0, high = h, error;
    int i, turn, which, bad = @p@_conditions(s, w);
    if (bad) return bad;
    /* zero is crossed where a step begins below it; what begins at zero must get away from it */
    for (i = 0; i < @P@_NC; i++) level[i] = (told[i] < 0.0 ? 1e-12 : 1e-9) * (1.0 + fabs(w[i]));
    which = first_above(w, level);
    for (i = 0; i < @P@_NC; i++) {
        if (told[i] < 0.0 && w[i] > level[i]) level[i] = 0.0;
        told[i] = w[i];
    }
    if (which < 0) return @P@_DONE;
    for (turn = 0; turn < 60 && high - low > 1e-15 * (1.0 + fabs(before->t)); turn++) {
        const double middle = 0.5 * (low + high);
        *s = *before;
        if ((bad = stepped(s, middle, rtol, atol, &error)) || (bad = @p@_conditions(s, w))) return bad;
        if (first_above(w, level) >= 0) high = middle;
        else low = middle;
    }
    *s = *before;
    if ((bad = stepped(s, high, rtol, atol, &error)) || (bad = @p@_conditions(s, w))) return bad;
    which = first_above(w, level);
    if (which >= 0 && (bad = switched(s, which, 0))) return bad;
    return @p@_conditions(s, told);
}

int @p@_step(@p@_state *s, double dt) {
    const @p@_state start = *s;
    const double end = s->t + dt;
    double told[NC_ROOM];
    int turn, bad = @p@_conditions(s, told);
    if (bad) return bad;
    for (turn = 0; turn < 1000; turn++) {
        @p@_state before = *s;
        const double h = end - s->t;
        double error;
        if (!(h > 1e-14 * (1.0 + fabs(end)))) {
            s->t = end;
            return @P@_DONE;
        }
        bad = runge_kutta(s, h, &error);
        if (!bad) bad = to_the_next_switch(s, &before, h, 0.0, 0.0, told);
        if (bad) {
            *s = start;
            return bad;
        }
    }
    *s = start;
    return @P@_CHATTER;
}

int @p@_advance(@p@_state *s, double until, double longest, double rtol, double atol) {
    double told[NC_ROOM];
    long turn;
    int bad = @p@_conditions(s, told);
    if (bad) return bad;
    if (!(s->h > 0.0)) s->h = fmin(longest, 1e-3 * (until - s->t));
    for (turn = 0; turn < 10000000; turn++) {
        @p@_state before = *s;
        const double left = until - s->t, h = fmin(fmin(s->h, longest), left);
        double error, factor_;
        if (!(left > 1e-14 * (1.0 + fabs(until)))) {
            s->t = until;
            return @P@_DONE;
        }
        bad = rosenbrock(s, h, rtol, atol, &error);
        factor_ = bad ? 0.25 : fmin(6.0, fmax(0.2, 0.9 * pow(fmax(error, 1e-10), -0.25)));
        if (bad || error > 1.0) {
            *s = before;
            s->h = h * fmin(factor_, 0.9);
            if (s->h < 1e-15 * (1.0 + fabs(s->t))) return bad ? bad : @P@_NO_STEP;
            continue;
        }
        s->h = fmax(h * factor_, left == h ? before.h : 0.0);
        bad = to_the_next_switch(s, &before, h, rtol, atol, told);
        if (bad) return bad;
    }
    return @P@_CHATTER;
}

int @p@_set(@p@_state *s, int k, double value) {
    if (k < 0 || k >= @P@_NP || !possible(k, value)) return @P@_BAD_VALUE;
    s->p[k] = value;
    return @P@_DONE;
}

int @p@_tangent(@p@_state *s, const double *dx, const double *du, double *drates, double *dvalues) {
    double da[NA_ROOM] = {0.0}, dg[NA_ROOM], g[NA_ROOM], g_a[NA_ROOM * NA_ROOM];
    int order[NA_ROOM], i, turn;
    const int n = iterated(s), bad = iterate(s);
    if (bad) return bad;
    for (turn = 0; turn < 2; turn++) {
        TANGENT[s->mode](s->x, s->a, s->u, s->d, s->p, &s->t, dx, du, da, drates, dvalues, dg);
        if (!n || turn) break;
        ALGEBRA[s->mode](s->x, s->a, s->u, s->d, s->p, &s->t, g, g_a);
        if (factor(g_a, n, order)) return @P@_NO_SOLUTION;
        solve(g_a, n, order, dg);
        for (i = 0; i < n; i++) da[i] = -dg[i];
    }
    return @P@_DONE;
}

int @p@_mode_of(const @p@_state *s, int part) {
    if (part < 0 || part >= @P@_NPARTS) return -1;
    if (PART_SELECTOR[part] >= 0) return (int)s->d[PART_SELECTOR[part]];
    return PART_MODE[s->mode * @P@_NPARTS + part];
}
