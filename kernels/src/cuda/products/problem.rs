//! Calls that are matmuls, and their problem in the library's terms. Nothing here touches it.
//!
//! The library's matrices lie column by column, those of tensors row by row: the bytes of a matrix
//! `[r, c]` are a matrix of `c` rows there, its transpose. `y = a·b` is therefore asked for as
//! `yᵀ = bᵀ·aᵀ`: the library's first factor is the call's second one, and nothing is moved.

use crate::{
    device::{OpCall, Precision},
    error::Result,
    plan::sliding,
};
use ferroflow_ir::{DType, Shape};

/// Matmul of a call, and the problem for the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MatmulNode {
    pub(super) problem: LibraryProblem,
    /// Where the library's factors are among the call's inputs.
    pub(super) factors: [usize; 2],
    /// Where what is added to each row of the result is, if anything is.
    pub(super) bias: Option<usize>,
}

/// A product as the library sees it: `d = epilogue(op(first) · op(second))`, of
/// `[rows, depth] × [depth, columns]`. Equal problems have one best algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LibraryProblem {
    pub(super) element: MatmulElement,
    /// Whether all bits of `float32` factors count.
    pub(super) is_full: bool,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) depth: usize,
    /// Number of such matmuls, on contiguous matrices.
    pub(super) batch: usize,
    pub(super) first: FactorLayout,
    pub(super) second: FactorLayout,
    pub(super) epilogue: LibraryEpilogue,
}

/// The type of elements; sums are of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum MatmulElement {
    F32,
    F16,
    BF16,
}

/// Layout of a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FactorLayout {
    /// Whether the transpose of what lies there is multiplied.
    pub(super) is_transposed: bool,
    /// Whether all products of a batch take the same matrix.
    pub(super) is_shared: bool,
}

/// Epilogue of a matmul before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LibraryEpilogue {
    None,
    Bias,
    /// The library's maximum with zero may make zeros of NaN.
    BiasRelu,
    /// By the hyperbolic tangent.
    BiasGelu,
}

/// A matrix in memory as the library sees it; columns follow each other without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MatrixLayout {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Elements from a matrix of the batch to the next.
    pub(super) stride: usize,
}

/// Products of fewer multiplications stay with the texts: starting either takes longer than
/// computing, and models that have only such need not load the library, which is large.
const FEWEST_MULTIPLICATIONS: usize = 32 * 32 * 32;

impl MatmulElement {
    pub(super) fn of(dtype: DType) -> Option<MatmulElement> {
        match dtype {
            DType::F32 => Some(MatmulElement::F32),
            DType::F16 => Some(MatmulElement::F16),
            DType::BF16 => Some(MatmulElement::BF16),
            _ => None,
        }
    }

    /// Bytes.
    pub(super) fn size(self) -> usize {
        match self {
            MatmulElement::F32 => 4,
            MatmulElement::F16 | MatmulElement::BF16 => 2,
        }
    }
}

impl LibraryProblem {
    /// Multiplications, of which each is also an addition; the largest number where they are more.
    pub(super) fn multiplications(&self) -> usize {
        let sizes = [self.rows, self.columns, self.depth, self.batch];
        sizes.into_iter().fold(1, usize::saturating_mul)
    }

    /// Layouts of the first factor, the second, and the result.
    pub(super) fn layouts(&self) -> [MatrixLayout; 3] {
        let lies = |factor: FactorLayout, rows: usize, columns: usize| {
            let (rows, columns) =
                if factor.is_transposed { (columns, rows) } else { (rows, columns) };
            let stride = if factor.is_shared { 0 } else { rows * columns };
            MatrixLayout { rows, columns, stride }
        };
        let own = FactorLayout { is_transposed: false, is_shared: false };
        [
            lies(self.first, self.rows, self.depth),
            lies(self.second, self.depth, self.columns),
            lies(own, self.rows, self.columns),
        ]
    }

