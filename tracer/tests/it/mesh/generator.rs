//! Random programs.

/// A sequence of numbers that look random (SplitMix64; Steele et al., 2014).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit.max(1)
    }

    /// A number between -1 and 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

use super::shaped;
use ferroflow_ir::{DType, HostTensor};
use ferroflow_tracer::{Result, Tensor, ops};

/// The most elements of a tensor of a program.
const LARGEST: usize = 600;

/// A program under construction. It is the same for the same seed and shapes.
pub(super) struct Generator {
    random: Random,
    /// Tensors of `f64`. Their ops are continuous, so that rounding stays small.
    floats: Vec<Tensor>,
    /// Tensors of `i32`, which are exact.
    ints: Vec<Tensor>,
    /// Whether ops have continuous derivatives.
    smooth: bool,
}

type Step = fn(&mut Generator) -> Result<Option<Tensor>>;

const STEPS: &[Step] = &[
    Generator::unary,
    Generator::binary,
    Generator::binary,
    Generator::sum_of_many,
    Generator::choice,
    Generator::matmul,
    Generator::matmul,
    Generator::batch_matmul,
    Generator::einsum,
    Generator::reduce,
    Generator::reduce,
    Generator::reduce_ints,
    Generator::reduce_bools,
    Generator::softmax,
    Generator::cross_entropy,
    Generator::transpose,
    Generator::reshape,
    Generator::reshape,
    Generator::unit_dims,
    Generator::slice,
    Generator::strided_slice,
    Generator::split,
    Generator::unpack,
    Generator::pack,
    Generator::concat,
    Generator::tile,
    Generator::pad,
    Generator::reverse,
    Generator::broadcast,
    Generator::gather,
    Generator::gather,
    Generator::one_hot,
    Generator::segment_sum,
    Generator::scatter,
    Generator::scan,
    Generator::band,
    Generator::extremes,
    Generator::int_arithmetic,
    Generator::shapes,
    Generator::draw,
    Generator::no_rule,
];

fn ints(values: &[i64]) -> Tensor {
    HostTensor::vector(values).unwrap().into()
}

fn int(value: i32) -> Tensor {
    value.into()
}

fn dims(tensor: &Tensor) -> Vec<usize> {
    tensor.shape().known().map(|shape| shape.dims().to_vec()).unwrap_or_default()
}

fn is_small(dims: &[usize]) -> bool {
    dims.iter().product::<usize>() <= LARGEST && dims.len() <= 5
}

impl Generator {
    pub(super) fn new(
        seed: u64,
        floats: Vec<Tensor>,
        ints: Vec<Tensor>,
        smooth: bool,
    ) -> Generator {
        Generator { random: Random::new(seed ^ 0x5eed), floats, ints, smooth }
    }

    /// Runs a program of so many ops; returns some of what it computes, the last in any case.
    pub(super) fn run(mut self, n_steps: usize) -> Result<Vec<Tensor>> {
        let mut made = Vec::new();
        while made.len() < n_steps {
            let step = STEPS[self.random.below(STEPS.len())];
            let Some(tensor) = step(&mut self)? else { continue };
            if tensor.dtype() == DType::F64 {
                self.floats.push(tensor.clone());
            } else {
                self.ints.push(tensor.clone());
            }
            made.push(tensor);
        }
        let last = made.len() - 1;
        let kept = made.into_iter().enumerate();
        let mut random = Random::new(self.random.next());
        Ok(kept.filter(|(n, _)| *n == last || random.below(4) == 0).map(|(_, t)| t).collect())
    }

    /// A tensor of floats, a late one rather than an early one.
    fn float(&mut self) -> Tensor {
        let n = self.floats.len();
        let at = self.random.below(n).max(self.random.below(n));
        self.floats[at].clone()
    }

    fn int_tensor(&mut self) -> Tensor {
        let n = self.ints.len();
        let at = self.random.below(n).max(self.random.below(n));
        self.ints[at].clone()
    }

    /// A float tensor of this rank at least.
    fn float_of_rank(&mut self, rank: usize) -> Option<(Tensor, Vec<usize>)> {
        let x = self.float();
        let own = dims(&x);
        (own.len() >= rank).then_some((x, own))
    }

