#include "solvers/math/kkt.h"

#include <math.h>
#include <string.h>

#include "solvers/base/arena.h"
#include "solvers/base/check.h"
#include "solvers/math/kkt_order.h"

// Below this fraction of its own diagonal a pivot is held to be rounding: it is guarded.
#define PIVOT_FLOOR 1e-15
// A constraint pivot below this many regularisations is redundant.
#define REDUNDANT_FACTOR 1e4
// From here on, and if levels are this wide on average, the levels are shared among threads.
#define PARALLEL_NODES 1024
#define PARALLEL_WIDTH 64
#define PARALLEL_BLOCK 32

// Nodes are numbered by their place in the order of elimination. Column n of L has one dense block
// for every later node that n's elimination touches, in ascending order; blocks are column major.
//
//   column_first[n] .. column_first[n + 1]   entries of column n: row node, block, source
//   row_first[n] .. row_first[n + 1]         entries whose row is n, by ascending column
//   dest_first[e] ..                         for entry e = (row n, column c) and every later entry
//                                            (row r, column c): the block (r, n) that it updates
struct rw_kkt {
    rw_alloc* alloc;
    rw_arena arena;
    int32_t body_count, constraint_count, node_count;
    int32_t row_count, slot_count;
    int32_t *place;      // of body b, and of constraint k at body_count + k
    int32_t* body_of;    // node -> body, or -1
    int32_t* constraint_of;
    int8_t* dim;         // node -> unknowns
    int32_t *column_first, *entry_row, *entry_column, *entry_slot;
    int32_t* entry_block; // offset in `blocks`
    int32_t *row_first, *row_entry;
    int32_t *dest_first, *dest;
    int32_t *level_first, *level_node;
    int32_t level_count;
    double* diagonal; // unit lower L of the diagonal block, column major (node x 36)
    double *pivot, *inverse; // D and 1/D (node x 6)
    double* blocks;
    int8_t *guarded, *redundant; // per node
    // the matrix as given
    double *mass, *jacobian, *epsilon;
    int32_t* slot_first; // offset of a slot in `jacobian`
    int32_t* slot_constraint;
    int32_t *first, *bodies, *row_start;
    int32_t *touch_first, *touch; // slots per body
    bool* in_loop;
    // work
    double* z;         // node x 6
    double *residual_body, *residual_row;
    const double* regularisation;
    double *work_body, *work_row;
};

// ---- Small kernels: inlined with constant sizes, column major -----------------------------------
//
// Columns are padded to an even length with zeros, so that every kernel works on whole pairs. A sum
// is formed first and then subtracted; its order is fixed, in scalars and in pairs alike.

// Unrolling is for speed only; with a sanitizer's checks in every line the unrolled kernels take
// clang an hour to compile.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(IS_SANITIZED)
#define INLINE static inline
#define UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 6")
#endif

typedef double pair __attribute__((vector_size(16), may_alias));

// Length of a column of m entries in memory.
#define PADDED(m) (((m) + 1) & ~1)

// b (m x n) -= a (m x d) t' (t: n x d).
INLINE void subtract_product(int m, int n, int d, double* restrict b, const double* restrict a,
                             const double* restrict t) {
    const int pairs = PADDED(m) / 2, lead = PADDED(n);
    const pair* pa = (const pair*)a;
    pair* pb = (pair*)b;
    UNROLL for (int j = 0; j < n; j++) {
        pair sum[3] = {{0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}};
        UNROLL for (int k = 0; k < d; k++) {
            pair s = {t[k * lead + j], t[k * lead + j]};
            UNROLL for (int i = 0; i < pairs; i++)
                sum[i] += pa[k * pairs + i] * s;
        }
        UNROLL for (int i = 0; i < pairs; i++)
            pb[j * pairs + i] -= sum[i];
    }
}

// t (n x d) = l (n x d) D.
INLINE void scale_columns(int n, int d, double* restrict t, const double* restrict l,
                          const double* restrict pivot) {
    const int pairs = PADDED(n) / 2;
    pair* pt = (pair*)t;
    const pair* pl = (const pair*)l;
    UNROLL for (int k = 0; k < d; k++) {
        pair s = {pivot[k], pivot[k]};
        UNROLL for (int i = 0; i < pairs; i++)
            pt[k * pairs + i] = pl[k * pairs + i] * s;
    }
}

