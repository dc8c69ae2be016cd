// Barriers, warp collectives and what ends a launch: the calls in which a fiber waits for others.
#include "cuda_engine.h"

namespace sk_emulated {

void wait_for_block(int line) {
    Fiber& self = *engine.current;
    self.status = at_barrier;
    self.operation = syncthreads;
    self.line = line;
    ++engine.n_at_barrier;
    leave();
}

// All lanes of the mask wait. False: some of them wait for others first.
static bool complete(Fiber* warp, unsigned mask) {
    const Fiber& self = *engine.current;
    const unsigned own = self.number % lanes;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        if (!(mask >> lane & 1)) continue;
        const Fiber& other = warp[lane];
        if (other.mask != mask) {
            if (!(other.mask >> own & 1)) return false;
            fail("%s with mask 0x%08x (line %d) meets %s of lane %u with mask 0x%08x (line %d)",
                 operation_names[self.operation], mask, self.line, operation_names[other.operation], lane,
                 other.mask, other.line);
        }
        if (other.operation != self.operation || other.bytes != self.bytes)
            fail("%s (line %d) meets %s of lane %u (line %d), which is another operation or size of value",
                 operation_names[self.operation], self.line, operation_names[other.operation], lane, other.line);
    }
    uint64_t results[lanes] = {};
    unsigned ballots = 0;
    for (unsigned lane = 0; lane < lanes; ++lane)
        if ((mask >> lane & 1) && warp[lane].value != 0) ballots |= 1u << lane;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        if (!(mask >> lane & 1)) continue;
        switch (self.operation) {
            case syncwarp: break;
            case ballot: results[lane] = ballots; break;
            default:
                if (!(mask >> warp[lane].source & 1))
                    fail("%s with mask 0x%08x (line %d): lane %u reads lane %u, which the mask leaves out",
                         operation_names[self.operation], mask, self.line, lane, warp[lane].source);
                results[lane] = warp[warp[lane].source].value;
        }
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        if (!(mask >> lane & 1)) continue;
        warp[lane].value = results[lane];
        warp[lane].status = ready;
    }
    return true;
}

uint64_t wait_for_lanes(Operation operation, unsigned mask, uint64_t value, unsigned argument, int bytes,
                        int line) {
    Fiber& self = *engine.current;
    const unsigned number = self.number / lanes, own = self.number % lanes;
    const char* name = operation_names[operation];
    if (!(mask >> own & 1))
        fail("%s (line %d): lane %u is not in its own mask 0x%08x", name, line, own, mask);
    const unsigned there = unsigned(engine.n_threads) - number * lanes;
    if (there < unsigned(lanes) && mask >> there)
        fail("%s (line %d): mask 0x%08x names lanes that a block of %d threads does not have", name, line,
             mask, engine.n_threads);
    if (mask & engine.gone[number])
        fail("%s (line %d): mask 0x%08x names lanes that have exited (0x%08x)", name, line, mask,
             mask & engine.gone[number]);
    self.operation = operation;
    self.line = line;
    self.mask = mask;
    self.bytes = bytes;
    self.value = value;
    // the lane whose value it gets
    self.source = (operation == shfl_xor ? own ^ argument : argument) & (lanes - 1);
    unsigned& waiting = engine.waiting[number];
    waiting |= 1u << own;
    if ((waiting & mask) == mask && complete(&engine.fibers[number * lanes], mask)) {
        waiting &= ~mask;
        return self.value;
    }
    self.status = at_collective;
    leave();
    return self.value;
}

struct SourceLocation {
    const char* file;
    uint32_t line, column;
};
struct TypeDescriptor {
    uint16_t kind, info;
    char name[1];
};
struct TypeMismatch {
    SourceLocation location;
    const TypeDescriptor* type;
};

}  // namespace sk_emulated

// What g++ and clang call where -fsanitize finds something (cuda_build.py names the kinds): undefined in C++,
// and on a device a fault or another value than here.
#define SK_EMULATED_HANDLER(name, parameters, ...)                                                 \
    extern "C" __attribute__((visibility("hidden"), used)) void __ubsan_handle_##name parameters { \
        sk_emulated::fail(__VA_ARGS__);                                                            \
    }
SK_EMULATED_HANDLER(out_of_bounds, (sk_emulated::SourceLocation* where, void* index),
                    "index %lld out of the bounds of an array (line %u)", (long long)(intptr_t)index,
                    where->line)
SK_EMULATED_HANDLER(shift_out_of_bounds, (sk_emulated::SourceLocation* where, void*, void* count),
                    "shift by %lld bits (line %u)", (long long)(intptr_t)count, where->line)
SK_EMULATED_HANDLER(divrem_overflow, (sk_emulated::SourceLocation* where, void*, void*),
                    "integer division by zero or overflow (line %u)", where->line)
SK_EMULATED_HANDLER(float_cast_overflow, (sk_emulated::SourceLocation* where, void*),
                    "floating-point number without a value of the integer type it is converted to (line %u)",
                    where->line)
SK_EMULATED_HANDLER(type_mismatch_v1, (sk_emulated::TypeMismatch* what, void* address),
                    "misaligned address %p for %s (line %u)", address, what->type->name, what->location.line)
#undef SK_EMULATED_HANDLER