    fn axis(&mut self, rank: usize) -> usize {
        self.random.below(rank)
    }

    /// An axis, counted from either end.
    fn signed(&mut self, axis: usize, rank: usize) -> i32 {
        if self.random.below(2) == 0 { axis as i32 } else { axis as i32 - rank as i32 }
    }

    /// A constant of floats.
    fn constant(&mut self, dims: &[usize]) -> Tensor {
        let n = dims.iter().product();
        let numbers: Vec<f64> = (0..n).map(|_| self.random.unit()).collect();
        HostTensor::from_slice(shaped(dims), &numbers).unwrap().into()
    }

    /// Integers of a shape, from 0 to below a limit: of the program if there are such, else constant.
    fn indices(&mut self, own: &[usize], limit: usize) -> Result<Option<Tensor>> {
        if limit == 0 {
            return Ok(None);
        }
        let x = self.int_tensor();
        if dims(&x) == own {
            return ops::floor_mod(&x, &int(limit as i32)).map(Some);
        }
        let n = own.iter().product();
        let numbers: Vec<i32> = (0..n).map(|_| self.random.below(limit) as i32).collect();
        Ok(Some(HostTensor::from_slice(shaped(own), &numbers).unwrap().into()))
    }

    fn unary(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let bounded = ops::tanh(&x)?;
        Ok(Some(match self.random.below(if self.smooth { 7 } else { 10 }) {
            0 => bounded,
            1 => ops::sigmoid(&x)?,
            2 => ops::neg(&x)?,
            3 => ops::square(&bounded)?,
            4 => ops::exp(&bounded)?,
            5 => ops::identity(&x)?,
            6 => ops::sin(&x)?,
            7 => ops::relu(&x)?,
            8 => ops::abs(&x)?,
            _ => ops::clip_by_value(&x, &(-0.5f64).into(), &0.5f64.into())?,
        }))
    }

    /// A tensor that broadcasts with one of this shape.
    fn partner(&mut self, own: &[usize]) -> Tensor {
        for _ in 0..6 {
            let y = self.float();
            if shaped(own).broadcast(&shaped(&dims(&y))).is_ok() {
                return y;
            }
        }
        let from = self.random.below(own.len() + 1);
        let other: Vec<usize> = own[from..]
            .iter()
            .map(|&size| if self.random.below(3) == 0 { 1 } else { size })
            .collect();
        self.constant(&other)
    }

    fn binary(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let y = self.partner(&dims(&x));
        let result = shaped(&dims(&x)).broadcast(&shaped(&dims(&y)));
        if !result.is_ok_and(|shape| is_small(shape.dims())) {
            return Ok(None);
        }
        let (x, y) = if self.random.below(2) == 0 { (x, y) } else { (y, x) };
        Ok(Some(match self.random.below(if self.smooth { 4 } else { 6 }) {
            0 => ops::add_v2(&x, &y)?,
            1 => ops::sub(&x, &y)?,
            2 => ops::mul(&ops::tanh(&x)?, &y)?,
            3 => ops::real_div(&x, &ops::exp(&ops::tanh(&y)?)?)?,
            4 => ops::maximum(&x, &y)?,
            _ => ops::minimum(&x, &y)?,
        }))
    }

    fn sum_of_many(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let y = self.constant(&dims(&x));
        let negative = ops::neg(&x)?;
        let half = ops::mul(&x, &0.5f64.into())?;
        ops::add_n(&[&half, &y, &negative]).map(Some)
    }

    fn choice(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let own = dims(&x);
        let Some(ids) = self.indices(&own, 3)? else { return Ok(None) };
        let y = self.constant(&own);
        ops::select_v2(&ops::less(&ids, &int(1))?, &x, &y).map(Some)
    }

    /// A matrix of so many rows.
    fn matrix(&mut self, rows: usize) -> Tensor {
        for _ in 0..5 {
            let y = self.float();
            if dims(&y).len() == 2 && dims(&y)[0] == rows {
                return y;
            }
        }
        let columns = [1, 2, 4, 6, 8][self.random.below(5)];
        self.constant(&[rows, columns])
    }

