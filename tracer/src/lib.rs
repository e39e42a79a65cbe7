//! From Rust code to functions: tensors, tracing, the trace cache, captures, the order of effects.
//!
//! ```
//! use ferroflow_tracer::{Tensor, Variable, function};
//! # fn main() -> ferroflow_tracer::Result<()> {
//! let w = Variable::new([[2.0f32, 0.0], [0.0, 2.0]])?;
//! let f = {
//!     let w = w.clone();
//!     function(move |x: Tensor| x.matmul(&w)?.relu())
//! };
//! let y = f(Tensor::from([[1.0f32, -1.0]]))?;
//! assert_eq!(y.to_vec::<f32>()?, [2.0, 0.0]);
//! # Ok(())
//! # }
//! ```
//!
//! The same with names, on functions and on methods: [`#[function]`](macro@function).
//!
//! - [`Tensor`] is eager, or symbolic while a function is traced; [`ops`] has what can be done with
//!   tensors, [`Variable`] holds one that changes.
//! - [`function`](function()) makes a [`Function`] of Rust code: it is traced once for each type of
//!   arguments ([`ferroflow_ir::trace_type`]); [`function`](mod@function) tells how a call goes.
//! - [`control_flow`] has choices, loops and arrays by hand; in `#[function]` Rust's own control flow
//!   is that of the graph where tensors decide: [`mod@autograph`] tells how.
//! - [`ConcreteFunction`] is one trace: a graph, what it captures, its signature.
//! - [`GradientTape`] records what is computed and gives its gradients, through functions, branches
//!   and loops too; [`derivatives`] has more than gradients.
//! - [`v1`] traces code with the semantics of TensorFlow 1.
//! - [`summary`] tells TensorBoard what a training does.
//! - [`debugging`] prints and checks while functions run; [`run_functions_eagerly`] does without
//!   traces.
//!
//! # Invariants
//!
//! - Inside a trace every call of an op is staged, even of eager tensors.
//! - Functions know of the state they use and do not keep it alive.
//! - A trace that fails leaves no mark on its function.
//! - All but traces under construction is `Send + Sync`; threads that call first at once share one
//!   trace.
//!
//! # What is absent on purpose
//!
//! Layers, losses and optimizers are in the crate above, file formats in the one beside this one; what
//! runs is the runtime below.

#![forbid(unsafe_code)]

// Macros name the crate as its users do.
extern crate self as ferroflow_tracer;

pub mod args;
pub mod autograph;
mod backprop;
mod capture;
mod carve;
pub mod changing;
pub mod completed;
mod concrete_function;
pub mod context;
pub mod control_flow;
mod control_order;
mod convert;
pub mod custom;
pub mod custom_gradient;
pub mod debugging;
pub mod derivatives;
pub mod distribute;
pub mod error;
mod fallible;
#[cfg(test)]
mod finite_differences;
mod from_def;
mod func_graph;
pub mod function;
mod function_cache;
pub mod function_spec;
pub mod gradients;
mod library_call;
mod lift;
pub mod lookup;
#[doc(hidden)]
pub mod macros;
pub mod methods;
pub mod nest;
pub mod ops;
mod recording;
mod resource;
mod retracing;
pub mod slot;
pub mod structs;
pub mod summary;
mod sync;
pub mod tape;
pub mod tensor;
mod trackable;
pub mod v1;
pub mod value;
pub mod variable;

pub use args::{Args, Body, IntoArg, IntoArgs};
pub use autograph::{Carry, GraphDataset, RangeOf, range};
pub use capture::Capture;
pub use concrete_function::{AtomicFunction, ConcreteFunction};
pub use context::{control_dependencies, device, init_scope, run_functions_eagerly, with_context};
pub use control_flow::{
    TensorArray, TensorArrayOptions, WhileOptions, case, cond, foldl, foldr, map_fn, scan,
    switch_case, while_loop, while_loop_with,
};
pub use custom_gradient::{custom_gradient, recompute_grad};
pub use error::{Error, Result};
pub use ferroflow_ir as ir;
pub use ferroflow_ir::DType;
pub use func_graph::Outputs;
pub use function::{
    Function, FunctionOptions, PolymorphicFunction, RetracePolicy, function, function_with, literal,
};
pub use function_spec::{ArgSpec, ParameterSpec, spec};
pub use gradients::{GradientOptions, IndexedSlices, Sources, TensorGradient};
pub use library_call::{LibraryCallGuard, library_call};
pub use methods::{Functions, HasFunctions};
pub use nest::Nest;
pub use recording::TapeOptions;
pub use resource::TrackableResource;
pub use tape::GradientTape;
pub use tensor::Tensor;
pub use value::NestedValue;

