//! Saving from eager code, and functions of loaded models in traces.

use ferroflow_ir::{
    AttrValue, Attrs, FunctionDef, FunctionLibrary, NameAttrList, gradient::LoadedGradient,
};
use ferroflow_runtime as runtime;
use ferroflow_saved_model::{self as saved_model, SaveOptions, SaveReport, function::Trace};
use ferroflow_tracer::{Capture, ConcreteFunction, Result, Tensor, Trackable, context};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Saves an object, and all it leads to, as a SavedModel that TensorFlow loads like its own.
///
/// ```
/// use ferroflow::{Function, Tensor, Trackable, Variable, function, save, saved_model};
/// use ferroflow::{runtime::Context, saved_model::{LoadOptions, SaveOptions}};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// #[derive(Trackable)]
/// struct Model {
///     w: Variable,
///     scale: Function<(Tensor,), Tensor>,
/// }
///
/// let w = Variable::new(3.0f32)?;
/// let scale = function({
///     let w = w.clone();
///     move |x: Tensor| &x * &w
/// });
/// let model = Model { w, scale };
/// (model.scale)(Tensor::from(2.0f32))?;
/// save(&model, folder.path(), &SaveOptions::default())?;
///
/// let loaded = saved_model::load(&Context::new(), folder.path(), &LoadOptions::default())?;
/// let scale = loaded.root().ok_or("an object")?.get("scale")?.function()?;
/// let x = Tensor::from(5.0f32).eager()?.clone();
/// let y = scale.call(&[x.into()], &Default::default())?;
/// assert_eq!(y.tensor().ok_or("a tensor")?.host()?.as_scalar::<f32>()?, 15.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`saved_model::save()`]; [`saved_model::Error::WhileTracing`] in a function that is traced.
pub fn save(
    root: &dyn Trackable,
    folder: impl AsRef<Path>,
    options: &SaveOptions,
) -> saved_model::Result<SaveReport> {
    if context::is_tracing() {
        return Err(saved_model::Error::WhileTracing);
    }
    saved_model::save(root, folder, options)
}

/// A trace of a loaded function as one that other functions may call, which are saved with it.
///
/// Its parameters are the tensors of the trace, by name. The model stays what it is: the function
/// and those it calls get names of their own in the program.
///
/// # Errors
///
/// When the function or one it calls is malformed, or the type of a result is not known.
pub fn loaded_function(trace: &Trace) -> Result<ConcreteFunction> {
    function_of_runtime(trace.concrete_function())
}

/// As [`loaded_function`], of a function that is known to the runtime.
pub(crate) fn function_of_runtime(
    function: &runtime::CallableFunction,
) -> Result<ConcreteFunction> {
    let (def, library) = renamed(function.def(), function.library())?;
    let captures = function.captures().iter().map(|capture| match capture {
        runtime::CapturedInput::Resource(handle) => Capture::Resource(handle.clone()),
        runtime::CapturedInput::Tensor(tensor) => Capture::Tensor(Tensor::from(tensor.clone())),
    });
    let name = function.def().name.trim_start_matches("__inference_");
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
    ConcreteFunction::from_def(name, def, Arc::new(library), captures.collect())
}

/// A function and those it calls under names that nothing else has.
fn renamed(
    root: &Arc<FunctionDef>,
    library: &FunctionLibrary,
) -> Result<(Arc<FunctionDef>, FunctionLibrary)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let rename = |name: &str| -> Arc<str> { format!("{name}_loaded_{number}").into() };
    let mut found: BTreeMap<Arc<str>, Arc<FunctionDef>> = BTreeMap::new();
    let mut gradients: BTreeMap<String, Arc<LoadedGradient>> = BTreeMap::new();
    let mut waiting = vec![root.clone()];
    while let Some(def) = waiting.pop() {
        for (_, node) in def.graph.iter() {
            let own = loaded_gradient(&node.attrs, library);
            if let Some((name, gradient)) = &own {
                gradients.insert(name.to_string(), gradient.clone());
            }
            let callees = ferroflow_ir::function::callees(&node.attrs);
            let of_callees = callees.iter().filter_map(|callee| library.gradient_of(callee));
            let of_callees: Vec<Arc<str>> = of_callees.collect();
            // A gradient takes values of functions that call this one, or that it is a copy of.
            let captures = own.iter().flat_map(|(_, gradient)| &gradient.captures);
            let around =
                captures.map(|capture| &capture.function).filter(|&name| *name != def.name);
            let around = around.filter(|&name| *name == root.name || library.get(name).is_ok());
            let around: Vec<Arc<str>> = around.cloned().collect();
            let own = own.iter().map(|(_, gradient)| gradient.function.clone());
            for callee in callees.into_iter().chain(of_callees).chain(own).chain(around) {
                if let Entry::Vacant(entry) = found.entry(callee) {
                    let is_root = *entry.key() == root.name;
                    let callee = if is_root { root.clone() } else { library.get(entry.key())? };
                    entry.insert(callee.clone());
                    waiting.push(callee);
                }
            }
        }
    }
    let renamed = FunctionLibrary::new();
    for def in found.values() {
        renamed.insert(renamed_def(def, library, &rename))?;
        if let Some(gradient) = library.gradient_of(&def.name) {
            renamed.set_gradient(rename(&def.name), rename(&gradient));
        }
    }
    for (name, gradient) in gradients {
        let mut gradient = LoadedGradient::clone(&gradient);
        gradient.function = rename(&gradient.function);
        for capture in &mut gradient.captures {
            capture.function = rename(&capture.function);
        }
        renamed.carry_gradient(rename(&name), gradient);
    }
    let root = match found.contains_key(&root.name) {
        true => renamed.get(&rename(&root.name))?,
        false => renamed_def(root, library, &rename).into(),
    };
    Ok((root, renamed))
}

/// The gradient that a node brings along, and its name.
fn loaded_gradient<'a>(
    attrs: &'a Attrs,
    library: &FunctionLibrary,
) -> Option<(&'a str, Arc<LoadedGradient>)> {
    let name = attrs.string(LoadedGradient::ATTRIBUTE).ok()?;
    Some((name, library.loaded_gradient(name)?))
}

fn renamed_def(
    def: &FunctionDef,
    library: &FunctionLibrary,
    rename: &dyn Fn(&str) -> Arc<str>,
) -> FunctionDef {
    let mut def = def.clone();
    def.name = rename(&def.name);
    let ids: Vec<_> = def.graph.iter().map(|(id, _)| id).collect();
    for id in ids {
        let old = def.graph[id].attrs.clone();
        let mut attrs = renamed_attrs(&old, rename);
        if let Some((name, _)) = loaded_gradient(&old, library) {
            attrs.set(LoadedGradient::ATTRIBUTE, &*rename(name));
        }
        *def.graph.node_mut(id).attrs = attrs.into();
    }
    def
}

fn renamed_attrs(attrs: &Attrs, rename: &dyn Fn(&str) -> Arc<str>) -> Attrs {
    let function = |function: &NameAttrList| {
        let name = if function.name.is_empty() { "".into() } else { rename(&function.name) };
        NameAttrList::with_attrs(name, renamed_attrs(&function.attrs, rename))
    };
    let mut renamed = attrs.clone();
    for (name, value) in attrs.iter() {
        match value {
            AttrValue::Func(f) => renamed.set(name, AttrValue::Func(function(f))),
            AttrValue::Funcs(list) => {
                renamed.set(name, AttrValue::Funcs(list.iter().map(function).collect()));
            }
            _ => {}
        }
    }
    renamed
}