    fn matmul(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(2) else { return Ok(None) };
        let inner = own[own.len() - 1];
        let outer: usize = own[..own.len() - 1].iter().product();
        let mut x =
            if own.len() > 2 { ops::reshape(&x, &ints(&[outer as i64, inner as i64]))? } else { x };
        let mut y = self.matrix(inner);
        if !is_small(&[outer, dims(&y)[1]]) {
            return Ok(None);
        }
        let (transpose_a, transpose_b) = (self.random.below(3) == 0, self.random.below(3) == 0);
        if transpose_a {
            x = ops::transpose(&x, &ints(&[1, 0]))?;
        }
        if transpose_b {
            y = ops::transpose(&y, &ints(&[1, 0]))?;
        }
        let attrs = ops::MatMulAttrs { transpose_a, transpose_b, ..Default::default() };
        ops::matmul_with(&x, &y, &attrs).map(Some)
    }

    fn batch_matmul(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(3) else { return Ok(None) };
        let rank = own.len();
        let mut other = own.clone();
        other[rank - 2] = own[rank - 1];
        other[rank - 1] = [2, 4][self.random.below(2)];
        if self.random.below(3) == 0 {
            other[0] = 1;
        }
        let mut y = self.constant(&other);
        let adj_y = self.random.below(2) == 0;
        if adj_y {
            let mut order: Vec<i64> = (0..rank as i64).collect();
            order.swap(rank - 1, rank - 2);
            y = ops::transpose(&y, &ints(&order))?;
        }
        let attrs = ops::BatchMatMulV2Attrs { adj_y, ..Default::default() };
        ops::batch_matmul_v2_with(&x, &y, &attrs).map(Some)
    }

    fn einsum(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(3) else { return Ok(None) };
        if own.len() != 3 {
            return Ok(None);
        }
        let y = self.constant(&[own[2], 2, 4]);
        ops::einsum(&[&x, &y], "btd,dhk->bhtk").map(Some)
    }

    /// Some axes, in any order and counted from either end.
    fn axes(&mut self, rank: usize) -> Vec<i64> {
        let mut axes: Vec<i64> = Vec::new();
        for axis in 0..rank {
            if self.random.below(2) == 0 {
                axes.push(self.signed(axis, rank).into());
            }
        }
        if self.random.below(2) == 0 {
            axes.reverse();
        }
        axes
    }

    fn reduce(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let own = dims(&x);
        let axes = ints(&self.axes(own.len()));
        let keep_dims = self.random.below(2) == 0;
        Ok(Some(match self.random.below(if self.smooth { 2 } else { 6 }) {
            0 => ops::sum_with(&x, &axes, &ops::SumAttrs { keep_dims })?,
            1 => ops::mean_with(&x, &axes, &ops::MeanAttrs { keep_dims })?,
            2 => ops::max_with(&x, &axes, &ops::MaxAttrs { keep_dims })?,
            3 => ops::min_with(&x, &axes, &ops::MinAttrs { keep_dims })?,
            4 => ops::prod_with(&ops::tanh(&x)?, &axes, &ops::ProdAttrs { keep_dims })?,
            _ => ops::euclidean_norm_with(&x, &axes, &ops::EuclideanNormAttrs { keep_dims })?,
        }))
    }

    fn reduce_ints(&mut self) -> Result<Option<Tensor>> {
        let x = self.int_tensor();
        let axes = ints(&self.axes(dims(&x).len()));
        Ok(Some(match self.random.below(4) {
            0 => ops::sum(&x, &axes)?,
            1 => ops::mean(&x, &axes)?,
            2 => ops::max(&x, &axes)?,
            _ => ops::prod(&x, &axes)?,
        }))
    }

    fn reduce_bools(&mut self) -> Result<Option<Tensor>> {
        let x = self.int_tensor();
        let axes = ints(&self.axes(dims(&x).len()));
        let is_large = ops::greater(&x, &int(1))?;
        let reduced = match self.random.below(2) {
            0 => ops::all(&is_large, &axes)?,
            _ => ops::any(&is_large, &axes)?,
        };
        ops::cast(&reduced, DType::I32).map(Some)
    }

