//! Data sets that keep the elements of another once they were all there.

use super::{Cardinality, Components, Dataset, DatasetSource, KeptBytes, Stream, iterator};
use crate::{eager_tensor::Results, error::Result, ops::RuntimeCall, sync::Mutex};
use ferroflow_ir::Error as IrError;
use std::sync::Arc;

/// All elements, once a run has come to the end.
type Kept = Arc<Mutex<Option<Arc<Vec<Components>>>>>;

#[derive(Debug)]
struct Cache {
    input: Dataset,
    kept: Kept,
}

impl DatasetSource for Cache {
    fn stream(&self) -> Stream {
        if let Some(elements) = &*self.kept.lock() {
            return super::source::Listed(elements.clone()).stream();
        }
        let (mut input, kept) = (Some(self.input.stream()), self.kept.clone());
        let (mut elements, mut bytes) = (Vec::new(), KeptBytes::default());
        Stream::new(move |scope| {
            let Some(stream) = &mut input else { return Ok(None) };
            let element = stream.next(scope)?;
            match &element {
                Some(element) => {
                    bytes.add(scope, element)?;
                    elements.push(element.clone());
                }
                None => {
                    input = None;
                    *kept.lock() = Some(Arc::new(std::mem::take(&mut elements)));
                }
            }
            Ok(element)
        })
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

pub(super) fn cache(call: &mut RuntimeCall<'_>) -> Result<Results> {
    if call.host(1)?.strings()?.iter().any(|name| !name.is_empty()) {
        let what = "a cache in a file".into();
        return Err(IrError::Unsupported { op: call.op.name.into(), what }.into());
    }
    call.dataset(Cache { input: call.input_dataset(0)?, kept: Kept::default() })
}

pub(super) fn anonymous(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut results = iterator::dummy(call)?;
    results.push(iterator::deleter());
    Ok(results)
}
