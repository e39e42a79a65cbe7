use crate::cases::{Case, cases, golden_folder};
use expect_test::expect;
use ferroflow_ir::{FunctionLibrary, Limits, OpRegistry};
use ferroflow_saved_model::{
    Error, Result,
    convert::{self, Definitions},
    proto, read_message,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Malformed models of which loading alone must find out.
const MALFORMED: &[&str] = &[
    "bad_attr_kind",
    "bad_attr_missing",
    "bad_const_bad_enum",
    "bad_const_dtype",
    "bad_const_negative_dim",
    "bad_const_overflow",
    "bad_const_short",
    "bad_const_splat_huge",
    "bad_control_cycle",
    "bad_cycle",
    "bad_dangling_input",
    "bad_dtype_conflict",
    "bad_duplicate_names",
    "bad_function_mutual_recursion",
    "bad_function_no_ret",
    "bad_function_recursion",
    "bad_function_ret_dangling",
    "bad_input_count",
    "bad_node_name_empty",
    "bad_output_index",
    "bad_pb_half",
    "bad_pb_length_overflow",
    "bad_pb_minus_one",
    "bad_pb_noise",
    "bad_self_loop",
    "bad_structure_20000_deep",
];

/// Converts all graphs, functions and structured values of a model, and graphs and functions back.
pub(crate) fn convert_model(model: proto::SavedModel) -> Result<()> {
    for meta_graph in model.meta_graphs {
        convert_graph(meta_graph.graph_def.unwrap_or_default())?;
        if let Some(objects) = meta_graph.object_graph_def {
            convert_values(&objects)?;
        }
    }
    Ok(())
}

fn convert_graph(graph_def: proto::GraphDef) -> Result<()> {
    let definitions = definitions(graph_def.library)?;
    let functions = FunctionLibrary::new();
    convert::add_functions(&functions, &definitions)?;
    let graph = convert::graph(&graph_def.node, &definitions)?;
    convert::graph_message(&graph, &functions)?;
    // Not the functions that programs of StableHLO become, which are in no file.
    let own = definitions.library().function.iter().filter_map(|own| own.signature.as_ref());
    let own = own.map(|signature| Arc::from(signature.name.as_str()));
    convert::library_message(own, &functions).map(drop).map_err(Error::from)
}

pub(crate) fn definitions(library: Option<proto::FunctionDefLibrary>) -> Result<Arc<Definitions>> {
    let registry = Arc::new(OpRegistry::default());
    let library = library.unwrap_or_default();
    Ok(Arc::new(Definitions::new(library, registry, Limits::default())?))
}

fn convert_values(objects: &proto::SavedObjectGraph) -> Result<()> {
    use proto::saved_object::Kind;
    let mut values = Vec::new();
    for function in objects.concrete_functions.values() {
        values.extend([&function.canonicalized_input_signature, &function.output_signature]);
    }
    for object in &objects.nodes {
        let spec = match &object.kind {
            Some(Kind::Function(function)) => function.function_spec.as_ref(),
            Some(Kind::BareConcreteFunction(function)) => function.function_spec.as_ref(),
            _ => None,
        };
        values.extend(spec.iter().flat_map(|spec| [&spec.fullargspec, &spec.input_signature]));
    }
    for value in values.into_iter().flatten() {
        convert::structured_value(value, &Limits::default())?;
    }
    Ok(())
}

fn convert_file(path: &Path) -> Result<()> {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("saved_model.pb") => convert_model(read_message(path)?),
        _ => convert_graph(read_message(path)?),
    }
}

pub(crate) fn model_path(case: &Case) -> Option<PathBuf> {
    let files = ["model/saved_model.pb", "model/graph.pb"].map(|file| case.folder.join(file));
    files.into_iter().find(|path| path.exists())
}

#[test]
fn every_model_converts() {
    for case in cases("").into_iter().filter(|case| !case.name().starts_with("bad_")) {
        let Some(path) = model_path(&case) else { continue };
        convert_file(&path).unwrap_or_else(|error| panic!("{}: {error}", case.name()));
    }
}

#[test]
fn malformed_models_are_errors() {
    for case in cases("bad_") {
        let Some(path) = model_path(&case) else { continue };
        let result = convert_file(&path);
        if MALFORMED.contains(&case.name()) {
            assert!(result.is_err(), "{}: no error", case.name());
        }
    }
}

fn small_model() -> proto::MetaGraphDef {
    let path = golden_folder().join("small_model/saved_model.pb");
    let model: proto::SavedModel = read_message(&path).unwrap();
    model.meta_graphs.into_iter().next().unwrap()
}

#[test]
fn functions_as_text() {
    let library = small_model().graph_def.unwrap().library;
    let definitions = definitions(library).unwrap();
    let functions = &definitions.library().function;
    let is_dense = |function: &&proto::FunctionDef| {
        function.signature.as_ref().unwrap().name.starts_with("__inference_dense")
    };
    let dense = functions.iter().find(is_dense).unwrap();
    let function = convert::function(dense, &definitions).unwrap();
    expect![[r#"
        function @__inference_dense_33(%x: float32[?,2], %assignaddvariableop_resource: resource<unknown><int32[]>, %matmul_readvariableop_resource: resource<unknown><float32[2,2]>) {
          %Const = Const() {dtype: int32, value: int32[] [1]} : int32[]
          %AssignAddVariableOp = AssignAddVariableOp(%assignaddvariableop_resource, %Const) {dtype: int32}
          %matmul/ReadVariableOp = ReadVariableOp(%matmul_readvariableop_resource) {dtype: float32} : float32[2,2]
          %matmul = MatMul(%x, %matmul/ReadVariableOp) {T: float32, grad_a: false, grad_b: false, transpose_a: false, transpose_b: false} : float32[?,2]
          %Relu = Relu(%matmul) {T: float32} : float32[?,2]
          %NoOp = NoOp(^AssignAddVariableOp, ^matmul/ReadVariableOp)
          %Identity = Identity(%Relu, ^NoOp) {T: float32} : float32[?,2]
          return identity = %Identity ^AssignAddVariableOp ^matmul/ReadVariableOp
        }
    "#]].assert_eq(&function.to_string());
}

#[test]
fn signatures_as_text() {
    let objects = small_model().object_graph_def.unwrap();
    let mut lines = String::new();
    for (name, function) in &objects.concrete_functions {
        let text = |value: &Option<proto::StructuredValue>| {
            convert::structured_value(value.as_ref().unwrap(), &Limits::default()).unwrap()
        };
        let inputs = text(&function.canonicalized_input_signature);
        let outputs = text(&function.output_signature);
        lines.push_str(&format!("{name}: {inputs} -> {outputs}\n"));
    }
    expect![[r#"
        __inference_dense_33: ((x: float32[?,2],), {}) -> unknown: float32[?,2]
        __inference_repeat_129: ((x: float32[?,2], times: int32[]), {}) -> {"size": size: int32[2], "y": y: float32[?,2]}
        __inference_scale_137: (((pair_0: float32[3], pair_1: float32[?]), 2.0), {"negate": False}) -> (tensor_0: float32[3], tensor_1: float32[?])
        __inference_scale_146: (((pair_0: float32[3], pair_1: float32[?]), factor: float32[]), {"negate": True}) -> (tensor_0: float32[3], tensor_1: float32[?])
        __inference_signature_wrapper_dense_43: ((), {"x": x: float32[?,2]}) -> {"output_0": output_0: float32[?,2]}
    "#]].assert_eq(&lines);
}