/// Makes a function or method that is traced once for each type of arguments.
///
/// # Functions
///
/// The function is called as it is written. Its traces are reached by its name too: `dense::call`,
/// which takes arguments by value or reference; `dense::concrete`; `dense::signatures`;
/// `dense::tracing_count`; and `dense::function`, the [`Function`] of all of them.
///
/// ```
/// use ferroflow_tracer::{Nest, Result, Tensor, Variable, function};
///
/// #[derive(Nest)]
/// enum Act {
///     Linear,
///     Relu,
/// }
///
/// #[function]
/// fn dense(x: &Tensor, w: &Variable, act: Act) -> Result<Tensor> {
///     let y = x.matmul(&w.read()?)?;
///     match act {
///         Act::Linear => Ok(y),
///         Act::Relu => y.relu(),
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let w = Variable::new([[1.0f32], [-2.0]])?;
/// let x = Tensor::from([[1.0f32, 1.0]]);
/// assert_eq!(dense(&x, &w, Act::Linear)?.to_vec::<f32>()?, [-1.0]);
/// assert_eq!(dense(&x, &w, Act::Relu)?.to_vec::<f32>()?, [0.0]);
/// assert_eq!(dense::tracing_count(), 2);
/// assert!(dense::signatures().contains("w (POSITIONAL_OR_KEYWORD): VariableSpec(shape=(2, 1)"));
/// # Ok(())
/// # }
/// ```
///
/// # Parameters and results
///
/// A trace owns its arguments: `&T` is cloned and lent to the body again, where `T` is [`Nest`] and
/// `Clone`; `&str`, `&[T]` and `Option<&T>` become `String`, `Vec<T>` and `Option<T>`. Anything else
/// is passed by value. There are sixteen parameters at most. A function that is generic over types or
/// constants has traces for each of them; tensors need none of that: a [`Tensor`] is of any dtype, a
/// [`NestedValue`] of any structure.
///
/// The result is `Result<T, E>`, where `T` is [`Nest`] and `E` is `From<`[`Error`]`>` and an error
/// of the standard library (or becomes a box of one). Errors of the body come back as they are.
///
/// `#[default(value)]` before a parameter makes it optional for
/// [`call_named`](Function::call_named):
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, function};
///
/// #[function]
/// fn scaled(x: &Tensor, #[default(2.0)] by: f64) -> Result<Tensor> {
///     x * by
/// }
///
/// # fn main() -> Result<()> {
/// let y = scaled::function().call_named(&[Tensor::from(3.0f32).into()], &[])?;
/// assert_eq!(y.to_scalar::<f32>()?, 6.0);
/// # Ok(())
/// # }
/// ```
///
/// # Control flow
///
/// `if`, `while`, `for`, `loop`, `break`, `continue`, `return`, `&&`, `||`, `!` in conditions and
/// `assert!` are part of the graph where a [`Tensor`] decides, which its type tells; `for` also over
/// the rows of a tensor and over [`range`]`(tensor)`. Where a `bool` decides they are Rust's:
/// branches are chosen and loops unrolled while tracing.
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, function};
///
/// #[function]
/// fn collatz(n: &Tensor, verbose: bool) -> Result<Tensor> {
///     let (mut n, mut steps) = (n.clone(), Tensor::from(0));
///     while n.greater(1)? {
///         if (&n % 2)?.equal(0)? {
///             n = n.floor_div(2)?;
///         } else {
///             n = ((n * 3)? + 1)?;
///         }
///         steps = (steps + 1)?;
///         if verbose {
///             ferroflow_tracer::print!("now", n)?;
///         }
///     }
///     Ok(steps)
/// }
///
/// # fn main() -> Result<()> {
/// assert_eq!(collatz(&Tensor::from(6), false)?.to_scalar::<i32>()?, 8);
/// assert_eq!(collatz(&Tensor::from(27), false)?.to_scalar::<i32>()?, 111);
/// assert_eq!(collatz::tracing_count(), 1);
/// # Ok(())
/// # }
/// ```
///
/// What such code assigns to is made of tensors ([`Carry`]): a number of Rust cannot depend on a
/// tensor, and a collection keeps its length; [`TensorArray`] does not. Both branches of an `if` give
/// the same structure and dtypes. `autograph = false` leaves control flow to Rust. [`mod@autograph`] tells
/// how it works, [`control_flow`] has functions for use by hand.
///
/// # Options
///
/// Those of [`FunctionOptions`]: `name = ".."`, which is that of the function otherwise,
/// `input_signature = [..]`, `infer_signature_from_first_call`, `reduce_retracing`,
/// `max_traces = N`, `retrace_policy = error` or `warn`; and `autograph = false`.
///
/// An input signature has a spec ([`ArgSpec`]) for each of the first parameters:
///
/// | spec | takes |
/// |---|---|
/// | `spec(f32, [None, 5])` | tensors of this dtype, by Rust's name or TensorFlow's, and this shape; `None` and `_` are sizes that may be any |
/// | `any([None])` | tensors of this shape, a trace for each dtype |
/// | `list(spec)`, `list(spec, 3)` | lists of such, of this length if one is given |
/// | `host` | any value, a trace for each |
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, function};
///
/// #[function(input_signature = [spec(i32, [None]), host])]
/// fn times(x: &Tensor, n: i64) -> Result<Tensor> {
///     x * n
/// }
///
/// # fn main() -> Result<()> {
/// assert_eq!(times(&Tensor::from([1, 2]), 3)?.to_vec::<i32>()?, [3, 6]);
/// assert_eq!(times(&Tensor::from([1]), 3)?.to_vec::<i32>()?, [3]);
/// assert_eq!(times::tracing_count(), 1);
/// assert!(times(&Tensor::from([1.5f32]), 3).is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Methods
///
/// On a method that takes `&self`, traces belong to the object: [`methods`] tells how. On one that
/// takes `&mut self`, the object is an argument, and its tensors are results too: [`changing`] tells
/// how. Both stand in an `impl` of the type; a method of a trait may call one that is traced.
pub use ferroflow_tracer_macros::function;

