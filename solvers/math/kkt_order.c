#include "solvers/math/kkt_order.h"

#include "solvers/base/check.h"

// Vertices of the forest: bodies 0 .. n - 1, the world n, and a root n + 1 above the world and above
// the first body of every floating mechanism.
typedef struct forest {
    const rw_kkt_graph* graph;
    int32_t world, root;
    int32_t* parent;       // vertex; -1: not reached yet
    int32_t* parent_joint; // constraint that leads to the parent; -1
    int32_t* depth;
    int32_t *first_child, *last_child, *next_sibling;
    int32_t *first_pending, *last_pending; // constraints whose cycle closes at this vertex
    int32_t* next_pending;                 // per constraint
    bool* is_edge;                         // per constraint
    // constraints per body
    int32_t *touch_first, *touch;
} forest;

static int32_t* integers(rw_arena* arena, int32_t count, int32_t value) {
    int32_t* p = rw_arena_array(arena, (size_t)count + 1, sizeof *p);
    if (p)
        for (int32_t i = 0; i <= count; i++)
            p[i] = value;
    return p;
}

static rw_status make_forest(forest* f, const rw_kkt_graph* g, rw_arena* arena) {
    int32_t n = g->body_count, m = g->constraint_count, vertices = n + 2;
    *f = (forest){.graph = g, .world = n, .root = n + 1};
    f->parent = integers(arena, vertices, -1);
    f->parent_joint = integers(arena, vertices, -1);
    f->depth = integers(arena, vertices, 0);
    f->first_child = integers(arena, vertices, -1);
    f->last_child = integers(arena, vertices, -1);
    f->next_sibling = integers(arena, vertices, -1);
    f->first_pending = integers(arena, vertices, -1);
    f->last_pending = integers(arena, vertices, -1);
    f->next_pending = integers(arena, m, -1);
    f->is_edge = rw_arena_array(arena, (size_t)m + 1, sizeof *f->is_edge);
    f->touch_first = integers(arena, n + 1, 0);
    f->touch = integers(arena, g->first[m], 0);
    if (!f->parent || !f->parent_joint || !f->depth || !f->first_child || !f->last_child ||
        !f->next_sibling || !f->first_pending || !f->last_pending || !f->next_pending ||
        !f->is_edge || !f->touch_first || !f->touch)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    for (int32_t s = 0; s < g->first[m]; s++)
        f->touch_first[g->bodies[s] + 1]++;
    for (int32_t b = 0; b < n; b++)
        f->touch_first[b + 1] += f->touch_first[b];
    for (int32_t k = m - 1; k >= 0; k--) // fills each body's list from its end: ascending
        for (int32_t s = g->first[k]; s < g->first[k + 1]; s++)
            f->touch[--f->touch_first[g->bodies[s] + 1]] = k;
    for (int32_t b = 0; b < n; b++) // the loop above moved each start one place
        f->touch_first[b] = f->touch_first[b + 1];
    f->touch_first[n] = g->first[m];
    return RW_STATUS_OK;
}

static void add_child(forest* f, int32_t parent, int32_t child, int32_t joint) {
    f->parent[child] = parent;
    f->parent_joint[child] = joint;
    f->depth[child] = f->depth[parent] + 1;
    if (f->last_child[parent] < 0)
        f->first_child[parent] = child;
    else
        f->next_sibling[f->last_child[parent]] = child;
    f->last_child[parent] = child;
    if (joint >= 0)
        f->is_edge[joint] = true;
}

// Breadth first from the vertices already in queue[0 .. tail): shallow trees.
static void grow(forest* f, int32_t* queue, int32_t head, int32_t* tail) {
    const rw_kkt_graph* g = f->graph;
    while (head < *tail) {
        int32_t v = queue[head++];
        for (int32_t t = f->touch_first[v]; t < f->touch_first[v + 1]; t++) {
            int32_t k = f->touch[t];
            if (!g->is_joint[k] || g->first[k + 1] - g->first[k] != 2)
                continue;
            int32_t a = g->bodies[g->first[k]], b = g->bodies[g->first[k] + 1];
            int32_t other = a == v ? b : a;
            if (f->parent[other] < 0) {
                add_child(f, v, other, k);
                queue[(*tail)++] = other;
            }
        }
    }
}

