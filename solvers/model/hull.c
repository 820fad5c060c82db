#include "solvers/model/hull.h"

#include <math.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/vec3.h"

typedef struct face {
    int32_t vertex[3];   // counter-clockwise from outside
    int32_t neighbor[3]; // across the edge vertex[k] -> vertex[k + 1]
    rw_vec3 normal;      // unit
    double offset;       // normal . x of its plane
    int32_t outside;     // first of the points kept here; -1: none
    int32_t furthest;
    double furthest_distance;
    int32_t mark; // last point that looked at it
    bool alive;
} face;

typedef struct horizon_edge {
    int32_t from, to;
    int32_t neighbor; // the face behind, which stays
} horizon_edge;

typedef struct builder {
    rw_alloc* alloc;
    const double* points;
    int32_t count;
    double epsilon;
    face* faces;
    int32_t face_count, face_capacity;
    int32_t* next;          // of the lists of outside points (count)
    int32_t* edge_at;       // horizon edge that starts at a vertex (count); -1
    int32_t* visible;       // faces that the new point sees
    int32_t visible_capacity;
    horizon_edge* horizon;
    int32_t horizon_capacity;
    horizon_edge* loop;
    int32_t loop_capacity;
} builder;

static rw_vec3 point(const builder* b, int32_t i) { return rw_vec3_load(b->points + 3 * i); }

static double distance(const builder* b, const face* f, int32_t i) {
    return rw_vec3_dot(f->normal, point(b, i)) - f->offset;
}

