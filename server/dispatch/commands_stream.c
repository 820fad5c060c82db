// Subscriptions: the session's half makes the group, the loop thread's half adds the reader.
#include "proto/message.h"
#include "server/dispatch/commands.h"
#include "server/session/host.h"
#include "server/stream/subscribers.h"

rw_status rw_commands_stream_subscribe(rw_command* command) {
    rw_pb_SubscribeResult* result = &command->response->result.subscribe;
    command->response->which_result = rw_pb_Response_subscribe_tag;
    rw_subscriber* subscriber = rw_subscribers_make(command->session);
    if (subscriber == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    rw_status status = rw_publisher_subscribe(command->session->publisher,
                                              &command->request->command.subscribe,
                                              command->task->argument, result, command->error);
    if (status != RW_STATUS_OK) {
        rw_alloc_free(&command->host->alloc, subscriber);
        return status;
    }
    command->task->context = subscriber; // for the loop's half
    command->task->outcome = result->group;
    return RW_STATUS_OK;
}

void rw_commands_stream_finish_subscribe(rw_task* task) {
    rw_client* client = task->client;
    rw_host* host = client->host;
    rw_subscriber* subscriber = task->context;
    if (subscriber == NULL) {
        return;
    }
    task->context = NULL;
    if (task->status != RW_STATUS_OK) { // joined, but no memory for the answer
        rw_subscribers_give_up(subscriber, task->outcome);
        return;
    }
    rw_arena arena;
    rw_arena_init(&arena, &host->alloc);
    rw_pb_Request request;
    rw_error error = {0};
    uint64_t group = task->outcome;
    const rw_client_attachment* attachment = rw_client_find_attachment(client, task->session);
    rw_status status = rw_message_decode_request(task->bytes, task->size_bytes, &arena, &request,
                                                 &error);
    if (status == RW_STATUS_OK && attachment == NULL) {
        status = rw_status_fail(&error, RW_STATUS_NOT_FOUND, "session", "detached meanwhile");
    }
    if (status == RW_STATUS_OK && request.command.subscribe.back_pressure &&
        !attachment->is_control) {
        status = rw_status_fail(&error, RW_STATUS_PERMISSION_DENIED, "back_pressure",
                                "needs CONTROL");
    }
    if (status == RW_STATUS_OK) {
        status = rw_subscribers_add(subscriber, client, group, task->argument,
                                    &request.command.subscribe);
        if (status != RW_STATUS_OK) {
            rw_status_fail(&error, status, "session", "closed meanwhile");
        }
    }
    if (status != RW_STATUS_OK) {
        rw_subscribers_give_up(subscriber, group);
        rw_dispatch_reply_error(host, task, &error);
    }
    rw_arena_finish(&arena);
}

rw_status rw_commands_stream_unsubscribe(rw_command* command) {
    rw_pb_UnsubscribeResult* result = &command->response->result.unsubscribe;
    command->response->which_result = rw_pb_Response_unsubscribe_tag;
    return rw_subscribers_remove(command->client,
                                          command->request->command.unsubscribe.subscription,
                                          &result->sent, &result->dropped, command->error);
}