// b (m x d) <- b L^-T D^-1 for the unit lower L (d x d).
INLINE void solve_block(int m, int d, double* restrict b, const double* restrict l,
                        const double* restrict inverse) {
    const int pairs = PADDED(m) / 2, lead = PADDED(d);
    pair* pb = (pair*)b;
    UNROLL for (int j = 1; j < d; j++) {
        pair sum[3] = {{0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}};
        UNROLL for (int k = 0; k < j; k++) {
            pair s = {l[k * lead + j], l[k * lead + j]};
            UNROLL for (int i = 0; i < pairs; i++)
                sum[i] += pb[k * pairs + i] * s;
        }
        UNROLL for (int i = 0; i < pairs; i++)
            pb[j * pairs + i] -= sum[i];
    }
    UNROLL for (int j = 0; j < d; j++) {
        pair s = {inverse[j], inverse[j]};
        UNROLL for (int i = 0; i < pairs; i++)
            pb[j * pairs + i] *= s;
    }
}

// z (n) -= l (n x d) y. z has room for the padding.
INLINE void subtract_apply(int n, int d, double* restrict z, const double* restrict l,
                           const double* restrict y) {
    const int pairs = PADDED(n) / 2;
    const pair* pl = (const pair*)l;
    pair *pz = (pair*)z, sum[3] = {{0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}};
    UNROLL for (int k = 0; k < d; k++) {
        pair s = {y[k], y[k]};
        UNROLL for (int i = 0; i < pairs; i++)
            sum[i] += pl[k * pairs + i] * s;
    }
    UNROLL for (int i = 0; i < pairs; i++)
        pz[i] -= sum[i];
}

// z (d) -= l' (l: n x d) x. The padding of x is finite.
INLINE void subtract_apply_transpose(int n, int d, double* restrict z, const double* restrict l,
                                     const double* restrict x) {
    const int pairs = PADDED(n) / 2;
    const pair *pl = (const pair*)l, *px = (const pair*)x;
    UNROLL for (int k = 0; k < d; k++) {
        pair sum = {0.0, 0.0};
        UNROLL for (int i = 0; i < pairs; i++)
            sum += pl[k * pairs + i] * px[i];
        z[k] -= sum[0] + sum[1];
    }
}

// block (m x 6, column major) = rows (m x 6, row major).
INLINE void load_transposed(int m, int unused, double* restrict block,
                            const double* restrict rows) {
    (void)unused;
    UNROLL for (int j = 0; j < 6; j++)
        UNROLL for (int i = 0; i < m; i++)
            block[j * PADDED(m) + i] = rows[i * 6 + j];
}

// Copies a 6 x 6 block (a call or a string instruction costs more than the copy).
INLINE void copy_block(double* restrict to, const double* restrict from) {
    pair* pt = (pair*)to;
    const pair* pf = (const pair*)from;
    _Pragma("GCC unroll 18") for (int i = 0; i < 18; i++) pt[i] = pf[i];
}

// Calls kernel(n, d, ...) with constant arguments for body against joint, generically otherwise.
#define DISPATCH(kernel, n, d, ...)                                                                \
    switch ((n) * 8 + (d)) {                                                                       \
    case 6 * 8 + 1: kernel(6, 1, __VA_ARGS__); break;                                              \
    case 6 * 8 + 2: kernel(6, 2, __VA_ARGS__); break;                                              \
    case 6 * 8 + 3: kernel(6, 3, __VA_ARGS__); break;                                              \
    case 6 * 8 + 4: kernel(6, 4, __VA_ARGS__); break;                                              \
    case 6 * 8 + 5: kernel(6, 5, __VA_ARGS__); break;                                              \
    case 6 * 8 + 6: kernel(6, 6, __VA_ARGS__); break;                                              \
    case 1 * 8 + 6: kernel(1, 6, __VA_ARGS__); break;                                              \
    case 2 * 8 + 6: kernel(2, 6, __VA_ARGS__); break;                                              \
    case 3 * 8 + 6: kernel(3, 6, __VA_ARGS__); break;                                              \
    case 4 * 8 + 6: kernel(4, 6, __VA_ARGS__); break;                                              \
    case 5 * 8 + 6: kernel(5, 6, __VA_ARGS__); break;                                              \
    case 5 * 8 + 5: kernel(5, 5, __VA_ARGS__); break;                                              \
    case 3 * 8 + 3: kernel(3, 3, __VA_ARGS__); break;                                              \
    default: kernel((n), (d), __VA_ARGS__); break;                                                 \
    }

