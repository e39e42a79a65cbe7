//! The types by which traces are told apart.

use ferroflow::{
    ir::{
        DType, FunctionType, PartialShape, TraceType, TypeDispatchTable,
        function_type::{Parameter, ParameterKind},
        trace_type::{CustomType, Literal, MapKey},
    },
    tracer::{
        ArgSpec, Args, Error, Function, IntoArgs, Nest, NestedValue, Result, Tensor, Variable,
        custom, function, literal, spec,
        value::{Aliases, Custom},
    },
};
use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
};

fn type_of(value: impl Into<NestedValue>) -> TraceType {
    value.into().trace_type(&mut Aliases::default())
}

/// Calls `f` and checks the result and the number of traces made so far.
fn check<A: Args + 'static>(
    f: &Function<A, Tensor>,
    args: impl IntoArgs<A>,
    expected: i32,
    n_traces: u64,
) -> Result<()> {
    let y = f.call(args)?.to_scalar::<i32>()?;
    assert_eq!((y, f.tracing_count()), (expected, n_traces));
    Ok(())
}

/// The number of known sizes of the argument it was traced for.
fn known_sizes() -> Function<(Tensor,), Tensor> {
    function(|x: Tensor| {
        let dims = x.shape().dims().map_or(-1, |dims| dims.iter().flatten().count() as i32);
        Tensor::from(dims)
    })
}

// spec: 59, 60, 61, 62, 63, 64
#[test]
fn the_most_specific_trace_is_called() -> Result<()> {
    let f = known_sizes();
    f.concrete_for([spec(DType::F32, [Some(1), None])])?;
    let concrete = f.concrete_for([spec(DType::F32, [None, None])])?;
    assert_eq!(
        concrete.function_type().to_string(),
        "(args_0: TensorSpec(shape=(None, None), dtype=tf.float32, name=None)) -> \
         TensorSpec(shape=(), dtype=tf.int32, name=None)"
    );
    check(&f, ([[0.0f32; 2]],), 1, 2)?;
    check(&f, ([[0.0f32; 2]; 2],), 0, 2)?;
    f.concrete_for([TraceType::tensor(DType::F32, PartialShape::Unknown)])?;
    check(&f, ([[0.0f32; 2]],), 1, 3)?;
    check(&f, ([[0.0f32; 2]; 2],), 0, 3)?;
    check(&f, ([0.0f32; 2],), -1, 3)?;
    check(&f, ([[0.0f64; 2]],), 2, 4)?;
    let fixed = type_of(Tensor::from([[0.0f32; 2]]));
    let wildcards = TraceType::from(spec(DType::F32, [None, None]));
    let unranked = TraceType::tensor(DType::F32, PartialShape::Unknown);
    assert!(fixed.is_subtype_of(&wildcards) && wildcards.is_subtype_of(&unranked));
    assert!(!unranked.is_subtype_of(&wildcards) && !wildcards.is_subtype_of(&fixed));
    Ok(())
}

// spec: 65, b14
#[test]
fn variables_are_told_apart() -> Result<()> {
    let f = function(|a: Variable, b: Variable| {
        let before = a.read()?;
        b.assign_add(10)?;
        (before * 100)? + &a
    });
    let [v, w, other] = [1i32, 2, 3].map(Variable::new);
    let (v, w, other) = (v?, w?, other?);
    check(&f, (&v, &w), 101, 1)?;
    assert_eq!(w.read()?.to_scalar::<i32>()?, 12);
    check(&f, (&v, &v), 111, 2)?;
    check(&f, (&other, &w), 303, 2)?;
    let edges = |index: usize| {
        let concrete = &f.concrete_functions()[index];
        let graph = concrete.graph();
        let write = graph.iter().find(|(_, node)| node.op.name() == "AssignAddVariableOp");
        write.map(|(_, node)| node.controls().len())
    };
    assert_eq!((edges(0), edges(1)), (Some(0), Some(1)));
    let three = function(|a: Variable, b: Variable, c: Variable| (a.read()? + &b)? + &c);
    let types = |a: &Variable, b: &Variable, c: &Variable| {
        three.types_of(&(a.clone(), b.clone(), c.clone()))
    };
    assert_ne!(types(&v, &w, &other)?, types(&v, &v, &v)?);
    assert_eq!(types(&v, &w, &other)?, types(&other, &v, &w)?);
    let spec =
        |id| format!("VariableSpec(shape=(), dtype=tf.int32, trainable=True, alias_id={id})");
    let shown: Vec<String> = types(&v, &w, &v)?.iter().map(ToString::to_string).collect();
    assert_eq!(shown, [spec(0), spec(1), spec(0)]);
    Ok(())
}

