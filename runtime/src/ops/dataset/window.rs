//! Data sets of windows: data sets of consecutive elements.

use super::{
    Cardinality, Components, Dataset, DatasetSource, KeptBytes, RoundLimit, Stream, batch,
    source::Listed,
};
use crate::{eager_tensor::Results, error::Result, ops::RuntimeCall, variant};
use std::{collections::VecDeque, sync::Arc};

/// Windows of `size` elements, `stride` apart; each begins `shift` after the one before.
#[derive(Debug, Clone, Copy)]
struct WindowOptions {
    size: usize,
    shift: usize,
    stride: usize,
    drop_remainder: bool,
}

impl WindowOptions {
    /// The number of elements from the first to the last of a window.
    fn span(self) -> usize {
        (self.size - 1).saturating_mul(self.stride).saturating_add(1)
    }
}

#[derive(Debug)]
struct Window {
    input: Dataset,
    form: WindowOptions,
    /// The op whose windows are stacked elements; nothing where they are data sets.
    stacking: Option<&'static str>,
}

impl DatasetSource for Window {
    fn stream(&self) -> Stream {
        let (options, stacking) = (self.form, self.stacking);
        let mut input = Some(self.input.stream());
        // The elements from the beginning of the next window on, and how many are before it.
        let (mut buffer, mut before) = (VecDeque::new(), 0usize);
        let mut kept = KeptBytes::default();
        Stream::new(move |scope| {
            let mut rounds = RoundLimit::new(scope);
            while before > 0 || buffer.len() < options.span() {
                rounds.count()?;
                let Some(stream) = &mut input else { break };
                match stream.next(scope)? {
                    Some(_) if before > 0 => before -= 1,
                    Some(element) => {
                        kept.add(scope, &element)?;
                        buffer.push_back(element);
                    }
                    None => input = None,
                }
            }
            if buffer.is_empty() || options.drop_remainder && buffer.len() < options.span() {
                return Ok(None);
            }
            let elements = buffer.iter().step_by(options.stride).take(options.size);
            let elements: Vec<Components> = elements.cloned().collect();
            let window = match stacking {
                Some(op) => batch::stack(scope.context, op, &elements)?,
                None => window_of(&elements),
            };
            before = options.shift.saturating_sub(buffer.len());
            let passed = options.shift.min(buffer.len());
            buffer.drain(..passed).for_each(|element: Components| kept.remove(&element));
            Ok(Some(window))
        })
    }

    fn cardinality(&self) -> Cardinality {
        let (span, shift) = (self.form.span() as u64, self.form.shift as u64);
        self.input.cardinality().map(|n| match self.form.drop_remainder {
            // As TensorFlow counts, which leaves out that the last windows are not whole.
            true if self.stacking.is_some() => n / shift,
            true => n.checked_sub(span).map_or(0, |rest| rest / shift + 1),
            false => n.div_ceil(shift),
        })
    }
}

/// A data set of each component of elements.
fn window_of(elements: &[Components]) -> Components {
    let n_components = elements.first().map_or(0, Vec::len);
    let component = |index: usize| {
        let own = elements.iter().filter_map(|element| element.get(index).cloned());
        variant::scalar(Dataset::listed(own.map(|tensor| vec![tensor]).collect()))
    };
    (0..n_components).map(component).collect()
}

pub(super) fn window(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let options = WindowOptions {
        size: call.count(1, "size")?,
        shift: call.count(2, "shift")?,
        stride: call.count(3, "stride")?,
        drop_remainder: call.host(4)?.as_bool()?,
    };
    call.dataset(Window { input: call.input_dataset(0)?, form: options, stacking: None })
}

/// Windows that are stacked elements.
pub(super) fn sliding(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let drop_remainder = match call.attrs.get("drop_remainder") {
        Some(_) => call.attrs.bool("drop_remainder")?,
        None => true,
    };
    let options = WindowOptions {
        size: call.count(1, "window_size")?,
        shift: call.count(2, "window_shift")?,
        stride: call.count(3, "window_stride")?,
        drop_remainder,
    };
    call.dataset(Window {
        input: call.input_dataset(0)?,
        form: options,
        stacking: Some(call.op.name),
    })
}

/// The tensors of a window as a data set: each element has the components that follow each other.
pub(super) fn of_tensors(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n_components = call.attrs.types("output_types")?.len().max(1);
    let elements = call.tensors()?.chunks_exact(n_components).map(<[_]>::to_vec).collect();
    call.dataset(Listed(Arc::new(elements)))
}
