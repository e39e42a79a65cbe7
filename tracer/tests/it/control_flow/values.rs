//! Values of loops, of variables that branches set first, and of `match` on tensors.

use ferroflow_tracer::{DType, Nest, Result, Tensor, function, range};

/// The same on a number, and on a tensor eagerly and traced.
macro_rules! values {
    ($($name:ident: |$x:ident| $tensors:block, $numbers:block)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            #[function]
            fn tensors($x: &Tensor) -> Result<Tensor> $tensors

            fn numbers($x: i32) -> i32 $numbers

            for input in [-7, -1, 0, 1, 2, 3, 5, 40] {
                let expected = numbers(input);
                let eager = tensors::function().host_fn()((Tensor::from(input),))?;
                assert_eq!(eager.to_scalar::<i32>()?, expected, "eager, {input}");
                let traced = tensors(&Tensor::from(input))?;
                assert_eq!(traced.to_scalar::<i32>()?, expected, "traced, {input}");
            }
            assert_eq!(tensors::tracing_count(), 1);
            Ok(())
        }
    )*};
}

values! {
    a_break_with_a_value: |x| {
        let mut y = x.clone();
        let z = loop {
            y = (y + 3)?;
            if y.greater(20)? {
                break (&y * 2)?;
            }
        };
        z + y
    }, {
        let mut y = x;
        let z = loop {
            y += 3;
            if y > 20 {
                break y * 2;
            }
        };
        z + y
    }

    breaks_of_several_values: |x| {
        let (mut y, mut n) = (x.clone(), Tensor::from(0));
        let (z, why) = 'outer: loop {
            n = (n + 1)?;
            for i in range(3) {
                y = (y + i)?;
                if y.equal(5)? {
                    break 'outer (y, Tensor::from(10));
                }
                if y.greater(50)? {
                    return Ok(y);
                }
            }
            if n.greater(4)? {
                break 'outer (n.neg()?, Tensor::from(20));
            }
        };
        z + why
    }, {
        let (mut y, mut n) = (x, 0);
        let (z, why) = 'outer: loop {
            n += 1;
            for i in 0..3 {
                y += i;
                if y == 5 {
                    break 'outer (y, 10);
                }
                if y > 50 {
                    return y;
                }
            }
            if n > 4 {
                break 'outer (-n, 20);
            }
        };
        z + why
    }

    loops_with_values_in_loops: |x| {
        let mut sum = Tensor::from(0);
        for i in 0..Tensor::from(4) {
            let mut k = i.clone();
            sum = (sum + loop {
                k = (k + 1)?;
                if (&k % 2)?.equal(0)? {
                    continue;
                }
                if k.greater(x)? || k.greater(8)? {
                    break if k.less(5)? { k.clone() } else { (&k * 100)? };
                }
            }.minimum(1000)?)?;
            if i.equal(x)? {
                break;
            }
        }
        Ok(sum)
    }, {
        let mut sum = 0;
        for i in 0..4 {
            let mut k = i;
            sum += loop {
                k += 1;
                if k % 2 == 0 {
                    continue;
                }
                if k > x || k > 8 {
                    break if k < 5 { k } else { k * 100 };
                }
            }.min(1000);
            if i == x {
                break;
            }
        }
        sum
    }

    variables_set_in_both_branches: |x| {
        let y;
        let (a, b);
        if x.less(0)? {
            y = (x * 2)?;
            (a, b) = (x.clone(), Tensor::from(1));
        } else if x.less(3)? {
            y = (x + 100)?;
            (a, b) = (y.clone(), y.clone());
        } else {
            if x.less(10)? {
                y = Tensor::from(7);
            } else {
                y = Tensor::from(8);
            }
            (b, a) = (Tensor::from(3), y.clone());
        }
        ((y * 100)? + (a * 10)?)? + b
    }, {
        let y;
        let (a, b);
        if x < 0 {
            y = x * 2;
            (a, b) = (x, 1);
        } else if x < 3 {
            y = x + 100;
            (a, b) = (y, y);
        } else {
            if x < 10 {
                y = 7;
            } else {
                y = 8;
            }
            (b, a) = (3, y);
        }
        y * 100 + a * 10 + b
    }

    variables_changed_after_they_were_set: |x| {
        let mut y;
        match x.shape().rank() {
            Some(0) => y = (x + 1)?,
            _ => y = x.clone(),
        }
        if x.less(0)? {
            y = (&y * 10)?;
        } else {
            y = (&y * 3)?;
        }
        let mut z;
        if x.less(2)? {
            z = (&y + 1)?;
            if y.less(0)? {
                z = (z * 2)?;
            }
        } else {
            z = y.clone();
        }
        if x.greater(1)? {
            z = (z - 1)?;
        }
        z + y
    }, {
        let mut y = x + 1;
        if x < 0 {
            y *= 10;
        } else {
            y *= 3;
        }
        let mut z;
        if x < 2 {
            z = y + 1;
            if y < 0 {
                z *= 2;
            }
        } else {
            z = y;
        }
        if x > 1 {
            z -= 1;
        }
        z + y
    }

    a_match_on_a_tensor: |x| {
        let y = match x {
            0 => Tensor::from(10),
            1 | 2 => (x * 7)?,
            -5..=-1 => { x.neg()? }
            3..=4 | 40 => return x - 1,
            other => (other + 1)?,
        };
        match (&y % 3)? {
            0 => Ok(y),
            1 => &y * 2,
            _ => y.neg(),
        }
    }, {
        let y = match x {
            0 => 10,
            1 | 2 => x * 7,
            -5..=-1 => -x,
            3..=4 | 40 => return x - 1,
            other => other + 1,
        };
        match y.rem_euclid(3) {
            0 => y,
            1 => y * 2,
            _ => -y,
        }
    }

    a_match_in_loops: |x| {
        let (mut state, mut steps) = (x.clone(), Tensor::from(0));
        while steps.less(12)? {
            steps = (steps + 1)?;
            match state {
                0 => break,
                1 => state = Tensor::from(9),
                2..=8 => {
                    state = (&state - 2)?;
                    if steps.equal(5)? {
                        continue;
                    }
                }
                _ => state = state.floor_div(2)?.abs()?,
            }
            steps = (steps + 1)?;
        }
        (state * 100)? + steps
    }, {
        let (mut state, mut steps) = (x, 0);
        while steps < 12 {
            steps += 1;
            match state {
                0 => break,
                1 => state = 9,
                2..=8 => {
                    state -= 2;
                    if steps == 5 {
                        continue;
                    }
                }
                _ => state = state.div_euclid(2).abs(),
            }
            steps += 1;
        }
        state * 100 + steps
    }
}

