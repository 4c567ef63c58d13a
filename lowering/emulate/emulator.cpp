// Runs the grid of a printed kernel on the host: blocks spread over cores, the threads of a block as fibres of one
// core, which take turns at barriers and shuffles; and checks what the kernel does.
//
// Who comes before whom: a barrier of the block ends an *epoch*, one of a warp a *warp epoch*. Accesses of one thread
// are ordered, those of a block where a barrier stood in between, those of a warp also where a warp barrier did. Two
// accesses that are not ordered, one of them a write, are a race (S. Savage et al., Eraser, 1997; C. Flanagan and
// S. Freund, FastTrack, 2009: the last write and a summary of the reads of each element are enough).
#include "emulator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

thread_local sw_emu_thread *sw_emu_self __attribute__((tls_model("initial-exec")));

namespace {

constexpr int SHARED_CAPACITY = 256 << 10, TURN = 1 << 12;

// ------------------------------------------------------------------ fibres

#if defined(__x86_64__) && !defined(SW_EMU_UCONTEXT)
asm(R"(
.text
.globl sw_emu_switch
.hidden sw_emu_switch
.type sw_emu_switch, @function
sw_emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size sw_emu_switch, .-sw_emu_switch
)");
#define SW_EMU_SAVED 8  // words: six registers, where to return to, and 0 for debuggers
#define SW_EMU_RETURN 6
#elif defined(__aarch64__) && !defined(SW_EMU_UCONTEXT)
asm(R"(
.text
.globl sw_emu_switch
.hidden sw_emu_switch
.type sw_emu_switch, %function
sw_emu_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size sw_emu_switch, .-sw_emu_switch
)");
#define SW_EMU_SAVED 20
#define SW_EMU_RETURN 11  // x30
#endif

#ifdef SW_EMU_SAVED
extern "C" void sw_emu_switch(void **from, void *to);

struct Context {
    void *stack_pointer = nullptr;
    void start(char *stack, size_t size, void (*entry)()) {
        void **top = (void **)(stack + size) - SW_EMU_SAVED;
        for (int i = 0; i < SW_EMU_SAVED; ++i) top[i] = nullptr;
        top[SW_EMU_RETURN] = (void *)entry;
        stack_pointer = top;
    }
    void to(Context &next) { sw_emu_switch(&stack_pointer, next.stack_pointer); }
};
#else
}  // namespace
#include <ucontext.h>
namespace {
struct Context {
    ucontext_t context;
    void start(char *stack, size_t size, void (*entry)()) {
        getcontext(&context);
        context.uc_stack.ss_sp = stack;
        context.uc_stack.ss_size = size;
        context.uc_link = nullptr;
        makecontext(&context, entry, 0);
    }
    void to(Context &next) { swapcontext(&context, &next.context); }
};
#endif

// A stack, above a page that faults; null where there is no memory.
char *new_stack(size_t size) {
    size_t page = sysconf(_SC_PAGESIZE);
    char *made = (char *)mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    if (mprotect(made, page, PROT_NONE)) {
        munmap(made, size + page);
        return nullptr;
    }
    return made + page;
}

void free_stack(char *stack, size_t size) {
    size_t page = sysconf(_SC_PAGESIZE);
    munmap(stack - page, size + page);
}

// ------------------------------------------------------------------ a launch and its blocks

enum State { NEW, READY, WAITING, DONE };

struct Fibre : sw_emu_thread {
    Context context;
    State state = NEW;
    int kind = 0, line = 0;  // what it waits for
    uint64_t sent = 0;       // in a shuffle or ballot; then what it received
    int lane = 0, width = 0, shuffle = 0;
    char *stack = nullptr;
};

struct Shared {
    sw_emu_buffer buffer;
    std::vector<sw_emu_shadow> shadow;
    std::vector<uint8_t> written;
};

struct Run {  // shared by the cores; kept alive by each
    sw_emu_launch launch;
    std::vector<sw_emu_argument> arguments;
    std::atomic<long long> next{0};
    long long blocks;
    std::atomic<int> running{0};
    std::atomic<bool> stop{false};
    std::atomic<double> progress{0};  // when a block last ended or met, in seconds
    std::mutex lock;
    std::condition_variable ended;
    std::vector<sw_emu_report> reports;
    int capacity;
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Whether no block has ended, or met at a barrier or shuffle, for the time that a launch has.
bool stalled(const Run &run) { return seconds() - run.progress > run.launch.seconds; }

struct Worker {
    Run &run;
    Context scheduler;
    std::vector<Fibre> fibres;
    std::vector<char *> stacks;
    std::map<std::pair<int, long long>, std::unique_ptr<Shared>> shared;  // by line and offset
    char *memory = (char *)mmap(nullptr, SHARED_CAPACITY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long long static_bytes = 0, block = 0;
    uint32_t epoch = 0, warp_epochs[32];
    int turn = 0;
    bool abandoned = false;  // this block cannot go on

    explicit Worker(Run &run) : run(run), fibres(run.launch.block[0] * run.launch.block[1] * run.launch.block[2]) {}
    ~Worker() {
        for (char *stack : stacks) free_stack(stack, run.launch.stack);
        munmap(memory, SHARED_CAPACITY);
    }

    void work();
    void run_block();
    bool turns();
    bool release_warp(size_t first);
    bool release_block();
    void exchange(size_t first, size_t last);
    void begin_block();
    void resume(Fibre &fibre);
    void stuck();
    sw_emu_report report(int kind, int line, const Fibre &fibre);
    void keep(const sw_emu_report &made);
};

thread_local Worker *worker;

Fibre &self() { return *(Fibre *)sw_emu_self; }

void enter() {
    worker->run.launch.call(worker->run.arguments.data());
    self().state = DONE;
    self().context.to(worker->scheduler);
}

void Worker::resume(Fibre &fibre) {
    if (fibre.state == NEW) {
        if (stacks.empty()) stacks.push_back(new_stack(run.launch.stack));
        fibre.stack = stacks.back();
        stacks.pop_back();
        if (!fibre.stack) {
            keep(report(SW_EMU_MEMORY, 0, fibre));
            run.stop = abandoned = true;
            return;
        }
        fibre.context.start(fibre.stack, run.launch.stack, enter);
    }
    fibre.state = READY;
    sw_emu_self = &fibre;
    turn = 0;
    scheduler.to(fibre.context);
    if (fibre.state == DONE) stacks.push_back(fibre.stack);
}

void Worker::begin_block() {
    const sw_emu_launch &l = run.launch;
    long long at[3] = {block % l.grid[0], block / l.grid[0] % l.grid[1], block / l.grid[0] / l.grid[1]};
    for (size_t i = 0; i < fibres.size(); ++i) {
        Fibre &f = fibres[i];
        int place[3] = {(int)i % l.block[0], (int)i / l.block[0] % l.block[1], (int)i / l.block[0] / l.block[1]};
        for (int axis = 0; axis < 3; ++axis) {
            f.thread[axis] = place[axis], f.block[axis] = (int)at[axis];
            f.block_dim[axis] = l.block[axis], f.grid_dim[axis] = l.grid[axis];
        }
        f.linear = (int)i, f.kind = 0;
        f.state = NEW;
    }
    shared.clear();
    static_bytes = 0;
    memset(memory, 0xff, l.dynamic_shared > 0 ? SHARED_CAPACITY : 48 << 10);  // floats that nothing wrote are NaN
    epoch = 0;
    memset(warp_epochs, 0, sizeof warp_epochs);
    abandoned = false;
}

// Every thread that can go on does; whether there was one.
bool Worker::turns() {
    bool any = false;
    for (Fibre &f : fibres) {
        if (f.state != NEW && f.state != READY) continue;
        any = true;
        resume(f);
        if (abandoned) return false;
    }
    return any;
}

void Worker::run_block() {
    begin_block();
    while (true) {
        while (turns());
        if (abandoned || run.stop) break;
        bool released = false;
        for (size_t first = 0; first < fibres.size(); first += 32) released |= release_warp(first);
        if (released) continue;
        if (abandoned || !release_block()) break;
    }
    for (Fibre &f : fibres) {  // those of an abandoned block hold nothing that needs an end
        if (f.state == READY || f.state == WAITING) stacks.push_back(f.stack);
        f.state = DONE;
    }
}

// Lets a warp go on that waits as a whole: every lane that has not ended, at one place.
bool Worker::release_warp(size_t first) {
    size_t last = first + 32 < fibres.size() ? first + 32 : fibres.size();
    Fibre *one = nullptr, *different = nullptr;
    for (size_t i = first; i < last; ++i) {
        Fibre &f = fibres[i];
        if (f.state == DONE) {  // kernels have no return: it went past what the others wait at
            if (run.launch.checked) different = &f;
            continue;
        }
        if (f.kind == SW_EMU_AT_BARRIER) return false;
        if (!one) one = &f;
        else if (one->kind != f.kind || one->line != f.line) different = &f;
    }
    if (!one) return false;
    if (different) {
        sw_emu_report made = report(SW_EMU_WARP, one->line, *one);
        made.other_thread = different->linear;
        made.other_line = different->state == DONE ? 0 : different->line;
        keep(made);
        abandoned = true;
        return false;
    }
    run.progress = seconds();
    if (one->kind == SW_EMU_AT_WARP_BARRIER) ++warp_epochs[first / 32];
    else exchange(first, last);
    for (size_t i = first; i < last; ++i)
        if (fibres[i].state == WAITING) fibres[i].state = READY;
    return true;
}

// What each lane of a shuffle or ballot receives.
void Worker::exchange(size_t first, size_t last) {
    uint64_t sent[32] = {};
    uint32_t votes = 0;
    for (size_t i = first; i < last; ++i)
        if (fibres[i].state == WAITING) sent[i - first] = fibres[i].sent, votes |= (uint32_t)!!sent[i - first] << (i - first);
    for (size_t i = first; i < last; ++i) {
        Fibre &f = fibres[i];
        if (f.state != WAITING) continue;
        if (f.kind == SW_EMU_AT_BALLOT) {
            f.sent = votes;
            continue;
        }
        int lane = (int)(i - first), group = lane / f.width * f.width, source = lane;
        int to = f.shuffle == 0 ? (lane ^ f.lane) : f.shuffle == 1 ? lane - f.lane : f.shuffle == 2 ? lane + f.lane
                                                                     : group + (f.lane & (f.width - 1));
        if (f.shuffle == 0 ? to < group + f.width : to >= group && to < group + f.width) source = to;
        size_t at = first + source;
        if (at >= last || fibres[at].state != WAITING) {
            if (run.launch.checked) {
                sw_emu_report made = report(SW_EMU_SHUFFLE, f.line, f);
                made.other_thread = (int)at;
                keep(made);
            }
            source = lane;
        }
        f.sent = sent[source];
    }
}

// Lets the block go on that waits as a whole at one barrier; otherwise says who is missing. Some thread
// waits at a barrier where any does: release_warp has dealt with the others.
bool Worker::release_block() {
    Fibre *one = nullptr, *odd = nullptr;
    for (Fibre &f : fibres)
        if (!one && f.state == WAITING && f.kind == SW_EMU_AT_BARRIER) one = &f;
    if (!one) return false;
    for (Fibre &f : fibres)
        if (f.state == DONE ? run.launch.checked : f.kind != one->kind || f.line != one->line) {
            odd = &f;
            if (f.state == WAITING) break;
        }
    if (odd) {
        sw_emu_report made = report(SW_EMU_BARRIER, one->line, *one);
        made.other_thread = odd->linear, made.other_line = odd->state == DONE ? 0 : odd->line;
        keep(made);
        abandoned = true;
        return false;
    }
    ++epoch;
    run.progress = seconds();
    for (Fibre &f : fibres)
        if (f.state == WAITING) f.state = READY;
    return true;
}

sw_emu_report Worker::report(int kind, int line, const Fibre &fibre) {
    sw_emu_report made = {};
    made.kind = kind, made.line = line, made.other_thread = -1, made.other_block = -1;
    for (int axis = 0; axis < 3; ++axis) made.thread[axis] = fibre.thread[axis], made.block[axis] = fibre.block[axis];
    return made;
}

// The first of each kind, line and sort of access.
void Worker::keep(const sw_emu_report &made) {
    std::lock_guard<std::mutex> held(run.lock);
    for (sw_emu_report &r : run.reports)
        if (r.kind == made.kind && r.line == made.line && r.access == made.access) {
            ++r.count;
            return;
        }
    if ((int)run.reports.size() < run.capacity) run.reports.push_back(made), run.reports.back().count = 1;
}

void Worker::work() {
    worker = this;
    while (!run.stop && (block = run.next++) < run.blocks) {
        run_block();
        run.progress = seconds();
    }
    worker = nullptr;
}

void wait() {
    Fibre &me = self();
    me.state = WAITING;
    me.context.to(worker->scheduler);
}

// ------------------------------------------------------------------ checks

int warp(int thread) { return thread / 32; }

bool ordered(const sw_emu_trace &before, const sw_emu_trace &now) {
    if (!before.known || (before.block == now.block && before.thread == now.thread)) return true;
    if (before.block != now.block) return false;
    if (before.epoch != now.epoch) return true;
    return warp(before.thread) == warp(now.thread) && before.warp_epoch != now.warp_epoch;
}

void note(sw_emu_summary &s, const sw_emu_trace &now) {
    const sw_emu_trace &last = s.last;
    if (last.known && last.block != now.block) s.other_blocks = 1;
    else if (last.known && last.epoch != now.epoch) s.other_lanes = s.other_warps = 0;
    else if (last.known && warp(last.thread) != warp(now.thread)) s.other_warps = 1;
    else if (last.known && last.thread != now.thread) s.other_lanes = 1, s.other_warp_epoch = last.warp_epoch;
    s.last = now;
}

bool all_ordered(const sw_emu_summary &s, const sw_emu_trace &now) {
    const sw_emu_trace &last = s.last;
    if (!last.known) return true;
    if (s.other_blocks || last.block != now.block) return false;
    if (last.epoch != now.epoch) return true;
    if (s.other_warps || !ordered(last, now)) return false;
    return !s.other_lanes || s.other_warp_epoch != now.warp_epoch;
}

struct Held {  // blocks on several cores meet at elements of global memory
    sw_emu_shadow &shadow;
    explicit Held(sw_emu_shadow &shadow) : shadow(shadow) {
        while (__atomic_test_and_set(&shadow.lock, __ATOMIC_ACQUIRE)) std::this_thread::yield();
    }
    ~Held() { __atomic_clear(&shadow.lock, __ATOMIC_RELEASE); }
};

// What is wrong with an access, given those before it; 0 when nothing is. `before` is then the other one.
int order(sw_emu_shadow &s, const sw_emu_trace &now, int access, bool shared, sw_emu_trace &before) {
    Held held(s);
    int wrong = 0;
    before = s.written;
    bool after_updates = access == SW_EMU_ATOMIC || all_ordered(s.updates, now);
    if (!ordered(s.written, now) || !after_updates) {
        wrong = access == SW_EMU_READ ? SW_EMU_RACE_READ : SW_EMU_RACE_WRITES;
        if (!after_updates) before = s.updates.last;
    } else if (access == SW_EMU_WRITE && !shared && s.written.known && !s.read_since) {
        wrong = SW_EMU_OVERWRITTEN;
    } else if (access != SW_EMU_READ && !all_ordered(s.reads, now)) {
        wrong = SW_EMU_RACE_WRITE, before = s.reads.last;
    }
    if (access == SW_EMU_READ) note(s.reads, now);
    else if (access == SW_EMU_ATOMIC) note(s.updates, now);
    else s.written = now;
    s.read_since = access != SW_EMU_WRITE;
    return wrong;
}

int fail(const sw_emu_buffer *buffer, int kind, long long index, int count, int align, int access, int line,
         const sw_emu_trace *before = nullptr) {
    sw_emu_report made = worker->report(kind, line, self());
    made.index = index, made.low = buffer->low, made.high = buffer->high, made.width = count, made.align = align;
    made.access = access;
    made.address = (long long)(intptr_t)(buffer->data + index * buffer->bytes);
    if (before) made.other_thread = before->thread, made.other_block = before->block, made.other_line = (int)before->line;
    if (before && made.other_block == worker->block && made.other_thread == self().linear) made.other_thread = -1;
    strncpy(made.name, buffer->name, sizeof made.name - 1);
    worker->keep(made);
    return kind == SW_EMU_OUT_OF_BOUNDS || kind == SW_EMU_READ_ONLY ? 0 : 1;
}

bool exists(const sw_emu_buffer *b, long long index) {
    return index >= b->low && index < b->high && (!b->valid || b->valid[index - b->low]);
}

// A thread that reads and reads gives the others a turn, and ends with the time of the launch.
void take_turns() {
    worker->turn = 0;
    if (worker->run.stop || stalled(worker->run)) worker->run.stop = worker->abandoned = true;
    self().context.to(worker->scheduler);
}

}  // namespace

extern "C" {

int sw_emu_check(const sw_emu_buffer *b, long long index, int count, int align, int access, int line) {
    if (++worker->turn >= TURN) take_turns();
    for (int i = 0; i < count; ++i)
        if (!exists(b, index + i)) return fail(b, SW_EMU_OUT_OF_BOUNDS, index + i, count, align, access, line);
    if (align > 1 && (uintptr_t)(b->data + index * b->bytes) % align)
        fail(b, SW_EMU_MISALIGNED, index, count, align, access, line);
    if (access != SW_EMU_READ && b->read_only) return fail(b, SW_EMU_READ_ONLY, index, count, align, access, line);
    Fibre &me = self();
    sw_emu_trace now = {(uint32_t)worker->block, worker->epoch, worker->warp_epochs[me.linear / 32], (uint32_t)line,
                        (uint16_t)me.linear, 1};
    for (int i = 0; i < count; ++i) {
        long long at = index + i - b->low;
        if (access != SW_EMU_WRITE && b->written && !b->written[at])
            fail(b, SW_EMU_NOT_WRITTEN, index + i, count, align, access, line);
        if (access != SW_EMU_READ && b->written) b->written[at] = 1;
        if (!b->shadow) continue;
        sw_emu_trace before;
        int wrong = order(b->shadow[at], now, access, b->shared, before);
        if (wrong) fail(b, wrong, index + i, count, align, access, line, &before);
    }
    return 1;
}

void sw_emu_unwritten(const char *name, int line) {
    sw_emu_buffer own = {nullptr, 0, 1, nullptr, nullptr, nullptr, name, 1, 0, 0};
    fail(&own, SW_EMU_NOT_WRITTEN, 0, 1, 1, SW_EMU_READ, line);
}

// The shared buffer that is declared on `line`; the first thread of a block that comes there makes it.
const sw_emu_buffer *sw_emu_shared(const char *name, long long offset, long long size, int bytes, int line) {
    std::unique_ptr<Shared> &found = worker->shared[{line, offset}];
    if (!found) {
        found.reset(new Shared());
        found->shadow.resize(worker->run.launch.checked ? size : 0);
        long long start = offset;
        if (offset < 0) start = worker->static_bytes, worker->static_bytes += (size * bytes + 15) / 16 * 16;
        if (start + size * bytes > SHARED_CAPACITY) start = 0;  // refused before the launch; kept inside here
        found->buffer = {worker->memory + start, 0, size, nullptr, nullptr, nullptr, name, bytes, 0, 1};
        if (worker->run.launch.checked) {
            found->written.resize(size);
            found->buffer.shadow = found->shadow.data(), found->buffer.written = found->written.data();
        }
    }
    return &found->buffer;
}

void sw_emu_wait(int kind, int line) {
    self().kind = kind, self().line = line;
    wait();
}

uint64_t sw_emu_shuffle(int kind, uint64_t bits, int lane, int width, int line) {
    Fibre &me = self();
    me.shuffle = kind, me.sent = bits, me.lane = lane & 31, me.width = width;  // the low 5 bits, as in PTX
    sw_emu_wait(SW_EMU_AT_SHUFFLE, line);
    return me.sent;
}

uint32_t sw_emu_ballot(int vote, int line) {
    self().sent = vote != 0;
    sw_emu_wait(SW_EMU_AT_BALLOT, line);
    return (uint32_t)self().sent;
}

int sw_emu_shadow_bytes() { return sizeof(sw_emu_shadow); }

// Runs a launch; how many reports there are, of which `reports` gets `capacity`. -1 where it did not end: some thread
// runs on, and the memory must stay.
int sw_emu_run(const sw_emu_launch *launch, int arguments, sw_emu_report *reports, int capacity) {
    std::shared_ptr<Run> run(new Run());
    run->launch = *launch;
    run->arguments.assign(launch->arguments, launch->arguments + arguments);
    run->blocks = (long long)launch->grid[0] * launch->grid[1] * launch->grid[2];
    run->capacity = capacity;
    run->progress = seconds();
    int cores = launch->cores < run->blocks ? launch->cores : (int)run->blocks;
    run->running = cores;
    for (int core = 0; core < cores; ++core)
        std::thread([run] {
            {
                Worker made(*run);
                made.work();
            }
            std::lock_guard<std::mutex> held(run->lock);
            if (--run->running == 0) run->ended.notify_all();
        }).detach();
    std::unique_lock<std::mutex> held(run->lock);
    auto over = [&] { return run->running == 0; };
    while (!run->ended.wait_for(held, std::chrono::milliseconds(200), over) && !stalled(*run));
    bool late = run->stop || !over();
    run->stop = true;
    bool ended = run->ended.wait_for(held, std::chrono::seconds(2), over);
    if (late) {
        sw_emu_report made = {};
        made.kind = SW_EMU_STUCK, made.other_thread = -1, made.other_block = -1;
        run->reports.push_back(made);
    }
    int count = (int)run->reports.size();
    for (int i = 0; i < count && i < capacity; ++i) reports[i] = run->reports[i];
    return ended ? count : -1 - count;
}
}