// spec: 66
#[test]
fn numbers_are_typed_by_value_and_kind() -> Result<()> {
    assert_eq!(type_of(3).to_string(), "Literal[3]");
    assert_ne!(type_of(3), type_of(4));
    let f = function(|x: NestedValue| {
        Tensor::from(matches!(x, NestedValue::Literal(Literal::Int(_))) as i32)
    });
    check(&f, (NestedValue::from(1),), 1, 1)?;
    check(&f, (NestedValue::from(1.0),), 0, 2)?;
    check(&f, (NestedValue::from(true),), 0, 3)?;
    check(&f, (NestedValue::from(1),), 1, 3)
}

// spec: 67
#[test]
fn the_order_of_items_counts() -> Result<()> {
    let f = function(|items: Vec<i32>| Tensor::from(10 * items[0] + items[1]));
    check(&f, (vec![1, 2],), 12, 1)?;
    check(&f, (vec![2, 1],), 21, 2)?;
    check(&f, (vec![1, 2],), 12, 2)?;
    let types = f.types_of(&(vec![1, 2],))?;
    assert_eq!(types[0].to_string(), "List[Literal[1], Literal[2]]");
    Ok(())
}

// spec: 68
#[test]
fn the_order_of_entries_does_not_count() -> Result<()> {
    let dict = |entries: [(i64, i64); 2]| {
        NestedValue::Dict(entries.map(|(key, value)| (MapKey::Int(key), value.into())).into())
    };
    assert_eq!(type_of(dict([(1, 2), (3, 4)])), type_of(dict([(3, 4), (1, 2)])));
    assert_ne!(type_of(dict([(1, 2), (3, 4)])), type_of(dict([(1, 4), (3, 2)])));
    assert_ne!(type_of(dict([(1, 2), (3, 4)])), type_of(dict([(1, 2), (5, 4)])));
    let f = function(|entries: HashMap<String, i32>| Tensor::from(entries["a"] - entries["b"]));
    let entries = |entries: [(&str, i32); 2]| {
        (HashMap::from(entries.map(|(key, value)| (key.to_string(), value))),)
    };
    check(&f, entries([("a", 5), ("b", 2)]), 3, 1)?;
    check(&f, entries([("b", 2), ("a", 5)]), 3, 1)?;
    check(&f, entries([("a", 2), ("b", 5)]), -3, 2)
}

/// A number that goes by its value as an argument.
#[derive(Clone)]
struct ByValue(Arc<AtomicNumber>);

struct AtomicNumber(AtomicI32);

impl AtomicNumber {
    fn new(number: i32) -> Arc<AtomicNumber> {
        Arc::new(AtomicNumber(number.into()))
    }

