//! The value of a mirrored variable outside replicas, of the values of its components.

use crate::{
    collective::Reduction,
    context::Context,
    eager_tensor::EagerTensor,
    error::Result,
    mirrored::{Annotations, VariableAggregation, VariableSynchronization},
    variable::VariableState,
};
use ferroflow_ir::{Code, HostTensor};

impl VariableState {
    /// The value outside replicas, of the values of all components.
    ///
    /// # Errors
    ///
    /// When a component has no value, or the values cannot be aggregated.
    pub(crate) fn across_replicas(&self, values: Vec<EagerTensor>) -> Result<EagerTensor> {
        let Annotations { synchronization, aggregation } = self.annotations();
        let on_read = synchronization == VariableSynchronization::OnRead;
        let reduction = match aggregation {
            VariableAggregation::Sum if on_read => Reduction::SUM,
            VariableAggregation::Mean if on_read => Reduction::MEAN,
            VariableAggregation::None if on_read || !self.is_alike(&values) => {
                self.warn_of_first();
                return first(values);
            }
            VariableAggregation::None
            | VariableAggregation::OnlyFirstReplica
            | VariableAggregation::Sum
            | VariableAggregation::Mean => return first(values),
        };
        let values: Result<Vec<HostTensor>> =
            values.into_iter().map(|value| Ok(value.host()?.clone())).collect();
        let reduced = reduction.reduce(&Context::new(), &values?)?;
        first(reduced.map(EagerTensor::from).into_iter().collect())
    }

    /// Whether all components have one value.
    fn is_alike(&self, values: &[EagerTensor]) -> bool {
        let same = |a: &EagerTensor, b: &EagerTensor| match (a.host(), b.host()) {
            (Ok(a), Ok(b)) if a.is_plain() && b.is_plain() => {
                std::ptr::eq(a.bytes(), b.bytes()) || a.bytes() == b.bytes()
            }
            _ => true,
        };
        values.windows(2).all(|pair| same(&pair[0], &pair[1]))
    }

    fn warn_of_first(&self) {
        tracing::warn!(
            variable = self.name(),
            "replicas have different values of variable `{}`, which says no aggregation: the value of \
             the first replica is taken",
            self.name()
        );
    }
}

fn first(values: Vec<EagerTensor>) -> Result<EagerTensor> {
    values.into_iter().next().ok_or_else(|| crate::Error::Status {
        code: Code::Internal,
        message: "a variable without components".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResourceVariable;
    use crate::sync::Mutex;
    use std::sync::Arc;
    use tracing::{
        Event, Metadata, Subscriber,
        field::{Field, Visit},
        span::{Attributes, Id, Record},
    };

    /// The messages of warnings.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Visit for Log {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            if field.name() == "message" {
                self.0.lock().push(format!("{value:?}"));
            }
        }
    }

    impl Subscriber for Log {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn values_that_differ_without_an_aggregation_are_warned_of_by_name() {
        let variable = ResourceVariable::new("bn/moving_mean", HostTensor::scalar(1.0f32));
        variable.mirror(2).unwrap();
        let log = Log::default();
        let read = || variable.read().unwrap().as_scalar::<f32>().unwrap();
        tracing::subscriber::with_default(log.clone(), || {
            assert_eq!(read(), 1.0);
            assert!(log.0.lock().is_empty());
            variable.assign_component(1, HostTensor::scalar(3.0f32)).unwrap();
            assert_eq!(read(), 1.0);
        });
        let text = log.0.lock().join("\n");
        assert!(text.contains("variable `bn/moving_mean`"), "{text}");
        variable.annotate(VariableSynchronization::OnRead, VariableAggregation::Mean);
        assert_eq!(read(), 2.0);
        assert!(variable.mirror(3).is_err());
    }
}
