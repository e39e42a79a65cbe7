//! Operations under construction, over typed values.

use super::super::module::{Attr, HloElement, HloOp, HloRegion, TensorType, Type, ValueNumber};
use bytes::Bytes;
use ferroflow_ir::{DType, HostTensor};
use std::{cell::Cell, sync::Arc};

/// A value of the module under construction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Typed {
    pub(super) number: ValueNumber,
    pub(super) dtype: DType,
    pub(super) dims: Vec<usize>,
}

impl Typed {
    /// The type as the module has it.
    pub(super) fn tensor_type(&self) -> TensorType {
        tensor_type(self.dtype, &self.dims)
    }

    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }
}

pub(super) fn tensor_type(dtype: DType, dims: &[usize]) -> TensorType {
    TensorType { dims: dims.iter().copied().map(Some).collect(), element: HloElement::Of(dtype) }
}

/// The numbers of values, each given once in a module.
#[derive(Debug, Default)]
pub(super) struct Numbers(Cell<u32>);

impl Numbers {
    pub(super) fn count(&self) -> usize {
        self.0.get() as usize
    }

    pub(super) fn value(&self, dtype: DType, dims: &[usize]) -> Typed {
        let number = ValueNumber(self.0.replace(self.0.get() + 1));
        Typed { number, dtype, dims: dims.to_vec() }
    }
}

/// The case of an enumeration of the dialect, by the attribute that it is of.
pub(super) mod case {
    /// `comparison_direction`.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum Direction {
        Eq = 0,
        Ne = 1,
        Ge = 2,
        Gt = 3,
        Le = 4,
        Lt = 5,
    }
}

pub(super) type HloAttrs = Vec<(Arc<str>, Arc<Attr>)>;

/// A list of integers as an attribute.
pub(super) fn ints(values: &[usize]) -> Attr {
    let bytes: Vec<u8> = values.iter().flat_map(|&value| (value as i64).to_le_bytes()).collect();
    Attr::Tensor(tensor_type(DType::I64, &[values.len()]), bytes.into())
}

/// Pairs of integers as an attribute: padding before and after.
pub(super) fn pairs(values: &[[i64; 2]]) -> Attr {
    let bytes: Vec<u8> = values.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    Attr::Tensor(tensor_type(DType::I64, &[values.len(), 2]), bytes.into())
}

pub(super) fn int(value: usize) -> Attr {
    Attr::Int(value as i64)
}

pub(super) fn attrs<const N: usize>(list: [(&str, Attr); N]) -> HloAttrs {
    list.into_iter().map(|(name, attr)| (name.into(), Arc::new(attr))).collect()
}

/// The operations of a block.
pub(super) struct Block<'n> {
    pub(super) numbers: &'n Numbers,
    pub(super) ops: Vec<HloOp>,
}

