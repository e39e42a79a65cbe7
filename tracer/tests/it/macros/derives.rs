//! `#[derive(Nest)]` and `#[derive(TraceType)]`.

use ferroflow_ir::TraceType;
use ferroflow_tracer::{
    Nest, NestedValue, Result, Tensor, TraceType, Variable, function,
    value::{Aliases, TensorLeaves},
};
use std::{
    collections::{BTreeMap, HashSet},
    fmt::Debug,
    sync::atomic::{AtomicU64, Ordering},
};

#[derive(Nest, Clone, Debug)]
struct Layer<T> {
    w: T,
    b: Option<T>,
    r#type: String,
}

#[derive(Nest, Clone, Debug)]
struct Pair<A, const N: usize>(A, [Tensor; N])
where
    A: Clone;

#[derive(Nest, Clone, Debug)]
struct Unit;

#[derive(Nest, Clone, Debug)]
enum Act {
    Relu,
    Leaky(f32),
    Learned { slope: Tensor, at: Vec<Layer<Tensor>> },
}

/// Structures may hold themselves.
#[derive(Nest, Clone, Debug)]
struct Tree {
    value: Tensor,
    children: Vec<Tree>,
}

/// Checks that each method of the trait agrees with `to_value`, and that the value comes back from
/// its structure, and from its type and tensors.
fn check<T: Nest + Debug>(value: &T, ty: &str) {
    let structure = value.to_value();
    let trace_type = structure.trace_type(&mut Aliases::default());
    assert_eq!(trace_type.to_string(), ty);
    assert!(value.has_type(&trace_type, &mut Aliases::default()));
    assert!(!value.has_type(&TraceType::None, &mut Aliases::default()));
    let other = TraceType::Struct("Other".into(), Vec::new());
    assert!(!value.has_type(&other, &mut Aliases::default()));
    let (mut leaves, mut expected) = (TensorLeaves::new(), TensorLeaves::new());
    value.leaves(&mut Aliases::default(), &mut leaves);
    structure.leaves(&mut Aliases::default(), &mut expected);
    assert_eq!(format!("{leaves:?}"), format!("{expected:?}"));
    let again = T::from_value(structure).unwrap();
    assert_eq!(format!("{again:?}"), format!("{value:?}"));
    let type_again = again.to_value().trace_type(&mut Aliases::default());
    assert_eq!(type_again, trace_type);
    assert!(type_again.is_subtype_of(&trace_type));
    let built = T::from_leaves(&trace_type, &mut leaves.clone().into_iter()).unwrap();
    assert_eq!(format!("{built:?}"), format!("{value:?}"));
    if !leaves.is_empty() {
        assert!(T::from_leaves(&trace_type, &mut leaves.into_iter().skip(1)).is_err());
    }
    for other in [NestedValue::None, NestedValue::Struct("Other".into(), Vec::new())] {
        assert!(T::from_value(other).is_err());
    }
    for other in [TraceType::None, other] {
        assert!(T::from_leaves(&other, &mut std::iter::empty()).is_err());
    }
}

fn float(value: f32) -> Tensor {
    Tensor::from(value)
}

const FLOAT: &str = "TensorSpec(shape=(), dtype=tf.float32, name=None)";