/// A closure whose control flow is that of the graph where a tensor decides: what
/// [`#[function]`](macro@function) makes of a body, for [`function`](fn@function) and for functions
/// that take code.
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, autograph, function};
///
/// # fn main() -> Result<()> {
/// let slope = 0.1;
/// let leaky = function(autograph!(move |x: Tensor| -> Result<Tensor> {
///     if x.lt(0.0)? { x * slope } else { Ok(x) }
/// }));
/// assert_eq!(leaky.call((-2.0f32,))?.to_scalar::<f32>()?, -0.2);
/// assert_eq!(leaky.call((3.0f32,))?.to_scalar::<f32>()?, 3.0);
/// # Ok(())
/// # }
/// ```
pub use ferroflow_tracer_macros::autograph;

/// Implements [`Nest`](trait@Nest) for a structure or enum whose fields are nests.
///
/// ```
/// use ferroflow_tracer::{Nest, Result, Tensor, function};
///
/// #[derive(Nest, Clone)]
/// struct Pair<T> {
///     left: T,
///     right: T,
/// }
///
/// #[function]
/// fn swapped(pair: Pair<Tensor>) -> Result<Pair<Tensor>> {
///     Ok(Pair { left: pair.right, right: pair.left })
/// }
///
/// # fn main() -> Result<()> {
/// let pair = swapped(Pair { left: Tensor::from(1), right: Tensor::from(2) })?;
/// assert_eq!(pair.left.to_scalar::<i32>()?, 2);
/// # Ok(())
/// # }
/// ```
pub use ferroflow_tracer_macros::Nest;