#[test]
fn matches_of_rust_stay_those_of_rust() -> Result<()> {
    #[derive(Clone, Copy, PartialEq, Nest)]
    enum Act {
        Relu,
        Scale(i64),
    }

    #[function]
    fn acts(x: &Tensor, act: Option<Act>, n: u8) -> Result<Tensor> {
        let last = 7;
        let y = match act {
            None => x.clone(),
            Some(Act::Relu) => if x.less(0)? { x * 0 } else { x * 1 }?,
            Some(Act::Scale(by)) if by > 5 => (x * by)?,
            Some(Act::Scale(by)) => match by {
                1 => x.clone(),
                other => {
                    if x.less(other)? {
                        x.clone()
                    } else {
                        (x * other)?
                    }
                }
            },
        };
        let text = match n {
            0 => "none".to_string(),
            1..=9 => String::from("some"),
            _ => "many".into(),
        };
        let counted = match last {
            0 => 1u8,
            other => n.min(other),
        };
        y + (text.len() as i32 * 100 + i32::from(counted))
    }
    let of = |x: i32, act, n| acts(&Tensor::from(x), act, n)?.to_scalar::<i32>();
    assert_eq!(of(-3, None, 0)?, 397);
    assert_eq!(of(-3, Some(Act::Relu), 9)?, 407);
    assert_eq!(of(4, Some(Act::Scale(2)), 10)?, 415);
    assert_eq!(of(4, Some(Act::Scale(6)), 2)?, 426);
    Ok(())
}

#[test]
fn a_match_with_numbers_takes_integers() {
    #[function]
    fn chosen(x: &Tensor) -> Result<Tensor> {
        match x {
            0 => Ok(x.clone()),
            _ => x.cast(DType::I32),
        }
    }
    for result in [chosen(&Tensor::from(0.5f32)), chosen::function().host_fn()((0.5f32.into(),))] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("a tensor of integers"), "{error}");
    }
}
