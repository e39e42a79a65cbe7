//! The outcome of a restoration, and the checks of it.

use super::{Checkpoint, restoring::Restoring};
use crate::error::{Error, Result};
use std::sync::Arc;

/// The outcome of a restoration. When the last of it goes, values that no object has taken over are
/// told in a warning, unless [`expect_partial`](RestoreStatus::expect_partial) was called.
#[derive(Debug)]
pub struct RestoreStatus<'c, 'a> {
    checkpoint: &'c Checkpoint<'a>,
    restoring: Arc<Restoring>,
}

impl<'c, 'a> RestoreStatus<'c, 'a> {
    pub(crate) fn new(
        checkpoint: &'c Checkpoint<'a>,
        restoring: Arc<Restoring>,
    ) -> RestoreStatus<'c, 'a> {
        RestoreStatus { checkpoint, restoring }
    }

    /// Checks that every value of the checkpoint found an object, and every object a value.
    ///
    /// # Errors
    ///
    /// [`Error::NotConsumed`] with the values that found none, [`Error::NotRestored`] with the
    /// variables without a value.
    pub fn assert_consumed(self) -> Result<RestoreStatus<'c, 'a>> {
        let status = self.assert_existing_objects_matched()?;
        let unused = status.unused();
        match unused.is_empty() {
            true => Ok(status),
            false => {
                let prefix = status.restoring.prefix().into();
                Err(Error::NotConsumed { prefix, keys: unused })
            }
        }
    }

    /// Checks that every variable found a value; the checkpoint may have more.
    ///
    /// # Errors
    ///
    /// [`Error::NotRestored`] with the variables that found none.
    pub fn assert_existing_objects_matched(self) -> Result<RestoreStatus<'c, 'a>> {
        self.checkpoint.resume()?;
        let graph = self.checkpoint.graph()?;
        let names = self.restoring.missing(&graph);
        if names.is_empty() {
            return Ok(self);
        }
        Err(Error::NotRestored { prefix: self.restoring.prefix().into(), names })
    }

    /// Says that values without objects, and objects without values, are as they should be: nothing
    /// warns of them.
    pub fn expect_partial(self) {
        self.restoring.expect_partial();
    }

    /// The keys of the values that no object has taken over.
    pub fn unused(&self) -> Vec<String> {
        self.restoring.unused()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::HostTensor;
    use ferroflow_runtime::ResourceVariable;
    use std::{
        fmt,
        sync::{Arc, Mutex},
    };
    use tracing::{
        Event, Metadata,
        field::{Field, Visit},
        span,
    };

    /// A subscriber that keeps the texts of events.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl tracing::Subscriber for Log {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut text = Text::default();
            event.record(&mut text);
            self.0.lock().unwrap().push(text.0);
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    #[derive(Default)]
    struct Text(String);

    impl Visit for Text {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            self.0.push_str(&format!("{field}={value:?} "));
        }
    }

    fn variable() -> ResourceVariable {
        ResourceVariable::new("v", HostTensor::scalar(1.0f32))
    }

    /// The warnings while a checkpoint of `a` and `b` is restored into `own` and dropped.
    fn warnings(
        own: &[(&str, ResourceVariable)],
        and: impl Fn(RestoreStatus<'_, '_>),
    ) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let stored = Checkpoint::new().with("a", variable()).with("b", variable());
        let prefix = stored.write(folder.path().join("m")).unwrap();
        let log = Log::default();
        tracing::subscriber::with_default(log.clone(), || {
            let own = own.iter().fold(Checkpoint::new(), |own, (name, v)| own.with(name, v));
            and(own.read(&prefix).unwrap());
        });
        log.0.lock().unwrap().clone()
    }

    #[test]
    fn values_without_an_object_are_told_once_nothing_can_take_them() {
        let found = warnings(&[("a", variable())], |status| drop(status));
        assert_eq!(found.len(), 1);
        assert!(found[0].contains(r#"keys=["b/.ATTRIBUTES/VARIABLE_VALUE"]"#), "{found:?}");
        assert!(found[0].contains("expect_partial"), "{found:?}");
        assert!(warnings(&[("a", variable())], |status| status.expect_partial()).is_empty());
        assert!(
            warnings(&[("a", variable()), ("b", variable())], |status| drop(status)).is_empty()
        );
        // What appears later takes its values, and nothing is left to tell.
        let late = warnings(&[("a", variable())], |status| {
            status.checkpoint.attach("b", variable()).unwrap();
        });
        assert!(late.is_empty(), "{late:?}");
    }

    #[test]
    fn two_objects_for_a_stored_one_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let v = variable();
        let stored = Checkpoint::new().with("a", &v).with("b", &v);
        let prefix = stored.write(folder.path().join("m")).unwrap();
        let log = Log::default();
        tracing::subscriber::with_default(log.clone(), || {
            let own = Checkpoint::new().with("a", variable()).with("b", variable());
            own.read(&prefix).unwrap();
        });
        let texts = log.0.lock().unwrap();
        assert_eq!(texts.len(), 1);
        assert!(texts[0].contains("one object where the program has two"), "{texts:?}");
    }
}