// spec: 34, b15
#[test]
fn structures_and_enums_round_trip() {
    let layer = Layer { w: float(1.0), b: None, r#type: "dense".into() };
    check(
        &layer,
        &format!("Layer[['w', {FLOAT}], ['b', Literal[None]], ['type', Literal['dense']]]"),
    );
    check(
        &Layer { b: Some((float(1.0), 7i64)), w: (float(2.0), 8), r#type: String::new() },
        &format!(
            "Layer[['w', Tuple[{FLOAT}, Literal[8]]], ['b', Tuple[{FLOAT}, Literal[7]]], \
             ['type', Literal['']]]"
        ),
    );
    check(
        &Pair(layer.clone(), [float(2.0), float(3.0)]),
        &format!(
            "Pair[['0', Layer[['w', {FLOAT}], ['b', Literal[None]], ['type', Literal['dense']]]], \
             ['1', List[{FLOAT}, {FLOAT}]]]"
        ),
    );
    check(&Unit, "Unit[]");
    check(&Act::Relu, "Act::Relu[]");
    check(&Act::Leaky(0.5), "Act::Leaky[['0', Literal[0.5]]]");
    check(
        &Act::Learned { slope: float(1.0), at: vec![layer] },
        &format!(
            "Act::Learned[['slope', {FLOAT}], ['at', List[Layer[['w', {FLOAT}], \
             ['b', Literal[None]], ['type', Literal['dense']]]]]]"
        ),
    );
    let leaf = |value| Tree { value: float(value), children: Vec::new() };
    check(
        &Tree { value: float(1.0), children: vec![leaf(2.0)] },
        &format!(
            "Tree[['value', {FLOAT}], ['children', List[Tree[['value', {FLOAT}], \
             ['children', List[]]]]]]"
        ),
    );
}

#[test]
fn fields_are_looked_at_by_name() {
    let field = |key: &str, value: NestedValue| (key.into(), value);
    let layer = |fields| Layer::<Tensor>::from_value(NestedValue::Struct("Layer".into(), fields));
    let (w, b) = (field("w", float(1.0).into()), field("b", NestedValue::None));
    let ty = field("type", "dense".into());
    assert!(layer(vec![w.clone(), b.clone(), ty.clone()]).is_ok());
    assert!(layer(vec![b.clone(), w.clone(), ty.clone()]).is_err());
    let error = layer(vec![w.clone(), b.clone()]).unwrap_err().to_string();
    assert!(error.starts_with("expected Layer, found Layer(w="), "{error}");
    assert!(layer(vec![w, b, field("type", 1i64.into())]).is_err());
}

#[test]
fn variables_in_structures_know_which_are_the_same() {
    let (v, w) = (Variable::new(1.0f32).unwrap(), Variable::new(2.0f32).unwrap());
    #[function]
    fn sum(vars: Pair<Variable, 0>, other: Layer<Variable>) -> Result<Tensor> {
        other.w.assign_add(1.0f32)?;
        &vars.0.read()? + &other.w.read()?
    }
    let call = |a: &Variable, b: &Variable| {
        let layer = Layer { w: b.clone(), b: None, r#type: String::new() };
        sum(Pair(a.clone(), []), layer).unwrap().to_scalar::<f32>().unwrap()
    };
    assert_eq!(call(&v, &w), 4.0);
    assert_eq!(call(&w, &v), 5.0);
    assert_eq!(sum::tracing_count(), 1);
    assert_eq!(call(&v, &v), 6.0);
    assert_eq!(sum::tracing_count(), 2);
}

#[test]
fn structures_are_results_too() {
    #[derive(Nest)]
    enum Found {
        Row { at: Tensor, named: BTreeMap<String, Tensor> },
        Nothing,
    }
    #[function]
    fn find(x: &Tensor, any: bool) -> Result<Found> {
        if !any {
            return Ok(Found::Nothing);
        }
        let named = BTreeMap::from([("double".to_string(), (x + x)?)]);
        Ok(Found::Row { at: x.square()?, named })
    }
    let x = float(3.0);
    let Found::Row { at, named } = find(&x, true).unwrap() else { panic!("there is a row") };
    assert_eq!(at.to_scalar::<f32>().unwrap(), 9.0);
    assert_eq!(named["double"].to_scalar::<f32>().unwrap(), 6.0);
    assert!(matches!(find(&x, false).unwrap(), Found::Nothing));
}

#[derive(TraceType, Clone, Debug)]
#[trace(by_type)]
struct Mango {
    flavor: Vec<f32>,
}

#[derive(TraceType, Clone, Debug, PartialEq)]
#[trace(by_value)]
enum Fruit<T> {
    Apple(T),
    Other { name: String },
}

static TASTED: AtomicU64 = AtomicU64::new(0);

// spec: 69, 75, 77
#[test]
fn objects_may_go_by_their_rust_type() {
    #[function]
    fn mixed(x: &Tensor, fruit: &Mango) -> Result<Tensor> {
        TASTED.fetch_add(1, Ordering::Relaxed);
        x + &Tensor::from(&fruit.flavor[..])
    }
    let x = Tensor::from([1.0f32, 2.0]);
    let mango = |flavor: &[f32]| Mango { flavor: flavor.to_vec() };
    assert_eq!(mixed(&x, &mango(&[3.0, 4.0])).unwrap().to_vec::<f32>().unwrap(), [4.0, 6.0]);
    // The trace has seen the first one.
    assert_eq!(mixed(&x, &mango(&[0.0, 0.0])).unwrap().to_vec::<f32>().unwrap(), [4.0, 6.0]);
    assert_eq!(TASTED.load(Ordering::Relaxed), 1);
    assert_eq!(mixed::tracing_count(), 1);
}

#[test]
fn objects_may_go_by_their_value() {
    #[function]
    fn named(x: &Tensor, fruit: Fruit<i64>) -> Result<Tensor> {
        match fruit {
            Fruit::Apple(weight) => x * weight,
            Fruit::Other { name } => x * name.len() as i64,
        }
    }
    let x = float(1.0);
    let call = |fruit: Fruit<i64>| named(&x, fruit).unwrap().to_scalar::<f32>().unwrap();
    let other = |name: &str| Fruit::Other { name: name.into() };
    assert_eq!(call(Fruit::Apple(3)), 3.0);
    assert_eq!(call(other("kiwi")), 4.0);
    assert_eq!(call(Fruit::Apple(3)), 3.0);
    assert_eq!(call(other("kiwi")), 4.0);
    assert_eq!(named::tracing_count(), 2);
    assert_eq!(call(Fruit::Apple(5)), 5.0);
    assert_eq!(named::tracing_count(), 3);
}

// spec: 76
#[test]
fn types_of_objects_are_compared_hashed_and_widened() {
    let ty = |value: &dyn Fn() -> NestedValue| value().trace_type(&mut Aliases::default());
    let mango = |flavor: f32| ty(&|| Mango { flavor: vec![flavor] }.to_value());
    let fruit = |weight: i64| ty(&|| Fruit::Apple(weight).to_value());
    assert_eq!(mango(1.0), mango(2.0));
    assert_eq!(HashSet::from([mango(1.0), mango(2.0), fruit(1), fruit(1), fruit(2)]).len(), 3);
    assert!(mango(1.0).is_subtype_of(&mango(2.0)));
    assert_eq!(mango(1.0).common_supertype(&mango(2.0)), Some(mango(3.0)));
    assert_eq!(fruit(1), fruit(1));
    assert_ne!(fruit(1), fruit(2));
    assert_eq!(fruit(1).common_supertype(&fruit(2)), None);
    assert_ne!(fruit(1), mango(1.0));
    let apple = Fruit::Apple(1i64);
    assert!(apple.has_type(&fruit(1), &mut Aliases::default()));
    assert!(!apple.has_type(&fruit(2), &mut Aliases::default()));
    assert!(!apple.has_type(&mango(1.0), &mut Aliases::default()));
    assert!(!apple.has_type(&TraceType::None, &mut Aliases::default()));
    assert_eq!(Fruit::from_value(apple.to_value()).unwrap(), apple);
    assert!(Mango::from_value(apple.to_value()).is_err());
    assert!(mango(1.0).to_string().starts_with("ByType["));
    assert!(fruit(1).to_string().starts_with("ByValue["));
    let by_identity = ferroflow_tracer::custom::by_type(&std::sync::Arc::new(apple));
    assert_ne!(TraceType::Custom(by_identity.ty), fruit(1));
}
