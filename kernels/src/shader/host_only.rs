//! Kernels that devices leave to the host, and why.
//!
//! A test holds that an op with a kernel either has programs or is here, never both: a gap is a line
//! of [`NOT_YET`].

/// Ops that the host keeps, by what makes them its own.
const HOST_ONLY: &[(&str, &[&str])] = &[
    (
        "sizes of results follow from data, which the host has to know",
        &[
            "DynamicPartition",
            "DynamicStitch",
            "ListDiff",
            "ParallelDynamicStitch",
            "Range",
            "SegmentMax",
            "SegmentMean",
            "SegmentMin",
            "SegmentProd",
            "SegmentSum",
            "SparseSegmentMean",
            "SparseSegmentMeanGradV2",
            "SparseSegmentSqrtN",
            "SparseSegmentSqrtNGradV2",
            "SparseSegmentSum",
            "SparseSegmentSumGradV2",
            "Unique",
            "UniqueV2",
            "UniqueWithCounts",
            "UniqueWithCountsV2",
            "Where",
        ],
    ),
    (
        "shapes and checks, which steer the host",
        &[
            "Assert",
            "BroadcastArgs",
            "BroadcastGradientArgs",
            "CheckNumerics",
            "CheckNumericsV2",
            "ConcatOffset",
            "Rank",
            "Shape",
            "ShapeN",
            "Size",
            "UnravelIndex",
        ],
    ),
    (
        "sparse and ragged bookkeeping",
        &[
            "DenseCountSparseOutput",
            "DenseToDenseSetOperation",
            "DenseToSparseSetOperation",
            "RaggedBincount",
            "RaggedCountSparseOutput",
            "RaggedFillEmptyRows",
            "RaggedFillEmptyRowsGrad",
            "RaggedGather",
            "RaggedRange",
            "RaggedTensorToSparse",
            "RaggedTensorToTensor",
            "SerializeManySparse",
            "SerializeSparse",
            "SetSize",
            "SparseAdd",
            "SparseAddGrad",
            "SparseBincount",
            "SparseConcat",
            "SparseCountSparseOutput",
            "SparseCross",
            "SparseCrossHashed",
            "SparseCrossV2",
            "SparseDenseCwiseAdd",
            "SparseDenseCwiseDiv",
            "SparseDenseCwiseMul",
            "SparseFillEmptyRows",
            "SparseFillEmptyRowsGrad",
            "SparseReduceMax",
            "SparseReduceMaxSparse",
            "SparseReduceSum",
            "SparseReduceSumSparse",
            "SparseReorder",
            "SparseReshape",
            "SparseSlice",
            "SparseSliceGrad",
            "SparseSoftmax",
            "SparseSparseMaximum",
            "SparseSparseMinimum",
            "SparseSplit",
            "SparseTensorDenseAdd",
            "SparseToSparseSetOperation",
        ],
    ),
    (
        "linear algebra, which is long chains of small steps",
        &[
            "Cholesky",
            "LogMatrixDeterminant",
            "Lu",
            "MatrixDeterminant",
            "MatrixInverse",
            "MatrixLogarithm",
            "MatrixSolve",
            "MatrixSquareRoot",
            "MatrixTriangularSolve",
            "Qr",
            "SelfAdjointEigV2",
            "Svd",
            "TridiagonalMatMul",
            "TridiagonalSolve",
        ],
    ),
    (
        "complex numbers, which devices do not hold",
        &[
            "FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D",
            "RFFT", "RFFT2D", "RFFT3D",
        ],
    ),
    (
        "decisions that follow each other",
        &[
            "CTCBeamSearchDecoder",
            "CTCGreedyDecoder",
            "CTCLoss",
            "CombinedNonMaxSuppression",
            "EditDistance",
            "IsotonicRegression",
            "NonMaxSuppression",
            "NonMaxSuppressionV2",
            "NonMaxSuppressionV3",
            "NonMaxSuppressionV4",
            "NonMaxSuppressionV5",
            "NonMaxSuppressionWithOverlaps",
        ],
    ),
    (
        "bytes and text",
        &[
            "AsString",
            "DecodeAndCropJpeg",
            "DecodeBase64",
            "DecodeBmp",
            "DecodeCSV",
            "DecodeCompressed",
            "DecodeGif",
            "DecodeImage",
            "DecodeJpeg",
            "DecodePaddedRaw",
            "DecodePng",
            "DecodeRaw",
            "DecodeWav",
            "DecodeWebP",
            "EncodeBase64",
            "EncodeJpeg",
            "EncodeJpegVariableQuality",
            "EncodePng",
            "EncodeWav",
            "ExtractJpegShape",
            "Fingerprint",
            "ParseExample",
            "ParseExampleV2",
            "ParseSequenceExample",
            "ParseSequenceExampleV2",
            "ParseSingleExample",
            "ParseSingleSequenceExample",
            "ParseTensor",
            "ReduceJoin",
            "RegexFullMatch",
            "RegexReplace",
            "SerializeTensor",
            "StaticRegexFullMatch",
            "StaticRegexReplace",
            "StringFormat",
            "StringJoin",
            "StringLength",
            "StringLower",
            "StringNGrams",
            "StringSplit",
            "StringSplitV2",
            "StringStrip",
            "StringToHashBucket",
            "StringToHashBucketFast",
            "StringToHashBucketStrong",
            "StringToNumber",
            "StringUpper",
            "Substr",
            "UnicodeDecode",
            "UnicodeDecodeWithOffsets",
            "UnicodeEncode",
            "UnicodeScript",
            "UnicodeTranscode",
            "UnsortedSegmentJoin",
        ],
    ),
];