    /// Bytes of the first factor, the second, and the result.
    pub(super) fn sizes(&self) -> [usize; 3] {
        self.layouts().map(|layout| {
            let matrices = if layout.stride == 0 { 1 } else { self.batch };
            layout.rows * layout.columns * matrices * self.element.size()
        })
    }
}

impl MatmulNode {
    /// The product that a call is, if it is a large one of floats.
    ///
    /// # Errors
    ///
    /// When the call's attributes do not fit its op.
    pub(super) fn of(call: &OpCall<'_>) -> Result<Option<MatmulNode>> {
        let element = call.outputs.first().and_then(|output| MatmulElement::of(output.dtype));
        let Some(element) = element.filter(|_| call.expr.is_none()) else { return Ok(None) };
        let found = match call.op.name {
            "MatMul" => Some(matmul(call)?),
            "_FusedMatMul" => fused(call)?,
            "BatchMatMul" | "BatchMatMulV2" => batch_matmul(call)?,
            "Conv2D" | "Conv3D" => convolution(call)?,
            "Conv2DBackpropInput" | "Conv2DBackpropInputV2" | "Conv3DBackpropInputV2" => {
                input_gradient(call)?
            }
            "Conv2DBackpropFilter" | "Conv2DBackpropFilterV2" | "Conv3DBackpropFilterV2" => {
                filter_gradient(call)?
            }
            _ => None,
        };
        let Some(Rows { sides: [a, b], sizes: [m, k, n], batch, bias, epilogue }) = found else {
            return Ok(None);
        };
        let problem = LibraryProblem {
            element,
            is_full: call.precision == Precision::Full || element != MatmulElement::F32,
            rows: n,
            columns: m,
            depth: k,
            batch,
            first: b.factor,
            second: a.factor,
            epilogue,
        };
        let is_large = problem.multiplications() >= FEWEST_MULTIPLICATIONS;
        Ok(is_large.then_some(MatmulNode { problem, factors: [b.input, a.input], bias }))
    }
}

/// A product `[m, k] × [k, n]` as calls have it, row by row.
struct Rows {
    sides: [Side; 2],
    sizes: [usize; 3],
    batch: usize,
    bias: Option<usize>,
    epilogue: LibraryEpilogue,
}

/// A factor, and where it is among the inputs.
#[derive(Clone, Copy)]
struct Side {
    input: usize,
    factor: FactorLayout,
}

impl Side {
    fn new(input: usize, is_transposed: bool) -> Side {
        Side { input, factor: FactorLayout { is_transposed, is_shared: false } }
    }
}

impl Rows {
    fn single(sides: [Side; 2], sizes: [usize; 3]) -> Rows {
        Rows { sides, sizes, batch: 1, bias: None, epilogue: LibraryEpilogue::None }
    }
}

/// Rows and columns of a matrix as it is used, the last two dimensions of a shape.
fn used(shape: &Shape, is_transposed: bool) -> [usize; 2] {
    let [rows, columns] = [shape[shape.rank() - 2], shape[shape.rank() - 1]];
    if is_transposed { [columns, rows] } else { [rows, columns] }
}

fn matmul(call: &OpCall<'_>) -> Result<Rows> {
    let turned = [call.attrs.bool("transpose_a")?, call.attrs.bool("transpose_b")?];
    let ([m, k], [_, n]) = (used(call.shape(0), turned[0]), used(call.shape(1), turned[1]));
    Ok(Rows::single([Side::new(0, turned[0]), Side::new(1, turned[1])], [m, k, n]))
}

/// A product with a bias for each column, and what may follow.
fn fused(call: &OpCall<'_>) -> Result<Option<Rows>> {
    let then: Vec<&[u8]> = call.attrs.strings("fused_ops")?.iter().map(|op| &**op).collect();
    let epilogue = match then[..] {
        [b"BiasAdd"] => LibraryEpilogue::Bias,
        [b"BiasAdd", b"Relu"] => LibraryEpilogue::BiasRelu,
        [b"BiasAdd", b"GeluApproximate"] => LibraryEpilogue::BiasGelu,
        _ => return Ok(None),
    };
    let rows = matmul(call)?;
    let fits = call.inputs.len() == 3 && call.shape(2)[..] == rows.sizes[2..];
    Ok(fits.then_some(Rows { bias: Some(2), epilogue, ..rows }))
}

