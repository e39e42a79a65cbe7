//! Models of TensorFlow 1 as objects: signatures as functions that capture variables.
//!
//! A graph of TensorFlow 1 names its variables by nodes. As objects, the variables are parts of the
//! model, and functions capture them, as in what TensorFlow 2 saves after it has loaded such a graph.

use crate::{
    error::{Error, Result},
    graph::{LoadedGraph, Request},
    proto,
    session::{Session, parts_of},
};
use ferroflow_ir::{
    DType, FunctionDef, FunctionLibrary, FunctionType, TensorSpec, ValueType,
    function_type::{Parameter, ParameterKind},
    ops::names::VAR_HANDLE_OP,
    pass::infer_types::infer_types,
    trace_type::{MapKey, TraceType},
};
use ferroflow_runtime::{
    CapturedInput, ResourceVariable,
    trackable::{
        Description, ExportedFunction, ExportedParameter, ExportedTrace, Identity, ObjectKind,
        Trackable,
    },
};
use std::{collections::BTreeMap, sync::Arc};

/// The variables and the signatures of a session, to be saved as objects.
#[derive(Debug)]
pub struct SessionObjects {
    variables: Vec<ResourceVariable>,
    signatures: Vec<Arc<SignatureFunction>>,
}

impl Session {
    /// The session as objects: the list `variables`, and `signatures` by name. Variables are those
    /// of the session, with the values that they have when the objects are saved.
    ///
    /// # Errors
    ///
    /// [`Error::NotASignature`] for a signature that uses state other than variables, such as a
    /// table, which belongs to no object; when a variable has no state yet and none can be made.
    pub fn objects(&self) -> Result<SessionObjects> {
        let variables = self.variables()?;
        let keys: Vec<String> = self.signatures().map(str::to_string).collect();
        let function = |key: &String| {
            let signature = self.signature(key)?;
            Ok(Arc::new(SignatureFunction::new(key, self.graph(), signature, &variables)?))
        };
        let signatures = keys.iter().map(function).collect::<Result<_>>()?;
        Ok(SessionObjects { variables: variables.into_values().collect(), signatures })
    }
}

impl Trackable for SessionObjects {
    fn describe(&self, object: &mut Description<'_>) {
        object.child("variables", &self.variables);
        object.child("signatures", &SignatureMap(&self.signatures));
    }
}

struct SignatureMap<'a>(&'a [Arc<SignatureFunction>]);

impl Trackable for SignatureMap<'_> {
    fn describe(&self, object: &mut Description<'_>) {
        object.has_type("signature_map");
        for function in self.0 {
            object.child(&function.key, &SignatureObject(function));
        }
    }
}

struct SignatureObject<'a>(&'a Arc<SignatureFunction>);

impl Trackable for SignatureObject<'_> {
    fn describe(&self, object: &mut Description<'_>) {
        object.is(ObjectKind::ConcreteFunction(self.0.clone()));
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of_address(Arc::as_ptr(self.0) as usize))
    }
}

/// A signature as a function of tensors by name.
#[derive(Debug)]
struct SignatureFunction {
    key: String,
    trace: ExportedTrace,
}

impl ExportedFunction for SignatureFunction {
    fn name(&self) -> &str {
        &self.key
    }

    fn parameters(&self) -> Vec<ExportedParameter> {
        let parameters = self.trace.function_type.parameters.iter();
        let each = parameters.map(|parameter| ExportedParameter {
            name: parameter.name.clone(),
            kind: parameter.kind,
            default: None,
        });
        each.collect()
    }

    fn input_signature(&self) -> Option<Vec<TraceType>> {
        None
    }

    fn traces(&self) -> ferroflow_runtime::Result<Vec<ExportedTrace>> {
        Ok(vec![self.trace.clone()])
    }
}

impl SignatureFunction {
    fn new(
        key: &str,
        graph: &LoadedGraph,
        signature: &proto::SignatureDef,
        variables: &BTreeMap<String, ResourceVariable>,
    ) -> Result<SignatureFunction> {
        let (inputs, outputs) = (tensors(&signature.inputs)?, tensors(&signature.outputs)?);
        let names = |tensors: &[(String, String)]| -> Vec<String> {
            tensors.iter().map(|(_, tensor)| tensor.clone()).collect()
        };
        let request =
            Request { feeds: names(&inputs), fetches: names(&outputs), targets: Vec::new() };
        let (mut def, handles) = graph.part_with_handles(key, &request, VAR_HANDLE_OP)?;
        infer_types(&mut def.graph)?;
        check_state(key, &def)?;
        let capture = |name: &String| {
            let absent = || ferroflow_ir::Error::NotFound { kind: "variable", name: name.clone() };
            let variable = variables.get(name).ok_or_else(absent)?;
            Ok(CapturedInput::Resource(variable.handle()))
        };
        let captures = handles.iter().map(capture).collect::<Result<_>>()?;
        let parameters = inputs.iter().zip(&def.args).map(|((name, _), arg)| Parameter {
            name: name.as_str().into(),
            kind: ParameterKind::KeywordOnly,
            ty: Some(tensor_type(name, &def.graph[*arg].outputs()[0])),
        });
        let mut function_type = FunctionType::new(parameters.collect());
        let results = outputs.iter().zip(&def.results).map(|((name, _), (_, outlet))| {
            let unknown = ValueType::new(DType::F32, ferroflow_ir::PartialShape::Unknown);
            let ty = def.graph.ty(*outlet).unwrap_or(&unknown);
            (MapKey::Str(name.as_str().into()), tensor_type("", ty))
        });
        function_type.output = Some(TraceType::Dict(results.collect()));
        let library = FunctionLibrary::new();
        library.share(graph.library())?;
        let trace = ExportedTrace {
            def: Arc::new(def),
            library: Arc::new(library),
            captures,
            function_type,
        };
        Ok(SignatureFunction { key: key.into(), trace })
    }
}

/// The tensors of inputs or outputs, sorted by the names that callers use.
fn tensors(infos: &BTreeMap<String, proto::TensorInfo>) -> Result<Vec<(String, String)>> {
    let mut tensors = Vec::new();
    for (name, info) in infos {
        let parts = parts_of(name, info)?.into_iter();
        tensors.extend(parts.map(|part| (part.key, part.tensor.to_string())));
    }
    tensors.sort();
    Ok(tensors)
}

fn tensor_type(name: &str, ty: &ValueType) -> TraceType {
    let spec = TensorSpec::new(ty.dtype, ty.shape.clone());
    TraceType::Tensor(TensorSpec { name: name.into(), ..spec })
}

/// Checks that a function makes no state of its own: tables and queues of a graph of TensorFlow 1
/// belong to no object that could be saved.
fn check_state(key: &str, def: &FunctionDef) -> Result<()> {
    let is_state = |node: &ferroflow_ir::NodeDef| {
        node.inputs().is_empty() && node.outputs().iter().any(|ty| ty.dtype == DType::Resource)
    };
    let mut nodes = def.graph.iter().filter(|(id, _)| !def.args.contains(id));
    match nodes.find(|(_, node)| is_state(node)) {
        None => Ok(()),
        Some((_, node)) => Err(Error::NotASignature {
            signature: key.into(),
            function: key.into(),
            rule: format!(
                "its node `{}` ({}) is state that belongs to no object",
                node.name,
                node.op.name()
            ),
        }),
    }
}
