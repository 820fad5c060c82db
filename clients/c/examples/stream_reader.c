// Watches a session: subscribes to its state frames and prints one line per frame. Without a
// session's name it makes one of its own, a cable that swings, and watches that.
//
//   stream_reader [HOST:PORT | unix:PATH] [session or "-"] [frames]
//
// Exit code 0 when that many frames came, 1 on an error, 2 on wrong usage.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/c/ropewalk.h"

// A cable pinned to the world at one end, level at the start.
static rw_status load_cable(rw_remote* session, rw_error* error) {
    static const double radius[] = {0.02};
    rw_pb_Rod cable = {.name = "cable",
                       .which_geometry = rw_pb_Rod_straight_tag,
                       .geometry.straight = {.start_count = 3, .start = {0, 0, 1},
                                             .end_count = 3, .end = {1, 0, 1}},
                       .elements = 20,
                       .has_section = true,
                       .section.radius = rw_wire_from_f64(radius, 1),
                       .density = 1200,
                       .young_modulus = 5e6};
    rw_pb_Attachment grip = {.name = "grip", .rod = "cable", .which_place = rw_pb_Attachment_s_tag,
                             .kind = rw_pb_Attachment_Kind_CLAMP};
    rw_pb_Scene scene = {.name = "swinging cable",
                         .has_solver = true,
                         .solver = {.has_rods = true, .rods = rw_pb_RodSolver_Method_SCR},
                         .rods = RW_WIRE_FROM_ITEMS(&cable, 1),
                         .attachments = RW_WIRE_FROM_ITEMS(&grip, 1)};
    return rw_remote_load_scene(session, &scene, error);
}

static rw_status open_session(rw_link* link, const char* name, rw_remote* session,
                              rw_error* error) {
    if (name != NULL) {
        return rw_remote_attach(link, name, false, session, error);
    }
    RW_TRY(rw_remote_create(link, NULL, session, error));
    return load_cable(session, error);
}

static rw_status watch_frames(rw_link* link, rw_remote* session, rw_watch* watch, bool is_own,
                              int count, rw_error* error) {
    uint64_t subscription;
    RW_TRY(rw_remote_subscribe(session, &(rw_remote_stream){.is_quantized = true}, watch,
                               &subscription, error));
    if (is_own) {
        RW_TRY(rw_remote_run(session, 1, error));
    }
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        rw_watch_frame frame;
        RW_TRY(rw_watch_next(watch, 10, &frame, error));
        bytes += frame.payload_bytes;
        printf("%8.4f s  step %-7llu %s  %5zu bytes", frame.time, (unsigned long long)frame.step,
               frame.is_key ? "key  " : "delta", frame.payload_bytes);
        for (uint32_t e = 0; e < frame.entry_count && e < 3 && frame.positions != NULL; e++) {
            // The last element of each of the first objects: a body, or a rod's end.
            const rw_watch_entry* entry = &frame.entries[e];
            const double* at = frame.positions + 3 * (size_t)(entry->first + entry->count - 1);
            printf("  %s (%.4f %.4f %.4f)", entry->name, at[0], at[1], at[2]);
        }
        printf("\n");
    }
    printf("%d frames, %zu bytes, %llu dropped\n", count, bytes,
           (unsigned long long)rw_link_dropped(link));
    return rw_remote_unsubscribe(session, subscription, error);
}

int main(int argc, char** argv) {
    int count = argc > 3 ? atoi(argv[3]) : 60;
    if (argc > 4 || count < 1) {
        fprintf(stderr, "usage: stream_reader [HOST:PORT | unix:PATH] [session or \"-\"] [frames]\n");
        return 2;
    }
    const char* name = argc > 2 && strcmp(argv[2], "-") != 0 ? argv[2] : NULL;
    rw_error error = {0};
    rw_link* link = NULL;
    rw_watch* watch = NULL;
    rw_remote session;
    rw_link_config config = {.address = argc > 1 ? argv[1] : NULL, .client_name = "stream_reader"};
    rw_status status = rw_link_connect(&config, &link, &error);
    if (status == RW_STATUS_OK) {
        status = open_session(link, name, &session, &error);
    }
    if (status == RW_STATUS_OK) {
        status = rw_watch_create(link, &watch, &error);
    }
    if (status == RW_STATUS_OK) {
        status = watch_frames(link, &session, watch, name == NULL, count, &error);
    }
    if (status != RW_STATUS_OK) {
        fprintf(stderr, "%s: %s%s%s\n", rw_status_name(status), error.path,
                error.path[0] != '\0' ? ": " : "", error.text);
    }
    rw_watch_destroy(watch);
    rw_link_close(link);
    return status == RW_STATUS_OK ? 0 : 1;
}
