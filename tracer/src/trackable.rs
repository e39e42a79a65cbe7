//! Variables and functions as objects that can be saved.

use crate::{
    args::Args,
    capture::Capture,
    concrete_function::{ConcreteFunction, VariableInitializer},
    error::{Error, Result},
    function::{Function, PolymorphicFunction},
    function_spec::{ArgSpec, ParameterSpec},
    methods::Functions,
    nest::Nest,
    tensor::Tensor,
    value::NestedValue,
    variable::Variable,
};
use ferroflow_ir::TraceType;
use ferroflow_runtime::{
    self as runtime,
    trackable::{
        Description, ExportedDefault, ExportedFunction, ExportedInitializer, ExportedParameter,
        ExportedTrace, Identity, ObjectKind, Trackable,
    },
};
use std::sync::Arc;

impl Trackable for Variable {
    fn describe(&self, object: &mut Description<'_>) {
        if let Ok(variable) = self.owned() {
            variable.describe(object);
        }
    }

    fn identity(&self) -> Option<Identity> {
        self.owned().ok()?.identity()
    }
}

/// A tensor is a plain value: a function that uses it keeps it as a constant.
impl Trackable for Tensor {
    fn describe(&self, _: &mut Description<'_>) {}

    fn hand_on(&self, _: &mut dyn FnMut(&dyn Trackable)) -> bool {
        true
    }
}

impl<A: Args + 'static, R: Nest + 'static> Trackable for Function<A, R> {
    fn describe(&self, object: &mut Description<'_>) {
        object.is(ObjectKind::Function(self.exported()));
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of_address(Arc::as_ptr(&self.exported()).cast::<()>() as usize))
    }
}

impl Trackable for ConcreteFunction {
    fn describe(&self, object: &mut Description<'_>) {
        object.is(ObjectKind::ConcreteFunction(Arc::new(self.clone())));
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of_address(self.address()))
    }
}

/// The methods of an object that have been called, by their names.
impl Trackable for Functions {
    fn describe(&self, object: &mut Description<'_>) {
        for (name, function) in self.by_name() {
            object.child(name, &Method(function));
        }
    }
}

struct Method(Arc<PolymorphicFunction>);

impl Trackable for Method {
    fn describe(&self, object: &mut Description<'_>) {
        object.is(ObjectKind::Function(self.0.clone()));
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of_address(Arc::as_ptr(&self.0) as usize))
    }
}

/// A method has the traces it was called for: its code is reached through its object only.
impl ExportedFunction for PolymorphicFunction {
    fn name(&self) -> &str {
        PolymorphicFunction::name(self)
    }

    fn parameters(&self) -> Vec<ExportedParameter> {
        exported(&PolymorphicFunction::parameters(self))
    }

    fn input_signature(&self) -> Option<Vec<TraceType>> {
        signature_types(self.options().input_signature.as_deref()?)
    }

    fn traces(&self) -> runtime::Result<Vec<ExportedTrace>> {
        exported_traces(&self.concrete_functions())
    }

    fn initializers(&self) -> runtime::Result<Vec<ExportedInitializer>> {
        let initializers = PolymorphicFunction::initializers(self);
        let each = initializers.into_iter().map(exported_initializer);
        each.collect::<Result<_>>().map_err(Error::into_runtime)
    }
}

impl ExportedFunction for ConcreteFunction {
    fn name(&self) -> &str {
        self.rust_name()
    }

    fn parameters(&self) -> Vec<ExportedParameter> {
        exported(self.parameter_specs())
    }

    fn input_signature(&self) -> Option<Vec<TraceType>> {
        None
    }

    fn traces(&self) -> runtime::Result<Vec<ExportedTrace>> {
        exported_traces(std::slice::from_ref(self))
    }
}

/// The types that a signature asks for, if it tells them all.
pub(crate) fn signature_types(signature: &[ArgSpec]) -> Option<Vec<TraceType>> {
    let ty = |spec: &ArgSpec| match spec {
        ArgSpec::Type(ty) => Some(ty.clone()),
        ArgSpec::ListOf(..) | ArgSpec::HostValue | ArgSpec::AnyDType(_) => None,
    };
    signature.iter().map(ty).collect()
}

pub(crate) fn exported_traces(traces: &[ConcreteFunction]) -> runtime::Result<Vec<ExportedTrace>> {
    let each = traces.iter().map(|trace| {
        let captured = |capture| captured(trace.rust_name(), capture);
        let captures = trace.captures().iter().map(captured).collect::<Result<_>>()?;
        Ok(ExportedTrace {
            def: trace.def().clone(),
            library: trace.library().clone(),
            captures,
            function_type: trace.function_type().clone(),
        })
    });
    each.collect::<Result<_>>().map_err(Error::into_runtime)
}

fn exported_initializer(initializer: VariableInitializer) -> Result<ExportedInitializer> {
    let VariableInitializer { variable, def, library, captures, function_type } = initializer;
    let captured = |capture| captured("an initial value", capture);
    let captures = captures.iter().map(captured).collect::<Result<_>>()?;
    Ok(ExportedInitializer {
        variable,
        trace: ExportedTrace { def, library, captures, function_type },
    })
}

fn captured(function: &str, capture: &Capture) -> Result<runtime::CapturedInput> {
    capture.fixed()?.ok_or_else(|| Error::Conversion {
        expected: "functions that can be saved".into(),
        found: format!(
            "`{function}`, which writes summaries to a writer that only its callers know: mark its \
             field `#[trackable(skip)]`, or save a function without the summaries"
        ),
    })
}

fn exported(parameters: &[ParameterSpec]) -> Vec<ExportedParameter> {
    let each = parameters.iter().map(|parameter| ExportedParameter {
        name: parameter.name.clone(),
        kind: parameter.kind,
        default: parameter.default.as_ref().map(exported_default),
    });
    each.collect()
}

fn exported_default(value: &NestedValue) -> ExportedDefault {
    match value {
        NestedValue::Tensor(tensor) => match tensor.host() {
            Ok(host) => ExportedDefault::Tensor(host.clone()),
            Err(_) => ExportedDefault::Host(value.trace_type(&mut Default::default())),
        },
        value => ExportedDefault::Host(value.trace_type(&mut Default::default())),
    }
}
