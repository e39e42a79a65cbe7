//! CPU functions of each primitive for each element type: the table of loops.

use super::{
    cast,
    complex::{self, widely},
    number::{Integer, RealFloat},
    special,
};
use crate::simd::{Vectorized, vectorize};
use bytemuck::Pod;
use ferroflow_ir::{DType, Prim};
use num_complex::Complex;

/// A loop over a block of elements: output, then up to three arguments, as bytes. It returns
/// `false` when an element makes the operation an error.
pub(super) type BlockLoop = fn(&mut [u8], &[u8], &[u8], &[u8]) -> bool;

/// The loop of a primitive on arguments of dtype `args` (of `Select`, that of the values), giving
/// `result`; `None` where the primitive has no meaning for the dtype.
pub(super) fn prim_loop(prim: Prim, args: DType, result: DType) -> Option<BlockLoop> {
    match prim {
        Prim::Cast => return cast::cast_loop(args, result),
        Prim::Chop => return cast::chop_loop(args, result),
        Prim::Select => return select(result),
        Prim::Complex if result == DType::C64 => return Some(complex_of::<f32>),
        Prim::Complex => return Some(complex_of::<f64>),
        _ => {}
    }
    match args.unquantized() {
        DType::F32 => real::<f32>(prim),
        DType::F64 => real::<f64>(prim),
        DType::I8 => integer::<i8>(prim),
        DType::I16 => integer::<i16>(prim),
        DType::I32 => integer::<i32>(prim),
        DType::I64 => integer::<i64>(prim),
        DType::U8 => integer::<u8>(prim),
        DType::U16 => integer::<u16>(prim),
        DType::U32 => integer::<u32>(prim),
        DType::U64 => integer::<u64>(prim),
        DType::Bool => bool_loop(prim),
        DType::C64 => complex::<f32>(prim),
        DType::C128 => complex::<f64>(prim),
        _ => None,
    }
}

