//! The functions for use by hand: eager and traced they give the same.

use super::{ok, ops, same};
use ferroflow_ir::{DType, PartialShape, TraceType};
use ferroflow_tracer::ops as tf;
use ferroflow_tracer::{
    Nest, Result, Tensor, TensorArray, TensorArrayOptions, Variable, WhileOptions, case, cond,
    foldl, foldr, function, map_fn, scan, switch_case, while_loop, while_loop_with,
};

fn scalars(values: &[f32]) -> Vec<Tensor> {
    values.iter().map(|&value| Tensor::from(value)).collect()
}

#[test]
fn branches_are_chosen_when_the_trace_runs() -> Result<()> {
    let f = |args: Vec<Tensor>| {
        let [x, y] = [&args[0], &args[1]];
        cond(&x.less(y)?, || x + y, || x * y)
    };
    assert_eq!(same(f, &scalars(&[1.0, 2.0]))?.to_scalar::<f32>()?, 3.0);
    assert_eq!(same(f, &scalars(&[3.0, 2.0]))?.to_scalar::<f32>()?, 6.0);
    let concrete = function(f).concrete_for([TraceType::List(vec![
        TraceType::tensor(DType::F32, PartialShape::scalar()),
        TraceType::tensor(DType::F32, PartialShape::scalar()),
    ])])?;
    assert_eq!(ops(&concrete), ["AddV2", "Less", "Mul", "StatelessIf"]);
    Ok(())
}

#[test]
fn structures_come_out_of_branches() -> Result<()> {
    #[derive(Nest, Debug)]
    struct Pair {
        left: Tensor,
        right: Option<Vec<Tensor>>,
    }
    let f = function(|x: Tensor| {
        cond(
            &x.greater(0)?,
            || Ok(Pair { left: x.clone(), right: Some(vec![x.neg()?, Tensor::from(1)]) }),
            || Ok(Pair { left: x.square()?, right: Some(vec![x.clone(), Tensor::from(2)]) }),
        )
    });
    let pair = f(Tensor::from(-3))?;
    let right = pair.right.unwrap();
    let found = [&pair.left, &right[0], &right[1]].map(|x| x.to_scalar::<i32>().unwrap());
    assert_eq!(found, [9, -3, 2]);
    Ok(())
}

#[test]
fn shapes_of_branches_are_generalised() -> Result<()> {
    let f = function(|x: Tensor, long: Tensor| {
        let y = cond(&long, || tf::concat_v2(&[&x, &x], &Tensor::from(0)), || Ok(x.clone()))?;
        assert_eq!(y.shape(), PartialShape::vector(None));
        y.sum_all()
    });
    assert_eq!(f.call(([1, 2], true))?.to_scalar::<i32>()?, 6);
    assert_eq!(f.call(([1, 2], false))?.to_scalar::<i32>()?, 3);
    Ok(())
}

#[test]
fn the_branch_of_a_number_or_the_last() -> Result<()> {
    let f = |args: Vec<Tensor>| {
        let [n, x] = [&args[0], &args[1]];
        switch_case(n, &[&|| x.neg(), &|| x.square(), &|| x + 100])
    };
    for (n, expected) in [(0, -3), (1, 9), (2, 103), (3, 103), (-1, 103)] {
        let y = same(f, &[Tensor::from(n), Tensor::from(3)])?;
        assert_eq!(y.to_scalar::<i32>()?, expected, "branch {n}");
    }
    Ok(())
}

#[test]
fn the_first_branch_that_holds() -> Result<()> {
    let f = |args: Vec<Tensor>| {
        let x = &args[0];
        case(
            &[(x.less(0)?, &|| x.neg()), (x.less(10)?, &|| Ok(x.clone())), (x.less(5)?, &|| x * 7)],
            || Ok(Tensor::from(10)),
        )
    };
    for (x, expected) in [(-3, 3), (4, 4), (11, 10)] {
        assert_eq!(same(f, &[Tensor::from(x)])?.to_scalar::<i32>()?, expected);
    }
    Ok(())
}

