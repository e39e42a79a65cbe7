//! Functions of definitions that were made elsewhere.

use crate::{
    capture::Capture,
    concrete_function::{ConcreteFunction, FunctionParts},
    error::{Error, Result},
    function_spec::ParameterSpec,
    variable::Variable,
};
use ferroflow_ir::{
    FunctionDef, FunctionLibrary, FunctionType, TraceType,
    function_type::{Parameter, ParameterKind},
};
use ferroflow_runtime as runtime;
use std::sync::Arc;

impl ConcreteFunction {
    /// The function of a definition: its last arguments are the captures, its parameters are the
    /// others, by their names, and it gives one tensor or a list of them.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when there are more captures than arguments, or the type of a result
    /// is not known.
    pub fn from_def(
        name: &str,
        def: impl Into<Arc<FunctionDef>>,
        library: Arc<FunctionLibrary>,
        captures: Vec<Capture>,
    ) -> Result<ConcreteFunction> {
        ConcreteFunction::from_shared(&name.into(), def.into(), library, captures)
    }

    /// The function that the runtime knows, such as one that was loaded: it can be called in traces
    /// and under tapes.
    ///
    /// # Errors
    ///
    /// As [`from_def`](ConcreteFunction::from_def).
    pub fn from_runtime(function: &runtime::CallableFunction) -> Result<ConcreteFunction> {
        let captures = function.captures().iter().map(|capture| match capture {
            runtime::CapturedInput::Tensor(tensor) => Capture::Tensor(tensor.clone().into()),
            runtime::CapturedInput::Resource(handle) => Capture::Resource(handle.clone()),
        });
        let (def, captures) = (function.def().clone(), captures.collect());
        let name = def.name.clone();
        ConcreteFunction::from_shared(&name, def, function.library().clone(), captures)
    }

    /// As [`from_def`](ConcreteFunction::from_def), of a definition that others may hold too.
    pub(crate) fn from_shared(
        name: &Arc<str>,
        def: Arc<FunctionDef>,
        library: Arc<FunctionLibrary>,
        captures: Vec<Capture>,
    ) -> Result<ConcreteFunction> {
        let types = result_types(&def)?;
        make(name.clone(), def, library, captures, types, Vec::new())
    }

    /// The function of a part of this one's graph, which returns values of these types. It owns the
    /// same variables.
    pub(crate) fn with_def(
        &self,
        def: FunctionDef,
        captures: Vec<Capture>,
        types: Vec<TraceType>,
    ) -> Result<ConcreteFunction> {
        let (name, owned) = (self.rust_name().clone(), self.owned_variables().to_vec());
        make(name, def.into(), self.library().clone(), captures, types, owned)
    }
}

/// The types of the results of a definition.
pub(crate) fn result_types(def: &FunctionDef) -> Result<Vec<TraceType>> {
    let types = def.results.iter().map(|(name, outlet)| {
        let ty = def.graph.ty(*outlet).ok_or_else(|| Error::Conversion {
            expected: "results of known types".into(),
            found: format!("`{name}`, of the op {}", def.graph[outlet.node].op.name()),
        })?;
        Ok(TraceType::tensor(ty.dtype, ty.shape.clone()))
    });
    types.collect()
}

fn make(
    name: Arc<str>,
    def: Arc<FunctionDef>,
    library: Arc<FunctionLibrary>,
    captures: Vec<Capture>,
    mut types: Vec<TraceType>,
    owned: Vec<Variable>,
) -> Result<ConcreteFunction> {
    let (n_args, n_captures) = (def.args.len(), captures.len());
    let n_passed = n_args.checked_sub(n_captures).ok_or_else(|| Error::Conversion {
        expected: format!("no more than {n_args} captures, one for each argument"),
        found: n_captures.to_string(),
    })?;
    let names = (0..n_passed).map(|index| def.arg_name(index));
    let specs: Vec<ParameterSpec> = names.clone().map(ParameterSpec::new).collect();
    let parameters = names.enumerate().map(|(index, name)| {
        let ty = def.arg_type(index);
        let ty = Some(TraceType::tensor(ty.dtype, ty.shape.clone()));
        Parameter { name: name.into(), kind: ParameterKind::PositionalOrKeyword, ty }
    });
    let mut function_type = FunctionType::new(parameters.collect());
    let output = if types.len() == 1 { types.remove(0) } else { TraceType::List(types) };
    function_type.output = Some(output);
    let parts = FunctionParts { def, library, captures };
    Ok(ConcreteFunction::of_parts(name, function_type, specs, parts, Vec::new(), owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;
    use ferroflow_ir::{
        Attrs, DType, NodeDef, OpRef, PartialShape, ValueType, build::GraphBuilder,
    };

    fn scalar() -> ValueType {
        ValueType::new(DType::F32, PartialShape::scalar())
    }

    fn make(def: FunctionDef, captures: Vec<Capture>) -> Result<ConcreteFunction> {
        ConcreteFunction::from_def("f", def, Arc::default(), captures)
    }

    #[test]
    fn the_last_arguments_are_captures() {
        let mut builder = GraphBuilder::new();
        let [x, two] = ["x", "two"].map(|name| builder.arg(name, scalar()).unwrap());
        let y = builder.call("Mul", "y", &[x, two]).unwrap()[0];
        let def = builder.finish_function("f", &[("y", y)]);
        let f = make(def.clone(), vec![Capture::Tensor(Tensor::from(2.0f32))]).unwrap();
        assert_eq!(f.call_flat(&[3.0f32.into()]).unwrap()[0].to_scalar::<f32>().unwrap(), 6.0);
        let expected = "(x: TensorSpec(shape=(), dtype=tf.float32, name=None)) -> \
                        TensorSpec(shape=(), dtype=tf.float32, name=None)";
        assert_eq!(f.function_type().to_string(), expected);
        let captures = vec![Capture::Tensor(Tensor::from(2.0f32)); 3];
        let message = make(def, captures).unwrap_err().to_string();
        assert_eq!(message, "expected no more than 2 captures, one for each argument, found 3");
    }

    #[test]
    fn results_have_types() {
        let mut builder = GraphBuilder::new();
        builder.arg("x", scalar()).unwrap();
        let mut def = builder.finish_function("f", &[]);
        let future = OpRef::Foreign("OpOfTheFuture".into());
        let odd = def.graph.add(NodeDef::new("odd", future, Attrs::new())).unwrap();
        def.results.push(("y".into(), odd.into()));
        let message = make(def, Vec::new()).unwrap_err().to_string();
        assert_eq!(message, "expected results of known types, found `y`, of the op OpOfTheFuture");
    }
}