// The diagonal block's update: a (n x n) -= t l', with t = l D.
INLINE void gather_diagonal(int n, int d, double* restrict a, const double* restrict l,
                            const double* restrict pivot) {
    pair t[18];
    scale_columns(n, d, (double*)t, l, pivot);
    subtract_product(n, n, d, a, (const double*)t, l);
}

INLINE void factor_diagonal(int n, int unused, double* restrict a, double* restrict pivot,
                            double* restrict inverse, double sign, int8_t* guarded) {
    (void)unused;
    const int lead = PADDED(n);
    UNROLL for (int j = 0; j < n; j++) {
        double original = pivot[j]; // the entry before any update: the scale of its rounding
        double p = a[j * lead + j];
        if (!(sign * p > PIVOT_FLOOR * original)) {
            (*guarded)++;
            pivot[j] = inverse[j] = 0.0;
            for (int i = j + 1; i < n; i++)
                a[j * lead + i] = 0.0;
            continue;
        }
        double v = 1.0 / p;
        pivot[j] = p;
        inverse[j] = v;
        double column[6];
        UNROLL for (int i = j + 1; i < n; i++) {
            column[i] = a[j * lead + i];
            a[j * lead + i] = column[i] * v;
        }
        UNROLL for (int k = j + 1; k < n; k++)
            UNROLL for (int i = k; i < n; i++)
                a[k * lead + i] -= column[i] * a[j * lead + k];
    }
}

INLINE void solve_lower(int n, int unused, double* restrict z, const double* restrict l) {
    (void)unused;
    const int lead = PADDED(n);
    UNROLL for (int k = 0; k < n - 1; k++)
        UNROLL for (int i = k + 1; i < n; i++)
            z[i] -= l[k * lead + i] * z[k];
}

INLINE void solve_upper(int n, int unused, double* restrict z, const double* restrict l) {
    (void)unused;
    const int lead = PADDED(n);
    UNROLL for (int k = n - 2; k >= 0; k--) {
        double s = z[k];
        UNROLL for (int i = k + 1; i < n; i++)
            s -= l[k * lead + i] * z[i];
        z[k] = s;
    }
}

#define DISPATCH_SQUARE(kernel, n, ...)                                                            \
    switch (n) {                                                                                   \
    case 1: kernel(1, 1, __VA_ARGS__); break;                                                      \
    case 2: kernel(2, 2, __VA_ARGS__); break;                                                      \
    case 3: kernel(3, 3, __VA_ARGS__); break;                                                      \
    case 4: kernel(4, 4, __VA_ARGS__); break;                                                      \
    case 5: kernel(5, 5, __VA_ARGS__); break;                                                      \
    case 6: kernel(6, 6, __VA_ARGS__); break;                                                      \
    default: break;                                                                                \
    }

// ---- Symbolic phase ------------------------------------------------------------------------------

static int32_t* integers(rw_arena* arena, int64_t count) {
    return rw_arena_array(arena, (size_t)count + 1, sizeof(int32_t));
}

static double* doubles(rw_arena* arena, int64_t count) {
    return rw_arena_array(arena, (size_t)count + 1, sizeof(double));
}

static rw_status copy_graph(rw_kkt* s, const rw_kkt_graph* g) {
    int32_t m = g->constraint_count;
    s->body_count = g->body_count;
    s->constraint_count = m;
    s->node_count = g->body_count + m;
    s->slot_count = g->first[m];
    s->first = integers(&s->arena, m + 1);
    s->bodies = integers(&s->arena, s->slot_count);
    s->row_start = integers(&s->arena, m + 1);
    s->slot_first = integers(&s->arena, s->slot_count);
    s->slot_constraint = integers(&s->arena, s->slot_count);
    s->touch_first = integers(&s->arena, g->body_count + 1);
    s->touch = integers(&s->arena, s->slot_count);
    if (!s->first || !s->bodies || !s->row_start || !s->slot_first || !s->slot_constraint ||
        !s->touch_first || !s->touch)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    memcpy(s->first, g->first, ((size_t)m + 1) * sizeof *s->first);
    memcpy(s->bodies, g->bodies, (size_t)s->slot_count * sizeof *s->bodies);
    int32_t at = 0;
    for (int32_t k = 0; k < m; k++) {
        s->row_start[k + 1] = s->row_start[k] + g->rows[k];
        for (int32_t t = g->first[k]; t < g->first[k + 1]; t++) {
            s->slot_first[t] = at;
            s->slot_constraint[t] = k;
            s->touch_first[g->bodies[t] + 1]++;
            at += 6 * g->rows[k];
        }
    }
    s->row_count = s->row_start[m];
    for (int32_t b = 0; b < g->body_count; b++)
        s->touch_first[b + 1] += s->touch_first[b];
    int32_t* cursor = integers(&s->arena, g->body_count);
    if (!cursor)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    memcpy(cursor, s->touch_first, (size_t)g->body_count * sizeof *cursor);
    for (int32_t t = 0; t < s->slot_count; t++)
        s->touch[cursor[g->bodies[t]]++] = t;
    s->mass = doubles(&s->arena, 36 * (int64_t)g->body_count);
    s->jacobian = doubles(&s->arena, at);
    s->epsilon = doubles(&s->arena, s->row_count);
    return s->mass && s->jacobian && s->epsilon ? RW_STATUS_OK : RW_STATUS_RESOURCE_EXHAUSTED;
}

