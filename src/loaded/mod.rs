//! Loaded models whose functions take and return [`Tensor`]s: in eager code, under tapes and in traces.
//!
//! [`saved_model::load()`] is the layer beneath, of values of the runtime. A [`LoadedModel`] finds what a
//! path of the object graph leads to, chooses the trace for the arguments of a call as TensorFlow does,
//! and calls it as any other [`ConcreteFunction`]: gradients go through it, functions that call it hold
//! it in their graphs, and are saved with it.
//!
//! - `value` turns arguments and results into values of files, and back.

mod value;

use crate::{saving::function_of_runtime, session::of_files};
use ferroflow_ir::TensorSpec;
use ferroflow_runtime::{
    CallableFunction, Context,
    trackable::{Description, Identity},
};
use ferroflow_saved_model::{
    self as saved_model, LoadOptions, Object, SavedModel,
    function::{RestoredFunction, Signature},
};
use ferroflow_tracer::{
    Args, Body, ConcreteFunction, Error, Function, FunctionOptions, Nest, NestedValue, Result,
    Tensor, Trackable, Variable, context, function_with, with_context,
};
use std::{
    collections::{BTreeMap, HashMap},
    marker::PhantomData,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use value::LoadedTensor;

/// Loads a SavedModel into the context at hand.
///
/// ```
/// use ferroflow::{GradientTape, Tensor, Trackable, Variable, function, load, save};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// #[derive(Trackable)]
/// struct Scaled {
///     w: Variable,
///     scale: ferroflow::Function<(Tensor,), Tensor>,
/// }
///
/// let w = Variable::new(3.0f32)?;
/// let scale = function({
///     let w = w.clone();
///     move |x: Tensor| x * &w
/// });
/// scale(Tensor::from(1.0f32))?;
/// save(&Scaled { w, scale }, folder.path(), &Default::default())?;
///
/// let model = load(folder.path())?;
/// let w = model.variable("w")?;
/// let tape = GradientTape::new();
/// let y: Tensor = model.call("scale", (Tensor::from(5.0f32),))?;
/// assert_eq!(y.to_scalar::<f32>()?, 15.0);
/// assert_eq!(tape.gradient(&y, &w)?.expect("a gradient").to_scalar::<f32>()?, 5.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`saved_model::load()`].
pub fn load(folder: impl AsRef<Path>) -> saved_model::Result<LoadedModel> {
    load_with(folder, &LoadOptions::default())
}

/// Loads a SavedModel in this way into the context at hand.
///
/// # Errors
///
/// As [`saved_model::load()`].
pub fn load_with(
    folder: impl AsRef<Path>,
    options: &LoadOptions,
) -> saved_model::Result<LoadedModel> {
    saved_model::load(&context::context(), folder, options).map(LoadedModel::from)
}

/// A loaded SavedModel. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LoadedModel {
    model: SavedModel,
    root: Option<Object>,
    /// The context that has its state.
    context: Context,
    called: Arc<Mutex<CalledFunctions>>,
}

/// Functions that were called before.
#[derive(Debug, Default)]
struct CalledFunctions {
    /// By path.
    restored: HashMap<String, Arc<RestoredFunction>>,
    /// Those of traces, by their names in the file.
    concrete: HashMap<String, ConcreteFunction>,
}

/// A model that was loaded into the context at hand.
impl From<SavedModel> for LoadedModel {
    fn from(model: SavedModel) -> LoadedModel {
        let (root, context) = (model.root(), context::context());
        LoadedModel { root, model, context, called: Arc::default() }
    }
}

impl LoadedModel {
    /// The model beneath.
    pub fn saved_model(&self) -> &SavedModel {
        &self.model
    }

    /// The root object.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when the model is a graph of TensorFlow 1, which has signatures only.
    pub fn root(&self) -> Result<Object> {
        self.root.clone().ok_or_else(|| Error::Conversion {
            expected: "a model of objects".into(),
            found: "a graph of TensorFlow 1, which has signatures only".into(),
        })
    }

