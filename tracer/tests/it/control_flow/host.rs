//! Where no tensor decides, code means what it means in Rust.

use ferroflow_tracer::{Result, Tensor, function, range};

/// Nothing that could be cloned, or carried by a graph.
#[derive(Debug, PartialEq)]
struct Owned(String);

/// A `bool` that no syntax gives away.
fn is(flag: bool) -> bool {
    flag
}

macro_rules! host {
    ($($name:ident: |$flag:ident| $body:block => $yes:expr, $no:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            #[function]
            fn program($flag: bool) -> Result<Tensor> {
                let number: i32 = $body;
                Ok(Tensor::from(number))
            }

            assert_eq!(program(true)?.to_scalar::<i32>()?, $yes);
            assert_eq!(program(false)?.to_scalar::<i32>()?, $no);
            assert_eq!(program::function().host_fn()((true,))?.to_scalar::<i32>()?, $yes);
            Ok(())
        }
    )*};
}

host! {
    values_are_moved: |flag| {
        let (first, second) = (Owned("one".into()), Owned("second".into()));
        let chosen = if is(flag) { first } else { second };
        let length = chosen.0.len() as i32;
        if is(flag) {
            drop(chosen);
        }
        length
    } => 3, 6;

    variables_get_values_later: |flag| {
        let (text, length);
        let spare = Owned("spare".into());
        if is(flag) {
            text = spare;
            length = text.0.len();
        } else {
            drop(spare);
            length = 0;
        }
        length as i32
    } => 5, 0;

    references_come_out_of_branches: |flag| {
        let (mut a, mut b) = (1, 10);
        let chosen = if is(flag) { &mut a } else { &mut b };
        *chosen += 5;
        a * 100 + b
    } => 610, 115;

    values_are_coerced: |flag| {
        let times = 3;
        let f: Box<dyn Fn(i32) -> i32> =
            if is(flag) { Box::new(|x| x + 1) } else { Box::new(move |x| x * times) };
        let double = Box::new(|x: i32| x * 2);
        let triple = Box::new(|x: i32| x * 3);
        let g: Box<dyn Fn(i32) -> i32> = if is(!flag) { double } else { triple };
        f(g(10))
    } => 31, 60;

    errors_and_jumps_leave: |flag| {
        let parse = |text: &str| -> std::result::Result<i32, std::num::ParseIntError> {
            let mut sum = 0;
            for part in text.split(' ') {
                if part.is_empty() {
                    continue;
                }
                sum += part.parse::<i32>()?;
                if is(sum > 100) {
                    return Ok(-1);
                }
            }
            Ok(sum)
        };
        let text = if is(flag) { "1  2 3" } else { "99 2" };
        parse(text).unwrap() * 10 + i32::from(parse("x").is_err())
    } => 61, -9;

    labels_and_values_of_loops: |flag| {
        let mut count = 0;
        let found = 'outer: loop {
            for i in 0.. {
                count += 1;
                if is(i == 4) {
                    break;
                }
                if is(flag) && count > 7 {
                    break 'outer count;
                }
            }
            if is(count > 12) {
                break -count;
            }
        };
        found
    } => 8, -15;

    collections_change: |flag| {
        let mut stack = vec![Owned("a".into()), Owned(String::new()), Owned("b".into())];
        let mut text = String::new();
        loop {
            let Some(Owned(top)) = stack.pop() else { break };
            if top.is_empty() {
                continue;
            }
            if is(flag) {
                text.push_str(&top);
            } else {
                text.insert(0, '-');
                stack.clear();
            }
        }
        (text == "ba") as i32 * 2 + (text == "-") as i32
    } => 2, 1;

    matches_and_lets: |flag| {
        let value = if is(flag) { Some(7) } else { None };
        let mut found = match value {
            Some(n) if is(n > 5) => n,
            Some(_) => 1,
            None => 2,
        };
        if let Some(n) = value && is(n == 7) {
            found += n;
        }
        while let 1..14 = found {
            found += 1;
            if is(found == 5) {
                return Ok(Tensor::from(-5));
            }
        }
        found
    } => 14, -5;

    operators_stop_early: |flag| {
        let mut calls = 0;
        let mut called = |value: bool| {
            calls += 1;
            value
        };
        let both = called(flag) && called(true);
        let one = called(flag) || called(true);
        let _ = is(flag) || is(!flag) || panic!("one of the two");
        let none = !(both && one);
        calls * 10 + i32::from(both) + i32::from(one) * 2 + i32::from(none) * 4
    } => 33, 36;

    borrows_end_with_branches: |flag| {
        fn first_or_new(items: &mut Vec<i32>, flag: bool) -> Option<&mut i32> {
            if flag.clone() {
                return items.last_mut();
            }
            if items.is_empty() {
                items.push(1);
            }
            items.first_mut()
        }
        let mut items = vec![3, 4];
        *first_or_new(&mut items, flag).unwrap() += 10;
        for item in &mut items {
            if is(*item > 10) {
                *item += 1;
            }
        }
        for i in range(2usize) {
            items[i] *= 2;
        }
        items[0] * 100 + items[1]
    } => 630, 2808;
}