    fn softmax(&mut self) -> Result<Option<Tensor>> {
        let Some((x, _)) = self.float_of_rank(1) else { return Ok(None) };
        Ok(Some(if self.random.below(2) == 0 { ops::softmax(&x)? } else { ops::log_softmax(&x)? }))
    }

    fn cross_entropy(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(2) else { return Ok(None) };
        if own.len() != 2 || own[1] == 0 {
            return Ok(None);
        }
        if self.random.below(2) == 0 {
            let Some(labels) = self.indices(&own[..1], own[1])? else { return Ok(None) };
            return Ok(Some(
                ops::sparse_softmax_cross_entropy_with_logits(&x, &labels)?[0].clone(),
            ));
        }
        let labels = ops::softmax(&self.constant(&own))?;
        Ok(Some(ops::softmax_cross_entropy_with_logits(&x, &labels)?[0].clone()))
    }

    fn transpose(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let mut order: Vec<i64> = (0..dims(&x).len() as i64).collect();
        for at in (1..order.len()).rev() {
            let other = self.random.below(at + 1);
            order.swap(at, other);
        }
        ops::transpose(&x, &ints(&order)).map(Some)
    }

    fn reshape(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let own = dims(&x);
        let mut to: Vec<i64> = own.iter().map(|&size| size as i64).collect();
        match self.random.below(4) {
            0 => to = vec![-1],
            1 if own.len() >= 2 => {
                let at = self.random.below(own.len() - 1);
                let merged = to[at] * to[at + 1];
                to.splice(at..at + 2, [merged]);
            }
            2 if !own.is_empty() && own.len() < 4 => {
                let at = self.random.below(own.len());
                let part = [2, 3, 4][self.random.below(3)];
                if own[at].is_multiple_of(part) {
                    let rest = (own[at] / part) as i64;
                    let parts = [part as i64, rest];
                    let swapped = self.random.below(2) == 0;
                    to.splice(at..=at, if swapped { [parts[1], parts[0]] } else { parts });
                }
            }
            _ => to.insert(self.random.below(to.len() + 1), 1),
        }
        if to.len() > 5 || (own.contains(&0) && to == [-1]) {
            return Ok(None);
        }
        ops::reshape(&x, &ints(&to)).map(Some)
    }

    fn unit_dims(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let rank = dims(&x).len();
        if self.random.below(2) == 0 && rank < 4 {
            let axis = self.random.below(rank + 1);
            let axis = self.signed(axis, rank + 1);
            return ops::expand_dims(&x, &int(axis)).map(Some);
        }
        ops::squeeze(&x).map(Some)
    }

    /// A window of each dimension: where it begins, and its size.
    fn windows(&mut self, own: &[usize]) -> (Vec<i64>, Vec<i64>) {
        let window = |&size: &usize| {
            if size == 0 || self.random.below(2) == 0 {
                return (0, size as i64);
            }
            let begin = self.random.below(size);
            (begin as i64, (1 + self.random.below(size - begin)) as i64)
        };
        own.iter().map(window).unzip()
    }

    fn slice(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let own = dims(&x);
        let (begin, mut size) = self.windows(&own);
        if let Some(at) = (0..own.len()).find(|_| self.random.below(3) == 0) {
            size[at] = -1;
        }
        ops::slice(&x, &ints(&begin), &ints(&size)).map(Some)
    }

    fn strided_slice(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(1) else { return Ok(None) };
        let n = 1 + self.random.below(own.len());
        let (mut begin, size) = self.windows(&own[..n]);
        let mut end: Vec<i64> = begin.iter().zip(&size).map(|(begin, size)| begin + size).collect();
        let mut strides = vec![1i64; n];
        let mut attrs = ops::StridedSliceAttrs::default();
        for at in 0..n {
            match self.random.below(8) {
                0 => attrs.begin_mask |= 1 << at,
                1 => attrs.end_mask |= 1 << at,
                2 => {
                    (attrs.begin_mask, attrs.end_mask, strides[at]) =
                        (attrs.begin_mask | 1 << at, attrs.end_mask | 1 << at, -1)
                }
                3 => strides[at] = 2,
                4 if own[at] > 0 => attrs.shrink_axis_mask |= 1 << at,
                5 => end[at] += 100,
                6 => begin[at] -= own[at] as i64,
                _ => {}
            }
        }
        if own.len() < 4 && self.random.below(4) == 0 {
            begin.insert(0, 0);
            end.insert(0, 0);
            strides.insert(0, 1);
            for mask in [&mut attrs.begin_mask, &mut attrs.end_mask, &mut attrs.shrink_axis_mask] {
                *mask <<= 1;
            }
            attrs.new_axis_mask = 1;
        }
        ops::strided_slice_with(&x, &ints(&begin), &ints(&end), &ints(&strides), &attrs).map(Some)
    }