/// Implements [`Nest`](trait@Nest) for objects that are passed as they are, and says which of them
/// share traces. The type is `Clone`, `Send` and `Sync`.
///
/// With `#[trace(by_type)]` all objects of the Rust type do: the body sees the one that the trace
/// was made with. With `#[trace(by_value)]` equal objects do, by `PartialEq`.
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, TraceType, function};
///
/// #[derive(TraceType, Clone, PartialEq)]
/// #[trace(by_value)]
/// struct Flavor(&'static str);
///
/// #[function]
/// fn taste(x: &Tensor, flavor: &Flavor) -> Result<Tensor> {
///     x * flavor.0.len() as i64
/// }
///
/// # fn main() -> Result<()> {
/// let x = Tensor::from(2);
/// assert_eq!(taste(&x, &Flavor("sweet"))?.to_scalar::<i32>()?, 10);
/// assert_eq!(taste(&x, &Flavor("sour"))?.to_scalar::<i32>()?, 8);
/// taste(&x, &Flavor("sweet"))?;
/// assert_eq!(taste::tracing_count(), 2);
/// # Ok(())
/// # }
/// ```
pub use ferroflow_tracer_macros::TraceType;

/// Implements [`HasFunctions`](trait@HasFunctions) for a structure with one field of type
/// [`Functions`]: the traces of its methods are kept there.
///
/// ```
/// use ferroflow_tracer::{Functions, HasFunctions, Result, Tensor, function};
///
/// #[derive(HasFunctions)]
/// struct Scale {
///     by: f32,
///     functions: Functions,
/// }
///
/// impl Scale {
///     #[function]
///     fn apply(&self, x: &Tensor) -> Result<Tensor> {
///         x * self.by
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let scale = Scale { by: 3.0, functions: Functions::default() };
/// assert_eq!(scale.apply(&Tensor::from(2.0f32))?.to_scalar::<f32>()?, 6.0);
/// # Ok(())
/// # }
/// ```
pub use ferroflow_tracer_macros::HasFunctions;

pub use ferroflow_runtime as runtime;
pub use ferroflow_runtime::trackable::Trackable;
/// Implements [`Trackable`] for a structure: its fields are the
/// objects it leads to, by their names; the methods in its [`Functions`] are by theirs.
///
/// Traced methods that were never called are part of a saved model too: those with an input signature
/// are traced for it, and the report of the saving names the others. Their names are looked for in the
/// source files of the crate, as a derived implementation sees fields only; a method that is made by a
/// macro of another crate is named by `#[trackable(methods(infer, ..))]` on the structure.
///
/// `#[trackable(skip)]` leaves a field out, `#[trackable(name = "..")]` gives it another name,
/// `#[trackable(also = "..")]` one more, and `#[trackable(type = "..")]` on the structure is the name
/// under which loaders look for its type.
///
/// ```
/// use ferroflow_tracer::{Functions, HasFunctions, Result, Tensor, Trackable, Variable, function};
/// use ferroflow_runtime::ObjectGraph;
///
/// #[derive(Trackable, HasFunctions)]
/// struct Scale {
///     #[trackable(name = "w")]
///     by: Variable,
///     functions: Functions,
/// }
///
/// impl Scale {
///     #[function]
///     fn apply(&self, x: &Tensor) -> Result<Tensor> {
///         x * &self.by
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let scale = Scale { by: Variable::new(3.0f32)?, functions: Functions::default() };
/// scale.apply(&Tensor::from(2.0f32))?;
/// let graph = ObjectGraph::of(&scale)?;
/// assert_eq!(graph.nodes[0].edges().collect::<Vec<_>>(), ["w", "apply"]);
/// # Ok(())
/// # }
/// ```
pub use ferroflow_tracer_macros::Trackable;
pub use variable::{Variable, VariableOptions};