static void grow_forest(forest* f, int32_t* queue) {
    const rw_kkt_graph* g = f->graph;
    int32_t tail = 0;
    f->parent[f->root] = f->root;
    add_child(f, f->root, f->world, -1);
    for (int32_t k = 0; k < g->constraint_count; k++) {
        if (!g->is_joint[k] || !g->on_world[k] || g->first[k + 1] - g->first[k] != 1)
            continue;
        int32_t b = g->bodies[g->first[k]];
        if (f->parent[b] < 0) {
            add_child(f, f->world, b, k);
            queue[tail++] = b;
        }
    }
    grow(f, queue, 0, &tail);
    for (int32_t b = 0; b < g->body_count; b++) {
        if (f->parent[b] >= 0)
            continue;
        int32_t head = tail;
        add_child(f, f->root, b, -1);
        queue[tail++] = b;
        grow(f, queue, head, &tail);
    }
}

static int32_t common_ancestor(const forest* f, int32_t a, int32_t b) {
    while (a != b) {
        if (f->depth[a] >= f->depth[b])
            a = f->parent[a];
        else
            b = f->parent[b];
    }
    return a;
}

// Hangs every constraint that is no edge on the vertex where its cycle closes.
static void hang_loops(forest* f) {
    const rw_kkt_graph* g = f->graph;
    for (int32_t k = 0; k < g->constraint_count; k++) {
        if (f->is_edge[k])
            continue;
        int32_t v = g->on_world[k] ? f->world : -1;
        for (int32_t s = g->first[k]; s < g->first[k + 1]; s++)
            v = v < 0 ? g->bodies[s] : common_ancestor(f, v, g->bodies[s]);
        if (v < 0)
            v = f->root;
        if (f->last_pending[v] < 0)
            f->first_pending[v] = k;
        else
            f->next_pending[f->last_pending[v]] = k;
        f->last_pending[v] = k;
    }
}

// Post-order: the subtrees, the loops that close here, the body, the joint that holds it.
static void emit(const forest* f, int32_t* nodes) {
    int32_t n = f->graph->body_count, count = 0, v = f->root;
    while (f->first_child[v] >= 0)
        v = f->first_child[v];
    for (;;) {
        for (int32_t k = f->first_pending[v]; k >= 0; k = f->next_pending[k])
            nodes[count++] = n + k;
        if (v < n)
            nodes[count++] = v;
        if (f->parent_joint[v] >= 0)
            nodes[count++] = n + f->parent_joint[v];
        if (v == f->root)
            break;
        if (f->next_sibling[v] < 0) {
            v = f->parent[v];
            continue;
        }
        v = f->next_sibling[v];
        while (f->first_child[v] >= 0)
            v = f->first_child[v];
    }
    RW_ASSERT(count == n + f->graph->constraint_count);
}

// The representative of a component (union by path halving; smaller index wins).
static int32_t find(int32_t* link, int32_t a) {
    while (link[a] != a) {
        link[a] = link[link[a]];
        a = link[a];
    }
    return a;
}

// Components of bodies, not joined through the world; those with a constraint that is no edge.
static rw_status mark_loops(const forest* f, rw_arena* arena, rw_kkt_order* order) {
    const rw_kkt_graph* g = f->graph;
    int32_t* link = integers(arena, g->body_count, 0);
    bool* cyclic = rw_arena_array(arena, (size_t)g->body_count + 1, sizeof *cyclic);
    if (!link || !cyclic)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    for (int32_t b = 0; b < g->body_count; b++)
        link[b] = b;
    for (int32_t k = 0; k < g->constraint_count; k++)
        for (int32_t s = g->first[k] + 1; s < g->first[k + 1]; s++) {
            int32_t a = find(link, g->bodies[g->first[k]]), b = find(link, g->bodies[s]);
            link[a > b ? a : b] = a > b ? b : a;
        }
    for (int32_t k = 0; k < g->constraint_count; k++)
        if (!f->is_edge[k]) {
            order->loop_count++;
            if (g->first[k] < g->first[k + 1])
                cyclic[find(link, g->bodies[g->first[k]])] = true;
        }
    for (int32_t k = 0; k < g->constraint_count; k++)
        order->in_loop[k] =
            g->first[k] == g->first[k + 1] || cyclic[find(link, g->bodies[g->first[k]])];
    return RW_STATUS_OK;
}

rw_status rw_kkt_order_find(const rw_kkt_graph* graph, rw_arena* arena, rw_kkt_order* order) {
    forest f;
    RW_TRY(make_forest(&f, graph, arena));
    *order = (rw_kkt_order){0};
    order->nodes = integers(arena, graph->body_count + graph->constraint_count, 0);
    order->in_loop =
        rw_arena_array(arena, (size_t)graph->constraint_count + 1, sizeof *order->in_loop);
    int32_t* queue = integers(arena, graph->body_count, 0);
    if (!order->nodes || !order->in_loop || !queue)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    grow_forest(&f, queue);
    hang_loops(&f);
    emit(&f, order->nodes);
    return mark_loops(&f, arena, order);
}
