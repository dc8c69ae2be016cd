// The kernels of a module as Python sees them: a description each, made of the types that the compiler saw.
#pragma once
#include <type_traits>
#include <utility>

namespace sk_emulated {

// "float64:8": what NumPy calls the elements of an array, and the alignment of what the pointer points to
template <class Element>
constexpr const char* element_name() {
    if (std::is_same_v<Element, bool>) return "bool";
    if (std::is_same_v<Element, unsigned char>) return "uint8|bool";
    if (std::is_same_v<Element, float>) return "float32";
    if (std::is_same_v<Element, double>) return "float64";
    if (!std::is_integral_v<Element> || std::is_same_v<Element, char>) return "?";
    if (std::is_signed_v<Element>)
        return sizeof(Element) == 1   ? "int8"
               : sizeof(Element) == 2 ? "int16"
               : sizeof(Element) == 4 ? "int32"
                                      : "int64";
    return sizeof(Element) == 2 ? "uint16" : sizeof(Element) == 4 ? "uint32" : "uint64";
}
template <class Parameter>
static int describe_parameter(char* out, size_t capacity) {
    if constexpr (std::is_same_v<Parameter, long long>) {
        return snprintf(out, capacity, " int64");
    } else if constexpr (std::is_same_v<Parameter, double>) {
        return snprintf(out, capacity, " float64");
    } else if constexpr (std::is_pointer_v<Parameter> && !std::is_void_v<std::remove_pointer_t<Parameter>>) {
        using Pointee = std::remove_pointer_t<Parameter>;
        return snprintf(out, capacity, " %s:%s:%d", std::is_const_v<Pointee> ? "const" : "mutable",
                        element_name<std::remove_cv_t<Pointee>>(), int(alignof(Pointee)));
    } else {
        return snprintf(out, capacity, " ?");
    }
}

template <class... Parameters>
static const char* describe(void (*)(Parameters...), int largest_block, const char* names) {
    static char out[8192];
    size_t n = size_t(snprintf(out, sizeof out, "%d;%s;", largest_block, names));
    ((n += size_t(describe_parameter<std::remove_cv_t<Parameters>>(out + n, sizeof out - n))), ...);
    return out;
}

template <class... Parameters, size_t... positions>
static void call(void (*kernel)(Parameters...), const unsigned char* slots,
                 std::index_sequence<positions...>) {
    kernel(from_bits<std::remove_cv_t<Parameters>>(reinterpret_cast<const uint64_t*>(slots)[positions])...);
}
template <class... Parameters>
static void call(void (*kernel)(Parameters...), const unsigned char* slots) {
    call(kernel, slots, std::make_index_sequence<sizeof...(Parameters)>());
}

}  // namespace sk_emulated

#define SK_EMULATED_KERNEL(kernel, largest_block, names)                                                  \
    extern "C" __attribute__((visibility("default"))) const char* sk_emulated_describe_##kernel() {       \
        return sk_emulated::describe(&kernel, int(largest_block), names);                                 \
    }                                                                                                     \
    extern "C" __attribute__((visibility("default"))) int sk_emulated_launch_##kernel(                    \
        const unsigned char* slots, const unsigned* shape, uint64_t seed, sk_emulated::Stacks* stacks) {  \
        return sk_emulated::launch(                                                                       \
            #kernel, [](const unsigned char* given) { sk_emulated::call(&kernel, given); }, slots, shape, \
            seed, stacks);                                                                                \
    }

extern "C" __attribute__((visibility("default"))) const char* sk_emulated_error() {
    return sk_emulated::engine.error;
}
