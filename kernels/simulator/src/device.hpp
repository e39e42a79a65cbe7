// What CUDA C++ knows by itself, for the host's compiler. `GROUPS` says whether invocations of a
// block wait for each other; if so, each has a stack of its own, and they take turns.
//
// Headers of the standard library take longer to read than most programs to compile: none is included.

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(most)
#define __shared__ static
#define __align__(n)
#define __restrict__ __restrict
#define __popc __builtin_popcount

struct Place {
    unsigned x, y, z;
};
static Place blockIdx, threadIdx, blockDim, gridDim;

template <class T> static inline T min(T x, T y) { return y < x ? y : x; }
template <class T> static inline T max(T x, T y) { return x < y ? y : x; }
static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline float ceil(float x) { return __builtin_ceilf(x); }
static inline float floor(float x) { return __builtin_floorf(x); }
static inline float trunc(float x) { return __builtin_truncf(x); }
static inline float sqrt(float x) { return __builtin_sqrtf(x); }
static inline float rintf_(float x) { return __builtin_rintf(x); }
static inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline float fmaxf_(float x, float y) { return __builtin_fmaxf(x, y); }
static inline float expf_(float x) { return __builtin_expf(x); }
#define expf expf_
#define rintf rintf_
#define fmaxf fmaxf_
static inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }

static inline void __simulated_copy(unsigned short* to, const unsigned short* from, bool is_there) {
    for (int i = 0; i < 8; i++) to[i] = is_there ? from[i] : 0;
}
static inline float __simulated_exp(float x) { return __builtin_exp2f(x * 1.44269504f); }

#if GROUPS
#include <ucontext.h>

enum State { RUNS, WAITS_FOR_WARP, WAITS_FOR_BLOCK, ENDED };
static const unsigned WARP = 32, STACK = 1 << 16;
static ucontext_t scheduler, fibers[1024];
static State states[1024];
static float told[1024];
static unsigned current;

static void wait_(State state) {
    states[current] = state;
    swapcontext(&fibers[current], &scheduler);
}
static void __syncthreads() { wait_(WAITS_FOR_BLOCK); }
static void __syncwarp(unsigned = 0xffffffffu) { wait_(WAITS_FOR_WARP); }
static float __shfl_xor_sync(unsigned, float x, int far) {
    told[current] = x;
    wait_(WAITS_FOR_WARP);
    float found = told[current ^ far];
    wait_(WAITS_FOR_WARP);
    return found;
}

// Instructions on matrices that a warp holds: everybody tells what it has and computes its own part.
static unsigned parts[1024][6];
static const unsigned short* rows[1024];
template <class W>
static void __simulated_mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, W wide) {
    for (int i = 0; i < 4; i++) parts[current][i] = a[i];
    parts[current][4] = b0;
    parts[current][5] = b1;
    wait_(WAITS_FOR_WARP);
    unsigned first = current / WARP * WARP, lane = current % WARP;
    auto half = [&](unsigned from, unsigned part, unsigned at) {
        return wide((unsigned short)(parts[first + from][part] >> 16 * (at % 2)));
    };
    for (unsigned e = 0; e < 4; e++) {
        unsigned row = lane / 4, column = lane % 4 * 2 + e % 2;
        for (unsigned k = 0; k < 16; k++) {
            float x = half(row * 4 + k % 8 / 2, e / 2 + k / 8 * 2, k);
            float y = half(column * 4 + k % 8 / 2, 4 + k / 8, k);
            c[e] += x * y;
        }
    }
    wait_(WAITS_FOR_WARP);
}
static void __simulated_load(unsigned (&b)[4], const unsigned short* at, bool turned) {
    rows[current] = at;
    wait_(WAITS_FOR_WARP);
    unsigned first = current / WARP * WARP, lane = current % WARP;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned short** own = rows + first + i * 8;
        unsigned near = lane / 4, pair = lane % 4 * 2;
        unsigned low = turned ? own[pair][near] : own[near][pair];
        unsigned high = turned ? own[pair + 1][near] : own[near][pair + 1];
        b[i] = low | high << 16;
    }
    wait_(WAITS_FOR_WARP);
}
static void __simulated_ldmatrix(unsigned (&b)[4], const unsigned short* at) { __simulated_load(b, at, false); }
static void __simulated_ldmatrix_trans(unsigned (&b)[4], const unsigned short* at) { __simulated_load(b, at, true); }
#endif

