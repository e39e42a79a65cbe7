//! A forest of the kernels, from the messages of its files.

use crate::error::{Error, Result};
use bytes::Bytes;
use ferroflow_format::{
    forest_files::{ForestFiles, ForestKind},
    proto::yggdrasil::{
        BoostedTreesHeader, Condition as ConditionMessage, DataColumn, NodeCondition, TreeNode,
        condition::{self, Type as ConditionType},
        tree_node::Output,
    },
};
use ferroflow_ir::{DType, Error as IrError, HostTensor, Limits, Shape};
use ferroflow_runtime::kernels::{
    check_size,
    forest::{
        Categories, Columns, Forest, ForestBuilder, ForestColumn, ForestPrediction, Leaf, Link,
        ObliqueTerm, SplitCondition,
    },
};
use std::collections::HashMap;

/// Numbers of `Task` in `abstract_model.proto`.
mod task {
    pub(super) const CLASSIFICATION: i32 = 1;
    pub(super) const CATEGORICAL_UPLIFT: i32 = 4;
    pub(super) const NUMERICAL_UPLIFT: i32 = 5;
}

/// A forest, and the names of its classes.
#[derive(Debug)]
pub(super) struct ForestModel {
    pub(super) forest: Forest,
    classes: Classes,
}

/// The names of predictions.
#[derive(Debug)]
enum Classes {
    /// A nameless number.
    Nameless,
    /// The log-odds of one of two classes.
    Logit,
    /// The numbers of classes.
    Numbers,
    /// By the position of a class.
    Names(HashMap<usize, Bytes>),
}

fn wrong(what: &str, expected: &'static str, found: impl ToString) -> Error {
    IrError::argument("a decision forest", what.to_string(), expected, found.to_string()).into()
}

impl ForestModel {
    /// The forest in files.
    pub(super) fn new(files: &ForestFiles) -> Result<ForestModel> {
        let features = Features::new(files)?;
        let is_classifier = files.header.task() == task::CLASSIFICATION;
        let label = is_classifier.then(|| label(files)).transpose()?;
        let n_classes = label.map(n_classes).transpose()?;
        let prediction = prediction(files, n_classes)?;
        let classes = match label {
            None => Classes::Nameless,
            Some(_) if prediction.width() == 1 => Classes::Logit,
            Some(label) => names(label),
        };
        if n_classes.is_some_and(|n| prediction.width() != n && prediction.width() != 1) {
            return Err(wrong("classes", "as many as predictions", prediction.width()));
        }
        let is_uplift =
            matches!(files.header.task(), task::CATEGORICAL_UPLIFT | task::NUMERICAL_UPLIFT);
        let mut builder = ForestBuilder::new(features.columns.clone(), prediction.clone())?;
        let mut nodes = files.nodes();
        while builder.n_whole_trees() < files.kind.n_trees() {
            let Some(node) = nodes.next().transpose()? else {
                return Err(wrong("nodes", "all trees", "fewer"));
            };
            match &node.condition {
                Some(condition) => {
                    let is_true = condition.na_value();
                    builder.split(features.condition(condition)?, is_true)?;
                }
                None => builder.leaf(leaf(&node, &prediction, is_uplift)?)?,
            }
        }
        Ok(ForestModel { forest: builder.finish()?, classes })
    }

    /// The names of the predictions, as the op returns them: empty where there are none.
    pub(super) fn class_names(
        &self,
        limits: &Limits,
    ) -> Result<HostTensor, ferroflow_runtime::Error> {
        let n = self.forest.width();
        let shape = Shape::new([n])?;
        check_size(DType::String, &shape, limits.tensor_bytes)?;
        // Class 0 of the file stands for all that are not known, and is not predicted.
        let name = |class: usize| match &self.classes {
            Classes::Nameless => Bytes::new(),
            Classes::Logit => Bytes::from_static(b"logit"),
            Classes::Numbers => (class + 1).to_string().into(),
            Classes::Names(names) => {
                let name = names.get(&(class + 1)).cloned();
                name.unwrap_or_else(|| format!("NA({})", class + 1).into())
            }
        };
        Ok(HostTensor::from_strings(shape, (0..n).map(name).collect())?)
    }
}

fn label(files: &ForestFiles) -> Result<&DataColumn> {
    let index = files.header.label_col_idx();
    let column = usize::try_from(index).ok().and_then(|index| files.columns.columns.get(index));
    column.ok_or_else(|| wrong("label_col_idx", "a column", index))
}

/// Number of classes that can be predicted.
fn n_classes(label: &DataColumn) -> Result<usize> {
    let n = label.categorical.as_ref().map_or(0, |spec| spec.number_of_unique_values());
    let n_classes = usize::try_from(n.saturating_sub(1)).ok().filter(|&n| n > 0);
    n_classes.ok_or_else(|| wrong("number_of_unique_values", "two or more", n))
}