#[test]
fn a_loop_is_one_op() -> Result<()> {
    let f = |args: Vec<Tensor>| {
        let [x, limit] = [&args[0], &args[1]];
        let state = (x.clone(), vec![Tensor::from(0)]);
        let (x, n) = while_loop(
            |(x, _): &(Tensor, Vec<Tensor>)| x.less(limit),
            |(x, n)| Ok(((x * 2)?, vec![(&n[0] + 1)?])),
            state,
        )?;
        x + &n[0]
    };
    let y = same(f, &[Tensor::from(3), Tensor::from(100)])?;
    assert_eq!(y.to_scalar::<i32>()?, 192 + 6);
    let y = same(f, &[Tensor::from(3), Tensor::from(0)])?;
    assert_eq!(y.to_scalar::<i32>()?, 3);
    let scalar = || TraceType::tensor(DType::I32, PartialShape::scalar());
    let concrete = function(f).concrete_for([TraceType::List(vec![scalar(), scalar()])])?;
    let expected = ["AddV2", "AddV2", "Less", "Mul", "StatelessWhile"];
    assert_eq!(ops(&concrete), expected);
    // What the loop only reads is passed through it.
    let (_, node) = concrete.graph().iter().find(|(_, node)| &*node.name == "while").unwrap();
    assert_eq!(node.inputs().len(), 3);
    let body = node.attrs.func("body")?;
    assert!(body.name.starts_with("while_body_"), "{}", body.name);
    let body = concrete.library().get(&body.name)?;
    let (_, outlet) = &body.results[2];
    assert_eq!(outlet.node, body.args[2]);
    Ok(())
}

#[test]
fn loops_end_after_the_most_iterations() -> Result<()> {
    let f = |args: Vec<Tensor>| {
        let options =
            WhileOptions { maximum_iterations: Some(args[1].clone()), ..WhileOptions::default() };
        while_loop_with(&options, |x| x.less(50), |x: Tensor| x * 2, args[0].clone())
    };
    for (most, expected) in [(3, 8), (0, 1), (-1, 1), (100, 64)] {
        let y = same(f, &[Tensor::from(1), Tensor::from(most)])?;
        assert_eq!(y.to_scalar::<i32>()?, expected);
    }
    Ok(())
}

#[test]
fn shapes_vary_within_their_invariants() -> Result<()> {
    let f = |args: Vec<Tensor>| {
        let options = WhileOptions {
            shape_invariants: vec![PartialShape::Unknown],
            ..WhileOptions::default()
        };
        let longer = |x: Tensor| tf::concat_v2(&[&x, &Tensor::from([7])], &Tensor::from(0));
        let short = |x: &Tensor| x.shape_tensor()?.gather(&Tensor::from(0))?.less(4);
        while_loop_with(&options, short, longer, args[0].clone())
    };
    assert_eq!(same(f, &[Tensor::from([1])])?.to_vec::<i32>()?, [1, 7, 7, 7]);
    Ok(())
}

#[test]
fn nested_parts_capture_through_all_levels() -> Result<()> {
    let big = Tensor::from(vec![0.5f32; 200]);
    let v = Variable::new(10.0f32)?;
    let f = function(move |x: Tensor, n: Tensor| {
        let y = (&x + 1.0)?;
        while_loop(
            |(i, _): &(Tensor, Tensor)| i.less(&n),
            |(i, sum)| {
                let more = cond(
                    &i.less(2)?,
                    || {
                        let step = |s: Tensor| (s + &y)? + big.sum_all()?;
                        while_loop(|s| s.less(&v), step, x.clone())
                    },
                    || v.read()? * &x,
                )?;
                Ok(((i + 1)?, (sum + more)?))
            },
            (Tensor::from(0), Tensor::from(0.0f32)),
        )
    });
    let (_, sum) = f.call((1.0f32, 3))?;
    // Twice 1 + (2 + 100), then 10 * 1.
    assert_eq!(sum.to_scalar::<f32>()?, 103.0 + 103.0 + 10.0);
    Ok(())
}

#[test]
fn what_is_constant_outside_is_constant_inside() -> Result<()> {
    let f = function(|x: Tensor, flip: Tensor| {
        let n = x.shape_tensor()?;
        let y = cond(&flip, || tf::fill(&n, &Tensor::from(1.0f32)), || Ok(x.clone()))?;
        assert_eq!(y.shape(), PartialShape::vector(Some(3)));
        ok(y)
    });
    assert_eq!(f.call(([1.0f32, 2.0, 3.0], true))?.to_vec::<f32>()?, [1.0; 3]);
    Ok(())
}

#[test]
fn rows_are_mapped() -> Result<()> {
    let f = |args: Vec<Tensor>| {
        let rows = (args[0].clone(), args[1].clone());
        let (y, z) = map_fn(|(x, n): (Tensor, Tensor)| Ok(((&x * &n)?, x.sum_all()?)), &rows)?;
        y.sum(&[1])? + z
    };
    let x = Tensor::from([[1, 2], [3, 4], [5, 6]]);
    let y = same(f, &[x, Tensor::from([1, 10, 100])])?;
    assert_eq!(y.to_vec::<i32>()?, [6, 77, 1111]);
    Ok(())
}

#[test]
fn no_rows_give_no_results() -> Result<()> {
    let f = |args: Vec<Tensor>| map_fn(|x: Tensor| tf::pack(&[&x, &x])?.cast(DType::F32), &args[0]);
    let y = same(f, &[Tensor::from(Vec::<i32>::new())])?;
    assert_eq!((y.dtype(), y.shape().to_string()), (DType::F32, "[0,2]".into()));
    Ok(())
}

