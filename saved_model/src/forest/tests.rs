//! Forests in files that are made here, and the ops on them.

use super::*;
use ferroflow_format::proto::{
    Message as _,
    yggdrasil::{
        BoostedTreesHeader, CategoricalSpec, Condition, DataColumn, DataSpecification,
        DiscretizedSpec, ForestHeader, IsolationForestHeader, NodeCondition, RegressorOutput,
        TreeNode, condition, condition::Type, tree_node::Output,
    },
};
use ferroflow_runtime::{ContextOptions, FileAccess};
use std::{collections::BTreeMap, fs};

/// The files of a forest by name.
#[derive(Clone, Default)]
struct MemoryFiles(BTreeMap<String, Vec<u8>>);

impl ForestFolder for MemoryFiles {
    type Error = crate::Error;

    fn read(&mut self, path: &Path) -> Result<Bytes, crate::Error> {
        let file = self.0.get(&*path.file_name().unwrap().to_string_lossy());
        let source = || std::io::ErrorKind::NotFound.into();
        let absent = || crate::Error::Io { path: path.into(), source: source() };
        Ok(file.ok_or_else(absent)?.clone().into())
    }

    fn unzip(&mut self, packed: Bytes) -> Result<Bytes, crate::Error> {
        Ok(packed)
    }
}