    fn get(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl PartialEq for AtomicNumber {
    fn eq(&self, other: &AtomicNumber) -> bool {
        self.get() == other.get()
    }
}

impl Nest for ByValue {
    fn to_value(&self) -> NestedValue {
        NestedValue::Custom(custom::by_value(&self.0))
    }

    fn from_value(value: NestedValue) -> Result<ByValue> {
        Nest::from_value(value).map(ByValue)
    }
}

// spec: 70, 71, 72
#[test]
fn other_objects_go_by_identity_then_by_value_while_they_live() -> Result<()> {
    let f = function(|number: ByValue| Tensor::from(number.0.get()));
    let one = ByValue(AtomicNumber::new(1));
    check(&f, (&one,), 1, 1)?;
    check(&f, (&one,), 1, 1)?;
    let equal = ByValue(AtomicNumber::new(1));
    check(&f, (&equal,), 1, 1)?;
    check(&f, (ByValue(AtomicNumber::new(2)),), 2, 2)?;
    one.0.0.store(7, Ordering::Relaxed);
    check(&f, (&one,), 1, 2)?;
    check(&f, (&equal,), 1, 3)?;
    drop((one, equal));
    check(&f, (ByValue(AtomicNumber::new(7)),), 7, 4)?;
    let by_identity = function(|number: Arc<AtomicNumber>| Tensor::from(number.get()));
    let (one, equal) = (AtomicNumber::new(1), AtomicNumber::new(1));
    check(&by_identity, (&one,), 1, 1)?;
    check(&by_identity, (&equal,), 1, 2)?;
    check(&by_identity, (&one,), 1, 2)
}

// spec: 73
#[test]
fn a_change_of_what_is_captured_makes_no_trace() -> Result<()> {
    static GLOBAL: AtomicI32 = AtomicI32::new(1);
    let free = Arc::new(AtomicI32::new(10));
    let f = {
        let free = free.clone();
        function(move |x: Tensor| {
            x + (GLOBAL.load(Ordering::Relaxed) + free.load(Ordering::Relaxed))
        })
    };
    check(&f, (0i32,), 11, 1)?;
    GLOBAL.store(2, Ordering::Relaxed);
    free.store(20, Ordering::Relaxed);
    check(&f, (0i32,), 11, 1)
}

trait Fruit: Any + Send + Sync {
    fn flavor(&self) -> Tensor;
}

struct Apple;
struct Mango;

impl Fruit for Apple {
    fn flavor(&self) -> Tensor {
        [1i32, 2].into()
    }
}

impl Fruit for Mango {
    fn flavor(&self) -> Tensor {
        [3i32, 4].into()
    }
}

// spec: 74
#[test]
fn objects_that_are_gone_are_traced_again() -> Result<()> {
    let get_mixed_flavor =
        function(|fruit_a: Arc<Apple>, fruit_b: Arc<Mango>| fruit_a.flavor() + fruit_b.flavor());
    for n_traces in [1, 2] {
        let flavor = get_mixed_flavor(Arc::new(Apple), Arc::new(Mango))?;
        assert_eq!(flavor.to_vec::<i32>()?, [4, 6]);
        assert_eq!(get_mixed_flavor.tracing_count(), n_traces);
    }
    Ok(())
}

/// Any fruit, told apart by what fruit it is.
#[derive(Clone)]
struct AnyFruit(Arc<dyn Fruit>);

#[derive(Clone)]
struct FruitTraceType {
    fruit_type: TypeId,
    fruit_value: AnyFruit,
}

impl std::fmt::Debug for FruitTraceType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FruitTraceType")
    }
}

impl CustomType for FruitTraceType {
    fn is_subtype_of(&self, other: &dyn CustomType) -> bool {
        self.is_equal(other)
    }

    fn common_supertype(&self, other: &dyn CustomType) -> Option<Arc<dyn CustomType>> {
        if self.is_equal(other) { Some(Arc::new(self.clone())) } else { None }
    }

    fn placeholder_value(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(self.fruit_value.clone()))
    }

    fn is_equal(&self, other: &dyn CustomType) -> bool {
        let other = other.as_any().downcast_ref::<FruitTraceType>();
        other.is_some_and(|other| other.fruit_type == self.fruit_type)
    }

    fn hash_value(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.fruit_type.hash(&mut hasher);
        hasher.finish()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Nest for AnyFruit {
    fn to_value(&self) -> NestedValue {
        let (fruit_type, fruit_value) = ((*self.0).type_id(), self.clone());
        let ty = Arc::new(FruitTraceType { fruit_type, fruit_value });
        NestedValue::Custom(Custom { value: Arc::new(self.clone()), ty })
    }

    fn from_value(value: NestedValue) -> Result<AnyFruit> {
        let NestedValue::Custom(custom) = &value else { return Err(value.is_not("a fruit")) };
        let fruit = custom.value.downcast_ref::<AnyFruit>();
        fruit.cloned().ok_or_else(|| value.is_not("a fruit"))
    }
}

// spec: 69, 75, 76, 77
#[test]
fn objects_may_have_types_of_their_own() -> Result<()> {
    let get_mixed_flavor =
        function(|fruit_a: AnyFruit, fruit_b: AnyFruit| fruit_a.0.flavor() + fruit_b.0.flavor());
    let (apple, mango) = (|| AnyFruit(Arc::new(Apple)), || AnyFruit(Arc::new(Mango)));
    for _ in 0..2 {
        let flavor = get_mixed_flavor(apple(), mango())?;
        assert_eq!(flavor.to_string(), "[4 6]");
        assert_eq!(get_mixed_flavor.tracing_count(), 1);
    }
    let flavor = get_mixed_flavor(apple(), apple())?;
    assert_eq!((flavor.to_string(), get_mixed_flavor.tracing_count()), ("[2 4]".into(), 2));
    let [a, b] = [apple().to_value(), mango().to_value()].map(type_of);
    assert_eq!(a.common_supertype(&type_of(apple().to_value())), Some(a.clone()));
    assert_eq!(a.common_supertype(&b), None);
    assert!(!a.is_subtype_of(&b));
    Ok(())
}

/// A value of the user's own made of tensors, and of a flag that is part of its type.
#[derive(Clone)]
struct Masked {
    values: Tensor,
    mask: Tensor,
    keeps: bool,
}

impl Nest for Masked {
    fn to_value(&self) -> NestedValue {
        let fields: [(_, NestedValue); 3] = [
            ("values", (&self.values).into()),
            ("mask", (&self.mask).into()),
            ("keeps", self.keeps.into()),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name.into(), value)).collect();
        NestedValue::Struct("Masked".into(), fields)
    }

    fn from_value(value: NestedValue) -> Result<Masked> {
        let field = |name: &str| value.get(name).cloned().unwrap_or_default();
        Ok(Masked {
            values: Nest::from_value(field("values"))?,
            mask: Nest::from_value(field("mask"))?,
            keeps: Nest::from_value(field("keeps"))?,
        })
    }
}

