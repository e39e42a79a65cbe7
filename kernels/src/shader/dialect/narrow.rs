//! Elements narrower than 32 bits in CUDA C++: they are stored as on the host. Where a body reads
//! one it gets a word, and where it writes a word the element is cut from it.

use ferroflow_ir::DType;
use std::fmt::Write;

/// Access to elements narrower than a storage type. What is read is a value, never a position, so
/// that names bound to it are words. Nothing written is read again.
const PLACES: &str = "\
template <class E> struct In_ {
const typename E::Lies* at;
__device__ __forceinline__ typename E::Word operator[](u32 i) const { return E::wide(at[i]); }
};
template <class E> struct Out_ {
struct Place {
typename E::Lies* at;
__device__ __forceinline__ void operator=(typename E::Word x) const { *at = E::narrow(x); }
};
typename E::Lies* at;
__device__ __forceinline__ Place operator[](u32 i) const { return {at + i}; }
};
";

const INT: &str = "\
template <class T, class W> struct Int_ {
typedef T Lies;
typedef W Word;
static __device__ __forceinline__ W wide(T x) { return x; }
static __device__ __forceinline__ T narrow(W x) { return T(x); }
};
";

/// The processor converts; the language has no such type without NVIDIA's headers. Compilers of the
/// host, which tests use, have one of their own.
const HALF: &str = "\
struct Half_ {
typedef unsigned short Lies;
typedef f32 Word;
static __device__ __forceinline__ f32 wide(Lies x) {
#ifdef __CUDA_ARCH__
f32 y;
asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x));
return y;
#else
return __builtin_bit_cast(_Float16, x);
#endif
}
static __device__ __forceinline__ Lies narrow(f32 x) {
#ifdef __CUDA_ARCH__
Lies y;
asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));
return y;
#else
return __builtin_bit_cast(Lies, (_Float16)x);
#endif
}
};
";

/// Upper halves of floats: rounded to even numbers at halves; NaN stays one and becomes quiet.
const BRAIN: &str = "\
struct Brain_ {
typedef unsigned short Lies;
typedef f32 Word;
static __device__ __forceinline__ f32 wide(Lies x) { return __uint_as_float((u32)x << 16u); }
static __device__ __forceinline__ Lies narrow(f32 x) {
u32 bits = __float_as_uint(x);
if (x != x) { return (bits >> 16u) | 0x40u; }
return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
};
";

/// The definition of a dtype's elements, their name, and the type they are stored as; `None` for
/// those that are words.
fn element(dtype: DType) -> Option<(&'static str, &'static str, &'static str)> {
    match dtype {
        DType::F16 => Some((HALF, "Half_", "unsigned short")),
        DType::BF16 => Some((BRAIN, "Brain_", "unsigned short")),
        DType::I8 => Some((INT, "Int_<signed char, i32>", "signed char")),
        DType::I16 => Some((INT, "Int_<short, i32>", "short")),
        DType::U8 | DType::Bool => Some((INT, "Int_<unsigned char, u32>", "unsigned char")),
        DType::U16 => Some((INT, "Int_<unsigned short, u32>", "unsigned short")),
        _ => None,
    }
}

/// Definitions that elements of these dtypes need.
pub(super) fn definitions(dtypes: impl Iterator<Item = DType>) -> String {
    let mut needed: Vec<&str> = dtypes.filter_map(|dtype| Some(element(dtype)?.0)).collect();
    needed.sort_unstable();
    needed.dedup();
    if !needed.is_empty() {
        needed.insert(0, PLACES);
    }
    needed.concat()
}

/// The parameter of a buffer called `name` of elements of a dtype, which bodies read as 32-bit
/// scalars. What makes one of the other is added to `opening`, where they differ.
pub(super) fn parameter(
    dtype: DType,
    word: &str,
    name: &str,
    is_input: bool,
    opening: &mut String,
) -> String {
    let (constant, place) = if is_input { ("const ", "In_") } else { ("", "Out_") };
    let Some((_, element, lies)) = element(dtype) else {
        return format!("{constant}{word}* __restrict__ {name}");
    };
    let _ = writeln!(opening, "    const {place}<{element}> {name}{{{name}_}};");
    format!("{constant}{lies}* __restrict__ {name}_")
}