fn node(condition: Option<Type>, score: Option<f32>) -> TreeNode {
    let condition = condition.map(|condition| NodeCondition {
        na_value: Some(true),
        attribute: Some(0),
        condition: Some(Condition { r#type: Some(condition) }),
    });
    let output = score.map(|score| Output::Regressor(RegressorOutput { top_value: Some(score) }));
    TreeNode { output, condition }
}

fn sequence(nodes: &[TreeNode]) -> Vec<u8> {
    let mut bytes = b"BS\x01\0\0\0\0\0".to_vec();
    for node in nodes {
        let node = node.encode_to_vec();
        bytes.extend_from_slice(&(node.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&node);
    }
    bytes
}

/// A boosted forest of one tree on one column of this type, its leaves -1 and 1.
fn stump(
    column: DataColumn,
    condition: Type,
    change: impl FnOnce(&mut ForestHeader),
) -> MemoryFiles {
    let mut header = ForestHeader {
        name: Some("GRADIENT_BOOSTED_TREES".into()),
        task: Some(2),
        input_features: vec![0],
        ..ForestHeader::default()
    };
    change(&mut header);
    let boosted = BoostedTreesHeader {
        num_node_shards: Some(1),
        num_trees: Some(1),
        loss: Some(2),
        initial_predictions: vec![0.0],
        node_format: Some("BLOB_SEQUENCE".into()),
        ..BoostedTreesHeader::default()
    };
    let nodes = [node(Some(condition), None), node(None, Some(-1.0)), node(None, Some(1.0))];
    let columns = DataSpecification { columns: vec![column] };
    let files = [
        ("header.pb", header.encode_to_vec()),
        ("data_spec.pb", columns.encode_to_vec()),
        ("gradient_boosted_trees_header.pb", boosted.encode_to_vec()),
        ("nodes-00000-of-00001", sequence(&nodes)),
    ];
    MemoryFiles(files.into_iter().map(|(name, bytes)| (name.into(), bytes)).collect())
}

fn number() -> DataColumn {
    DataColumn { r#type: Some(1), ..DataColumn::default() }
}

fn at_least(threshold: f32) -> Type {
    Type::HigherCondition(condition::Higher { threshold: Some(threshold) })
}

fn read(mut files: MemoryFiles) -> Result<ForestModel, crate::Error> {
    ForestFiles::read(&mut files, Path::new("/"), "").and_then(|files| ForestModel::new(&files))
}

fn predictions(files: MemoryFiles, numbers: &[f32]) -> Vec<f32> {
    let model = read(files).unwrap();
    let examples = ForestExamples { len: numbers.len(), numbers, ..ForestExamples::default() };
    let mut found = vec![0.0; numbers.len() * model.forest.width()];
    model.forest.predict(&examples, Context::new().threads(), &mut found).unwrap();
    found
}

#[test]
fn discretized_numbers_are_compared_with_boundaries() {
    let boundaries = vec![1.0, 2.0, 4.0];
    let spec = DiscretizedSpec { boundaries };
    let column =
        DataColumn { r#type: Some(9), discretized_numerical: Some(spec), ..DataColumn::default() };
    let higher = |threshold| {
        let condition = condition::DiscretizedHigher { threshold: Some(threshold) };
        Type::DiscretizedHigherCondition(condition)
    };
    let numbers = [0.5, 1.0, 2.0, 3.9, 4.0, f32::NAN];
    let of = |threshold| predictions(stump(column.clone(), higher(threshold), |_| {}), &numbers);
    assert_eq!(of(0), [1.0; 6]);
    assert_eq!(of(2), [-1.0, -1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(of(3), [-1.0, -1.0, -1.0, -1.0, 1.0, 1.0]);
    assert_eq!(of(4), [-1.0, -1.0, -1.0, -1.0, -1.0, 1.0]);
}

#[test]
fn files_that_contradict_each_other_are_refused() {
    let good = || stump(number(), at_least(0.5), |_| {});
    assert!(read(good()).is_ok());
    let boolean = DataColumn { r#type: Some(7), ..DataColumn::default() };
    assert!(read(stump(boolean, at_least(0.5), |_| {})).is_err());
    assert!(
        read(stump(number(), at_least(0.5), |header| header.input_features = vec![1])).is_err()
    );
    assert!(read(stump(number(), at_least(0.5), |header| header.input_features = vec![])).is_err());
    // A classifier without a label.
    assert!(read(stump(number(), at_least(0.5), |header| header.task = Some(1))).is_err());
    let unsupported = stump(number(), at_least(0.5), |header| header.name = Some("LINEAR".into()));
    assert_eq!(read(unsupported).unwrap_err().code(), Code::Unimplemented);
    for n in [i64::MIN, -1, 0, 1] {
        let categorical =
            CategoricalSpec { number_of_unique_values: Some(n), ..Default::default() };
        let label = DataColumn { categorical: Some(categorical), ..number() };
        let files = stump(label, at_least(0.5), |header| header.task = Some(1));
        assert!(read(files).is_err(), "{n} values");
    }
    for name in ["header.pb", "data_spec.pb", "nodes-00000-of-00001"] {
        let mut absent = good();
        absent.0.remove(name);
        assert_eq!(read(absent).unwrap_err().code(), Code::NotFound, "{name}");
    }
    let nodes = good().0["nodes-00000-of-00001"].clone();
    for length in 0..nodes.len() {
        let mut cut = good();
        cut.0.insert("nodes-00000-of-00001".into(), nodes[..length].into());
        assert!(read(cut).is_err(), "{length} bytes");
    }
}

#[test]
fn isolation_forests_need_counts_at_their_leaves() {
    let isolation = IsolationForestHeader {
        num_node_shards: Some(1),
        num_trees: Some(1),
        node_format: Some("BLOB_SEQUENCE".into()),
        num_examples_per_trees: Some(256),
    };
    let mut files = stump(number(), at_least(0.5), |header| {
        header.name = Some("ISOLATION_FOREST".into());
        header.task = Some(6);
    });
    files.0.insert("isolation_forest_header.pb".into(), isolation.encode_to_vec());
    assert!(read(files).is_err());
}

#[test]
fn forests_have_names() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in stump(number(), at_least(0.5), |_| {}).0 {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let context = Context::with_options(ContextOptions {
        files: FileAccess::Any,
        ..ContextOptions::default()
    });
    add_ops(&context);
    let named = |name: &str| ferroflow_ir::Attrs::new().with("model_identifier", name);
    let matrix =
        |dtype, dims: [usize; 2]| HostTensor::zeros(dtype, Shape::new(dims).unwrap()).unwrap();
    let numbers = HostTensor::from_slice(Shape::new([2, 1]).unwrap(), &[0.0f32, 1.0]).unwrap();
    let splits = || HostTensor::from_slice(Shape::new([1]).unwrap(), &[0i64]).unwrap();
    let inputs = [
        numbers.into(),
        matrix(DType::F32, [0, 0]).into(),
        matrix(DType::I32, [0, 0]).into(),
        HostTensor::zeros(DType::I32, Shape::new([0]).unwrap()).unwrap().into(),
        splits().into(),
        splits().into(),
    ];
    let predict = |name: &str, width: i64| {
        let attrs = named(name).with("dense_output_dim", width);
        ferroflow_runtime::execute(&context, "SimpleMLInferenceOp", attrs, &inputs)
    };
    assert_eq!(predict("ours", 1).unwrap_err().code(), Code::NotFound);
    let path = HostTensor::scalar_string(folder.path().to_string_lossy().into_owned());
    let load = "SimpleMLLoadModelFromPath";
    ferroflow_runtime::execute(&context, load, named("ours"), &[path.into()]).unwrap();
    let found = predict("ours", 1).unwrap();
    assert_eq!(found[0].host().unwrap().as_slice::<f32>().unwrap(), [-1.0, 1.0]);
    assert_eq!(found[1].host().unwrap().strings().unwrap(), [""]);
    assert_eq!(predict("ours", 2).unwrap_err().code(), Code::InvalidArgument);
}