impl<'n> Block<'n> {
    pub(super) fn new(numbers: &'n Numbers) -> Block<'n> {
        Block { numbers, ops: Vec::new() }
    }

    /// Adds an operation with one result.
    pub(super) fn op(
        &mut self,
        name: &str,
        attrs: HloAttrs,
        operands: &[&Typed],
        (dtype, dims): (DType, &[usize]),
    ) -> Typed {
        self.op_with(name, attrs, operands, Vec::new(), &[(dtype, dims)]).remove(0)
    }

    /// Adds an operation.
    pub(super) fn op_with(
        &mut self,
        name: &str,
        attrs: HloAttrs,
        operands: &[&Typed],
        regions: Vec<HloRegion>,
        results: &[(DType, &[usize])],
    ) -> Vec<Typed> {
        let results: Vec<Typed> =
            results.iter().map(|(dtype, dims)| self.numbers.value(*dtype, dims)).collect();
        self.ops.push(HloOp {
            name: name.into(),
            attrs,
            operands: operands.iter().map(|operand| operand.number).collect(),
            results: results
                .iter()
                .map(|result| (result.number, Type::Tensor(result.tensor_type())))
                .collect(),
            regions,
        });
        results
    }

    /// The region of this block, which returns these values.
    pub(super) fn region(mut self, args: &[Typed], results: &[&Typed]) -> HloRegion {
        self.op_with("return", Vec::new(), results, Vec::new(), &[]);
        let args = args.iter().map(|arg| (arg.number, Type::Tensor(arg.tensor_type()))).collect();
        HloRegion { args, ops: self.ops }
    }

    pub(super) fn constant(&mut self, value: &HostTensor) -> Typed {
        let dims = value.shape().dims();
        let data = Bytes::copy_from_slice(value.bytes());
        let value_attr = Attr::Tensor(tensor_type(value.dtype(), dims), data);
        self.op("constant", attrs([("value", value_attr)]), &[], (value.dtype(), dims))
    }

    /// A constant all of whose elements are the one whose bytes these are.
    pub(super) fn splat(&mut self, dtype: DType, element: &[u8], dims: &[usize]) -> Typed {
        let data = Bytes::copy_from_slice(element);
        let value = Attr::Tensor(tensor_type(dtype, dims), data);
        self.op("constant", attrs([("value", value)]), &[], (dtype, dims))
    }

    /// An operation on operands of one type that gives another of it.
    pub(super) fn same(&mut self, name: &str, operands: &[&Typed]) -> Typed {
        let first = operands[0].clone();
        self.op(name, Vec::new(), operands, (first.dtype, &first.dims))
    }

    pub(super) fn convert(&mut self, x: &Typed, dtype: DType) -> Typed {
        if x.dtype == dtype {
            return x.clone();
        }
        self.op("convert", Vec::new(), &[x], (dtype, &x.dims))
    }

    pub(super) fn reshape(&mut self, x: &Typed, dims: &[usize]) -> Typed {
        if x.dims == dims {
            return x.clone();
        }
        self.op("reshape", Vec::new(), &[x], (x.dtype, dims))
    }

    /// `x` whose dimensions are the `axes` of the result.
    pub(super) fn broadcast(&mut self, x: &Typed, axes: &[usize], dims: &[usize]) -> Typed {
        if x.dims == dims && axes.iter().copied().eq(0..dims.len()) {
            return x.clone();
        }
        let attrs = attrs([("broadcast_dimensions", ints(axes))]);
        self.op("broadcast_in_dim", attrs, &[x], (x.dtype, dims))
    }

    /// `x` broadcast as operands of elementwise ops are: the last dimensions are the same.
    pub(super) fn broadcast_last(&mut self, x: &Typed, dims: &[usize]) -> Typed {
        let first = dims.len() - x.rank();
        let axes: Vec<usize> = (first..dims.len()).collect();
        self.broadcast(x, &axes, dims)
    }

    pub(super) fn transpose(&mut self, x: &Typed, order: &[usize]) -> Typed {
        if order.iter().copied().eq(0..order.len()) {
            return x.clone();
        }
        let dims: Vec<usize> = order.iter().map(|&axis| x.dims[axis]).collect();
        let attrs = attrs([("permutation", ints(order))]);
        self.op("transpose", attrs, &[x], (x.dtype, &dims))
    }

    /// The elements at `start`, `start + stride`, … before `limit` of each dimension.
    pub(super) fn slice(
        &mut self,
        x: &Typed,
        start: &[usize],
        limit: &[usize],
        strides: &[usize],
    ) -> Typed {
        let bounds = start.iter().zip(limit).zip(strides);
        let dims: Vec<usize> =
            bounds.map(|((start, limit), stride)| (limit - start).div_ceil(*stride)).collect();
        if dims == x.dims {
            return x.clone();
        }
        let attrs = attrs([
            ("limit_indices", ints(limit)),
            ("start_indices", ints(start)),
            ("strides", ints(strides)),
        ]);
        self.op("slice", attrs, &[x], (x.dtype, &dims))
    }

    pub(super) fn reverse(&mut self, x: &Typed, axes: &[usize]) -> Typed {
        if axes.is_empty() {
            return x.clone();
        }
        self.op("reverse", attrs([("dimensions", ints(axes))]), &[x], (x.dtype, &x.dims.clone()))
    }

    pub(super) fn concatenate(&mut self, parts: &[&Typed], axis: usize) -> Typed {
        let mut dims = parts[0].dims.clone();
        dims[axis] = parts.iter().map(|part| part.dims[axis]).sum();
        let dtype = parts[0].dtype;
        self.op("concatenate", attrs([("dimension", int(axis))]), parts, (dtype, &dims))
    }

    pub(super) fn iota(&mut self, dtype: DType, dims: &[usize], axis: usize) -> Typed {
        self.op("iota", attrs([("iota_dimension", int(axis))]), &[], (dtype, dims))
    }

    pub(super) fn compare(&mut self, direction: case::Direction, a: &Typed, b: &Typed) -> Typed {
        // NOTYPE, FLOAT, TOTALORDER, SIGNED, UNSIGNED.
        let kind = match a.dtype {
            dtype if dtype.is_float() || dtype.is_complex() => 1,
            dtype if dtype.is_signed_integer() => 3,
            _ => 4,
        };
        let attrs = attrs([
            ("compare_type", Attr::Case(kind)),
            ("comparison_direction", Attr::Case(direction as u64)),
        ]);
        self.op("compare", attrs, &[a, b], (DType::Bool, &a.dims.clone()))
    }

    pub(super) fn select(&mut self, condition: &Typed, yes: &Typed, no: &Typed) -> Typed {
        self.op("select", Vec::new(), &[condition, yes, no], (yes.dtype, &yes.dims.clone()))
    }

    /// The call of a function that XLA knows by this name.
    pub(super) fn custom_call(&mut self, target: &str, x: &Typed) -> Typed {
        let empty = || Attr::Array(Vec::new());
        let attrs = attrs([
            ("api_version", Attr::Case(1)),
            ("backend_config", Attr::String(Bytes::new())),
            ("call_target_name", Attr::String(Bytes::copy_from_slice(target.as_bytes()))),
            ("called_computations", empty()),
            ("has_side_effect", Attr::Bool(false)),
            ("operand_layouts", empty()),
            ("output_operand_aliases", empty()),
            ("result_layouts", empty()),
        ]);
        let mut attrs = attrs;
        let own = [Attr::Dict(Vec::new()), Attr::Int(1)];
        let own = super::artifact::CALL_ATTRIBUTES.into_iter().zip(own);
        attrs.extend(own.map(|(name, attr)| (name.into(), Arc::new(attr))));
        self.op("custom_call", attrs, &[x], (x.dtype, &x.dims.clone()))
    }

    /// The reduction of `x` over `axes`, which are gone from the result, by an operation of two scalars
    /// that leaves `initial` unchanged.
    pub(super) fn reduce(&mut self, x: &Typed, initial: &Typed, axes: &[usize], by: &str) -> Typed {
        let region = self.pairwise(x.dtype, by);
        let kept = (0..x.rank()).filter(|axis| !axes.contains(axis));
        let dims: Vec<usize> = kept.map(|axis| x.dims[axis]).collect();
        let attrs = attrs([("dimensions", ints(axes))]);
        self.op_with("reduce", attrs, &[x, initial], vec![region], &[(x.dtype, &dims)]).remove(0)
    }

    /// The region of an operation of two scalars.
    pub(super) fn pairwise(&self, dtype: DType, by: &str) -> HloRegion {
        let args = [self.numbers.value(dtype, &[]), self.numbers.value(dtype, &[])];
        let mut block = Block::new(self.numbers);
        let result = block.same(by, &[&args[0], &args[1]]);
        block.region(&args, &[&result])
    }
}
