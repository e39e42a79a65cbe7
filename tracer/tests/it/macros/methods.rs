//! `#[function]` on methods.

use ferroflow_ir::{DType, TraceType};
use ferroflow_tracer::{
    Error, Functions, HasFunctions, Nest, Result, Tensor, Variable, VariableOptions, function, spec,
};
use std::sync::{Arc, OnceLock};

#[derive(HasFunctions, Default, Debug, Clone)]
struct ScalarModel {
    v: OnceLock<Variable>,
    functions: Functions,
}

impl ScalarModel {
    fn v(&self, make: impl FnOnce() -> Result<Variable>) -> Result<&Variable> {
        if self.v.get().is_none() {
            let v = make()?;
            self.v.get_or_init(|| v);
        }
        Ok(self.v.get().unwrap())
    }

    #[function]
    fn increment(&self, amount: &Tensor) -> Result<Tensor> {
        let v = self.v(|| Variable::new(0.0f32))?;
        v.assign_add(amount)?;
        v.read()
    }
}

fn scalar(tensor: Tensor) -> f32 {
    tensor.to_scalar().unwrap()
}

// spec: 131, 132, 133, b30, b32
#[test]
fn instances_have_their_own_variables_and_traces() {
    let (model1, model2) = (ScalarModel::default(), ScalarModel::default());
    assert_eq!(scalar(model1.increment(&3.0f32.into()).unwrap()), 3.0);
    assert_eq!(scalar(model1.increment(&4.0f32.into()).unwrap()), 7.0);
    assert_eq!(scalar(model2.increment(&5.0f32.into()).unwrap()), 5.0);
    let counts = [&model1, &model2].map(|model| {
        let f = model.increment_function();
        (f.tracing_count(), f.concrete_functions().len())
    });
    // The first call runs the code twice: once to make the variable, once for good.
    assert_eq!(counts, [(2, 1), (2, 1)]);
    model1.v.get().unwrap().assign(100.0f32).unwrap();
    assert_eq!(scalar(model2.increment(&1.0f32.into()).unwrap()), 6.0);
    assert_eq!(scalar(model1.increment(&1.0f32.into()).unwrap()), 101.0);
    assert!(!Arc::ptr_eq(&model1.increment_function(), &model2.increment_function()));
    assert_eq!(format!("{:?}", model1.functions), "{\"increment\"}");
}

#[test]
fn traces_go_with_their_object() {
    let model = ScalarModel::default();
    model.increment(&1.0f32.into()).unwrap();
    let function = Arc::downgrade(&model.increment_function());
    let trace = model.increment_function().concrete_functions().remove(0);
    assert_eq!(trace.variables().len(), 1);
    drop(model);
    assert!(function.upgrade().is_none());
    assert!(trace.variables().is_empty());
    let gone = trace.call(&[Tensor::from(1.0f32).into()]).unwrap_err();
    assert!(matches!(gone, Error::Dropped { .. }), "{gone}");
}

#[test]
fn a_clone_is_another_instance() {
    let model = ScalarModel::default();
    model.increment(&1.0f32.into()).unwrap();
    let clone = model.clone();
    assert_eq!(clone.increment_function().tracing_count(), 0);
    // The variable is the same one, as clones of variables are.
    assert_eq!(scalar(clone.increment(&1.0f32.into()).unwrap()), 2.0);
    assert_eq!(clone.increment_function().tracing_count(), 1);
}

/// A model whose variable has the shape of what it is first given.
#[derive(HasFunctions, Default)]
struct AnyShapeModel {
    model: ScalarModel,
    functions: Functions,
}

impl AnyShapeModel {
    #[function]
    fn increment(&self, amount: &Tensor) -> Result<Tensor> {
        let v = self.model.v(|| Variable::new(amount.zeros_like()?))?;
        v.assign_add(amount)?;
        v.read()
    }
}

// spec: 109, 110, 134
#[test]
fn first_values_may_depend_on_arguments() {
    let (model1, model2) = (AnyShapeModel::default(), AnyShapeModel::default());
    assert_eq!(scalar(model1.increment(&3.0f32.into()).unwrap()), 3.0);
    assert_eq!(scalar(model1.increment(&4.0f32.into()).unwrap()), 7.0);
    let vector = model2.increment(&Tensor::from([4.0f32, 5.0])).unwrap();
    assert_eq!(vector.to_vec::<f32>().unwrap(), [4.0, 5.0]);
    let trace = model2.increment_function().concrete_functions().remove(0);
    let [initializer] = trace.initializers() else { panic!("one variable is created") };
    let ops: Vec<&str> = initializer.def.graph.iter().map(|(_, node)| node.op.name()).collect();
    assert_eq!(ops, ["_Arg", "ZerosLike"]);
}

/// A method of a generic type, in two of its forms.
#[derive(HasFunctions)]
struct Scaled<T> {
    scale: f32,
    calls: std::marker::PhantomData<T>,
    functions: Functions,
}

impl<T: Nest + Clone + 'static> Scaled<T>
where
    Tensor: for<'a> From<&'a T>,
{
    #[function(name = "Scaled.run", reduce_retracing)]
    pub fn run(&self, x: &T, #[default(1)] times: i64, note: Option<&str>) -> Result<Tensor> {
        assert_ne!(note, Some("never"));
        &(&Tensor::from(x) * self.scale)? * times
    }

    #[function]
    pub(crate) fn half<'a>(&'a self, x: &'a Tensor) -> Result<Tensor> {
        let half: Result<Tensor> = x / 2.0;
        half
    }
}

