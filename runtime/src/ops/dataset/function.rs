//! Functions that data sets call on elements.

use super::{Components, Dataset, Stream};
use crate::{
    eager_tensor::EagerTensor,
    error::{Error, Result},
    ops::RuntimeCall,
    resource::{ResourceManager, value_type},
    scope::Scope,
    specializations::{CompiledFunctions, Specialization, Specializations},
    variant,
};
use ferroflow_ir::{Error as IrError, FunctionDef, FunctionLibrary, HostTensor, ValueType};
use std::{
    fmt,
    sync::{Arc, Weak},
};

/// The levels of depth of one function call: it takes more of the stack than a stream.
const CALL_DEPTH: usize = 8;

/// A function with the tensors it captures.
#[derive(Clone)]
pub(super) struct ElementFunction {
    op: &'static str,
    def: Arc<FunctionDef>,
    library: Arc<FunctionLibrary>,
    resources: Weak<ResourceManager>,
    captured: Vec<EagerTensor>,
    compiled: Arc<Specializations>,
}

impl fmt::Debug for ElementFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}({:?})", self.def.name, self.captured)
    }
}

impl ElementFunction {
    /// The function that an attribute of a call names, which captures some inputs of the call.
    ///
    /// # Errors
    ///
    /// When there is no such function, or an input is not in host memory.
    pub(super) fn of(
        call: &RuntimeCall<'_>,
        attr: &str,
        captured: std::ops::Range<usize>,
    ) -> Result<ElementFunction> {
        ElementFunction::named(call, &call.attrs.func(attr)?.name, captured)
    }

    /// The function of a name, which captures some inputs of the call.
    ///
    /// # Errors
    ///
    /// As [`of`](ElementFunction::of).
    pub(super) fn named(
        call: &RuntimeCall<'_>,
        name: &Arc<str>,
        captured: std::ops::Range<usize>,
    ) -> Result<ElementFunction> {
        let def = call.scope.library.get(name)?;
        let inputs = call.inputs.get(captured).unwrap_or_default();
        let captured =
            inputs.iter().map(|input| Ok(input.host()?.clone().into())).collect::<Result<_>>()?;
        Ok(ElementFunction {
            op: call.op.name,
            compiled: call.scope.resources.cache().get::<CompiledFunctions>().of(call.scope, name),
            def,
            library: call.scope.library.clone(),
            resources: Arc::downgrade(call.scope.resources),
            captured,
        })
    }

    /// The number of results.
    pub(super) fn n_results(&self) -> usize {
        self.def.results.len()
    }

    /// Calls the function with these tensors and then those it captures.
    ///
    /// # Errors
    ///
    /// When the tensors do not fit, and whatever fails in the function.
    pub(super) fn call(
        &self,
        scope: Scope<'_>,
        args: impl IntoIterator<Item = HostTensor>,
    ) -> Result<Components> {
        let args = args.into_iter().map(EagerTensor::from);
        let args: Vec<EagerTensor> = args.chain(self.captured.iter().cloned()).collect();
        let resources = self.resources.upgrade().unwrap_or_else(|| scope.resources.clone());
        let scope = Scope { library: &self.library, resources: &resources, ..scope };
        let scope = scope.deeper(CALL_DEPTH)?;
        let specialization = match self.compiled.on_host(&args) {
            Some(found) => found,
            None => self.compile(scope, &args)?,
        };
        let results = specialization.run(scope, &args)?;
        results.into_iter().map(EagerTensor::into_host).collect()
    }

    fn compile(&self, scope: Scope<'_>, args: &[EagerTensor]) -> Result<Arc<Specialization>> {
        let types: Vec<ValueType> = args.iter().map(value_type).collect();
        let n_args = self.def.args.len();
        let fits = |(index, ty): (usize, &ValueType)| {
            let declared = self.def.arg_type(index);
            ty.dtype == declared.dtype && ty.shape.is_compatible_with(&declared.shape)
        };
        if types.len() != n_args || !types.iter().enumerate().all(fits) {
            let declared: Vec<String> =
                (0..n_args).map(|index| self.def.arg_type(index).to_string()).collect();
            let found: Vec<String> = types.iter().map(ToString::to_string).collect();
            let function = self.def.name.to_string();
            return Err(Error::FunctionArgument {
                function,
                argument: format!("the arguments by {}", self.op),
                expected: declared.join(", "),
                found: found.join(", "),
            });
        }
        let new = Specialization::on_host(scope, &self.def, types)?;
        self.compiled.insert(new.clone());
        Ok(new)
    }

    /// The only result of a call, which must be a scalar bool.
    ///
    /// # Errors
    ///
    /// When it is none, and those of [`call`](ElementFunction::call).
    pub(super) fn test(&self, scope: Scope<'_>, element: &[HostTensor]) -> Result<bool> {
        let results = self.call(scope, element.iter().cloned())?;
        match results.as_slice() {
            [result] if result.len() == 1 && result.shape().rank() == 0 => Ok(result.as_bool()?),
            _ => Err(self.wrong("a scalar bool")),
        }
    }

    /// The only result of a call, which must be a scalar integer.
    ///
    /// # Errors
    ///
    /// When it is none, and those of [`call`](ElementFunction::call).
    pub(super) fn number(&self, scope: Scope<'_>, args: Components) -> Result<i64> {
        match self.call(scope, args)?.as_slice() {
            [result] if result.len() == 1 => Ok(result.to_i64s()?[0]),
            _ => Err(self.wrong("a scalar integer")),
        }
    }

    /// A run over the only result of a call, which must be a data set.
    ///
    /// # Errors
    ///
    /// When it is none, and those of [`call`](ElementFunction::call).
    pub(super) fn stream(&self, scope: Scope<'_>, args: Components) -> Result<Stream> {
        match self.call(scope, args)?.as_slice() {
            [result] => Ok(variant::value::<Dataset>(result, "a data set")?.stream()),
            _ => Err(self.wrong("a data set")),
        }
    }

    fn wrong(&self, expected: &'static str) -> Error {
        IrError::argument(self.op, "results", expected, &self.def.name).into()
    }
}
