// A mailbox: many threads put items in, one takes them out in order. Any thread may push; only the
// owner pops (the thread that runs the session; the loop thread for its inbox). Nothing blocks and
// nothing is allocated: items are links inside what is sent.
//
//   push: newest -> ... -> oldest   (a stack, one compare-and-swap)
//   pop:  takes the whole stack when its own list is empty and turns it round
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct rw_mailbox_item {
    struct rw_mailbox_item* next;
} rw_mailbox_item;

typedef struct rw_mailbox {
    _Atomic(rw_mailbox_item*) newest; // pushed and not yet taken
    rw_mailbox_item* oldest;          // taken and not yet popped; the owner's alone
} rw_mailbox;

void rw_mailbox_init(rw_mailbox* mailbox);

// Puts an item in. True when the mailbox was empty of new items, so that one knock is enough.
bool rw_mailbox_push(rw_mailbox* mailbox, rw_mailbox_item* item);

// Takes the oldest item out; NULL when there is none.
rw_mailbox_item* rw_mailbox_pop(rw_mailbox* mailbox);

// True when pop would give NULL, as of now.
bool rw_mailbox_is_empty(rw_mailbox* mailbox);
