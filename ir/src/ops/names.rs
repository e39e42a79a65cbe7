//! Names of the ops that passes, runtime and tracer look for or make.
//!
//! Facts about an op are in its record; code that must speak of one op uses its name from here.

/// `AddN`.
pub const ADD_N: &str = "AddN";
/// `AddV2`.
pub const ADD_V2: &str = "AddV2";
/// `_Arg`.
pub const ARG: &str = "_Arg";
/// `AssignAddVariableOp`.
pub const ASSIGN_ADD_VARIABLE_OP: &str = "AssignAddVariableOp";
/// `AssignSubVariableOp`.
pub const ASSIGN_SUB_VARIABLE_OP: &str = "AssignSubVariableOp";
/// `AssignVariableOp`.
pub const ASSIGN_VARIABLE_OP: &str = "AssignVariableOp";
/// `Bitcast`.
pub const BITCAST: &str = "Bitcast";
/// `Case`.
pub const CASE: &str = "Case";
/// `Cast`.
pub const CAST: &str = "Cast";
/// `CheckNumericsV2`.
pub const CHECK_NUMERICS_V2: &str = "CheckNumericsV2";
/// `CollectiveBcastRecvV2`.
pub const COLLECTIVE_BCAST_RECV_V2: &str = "CollectiveBcastRecvV2";
/// `CollectiveBcastSendV2`.
pub const COLLECTIVE_BCAST_SEND_V2: &str = "CollectiveBcastSendV2";
/// `CollectiveGatherV2`.
pub const COLLECTIVE_GATHER_V2: &str = "CollectiveGatherV2";
/// `_CollectiveKey`.
pub const COLLECTIVE_KEY: &str = "_CollectiveKey";
/// `CollectiveReduceScatterV2`.
pub const COLLECTIVE_REDUCE_SCATTER_V2: &str = "CollectiveReduceScatterV2";
/// `_CollectiveReduceStart`.
pub const COLLECTIVE_REDUCE_START: &str = "_CollectiveReduceStart";
/// `CollectiveReduceV2`.
pub const COLLECTIVE_REDUCE_V2: &str = "CollectiveReduceV2";
/// `_CollectiveReduceWait`.
pub const COLLECTIVE_REDUCE_WAIT: &str = "_CollectiveReduceWait";
/// `ConcatV2`.
pub const CONCAT_V2: &str = "ConcatV2";
/// `Const`.
pub const CONST: &str = "Const";
/// `Conv2D`.
pub const CONV_2D: &str = "Conv2D";
/// `DecodeImage`.
pub const DECODE_IMAGE: &str = "DecodeImage";
/// `DepthwiseConv2dNative`.
pub const DEPTHWISE_CONV_2D_NATIVE: &str = "DepthwiseConv2dNative";
/// `Div`.
pub const DIV: &str = "Div";
/// `Fill`.
pub const FILL: &str = "Fill";
/// `_FusedAttention`.
pub const FUSED_ATTENTION: &str = "_FusedAttention";
/// `_FusedConvolutions`.
pub const FUSED_CONVOLUTIONS: &str = "_FusedConvolutions";
/// `_FusedElementwise`.
pub const FUSED_ELEMENTWISE: &str = "_FusedElementwise";
/// `_FusedExpressions`.
pub const FUSED_EXPRESSIONS: &str = "_FusedExpressions";
/// `Gather`.
pub const GATHER: &str = "Gather";
/// `GatherV2`.
pub const GATHER_V2: &str = "GatherV2";
/// `Greater`.
pub const GREATER: &str = "Greater";
/// `GreaterEqual`.
pub const GREATER_EQUAL: &str = "GreaterEqual";
/// `Identity`.
pub const IDENTITY: &str = "Identity";
/// `IdentityN`.
pub const IDENTITY_N: &str = "IdentityN";
/// `If`.
pub const IF: &str = "If";
/// `Less`.
pub const LESS: &str = "Less";
/// `LessEqual`.
pub const LESS_EQUAL: &str = "LessEqual";
/// `LogicalAnd`.
pub const LOGICAL_AND: &str = "LogicalAnd";
/// `LogSoftmax`.
pub const LOG_SOFTMAX: &str = "LogSoftmax";
/// `MatMul`.
pub const MAT_MUL: &str = "MatMul";
/// `Maximum`.
pub const MAXIMUM: &str = "Maximum";
/// `Minimum`.
pub const MINIMUM: &str = "Minimum";
/// `Mul`.
pub const MUL: &str = "Mul";
/// `_Outlined`.
pub const OUTLINED: &str = "_Outlined";
/// `Pack`.
pub const PACK: &str = "Pack";
/// `Pad`.
pub const PAD: &str = "Pad";
/// `PartitionedCall`.
pub const PARTITIONED_CALL: &str = "PartitionedCall";
/// `Placeholder`.
pub const PLACEHOLDER: &str = "Placeholder";
/// `PrintV2`.
pub const PRINT_V2: &str = "PrintV2";
/// `ReadVariableOp`.
pub const READ_VARIABLE_OP: &str = "ReadVariableOp";
/// `RealDiv`.
pub const REAL_DIV: &str = "RealDiv";
/// `_Region`.
pub const REGION: &str = "_Region";
/// `_ReplicatedCall`.
pub const REPLICATED_CALL: &str = "_ReplicatedCall";
/// `_Require`.
pub const REQUIRE: &str = "_Require";
/// `Reshape`.
pub const RESHAPE: &str = "Reshape";
/// `ResourceApplyAdadelta`.
pub const RESOURCE_APPLY_ADADELTA: &str = "ResourceApplyAdadelta";
/// `ResourceApplyAdam`.
pub const RESOURCE_APPLY_ADAM: &str = "ResourceApplyAdam";
/// `ResourceApplyAdamWithAmsgrad`.
pub const RESOURCE_APPLY_ADAM_WITH_AMSGRAD: &str = "ResourceApplyAdamWithAmsgrad";
/// `ResourceApplyAdaMax`.
pub const RESOURCE_APPLY_ADA_MAX: &str = "ResourceApplyAdaMax";
/// `ResourceApplyCenteredRMSProp`.
pub const RESOURCE_APPLY_CENTERED_RMS_PROP: &str = "ResourceApplyCenteredRMSProp";
/// `ResourceApplyFtrlV2`.
pub const RESOURCE_APPLY_FTRL_V2: &str = "ResourceApplyFtrlV2";
/// `ResourceApplyGradientDescent`.
pub const RESOURCE_APPLY_GRADIENT_DESCENT: &str = "ResourceApplyGradientDescent";
/// `ResourceApplyKerasMomentum`.
pub const RESOURCE_APPLY_KERAS_MOMENTUM: &str = "ResourceApplyKerasMomentum";
/// `ResourceApplyRMSProp`.
pub const RESOURCE_APPLY_RMS_PROP: &str = "ResourceApplyRMSProp";
/// `ResourceGather`.
pub const RESOURCE_GATHER: &str = "ResourceGather";
/// `ResourceScatterAdd`.
pub const RESOURCE_SCATTER_ADD: &str = "ResourceScatterAdd";
/// `ResourceScatterSub`.
pub const RESOURCE_SCATTER_SUB: &str = "ResourceScatterSub";
/// `ResourceSparseApplyAdadelta`.
pub const RESOURCE_SPARSE_APPLY_ADADELTA: &str = "ResourceSparseApplyAdadelta";
/// `ResourceSparseApplyCenteredRMSProp`.
pub const RESOURCE_SPARSE_APPLY_CENTERED_RMS_PROP: &str = "ResourceSparseApplyCenteredRMSProp";
/// `ResourceSparseApplyFtrlV2`.
pub const RESOURCE_SPARSE_APPLY_FTRL_V2: &str = "ResourceSparseApplyFtrlV2";
/// `ResourceSparseApplyKerasMomentum`.
pub const RESOURCE_SPARSE_APPLY_KERAS_MOMENTUM: &str = "ResourceSparseApplyKerasMomentum";
/// `ResourceSparseApplyRMSProp`.
pub const RESOURCE_SPARSE_APPLY_RMS_PROP: &str = "ResourceSparseApplyRMSProp";
/// `_RowCall`.
pub const ROW_CALL: &str = "_RowCall";
/// `SelectV2`.
pub const SELECT_V2: &str = "SelectV2";
/// `Shape`.
pub const SHAPE: &str = "Shape";
/// `Slice`.
pub const SLICE: &str = "Slice";
/// `Softmax`.
pub const SOFTMAX: &str = "Softmax";
/// `StatefulPartitionedCall`.
pub const STATEFUL_PARTITIONED_CALL: &str = "StatefulPartitionedCall";
/// `StatelessCase`.
pub const STATELESS_CASE: &str = "StatelessCase";
/// `StatelessIf`.
pub const STATELESS_IF: &str = "StatelessIf";
/// `StatelessRandomNormalV2`.
pub const STATELESS_RANDOM_NORMAL_V2: &str = "StatelessRandomNormalV2";
/// `StatelessRandomUniformV2`.
pub const STATELESS_RANDOM_UNIFORM_V2: &str = "StatelessRandomUniformV2";
/// `StatelessTruncatedNormalV2`.
pub const STATELESS_TRUNCATED_NORMAL_V2: &str = "StatelessTruncatedNormalV2";
/// `StatelessWhile`.
pub const STATELESS_WHILE: &str = "StatelessWhile";
/// `StridedSlice`.
pub const STRIDED_SLICE: &str = "StridedSlice";
/// `StringFormat`.
pub const STRING_FORMAT: &str = "StringFormat";
/// `Sub`.
pub const SUB: &str = "Sub";
/// `TensorListFromTensor`.
pub const TENSOR_LIST_FROM_TENSOR: &str = "TensorListFromTensor";
/// `TensorListGetItem`.
pub const TENSOR_LIST_GET_ITEM: &str = "TensorListGetItem";
/// `TensorListReserve`.
pub const TENSOR_LIST_RESERVE: &str = "TensorListReserve";
/// `TensorListSetItem`.
pub const TENSOR_LIST_SET_ITEM: &str = "TensorListSetItem";
/// `TensorListStack`.
pub const TENSOR_LIST_STACK: &str = "TensorListStack";
/// `TensorScatterUpdate`.
pub const TENSOR_SCATTER_UPDATE: &str = "TensorScatterUpdate";
/// `TensorStridedSliceUpdate`.
pub const TENSOR_STRIDED_SLICE_UPDATE: &str = "TensorStridedSliceUpdate";
/// `Transpose`.
pub const TRANSPOSE: &str = "Transpose";
/// `UnsortedSegmentSum`.
pub const UNSORTED_SEGMENT_SUM: &str = "UnsortedSegmentSum";
/// `VariableShape`.
pub const VARIABLE_SHAPE: &str = "VariableShape";
/// `VarHandleOp`.
pub const VAR_HANDLE_OP: &str = "VarHandleOp";
/// `While`.
pub const WHILE: &str = "While";
/// `_WideningMatMul`.
pub const WIDENING_MAT_MUL: &str = "_WideningMatMul";
/// `XlaCallModule`.
pub const XLA_CALL_MODULE: &str = "XlaCallModule";
/// `ZerosLike`.
pub const ZEROS_LIKE: &str = "ZerosLike";

#[cfg(test)]
mod tests {
    use crate::registry;

    #[test]
    fn names_are_of_records() {
        let source = include_str!("names.rs");
        let names: Vec<&str> = source
            .lines()
            .filter_map(|line| line.strip_prefix("/// `")?.strip_suffix("`."))
            .collect();
        assert!(names.len() > 50);
        for name in names {
            assert!(registry::find(name).is_some(), "{name}");
            assert!(source.contains(&format!("\"{name}\";")), "{name}");
        }
    }
}