static rw_status number_nodes(rw_kkt* s, const rw_kkt_graph* g, const int32_t* nodes) {
    s->place = integers(&s->arena, s->node_count);
    s->body_of = integers(&s->arena, s->node_count);
    s->constraint_of = integers(&s->arena, s->node_count);
    s->dim = rw_arena_array(&s->arena, (size_t)s->node_count + 1, 1);
    if (!s->place || !s->body_of || !s->constraint_of || !s->dim)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    for (int32_t n = 0; n < s->node_count; n++) {
        int32_t id = nodes[n], k = id - s->body_count;
        s->place[id] = n;
        s->body_of[n] = k < 0 ? id : -1;
        s->constraint_of[n] = k < 0 ? -1 : k;
        s->dim[n] = k < 0 ? 6 : g->rows[k];
    }
    return RW_STATUS_OK;
}

static int32_t compare_sift(int32_t* a, int32_t count) {
    // Insertion sort: columns are short, and almost sorted where they are not.
    for (int32_t i = 1; i < count; i++) {
        int32_t v = a[i], j = i;
        for (; j > 0 && a[j - 1] > v; j--)
            a[j] = a[j - 1];
        a[j] = v;
    }
    return count;
}

// Column structures by the elimination tree: column n holds its own later neighbours and what its
// children hold, without n. Two passes (count, fill) over growing storage in `scratch`.
static rw_status find_columns(rw_kkt* s, rw_arena* scratch) {
    int32_t n_nodes = s->node_count;
    int32_t **column = rw_arena_array(scratch, (size_t)n_nodes + 1, sizeof *column);
    int32_t *size = integers(scratch, n_nodes), *mark = integers(scratch, n_nodes);
    int32_t *first_child = integers(scratch, n_nodes), *sibling = integers(scratch, n_nodes);
    int32_t* list = integers(scratch, n_nodes);
    if (!column || !size || !mark || !first_child || !sibling || !list)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    for (int32_t n = 0; n < n_nodes; n++)
        mark[n] = first_child[n] = sibling[n] = -1;
    int64_t total = 0;
    for (int32_t n = 0; n < n_nodes; n++) {
        int32_t count = 0;
        mark[n] = n;
        int32_t b = s->body_of[n], k = s->constraint_of[n];
        int32_t from = b >= 0 ? s->touch_first[b] : s->first[k];
        int32_t to = b >= 0 ? s->touch_first[b + 1] : s->first[k + 1];
        for (int32_t t = from; t < to; t++) {
            int32_t r = b >= 0 ? s->place[s->body_count + s->slot_constraint[s->touch[t]]]
                               : s->place[s->bodies[t]];
            if (r > n && mark[r] != n) {
                mark[r] = n;
                list[count++] = r;
            }
        }
        for (int32_t c = first_child[n]; c >= 0; c = sibling[c])
            for (int32_t i = 0; i < size[c]; i++)
                if (mark[column[c][i]] != n) {
                    mark[column[c][i]] = n;
                    list[count++] = column[c][i];
                }
        size[n] = compare_sift(list, count);
        column[n] = integers(scratch, count);
        if (!column[n])
            return RW_STATUS_RESOURCE_EXHAUSTED;
        memcpy(column[n], list, (size_t)count * sizeof *list);
        total += count;
        if (count) {
            sibling[n] = first_child[list[0]];
            first_child[list[0]] = n;
        }
    }
    if (total > INT32_MAX / 40)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    s->column_first = integers(&s->arena, n_nodes + 1);
    s->entry_row = integers(&s->arena, total);
    s->entry_column = integers(&s->arena, total);
    s->entry_slot = integers(&s->arena, total);
    s->entry_block = integers(&s->arena, total + 1);
    s->row_first = integers(&s->arena, n_nodes + 1);
    s->row_entry = integers(&s->arena, total);
    if (!s->column_first || !s->entry_row || !s->entry_column || !s->entry_slot ||
        !s->entry_block || !s->row_first || !s->row_entry)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    int32_t e = 0;
    for (int32_t n = 0; n < n_nodes; n++) {
        for (int32_t i = 0; i < size[n]; i++, e++) {
            int32_t r = column[n][i];
            s->entry_row[e] = r;
            s->entry_column[e] = n;
            s->entry_slot[e] = -1;
            s->entry_block[e + 1] = s->entry_block[e] + s->dim[n] * PADDED(s->dim[r]);
            s->row_first[r + 1]++;
        }
        s->column_first[n + 1] = e;
    }
    for (int32_t n = 0; n < n_nodes; n++)
        s->row_first[n + 1] += s->row_first[n];
    memcpy(mark, s->row_first, (size_t)n_nodes * sizeof *mark);
    for (int32_t i = 0; i < e; i++) // columns ascend, so every row's list does
        s->row_entry[mark[s->entry_row[i]]++] = i;
    return RW_STATUS_OK;
}

