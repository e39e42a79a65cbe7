//! Matrices of 16-bit floats that a warp multiplies, in CUDA C++. The host's compiler, which tests
//! use, has the same under other names.

/// Functions on matrices, asynchronous copies to shared memory (`copied_` waits for them), and an
/// exponential for results that are rounded to 16 bits.
pub(super) const DEFINITIONS: &str = "\
template <class E> struct Matrix_;
#ifdef __CUDA_ARCH__
__device__ __forceinline__ f32 near_exp_(f32 x) {
f32 y;
asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x * 1.44269504f));
return y;
}
__device__ __forceinline__ void copy_(unsigned short* to, const unsigned short* from, bool is_there) {
asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\"
:: \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"(from), \"r\"(is_there ? 16 : 0) : \"memory\");
}
__device__ __forceinline__ void copied_() { asm volatile(\"cp.async.wait_all;\" ::: \"memory\"); }
__device__ __forceinline__ void matrices_(u32 (&b)[4], const unsigned short* at) {
asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\"
: \"=r\"(b[0]), \"=r\"(b[1]), \"=r\"(b[2]), \"=r\"(b[3]) : \"r\"((u32)__cvta_generic_to_shared(at)) : \"memory\");
}
__device__ __forceinline__ void turned_(u32 (&b)[4], const unsigned short* at) {
asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\"
: \"=r\"(b[0]), \"=r\"(b[1]), \"=r\"(b[2]), \"=r\"(b[3]) : \"r\"((u32)__cvta_generic_to_shared(at)) : \"memory\");
}
#define MATRIX_(E, type) \\
template <> struct Matrix_<E> { \\
static __device__ __forceinline__ u32 packed(f32 x, f32 y) { \\
u32 z; \\
asm(\"cvt.rn.\" type \"x2.f32 %0, %1, %2;\" : \"=r\"(z) : \"f\"(y), \"f\"(x)); \\
return z; \\
} \\
static __device__ __forceinline__ void multiply(f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { \\
asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.\" type \".\" type \".f32 \" \\
\"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" \\
: \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3]) \\
: \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b0), \"r\"(b1)); \\
} \\
};
#else
#define near_exp_ __simulated_exp
#define copy_ __simulated_copy
#define copied_()
#define matrices_ __simulated_ldmatrix
#define turned_ __simulated_ldmatrix_trans
#define MATRIX_(E, type) \\
template <> struct Matrix_<E> { \\
static u32 packed(f32 x, f32 y) { return (u32)E::narrow(x) | (u32)E::narrow(y) << 16; } \\
static void multiply(f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { \\
__simulated_mma(c, a, b0, b1, [](unsigned short x) { return E::wide(x); }); \\
} \\
};
#endif
template <class E> __device__ __forceinline__ u32 packed_(f32 x, f32 y) { return Matrix_<E>::packed(x, y); }
template <class E> __device__ __forceinline__ void multiply_(f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
Matrix_<E>::multiply(c, a, b0, b1);
}
";

/// The definition for elements of a name and a type.
pub(super) fn of(element: &str) -> String {
    let ty = if element == "Half_" { "f16" } else { "bf16" };
    format!("MATRIX_({element}, \"{ty}\")\n")
}
