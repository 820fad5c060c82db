// Ropewalk's client library for C. A program includes this header and links the library; everything
// blocks, nothing starts a thread, and a link belongs to one thread at a time.
//
//   rw_error error;
//   rw_link* link;
//   rw_remote session;
//   rw_link_connect(&(rw_link_config){.address = "127.0.0.1:7171"}, &link, &error);
//   rw_remote_create(link, "demo", &session, &error);
//   rw_remote_load(&session, scene_bytes, scene_size, &error);   // protobuf bytes of a Scene
//
//   // the control loop: one round trip per step, doubles in, doubles out
//   const char* targets[] = {"joint/shoulder"};
//   const char* signals[] = {"joint/shoulder/coordinate", "joint/shoulder/rate"};
//   uint64_t actuate, observe;
//   uint32_t input_width, output_width;
//   rw_remote_actuate(&session, targets, 1, &actuate, &input_width, &error);
//   rw_remote_observe(&session, signals, 2, &observe, &output_width, &error);
//   for (;;) {
//       double target[1] = {...}, state[2];
//       rw_remote_advance(&session, actuate, target, 1, 1, observe, state, 2, &error);
//   }
//
// Every call answers an rw_status; when it is not RW_STATUS_OK, `error` holds the status, the path
// of the offending field and a text, from the server or from this library. Layers:
//
//   link.h     the connection: Hello, any request of the schema, pipelining, uploads, downloads
//   remote.h   one session: the common commands with plain C arguments
//   watch.h    state frames, decoded to arrays of doubles
//   proto/ropewalk/v1/*.proto   the messages themselves, documented field by field
//
// examples/control_loop.c closes a 1 kHz loop, examples/stream_reader.c watches a session.
#pragma once

#include "clients/c/link.h"
#include "clients/c/remote.h"
#include "clients/c/watch.h"