// spec: 130
#[test]
fn methods_without_variables_work() {
    let scaled = |scale| Scaled::<Tensor> {
        scale,
        calls: Default::default(),
        functions: Functions::default(),
    };
    let (two, three) = (scaled(2.0), scaled(3.0));
    let x = Tensor::from(1.0f32);
    assert_eq!(scalar(two.run(&x, 1, None).unwrap()), 2.0);
    assert_eq!(scalar(three.run(&x, 1, None).unwrap()), 3.0);
    assert_eq!(scalar(three.run(&x, 2, Some("always")).unwrap()), 6.0);
    assert_eq!(scalar(two.half(&x).unwrap()), 0.5);
    let function = three.run_function();
    assert_eq!((function.name(), function.concrete_functions().len()), ("Scaled.run", 2));
    assert!(function.options().reduce_retracing);
    assert!(function.parameters()[1].default.is_some());
    assert_eq!(format!("{:?}", two.functions), "{\"run\", \"half\"}");
}

#[test]
fn a_trace_of_a_method_can_be_made_of_types() {
    let model =
        Scaled::<Tensor> { scale: 4.0, calls: Default::default(), functions: Functions::default() };
    let types: [TraceType; 3] =
        [spec(DType::F32, [None]).into(), ferroflow_tracer::literal(1i64), TraceType::None];
    let trace = model.run_concrete(types).unwrap();
    assert_eq!(
        trace.function_type().to_string(),
        "(x: TensorSpec(shape=(None,), dtype=tf.float32, name=None), times: Literal[1], \
         note: Literal[None]) -> TensorSpec(shape=(None,), dtype=tf.float32, name=None)"
    );
    let y = model.run(&Tensor::from([1.0f32, 2.0]), 1, None).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [4.0, 8.0]);
    assert_eq!(model.run_function().tracing_count(), 1);
}

/// Two methods of one name on one object.
trait Named {
    fn object(&self) -> &Two;
}

#[derive(HasFunctions, Default)]
struct Two(Functions);

mod first {
    use super::{Result, Tensor, Two, function};
    impl Two {
        #[function]
        pub(super) fn plus_one(&self, x: &Tensor) -> Result<Tensor> {
            x + 1.0
        }
    }
}

impl Two {
    #[function(name = "plus_one")]
    fn plus_two(&self, x: &Tensor) -> Result<Tensor> {
        // Methods call methods, and are called in their own traces.
        self.plus_one(&self.plus_one(x)?)
    }
}

impl Named for Two {
    fn object(&self) -> &Two {
        self
    }
}

#[test]
fn methods_call_methods() {
    let two = Two::default();
    assert_eq!(scalar(two.object().plus_two(&1.0f32.into()).unwrap()), 3.0);
    assert_eq!(scalar(two.plus_one(&1.0f32.into()).unwrap()), 2.0);
    assert_eq!(two.plus_one_function().tracing_count(), 1);
    assert_eq!(two.plus_two_function().tracing_count(), 1);
}

#[test]
fn threads_share_the_traces_of_an_object() {
    let model = Two::default();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let model = &model;
            scope.spawn(move || {
                let y = model.plus_two(&Tensor::from(n as f32)).unwrap();
                assert_eq!(scalar(y), n as f32 + 2.0);
            });
        }
    });
    assert_eq!(model.plus_two_function().tracing_count(), 1);
}

/// An error of a method comes back as it is.
#[derive(Debug)]
struct Mine(String);

impl From<Error> for Mine {
    fn from(error: Error) -> Mine {
        Mine(error.to_string())
    }
}

impl From<Mine> for Box<dyn std::error::Error + Send + Sync> {
    fn from(mine: Mine) -> Self {
        mine.0.into()
    }
}

impl Two {
    #[function]
    fn refused(&self, x: &Tensor) -> Result<Tensor, Mine> {
        match x.dtype() {
            DType::F32 => Ok(x.square()?),
            dtype => Err(Mine(format!("not {dtype}"))),
        }
    }
}

#[test]
fn methods_have_errors_of_their_own() {
    let two = Two::default();
    assert_eq!(two.refused(&Tensor::from(1i32)).unwrap_err().0, "not int32");
    assert_eq!(scalar(two.refused(&2.0f32.into()).unwrap()), 4.0);
    let error = two.refused_concrete([spec(DType::I32, [])]).unwrap_err();
    assert!(matches!(error, Error::Host(_)));
}

#[test]
fn variables_of_a_method_may_be_named() {
    #[derive(HasFunctions, Default)]
    struct Net {
        w: OnceLock<Variable>,
        kept: Functions,
    }
    impl Net {
        #[function]
        fn run(&self, x: &Tensor) -> Result<Tensor> {
            if self.w.get().is_none() {
                let options = VariableOptions { name: "w".into(), ..Default::default() };
                let w = Variable::with_options(2.0f32, options)?;
                self.w.get_or_init(|| w);
            }
            x * &self.w.get().unwrap().read()?
        }
    }
    let net = Net::default();
    assert_eq!(scalar(net.run(&3.0f32.into()).unwrap()), 6.0);
    let trace = net.run_function().concrete_functions().remove(0);
    assert_eq!(trace.variables()[0].name(), "w");
    assert!(trace.variables()[0].is(net.w.get().unwrap()));
}
