// What a printed kernel needs in order to run on the host: where its thread stands, memory, barriers, shuffles.
// With SW_EMU_CHECKED every access goes through a descriptor of its buffer and is checked; without it pointers are
// plain. The other side is emulator.cpp. Lines are those of the printed source: __builtin_LINE() as a default
// argument is the line of the call.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

enum sw_emu_kind {
    SW_EMU_OUT_OF_BOUNDS = 1,
    SW_EMU_MISALIGNED,
    SW_EMU_READ_ONLY,
    SW_EMU_NOT_WRITTEN,
    SW_EMU_RACE_WRITES,      // two threads write
    SW_EMU_RACE_READ,        // this one reads what the other wrote
    SW_EMU_RACE_WRITE,       // this one writes what the other read
    SW_EMU_OVERWRITTEN,      // written again, although nobody read it
    SW_EMU_BARRIER,          // some threads wait at a barrier that others do not reach
    SW_EMU_WARP,             // some lanes wait for others that do not come
    SW_EMU_SHUFFLE,          // the source of a shuffle is not there
    SW_EMU_STUCK,            // out of time
    SW_EMU_MEMORY,           // the host has no memory for the stacks of the threads
};

enum sw_emu_wait_kind { SW_EMU_AT_BARRIER = 1, SW_EMU_AT_WARP_BARRIER, SW_EMU_AT_SHUFFLE, SW_EMU_AT_BALLOT };

enum sw_emu_access { SW_EMU_READ, SW_EMU_WRITE, SW_EMU_ATOMIC };

// One access, as the shadow of an element remembers it.
struct sw_emu_trace {
    uint32_t block, epoch, warp_epoch, line;
    uint16_t thread;
    uint8_t known;
};

// Several accesses: the last one, and who else there was in its epoch.
struct sw_emu_summary {
    sw_emu_trace last;
    uint32_t other_warp_epoch;  // of the lane before the last one
    uint8_t other_lanes, other_warps, other_blocks;
};

struct sw_emu_shadow {
    sw_emu_trace written;
    sw_emu_summary reads, updates;  // updates are atomic
    uint8_t read_since, lock;
};

// A buffer of a launch, or of shared memory or registers. Elements are counted from `data`; those from `low` up to
// `high` exist (where `valid` is set, only those with a 1 in it). What `written` holds a 0 for was never written.
struct sw_emu_buffer {
    char *data;
    long long low, high;
    const uint8_t *valid;
    uint8_t *written;
    sw_emu_shadow *shadow;
    const char *name;
    int bytes, read_only, shared;
};

struct sw_emu_thread {
    int thread[3], block[3], block_dim[3], grid_dim[3];
    int linear;  // position among the threads of the block
};

union sw_emu_argument {
    const sw_emu_buffer *buffer;
    long long bits;
    sw_emu_argument(const sw_emu_buffer *buffer) : buffer(buffer) {}
    sw_emu_argument(long long bits) : bits(bits) {}
};

// What was found, once for each kind and line.
struct sw_emu_report {
    int kind, line, access, count;
    int thread[3], block[3];
    int other_thread, other_line, align, width;
    long long other_block, index, low, high, address;
    char name[64];
};

struct sw_emu_launch {
    void (*call)(const sw_emu_argument *);
    const sw_emu_argument *arguments;
    int grid[3], block[3];
    long long dynamic_shared, stack;  // bytes a block, and a thread
    double seconds;  // it is called stuck when no block ends or meets for so long
    int cores, checked;
};

extern "C" {
extern thread_local sw_emu_thread *sw_emu_self __attribute__((tls_model("initial-exec")));
// Whether `count` elements from `index` on may be accessed; 0 after a report.
int sw_emu_check(const sw_emu_buffer *buffer, long long index, int count, int align, int access, int line);
void sw_emu_unwritten(const char *name, int line);
const sw_emu_buffer *sw_emu_shared(const char *name, long long offset, long long size, int bytes, int line);
void sw_emu_wait(int kind, int line);
uint64_t sw_emu_shuffle(int kind, uint64_t bits, int lane, int width, int line);
uint32_t sw_emu_ballot(int vote, int line);
int sw_emu_shadow_bytes();
int sw_emu_run(const sw_emu_launch *launch, int arguments, sw_emu_report *reports, int capacity);
}

