// Ten thousand lives of sessions (100 bodies, 10 rods, 10 steps each): the daemon's resident memory
// after a tenth of them beside that at the end. ROPEWALK_SOAK_CYCLES sets another number.
#include "tests/support/rw_cycles.h"

int main(void) {
    const char* asked = getenv("ROPEWALK_SOAK_CYCLES");
    int cycles = asked != NULL ? atoi(asked) : 10000;
    rw_daemon daemon;
    rw_daemon_client client;
    rw_daemon_start(&daemon, NULL);
    rw_daemon_greet(&daemon, &client);
    uint64_t hash = rw_cycles_run(&client);
    double begin = rw_daemon_now_s();
    size_t early = 0;
    for (int i = 1; i < cycles; i++) {
        if (rw_cycles_run(&client) != hash) {
            fprintf(stderr, "cycle %d ended in another state\n", i);
            return 1;
        }
        if (i == cycles / 10) {
            early = rw_daemon_resident_bytes(&daemon);
        }
    }
    size_t late = rw_daemon_resident_bytes(&daemon);
    double took = rw_daemon_now_s() - begin;
    printf("{\"name\": \"soak/resident\", \"value\": %.6g, \"unit\": \"MB\", \"baseline\": %.6g, "
           "\"ratio\": %.5g}\n",
           (double)late / 1e6, (double)early / 1e6, (double)late / (double)early);
    printf("{\"name\": \"soak/cycles\", \"value\": %.4g, \"unit\": \"1/s\", \"baseline\": null, "
           "\"ratio\": null}\n",
           cycles / took);
    rw_daemon_disconnect(&client);
    return rw_daemon_stop(&daemon, 10) == 0 ? 0 : 1;
}
