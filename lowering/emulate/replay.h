// Runs recorded launches in a program of its own: memory from files, reports as text.
#pragma once
#include "emulator.h"

#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <vector>

#ifdef SW_EMU_PLAIN
enum { SW_CHECKED = 0 };
#else
enum { SW_CHECKED = 1 };
#endif

struct sw_place {
    int line;
    const char *where;
};

// Memory of a call. An input comes from a file; what kernels write begins as 0xff bytes.
struct sw_memory {
    std::vector<char> bytes;
    std::vector<uint8_t> valid, written;
    std::vector<sw_emu_shadow> shadow;
    sw_emu_buffer buffer;

    sw_memory(const char *name, const char *file, const char *valid_file, int width, long long low, long long high)
        : bytes((high - low) * width + 64, (char)0xff) {
        char *start = bytes.data() + (64 - (uintptr_t)bytes.data() % 64) % 64;
        buffer = {start - low * width, low, high, nullptr, nullptr, nullptr, name, width, file != nullptr, 0};
        if (file) read(file, start, (high - low) * width);
        else written.resize(high - low), buffer.written = written.data();
        if (valid_file) {
            valid.resize(high - low);
            read(valid_file, (char *)valid.data(), high - low);
            buffer.valid = valid.data();
        }
    }

    static void read(const char *path, char *to, size_t count) {
        FILE *file = fopen(path, "rb");
        if (!file || fread(to, 1, count, file) != count) {
            fprintf(stderr, "cannot read %zu bytes of %s: run this program in its folder\n", count, path);
            exit(2);
        }
        fclose(file);
    }

    // Writes a result; 1 where the checks find that some of it was never written.
    int save(const char *path) const {
        FILE *file = fopen(path, "wb");
        if (file) fwrite(buffer.data + buffer.low * buffer.bytes, buffer.bytes, buffer.high - buffer.low, file), fclose(file);
        long long missing = 0;
        for (uint8_t w : written) missing += !w;
        printf("%s: %lld elements of %d bytes", path, buffer.high - buffer.low, buffer.bytes);
        printf(missing && SW_CHECKED ? ", %lld of them never written\n" : "\n", missing);
        return missing && SW_CHECKED;
    }
};

static const char *const sw_kinds[] = {
    "", "out of bounds", "misaligned", "write to an input", "read of what nothing wrote", "race: two threads write",
    "race: read of what another thread writes", "race: write of what another thread reads",
    "overwritten, although nothing read it", "barrier that not all threads reach", "lanes that wait for ever",
    "shuffle from a lane that is not there", "stuck", "no memory for stacks",
};

// Runs a kernel; the number of faults, printed to stderr.
static int sw_replay(const char *name, void (*call)(const sw_emu_argument *), std::vector<sw_emu_argument> arguments,
                     std::vector<int> grid, std::vector<int> block, long long dynamic_shared, long long stack,
                     std::vector<sw_memory *> written, const std::vector<sw_place> &places) {
    for (sw_memory *m : written) {
        m->shadow.assign(m->buffer.high - m->buffer.low, sw_emu_shadow());
        m->buffer.shadow = m->shadow.data();
    }
    sw_emu_launch launch = {call, arguments.data(), {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]},
                            dynamic_shared, stack, 3600, 1, SW_CHECKED};
    sw_emu_report reports[16];
    int count = sw_emu_run(&launch, (int)arguments.size(), reports, 16);
    if (count < 0) count = -1 - count;
    printf("%s<<<(%d, %d, %d), (%d, %d, %d)>>>: %d faults\n", name, grid[0], grid[1], grid[2], block[0], block[1],
           block[2], count);
    for (int i = 0; i < count && i < 16; ++i) {
        const sw_emu_report &r = reports[i];
        const char *where = "";
        for (const sw_place &p : places)
            if (p.line == r.line) where = p.where;
        fprintf(stderr, "kernels.cpp:%d: %s: '%s[%lld]', thread (%d, %d, %d) of block (%d, %d, %d), other thread %d "
                "(line %d); %s\n", r.line, sw_kinds[r.kind], r.name, r.index, r.thread[0], r.thread[1], r.thread[2],
                r.block[0], r.block[1], r.block[2], r.other_thread, r.other_line, where);
    }
    for (sw_memory *m : written) m->buffer.shadow = nullptr;
    return count;
}
