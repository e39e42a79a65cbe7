//! Products, convolutions, transforms, decompositions, normalisation, random bits.

use super::{
    super::{
        constant::{dtype, malformed, unsupported},
        module::HloOp,
    },
    ImportScope, exactly,
};
use ferroflow_ir::{
    Attrs, DType, Result,
    emit::{Value, call, call_with, calls_with},
    xla::{
        conv::{ConvAxes, ConvWindow, convolution},
        dot::{DotAxes, dot_general},
        rng::{self, BitGenerator},
        size::{self, Size, of_vector, rank, sizes},
    },
};

/// The results of an operation of linear algebra; `None` for another one.
pub(super) fn linalg<'e>(
    _scope: ImportScope<'e>,
    op: &HloOp,
    x: &[Value<'e>],
) -> Result<Option<Vec<Value<'e>>>> {
    let result = match &*op.name {
        "dot_general" => {
            let [a, b] = *exactly(op, x)?;
            let axes = DotAxes {
                lhs_batch: op.axes("lhs_batching_dimensions", rank(a))?,
                rhs_batch: op.axes("rhs_batching_dimensions", rank(b))?,
                lhs_contracting: op.axes("lhs_contracting_dimensions", rank(a))?,
                rhs_contracting: op.axes("rhs_contracting_dimensions", rank(b))?,
            };
            dot(op, a, b, &axes)?
        }
        "dot" => {
            let [a, b] = *exactly(op, x)?;
            let last = rank(a).checked_sub(1).ok_or_else(|| malformed(op, "it has vectors"))?;
            let axes = DotAxes {
                lhs_contracting: vec![last],
                rhs_contracting: vec![0],
                ..DotAxes::default()
            };
            dot(op, a, b, &axes)?
        }
        "einsum" | "unary_einsum" => {
            let equation = op.text("einsum_config")?;
            if x.is_empty() {
                return Err(malformed(op, "it has operands"));
            }
            calls_with("Einsum", Attrs::new().with("equation", equation), x).at(0)
        }
        "convolution" | "dynamic_conv" => conv(op, x)?,
        "fft" => fft(op, x)?,
        "cholesky" => {
            let [a] = *exactly(op, x)?;
            match op.flag("lower")? {
                true => call("Cholesky", [a]),
                false => turned(call("Cholesky", [turned(a)])),
            }
        }
        "triangular_solve" => triangular_solve(op, x)?,
        "rng_bit_generator" => {
            let [state] = *exactly(op, x)?;
            let algorithm = op.case("rng_algorithm")? as i32;
            let ty = op.results.get(1).map(|(_, ty)| ty);
            let Some(super::super::module::Type::Tensor(ty)) = ty else {
                return Err(malformed(op, "it has a state and bits as results"));
            };
            let dims: Option<Vec<i64>> =
                ty.dims.iter().map(|dim| dim.map(|size| size as i64)).collect();
            let dims = dims.ok_or_else(|| malformed(op, "its result is of known size"))?;
            let shape = state.int_vector(&dims);
            return random_bits(algorithm, state, shape, dtype(ty.element)?).map(Some);
        }
        "rng" => random(op, x)?,
        "batch_norm_inference" => {
            let [a, scale, offset, mean, variance] = *exactly(op, x)?;
            let norm = Norm::new(op, a)?;
            norm.applied(a, scale, offset, mean, variance)
        }
        "batch_norm_training" => {
            let [a, scale, offset] = *exactly(op, x)?;
            let norm = Norm::new(op, a)?;
            let (mean, variance) = norm.moments(a);
            return Ok(Some(vec![norm.applied(a, scale, offset, mean, variance), mean, variance]));
        }
        "batch_norm_grad" => {
            let [a, scale, mean, variance, dy] = *exactly(op, x)?;
            return Ok(Some(Norm::new(op, a)?.gradients(a, scale, mean, variance, dy)));
        }
        _ => return Ok(None),
    };
    Ok(Some(vec![result]))
}