// The program.

template <class T> struct Size { static const int value = sizeof(T); };
template <class T> struct Size<T*> { static const int value = -(int)sizeof(T*); };

template <unsigned... at> struct Indices {};
template <unsigned n, unsigned... at> struct Count : Count<n - 1, n - 1, at...> {};
template <unsigned... at> struct Count<0, at...> { using type = Indices<at...>; };

template <class... A> struct Call {
    static const int count = sizeof...(A);
    static constexpr int sizes[count + 1] = {Size<A>::value..., 0};
    template <unsigned... at> static void run(void (*f)(A...), void** values, Indices<at...>) {
        f(*(A*)values[at]...);
    }
};
template <class... A> static Call<A...> call_of(void (*)(A...)) { return {}; }
typedef decltype(call_of(entry)) Entry;

template <class... A> static void run_one(void (*f)(A...), void** values) {
    Call<A...>::run(f, values, typename Count<sizeof...(A)>::type());
}

static void** arguments;

#if GROUPS
static void fiber() {
    run_one(entry, arguments);
    wait_(ENDED);
}

// Whether all invocations from `first` on that have not ended wait for this, and any does.
static bool all_wait(unsigned first, unsigned last, State state) {
    bool any = false;
    for (unsigned at = first; at < last; at++) {
        if (states[at] != ENDED && states[at] != state) return false;
        any |= states[at] == state;
    }
    return any;
}

static bool release(unsigned first, unsigned last, State state) {
    if (!all_wait(first, last, state)) return false;
    for (unsigned at = first; at < last; at++) {
        if (states[at] == state) states[at] = RUNS;
    }
    return true;
}

// Runs a block; false if its invocations wait in vain.
static bool run_block(unsigned threads) {
    static char* stacks = nullptr;
    if (!stacks) stacks = (char*)__builtin_malloc((__SIZE_TYPE__)STACK * 1024);
    for (unsigned at = 0; at < threads; at++) {
        getcontext(&fibers[at]);
        fibers[at].uc_stack.ss_sp = stacks + (__SIZE_TYPE__)STACK * at;
        fibers[at].uc_stack.ss_size = STACK;
        fibers[at].uc_link = nullptr;
        makecontext(&fibers[at], fiber, 0);
        states[at] = RUNS;
    }
    for (;;) {
        // The last goes first: nobody may rely on an order.
        for (unsigned at = threads; at-- > 0;) {
            if (states[at] != RUNS) continue;
            current = at;
            threadIdx = {at % blockDim.x, at / blockDim.x % blockDim.y, at / blockDim.x / blockDim.y};
            swapcontext(&scheduler, &fibers[at]);
        }
        bool goes_on = false, ended = true;
        for (unsigned warp = 0; warp < threads; warp += WARP) {
            goes_on |= release(warp, min(warp + WARP, threads), WAITS_FOR_WARP);
        }
        goes_on |= release(0, threads, WAITS_FOR_BLOCK);
        for (unsigned at = 0; at < threads; at++) ended &= states[at] == ENDED;
        if (ended) return true;
        if (!goes_on) return false;
    }
}
#else
static bool run_block(unsigned) {
    for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
        for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) run_one(entry, arguments);
    return true;
}
#endif

extern "C" {
extern const int simulated_count;
extern const int* const simulated_parameters;
const int simulated_count = Entry::count;
const int* const simulated_parameters = Entry::sizes;

int simulated_run(void** values, const unsigned* grid, const unsigned* block) {
    arguments = values;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = grid[0]; x-- > 0;) {
                blockIdx = {x, y, z};
                if (!run_block(block[0] * block[1] * block[2])) return 1;
            }
    return 0;
}
}