fn real<T: RealFloat + Pod>(prim: Prim) -> Option<BlockLoop> {
    use Prim::*;
    let found: BlockLoop = match prim {
        Neg => |o, a, _, _| map(o, a, |x: T| -x),
        Abs => |o, a, _, _| map(o, a, |x: T| x.abs()),
        Sign => |o, a, _, _| map(o, a, |x: T| x.sign()),
        Exp => |o, a, _, _| map(o, a, |x: T| x.exp()),
        Expm1 => |o, a, _, _| map(o, a, |x: T| x.exp_m1()),
        Log => |o, a, _, _| map(o, a, |x: T| x.ln()),
        Log1p => |o, a, _, _| map(o, a, |x: T| x.ln_1p()),
        Sqrt => |o, a, _, _| map(o, a, |x: T| x.sqrt()),
        Rsqrt => |o, a, _, _| map(o, a, |x: T| T::one() / x.sqrt()),
        Sin => |o, a, _, _| map(o, a, |x: T| x.sin()),
        Cos => |o, a, _, _| map(o, a, |x: T| x.cos()),
        Tan => |o, a, _, _| map(o, a, |x: T| x.tan()),
        Asin => |o, a, _, _| map(o, a, |x: T| x.asin()),
        Acos => |o, a, _, _| map(o, a, |x: T| x.acos()),
        Atan => |o, a, _, _| map(o, a, |x: T| x.atan()),
        Sinh => |o, a, _, _| map(o, a, |x: T| x.sinh()),
        Cosh => |o, a, _, _| map(o, a, |x: T| x.cosh()),
        Tanh => |o, a, _, _| map(o, a, |x: T| x.tanh()),
        Asinh => |o, a, _, _| map(o, a, |x: T| x.arsinh()),
        Acosh => |o, a, _, _| map(o, a, |x: T| x.arcosh()),
        // Of positive numbers: by the logarithm of what is near 0, that of negative ones loses digits near -1.
        Atanh => |o, a, _, _| map(o, a, |x: T| x.abs().atanh().copysign(x)),
        Erf => |o, a, _, _| map(o, a, |x: T| x.erf()),
        Erfc => |o, a, _, _| map(o, a, |x: T| x.erfc()),
        Lgamma => |o, a, _, _| map(o, a, |x: T| x.lgamma()),
        Floor => |o, a, _, _| map(o, a, |x: T| x.floor()),
        Ceil => |o, a, _, _| map(o, a, |x: T| x.ceil()),
        Trunc => |o, a, _, _| map(o, a, |x: T| x.trunc()),
        Rint => |o, a, _, _| map(o, a, |x: T| x.rint()),
        Add => |o, a, b, _| zip(o, a, b, |x: T, y: T| x + y),
        Sub => |o, a, b, _| zip(o, a, b, |x: T, y: T| x - y),
        Mul => |o, a, b, _| zip(o, a, b, |x: T, y: T| x * y),
        Div => |o, a, b, _| zip(o, a, b, |x: T, y: T| x / y),
        FloorDiv => |o, a, b, _| zip(o, a, b, |x: T, y: T| (x / y).flush().floor()),
        TruncDiv => |o, a, b, _| zip(o, a, b, |x: T, y: T| (x / y).flush().trunc()),
        FloorMod => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.floor_mod(y)),
        TruncMod => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.trunc_mod(y)),
        Pow => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.powf(y)),
        Atan2 => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.atan2(y)),
        NextAfter => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.next_after(y)),
        Max => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.larger(y)),
        Min => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.smaller(y)),
        Eq => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x == y)),
        Ne => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x != y)),
        Lt => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x < y)),
        Le => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x <= y)),
        Gt => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x > y)),
        Ge => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x >= y)),
        IsNan => |o, a, _, _| map(o, a, |x: T| u8::from(x.is_nan())),
        IsInf => |o, a, _, _| map(o, a, |x: T| u8::from(x.is_infinite())),
        IsFinite => |o, a, _, _| map(o, a, |x: T| u8::from(x.is_finite())),
        Flush => |o, a, _, _| map(o, a, |x: T| x.flush()),
        Prim::Real | Conj => |o, a, _, _| map(o, a, |x: T| x),
        Imag => |o, a, _, _| map(o, a, |_: T| T::zero()),
        Not | PopCount | And | Or | Xor | Shl | Shr => return None,
        Igamma => |o, a, b, _| zip(o, a, b, |x: T, y: T| in_f64(special::igamma, x, y)),
        Igammac => |o, a, b, _| zip(o, a, b, |x: T, y: T| in_f64(special::igammac, x, y)),
        IgammaGradA => |o, a, b, _| zip(o, a, b, |x: T, y: T| in_f64(special::igamma_grad_a, x, y)),
        Zeta => |o, a, b, _| zip(o, a, b, |x: T, y: T| in_f64(special::zeta, x, y)),
        Select | Cast | Chop | Complex => return None,
    };
    Some(found)
}

fn in_f64<T: RealFloat>(function: fn(f64, f64) -> f64, x: T, y: T) -> T {
    T::narrow(function(x.widen(), y.widen()))
}

fn integer<T: Integer + Pod>(prim: Prim) -> Option<BlockLoop> {
    use Prim::*;
    let found: BlockLoop = match prim {
        Neg => |o, a, _, _| map(o, a, |x: T| x.neg()),
        Abs => |o, a, _, _| map(o, a, |x: T| x.abs()),
        Sign => |o, a, _, _| map(o, a, |x: T| x.sign()),
        Not => |o, a, _, _| map(o, a, |x: T| x.not()),
        PopCount => |o, a, _, _| map(o, a, |x: T| x.pop_count()),
        Add => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.add(y)),
        Sub => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.sub(y)),
        Mul => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.mul(y)),
        FloorDiv => |o, a, b, _| try_zip(o, a, b, |x: T, y: T| x.floor_div(y)),
        TruncDiv => |o, a, b, _| try_zip(o, a, b, |x: T, y: T| x.trunc_div(y)),
        FloorMod => |o, a, b, _| try_zip(o, a, b, |x: T, y: T| x.floor_mod(y)),
        TruncMod => |o, a, b, _| try_zip(o, a, b, |x: T, y: T| x.trunc_mod(y)),
        Pow => |o, a, b, _| try_zip(o, a, b, |x: T, y: T| x.pow(y)),
        Max => |o, a, b, _| zip(o, a, b, |x: T, y: T| Ord::max(x, y)),
        Min => |o, a, b, _| zip(o, a, b, |x: T, y: T| Ord::min(x, y)),
        And => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.and(y)),
        Or => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.or(y)),
        Xor => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.xor(y)),
        Shl => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.shl(y)),
        Shr => |o, a, b, _| zip(o, a, b, |x: T, y: T| x.shr(y)),
        Eq => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x == y)),
        Ne => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x != y)),
        Lt => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x < y)),
        Le => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x <= y)),
        Gt => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x > y)),
        Ge => |o, a, b, _| zip(o, a, b, |x: T, y: T| u8::from(x >= y)),
        Floor | Ceil | Trunc | Rint | Real | Conj => |o, a, _, _| map(o, a, |x: T| x),
        Exp | Expm1 | Log | Log1p | Sqrt | Rsqrt | Sin | Cos | Tan | Asin | Acos | Atan | Sinh
        | Cosh | Tanh | Asinh | Acosh | Atanh | Erf | Erfc | Lgamma | Div | Atan2 | NextAfter
        | Igamma | Igammac | IgammaGradA | Zeta | IsNan | IsInf | IsFinite | Imag | Select
        | Cast | Chop | Complex | Flush => return None,
    };
    Some(found)
}