/// Bits, for a state of `u64` or of pairs of `u32`.
pub(super) fn random_bits<'e>(
    algorithm: i32,
    state: Value<'e>,
    shape: Value<'e>,
    dtype: DType,
) -> Result<Vec<Value<'e>>> {
    let narrow = state.dtype() == DType::U32;
    let words = match narrow {
        true => {
            let pairs = size::reshape(
                state,
                &[size::sizes_of_rank(state, 1)[0].divided(2), Size::Known(2)],
            );
            call_with("Bitcast", Attrs::new().with("type", DType::U64), [pairs])
        }
        false => state,
    };
    let plain = if dtype == DType::U16 || dtype == DType::I16 { DType::U32 } else { dtype };
    // StableHLO counts from 0, which is the platform's: Threefry is 1, Philox 2.
    let algorithm = if algorithm == 1 { BitGenerator::Threefry } else { BitGenerator::Philox };
    let inputs = [state.literal(algorithm.number()), words, shape.cast(DType::I64)];
    let found = calls_with("XlaRngBitGenerator", rng::attrs(plain), &inputs);
    let next = match narrow {
        true => {
            let halves = call_with("Bitcast", Attrs::new().with("type", DType::U32), [found.at(0)]);
            size::reshape(halves, &sizes(state))
        }
        false => found.at(0),
    };
    Ok(vec![next, found.at(1).cast(dtype)])
}

fn dot<'e>(op: &HloOp, a: Value<'e>, b: Value<'e>, axes: &DotAxes) -> Result<Value<'e>> {
    match axes.fits(rank(a), rank(b)) {
        true => Ok(dot_general(a, b, axes, dtype(op.result_type(0)?.element)?)),
        false => Err(malformed(op, "its axes are those of its operands")),
    }
}

fn conv<'e>(op: &HloOp, x: &[Value<'e>]) -> Result<Value<'e>> {
    let (a, b, told) = match x {
        [a, b] => (*a, *b, None),
        [a, b, padding] => (*a, *b, Some(*padding)),
        _ => return Err(malformed(op, "it has an image and a kernel")),
    };
    let n = rank(a);
    let axis = |name: &str| op.axis(name, n);
    let axes = ConvAxes {
        input: [axis("input_batch_dimension")?, axis("input_feature_dimension")?],
        input_spatial: op.axes("input_spatial_dimensions", n)?,
        kernel: [axis("kernel_input_feature_dimension")?, axis("kernel_output_feature_dimension")?],
        kernel_spatial: op.axes("kernel_spatial_dimensions", n)?,
        output: [axis("output_batch_dimension")?, axis("output_feature_dimension")?],
        output_spatial: op.axes("output_spatial_dimensions", n)?,
    };
    let spatial = axes.input_spatial.len();
    let or = |list: Vec<i64>, default: i64| {
        if list.is_empty() { vec![default; spatial] } else { list }
    };
    let padding = match told {
        None => {
            let flat = op.ints("padding")?;
            let flat = if flat.is_empty() { vec![0; 2 * spatial] } else { flat };
            flat.chunks_exact(2).map(|pair| (pair[0].into(), pair[1].into())).collect()
        }
        Some(told) => {
            let flat = size::reshape(told, &[Size::Known(2 * spatial as i64)]);
            of_vector(flat).chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
        }
    };
    let reversal = op.flags("window_reversal")?;
    let window = ConvWindow {
        stride: or(op.ints("window_strides")?, 1),
        padding,
        lhs_dilation: or(op.ints("lhs_dilation")?, 1),
        rhs_dilation: or(op.ints("rhs_dilation")?, 1),
        reversal: if reversal.is_empty() { vec![false; spatial] } else { reversal },
        feature_groups: op.int("feature_group_count")?,
        batch_groups: op.int("batch_group_count")?,
    };
    if !axes.fits(n) || rank(b) != n || !window.fits(spatial) {
        return Err(malformed(op, "its axes are those of its operands"));
    }
    let result = dtype(op.result_type(0)?.element)?;
    let found = convolution(a, b, &axes, &window, result);
    found.ok_or_else(|| unsupported(op, "more than three spatial axes, or very many groups"))
}

