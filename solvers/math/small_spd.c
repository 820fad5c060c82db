#include "solvers/math/small_spd.h"

#include <math.h>

// Inlined with a constant n for the common sizes, so that the compiler unrolls.
static inline __attribute__((always_inline)) int factor_n(int n, double* a, double floor) {
    int guarded = 0;
    double pivots[RW_SMALL_SPD_MAX]; // D; 0 for a guarded one, whose column is clear
    for (int j = 0; j < n; j++) {
        double diagonal = a[j * n + j], d = diagonal;
        double scaled[RW_SMALL_SPD_MAX];
        for (int k = 0; k < j; k++) {
            scaled[k] = a[j * n + k] * pivots[k];
            d -= a[j * n + k] * scaled[k];
        }
        if (!(d > 0.0 && d > floor * diagonal)) {
            guarded++;
            pivots[j] = 0.0;
            a[j * n + j] = 0.0;
            for (int i = j + 1; i < n; i++)
                a[i * n + j] = 0.0;
            continue;
        }
        double inverse = 1.0 / d;
        pivots[j] = d;
        a[j * n + j] = inverse;
        for (int i = j + 1; i < n; i++) {
            double s = a[i * n + j];
            for (int k = 0; k < j; k++)
                s -= a[i * n + k] * scaled[k];
            a[i * n + j] = s * inverse;
        }
    }
    return guarded;
}

static inline __attribute__((always_inline)) void solve_n(int n, const double* f, double* b,
                                                          int stride) {
    for (int i = 1; i < n; i++) {
        double s = b[i * stride];
        for (int k = 0; k < i; k++)
            s -= f[i * n + k] * b[k * stride];
        b[i * stride] = s;
    }
    for (int i = n - 1; i >= 0; i--) {
        double s = b[i * stride] * f[i * n + i];
        for (int k = i + 1; k < n; k++)
            s -= f[k * n + i] * b[k * stride];
        b[i * stride] = s;
    }
}

int rw_small_spd_factor(int n, double* a, double relative_floor) {
    switch (n) {
    case 1:
        return factor_n(1, a, relative_floor);
    case 2:
        return factor_n(2, a, relative_floor);
    case 3:
        return factor_n(3, a, relative_floor);
    case 5:
        return factor_n(5, a, relative_floor);
    case 6:
        return factor_n(6, a, relative_floor);
    default:
        return factor_n(n, a, relative_floor);
    }
}

void rw_small_spd_solve(int n, const double* factor, double* b) {
    switch (n) {
    case 3:
        solve_n(3, factor, b, 1);
        return;
    case 5:
        solve_n(5, factor, b, 1);
        return;
    case 6:
        solve_n(6, factor, b, 1);
        return;
    default:
        solve_n(n, factor, b, 1);
    }
}

void rw_small_spd_solve_many(int n, const double* factor, double* b, int columns) {
    for (int c = 0; c < columns; c++)
        solve_n(n, factor, b + c, columns);
}

int rw_small_spd_solve3(const rw_mat3* a, rw_vec3 b, rw_vec3* x) {
    double f[9], v[3] = {b.x, b.y, b.z};
    for (int i = 0; i < 9; i++)
        f[i] = a->m[i / 3][i % 3];
    int guarded = factor_n(3, f, 0.0);
    solve_n(3, f, v, 1);
    *x = rw_vec3_load(v);
    return guarded;
}

// One Jacobi rotation in the plane (p, q) that clears a[p][q].
static void rotate_plane(double a[3][3], double v[3][3], int p, int q) {
    if (a[p][q] == 0.0)
        return;
    double theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    double t = fabs(theta) > 0x1p60
                   ? 0.5 / theta
                   : copysign(1.0, theta) / (fabs(theta) + sqrt(theta * theta + 1.0));
    double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
    int r = 3 - p - q;
    double app = a[p][p], aqq = a[q][q], apq = a[p][q], arp = a[r][p], arq = a[r][q];
    a[p][p] = app - t * apq;
    a[q][q] = aqq + t * apq;
    a[p][q] = a[q][p] = 0.0;
    a[r][p] = a[p][r] = c * arp - s * arq;
    a[r][q] = a[q][r] = s * arp + c * arq;
    for (int i = 0; i < 3; i++) {
        double vp = v[i][p], vq = v[i][q];
        v[i][p] = c * vp - s * vq;
        v[i][q] = s * vp + c * vq;
    }
}

void rw_small_spd_eigen3(const rw_mat3* in, double values[3], rw_mat3* vectors) {
    rw_mat3 a = *in, v = rw_mat3_identity();
    a.m[0][1] = a.m[1][0] = in->m[1][0];
    a.m[0][2] = a.m[2][0] = in->m[2][0];
    a.m[1][2] = a.m[2][1] = in->m[2][1];
    for (int sweep = 0; sweep < 32; sweep++) {
        double off = fabs(a.m[0][1]) + fabs(a.m[0][2]) + fabs(a.m[1][2]);
        if (!(off > 0x1p-1000))
            break;
        rotate_plane(a.m, v.m, 0, 1);
        rotate_plane(a.m, v.m, 0, 2);
        rotate_plane(a.m, v.m, 1, 2);
    }
    int order[3] = {0, 1, 2};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2 - i; j++)
            if (a.m[order[j]][order[j]] > a.m[order[j + 1]][order[j + 1]]) {
                int t = order[j];
                order[j] = order[j + 1];
                order[j + 1] = t;
            }
    for (int i = 0; i < 3; i++)
        values[i] = a.m[order[i]][order[i]];
    rw_vec3 c0 = rw_mat3_column(&v, order[0]), c1 = rw_mat3_column(&v, order[1]);
    *vectors = rw_mat3_from_columns(c0, c1, rw_vec3_cross(c0, c1));
}
