//! Data sets of elements that another data set chooses from several.

use super::{Cardinality, Dataset, DatasetSource, RoundLimit, Stream};
use crate::{eager_tensor::Results, error::Result, ops::RuntimeCall};
use ferroflow_ir::Error as IrError;

#[derive(Debug)]
struct DirectedInterleave {
    selector: Dataset,
    inputs: Vec<Dataset>,
    stops_on_empty: bool,
}

impl DatasetSource for DirectedInterleave {
    fn stream(&self) -> Stream {
        let (mut selector, stops_on_empty) = (self.selector.stream(), self.stops_on_empty);
        let mut inputs: Vec<Option<Stream>> =
            self.inputs.iter().map(|input| Some(input.stream())).collect();
        Stream::new(move |scope| {
            let mut rounds = RoundLimit::new(scope);
            while inputs.iter().any(Option::is_some) {
                rounds.count()?;
                let Some(chosen) = selector.next(scope)? else { return Ok(None) };
                let index = chosen.first().map(|chosen| chosen.to_i64s()).transpose()?;
                let index = index.and_then(|index| index.first().copied()).unwrap_or(-1);
                let n = inputs.len();
                let Some(input) = usize::try_from(index).ok().and_then(|i| inputs.get_mut(i))
                else {
                    let (op, expected) =
                        ("DirectedInterleaveDataset", format!("from 0 to {}", n - 1));
                    return Err(IrError::argument(op, "selector", expected, index).into());
                };
                let Some(stream) = input else { continue };
                if let Some(element) = stream.next(scope)? {
                    return Ok(Some(element));
                }
                *input = None;
                if stops_on_empty {
                    inputs.clear();
                }
            }
            Ok(None)
        })
    }

    fn cardinality(&self) -> Cardinality {
        let mut all = self.inputs.iter().map(Dataset::cardinality);
        match all.any(|own| own != Cardinality::Infinite) {
            true => Cardinality::Unknown,
            false => self.selector.cardinality(),
        }
    }
}

pub(super) fn directed_interleave(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let inputs = (1..call.inputs.len()).map(|index| call.input_dataset(index));
    let inputs = inputs.collect::<Result<_>>()?;
    let stops_on_empty = call.attrs.bool("stop_on_empty_dataset").unwrap_or(false);
    call.dataset(DirectedInterleave { selector: call.input_dataset(0)?, inputs, stops_on_empty })
}