// Values as 64 bits, and back.
template <class T> inline uint64_t sw_emu_bits(T x) {
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    return bits;
}

template <class T> inline T sw_emu_value(uint64_t bits) {
    T x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// An atomic update of memory; what was there before.
template <class T, class F> inline T sw_emu_update(T *at, F next) {
    T old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, next(old), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

#ifdef SW_EMU_CHECKED

// An element index, and the line where it was written.
struct sw_emu_index {
    long long at;
    int line;
    template <class I> sw_emu_index(I at, int line = __builtin_LINE()) : at((long long)at), line(line) {}
};

// An element that is about to be read or assigned.
template <class value> struct sw_emu_element {
    const sw_emu_buffer *of;
    long long at;
    int line;

    operator value() const {
        value x;
        if (sw_emu_check(of, at, 1, 1, SW_EMU_READ, line)) memcpy(&x, of->data + at * (long long)sizeof x, sizeof x);
        else memset(&x, 0, sizeof x);
        return x;
    }
    sw_emu_element &operator=(value x) {
        if (sw_emu_check(of, at, 1, 1, SW_EMU_WRITE, line)) memcpy(of->data + at * (long long)sizeof x, &x, sizeof x);
        return *this;
    }
    sw_emu_element &operator=(const sw_emu_element &other) { return *this = (value)other; }
};

// What an access of T gives: of const T, an element that cannot be assigned.
template <class T> struct sw_emu_access_of { typedef sw_emu_element<T> type; };
template <class T> struct sw_emu_access_of<const T> { typedef const sw_emu_element<T> type; };

template <class T> struct sw_emu_pointer {
    const sw_emu_buffer *of;
    long long at;

    sw_emu_pointer(const sw_emu_buffer *of, long long at = 0) : of(of), at(at) {}
    template <class S> sw_emu_pointer(const sw_emu_pointer<S> &other) : of(other.of), at(other.at) {}
    typename sw_emu_access_of<T>::type operator[](sw_emu_index i) const { return {of, at + i.at, i.line}; }
    sw_emu_pointer operator+(long long by) const { return {of, at + by}; }
    sw_emu_pointer operator-(long long by) const { return {of, at - by}; }
};

// Memory of one thread.
template <class T, int N> struct sw_emu_registers {
    alignas(16) T values[N];
    uint8_t written[N];
    sw_emu_buffer own;

    explicit sw_emu_registers(const char *name) : own{(char *)values, 0, N, 0, written, 0, name, (int)sizeof(T), 0, 0} {
        memset(written, 0, sizeof written);
    }
    sw_emu_registers(const sw_emu_registers &) = delete;
    sw_emu_element<T> operator[](sw_emu_index i) { return {&own, i.at, i.line}; }
    sw_emu_pointer<T> operator+(long long by) const { return {&own, by}; }
    operator sw_emu_pointer<T>() const { return {&own}; }
};

// One value of one thread. A read is reported at the line of its declaration: a conversion does not know its own.
template <class T> struct sw_emu_register {
    T value;
    int line;
    bool written = false;
    const char *name;

    explicit sw_emu_register(const char *name, int line = __builtin_LINE()) : line(line), name(name) {}
    sw_emu_register(const sw_emu_register &) = delete;
    operator T() const {
        if (!written) sw_emu_unwritten(name, line);
        return value;
    }
    sw_emu_register &operator=(T x) { return value = x, written = true, *this; }
    sw_emu_register &operator=(const sw_emu_register &other) { return *this = (T)other; }
};

template <class V, class T> inline V sw_emu_load(const sw_emu_pointer<T> &p, int count, int align, int line) {
    V x;
    if (sw_emu_check(p.of, p.at, count, align, SW_EMU_READ, line)) memcpy(&x, p.of->data + p.at * p.of->bytes, sizeof x);
    else memset(&x, 0, sizeof x);
    return x;
}

template <class V, class T, int N> inline V sw_emu_load(const sw_emu_registers<T, N> &p, int count, int align, int line) {
    return sw_emu_load<V>(sw_emu_pointer<T>(p), count, align, line);
}

template <class V, class T> inline void sw_emu_store(const sw_emu_pointer<T> &p, V x, int count, int align, int line) {
    if (sw_emu_check(p.of, p.at, count, align, SW_EMU_WRITE, line)) memcpy(p.of->data + p.at * p.of->bytes, &x, sizeof x);
}

template <class V, class T, int N>
inline void sw_emu_store(const sw_emu_registers<T, N> &p, V x, int count, int align, int line) {
    sw_emu_store(sw_emu_pointer<T>(p), x, count, align, line);
}

template <class T, class F> inline T sw_emu_atomic(const sw_emu_pointer<T> &p, F next, int line) {
    if (!sw_emu_check(p.of, p.at, 1, sizeof(T), SW_EMU_ATOMIC, line)) return 0;
    return sw_emu_update((T *)p.of->data + p.at, next);
}

#define SW_EMU_POINTER(type) sw_emu_pointer<type>
#define SW_EMU_REGISTERS(type, name, size) sw_emu_registers<type, size> name(#name)
#define SW_EMU_REGISTER(type, name) sw_emu_register<type> name(#name)
template <class T> inline sw_emu_pointer<T> sw_emu_shared_of(const char *name, long long offset, long long size, int line) {
    return {sw_emu_shared(name, offset, size, sizeof(T), line)};
}

template <class T> struct sw_emu_unpack {
    static T from(sw_emu_argument a) { return sw_emu_value<T>(a.bits); }
};
template <class T> struct sw_emu_unpack<sw_emu_pointer<T>> {
    static sw_emu_pointer<T> from(sw_emu_argument a) { return {a.buffer}; }
};

#else

template <class V, class T> inline V sw_emu_load(const T *p, int, int, int) {
    V x;
    memcpy(&x, p, sizeof x);
    return x;
}

template <class V, class T> inline void sw_emu_store(T *p, V x, int, int, int) { memcpy(p, &x, sizeof x); }

template <class T, class F> inline T sw_emu_atomic(T *p, F next, int) { return sw_emu_update(p, next); }

#define SW_EMU_POINTER(type) type *
#define SW_EMU_REGISTERS(type, name, size) alignas(16) type name[size]
#define SW_EMU_REGISTER(type, name) type name
template <class T> inline T *sw_emu_shared_of(const char *name, long long offset, long long size, int line) {
    return (T *)sw_emu_shared(name, offset, size, sizeof(T), line)->data;
}

template <class T> struct sw_emu_unpack {
    static T from(sw_emu_argument a) { return sw_emu_value<T>(a.bits); }
};
template <class T> struct sw_emu_unpack<T *> {
    static T *from(sw_emu_argument a) { return (T *)a.buffer->data; }
};

#endif

// Calls a kernel with unpacked arguments.
template <int... I> struct sw_emu_places {};
template <int N, int... I> struct sw_emu_count : sw_emu_count<N - 1, N - 1, I...> {};
template <int... I> struct sw_emu_count<0, I...> { typedef sw_emu_places<I...> type; };

template <class... A, int... I>
inline void sw_emu_spread(void (*kernel)(A...), const sw_emu_argument *arguments, sw_emu_places<I...>) {
    (void)arguments;
    kernel(sw_emu_unpack<A>::from(arguments[I])...);
}

template <class... A> inline void sw_emu_call(void (*kernel)(A...), const sw_emu_argument *arguments) {
    sw_emu_spread(kernel, arguments, typename sw_emu_count<sizeof...(A)>::type());
}

#define SW_EMU_ENTRY(name) \
    extern "C" void sw_entry_##name(const sw_emu_argument *arguments) { sw_emu_call(name, arguments); }