fn bool_loop(prim: Prim) -> Option<BlockLoop> {
    let found: BlockLoop = match prim {
        Prim::Not => |o, a, _, _| map(o, a, |x: u8| x ^ 1),
        Prim::And | Prim::Min => |o, a, b, _| zip(o, a, b, |x: u8, y: u8| x & y),
        Prim::Or | Prim::Max => |o, a, b, _| zip(o, a, b, |x: u8, y: u8| x | y),
        Prim::Xor | Prim::Ne => |o, a, b, _| zip(o, a, b, |x: u8, y: u8| x ^ y),
        Prim::Eq => |o, a, b, _| zip(o, a, b, |x: u8, y: u8| x ^ y ^ 1),
        _ => return None,
    };
    Some(found)
}

fn complex<T: RealFloat + Pod>(prim: Prim) -> Option<BlockLoop>
where
    num_complex::Complex<T>: Pod,
{
    use num_complex::Complex as C;
    let found: BlockLoop = match prim {
        Prim::Neg => |o, a, _, _| map(o, a, |x: C<T>| -x),
        Prim::Abs => |o, a, _, _| map(o, a, |x: C<T>| x.re.hypot(x.im)),
        Prim::Sign => |o, a, _, _| map(o, a, complex::sign::<T>),
        Prim::Exp => |o, a, _, _| map(o, a, complex::exp_of::<T>),
        Prim::Expm1 => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::expm1)),
        Prim::Log => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::log)),
        Prim::Log1p => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::log1p)),
        Prim::Sqrt => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::sqrt)),
        Prim::Rsqrt => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::rsqrt)),
        Prim::Sin => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::sin)),
        Prim::Cos => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::cos)),
        Prim::Tan => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::tan)),
        Prim::Asin => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::asin)),
        Prim::Acos => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::acos)),
        Prim::Atan => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::atan)),
        Prim::Sinh => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::sinh)),
        Prim::Cosh => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::cosh)),
        Prim::Tanh => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::tanh)),
        Prim::Asinh => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::asinh)),
        Prim::Acosh => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::acosh)),
        Prim::Atanh => |o, a, _, _| map(o, a, |x: C<T>| widely(x, complex::atanh)),
        Prim::Real => |o, a, _, _| map(o, a, |x: C<T>| x.re),
        Prim::Imag => |o, a, _, _| map(o, a, |x: C<T>| x.im),
        Prim::Conj => |o, a, _, _| map(o, a, |x: C<T>| x.conj()),
        Prim::Add => |o, a, b, _| zip(o, a, b, |x: C<T>, y: C<T>| x + y),
        Prim::Sub => |o, a, b, _| zip(o, a, b, |x: C<T>, y: C<T>| x - y),
        Prim::Mul => {
            |o, a, b, _| zip_vectors::<T>(o, a, b, complex::product, complex::whole_product)
        }
        Prim::Div => {
            |o, a, b, _| zip_vectors::<T>(o, a, b, complex::quotient, complex::whole_quotient)
        }
        Prim::Pow => |o, a, b, _| zip(o, a, b, complex::pow_of::<T>),
        Prim::Eq => |o, a, b, _| zip(o, a, b, |x: C<T>, y: C<T>| u8::from(x == y)),
        Prim::Ne => |o, a, b, _| zip(o, a, b, |x: C<T>, y: C<T>| u8::from(x != y)),
        _ => return None,
    };
    Some(found)
}

