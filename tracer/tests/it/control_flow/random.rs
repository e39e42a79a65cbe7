//! Random programs give the same as Rust: by hand and rewritten, eagerly and traced.

use super::program::{Dice, Statement, VARIABLES, block, jumping, jumping_tensors, staged};
use ferroflow_tracer::{Tensor, function};

fn numbers(state: &[Tensor]) -> Vec<i32> {
    state.iter().map(|tensor| tensor.to_scalar().unwrap()).collect()
}

#[test]
fn programs_by_hand() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let program: &'static [Statement] = block(&mut dice, 3).leak();
        let traced = function(move |state: Vec<Tensor>| staged(program, state));
        for _ in 0..3 {
            let input: Vec<i32> = (0..VARIABLES).map(|_| dice.number()).collect();
            let tensors: Vec<Tensor> = input.iter().map(|&value| Tensor::from(value)).collect();
            let mut expected = input.clone();
            program.iter().for_each(|statement| statement.run(&mut expected));
            let eager = staged(program, tensors.clone()).unwrap();
            assert_eq!(numbers(&eager), expected, "eager, {input:?}: {program:#?}");
            let result = traced.call((tensors,)).unwrap();
            assert_eq!(numbers(&result), expected, "traced, {input:?}: {program:#?}");
        }
        assert_eq!(traced.tracing_count(), 1);
    }
}

#[test]
fn jumps_of_all_kinds() {
    let mut dice = Dice(7);
    for round in 0..40 {
        let on = match round {
            0 => 0,
            1..10 => 1 << (round - 1),
            10 => 0x1ff,
            _ => dice.roll(0x200) as i64,
        };
        for _ in 0..4 {
            let input: Vec<i32> = [15, 30, 30, 4].map(|sides| dice.roll(sides) as i32).to_vec();
            let tensors: Vec<Tensor> = input.iter().map(|&value| Tensor::from(value)).collect();
            let expected = jumping(on, &input);
            let eager = jumping_tensors::function().host_fn()((on, tensors.clone())).unwrap();
            assert_eq!(eager.to_scalar::<i32>().unwrap(), expected, "eager, {on:#b}, {input:?}");
            let traced = jumping_tensors(on, &tensors).unwrap();
            assert_eq!(traced.to_scalar::<i32>().unwrap(), expected, "traced, {on:#b}, {input:?}");
        }
    }
}
