// The schedule of the fibers. Switching between them is a few instructions of assembly. A fiber takes a stack
// when it starts and gives it back when it ends, so threads that never wait share one stack.
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cuda_engine.h"

extern "C" void sk_emulated_switch(void** save, void* load);
#if defined(__x86_64__)
asm(".text\n.globl sk_emulated_switch\n.hidden sk_emulated_switch\n.type sk_emulated_switch,@function\n"
    "sk_emulated_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\npopq %rcx\njmp *%rcx\n"
    ".size sk_emulated_switch,.-sk_emulated_switch\n");
#elif defined(__aarch64__)
asm(".text\n.globl sk_emulated_switch\n.hidden sk_emulated_switch\n.type sk_emulated_switch,%function\n"
    "sk_emulated_switch:\n"
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
    "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\n"
    "stp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
    "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\nldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
    "ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
    "add sp, sp, #160\nret\n"
    ".size sk_emulated_switch,.-sk_emulated_switch\n");
#else
#error "the emulation of CUDA C switches stacks on x86-64 and arm64 only"
#endif

// every __shared__ variable of the module lies in this section (cuda_shim.h)
extern "C" {
extern unsigned char __start_sk_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned char __stop_sk_shared[] __attribute__((weak, visibility("hidden")));
}

// bytes of them, of all kernels of the module together
extern "C" __attribute__((visibility("default"))) unsigned long long sk_emulated_static_shared() {
    return __start_sk_shared ? (unsigned long long)(__stop_sk_shared - __start_sk_shared) : 0;
}