/// Applies `vector` to as many pairs of complex numbers as fill vectors of 32 bytes, and `single`
/// to those left over. TensorFlow's x86 build does so, and the two differ at infinities.
fn zip_vectors<T: RealFloat>(
    out: &mut [u8],
    a: &[u8],
    b: &[u8],
    vector: impl Fn(Complex<T>, Complex<T>) -> Complex<T>,
    single: impl Fn(Complex<T>, Complex<T>) -> Complex<T>,
) -> bool
where
    Complex<T>: Pod,
{
    let (out, out_rest) = out.split_at_mut(out.len() / 32 * 32);
    let ((a, a_rest), (b, b_rest)) = (a.split_at(out.len()), b.split_at(out.len()));
    zip(out, a, b, vector) && zip(out_rest, a_rest, b_rest, single)
}

fn select(values: DType) -> Option<BlockLoop> {
    fn choose<T: Pod>(out: &mut [u8], condition: &[u8], then: &[u8], otherwise: &[u8]) -> bool {
        let (out, then) =
            (bytemuck::cast_slice_mut::<_, T>(out), bytemuck::cast_slice::<_, T>(then));
        let otherwise = bytemuck::cast_slice::<_, T>(otherwise);
        for (index, cell) in out.iter_mut().enumerate() {
            *cell = if condition[index] != 0 { then[index] } else { otherwise[index] };
        }
        true
    }
    match values.size()? {
        1 => Some(choose::<u8>),
        2 => Some(choose::<u16>),
        4 => Some(choose::<u32>),
        8 => Some(choose::<u64>),
        16 => Some(choose::<[u64; 2]>),
        _ => None,
    }
}

fn complex_of<T: Pod>(out: &mut [u8], real: &[u8], imag: &[u8], _: &[u8]) -> bool
where
    Complex<T>: Pod,
{
    zip(out, real, imag, |re: T, im: T| Complex { re, im })
}

/// Applies a function to each element.
pub(super) fn map<T: Pod, R: Pod>(out: &mut [u8], a: &[u8], function: impl Fn(T) -> R) -> bool {
    struct Map<'a, T, R, F>(&'a mut [R], &'a [T], F);
    impl<T: Copy, R, F: Fn(T) -> R> Vectorized for Map<'_, T, R, F> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            self.0.iter_mut().zip(self.1).for_each(|(out, &x)| *out = (self.2)(x));
        }
    }
    let (out, a): (&mut [R], &[T]) = (bytemuck::cast_slice_mut(out), bytemuck::cast_slice(a));
    if let ([out], [x]) = (&mut *out, a) {
        *out = function(*x);
        return true;
    }
    vectorize(Map(out, a, function));
    true
}

/// Applies a function to each pair of elements.
fn zip<T: Pod, R: Pod>(out: &mut [u8], a: &[u8], b: &[u8], function: impl Fn(T, T) -> R) -> bool {
    struct Zip<'a, T, R, F>(&'a mut [R], &'a [T], &'a [T], F);
    impl<T: Copy, R, F: Fn(T, T) -> R> Vectorized for Zip<'_, T, R, F> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let pairs = self.1.iter().zip(self.2);
            self.0.iter_mut().zip(pairs).for_each(|(out, (&x, &y))| *out = (self.3)(x, y));
        }
    }
    let (a, b): (&[T], &[T]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    let out: &mut [R] = bytemuck::cast_slice_mut(out);
    if let ([out], [x], [y]) = (&mut *out, a, b) {
        *out = function(*x, *y);
        return true;
    }
    vectorize(Zip(out, a, b, function));
    true
}

/// Applies a function that some pairs have no result for.
fn try_zip<T: Pod>(
    out: &mut [u8],
    a: &[u8],
    b: &[u8],
    function: impl Fn(T, T) -> Option<T>,
) -> bool {
    let out: &mut [T] = bytemuck::cast_slice_mut(out);
    let (a, b): (&[T], &[T]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    out.iter_mut().zip(a.iter().zip(b)).all(|(out, (&x, &y))| {
        let result = function(x, y);
        if let Some(result) = result {
            *out = result;
        }
        result.is_some()
    })
}