    fn split(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(1) else { return Ok(None) };
        let axis = self.axis(own.len());
        let n = 1 + self.random.below(3);
        if own[axis] % n != 0 {
            return Ok(None);
        }
        let axis = self.signed(axis, own.len());
        let parts = ops::split(&int(axis), &x, n as i64)?;
        Ok(Some(parts[self.random.below(n)].clone()))
    }

    fn unpack(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(1) else { return Ok(None) };
        let axis = self.axis(own.len());
        if own[axis] == 0 {
            return Ok(None);
        }
        let attrs = ops::UnpackAttrs { axis: self.signed(axis, own.len()).into() };
        let parts = ops::unpack_with(&x, own[axis] as i64, &attrs)?;
        Ok(Some(parts[self.random.below(own[axis])].clone()))
    }

    fn pack(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let own = dims(&x);
        if own.len() > 3 || !is_small(&[own.iter().product::<usize>(), 2]) {
            return Ok(None);
        }
        let y = self.constant(&own);
        let axis = self.axis(own.len() + 1);
        let attrs = ops::PackAttrs { axis: self.signed(axis, own.len() + 1).into() };
        ops::pack_with(&[&x, &y], &attrs).map(Some)
    }

    fn concat(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(1) else { return Ok(None) };
        let axis = self.axis(own.len());
        let mut other = own.clone();
        other[axis] = self.random.below(4);
        if !is_small(&[own.iter().product::<usize>() + other.iter().product::<usize>()]) {
            return Ok(None);
        }
        let y = self.constant(&other);
        let axis = self.signed(axis, own.len());
        ops::concat_v2(&[&x, &y, &x], &int(axis)).map(Some)
    }

    fn tile(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let own = dims(&x);
        let times: Vec<usize> = own.iter().map(|_| 1 + self.random.below(2)).collect();
        let result: Vec<usize> = own.iter().zip(&times).map(|(a, b)| a * b).collect();
        let times: Vec<i64> = times.iter().map(|&n| n as i64).collect();
        if is_small(&result) { ops::tile(&x, &ints(&times)).map(Some) } else { Ok(None) }
    }

    fn pad(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let own = dims(&x);
        let paddings: Vec<i32> = (0..2 * own.len())
            .map(|at| if at % 4 < 2 { 0 } else { self.random.below(2) as i32 })
            .collect();
        let paddings: Tensor =
            HostTensor::from_slice(shaped(&[own.len(), 2]), &paddings).unwrap().into();
        ops::pad_v2(&x, &paddings, &0.25f64.into()).map(Some)
    }

    fn reverse(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let axes = self.axes(dims(&x).len());
        ops::reverse_v2(&x, &ints(&axes)).map(Some)
    }

    fn broadcast(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let mut to: Vec<usize> = dims(&x)
            .iter()
            .map(|&size| if size == 1 { 1 + self.random.below(4) } else { size })
            .collect();
        if self.random.below(2) == 0 {
            to.insert(0, 2);
        }
        let shape: Vec<i64> = to.iter().map(|&size| size as i64).collect();
        if is_small(&to) { ops::broadcast_to(&x, &ints(&shape)).map(Some) } else { Ok(None) }
    }

    fn gather(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(1) else { return Ok(None) };
        let axis = self.axis(own.len());
        let places = [vec![4], vec![2, 3], vec![], vec![8]][self.random.below(4)].clone();
        let rest = own.iter().product::<usize>() / own[axis].max(1);
        if !is_small(&[rest, places.iter().product()]) || own.len() + places.len() > 5 {
            return Ok(None);
        }
        let Some(indices) = self.indices(&places, own[axis])? else { return Ok(None) };
        let axis = self.signed(axis, own.len());
        ops::gather_v2(&x, &indices, &int(axis)).map(Some)
    }