#[test]
fn rows_are_scanned_and_folded() -> Result<()> {
    let x = [Tensor::from([1, 2, 3])];
    let sums = |args: Vec<Tensor>| scan(|sum, x: Tensor| sum + x, &args[0], Tensor::from(10));
    assert_eq!(same(sums, &x)?.to_vec::<i32>()?, [11, 13, 16]);
    let left = |args: Vec<Tensor>| foldl(|n, x: Tensor| (n * 10)? + x, &args[0], Tensor::from(0));
    assert_eq!(same(left, &x)?.to_scalar::<i32>()?, 123);
    let right = |args: Vec<Tensor>| foldr(|n, x: Tensor| (n * 10)? + x, &args[0], Tensor::from(0));
    assert_eq!(same(right, &x)?.to_scalar::<i32>()?, 321);
    Ok(())
}

#[test]
fn arrays_are_filled_in_loops() -> Result<()> {
    let f = |args: Vec<Tensor>| {
        let n = &args[0];
        let array = TensorArray::new(DType::I32, n)?;
        let (_, array) = while_loop(
            |(i, _): &(Tensor, TensorArray)| i.less(n),
            |(i, array)| Ok(((&i + 1)?, array.write(&i, (&i * &i)?)?)),
            (Tensor::from(0), array),
        )?;
        array.stack()
    };
    assert_eq!(same(f, &[Tensor::from(4)])?.to_vec::<i32>()?, [0, 1, 4, 9]);
    Ok(())
}

/// A list of two matrices, and one whose second element is the matrix transposed.
fn lists(x: &Tensor) -> Result<[Tensor; 2]> {
    let any = Tensor::from([-1, -1]);
    let before = tf::tensor_list_from_tensor(&tf::pack(&[x, x])?, &any)?;
    let other = tf::tensor_list_reserve(&any, &Tensor::from(1), x.dtype())?;
    Ok([before, tf::tensor_list_push_back(&other, &x.transpose(&[1, 0])?)?])
}

/// The sums of the columns of a list's second matrix.
fn column_sums(list: &Tensor) -> Result<Tensor> {
    let (second, any) = (Tensor::from(1), Tensor::from([-1, -1]));
    tf::tensor_list_get_item(list, &second, &any, DType::F32)?.sum(&[0])
}

#[test]
fn loops_may_leave_lists_of_other_elements() -> Result<()> {
    let by_hand = |args: Vec<Tensor>| {
        let [n, x] = [&args[0], &args[1]];
        let [before, other] = lists(x)?;
        let (_, list) = while_loop(
            |(i, _): &(Tensor, Tensor)| i.less(n),
            |(i, _)| Ok(((&i + 1.0)?, other.clone())),
            (Tensor::from(0.0f32), before),
        )?;
        column_sums(&list)
    };
    #[function]
    fn rewritten(args: &[Tensor]) -> Result<Tensor> {
        let [mut list, other] = lists(&args[1])?;
        let mut i = Tensor::from(0.0f32);
        while i.less(&args[0])? {
            list = other.clone();
            i = (i + 1.0)?;
        }
        column_sums(&list)
    }
    let x = Tensor::from([[1.0f32, 2.0, 3.0], [10.0, 20.0, 30.0]]);
    for (n, sums) in [(0.0f32, vec![11.0, 22.0, 33.0]), (2.0, vec![6.0, 60.0])] {
        let args = vec![Tensor::from(n), x.clone()];
        assert_eq!(same(by_hand, &args)?.to_vec::<f32>()?, sums);
        assert_eq!(rewritten::function().call((args,))?.to_vec::<f32>()?, sums);
    }
    Ok(())
}

#[test]
fn arrays_grow_and_are_read() -> Result<()> {
    let f = |args: Vec<Tensor>| {
        let options = TensorArrayOptions {
            dynamic_size: true,
            element_shape: PartialShape::vector(Some(2)),
            ..TensorArrayOptions::default()
        };
        let array = TensorArray::with_options(DType::I32, 0, options)?;
        let array = array.write(1, &args[0])?.write(0, (&args[0] * 10)?)?;
        let rows = TensorArray::unstack(&array.stack()?)?;
        let first = rows.read(0)?;
        let all = rows.gather(&Tensor::from([1, 0, 1]))?.sum(&[0])?;
        ((first + all)? + array.concat()?.sum_all()?)? + array.size()?
    };
    // [10 20] + [12 24] + 33 + 2
    assert_eq!(same(f, &[Tensor::from([1, 2])])?.to_vec::<i32>()?, [57, 79]);
    Ok(())
}