fn fft<'e>(op: &HloOp, x: &[Value<'e>]) -> Result<Value<'e>> {
    let [a] = *exactly(op, x)?;
    let length = op.ints("fft_length")?;
    let suffix = match length.len() {
        1 => "",
        2 => "2D",
        3 => "3D",
        _ => return Err(unsupported(op, "a transform along more than three axes")),
    };
    let sizes: Vec<i32> = length
        .iter()
        .map(|&size| i32::try_from(size).map_err(|_| malformed(op, "a transform has a length")))
        .collect::<Result<_>>()?;
    let complex = |real: DType| if real == DType::F64 { DType::C128 } else { DType::C64 };
    let wide: Vec<i64> = sizes.iter().map(|&size| i64::from(size)).collect();
    Ok(match op.case("fft_type")? {
        0 => call(&format!("FFT{suffix}"), [a]),
        1 => call(&format!("IFFT{suffix}"), [a]),
        2 => {
            let attrs = Attrs::new().with("Tcomplex", complex(a.dtype()));
            call_with(&format!("RFFT{suffix}"), attrs, [a, a.int32_vector(&wide)])
        }
        3 => {
            let attrs = Attrs::new().with("Treal", a.dtype().real_type());
            call_with(&format!("IRFFT{suffix}"), attrs, [a, a.int32_vector(&wide)])
        }
        _ => return Err(malformed(op, "a transform is of a type")),
    })
}

/// Matrices with rows and columns exchanged.
pub(super) fn transposed<'e>(x: Value<'e>) -> Value<'e> {
    let mut order: Vec<usize> = (0..rank(x)).collect();
    let at = order.len().saturating_sub(2);
    order[at..].reverse();
    size::transpose(x, &order)
}

/// The adjoint of matrices.
pub(super) fn turned<'e>(x: Value<'e>) -> Value<'e> {
    transposed(x).adjoint()
}

fn triangular_solve<'e>(op: &HloOp, x: &[Value<'e>]) -> Result<Value<'e>> {
    let [a, b] = *exactly(op, x)?;
    let transpose = match op.case("transpose_a")? {
        0 | 1 => MatrixOf::Itself,
        2 => MatrixOf::Transpose,
        3 => MatrixOf::Adjoint,
        _ => return Err(malformed(op, "a matrix is transposed or not")),
    };
    let triangle = Triangle {
        left: op.flag("left_side")?,
        lower: op.flag("lower")?,
        unit: op.flag("unit_diagonal")?,
        matrix: transpose,
    };
    Ok(triangle.solve(a, b))
}

/// The matrix of an equation.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum MatrixOf {
    Itself,
    Transpose,
    Adjoint,
}

/// A system of equations with a triangle.
pub(super) struct Triangle {
    /// Whether the matrix is left of what is looked for.
    pub(super) left: bool,
    pub(super) lower: bool,
    /// Whether the diagonal is 1, whatever the matrix has there.
    pub(super) unit: bool,
    pub(super) matrix: MatrixOf,
}

impl Triangle {
    pub(super) fn solve<'e>(&self, a: Value<'e>, b: Value<'e>) -> Value<'e> {
        let (left, lower) = (self.left, self.lower);
        let a = match self.unit {
            true => {
                let mut row = sizes(a);
                row.pop();
                let ones = size::broadcast(a.like(1.0), &row);
                call("MatrixSetDiag", [a, ones])
            }
            false => a,
        };
        let complex = a.dtype().is_complex();
        // The matrix of the equation is `a`, its transpose or its adjoint.
        let (matrix, adjoint) = match self.matrix {
            MatrixOf::Itself => (a, false),
            MatrixOf::Transpose if complex => (a.conj(), true),
            MatrixOf::Transpose | MatrixOf::Adjoint => (a, true),
        };
        let solve = |matrix: Value<'e>, b: Value<'e>, adjoint: bool| {
            let attrs = Attrs::new().with("lower", lower).with("adjoint", adjoint);
            call_with("MatrixTriangularSolve", attrs, [matrix, b])
        };
        match left {
            true => solve(matrix, b, adjoint),
            // x a = b where aᴴ xᴴ = bᴴ.
            false => turned(solve(matrix, turned(b), !adjoint)),
        }
    }
}