    /// A new model like this one, which has variables without values and other state of its own; its
    /// functions set those that they created. Its signatures are still those of this model. See
    /// [`Object::construct`].
    ///
    /// # Errors
    ///
    /// As [`root`](LoadedModel::root) and [`Object::construct`].
    pub fn construct(&self) -> Result<LoadedModel> {
        let root = self.root()?.construct(&[], &BTreeMap::new()).map_err(of_files)?;
        Ok(LoadedModel { root: Some(root), called: Arc::default(), ..self.clone() })
    }

    /// The object at the end of a path from the root, such as `layers.0`.
    ///
    /// # Errors
    ///
    /// As [`root`](LoadedModel::root), and when the path leads nowhere.
    pub fn get(&self, path: &str) -> Result<Object> {
        self.root()?.get(path).map_err(of_files)
    }

    /// The variable at the end of a path, such as `layers.0.kernel`.
    ///
    /// # Errors
    ///
    /// As [`get`](LoadedModel::get); [`Error::Conversion`] when it leads to something else.
    pub fn variable(&self, path: &str) -> Result<Variable> {
        let object = self.get(path)?;
        let variable = object.variable().ok_or_else(|| Error::Conversion {
            expected: "a variable".into(),
            found: format!("another object, at `{path}`"),
        })?;
        Ok(variable.clone().into())
    }

    /// Calls the function at the end of a path with arguments by position. Numbers and texts of Rust are
    /// compared with those that the function was traced with; where no trace takes them, they become
    /// tensors.
    ///
    /// # Errors
    ///
    /// As [`get`](LoadedModel::get); when there is no trace for such arguments, or they have no
    /// counterpart in files; whatever fails in the function.
    #[track_caller]
    pub fn call<R: Nest>(&self, path: &str, args: impl Args) -> Result<R> {
        self.call_named(path, &args.to_values(), &[])
    }

    /// Calls the function at the end of a path with arguments by position and by name.
    ///
    /// # Errors
    ///
    /// As [`call`](LoadedModel::call).
    #[track_caller]
    pub fn call_named<R: Nest>(
        &self,
        path: &str,
        args: &[NestedValue],
        kwargs: &[(&str, NestedValue)],
    ) -> Result<R> {
        self.call_restored(&*self.restored(path)?, args, kwargs)
    }

    /// The function at the end of a path, as one that takes and returns these types: a part of other
    /// objects, say. It has traces of its own, which call those of the model.
    ///
    /// # Errors
    ///
    /// As [`get`](LoadedModel::get), and when the path leads to no function.
    pub fn function<A: Args + 'static, R: Nest + 'static>(
        &self,
        path: &str,
    ) -> Result<Function<A, R>> {
        let restored = self.restored(path)?;
        let names: Vec<String> =
            restored.parameter_names().take(A::COUNT).map(Into::into).collect();
        let name = path.rsplit('.').next().unwrap_or(path);
        let body = LoadedBody { model: self.clone(), restored, result: PhantomData };
        let called: Function<A, R> =
            function_with(FunctionOptions { name: name.into(), ..Default::default() }, body);
        match names.len() == A::COUNT {
            true => Ok(called.with_parameters(names.iter().map(String::as_str))),
            false => Ok(called),
        }
    }

    /// The names of the signatures, sorted.
    pub fn signatures(&self) -> Vec<String> {
        self.model.signatures()
    }

    /// The inputs of a signature: names, dtypes and shapes, sorted by name.
    ///
    /// # Errors
    ///
    /// When there is no such signature.
    pub fn signature_inputs(&self, key: &str) -> Result<Vec<(String, TensorSpec)>> {
        self.model.signature_inputs(key).map_err(of_files)
    }