fn names(label: &DataColumn) -> Classes {
    let Some(spec) = &label.categorical else { return Classes::Nameless };
    if spec.is_already_integerized() {
        return Classes::Numbers;
    }
    let named = spec.items.iter().filter_map(|item| {
        let index = item.value.as_ref()?.index();
        Some((usize::try_from(index).ok()?, item.key.clone().unwrap_or_default()))
    });
    Classes::Names(named.collect())
}

/// Rule by which the leaves of a model become its prediction.
fn prediction(files: &ForestFiles, n_classes: Option<usize>) -> Result<ForestPrediction> {
    Ok(match (&files.kind, n_classes) {
        (ForestKind::Random(header), Some(n)) => {
            ForestPrediction::Classes { n, by_votes: header.winner_take_all_inference() }
        }
        (ForestKind::Random(_), None) => ForestPrediction::Mean,
        (ForestKind::Boosted(header), _) => {
            let logits =
                header.output_logits() || !files.header.classification_outputs_probabilities();
            let link = link(header, n_classes.is_some(), logits)?;
            let per_step = usize::try_from(header.num_trees_per_iter()).unwrap_or(0);
            if per_step != header.initial_predictions.len() {
                let found = header.initial_predictions.len();
                return Err(wrong("initial_predictions", "one for each tree of a step", found));
            }
            ForestPrediction::Boosted { initial: header.initial_predictions.clone(), link }
        }
        (ForestKind::Isolation(header), _) => {
            let n_examples = u64::try_from(header.num_examples_per_trees());
            let n_examples = n_examples
                .map_err(|_| wrong("num_examples_per_trees", "a number", "less than 0"))?;
            ForestPrediction::Isolation { n_examples }
        }
    })
}

/// Function of the sums of a boosted model, by the loss it was trained with (numbers of `Loss` in
/// `gradient_boosted_trees.proto`).
fn link(header: &BoostedTreesHeader, is_classifier: bool, logits: bool) -> Result<Link> {
    Ok(match (header.loss(), is_classifier) {
        (1 | 6, true) if !logits => Link::Logistic,
        (3, true) if !logits => Link::Softmax,
        (1 | 3 | 6, true) => Link::Identity,
        (7, false) => Link::Exponential,
        (2 | 4 | 5 | 8 | 9 | 10, false) => Link::Identity,
        (loss, _) => return Err(wrong("loss", "one of this task", loss)),
    })
}

fn leaf(node: &TreeNode, prediction: &ForestPrediction, is_uplift: bool) -> Result<Leaf> {
    let missing = || wrong("a leaf", "a value of the model's kind", "another kind of leaf");
    Ok(match (&node.output, prediction) {
        (Some(Output::Classifier(output)), ForestPrediction::Classes { by_votes: true, .. }) => {
            let class =
                usize::try_from(output.top_value()).ok().and_then(|class| class.checked_sub(1));
            Leaf::Class(class.ok_or_else(|| wrong("top_value", "a class", output.top_value()))?)
        }
        (Some(Output::Classifier(output)), ForestPrediction::Classes { .. }) => {
            let distribution = output.distribution.as_ref().ok_or_else(missing)?;
            // A leaf that no example reached has no shares.
            let sum = distribution.sum();
            let scale = if sum == 0.0 { 0.0 } else { 1.0 / sum };
            let counts = distribution.counts.iter().skip(1);
            Leaf::Shares(counts.map(|count| (count * scale) as f32).collect())
        }
        (Some(Output::Uplift(output)), _) if is_uplift => match output.treatment_effect[..] {
            [effect] => Leaf::Score(effect),
            _ => {
                let found = output.treatment_effect.len();
                return Err(wrong("treatment_effect", "one treatment", found));
            }
        },
        (Some(Output::Regressor(output)), _) if !is_uplift => Leaf::Score(output.top_value()),
        (Some(Output::AnomalyDetection(output)), ForestPrediction::Isolation { .. }) => {
            let n = output.num_examples_without_weight();
            Leaf::Examples(
                u64::try_from(n).map_err(|_| wrong("a leaf", "a number of examples", n))?,
            )
        }
        _ => return Err(missing()),
    })
}

/// Where the columns of the file are among the inputs of the op.
struct Features<'a> {
    files: &'a ForestFiles,
    columns: Columns,
    positions: HashMap<i32, ForestColumn>,
}

