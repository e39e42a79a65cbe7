//! Checkpoints of objects that are reached in several ways, restored into objects that share more or
//! less: values and checks are those of `tf.train.Checkpoint`.

use ferroflow::{
    Checkpoint, Trackable, Variable,
    ir::DType,
    lookup::MutableHashTable,
    runtime::trackable::{Description, Identity},
    saved_model::{self, bundle::Writer},
};
use std::{error::Error, sync::Arc};

type Outcome = Result<(), Box<dyn Error>>;

/// An object of any structure; clones are the same object.
#[derive(Clone)]
enum Object {
    Leaf(Variable),
    Node(Arc<Vec<(&'static str, Object)>>),
}

impl Trackable for Object {
    fn describe(&self, object: &mut Description<'_>) {
        match self {
            Object::Leaf(variable) => variable.describe(object),
            Object::Node(children) => children.iter().for_each(|(name, child)| {
                object.child(name, child);
            }),
        }
    }

    fn identity(&self) -> Option<Identity> {
        match self {
            Object::Leaf(variable) => variable.identity(),
            Object::Node(children) => Some(Identity::of_address(Arc::as_ptr(children) as usize)),
        }
    }
}

fn v(value: f32) -> Object {
    Object::Leaf(Variable::named("v", value).expect("a variable"))
}

fn node<const N: usize>(children: [(&'static str, Object); N]) -> Object {
    Object::Node(Arc::new(children.into()))
}

fn value(object: &Object) -> f32 {
    match object {
        Object::Leaf(variable) => variable.read().unwrap().to_scalar().unwrap(),
        Object::Node(_) => unreachable!("only variables have values"),
    }
}

/// Whether `assert_existing_objects_matched` and `assert_consumed` pass.
fn checks(own: &Checkpoint<'_>, prefix: &std::path::Path) -> Result<[bool; 2], saved_model::Error> {
    let matched = own.read(prefix)?.assert_existing_objects_matched().is_ok();
    Ok([matched, own.read(prefix)?.assert_consumed().is_ok()])
}

/// Checks which values objects have after the restoration, and what the two checks say of it.
fn check(stored: &Object, own: &Object, found: &[&Object], values: &[f32], is_whole: bool) {
    let folder = tempfile::tempdir().unwrap();
    let prefix = Checkpoint::of(stored).write(folder.path().join("m")).unwrap();
    assert_eq!(checks(&Checkpoint::of(own), &prefix).unwrap(), [is_whole; 2]);
    assert_eq!(found.iter().map(|object| value(object)).collect::<Vec<_>>(), values);
}

#[test]
fn a_second_object_for_a_stored_one_is_not_restored() {
    let (a, x, y) = (v(1.0), v(0.0), v(5.0));
    let pair = |a: &Object, b: &Object| node([("a", a.clone()), ("b", b.clone())]);
    check(&pair(&a, &a), &pair(&x, &y), &[&x, &y], &[1.0, 5.0], false);
    // A variable that two layers share.
    let layers = |l: &Object, r: &Object| {
        node([("l", node([("w", l.clone())])), ("r", node([("w", r.clone())]))])
    };
    let (x, y) = (v(0.0), v(5.0));
    check(&layers(&a, &a), &layers(&x, &y), &[&x, &y], &[1.0, 5.0], false);
    // A layer that is shared, with one more variable in the second of the own ones.
    let (x, y, extra) = (v(0.0), v(5.0), v(6.0));
    let stored = node([("w", a)]);
    let own = pair(&node([("w", x.clone())]), &node([("w", y.clone()), ("e", extra.clone())]));
    check(&pair(&stored, &stored), &own, &[&x, &y, &extra], &[1.0, 5.0, 6.0], false);
}

#[test]
fn two_stored_objects_merge_into_one() {
    let pair = |a: &Object, b: &Object| node([("a", a.clone()), ("b", b.clone())]);
    let x = v(0.0);
    check(&pair(&v(1.0), &v(2.0)), &pair(&x, &x), &[&x], &[1.0], true);
    // Values of the second are neither looked at nor compared.
    let other = Object::Leaf(Variable::new([2.0f32, 3.0]).unwrap());
    let x = v(0.0);
    check(&pair(&v(1.0), &other), &pair(&x, &x), &[&x], &[1.0], true);
    let x = v(0.0);
    let number = Object::Leaf(Variable::new(2i32).unwrap());
    check(&pair(&v(1.0), &number), &pair(&x, &x), &[&x], &[1.0], true);
    // Of two layers each has what the other has not.
    let (x, y) = (v(0.0), v(0.0));
    let own = node([("w", x.clone()), ("c", y.clone())]);
    let stored = pair(&node([("w", v(1.0))]), &node([("w", v(2.0)), ("c", v(3.0))]));
    check(&stored, &pair(&own, &own), &[&x, &y], &[1.0, 3.0], true);
    let x = v(0.0);
    let layers = |l: Object, r: Object| node([("l", node([("w", l)])), ("r", node([("w", r)]))]);
    check(&layers(v(1.0), v(2.0)), &layers(x.clone(), x.clone()), &[&x], &[1.0], true);
}

#[test]
fn the_nearest_stored_object_counts() {
    let at = |near: &'static str, far: &'static str, a: &Object, b: &Object| {
        node([(far, node([("b", node([("w", a.clone())]))])), (near, b.clone())])
    };
    for (near, far) in [("z", "a"), ("a", "z")] {
        let x = v(0.0);
        check(&at(near, far, &v(1.0), &v(2.0)), &at(near, far, &x, &x), &[&x], &[2.0], true);
    }
}

#[test]
fn a_value_of_another_type_in_the_first_is_an_error() -> Outcome {
    let folder = tempfile::tempdir()?;
    let stored =
        Checkpoint::new().with("a", Variable::new(1i32)?).with("b", Variable::new(2.0f32)?);
    let prefix = stored.write(folder.path().join("m"))?;
    let x = Variable::new(0.0f32)?;
    let error = Checkpoint::new().with("a", &x).with("b", &x).read(&prefix).unwrap_err();
    assert!(matches!(error, saved_model::Error::Tensor { .. }), "{error}");
    assert_eq!(x.read()?.to_scalar::<f32>()?, 0.0);
    Ok(())
}

#[test]
fn what_was_bound_stays_bound_when_objects_appear() -> Outcome {
    let folder = tempfile::tempdir()?;
    let a = v(1.0);
    let stored = node([("a", node([("w", a.clone())])), ("z", a)]);
    let prefix = Checkpoint::of(&stored).write(folder.path().join("m"))?;
    // The object that appears is nearer, but the value has its object.
    let (x, y) = (v(0.0), v(5.0));
    let own = Checkpoint::new().with("a", node([("w", x.clone())]));
    let status = own.read(&prefix)?;
    own.attach("z", &y)?;
    assert_eq!([value(&x), value(&y)], [1.0, 5.0]);
    let error = status.assert_existing_objects_matched().unwrap_err();
    assert!(matches!(&error, saved_model::Error::NotRestored { names, .. } if names.len() == 1));
    // An object that has its value takes no second one.
    let prefix = Checkpoint::of(node([("a", v(1.0)), ("b", v(2.0))])).write(&prefix)?;
    let x = Variable::new(0.0f32)?;
    let own = Checkpoint::new().with("a", &x);
    let status = own.read(&prefix)?;
    x.assign(5.0f32)?;
    own.attach("b", &x)?;
    assert_eq!(x.read()?.to_scalar::<f32>()?, 5.0);
    status.assert_consumed()?;
    Ok(())
}

#[test]
fn variables_of_one_name_get_the_value_of_that_name_whenever_they_appear() -> Outcome {
    let folder = tempfile::tempdir()?;
    let prefix = folder.path().join("m");
    let mut writer = Writer::create(&prefix)?;
    writer.add("v", &ferroflow::ir::HostTensor::scalar(4.0f32))?;
    writer.finish()?;
    let (x, y) = (v(0.0), v(0.0));
    let own = Checkpoint::new().with("a", &x);
    let status = own.read(&prefix)?;
    own.attach("b", &y)?;
    assert_eq!([value(&x), value(&y)], [4.0, 4.0]);
    status.assert_consumed()?;
    Ok(())
}

fn table<const N: usize>(keys: [&str; N]) -> Result<MutableHashTable, ferroflow::tracer::Error> {
    let table = MutableHashTable::new(DType::String, -1.0f32)?;
    table.insert(&keys.into(), &vec![1.0f32; N].into())?;
    Ok(table)
}

#[test]
fn state_that_is_no_variable_is_missed_too() -> Outcome {
    let folder = tempfile::tempdir()?;
    let stored = table(["x"])?;
    let prefix = folder.path().join("m");
    Checkpoint::new().with("a", &stored).with("b", &stored).write(&prefix)?;
    let (a, b) = (table([])?, table([])?);
    let own = Checkpoint::new().with("a", &a).with("b", &b);
    let error = own.read(&prefix)?.assert_existing_objects_matched().unwrap_err();
    assert!(matches!(&error, saved_model::Error::NotRestored { names, .. } if *names == ["b"]));
    // Two tables merge into one: it has what the first had.
    let prefix = folder.path().join("n");
    Checkpoint::new().with("a", &stored).with("b", table(["y", "z"])?).write(&prefix)?;
    Checkpoint::new().with("a", &a).with("b", &a).read(&prefix)?.assert_consumed()?;
    assert_eq!(a.size()?.to_scalar::<i64>()?, 1);
    Ok(())
}
