//! Staging maps: tuples of tensors that wait under numbers.

use crate::{dtype::DType, infer, op::*};

const LIMITS: [AttrDef; 4] = [
    int_or("capacity", 0).at_least(0),
    int_or("memory_limit", 0).at_least(0),
    string_or("container", ""),
    string_or("shared_name", ""),
];

/// Works on a map, which is known by its name.
const STATE: OpDef = OpDef {
    attrs: &[LIMITS[0], LIMITS[1], types("dtypes"), LIMITS[2], LIMITS[3]],
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

const SIZE: OpDef = OpDef { outputs: &[arg_of("size", DType::I32)], infer: infer::scalar, ..STATE };

const PUT: OpDef = OpDef {
    inputs: &[
        arg_of("key", DType::I64),
        arg_of("indices", DType::I32),
        args_list("values", "fake_dtypes"),
    ],
    attrs: &[
        LIMITS[0],
        LIMITS[1],
        types("dtypes"),
        types("fake_dtypes").at_least(1),
        LIMITS[2],
        LIMITS[3],
    ],
    ..STATE
};

const TAKE: OpDef = OpDef {
    inputs: &[arg_of("key", DType::I64), arg_of("indices", DType::I32)],
    outputs: &[args_list("values", "dtypes")],
    attrs: &[LIMITS[0], LIMITS[1], types("dtypes").at_least(1), LIMITS[2], LIMITS[3]],
    ..STATE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef { name: "MapClear", summary: "Empties a map.", ..STATE },
    OpDef {
        name: "MapIncompleteSize",
        summary: "Gives the number of tuples in a map of which parts are missing.",
        ..SIZE
    },
    OpDef {
        name: "MapPeek",
        summary: "Gives tensors under a number in a map, which stay there.",
        ..TAKE
    },
    OpDef { name: "MapSize", summary: "Gives the number of complete tuples in a map.", ..SIZE },
    OpDef {
        name: "MapStage",
        summary: "Puts tensors of a tuple under a number into a map.",
        ..PUT
    },
    OpDef { name: "MapUnstage", summary: "Takes tensors under a number from a map.", ..TAKE },
    OpDef {
        name: "MapUnstageNoKey",
        summary: "Takes tensors under the smallest number from a map.",
        inputs: &[arg_of("indices", DType::I32)],
        outputs: &[arg_of("key", DType::I64), args_list("values", "dtypes")],
        ..TAKE
    },
    OpDef { name: "OrderedMapClear", summary: "Empties an ordered map.", ..STATE },
    OpDef {
        name: "OrderedMapIncompleteSize",
        summary: "Gives the number of tuples in an ordered map of which parts are missing.",
        ..SIZE
    },
    OpDef {
        name: "OrderedMapPeek",
        summary: "Gives tensors under a number in an ordered map, which stay there.",
        ..TAKE
    },
    OpDef {
        name: "OrderedMapSize",
        summary: "Gives the number of complete tuples in an ordered map.",
        ..SIZE
    },
    OpDef {
        name: "OrderedMapStage",
        summary: "Puts tensors of a tuple under a number into an ordered map.",
        ..PUT
    },
    OpDef {
        name: "OrderedMapUnstage",
        summary: "Takes tensors under a number from an ordered map.",
        ..TAKE
    },
    OpDef {
        name: "OrderedMapUnstageNoKey",
        summary: "Takes tensors under the smallest number from an ordered map.",
        inputs: &[arg_of("indices", DType::I32)],
        outputs: &[arg_of("key", DType::I64), args_list("values", "dtypes")],
        ..TAKE
    },
];
