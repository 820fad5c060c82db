// Stands in for libFuzzer in builds without it: feeds every file of the folders and files named on
// the command line to LLVMFuzzerTestOneInput, so that each normal test run replays the corpus.
// The empty input is always tried. Exit code 1 when a path cannot be read; a fault crashes.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static long input_count;

static int compare_names(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

static int replay_file(const char* path) {
    FILE* file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    // Exactly as large as the input: a read past its end is then seen by ASan and valgrind.
    uint8_t* data = malloc(size > 0 ? (size_t)size : 1);
    if (size < 0 || !data || fread(data, 1, (size_t)size, file) != (size_t)size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        free(data);
        fclose(file);
        return 1;
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    input_count++;
    return 0;
}

static int replay_folder(const char* path) {
    DIR* folder = opendir(path);
    if (!folder) {
        perror(path);
        return 1;
    }
    char** names = NULL;
    size_t count = 0;
    for (struct dirent* entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        char** grown = realloc(names, (count + 1) * sizeof *names);
        if (!grown)
            abort();
        names = grown;
        names[count] = malloc(strlen(path) + strlen(entry->d_name) + 2);
        if (!names[count])
            abort();
        sprintf(names[count++], "%s/%s", path, entry->d_name);
    }
    closedir(folder);
    // In name order, so that a crash is found again at the same place.
    if (count)
        qsort(names, count, sizeof *names, compare_names);
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        failed |= replay_file(names[i]);
        free(names[i]);
    }
    free(names);
    return failed;
}

int main(int argc, char** argv) {
    const uint8_t nothing[1] = {0};
    LLVMFuzzerTestOneInput(nothing, 0);
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        struct stat status;
        if (stat(argv[i], &status) != 0) {
            perror(argv[i]);
            failed = 1;
        } else if (S_ISDIR(status.st_mode)) {
            failed |= replay_folder(argv[i]);
        } else {
            failed |= replay_file(argv[i]);
        }
    }
    printf("%ld corpus inputs replayed\n", input_count);
    if (input_count == 0) {
        fprintf(stderr, "the corpus is empty: add seed inputs\n");
        failed = 1;
    }
    return failed;
}