    fn one_hot(&mut self) -> Result<Option<Tensor>> {
        let x = self.int_tensor();
        let own = dims(&x);
        if !is_small(&[own.iter().product::<usize>(), 4]) || own.len() > 3 {
            return Ok(None);
        }
        let hot = ops::one_hot(&x, &int(4), &0.5f64.into(), &(-0.5f64).into())?;
        Ok(Some(hot))
    }

    fn segment_sum(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(1) else { return Ok(None) };
        let n = 1 + self.random.below(own.len());
        let Some(ids) = self.indices(&own[..n], 3)? else { return Ok(None) };
        ops::unsorted_segment_sum(&x, &ids, &int(4)).map(Some)
    }

    fn scatter(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(1) else { return Ok(None) };
        let Some(ids) = self.indices(&[own[0], 1], 4)? else { return Ok(None) };
        let mut shape: Vec<i32> = own.iter().map(|&size| size as i32).collect();
        shape[0] = 4;
        ops::scatter_nd(&ids, &x, &HostTensor::vector(&shape).unwrap().into()).map(Some)
    }

    fn scan(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(1) else { return Ok(None) };
        let axis = self.axis(own.len());
        let axis = self.signed(axis, own.len());
        ops::cumsum(&x, &int(axis)).map(Some)
    }

    fn band(&mut self) -> Result<Option<Tensor>> {
        let Some((x, _)) = self.float_of_rank(2) else { return Ok(None) };
        ops::matrix_band_part(&x, &int(1), &int(0)).map(Some)
    }

    fn extremes(&mut self) -> Result<Option<Tensor>> {
        let x = self.int_tensor();
        let own = dims(&x);
        if own.is_empty() || own.contains(&0) {
            return Ok(None);
        }
        if self.random.below(2) == 0 {
            let k = 1 + self.random.below(own[own.len() - 1]);
            return Ok(Some(ops::top_k_v2(&x, &int(k as i32))?[0].clone()));
        }
        let axis = self.axis(own.len());
        let axis = self.signed(axis, own.len());
        ops::cast(&ops::arg_max(&x, &int(axis))?, DType::I32).map(Some)
    }

    fn int_arithmetic(&mut self) -> Result<Option<Tensor>> {
        let x = self.int_tensor();
        Ok(Some(match self.random.below(4) {
            0 => ops::add_v2(&x, &int(3))?,
            1 => ops::mul(&x, &x)?,
            2 => ops::floor_mod(&x, &int(5))?,
            _ => ops::cast(&ops::cast(&x, DType::U8)?, DType::I32)?,
        }))
    }

    /// Values that tell of shapes, which are those of whole tensors.
    fn shapes(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        Ok(Some(match self.random.below(5) {
            0 => ops::shape(&x)?,
            1 => ops::size(&x)?,
            2 => ops::add_v2(&ops::zeros_like(&x)?, &x)?,
            3 => ops::mul(&ops::fill(&ops::shape(&x)?, &0.5f64.into())?, &x)?,
            _ => ops::range(&int(0), &ops::size(&x)?, &int(1))?,
        }))
    }

    /// Random numbers of a seed.
    fn draw(&mut self) -> Result<Option<Tensor>> {
        let x = self.float();
        let attrs = ops::StatelessRandomUniformAttrs { dtype: DType::F64 };
        let drawn = ops::stateless_random_uniform_with(&ops::shape(&x)?, &ints(&[1, 2]), &attrs)?;
        ops::mul(&drawn, &x).map(Some)
    }

    /// Ops that need whole operands.
    fn no_rule(&mut self) -> Result<Option<Tensor>> {
        let Some((x, own)) = self.float_of_rank(1) else { return Ok(None) };
        if self.random.below(2) == 0 {
            return ops::roll(&x, &int(1), &int(0)).map(Some);
        }
        if own.len() != 1 || !is_small(&[own[0], own[0]]) {
            return Ok(None);
        }
        ops::matrix_diag(&x).map(Some)
    }
}