impl Features<'_> {
    fn new(files: &ForestFiles) -> Result<Features<'_>> {
        let (mut columns, mut positions) = (Columns::default(), HashMap::new());
        for &index in &files.header.input_features {
            let spec =
                usize::try_from(index).ok().and_then(|index| files.columns.columns.get(index));
            let spec = spec.ok_or_else(|| wrong("input_features", "columns", index))?;
            let n_values = || {
                let n = spec.categorical.as_ref().map_or(0, |spec| spec.number_of_unique_values());
                i32::try_from(n).map_err(|_| wrong("number_of_unique_values", "32 bits", n))
            };
            let column = match spec.r#type() {
                1 | 9 => {
                    columns.numbers += 1;
                    ForestColumn::Number(columns.numbers - 1)
                }
                7 => {
                    columns.booleans += 1;
                    ForestColumn::Boolean(columns.booleans - 1)
                }
                4 => {
                    columns.categories.push(n_values()?);
                    ForestColumn::Category(columns.categories.len() - 1)
                }
                5 => {
                    columns.sets.push(n_values()?);
                    ForestColumn::Set(columns.sets.len() - 1)
                }
                other => {
                    let what = format!("the type of column `{}`", spec.name());
                    return Err(wrong(
                        &what,
                        "a number, boolean, category or set of categories",
                        other,
                    ));
                }
            };
            positions.insert(index, column);
        }
        Ok(Features { files, columns, positions })
    }

    fn column(&self, attribute: i32) -> Result<ForestColumn> {
        let column = self.positions.get(&attribute).copied();
        column.ok_or_else(|| wrong("the attribute of a condition", "a feature", attribute))
    }

    fn condition(&self, node: &NodeCondition) -> Result<SplitCondition> {
        let missing = || wrong("a condition", "a type that is known", "none");
        let condition =
            node.condition.as_ref().and_then(|ConditionMessage { r#type }| r#type.as_ref());
        let condition = condition.ok_or_else(missing)?;
        if let ConditionType::ObliqueCondition(oblique) = condition {
            return self.oblique(oblique);
        }
        let column = self.column(node.attribute())?;
        Ok(match (condition, column) {
            (ConditionType::NaCondition(_), column) => SplitCondition::Missing(column),
            (ConditionType::TrueValueCondition(_), ForestColumn::Boolean(column)) => {
                SplitCondition::True { column }
            }
            (ConditionType::HigherCondition(higher), ForestColumn::Number(column)) => {
                SplitCondition::AtLeast { column, threshold: higher.threshold() }
            }
            (ConditionType::DiscretizedHigherCondition(higher), ForestColumn::Number(column)) => {
                let threshold = self.boundary(node.attribute(), higher.threshold());
                SplitCondition::AtLeast { column, threshold }
            }
            (ConditionType::ContainsCondition(contains), column) => {
                of_categories(column, Categories::of_list(contains.elements.clone()))?
            }
            (ConditionType::ContainsBitmapCondition(bitmap), column) => {
                let bits = bitmap.elements_bitmap.clone().unwrap_or_default();
                of_categories(column, Categories::Bitmap(bits[..].into()))?
            }
            (_, column) => {
                let found = format!("{column:?}");
                return Err(wrong("a condition", "a column of the type that it is about", found));
            }
        })
    }

    /// The number from which on a discretized column is at least `threshold`: as many boundaries are no
    /// greater than the number.
    fn boundary(&self, attribute: i32, threshold: i32) -> f32 {
        let spec = &self.files.columns.columns[attribute as usize];
        let boundaries =
            spec.discretized_numerical.as_ref().map_or(&[][..], |spec| &spec.boundaries);
        match usize::try_from(threshold) {
            Ok(0) | Err(_) => f32::NEG_INFINITY,
            // No number is.
            Ok(threshold) => boundaries.get(threshold - 1).copied().unwrap_or(f32::NAN),
        }
    }

    fn oblique(&self, oblique: &condition::Oblique) -> Result<SplitCondition> {
        let n = oblique.attributes.len();
        let n_replacements = oblique.na_replacements.len();
        if oblique.weights.len() != n || (n_replacements != 0 && n_replacements != n) {
            return Err(wrong("an oblique condition", "a weight for each attribute", n));
        }
        let term = |index: usize| match self.column(oblique.attributes[index])? {
            ForestColumn::Number(column) => Ok(ObliqueTerm {
                column,
                weight: oblique.weights[index],
                replacement: oblique.na_replacements.get(index).copied(),
            }),
            column => Err(wrong("an oblique condition", "numbers", format!("{column:?}"))),
        };
        let terms: Vec<ObliqueTerm> = (0..n).map(term).collect::<Result<_>>()?;
        Ok(SplitCondition::Oblique { terms: terms.into(), threshold: oblique.threshold() })
    }
}

fn of_categories(column: ForestColumn, categories: Categories) -> Result<SplitCondition> {
    match column {
        ForestColumn::Category(column) => Ok(SplitCondition::Category { column, categories }),
        ForestColumn::Set(column) => Ok(SplitCondition::CategorySet { column, categories }),
        column => Err(wrong("a condition", "a column of categories", format!("{column:?}"))),
    }
}