static int32_t find_entry(const rw_kkt* s, int32_t column, int32_t row) {
    int32_t low = s->column_first[column], high = s->column_first[column + 1] - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (s->entry_row[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    RW_ASSERT(s->entry_row[low] == row);
    return low;
}

static rw_status find_destinations(rw_kkt* s) {
    int32_t entries = s->column_first[s->node_count];
    int64_t total = 0;
    for (int32_t n = 0; n < s->node_count; n++) {
        int64_t size = s->column_first[n + 1] - s->column_first[n];
        total += size * (size - 1) / 2;
    }
    if (total > INT32_MAX / 8)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    s->dest_first = integers(&s->arena, entries + 1);
    s->dest = integers(&s->arena, total);
    if (!s->dest_first || !s->dest)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    int32_t at = 0;
    for (int32_t e = 0; e < entries; e++) {
        s->dest_first[e] = at;
        for (int32_t q = e + 1; q < s->column_first[s->entry_column[e] + 1]; q++)
            s->dest[at++] = s->entry_block[find_entry(s, s->entry_row[e], s->entry_row[q])];
    }
    for (int32_t t = 0; t < s->slot_count; t++) {
        int32_t a = s->place[s->bodies[t]];
        int32_t b = s->place[s->body_count + s->slot_constraint[t]];
        s->entry_slot[find_entry(s, a < b ? a : b, a < b ? b : a)] = t;
    }
    return RW_STATUS_OK;
}

// Level of a node: one more than the highest level that it gathers from.
static rw_status find_levels(rw_kkt* s, rw_arena* scratch) {
    int32_t* level = integers(scratch, s->node_count);
    s->level_node = integers(&s->arena, s->node_count);
    if (!level || !s->level_node)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    for (int32_t n = 0; n < s->node_count; n++) {
        for (int32_t i = s->row_first[n]; i < s->row_first[n + 1]; i++) {
            int32_t l = level[s->entry_column[s->row_entry[i]]] + 1;
            level[n] = l > level[n] ? l : level[n];
        }
        s->level_count = level[n] + 1 > s->level_count ? level[n] + 1 : s->level_count;
    }
    s->level_first = integers(&s->arena, s->level_count + 1);
    int32_t* cursor = integers(scratch, s->level_count);
    if (!s->level_first || !cursor)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    for (int32_t n = 0; n < s->node_count; n++)
        s->level_first[level[n] + 1]++;
    for (int32_t l = 0; l < s->level_count; l++) {
        s->level_first[l + 1] += s->level_first[l];
        cursor[l] = s->level_first[l];
    }
    for (int32_t n = 0; n < s->node_count; n++)
        s->level_node[cursor[level[n]]++] = n;
    return RW_STATUS_OK;
}

static rw_status build(rw_kkt* s, const rw_kkt_graph* graph, rw_arena* scratch) {
    rw_kkt_order order;
    RW_TRY(copy_graph(s, graph));
    RW_TRY(rw_kkt_order_find(graph, scratch, &order));
    RW_TRY(number_nodes(s, graph, order.nodes));
    s->in_loop = rw_arena_array(&s->arena, (size_t)s->constraint_count + 1, sizeof *s->in_loop);
    if (!s->in_loop)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    memcpy(s->in_loop, order.in_loop, (size_t)s->constraint_count * sizeof *s->in_loop);
    RW_TRY(find_columns(s, scratch));
    RW_TRY(find_destinations(s));
    RW_TRY(find_levels(s, scratch));
    int64_t n = s->node_count;
    s->diagonal = doubles(&s->arena, 36 * n);
    s->pivot = doubles(&s->arena, 6 * n);
    s->inverse = doubles(&s->arena, 6 * n);
    s->z = doubles(&s->arena, 6 * n);
    s->blocks = doubles(&s->arena, s->entry_block[s->column_first[n]]);
    s->residual_body = doubles(&s->arena, 6 * (int64_t)s->body_count);
    s->residual_row = doubles(&s->arena, s->row_count);
    s->work_body = doubles(&s->arena, 6 * (int64_t)s->body_count);
    s->work_row = doubles(&s->arena, s->row_count);
    s->guarded = rw_arena_array(&s->arena, (size_t)n + 1, 1);
    s->redundant = rw_arena_array(&s->arena, (size_t)n + 1, 1);
    return s->diagonal && s->pivot && s->inverse && s->z && s->blocks && s->residual_body &&
                   s->residual_row && s->work_body && s->work_row && s->guarded && s->redundant
               ? RW_STATUS_OK
               : RW_STATUS_RESOURCE_EXHAUSTED;
}

rw_status rw_kkt_create(rw_alloc* alloc, const rw_kkt_graph* graph, rw_kkt** kkt) {
    *kkt = NULL;
    rw_kkt* s = rw_alloc_get(alloc, sizeof *s);
    if (!s)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    s->alloc = alloc;
    rw_arena_init(&s->arena, alloc);
    rw_arena scratch;
    rw_arena_init(&scratch, alloc);
    rw_status status = build(s, graph, &scratch);
    rw_arena_finish(&scratch);
    if (status != RW_STATUS_OK) {
        rw_kkt_destroy(s);
        return status;
    }
    *kkt = s;
    return RW_STATUS_OK;
}

void rw_kkt_destroy(rw_kkt* s) {
    if (!s)
        return;
    rw_arena_finish(&s->arena);
    rw_alloc_free(s->alloc, s);
}

double* rw_kkt_mass(rw_kkt* s, int32_t body) { return s->mass + 36 * (size_t)body; }
double* rw_kkt_jacobian(rw_kkt* s, int32_t slot) { return s->jacobian + s->slot_first[slot]; }
double* rw_kkt_epsilon(rw_kkt* s, int32_t k) { return s->epsilon + s->row_start[k]; }
int32_t rw_kkt_row_count(const rw_kkt* s) { return s->row_count; }
int32_t rw_kkt_row_first(const rw_kkt* s, int32_t k) { return s->row_start[k]; }
bool rw_kkt_in_loop(const rw_kkt* s, int32_t k) { return s->in_loop[k]; }
int64_t rw_kkt_block_count(const rw_kkt* s) { return s->column_first[s->node_count]; }

// ---- Numeric phase -------------------------------------------------------------------------------

// Puts the given matrix into column n, zeros where there is fill only.
static void load_column(rw_kkt* s, int32_t n) {
    int32_t b = s->body_of[n], k = s->constraint_of[n];
    double *a = s->diagonal + 36 * (size_t)n, *pivot = s->pivot + 6 * (size_t)n;
    int d = s->dim[n];
    if (b >= 0) {
        copy_block(a, s->mass + 36 * (size_t)b);
        for (int i = 0; i < 6; i++)
            pivot[i] = a[7 * i];
    } else {
        const int lead = PADDED(d);
        memset(a, 0, sizeof(double) * (size_t)(lead * d));
        for (int i = 0; i < d; i++) {
            a[i * lead + i] = -s->epsilon[s->row_start[k] + i];
            pivot[i] = 0.0; // nothing but updates: any negative pivot will do
        }
    }
    for (int32_t e = s->column_first[n]; e < s->column_first[n + 1]; e++) {
        double* block = s->blocks + s->entry_block[e];
        int m = s->dim[s->entry_row[e]];
        if (s->entry_slot[e] < 0) {
            memset(block, 0, sizeof(double) * (size_t)(PADDED(m) * d));
            continue;
        }
        const double* rows = s->jacobian + s->slot_first[s->entry_slot[e]];
        if (b < 0) {
            memcpy(block, rows, sizeof(double) * (size_t)(6 * d));
            continue;
        }
        DISPATCH_SQUARE(load_transposed, m, block, rows)
    }
}

static void factor_node(rw_kkt* s, int32_t n) {
    load_column(s, n);
    double* a = s->diagonal + 36 * (size_t)n;
    double *pivot = s->pivot + 6 * (size_t)n, *inverse = s->inverse + 6 * (size_t)n;
    int d = s->dim[n];
    for (int32_t i = s->row_first[n]; i < s->row_first[n + 1]; i++) {
        int32_t e = s->row_entry[i], c = s->entry_column[e];
        const double *l = s->blocks + s->entry_block[e], *p = s->pivot + 6 * (size_t)c;
        int dc = s->dim[c];
        DISPATCH(gather_diagonal, d, dc, a, l, p)
        int32_t end = s->column_first[c + 1];
        if (e + 1 == end)
            continue;
        pair scaled[18];
        double* t = (double*)scaled;
        scale_columns(d, dc, t, l, p);
        const int32_t* dest = s->dest + s->dest_first[e];
        for (int32_t q = e + 1; q < end; q++, dest++)
            subtract_product(s->dim[s->entry_row[q]], d, dc, s->blocks + *dest,
                             s->blocks + s->entry_block[q], t);
    }
    s->guarded[n] = s->redundant[n] = 0;
    int32_t k = s->constraint_of[n];
    double sign = k < 0 ? 1.0 : -1.0;
    DISPATCH_SQUARE(factor_diagonal, d, a, pivot, inverse, sign, &s->guarded[n])
    if (k >= 0 && s->regularisation)
        for (int i = 0; i < d; i++) {
            double r = s->regularisation[s->row_start[k] + i];
            s->redundant[n] =
                (int8_t)(s->redundant[n] + (r > 0.0 && -pivot[i] < REDUNDANT_FACTOR * r));
        }
    for (int32_t e = s->column_first[n]; e < s->column_first[n + 1]; e++) {
        int m = s->dim[s->entry_row[e]];
        double* block = s->blocks + s->entry_block[e];
        DISPATCH(solve_block, m, d, block, a, inverse)
    }
}

static void forward_node(rw_kkt* s, int32_t n) {
    double* z = s->z + 6 * (size_t)n;
    int d = s->dim[n];
    if (s->body_of[n] >= 0)
        memcpy(z, s->work_body + 6 * (size_t)s->body_of[n], 6 * sizeof *z);
    else
        memcpy(z, s->work_row + s->row_start[s->constraint_of[n]], (size_t)d * sizeof *z);
    for (int32_t i = s->row_first[n]; i < s->row_first[n + 1]; i++) {
        int32_t e = s->row_entry[i], c = s->entry_column[e];
        const double *l = s->blocks + s->entry_block[e], *y = s->z + 6 * (size_t)c;
        DISPATCH(subtract_apply, d, s->dim[c], z, l, y)
    }
    const double* l = s->diagonal + 36 * (size_t)n;
    DISPATCH_SQUARE(solve_lower, d, z, l)
}

static void backward_node(rw_kkt* s, int32_t n) {
    double* z = s->z + 6 * (size_t)n;
    int d = s->dim[n];
    const double* inverse = s->inverse + 6 * (size_t)n;
    for (int i = 0; i < d; i++)
        z[i] *= inverse[i];
    for (int32_t e = s->column_first[n]; e < s->column_first[n + 1]; e++) {
        int32_t r = s->entry_row[e];
        const double *l = s->blocks + s->entry_block[e], *x = s->z + 6 * (size_t)r;
        DISPATCH(subtract_apply_transpose, s->dim[r], d, z, l, x)
    }
    const double* l = s->diagonal + 36 * (size_t)n;
    DISPATCH_SQUARE(solve_upper, d, z, l)
    if (s->body_of[n] >= 0)
        memcpy(s->work_body + 6 * (size_t)s->body_of[n], z, 6 * sizeof *z);
    else
        memcpy(s->work_row + s->row_start[s->constraint_of[n]], z, (size_t)d * sizeof *z);
}

typedef struct level_job {
    rw_kkt* s;
    void (*visit)(rw_kkt*, int32_t);
    int32_t from, to;
} level_job;

static void visit_block(void* context, int32_t block) {
    const level_job* job = context;
    int32_t from = job->from + block * PARALLEL_BLOCK, to = from + PARALLEL_BLOCK;
    for (int32_t i = from; i < (to < job->to ? to : job->to); i++)
        job->visit(job->s, job->s->level_node[i]);
}

// Visits all nodes so that every node comes after those it gathers from.
static void visit_all(rw_kkt* s, void (*visit)(rw_kkt*, int32_t), bool backward,
                      rw_parallel* parallel) {
    bool wide = parallel && s->node_count >= PARALLEL_NODES &&
                s->node_count / (s->level_count ? s->level_count : 1) >= PARALLEL_WIDTH;
    if (!wide) {
        for (int32_t i = 0; i < s->node_count; i++)
            visit(s, backward ? s->node_count - 1 - i : i);
        return;
    }
    for (int32_t i = 0; i < s->level_count; i++) {
        int32_t l = backward ? s->level_count - 1 - i : i;
        level_job job = {s, visit, s->level_first[l], s->level_first[l + 1]};
        int32_t blocks = (job.to - job.from + PARALLEL_BLOCK - 1) / PARALLEL_BLOCK;
        rw_parallel_for(blocks > 1 ? parallel : NULL, blocks, visit_block, &job);
    }
}

rw_kkt_pivots rw_kkt_factor(rw_kkt* s, const double* regularisation, rw_parallel* parallel) {
    s->regularisation = regularisation;
    visit_all(s, factor_node, false, parallel);
    rw_kkt_pivots pivots = {0};
    for (int32_t n = 0; n < s->node_count; n++) {
        pivots.guarded += s->guarded[n];
        pivots.redundant += s->redundant[n];
    }
    return pivots;
}

static void solve_in_work(rw_kkt* s, double* body, double* row, rw_parallel* parallel) {
    double *keep_body = s->work_body, *keep_row = s->work_row;
    s->work_body = body;
    s->work_row = row;
    visit_all(s, forward_node, false, parallel);
    visit_all(s, backward_node, true, parallel);
    s->work_body = keep_body;
    s->work_row = keep_row;
}

void rw_kkt_solve(rw_kkt* s, double* body, double* row, rw_parallel* parallel) {
    solve_in_work(s, body, row, parallel);
}

// residual = given - matrix (body, row), the matrix with epsilon - regularisation.
static void find_residual(rw_kkt* s, const double* given_body, const double* given_row,
                          const double* body, const double* row, const double* regularisation) {
    for (int32_t b = 0; b < s->body_count; b++) {
        _Alignas(16) double r[6];
        const double *m = s->mass + 36 * (size_t)b, *x = body + 6 * (size_t)b;
        memcpy(r, given_body + 6 * (size_t)b, sizeof r);
        subtract_apply(6, 6, r, m, x); // symmetric: columns are rows
        for (int32_t t = s->touch_first[b]; t < s->touch_first[b + 1]; t++) {
            int32_t slot = s->touch[t], k = s->slot_constraint[slot];
            const double* j = s->jacobian + s->slot_first[slot];
            int m_rows = s->row_start[k + 1] - s->row_start[k];
            subtract_apply(6, m_rows, r, j, row + s->row_start[k]);
        }
        memcpy(s->residual_body + 6 * (size_t)b, r, sizeof r);
    }
    for (int32_t k = 0; k < s->constraint_count; k++) {
        int32_t start = s->row_start[k], count = s->row_start[k + 1] - start;
        double r[6];
        for (int32_t i = 0; i < count; i++)
            r[i] = given_row[start + i] +
                   (s->epsilon[start + i] - regularisation[start + i]) * row[start + i];
        for (int32_t t = s->first[k]; t < s->first[k + 1]; t++)
            subtract_apply_transpose(6, count, r, s->jacobian + s->slot_first[t],
                                     body + 6 * (size_t)s->bodies[t]);
        memcpy(s->residual_row + start, r, (size_t)count * sizeof *r);
    }
}

void rw_kkt_solve_refined(rw_kkt* s, double* body, double* row, const double* regularisation,
                          int rounds, rw_parallel* parallel) {
    if (!regularisation || rounds <= 0) {
        solve_in_work(s, body, row, parallel);
        return;
    }
    size_t body_bytes = 6 * (size_t)s->body_count * sizeof *body;
    size_t row_bytes = (size_t)s->row_count * sizeof *row;
    memcpy(s->work_body, body, body_bytes);
    memcpy(s->work_row, row, row_bytes);
    solve_in_work(s, body, row, parallel);
    for (int round = 0; round < rounds; round++) {
        find_residual(s, s->work_body, s->work_row, body, row, regularisation);
        solve_in_work(s, s->residual_body, s->residual_row, parallel);
        for (int32_t i = 0; i < 6 * s->body_count; i++)
            body[i] += s->residual_body[i];
        for (int32_t i = 0; i < s->row_count; i++)
            row[i] += s->residual_row[i];
    }
}
