//! Choice of the trace that fits a call best.
//!
//! The rule is that of overloads: among the traces whose types the arguments fit, the most specific
//! one; of those that cannot be compared, the one added first.

use crate::function_type::FunctionType;
use std::collections::HashMap;

/// Values by function type, the most specific of which is found for a call.
#[derive(Debug)]
pub struct TypeDispatchTable<T> {
    /// In the order they were added.
    targets: Vec<(FunctionType, T)>,
    exact: HashMap<FunctionType, usize>,
    /// Requests that were answered already.
    answers: HashMap<FunctionType, usize>,
}

/// Answers are forgotten beyond this number.
const KEPT_ANSWERS: usize = 1024;

impl<T> Default for TypeDispatchTable<T> {
    fn default() -> TypeDispatchTable<T> {
        TypeDispatchTable { targets: Vec::new(), exact: HashMap::new(), answers: HashMap::new() }
    }
}

impl<T> TypeDispatchTable<T> {
    /// The number of targets.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are no targets.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The targets, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &(FunctionType, T)> {
        self.targets.iter()
    }

    /// Adds a target; a target of the same type is replaced.
    pub fn insert(&mut self, ty: FunctionType, value: T) {
        self.answers.clear();
        match self.exact.get(&ty) {
            Some(&index) => self.targets[index] = (ty, value),
            None => {
                self.exact.insert(ty.clone(), self.targets.len());
                self.targets.push((ty, value));
            }
        }
    }

    /// Removes a target.
    pub fn remove(&mut self, ty: &FunctionType) -> Option<T> {
        let index = self.exact.get(ty).copied()?;
        self.retain_indices(|candidate| candidate != index).pop()
    }

    /// Removes the targets for which `keep` does not hold; returns their values.
    pub fn retain(&mut self, keep: impl Fn(&FunctionType, &T) -> bool) -> Vec<T> {
        let kept: Vec<bool> = self.targets.iter().map(|(ty, value)| keep(ty, value)).collect();
        if kept.iter().all(|&kept| kept) {
            Vec::new()
        } else {
            self.retain_indices(|index| kept[index])
        }
    }

    fn retain_indices(&mut self, keep: impl Fn(usize) -> bool) -> Vec<T> {
        let (mut kept, mut removed) = (Vec::new(), Vec::new());
        for (index, (ty, value)) in std::mem::take(&mut self.targets).into_iter().enumerate() {
            if keep(index) { kept.push((ty, value)) } else { removed.push(value) }
        }
        self.targets = kept;
        self.answers.clear();
        let numbered = self.targets.iter().enumerate();
        self.exact = numbered.map(|(index, (ty, _))| (ty.clone(), index)).collect();
        removed
    }

    /// The most specific target that takes arguments of type `request`.
    pub fn dispatch(&mut self, request: &FunctionType) -> Option<&(FunctionType, T)> {
        let known = self.exact.get(request).or_else(|| self.answers.get(request)).copied();
        let found = match known {
            Some(index) => index,
            None => {
                let found = self.most_specific(request)?;
                if self.answers.len() == KEPT_ANSWERS {
                    self.answers.clear();
                }
                self.answers.insert(request.clone(), found);
                found
            }
        };
        self.targets.get(found)
    }

    fn most_specific(&self, request: &FunctionType) -> Option<usize> {
        let fits = |index: &usize| request.is_subtype_of(&self.targets[*index].0);
        (0..self.targets.len()).filter(fits).reduce(|best, other| {
            let is_narrower = self.targets[other].0.is_subtype_of(&self.targets[best].0);
            if is_narrower { other } else { best }
        })
    }

    /// The type widened by every target it has a common supertype with.
    #[must_use]
    pub fn generalize(&self, request: &FunctionType) -> FunctionType {
        self.targets.iter().fold(request.clone(), |widened, (target, _)| {
            widened.common_supertype(target).unwrap_or(widened)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        dtype::DType,
        function_type::{Parameter, ParameterKind},
        shape::PartialShape,
        trace_type::TraceType,
    };

    fn ty(dims: &[i64]) -> FunctionType {
        let ty = TraceType::tensor(DType::F32, PartialShape::from_i64(dims).unwrap());
        let kind = ParameterKind::PositionalOrKeyword;
        FunctionType::new(vec![Parameter { name: "x".into(), kind, ty: Some(ty) }])
    }

    fn table(targets: &[&[i64]]) -> TypeDispatchTable<Vec<i64>> {
        let mut table = TypeDispatchTable::default();
        targets.iter().for_each(|dims| table.insert(ty(dims), dims.to_vec()));
        table
    }

    fn found(table: &mut TypeDispatchTable<Vec<i64>>, request: &[i64]) -> Option<Vec<i64>> {
        table.dispatch(&ty(request)).map(|(_, value)| value.clone())
    }

    // spec: 60, 61, 63, b16, b17
    #[test]
    fn the_most_specific_target_is_found() {
        let mut table = table(&[&[-1, -1, -1], &[-1, 1, -1], &[-1, 1, 2], &[-1, 2, 2]]);
        for (request, expected) in [
            ([1, 1, 2], [-1, 1, 2]),
            ([1, 1, 3], [-1, 1, -1]),
            ([1, 3, 3], [-1, -1, -1]),
            ([1, 2, 2], [-1, 2, 2]),
        ] {
            assert_eq!(found(&mut table, &request), Some(expected.to_vec()));
        }
        assert_eq!(found(&mut table, &[1, 2]), None);
    }

    // spec: 61, b18
    #[test]
    fn of_equals_the_first_added_wins() {
        let targets: [&[i64]; 3] = [&[1, -1, -1], &[-1, 2, -1], &[-1, -1, 3]];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut table = table(&order.map(|index| targets[index]));
            assert_eq!(found(&mut table, &[1, 2, 3]), Some(targets[order[0]].to_vec()));
        }
    }

    // spec: b19
    #[test]
    fn answers_agree_with_the_targets() {
        let mut table = table(&[&[-1, -1]]);
        assert_eq!(found(&mut table, &[1, 2]), Some(vec![-1, -1]));
        table.insert(ty(&[1, -1]), vec![1, -1]);
        assert_eq!(found(&mut table, &[1, 2]), Some(vec![1, -1]));
        assert_eq!(table.remove(&ty(&[1, -1])), Some(vec![1, -1]));
        assert_eq!(found(&mut table, &[1, 2]), Some(vec![-1, -1]));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn types_are_widened_by_what_is_there() {
        let table = table(&[&[-1, -1, -1], &[-1, 1, -1], &[-1, 1, 2]]);
        assert_eq!(table.generalize(&ty(&[-1, 1, 3])), ty(&[-1, -1, -1]));
    }
}