// spec: 78
#[test]
fn types_of_structures_are_made_of_those_of_their_fields() -> Result<()> {
    let masked = |values: Vec<i32>, mask: Vec<bool>, keeps| Masked {
        values: values.into(),
        mask: mask.into(),
        keeps,
    };
    let f = function(|x: Masked| {
        let zeros = x.values.zeros_like()?;
        if x.keeps {
            x.mask.select(&x.values, zeros)?.sum_all()
        } else {
            x.mask.select(zeros, &x.values)?.sum_all()
        }
    });
    let any_length = TraceType::Struct(
        "Masked".into(),
        vec![
            ("values".into(), spec(DType::I32, [None]).into()),
            ("mask".into(), spec(DType::Bool, [None]).into()),
            ("keeps".into(), literal(true)),
        ],
    );
    f.concrete_for([any_length])?;
    check(&f, (masked(vec![1, 2, 3], vec![true, false, true], true),), 4, 1)?;
    check(&f, (masked(vec![1, 2], vec![false, true], true),), 2, 1)?;
    check(&f, (masked(vec![1, 2, 3], vec![true, false, true], false),), 2, 2)?;
    let (f, masked) = (f.clone_untraced(), masked(vec![1], vec![true], true));
    let concrete = f.concrete((&masked,))?;
    assert_eq!(
        concrete.function_type().parameters[0].ty.as_ref().map(ToString::to_string).as_deref(),
        Some(
            "Masked[['values', TensorSpec(shape=(1,), dtype=tf.int32, name=None)], \
             ['mask', TensorSpec(shape=(1,), dtype=tf.bool, name=None)], ['keeps', Literal[True]]]"
        )
    );
    Ok(())
}

/// Error about an argument where a signature asks for `ty`; nothing if it fits.
fn cast(ty: TraceType, value: impl Into<NestedValue>) -> Result<Option<String>> {
    let f = function(|x: NestedValue| x).with_input_signature([ArgSpec::Type(ty)]);
    match f.polymorphic().types_of(&(value.into(),)) {
        Ok(_) => Ok(None),
        Err(Error::Binding { problem, .. }) => Ok(Some(problem.into())),
        Err(other) => Err(other),
    }
}

// spec: b9
#[test]
fn a_literal_is_cast_from_itself_only() -> Result<()> {
    assert_eq!(cast(literal(1.5), 1.5)?, None);
    assert_eq!(cast(literal(1.5), 2.5)?.as_deref(), Some("Can not cast 2.5 to Literal[1.5]"));
    assert_eq!(cast(literal(1.5), 1)?.as_deref(), Some("Can not cast 1 to Literal[1.5]"));
    Ok(())
}

// spec: b10
#[test]
fn a_list_is_no_tuple() -> Result<()> {
    let items = || [Tensor::from(1), Tensor::from(2)];
    let (list, tuple) = (NestedValue::list(items()), NestedValue::tuple(items()));
    assert_eq!(cast(type_of(list.clone()), list.clone())?, None);
    assert_eq!(cast(type_of(tuple.clone()), tuple.clone())?, None);
    assert!(cast(type_of(list.clone()), tuple.clone())?.is_some());
    assert!(cast(type_of(tuple), list)?.is_some());
    Ok(())
}