/// Ops that devices could run and for which nobody has written programs yet.
#[cfg(test)]
const NOT_YET: &[&str] = &[
    "AudioSpectrogram",
    "Betainc",
    "BlockLSTM",
    "BlockLSTMV2",
    "Dequantize",
    "DrawBoundingBoxes",
    "DrawBoundingBoxesV2",
    "Empty",
    "ExtractGlimpse",
    "ExtractGlimpseV2",
    "FractionalAvgPool",
    "FractionalMaxPool",
    "LSTMBlockCell",
    "LinSpace",
    "Mfcc",
    "QuantizeAndDequantizeV2",
    "QuantizeAndDequantizeV3",
    "QuantizeAndDequantizeV4",
    "QuantizeDownAndShrinkRange",
    "QuantizeV2",
    "QuantizedAdd",
    "QuantizedAvgPool",
    "QuantizedBiasAdd",
    "QuantizedConcat",
    "QuantizedConv2D",
    "QuantizedInstanceNorm",
    "QuantizedMatMul",
    "QuantizedMaxPool",
    "QuantizedMul",
    "QuantizedRelu",
    "QuantizedRelu6",
    "QuantizedResizeBilinear",
    "RequantizationRange",
    "Requantize",
    "ScaleAndTranslate",
    "SparseTensorDenseMatMul",
    "StatelessRandomGammaV3",
    "StatelessRandomUniformIntV2",
    "StatelessShuffle",
    "StatelessTruncatedNormalV2",
    "UniformDequantize",
    "UniformQuantize",
    "UniformRequantize",
    "_Region",
    "_StatelessMultinomialV2",
    "_StatelessParameterizedTruncatedNormalV2",
    "_StatelessRandomBinomialV2",
    "_StatelessRandomPoissonV2",
];

/// Why devices leave an op to the host, if they do so for good.
pub(crate) fn reason(op: &str) -> Option<&'static str> {
    HOST_ONLY.iter().find(|(_, ops)| ops.contains(&op)).map(|(reason, _)| *reason)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{PRODUCTS, SHADERS, by_name},
        NOT_YET, reason,
    };
    use ferroflow_ir::{Lowering, OpRegistry};
    use std::collections::BTreeSet;

    #[test]
    fn kernels_have_programs_or_a_reason() {
        let mut missing = BTreeSet::new();
        for op in OpRegistry::default().implemented() {
            if matches!(op.lowering, Lowering::Kernel) {
                let has_programs =
                    by_name(SHADERS, op.name).is_some() || by_name(PRODUCTS, op.name).is_some();
                assert!(!has_programs || reason(op.name).is_none(), "{}", op.name);
                if !has_programs && reason(op.name).is_none() {
                    missing.insert(op.name);
                }
            }
        }
        assert_eq!(missing.into_iter().collect::<Vec<_>>(), NOT_YET);
    }
}
