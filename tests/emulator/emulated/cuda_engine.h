// The engine of the emulation: the threads of a block are fibers of one OS thread. What kernels see of it.
//
// A fiber runs until it waits (block barrier, warp collective) or ends. When no fiber of the block can run,
// the block barrier opens if every thread waits at it. Otherwise the launch ends with an error that says which
// threads wait where. cuda_fibers.cpp has the schedule, cuda_collectives.cpp the waiting; both are compiled once
// and linked to every module.
#pragma once
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace sk_emulated {

constexpr int max_threads = 1024;
constexpr int lanes = 32;
constexpr size_t stack_bytes = 128 * 1024;
constexpr size_t page = 4096 * 4;  // as large as the pages of any system at hand, for the guard below a stack
constexpr unsigned pool_bytes = 227 * 1024;
constexpr unsigned pool_guard = 256;
constexpr unsigned char poison = 0xFF;  // a NaN for floating point, -1 for integers

enum Status : unsigned char { fresh, ready, at_barrier, at_collective, exited };

enum Operation : unsigned char { syncthreads, syncwarp, shfl, shfl_xor, ballot };
constexpr const char* operation_names[] = {"__syncthreads", "__syncwarp", "__shfl_sync", "__shfl_xor_sync",
                                           "__ballot_sync"};

struct Fiber {
    void* sp;
    unsigned char* stack;
    uint3 thread;
    unsigned number;
    Status status;
    Operation operation;
    int line;
    unsigned mask;
    int bytes;  // of the value of a shuffle
    unsigned source;
    uint64_t value;  // what the fiber deposits, and where it finds its result
};

// Stacks are shared by all modules of the process: Python hands the same table to each launch.
struct Stacks {
    uint64_t made;
    unsigned char* free[max_threads];
};

struct Engine {
    uint3 thread, block;
    dim3 block_dim, grid_dim;
    Fiber* current;
    void* scheduler;
    Stacks* stacks;
    int n_free, n_threads, n_exited, n_at_barrier;
    void (*thunk)(const unsigned char*);
    const unsigned char* slots;
    const char* kernel;
    uint64_t seed, random;
    unsigned pool_used;
    pthread_t os_thread;
    sigjmp_buf escape;
    volatile bool failed;
    unsigned waiting[max_threads / lanes], gone[max_threads / lanes];
    unsigned short order[max_threads];
    Fiber fibers[max_threads];
    char error[4096];
    alignas(16) unsigned char pool[pool_bytes + pool_guard];
    alignas(16) unsigned char signal_stack[64 * 1024];
};
extern Engine engine;

void wait_for_block(int line);
uint64_t wait_for_lanes(Operation operation, unsigned mask, uint64_t value, unsigned argument, int bytes,
                        int line);

// back to the schedule, until it resumes this fiber
void leave();

// ends the launch; the fibers are abandoned where they stand
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// shape: grid x, y, z, block x, y, z, bytes of dynamic shared memory
int launch(const char* kernel, void (*thunk)(const unsigned char*), const unsigned char* slots,
           const unsigned* shape, uint64_t seed, Stacks* stacks);

template <class Value>
static uint64_t to_bits(Value value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class Value>
static Value from_bits(uint64_t bits) {
    Value value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace sk_emulated