// spec: b11
#[test]
fn host_values_in_a_dict_become_the_tensors_of_its_type() -> Result<()> {
    let key = |name: &str| MapKey::Str(name.into());
    let scalar = || TraceType::from(spec(DType::F32, []));
    let ty = TraceType::Dict(vec![(key("x"), scalar()), (key("y"), scalar())]);
    let f = function(|entries: NestedValue| entries).with_input_signature([ArgSpec::Type(ty)]);
    let y = f.call((NestedValue::dict([("y", 2.into()), ("x", 1.into())]),))?;
    let entries: BTreeMap<String, Tensor> = Nest::from_value(y)?;
    let entries: Vec<(&str, f32)> = entries
        .iter()
        .map(|(name, entry)| Ok((name.as_str(), entry.to_scalar()?)))
        .collect::<Result<_>>()?;
    assert_eq!(entries, [("x", 1.0), ("y", 2.0)]);
    Ok(())
}

// spec: b12, b13
#[test]
fn specs_are_types_of_tensors() {
    let unnamed = || spec(DType::I32, [Some(2)]);
    assert_eq!(type_of(Tensor::from([1, 2])), TraceType::Tensor(unnamed()));
    let named = TraceType::Tensor(ferroflow::ir::TensorSpec { name: "x".into(), ..unnamed() });
    assert_ne!(type_of(Tensor::from([1, 2])), named);
    let unranked = || TraceType::tensor(DType::F32, PartialShape::Unknown);
    assert_eq!(unranked(), unranked());
}

// spec: b15
#[test]
fn a_structure_has_the_type_of_its_copy() {
    let structure = || {
        let list =
            NestedValue::list([NestedValue::from(1), Tensor::from([1.0f32]).into(), ().into()]);
        NestedValue::tuple([NestedValue::dict([("a", list), ("b", "text".into())]), 2.5.into()])
    };
    let (original, copy) = (type_of(structure()), type_of(structure()));
    assert_eq!(original, copy);
    assert!(original.is_subtype_of(&copy) && original.is_subtype_of(&original));
}

/// A shape as a type of its own; shapes of different ranks have no common supertype.
#[derive(Clone, PartialEq, Hash, Debug)]
struct Shape(Vec<Option<usize>>);

impl Shape {
    fn of(other: &dyn CustomType) -> Option<&Shape> {
        other.as_any().downcast_ref()
    }
}

impl CustomType for Shape {
    fn is_subtype_of(&self, other: &dyn CustomType) -> bool {
        Shape::of(other).is_some_and(|Shape(other)| {
            let mut pairs = self.0.iter().zip(other);
            self.0.len() == other.len() && pairs.all(|(a, b)| b.is_none() || a == b)
        })
    }

    fn common_supertype(&self, other: &dyn CustomType) -> Option<Arc<dyn CustomType>> {
        let Shape(other) = Shape::of(other).filter(|other| other.0.len() == self.0.len())?;
        let pairs = self.0.iter().zip(other);
        Some(Arc::new(Shape(pairs.map(|(a, b)| a.filter(|_| a == b)).collect())))
    }

    fn placeholder_value(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(self.clone()))
    }

    fn is_equal(&self, other: &dyn CustomType) -> bool {
        Shape::of(other) == Some(self)
    }

    fn hash_value(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The type of a function of one argument, whose shape has `-1` for unknown sizes.
fn of_shape(dims: &[i64]) -> FunctionType {
    let dims = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let ty = Some(TraceType::Custom(Arc::new(Shape(dims))));
    let kind = ParameterKind::PositionalOrKeyword;
    FunctionType::new(vec![Parameter { name: "x".into(), kind, ty }])
}

// spec: b20
#[test]
fn types_are_widened_by_the_targets_they_have_supertypes_with() {
    let check = |targets: &[&[i64]], request: &[i64], expected: &[i64]| {
        let mut table = TypeDispatchTable::default();
        targets.iter().for_each(|target| table.insert(of_shape(target), ()));
        assert_eq!(table.generalize(&of_shape(request)), of_shape(expected));
    };
    check(&[&[-1, -1, -1], &[-1, 1, -1], &[-1, 1, 2]], &[-1, 1, 3], &[-1, -1, -1]);
    check(&[&[-1, 1], &[-1, 2]], &[-1, 4, 3], &[-1, 4, 3]);
}
