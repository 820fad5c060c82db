// A real daemon under test and a bare client for it: blocking, nothing hidden, able to misbehave.
// Failures of the helpers themselves abort the test with a message. Test code only; one thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/frame.h"
#include "proto/message.h"

typedef struct rw_daemon {
    pid_t pid;
    int port, http_port;
    char folder[64]; // for sockets and port files; removed by stop
    char log_path[96];
} rw_daemon;

// Starts ropewalkd on free loopback ports with further flags (NULL-terminated list, or NULL) and waits
// until it listens.
void rw_daemon_start(rw_daemon* daemon, const char* const* flags);

// SIGTERM, waits at most `limit_s`; the exit code, or -1 when it had to be killed or died by a signal.
int rw_daemon_stop(rw_daemon* daemon, double limit_s);

// Resident memory of the daemon, bytes; 0 under a sanitizer, which keeps freed memory for itself.
size_t rw_daemon_resident_bytes(const rw_daemon* daemon);

// ---- Client ----

typedef struct rw_daemon_client {
    int fd;
    uint64_t next_id;
    rw_alloc alloc;
    rw_arena arena; // of the last received message
    rw_buffer received;
    size_t at;
    rw_buffer out;
    uint64_t connection_id; // of Hello
    rw_buffer early[64];     // responses that came while another was waited for; size 0 = free
} rw_daemon_client;

// A frame that came. `payload` is valid until the next receive.
typedef struct rw_daemon_frame {
    rw_frame_kind kind;
    const uint8_t* payload;
    size_t size;
} rw_daemon_frame;

// Connects without a word.
void rw_daemon_connect(const rw_daemon* daemon, rw_daemon_client* client);
// Connects and says Hello.
void rw_daemon_greet(const rw_daemon* daemon, rw_daemon_client* client);
void rw_daemon_disconnect(rw_daemon_client* client);

// Sends raw bytes, all of them. False when the peer has closed.
bool rw_daemon_send_bytes(rw_daemon_client* client, const void* bytes, size_t size);

// Appends a request as a frame to `out`; gives it an id when it has none. Returns the id.
uint64_t rw_daemon_append(rw_daemon_client* client, rw_buffer* out, rw_pb_Request* request);

// Sends one request; returns its id.
uint64_t rw_daemon_send(rw_daemon_client* client, rw_pb_Request* request);

// The next frame; false when none came within `limit_s` or the peer closed (`*closed`).
bool rw_daemon_receive(rw_daemon_client* client, rw_daemon_frame* frame, double limit_s,
                       bool* closed);

// The response with this id; responses to others are kept for their turn, other frames are passed
// over. Aborts after a minute.
void rw_daemon_wait(rw_daemon_client* client, uint64_t id, rw_pb_Response* response);

// Send and wait.
rw_pb_Status_Code rw_daemon_call(rw_daemon_client* client, rw_pb_Request* request,
                                 rw_pb_Response* response);

// The next event of this kind (rw_pb_Event_..._tag); false after `limit_s`.
bool rw_daemon_wait_event(rw_daemon_client* client, pb_size_t kind, rw_pb_Event* event,
                          double limit_s);

// The next state frame; false after `limit_s`.
bool rw_daemon_wait_state(rw_daemon_client* client, rw_pb_StateFrame* frame, double limit_s);

// True when the peer closes within `limit_s`; what comes before is passed over.
bool rw_daemon_is_closed(rw_daemon_client* client, double limit_s);

// ---- Usual requests ----

uint64_t rw_daemon_create_session(rw_daemon_client* client, const char* name);

// Loads `count` tumbling free bodies "b0", "b1", ...; gravity and angular velocities of their own.
void rw_daemon_load_bodies(rw_daemon_client* client, uint64_t session, int count);

// Steps; aborts unless it answers OK.
void rw_daemon_step(rw_daemon_client* client, uint64_t session, uint32_t count);

uint64_t rw_daemon_hash(rw_daemon_client* client, uint64_t session);

uint64_t rw_daemon_observe(rw_daemon_client* client, uint64_t session, const char* glob,
                           uint32_t* width);

double rw_daemon_now_s(void);
