//! `for` over data sets.

use ferroflow_tracer::{
    GradientTape, GraphDataset, Nest, Result, Tensor, Variable, autograph,
    autograph::DatasetElements, context, function, range,
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Rows `[n, n + 1, ..]` of the sizes, with labels, counted as they are made.
#[derive(Clone)]
struct Rows {
    sizes: Vec<usize>,
    n_made: Arc<AtomicUsize>,
    fails_at: usize,
}

#[derive(Nest, Clone)]
struct Row {
    values: Tensor,
    label: Tensor,
}

impl Rows {
    fn of(sizes: &[usize]) -> Rows {
        Rows { sizes: sizes.into(), n_made: Arc::default(), fails_at: usize::MAX }
    }

    fn n_made(&self) -> usize {
        self.n_made.load(Ordering::Relaxed)
    }
}

impl GraphDataset for Rows {
    type Element = Row;

    fn elements(&self) -> DatasetElements<Row> {
        let rows = self.clone();
        Box::new(rows.sizes.into_iter().enumerate().map(move |(n, size)| {
            rows.n_made.fetch_add(1, Ordering::Relaxed);
            let values: Vec<f32> = (n..n + size).map(|value| value as f32).collect();
            let values = if n < rows.fails_at { values.into() } else { Tensor::from(1.0f32) };
            // Calls of ops, which are not part of any trace.
            let label = (Tensor::from(n as i64) * 10i64)?;
            Ok(Row { values: (values + 0.0f32)?, label })
        }))
    }
}

#[test]
fn each_run_begins_with_the_first_element() {
    let rows = Rows::of(&[2, 3, 1]);
    let data = rows.clone();
    let total = function(autograph!(move |scale: Tensor| -> Result<(Tensor, Tensor)> {
        let mut sum = Tensor::from(0.0f32);
        let mut labels = Tensor::from(0i64);
        for row in &data {
            sum = (sum + row.values.sum_all()? * &scale)?;
            labels += row.label;
        }
        Ok((sum, labels))
    }));
    for scale in [1.0f32, 3.0] {
        let (sum, labels) = total.call((scale,)).unwrap();
        assert_eq!(sum.to_scalar::<f32>().unwrap(), 9.0 * scale);
        assert_eq!(labels.to_scalar::<i64>().unwrap(), 30);
    }
    assert_eq!(total.tracing_count(), 1);
    // One for the types, and all of them in each run.
    assert_eq!(rows.n_made(), 1 + 2 * 3);
}

#[test]
fn jumps_leave_loops_over_data() {
    let data = Rows::of(&[1, 2, 3, 4, 5]);
    let until = function(autograph!(move |limit: Tensor| -> Result<Tensor> {
        let mut n = Tensor::from(0);
        for row in &data {
            if row.label.equal(10i64)? {
                continue;
            }
            if row.values.sum_all()?.ge(&limit)? {
                break;
            }
            n += 1;
        }
        Ok(n)
    }));
    // The sums are 0, 3, 9, 18, 30, and the second does not count.
    let count = |limit: f32| until.call((limit,)).unwrap().to_scalar::<i32>().unwrap();
    assert_eq!([count(0.0), count(5.0), count(10.0), count(99.0)], [0, 1, 2, 4]);
}

#[test]
fn loops_over_data_stand_in_loops_and_functions() {
    let (data, w) = (Rows::of(&[1, 3]), Variable::new(0.0f32).unwrap());
    let train = {
        let w = w.clone();
        function(autograph!(move |epochs: Tensor| -> Result<Tensor> {
            for _ in range(&epochs) {
                for row in &data {
                    let tape = GradientTape::new();
                    let loss = (&w - row.values.mean_all()?)?.square()?;
                    let slope = tape.gradient(&loss, &w)?.expect("the loss depends on it");
                    w.assign_sub(slope * 0.25)?;
                }
            }
            w.read()
        }))
    };
    let mut expected = 0.0f32;
    for _ in 0..3 {
        for mean in [0.0, 2.0] {
            expected -= 2.0 * (expected - mean) * 0.25;
        }
    }
    let found = train.call((3,)).unwrap().to_scalar::<f32>().unwrap();
    assert!((found - expected).abs() < 1e-6, "{found} {expected}");
}

#[test]
fn elements_are_at_hand_where_functions_run_eagerly() {
    let data = Rows::of(&[1, 2]);
    let seen = Arc::new(AtomicUsize::new(0));
    let count = {
        let seen = seen.clone();
        function(autograph!(move |x: Tensor| -> Result<Tensor> {
            let mut x = x;
            for row in &data {
                seen.fetch_add(row.values.to_vec::<f32>()?.len(), Ordering::Relaxed);
                x += 1;
            }
            Ok(x)
        }))
    };
    let x = context::with_functions_run_eagerly(true, || count.call((5,))).unwrap();
    assert_eq!(x.to_scalar::<i32>().unwrap(), 7);
    assert_eq!(seen.load(Ordering::Relaxed), 3);
}

fn check_error(data: Rows, expected: &str) {
    let last = function(autograph!(move |x: Tensor| -> Result<Tensor> {
        let mut x = x;
        for row in &data {
            x += row.values.sum_all()?;
        }
        Ok(x)
    }));
    let error = last.call((0.0f32,)).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn elements_that_do_not_fit_are_told() {
    check_error(Rows::of(&[]), "a loop over a data set without elements");
    let fails = Rows { fails_at: 1, ..Rows::of(&[1, 2]) };
    check_error(fails, "element 2.values of a data set of the rank of the first");
}

/// The sum over the rows of `w * sum(row)^2`, and its gradient with respect to `w`.
fn gradient_around_loop(data: &Rows, w: &Variable) -> Result<(Tensor, Tensor)> {
    let code = autograph!(|data: &Rows| -> Result<Tensor> {
        let mut loss = Tensor::from(0.0f32);
        for row in data {
            loss += w.read()? * row.values.sum_all()?.square()?;
        }
        Ok(loss)
    });
    let tape = GradientTape::new();
    let loss = code(data)?;
    let slope = tape.gradient(&loss, w)?.expect("the loss depends on it");
    Ok((loss, slope))
}

#[test]
fn gradients_go_through_loops_over_data() {
    let (data, w) = (Rows::of(&[2, 3, 1]), Variable::new(3.0f32).unwrap());
    let scalar = |tensor: &Tensor| tensor.to_scalar::<f32>().unwrap();
    let (loss, slope) = gradient_around_loop(&data, &w).unwrap();
    assert_eq!((scalar(&loss), scalar(&slope)), (3.0 * 41.0, 41.0));
    let (inside, n_made) = (data.clone(), data.n_made());
    let staged = function({
        let w = w.clone();
        move || gradient_around_loop(&inside, &w)
    });
    let (loss, slope) = staged.call(()).unwrap();
    assert_eq!((scalar(&loss), scalar(&slope)), (3.0 * 41.0, 41.0));
    // The gradient has kept what it needs: one element for the types, and each one once.
    assert_eq!(data.n_made() - n_made, 1 + 3);
    // A tape around the call of a function that loops.
    let total = function({
        let (data, w) = (data.clone(), w.clone());
        autograph!(move || -> Result<Tensor> {
            let mut loss = Tensor::from(0.0f32);
            for row in &data {
                loss += w.read()? * row.values.sum_all()?.square()?;
            }
            Ok(loss)
        })
    });
    let tape = GradientTape::new();
    let loss = total.call(()).unwrap();
    let slope = tape.gradient(&loss, &w).unwrap().unwrap();
    assert_eq!((scalar(&loss), scalar(&slope)), (3.0 * 41.0, 41.0));
}