    /// Calls a signature: inputs and outputs by name.
    ///
    /// # Errors
    ///
    /// When there is no such signature, or the inputs are not those it takes; [`Error::Symbolic`] in a
    /// trace, where the model is a graph of TensorFlow 1; whatever fails in the signature.
    #[track_caller]
    pub fn call_signature<'a>(
        &self,
        key: &str,
        inputs: impl IntoIterator<Item = (&'a str, Tensor)>,
    ) -> Result<BTreeMap<String, Tensor>> {
        let inputs = inputs.into_iter().map(|(name, tensor)| (name.to_string(), tensor));
        match &self.model {
            SavedModel::Objects(model) => {
                let signature = model.signature(key).map_err(of_files)?;
                self.call_function_of(&signature, inputs.collect())
            }
            SavedModel::Session(session) => {
                let eager = inputs.map(|(name, tensor)| Ok((name, tensor.eager()?.clone())));
                let eager = eager.collect::<Result<_>>()?;
                let outputs = session.call_signature(key, &eager).map_err(of_files)?;
                Ok(outputs.into_iter().map(|(name, value)| (name, value.into())).collect())
            }
        }
    }

    #[track_caller]
    fn call_function_of(
        &self,
        signature: &Signature,
        inputs: BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<String, Tensor>> {
        let inputs =
            inputs.into_iter().map(|(name, tensor)| (name, LoadedTensor(tensor))).collect();
        let args = signature.arguments(&inputs).map_err(of_files)?;
        let args: Vec<Tensor> = args.into_iter().map(|LoadedTensor(tensor)| tensor).collect();
        let results = self.concrete(signature.concrete_function())?.call_flat(&args)?;
        let names = signature.outputs().map(|(name, _)| name.to_string());
        Ok(names.zip(results).collect())
    }

    #[track_caller]
    fn call_restored<R: Nest>(
        &self,
        restored: &RestoredFunction,
        args: &[NestedValue],
        kwargs: &[(&str, NestedValue)],
    ) -> Result<R> {
        let args = args.iter().map(value::argument).collect::<Result<Vec<_>>>()?;
        let kwargs =
            kwargs.iter().map(|(name, value)| Ok((name.to_string(), value::argument(value)?)));
        let kwargs = kwargs.collect::<Result<_>>()?;
        let (trace, tensors) = restored.select(&args, &kwargs).map_err(of_files)?;
        let tensors: Vec<Tensor> = tensors.into_iter().map(|LoadedTensor(tensor)| tensor).collect();
        let results = self.concrete(trace.concrete_function())?.call_flat(&tensors)?;
        let packed = trace.pack(results.into_iter().map(LoadedTensor)).map_err(of_files)?;
        R::from_value(value::result(packed))
    }

    /// The function of the runtime as one of eager and traced code, made once.
    fn concrete(&self, function: &CallableFunction) -> Result<ConcreteFunction> {
        let name = &*function.def().name;
        if let Some(found) = self.called().concrete.get(name) {
            return Ok(found.clone());
        }
        let made = with_context(&self.context, || function_of_runtime(function))?;
        Ok(self.called().concrete.entry(name.to_string()).or_insert(made).clone())
    }

    /// The function at the end of a path, read from the file once.
    fn restored(&self, path: &str) -> Result<Arc<RestoredFunction>> {
        if let Some(found) = self.called().restored.get(path) {
            return Ok(found.clone());
        }
        let made = Arc::new(self.get(path)?.function().map_err(of_files)?);
        Ok(self.called().restored.entry(path.to_string()).or_insert(made).clone())
    }

    fn called(&self) -> MutexGuard<'_, CalledFunctions> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A model is an object that leads to what its root leads to: it is saved, and restored from checkpoints.
impl Trackable for LoadedModel {
    fn describe(&self, object: &mut Description<'_>) {
        if let Some(root) = &self.root {
            root.describe(object);
        }
    }

    fn identity(&self) -> Option<Identity> {
        self.root.as_ref()?.identity()
    }
}

/// The code of a function that calls one of a model.
struct LoadedBody<R> {
    model: LoadedModel,
    restored: Arc<RestoredFunction>,
    result: PhantomData<fn() -> R>,
}

impl<A: Args + 'static, R: Nest + 'static> Body<A> for LoadedBody<R> {
    type Value = R;

    fn run(&self, args: A) -> Result<R> {
        self.model.call_restored(&self.restored, &args.to_values(), &[])
    }
}