namespace sk_emulated {

Engine engine;

void leave() { sk_emulated_switch(&engine.current->sp, engine.scheduler); }

static void write_error(const char* format, va_list arguments) {
    engine.failed = true;
    vsnprintf(engine.error, sizeof engine.error, format, arguments);
}

__attribute__((format(printf, 1, 2))) static void error_outside(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_error(format, arguments);
    va_end(arguments);
}

void fail(const char* format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const uint3 block = engine.block, thread = engine.current->thread;
    error_outside("%s in kernel %s, block (%u, %u, %u), thread (%u, %u, %u)", text, engine.kernel, block.x,
                  block.y, block.z, thread.x, thread.y, thread.z);
    leave();
    __builtin_unreachable();
}

static uint64_t draw() {
    uint64_t z = (engine.random += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// seed 0: ascending, 1: descending, else random
template <class Number>
static void permute(Number* order, unsigned n) {
    for (unsigned i = 0; i < n; ++i) order[i] = Number(engine.seed == 1 ? n - 1 - i : i);
    if (engine.seed < 2) return;
    for (unsigned i = n; i > 1; --i) {
        const unsigned j = unsigned(draw() % i);
        const Number kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

static void fiber_entry() {
    engine.thunk(engine.slots);
    Fiber& self = *engine.current;
    self.status = exited;
    engine.gone[self.number / lanes] |= 1u << (self.number % lanes);
    ++engine.n_exited;
    engine.stacks->free[engine.n_free++] = self.stack;
    self.stack = nullptr;
    leave();
    __builtin_unreachable();
}

static bool start(Fiber& fiber) {
    if (engine.n_free == 0) {
        void* stack =
            mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack == MAP_FAILED || mprotect(stack, page, PROT_NONE) != 0) {
            error_outside("no memory for the stack of a thread of kernel %s", engine.kernel);
            return false;
        }
        engine.stacks->free[engine.n_free++] = static_cast<unsigned char*>(stack);
        ++engine.stacks->made;
    }
    fiber.stack = engine.stacks->free[--engine.n_free];
    // at different distances from the end, or the stacks of a block share a few sets of the caches
    const size_t colour = fiber.number % 64 * 192;
    void** top = reinterpret_cast<void**>(fiber.stack + page + stack_bytes - colour);
#if defined(__x86_64__)
    top -= 8;  // six registers, the address that `ret` takes, and none to return to from there
    memset(top, 0, 8 * sizeof(void*));
    top[6] = reinterpret_cast<void*>(&fiber_entry);
#else
    top -= 20;
    memset(top, 0, 20 * sizeof(void*));
    top[11] = reinterpret_cast<void*>(&fiber_entry);
#endif
    fiber.sp = top;
    return true;
}

static void resume(Fiber& fiber) {
    if (fiber.status == fresh && !start(fiber)) return;
    fiber.status = ready;
    engine.current = &fiber;
    engine.thread = fiber.thread;
    sk_emulated_switch(&engine.scheduler, fiber.sp);
}

// "3-7, 12"
static int describe_threads(char* out, size_t capacity, const bool* chosen) {
    int written = 0;
    const char* comma = "";
    for (int i = 0; i < engine.n_threads; ++i) {
        if (!chosen[i]) continue;
        int last = i;
        while (last + 1 < engine.n_threads && chosen[last + 1]) ++last;
        if (size_t(written) + 24 > capacity) return written + snprintf(out + written, capacity - written, ", ...");
        written += snprintf(out + written, capacity - written, last > i ? "%s%d-%d" : "%s%d", comma, i, last);
        comma = ", ";
        i = last;
    }
    return written;
}

// no fiber can run and the block barrier does not open
static void report_stuck() {
    char text[3000] = "";
    int written = 0;
    bool seen[max_threads] = {};
    for (int i = 0; i < engine.n_threads; ++i) {
        if (seen[i]) continue;
        const Fiber& one = engine.fibers[i];
        bool alike[max_threads] = {};
        for (int j = i; j < engine.n_threads; ++j) {
            const Fiber& other = engine.fibers[j];
            alike[j] = !seen[j] && other.status == one.status &&
                       (one.status == exited || (other.operation == one.operation && other.line == one.line &&
                                                 (one.status == at_barrier || other.mask == one.mask)));
            seen[j] = seen[j] || alike[j];
        }
        char threads[200] = "";
        describe_threads(threads, sizeof threads, alike);
        if (size_t(written) + 400 > sizeof text) {
            snprintf(text + written, sizeof text - size_t(written), "; and more");
            break;
        }
        char* here = text + written;
        const size_t capacity = sizeof text - size_t(written);
        const char* between = i ? "; " : "";
        const char* name = operation_names[one.operation];
        if (one.status == exited)
            written += snprintf(here, capacity, "%sthreads %s have exited", between, threads);
        else if (one.status == at_barrier)
            written +=
                snprintf(here, capacity, "%sthreads %s wait at %s (line %d)", between, threads, name, one.line);
        else
            written += snprintf(here, capacity, "%sthreads %s wait at %s with mask 0x%08x (line %d)", between,
                                threads, name, one.mask, one.line);
    }
    error_outside("%s in kernel %s, block (%u, %u, %u): %s",
                  engine.n_at_barrier ? "divergent __syncthreads" : "deadlock of warp collectives",
                  engine.kernel, engine.block.x, engine.block.y, engine.block.z, text);
}

static bool open_barrier() {
    const Fiber& first = engine.fibers[0];
    if (engine.n_at_barrier < engine.n_threads) return false;
    for (int i = 0; i < engine.n_threads; ++i)
        if (engine.fibers[i].line != first.line) return false;
    for (int i = 0; i < engine.n_threads; ++i) engine.fibers[i].status = ready;
    engine.n_at_barrier = 0;
    if (engine.seed > 1) permute(engine.order, unsigned(engine.n_threads));
    return true;
}

static void run_block() {
    const int n = engine.n_threads;
    engine.n_exited = engine.n_at_barrier = 0;
    memset(engine.waiting, 0, sizeof engine.waiting);
    memset(engine.gone, 0, sizeof engine.gone);
    for (int i = 0; i < n; ++i) engine.fibers[i].status = fresh;
    if (__start_sk_shared) memset(__start_sk_shared, poison, size_t(__stop_sk_shared - __start_sk_shared));
    memset(engine.pool, poison, engine.pool_used + pool_guard);
    if (engine.seed > 1) permute(engine.order, unsigned(n));
    for (;;) {
        bool ran = false;
        for (int i = 0; i < n; ++i) {
            Fiber& fiber = engine.fibers[engine.order[i]];
            if (fiber.status > ready) continue;
            resume(fiber);
            if (engine.failed) return;
            ran = true;
        }
        if (engine.n_exited == n) break;
        if (ran || open_barrier()) continue;
        return report_stuck();
    }
    for (unsigned i = 0; i < pool_guard; ++i)
        if (engine.pool[engine.pool_used + i] != poison)
            return error_outside(
                "write past the %u bytes of dynamic shared memory in kernel %s, block (%u, %u, %u)",
                engine.pool_used, engine.kernel, engine.block.x, engine.block.y, engine.block.z);
}

static void on_signal(int number) {
    if (!pthread_equal(pthread_self(), engine.os_thread)) {
        signal(number, SIG_DFL);
        raise(number);
    }
    siglongjmp(engine.escape, number);
}

static void run_grid() {
    const uint64_t n = uint64_t(engine.grid_dim.x) * engine.grid_dim.y * engine.grid_dim.z;
    unsigned* order = n < (1u << 26) ? static_cast<unsigned*>(malloc(n * sizeof(unsigned))) : nullptr;
    if (!order) return error_outside("%llu blocks are too many to emulate", (unsigned long long)n);
    permute(order, unsigned(n));
    const int number = sigsetjmp(engine.escape, 1);
    if (number == 0) {
        for (uint64_t i = 0; i < n && !engine.failed; ++i) {
            const unsigned x = engine.grid_dim.x, y = engine.grid_dim.y;
            engine.block = {order[i] % x, order[i] / x % y, order[i] / x / y};
            run_block();
        }
    } else {
        const uint3 block = engine.block, thread = engine.thread;
        error_outside(
            "invalid memory access or stack overflow (signal %d) in kernel %s, block (%u, %u, %u), "
            "thread (%u, %u, %u)",
            number, engine.kernel, block.x, block.y, block.z, thread.x, thread.y, thread.z);
    }
    free(order);
}

int launch(const char* kernel, void (*thunk)(const unsigned char*), const unsigned char* slots,
           const unsigned* shape, uint64_t seed, Stacks* stacks) {
    engine.kernel = kernel;
    engine.thunk = thunk;
    engine.slots = slots;
    engine.stacks = stacks;
    engine.n_free = int(stacks->made);
    engine.grid_dim = dim3(shape[0], shape[1], shape[2]);
    engine.block_dim = dim3(shape[3], shape[4], shape[5]);
    engine.pool_used = shape[6];
    engine.n_threads = int(shape[3] * shape[4] * shape[5]);
    engine.random = engine.seed = seed;
    engine.failed = false;
    engine.os_thread = pthread_self();
    for (int i = 0; i < engine.n_threads; ++i) {
        const unsigned u = unsigned(i), x = shape[3], y = shape[4];
        engine.fibers[i] = Fiber{};
        engine.fibers[i].number = u;
        engine.fibers[i].thread = {u % x, u / x % y, u / x / y};
    }
    permute(engine.order, unsigned(engine.n_threads));

    // an invalid pointer ends the launch and not the process
    const int numbers[3] = {SIGSEGV, SIGBUS, SIGFPE};
    struct sigaction mine = {}, before[3];
    stack_t stack = {}, stack_before;
    stack.ss_sp = engine.signal_stack;
    stack.ss_size = sizeof engine.signal_stack;
    sigaltstack(&stack, &stack_before);
    mine.sa_handler = on_signal;
    mine.sa_flags = SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 3; ++i) sigaction(numbers[i], &mine, &before[i]);
    run_grid();
    for (int i = 0; i < 3; ++i) sigaction(numbers[i], &before[i], nullptr);
    sigaltstack(&stack_before, nullptr);

    if (engine.failed)
        for (int i = 0; i < engine.n_threads; ++i)
            if (engine.fibers[i].stack) stacks->free[engine.n_free++] = engine.fibers[i].stack;
    return engine.failed;
}

}  // namespace sk_emulated