/// `None` where some products of the batch share a factor and others do not: no one step leads from
/// matrix to matrix then.
fn batch_matmul(call: &OpCall<'_>) -> Result<Option<Rows>> {
    let turned = [call.attrs.bool("adj_x")?, call.attrs.bool("adj_y")?];
    let shapes = [call.shape(0), call.shape(1)];
    let ([m, k], [_, n]) = (used(shapes[0], turned[0]), used(shapes[1], turned[1]));
    let matrices = |shape: &Shape| shape[..shape.rank() - 2].iter().product::<usize>();
    let batch = matrices(&call.output_shape(0)?);
    let counts = shapes.map(matrices);
    if counts.iter().any(|&count| count != batch && count != 1) {
        return Ok(None);
    }
    let mut sides = [Side::new(0, turned[0]), Side::new(1, turned[1])];
    if counts[1] == 1 && !turned[0] && counts[0] == batch {
        // The rows of all products, one below the other, meet the same matrix.
        return Ok(Some(Rows::single(sides, [m * batch, k, n])));
    }
    for (side, count) in sides.iter_mut().zip(counts) {
        side.factor.is_shared = count != batch;
    }
    Ok(Some(Rows { batch, ..Rows::single(sides, [m, k, n]) }))
}

/// Positions, channels and filters of a convolution that looks at one position at a time; `None` for
/// others, and for those of groups.
fn pointwise(call: &OpCall<'_>, input: &Shape, filter: &Shape) -> Result<Option<[usize; 3]>> {
    let Some(sweep) = sliding::convolution(call, input, filter)? else { return Ok(None) };
    let [own, filters] = used(filter, false);
    let fits = sweep.is_pointwise() && own == sweep.channels;
    Ok(fits.then(|| [sweep.n_windows(), sweep.channels, filters]))
}

fn convolution(call: &OpCall<'_>) -> Result<Option<Rows>> {
    let sizes = pointwise(call, call.shape(0), call.shape(1))?;
    Ok(sizes.map(|sizes| Rows::single([Side::new(0, false), Side::new(1, false)], sizes)))
}

fn input_gradient(call: &OpCall<'_>) -> Result<Option<Rows>> {
    let sizes = pointwise(call, &call.output_shape(0)?, call.shape(1))?;
    let sides = [Side::new(2, false), Side::new(1, true)];
    Ok(sizes.map(|[positions, c, k]| Rows::single(sides, [positions, k, c])))
}