fn random<'e>(op: &HloOp, x: &[Value<'e>]) -> Result<Value<'e>> {
    let [a, b, shape] = *exactly(op, x)?;
    let dtype = a.dtype();
    let real = if dtype.is_float() { dtype } else { DType::F64 };
    let attrs = Attrs::new().with("dtype", real);
    Ok(match op.case("rng_distribution")? {
        1 => {
            let drawn = call_with("RandomUniform", attrs, [shape]);
            let (a, b) = (a.cast(real), b.cast(real));
            let scaled = a + drawn * (b - a);
            if dtype.is_float() { scaled } else { call("Floor", [scaled]).cast(dtype) }
        }
        2 => a + call_with("RandomStandardNormal", attrs, [shape]).cast(dtype) * b,
        _ => return Err(malformed(op, "random numbers have a distribution")),
    })
}

/// Batch normalisation along all axes but one.
struct Norm<'e> {
    epsilon: f64,
    /// The sizes of a vector of features beside the operand.
    shape: Vec<Size<'e>>,
    whole: Vec<Size<'e>>,
    axes: Vec<i64>,
    feature: usize,
}

impl<'e> Norm<'e> {
    fn new(op: &HloOp, x: Value<'e>) -> Result<Norm<'e>> {
        let feature = op.axis("feature_index", rank(x))?;
        let whole = sizes(x);
        let mut shape = vec![Size::Known(1); whole.len()];
        shape[feature] = whole[feature];
        let axes = (0..whole.len()).filter(|&axis| axis != feature).map(|axis| axis as i64);
        let epsilon = op.float("epsilon")?;
        Ok(Norm { epsilon, shape, axes: axes.collect(), whole, feature })
    }

    fn wide(&self, x: Value<'e>) -> Value<'e> {
        size::reshape(x, &self.shape)
    }

    fn moments(&self, x: Value<'e>) -> (Value<'e>, Value<'e>) {
        let mean = x.mean(&self.axes, false);
        let variance = (x - self.wide(mean)).square().mean(&self.axes, false);
        (mean, variance)
    }

    fn applied(
        &self,
        x: Value<'e>,
        scale: Value<'e>,
        offset: Value<'e>,
        mean: Value<'e>,
        variance: Value<'e>,
    ) -> Value<'e> {
        let deviation = (self.wide(variance) + self.epsilon).sqrt();
        (x - self.wide(mean)) / deviation * self.wide(scale) + self.wide(offset)
    }

    fn gradients(
        &self,
        x: Value<'e>,
        scale: Value<'e>,
        mean: Value<'e>,
        variance: Value<'e>,
        dy: Value<'e>,
    ) -> Vec<Value<'e>> {
        let rows = self.whole.iter().enumerate().filter(|(axis, _)| *axis != self.feature);
        let count = rows.fold(Size::Known(1), |a, (_, &b)| a.times(b));
        let count = count.value(x).cast(x.dtype());
        let inverse = (variance + self.epsilon).rsqrt();
        let centred = (x - self.wide(mean)) * self.wide(inverse);
        let d_offset = dy.sum(&self.axes, false);
        let d_scale = (dy * centred).sum(&self.axes, false);
        let inner = dy - self.wide(d_offset / count) - centred * self.wide(d_scale / count);
        let d_x = inner * self.wide(scale * inverse);
        vec![d_x, d_scale, d_offset]
    }
}
