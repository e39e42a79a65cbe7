//! The source of a kernel of each family, as files to be read: what a change of a kernel or of the
//! printers does to them is reviewed with it. `UPDATE_EXPECT=1` writes them again.

use super::{Caps, ShaderDialect, cases::cases, shader};
use expect_test::expect_file;

/// Ops whose first call in the matrix is shown.
const OPS: &[&str] = &[
    "AddV2",
    "AdjustHue",
    "ArgMax",
    "AvgPoolGrad",
    "BatchMatMulV2",
    "Cast",
    "ConcatV2",
    "Conv2D",
    "Conv2DBackpropFilter",
    "Conv2DBackpropInput",
    "CropAndResize",
    "Cumsum",
    "DenseBincount",
    "DepthwiseConv2dNative",
    "Dilation2D",
    "ExtractImagePatches",
    "FakeQuantWithMinMaxArgs",
    "FloorDiv",
    "GatherNd",
    "GatherV2",
    "ImageProjectiveTransformV3",
    "LRN",
    "LogSoftmax",
    "LowerBound",
    "MatMul",
    "MatrixDiagV3",
    "MatrixSetDiag",
    "MaxPool",
    "MaxPoolWithArgmax",
    "Mean",
    "MirrorPad",
    "OneHot",
    "PadV2",
    "ResizeBilinear",
    "ResizeNearestNeighborGrad",
    "ReverseSequence",
    "Roll",
    "ScatterNd",
    "SelectV2",
    "SparseSegmentMeanGrad",
    "StatelessRandomNormalV2",
    "StridedSliceGrad",
    "Sum",
    "TensorScatterMax",
    "TopKV2",
    "Transpose",
    "UnsortedSegmentSum",
];

/// The source from the entry point on: functions before it are the library's.
fn entry<'a>(text: &'a str, start: &str) -> &'a str {
    text.find(start).map_or(text, |at| &text[at..])
}

#[test]
fn kernels_read_as_they_are_shown() {
    let least = Caps { int64: true, ..Caps::default() };
    let most = Caps {
        int64: true,
        tiles: true,
        subgroups: true,
        warps: true,
        matrices: true,
        halves: false,
    };
    let cases = cases();
    for op in OPS {
        let found = cases.iter().filter(|case| case.op == *op).find_map(|case| {
            case.with_call(|call| {
                let of = |caps| shader(call, caps).unwrap();
                Some((case.name(), of(least)?, of(most)?))
            })?
        });
        let (name, least, most) = found.unwrap_or_else(|| panic!("{op} has no kernel"));
        let wgsl = ShaderDialect::Wgsl.print(&least);
        let cuda = ShaderDialect::Cuda.print(&most);
        let shown = |text: &str| format!("// {name}\n{text}");
        let file = |extension: &str| {
            let root = env!("CARGO_MANIFEST_DIR");
            format!("{root}/src/shader/tests/snapshots/{op}.{extension}")
        };
        expect_file![file("wgsl")].assert_eq(&shown(entry(&wgsl, "@compute")));
        expect_file![file("cu")].assert_eq(&shown(entry(&cuda, "extern \"C\"")));
    }
}