fn filter_gradient(call: &OpCall<'_>) -> Result<Option<Rows>> {
    let sizes = pointwise(call, call.shape(0), &call.output_shape(0)?)?;
    let sides = [Side::new(0, true), Side::new(2, false)];
    Ok(sizes.map(|[positions, c, k]| Rows::single(sides, [c, positions, k])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OperandSpec;
    use ferroflow_ir::{Attrs, HostTensor, registry};

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims.iter().copied()).unwrap()
    }

    fn known(dims: &[usize]) -> OperandSpec {
        let dims: Vec<i32> = dims.iter().map(|&dim| dim as i32).collect();
        OperandSpec::known(HostTensor::vector(&dims).unwrap())
    }

    fn of(dtype: DType, dims: &[usize]) -> OperandSpec {
        OperandSpec::new(dtype, shape(dims))
    }

    fn floats(dims: &[usize]) -> OperandSpec {
        of(DType::F32, dims)
    }

    fn product(op: &str, attrs: Attrs, inputs: &[OperandSpec]) -> Option<MatmulNode> {
        let op = registry::find(op).unwrap();
        let dtypes: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
        let attrs = ferroflow_ir::build::infer_attrs(op, attrs, &dtypes);
        let attrs = op.complete_attrs(attrs).unwrap();
        MatmulNode::of(&OpCall::new(op, &attrs, inputs, None).unwrap()).unwrap()
    }

    /// `rows × depth × columns`, batches, and the layouts' rows, columns and strides.
    fn text(product: Option<MatmulNode>) -> String {
        let Some(MatmulNode { problem: p, factors, bias }) = product else { return "none".into() };
        let turn = |factor: FactorLayout| if factor.is_transposed { "ᵀ" } else { "" };
        let [a, b, d] = p.layouts().map(|x| format!("{}×{}+{}", x.rows, x.columns, x.stride));
        let bias = bias.map_or(String::new(), |bias| format!(", {:?} {bias}", p.epilogue));
        format!(
            "{} of {}×{}×{}: {}:{a}{} · {}:{b}{} = {d}{bias}",
            p.batch,
            p.rows,
            p.depth,
            p.columns,
            factors[0],
            turn(p.first),
            factors[1],
            turn(p.second),
        )
    }

    #[test]
    fn a_product_is_that_of_the_transposes_in_the_other_order() {
        let found = |a: &[usize], b: &[usize], turned: [bool; 2]| {
            let attrs = Attrs::new().with("transpose_a", turned[0]).with("transpose_b", turned[1]);
            text(product("MatMul", attrs, &[floats(a), floats(b)]))
        };
        let (a, b, at, bt) = (&[50, 40], &[40, 60], &[40, 50], &[60, 40]);
        let is = |first, second| format!("1 of 60×40×50: 1:{first} · 0:{second} = 60×50+3000");
        assert_eq!(found(a, b, [false, false]), is("60×40+2400", "40×50+2000"));
        assert_eq!(found(at, b, [true, false]), is("60×40+2400", "50×40+2000ᵀ"));
        assert_eq!(found(a, bt, [false, true]), is("40×60+2400ᵀ", "40×50+2000"));
        assert_eq!(found(at, bt, [true, true]), is("40×60+2400ᵀ", "50×40+2000ᵀ"));
    }

    #[test]
    fn small_products_and_other_types_stay_with_the_texts() {
        let found = |dtype, n| {
            let inputs = [of(dtype, &[n, 32]), of(dtype, &[32, 32])];
            text(product("MatMul", Attrs::new(), &inputs))
        };
        assert_eq!(found(DType::F32, 31), "none");
        assert_eq!(found(DType::F32, 0), "none");
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            assert_ne!(found(dtype, 32), "none", "{dtype}");
        }
        assert_eq!(found(DType::I32, 32), "none");
    }

    #[test]
    fn batches_share_factors() {
        let found = |a: &[usize], b: &[usize], turned: [bool; 2]| {
            let attrs = Attrs::new().with("adj_x", turned[0]).with("adj_y", turned[1]);
            text(product("BatchMatMulV2", attrs, &[floats(a), floats(b)]))
        };
        let plain = [false, false];
        let each = "6 of 30×40×50: 1:30×40+1200 · 0:40×50+2000 = 30×50+1500";
        assert_eq!(found(&[2, 3, 50, 40], &[2, 3, 40, 30], plain), each);
        assert_eq!(found(&[6, 50, 40], &[1, 6, 40, 30], plain), each);
        let merged = "1 of 30×40×300: 1:30×40+1200 · 0:40×300+12000 = 30×300+9000";
        assert_eq!(found(&[2, 3, 50, 40], &[40, 30], plain), merged);
        assert_eq!(found(&[2, 3, 50, 40], &[1, 1, 40, 30], plain), merged);
        let shared = "6 of 30×40×50: 1:30×40+0 · 0:50×40+2000ᵀ = 30×50+1500";
        assert_eq!(found(&[2, 3, 40, 50], &[40, 30], [true, false]), shared);
        let first = "6 of 30×40×50: 1:40×30+1200ᵀ · 0:40×50+0 = 30×50+1500";
        assert_eq!(found(&[50, 40], &[2, 3, 30, 40], [false, true]), first);
        assert_eq!(found(&[2, 1, 50, 40], &[1, 3, 40, 30], plain), "none");
    }

    #[test]
    fn pointwise_convolutions_and_their_gradients_are_products() {
        let found = |op, strides: [i64; 4], inputs: &[OperandSpec]| {
            let attrs = Attrs::new().with("strides", strides.to_vec()).with("padding", "SAME");
            text(product(op, attrs, inputs))
        };
        let (x, w, y) = (&[2, 5, 6, 32], &[1, 1, 32, 48], &[2, 5, 6, 48]);
        let ones = [1; 4];
        let forward = "1 of 48×32×60: 1:48×32+1536 · 0:32×60+1920 = 48×60+2880";
        assert_eq!(found("Conv2D", ones, &[floats(x), floats(w)]), forward);
        let backward = "1 of 32×48×60: 1:48×32+1536ᵀ · 2:48×60+2880 = 32×60+1920";
        let inputs = [known(x), floats(w), floats(y)];
        assert_eq!(found("Conv2DBackpropInput", ones, &inputs), backward);
        let filter = "1 of 48×60×32: 2:48×60+2880 · 0:32×60+1920ᵀ = 48×32+1536";
        let inputs = [floats(x), known(w), floats(y)];
        assert_eq!(found("Conv2DBackpropFilter", ones, &inputs), filter);
        assert_eq!(found("Conv2D", [1, 2, 1, 1], &[floats(x), floats(w)]), "none");
        assert_eq!(found("Conv2D", ones, &[floats(x), floats(&[1, 3, 32, 48])]), "none");
        assert_eq!(found("Conv2D", ones, &[floats(x), floats(&[1, 1, 16, 48])]), "none");
    }

    #[test]
    fn what_follows_a_product_may_be_part_of_it() {
        let found = |ops: &[&str], bias: &[usize]| {
            let attrs = Attrs::new().with("fused_ops", ops).with("num_args", 1i64);
            let inputs = [floats(&[50, 40]), floats(&[40, 60]), floats(bias)];
            text(product("_FusedMatMul", attrs, &inputs))
        };
        let plain = "1 of 60×40×50: 1:60×40+2400 · 0:40×50+2000 = 60×50+3000";
        assert_eq!(found(&["BiasAdd"], &[60]), format!("{plain}, Bias 2"));
        assert_eq!(found(&["BiasAdd", "Relu"], &[60]), format!("{plain}, BiasRelu 2"));
        assert_eq!(found(&["BiasAdd", "GeluApproximate"], &[60]), format!("{plain}, BiasGelu 2"));
        assert_eq!(found(&["BiasAdd", "GeluExact"], &[60]), "none");
        assert_eq!(found(&["BiasAdd", "Elu"], &[60]), "none");
        assert_eq!(found(&["BiasAdd"], &[50]), "none");
    }

    #[test]
    fn problems_differ_by_precision_where_it_counts() {
        let op = registry::find("MatMul").unwrap();
        for (dtype, differ) in [(DType::F32, true), (DType::F16, false)] {
            let attrs = op.complete_attrs(Attrs::new().with("T", dtype)).unwrap();
            let inputs = [of(dtype, &[64, 64]), of(dtype, &[64, 64])];
            let problem = |precision| {
                let call = OpCall::new(op, &attrs, &inputs, None).unwrap();
                MatmulNode::of(&call.with_precision(precision)).unwrap().unwrap().problem
            };
            assert_eq!(problem(Precision::Full) != problem(Precision::TensorFloat32), differ);
            assert_eq!(problem(Precision::Full).sizes(), [64 * 64 * dtype.size().unwrap(); 3]);
        }
    }
}
