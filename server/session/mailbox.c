#include "server/session/mailbox.h"

void rw_mailbox_init(rw_mailbox* mailbox) {
    atomic_init(&mailbox->newest, NULL);
    mailbox->oldest = NULL;
}

bool rw_mailbox_push(rw_mailbox* mailbox, rw_mailbox_item* item) {
    rw_mailbox_item* newest = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do {
        item->next = newest;
        // Release: the owner that takes the item sees what was written into it.
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &newest, item,
                                                    memory_order_release, memory_order_relaxed));
    return newest == NULL;
}

rw_mailbox_item* rw_mailbox_pop(rw_mailbox* mailbox) {
    if (mailbox->oldest == NULL) {
        // Acquire pairs with the release of every push on the stack: each push continues the
        // release sequence of the ones before.
        rw_mailbox_item* item =
            atomic_exchange_explicit(&mailbox->newest, NULL, memory_order_acquire);
        while (item != NULL) {
            rw_mailbox_item* next = item->next;
            item->next = mailbox->oldest;
            mailbox->oldest = item;
            item = next;
        }
    }
    rw_mailbox_item* item = mailbox->oldest;
    if (item != NULL) {
        mailbox->oldest = item->next;
    }
    return item;
}

bool rw_mailbox_is_empty(rw_mailbox* mailbox) {
    // Relaxed: the answer is only a hint unless the caller is ordered by other means.
    return mailbox->oldest == NULL &&
           atomic_load_explicit(&mailbox->newest, memory_order_relaxed) == NULL;
}
