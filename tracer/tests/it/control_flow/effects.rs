//! Branches and loops have the effects of what they call, in the order of the program.

use super::{ok, ops};
use ferroflow_ir::Effect;
use ferroflow_tracer::{
    ConcreteFunction, Result, Tensor, Variable, cond, function, ops as tf, while_loop,
};

fn effects(concrete: &ConcreteFunction) -> Vec<(String, Effect)> {
    let effect = |(_, node): (_, &ferroflow_ir::NodeDef)| {
        let effect = concrete.library().effect_of(&node.op, &node.attrs);
        (effect != Effect::Pure).then(|| (node.name.to_string(), effect))
    };
    concrete.graph().iter().filter_map(effect).collect()
}

#[test]
fn a_branch_that_writes_is_a_write() -> Result<()> {
    let v = Variable::new(1i32)?;
    let f = {
        let v = v.clone();
        function(move |up: Tensor| {
            let before = v.read()?;
            cond(&up, || v.assign_add(10), || v.assign(0))?;
            let after = v.read()?;
            ok((before, after))
        })
    };
    let (before, after) = f.call((true,))?;
    assert_eq!((before.to_scalar::<i32>()?, after.to_scalar::<i32>()?), (1, 11));
    let (before, after) = f.call((false,))?;
    assert_eq!((before.to_scalar::<i32>()?, after.to_scalar::<i32>()?), (11, 0));
    assert_eq!(v.read()?.to_scalar::<i32>()?, 0);
    let concrete = f.concrete((true,))?;
    let expected = [
        ("ReadVariableOp", Effect::Reads),
        ("cond", Effect::Writes),
        ("ReadVariableOp_1", Effect::Reads),
    ];
    assert_eq!(effects(&concrete), expected.map(|(name, effect)| (name.into(), effect)));
    Ok(())
}

#[test]
fn a_loop_that_writes_runs_though_nobody_uses_it() -> Result<()> {
    let (v, w) = (Variable::new(0i32)?, Variable::new(5i32)?);
    let f = {
        let (v, w) = (v.clone(), w.clone());
        function(move |n: Tensor| {
            while_loop(
                |i: &Tensor| i.less(&n),
                |i| {
                    v.assign_add(&w)?;
                    i + 1
                },
                Tensor::from(0),
            )?;
            ok(())
        })
    };
    f.call((3,))?;
    assert_eq!(v.read()?.to_scalar::<i32>()?, 15);
    assert_eq!(w.read()?.to_scalar::<i32>()?, 5);
    let ops = ops(&f.concrete((3,))?);
    assert_eq!(ops, ["AddV2", "AssignAddVariableOp", "Less", "ReadVariableOp", "While"]);
    Ok(())
}

#[test]
fn two_names_of_a_handle_are_one_resource_inside() -> Result<()> {
    let v = Variable::new(1.0f32)?;
    let f = {
        let v = v.clone();
        function(move |up: Tensor| {
            let alias = v.handle().identity()?;
            cond(
                &up,
                || {
                    tf::assign_variable_op(&alias, &Tensor::from(5.0f32))?;
                    v.assign_add(1.0)
                },
                || Ok(()),
            )?;
            v.read()
        })
    };
    assert_eq!(f.call((true,))?.to_scalar::<f32>()?, 6.0);
    Ok(())
}

#[test]
fn variables_are_created_in_branches_on_the_first_call() -> Result<()> {
    let cell = std::sync::OnceLock::new();
    let f = function(move |up: Tensor| {
        cond(
            &up,
            || {
                let v = match cell.get() {
                    None => {
                        let made = Variable::new(40.0f32)?;
                        cell.get_or_init(|| made)
                    }
                    Some(made) => made,
                };
                v.read()? + 2.0
            },
            || Ok(Tensor::from(0.0f32)),
        )
    });
    assert_eq!(f.call((true,))?.to_scalar::<f32>()?, 42.0);
    assert_eq!(f.call((false,))?.to_scalar::<f32>()?, 0.0);
    Ok(())
}
