//! Ops that TensorFlow's graph optimiser makes of others for oneDNN, and the ops that they stand for.
//!
//! Graphs that were dumped after optimisation have them. They take and return plain tensors, so a
//! node of such an op is read as a node of the op that it was made of. Those that exchange layouts of
//! oneDNN in further tensors are left out, and so are those whose results are others in some cases, as
//! running them tells: normalisations of batches, softmax, some of quantised numbers.
//!
//! Source: TensorFlow's `mkl_graph_util.h` and `nn_ops.cc`.

use ferroflow_ir::{AttrValue, Attrs, Error, OpDef, Result, ops};

/// The ops for oneDNN, and what they were made of.
const OPS: &[(&str, &str)] = &[
    ("_MklBatchMatMul", "BatchMatMul"),
    ("_MklBatchMatMulV2", "BatchMatMulV2"),
    ("_MklConjugateTranspose", "ConjugateTranspose"),
    ("_MklDequantize", "Dequantize"),
    ("_MklEinsum", "Einsum"),
    ("_MklMatMul", "MatMul"),
    ("_MklNativeAvgPool", "AvgPool"),
    ("_MklNativeAvgPool3D", "AvgPool3D"),
    ("_MklNativeAvgPool3DGrad", "AvgPool3DGrad"),
    ("_MklNativeAvgPoolGrad", "AvgPoolGrad"),
    ("_MklNativeConv2D", "Conv2D"),
    ("_MklNativeConv2DBackpropFilter", "Conv2DBackpropFilter"),
    ("_MklNativeConv2DBackpropInput", "Conv2DBackpropInput"),
    ("_MklNativeConv3D", "Conv3D"),
    ("_MklNativeConv3DBackpropFilterV2", "Conv3DBackpropFilterV2"),
    ("_MklNativeConv3DBackpropInputV2", "Conv3DBackpropInputV2"),
    ("_MklNativeDepthwiseConv2dNative", "DepthwiseConv2dNative"),
    ("_MklNativeDepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"),
    ("_MklNativeDepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropInput"),
    ("_MklNativeFusedConv2D", "_FusedConv2D"),
    ("_MklNativeFusedMatMul", "_FusedMatMul"),
    ("_MklQuantizedConv2DAndRelu", "QuantizedConv2DAndRelu"),
    ("_MklQuantizedConv2DAndReluAndRequantize", "QuantizedConv2DAndReluAndRequantize"),
    ("_MklQuantizedConv2DAndRequantize", "QuantizedConv2DAndRequantize"),
    ("_MklQuantizedConv2DWithBias", "QuantizedConv2DWithBias"),
    ("_MklQuantizedConv2DWithBiasAndRelu", "QuantizedConv2DWithBiasAndRelu"),
    (
        "_MklQuantizedConv2DWithBiasAndReluAndRequantize",
        "QuantizedConv2DWithBiasAndReluAndRequantize",
    ),
    ("_MklQuantizedConv2DWithBiasAndRequantize", "QuantizedConv2DWithBiasAndRequantize"),
    ("_MklQuantizedDepthwiseConv2D", "QuantizedDepthwiseConv2D"),
    ("_MklQuantizedDepthwiseConv2DWithBias", "QuantizedDepthwiseConv2DWithBias"),
    ("_MklQuantizedDepthwiseConv2DWithBiasAndRelu", "QuantizedDepthwiseConv2DWithBiasAndRelu"),
    (
        "_MklQuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
        "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
    ),
    ("_MklQuantizedMaxPool", "QuantizedMaxPool"),
    ("_MklTranspose", "Transpose"),
];

/// oneDNN computes other numbers than the op stands for where the padding is explicit.
const OTHER_PADDING: &str = "_MklNativeConv2DBackpropInput";

/// Attributes that say which operands are constants: oneDNN prepares those once.
const HINTS: &[&str] = &["is_bias_const", "is_filter_const", "is_weight_const"];

/// The op that an op for oneDNN was made of.
pub(super) fn plain_twin(op: &str) -> Option<&'static str> {
    let index = OPS.binary_search_by_key(&op, |(name, _)| name).ok()?;
    Some(OPS[index].1)
}

/// The attributes of a node of an op for oneDNN as those of the op that it was made of.
///
/// # Errors
///
/// When they do not fit the op for oneDNN; [`Error::Unsupported`] for a value of an attribute that
/// the other op does not have.
pub(super) fn plain_attrs(op: &str, twin: &OpDef, attrs: Attrs) -> Result<Attrs> {
    let Some(made) = ops::interface(op).filter(|_| plain_twin(op).is_some()) else {
        return Ok(attrs);
    };
    let attrs = made.complete_attrs(attrs)?;
    if op == OTHER_PADDING && attrs.string("padding")? == "EXPLICIT" {
        let what = "explicit padding, which oneDNN takes for another".into();
        return Err(Error::Unsupported { op: op.to_string().into(), what });
    }
    let further = made.attrs.iter().filter(|attr| twin.attr(attr.name).is_none());
    for attr in further.filter(|attr| !HINTS.contains(&attr.name)) {
        let (found, default) = (attrs.get(attr.name), attr.default.value());
        let is_empty = |value: Option<&AttrValue>| value.and_then(AttrValue::length) == Some(0);
        if found != default.as_ref() && !(is_empty(found) && is_empty(default.as_ref())) {
            let what = format!("a value of `{}` other than its default", attr.name);
            return Err(Error::Unsupported { op: op.to_string().into(), what: what.into() });
        }
    }
    Ok(attrs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::{
        op::{ArgDef, AttrDefault},
        registry,
    };

    #[test]
    fn the_ops_are_sorted() {
        assert!(OPS.is_sorted());
    }

    /// Arguments, results and the attributes that both have are the same.
    #[test]
    fn twins_have_the_same_interface() {
        for (made, of) in OPS {
            let (made, of) = (ops::interface(made).unwrap(), registry::find(of).unwrap());
            let kinds = |args: &[ArgDef]| {
                format!("{:?}", args.iter().map(|arg| arg.kind).collect::<Vec<_>>())
            };
            assert_eq!(kinds(made.inputs), kinds(of.inputs), "{}", made.name);
            assert_eq!(kinds(made.outputs), kinds(of.outputs), "{}", made.name);
            let found = |attr: &&ferroflow_ir::op::AttrDef| {
                matches!(attr.default, AttrDefault::Required) && made.attr(attr.name).is_none()
            };
            assert_eq!(of.attrs.iter().find(found).map(|attr| attr.name), None, "{}", made.name);
        }
    }

    #[test]
    fn a_default_of_an_op_for_onednn_is_its_own() {
        let twin = registry::find("Dequantize").unwrap();
        let attrs = Attrs::new().with("T", ferroflow_ir::DType::QI8);
        let found = plain_attrs("_MklDequantize", twin, attrs).unwrap();
        assert_eq!(found.string("mode").unwrap(), "SCALED");
    }

    #[test]
    fn what_the_other_op_cannot_do_is_refused() {
        let twin = registry::find("QuantizedConv2DAndRelu").unwrap();
        let attrs = Attrs::new()
            .with("Tinput", ferroflow_ir::DType::QU8)
            .with("Tfilter", ferroflow_ir::DType::QI8)
            .with("strides", vec![1i64, 1, 1, 1])
            .with("padding", "VALID")
            .with("data_format", "NCHW");
        let error = plain_attrs("_MklQuantizedConv2DAndRelu", twin, attrs).unwrap_err().to_string();
        assert!(error.contains("data_format"), "{error}");
    }
}