static rw_status room(rw_alloc* alloc, void* slot, int32_t* capacity, int32_t needed,
                      size_t item_bytes) {
    if (needed <= *capacity) {
        return RW_STATUS_OK;
    }
    void* old;
    memcpy(&old, slot, sizeof old);
    int32_t grown = *capacity * 2 > needed ? *capacity * 2 : needed + 32;
    void* fresh = rw_alloc_resize(alloc, old, (size_t)grown * item_bytes);
    if (fresh == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    memcpy(slot, &fresh, sizeof fresh);
    *capacity = grown;
    return RW_STATUS_OK;
}

// Fills a face from its vertices; false when they lie on one line.
static bool set_plane(const builder* b, face* f, int32_t i, int32_t j, int32_t k) {
    rw_vec3 p = point(b, i);
    rw_vec3 n = rw_vec3_cross(rw_vec3_sub(point(b, j), p), rw_vec3_sub(point(b, k), p));
    double norm = rw_vec3_norm(n);
    *f = (face){.vertex = {i, j, k}, .outside = -1, .furthest = -1, .mark = -1, .alive = true};
    if (!(norm > 0)) {
        return false;
    }
    f->normal = rw_vec3_scale(n, 1 / norm);
    f->offset = rw_vec3_dot(f->normal, p);
    return true;
}

static void keep_outside(builder* b, face* f, int32_t i, double d) {
    b->next[i] = f->outside;
    f->outside = i;
    if (d > f->furthest_distance) {
        f->furthest_distance = d;
        f->furthest = i;
    }
}

// Gives a point to the first of the faces that sees it; points inside are forgotten.
static void give(builder* b, int32_t first_face, int32_t end_face, int32_t i) {
    for (int32_t f = first_face; f < end_face; f++) {
        double d = distance(b, &b->faces[f], i);
        if (d > b->epsilon) {
            keep_outside(b, &b->faces[f], i, d);
            return;
        }
    }
}

// Four points that span space: the two furthest apart along an axis, the one furthest from their
// line, the one furthest from their plane. False when there are none.
static bool find_simplex(const builder* b, int32_t simplex[4]) {
    simplex[0] = simplex[1] = 0;
    int32_t low[3] = {0}, high[3] = {0};
    for (int32_t i = 1; i < b->count; i++) {
        for (int a = 0; a < 3; a++) {
            low[a] = b->points[3 * i + a] < b->points[3 * low[a] + a] ? i : low[a];
            high[a] = b->points[3 * i + a] > b->points[3 * high[a] + a] ? i : high[a];
        }
    }
    double best = -1;
    for (int a = 0; a < 3; a++) {
        double extent = b->points[3 * high[a] + a] - b->points[3 * low[a] + a];
        if (extent > best) {
            best = extent;
            simplex[0] = low[a];
            simplex[1] = high[a];
        }
    }
    rw_vec3 origin = point(b, simplex[0]);
    rw_vec3 along = rw_vec3_normalize(rw_vec3_sub(point(b, simplex[1]), origin));
    best = b->epsilon;
    simplex[2] = -1;
    for (int32_t i = 0; i < b->count; i++) {
        double d = rw_vec3_norm(rw_vec3_cross(along, rw_vec3_sub(point(b, i), origin)));
        if (d > best) {
            best = d;
            simplex[2] = i;
        }
    }
    if (simplex[2] < 0) {
        return false;
    }
    face base;
    if (!set_plane(b, &base, simplex[0], simplex[1], simplex[2])) {
        return false;
    }
    best = b->epsilon;
    simplex[3] = -1;
    double side = 0;
    for (int32_t i = 0; i < b->count; i++) {
        double d = distance(b, &base, i);
        if (fabs(d) > best) {
            best = fabs(d);
            side = d;
            simplex[3] = i;
        }
    }
    if (simplex[3] < 0) {
        return false;
    }
    if (side > 0) { // the fourth point lies below the base
        int32_t swap = simplex[1];
        simplex[1] = simplex[2];
        simplex[2] = swap;
    }
    return true;
}

static rw_status begin(builder* b, rw_error* error) {
    int32_t s[4];
    if (!find_simplex(b, s)) {
        RW_FAIL(error, INVALID_ARGUMENT, "vertices", "must not all lie in one plane");
    }
    RW_TRY(room(b->alloc, &b->faces, &b->face_capacity, 4, sizeof *b->faces));
    const int32_t corners[4][3] = {
        {s[0], s[1], s[2]}, {s[0], s[3], s[1]}, {s[1], s[3], s[2]}, {s[2], s[3], s[0]}};
    static const int32_t neighbors[4][3] = {{1, 2, 3}, {3, 2, 0}, {1, 3, 0}, {2, 1, 0}};
    for (int f = 0; f < 4; f++) {
        if (!set_plane(b, &b->faces[f], corners[f][0], corners[f][1], corners[f][2])) {
            RW_FAIL(error, INVALID_ARGUMENT, "vertices", "must not all lie in one plane");
        }
        memcpy(b->faces[f].neighbor, neighbors[f], sizeof neighbors[f]);
    }
    b->face_count = 4;
    for (int32_t i = 0; i < b->count; i++) {
        give(b, 0, 4, i);
    }
    return RW_STATUS_OK;
}

// Gathers the faces that `p` sees, from one of them outwards, and the edges at their rim. A face
// whose plane holds p within rounding counts as seen: else a new face could be a line.
static rw_status look(builder* b, int32_t start, int32_t p, int32_t* visible_count,
                      int32_t* edge_count) {
    *visible_count = 0;
    *edge_count = 0;
    RW_TRY(room(b->alloc, &b->visible, &b->visible_capacity, 1, sizeof *b->visible));
    b->visible[(*visible_count)++] = start;
    b->faces[start].mark = p;
    for (int32_t i = 0; i < *visible_count; i++) {
        const face* f = &b->faces[b->visible[i]];
        for (int k = 0; k < 3; k++) {
            face* beyond = &b->faces[f->neighbor[k]];
            if (beyond->mark == p) {
                continue;
            }
            if (distance(b, beyond, p) > -b->epsilon) {
                beyond->mark = p;
                RW_TRY(room(b->alloc, &b->visible, &b->visible_capacity, *visible_count + 1,
                            sizeof *b->visible));
                b->visible[(*visible_count)++] = f->neighbor[k];
            }
        }
    }
    for (int32_t i = 0; i < *visible_count; i++) {
        const face* f = &b->faces[b->visible[i]];
        for (int k = 0; k < 3; k++) {
            if (b->faces[f->neighbor[k]].mark != p) {
                RW_TRY(room(b->alloc, &b->horizon, &b->horizon_capacity, *edge_count + 1,
                            sizeof *b->horizon));
                b->horizon[(*edge_count)++] =
                    (horizon_edge){f->vertex[k], f->vertex[(k + 1) % 3], f->neighbor[k]};
            }
        }
    }
    return RW_STATUS_OK;
}

// Orders the rim into one loop; false when it is not one simple loop (rounding), and then the point
// is left out.
static bool order_rim(builder* b, int32_t edge_count) {
    bool simple = edge_count >= 3;
    for (int32_t e = 0; e < edge_count; e++) {
        int32_t* at = &b->edge_at[b->horizon[e].from];
        simple = simple && *at < 0;
        *at = e;
    }
    int32_t e = 0;
    for (int32_t i = 0; simple && i < edge_count; i++) {
        b->loop[i] = b->horizon[e];
        e = b->edge_at[b->horizon[e].to];
        simple = e >= 0 && (e != 0 || i == edge_count - 1);
    }
    simple = simple && e == 0;
    for (int32_t i = 0; i < edge_count; i++) {
        b->edge_at[b->horizon[i].from] = -1;
    }
    return simple;
}

// Replaces what `p` sees by a fan from p over the rim.
static rw_status add_point(builder* b, int32_t start, int32_t p) {
    int32_t visible_count, n;
    RW_TRY(look(b, start, p, &visible_count, &n));
    RW_TRY(room(b->alloc, &b->loop, &b->loop_capacity, n, sizeof *b->loop));
    RW_TRY(room(b->alloc, &b->faces, &b->face_capacity, b->face_count + n, sizeof *b->faces));
    if (!order_rim(b, n)) {
        return RW_STATUS_OK;
    }
    int32_t first = b->face_count;
    for (int32_t i = 0; i < n; i++) {
        face* f = &b->faces[first + i];
        if (!set_plane(b, f, b->loop[i].from, b->loop[i].to, p)) {
            return RW_STATUS_OK;
        }
        f->neighbor[0] = b->loop[i].neighbor;
        f->neighbor[1] = first + (i + 1) % n;
        f->neighbor[2] = first + (i + n - 1) % n;
    }
    b->face_count += n;
    for (int32_t i = 0; i < n; i++) {
        face* behind = &b->faces[b->loop[i].neighbor];
        for (int k = 0; k < 3; k++) {
            if (behind->vertex[k] == b->loop[i].to && behind->vertex[(k + 1) % 3] == b->loop[i].from) {
                behind->neighbor[k] = first + i;
            }
        }
    }
    for (int32_t i = 0; i < visible_count; i++) {
        face* dead = &b->faces[b->visible[i]];
        dead->alive = false;
        for (int32_t q = dead->outside, following; q >= 0; q = following) {
            following = b->next[q];
            if (q != p) {
                give(b, first, b->face_count, q);
            }
        }
    }
    return RW_STATUS_OK;
}

// Takes a point off the list of a face that goes on living.
static void forget(builder* b, face* f, int32_t p) {
    int32_t list = f->outside;
    f->outside = -1;
    f->furthest = -1;
    f->furthest_distance = 0;
    for (int32_t q = list, following; q >= 0; q = following) {
        following = b->next[q];
        if (q != p) {
            keep_outside(b, f, q, distance(b, f, q));
        }
    }
}

static rw_status build(builder* b, rw_error* error) {
    b->next = rw_alloc_array(b->alloc, (size_t)b->count, sizeof *b->next);
    b->edge_at = rw_alloc_array(b->alloc, (size_t)b->count, sizeof *b->edge_at);
    if (b->next == NULL || b->edge_at == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    for (int32_t i = 0; i < b->count; i++) {
        b->edge_at[i] = -1;
    }
    RW_TRY(begin(b, error));
    for (int32_t f = 0; f < b->face_count; f++) {
        // Each round either replaces the face or takes a point off its list.
        while (b->faces[f].alive && b->faces[f].outside >= 0) {
            int32_t p = b->faces[f].furthest;
            RW_TRY(add_point(b, f, p));
            if (b->faces[f].alive) {
                forget(b, &b->faces[f], p);
            }
        }
    }
    return RW_STATUS_OK;
}

static rw_status take_triangles(const builder* b, rw_hull* hull) {
    int32_t count = 0;
    for (int32_t f = 0; f < b->face_count; f++) {
        count += b->faces[f].alive ? 1 : 0;
    }
    hull->triangles = rw_alloc_array(b->alloc, (size_t)count * 3, sizeof *hull->triangles);
    if (hull->triangles == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    for (int32_t f = 0; f < b->face_count; f++) {
        if (b->faces[f].alive) {
            for (int k = 0; k < 3; k++) {
                hull->triangles[3 * hull->triangle_count + k] = (uint32_t)b->faces[f].vertex[k];
            }
            hull->triangle_count++;
        }
    }
    return RW_STATUS_OK;
}

rw_status rw_hull_build(rw_hull* hull, rw_alloc* alloc, const double* points, int32_t count,
                        rw_error* error) {
    *hull = (rw_hull){.alloc = alloc};
    if (count < 4) {
        RW_FAIL(error, INVALID_ARGUMENT, "vertices", "must hold at least 4 rows of 3, got %d", count);
    }
    double low[3], high[3], extent = 0;
    for (int a = 0; a < 3; a++) {
        low[a] = high[a] = points[a];
        for (int32_t i = 1; i < count; i++) {
            low[a] = fmin(low[a], points[3 * i + a]);
            high[a] = fmax(high[a], points[3 * i + a]);
        }
        extent = fmax(extent, high[a] - low[a]);
    }
    builder b = {.alloc = alloc, .points = points, .count = count, .epsilon = 1e-10 * extent};
    rw_status status = build(&b, error);
    if (status == RW_STATUS_OK) {
        status = take_triangles(&b, hull);
    }
    rw_alloc_free(alloc, b.faces);
    rw_alloc_free(alloc, b.next);
    rw_alloc_free(alloc, b.edge_at);
    rw_alloc_free(alloc, b.visible);
    rw_alloc_free(alloc, b.horizon);
    rw_alloc_free(alloc, b.loop);
    if (status == RW_STATUS_RESOURCE_EXHAUSTED) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "vertices", "no memory for the hull of %d points", count);
    }
    return status;
}

void rw_hull_finish(rw_hull* hull) {
    rw_alloc_free(hull->alloc, hull->triangles);
    hull->triangles = NULL;
    hull->triangle_count = 0;
}
