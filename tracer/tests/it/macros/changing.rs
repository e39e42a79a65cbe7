//! `#[function]` on methods that take `&mut self`.

use ferroflow_tracer::{
    Error, GradientTape, Nest, Result, Tensor, Variable, context, function, range,
};

#[derive(Nest, Clone)]
struct Sums {
    positive: Tensor,
    negative: Tensor,
    last: Option<Tensor>,
    scale: f32,
    calls: Variable,
}

impl Sums {
    fn new(scale: f32) -> Result<Sums> {
        let zero = Tensor::from(0.0f32);
        let calls = Variable::new(0)?;
        Ok(Sums { positive: zero.clone(), negative: zero, last: None, scale, calls })
    }

    /// Adds the elements, each to the sum of its sign.
    #[function]
    fn add(&mut self, xs: &Tensor) -> Result<Tensor> {
        self.calls.assign_add(1)?;
        for x in xs {
            if x.gt(0.0)? {
                self.positive += &x * self.scale;
            } else {
                self.negative += &x * self.scale;
                if x.lt(-100.0)? {
                    break;
                }
            }
        }
        self.last = Some(xs.clone());
        &self.positive + &self.negative
    }

    #[function]
    fn add_twice(&mut self, xs: &Tensor) -> Result<Tensor> {
        self.add(xs)?;
        self.add(xs)
    }

    #[function]
    fn fail(&mut self, xs: &Tensor) -> Result<()> {
        self.positive = xs.clone();
        assert!(xs.sum_all()?.gt(0.0)?, "the sum is not positive");
        Ok(())
    }

    #[function]
    fn rescale(&mut self, xs: &Tensor) -> Result<Tensor> {
        self.scale *= 2.0;
        xs * self.scale
    }
}

fn scalar(tensor: &Tensor) -> f32 {
    tensor.to_scalar().unwrap()
}

fn check_adds() -> Result<()> {
    let mut sums = Sums::new(2.0)?;
    assert_eq!(scalar(&sums.add(&Tensor::from([1.0f32, -2.0, 3.0]))?), 4.0);
    assert_eq!((scalar(&sums.positive), scalar(&sums.negative)), (8.0, -4.0));
    sums.add(&Tensor::from([-200.0f32, 5.0, 6.0]))?;
    assert_eq!((scalar(&sums.positive), scalar(&sums.negative)), (8.0, -404.0));
    assert_eq!(sums.last.as_ref().unwrap().to_vec::<f32>()?, [-200.0, 5.0, 6.0]);
    assert_eq!(sums.calls.read()?.to_scalar::<i32>()?, 2);
    Ok(())
}

#[test]
fn fields_change_in_branches_and_loops() {
    check_adds().unwrap();
    // A first value of `last` is of another type than none.
    assert_eq!(Sums::add_function().concrete_functions().len(), 2);
}

#[test]
fn methods_run_eagerly_do_the_same() {
    context::with_functions_run_eagerly(true, check_adds).unwrap();
}

#[test]
fn methods_call_each_other() {
    let mut sums = Sums::new(1.0).unwrap();
    let sum = sums.add_twice(&Tensor::from([1.0f32, 2.0, -1.0])).unwrap();
    assert_eq!(scalar(&sum), 4.0);
    assert_eq!((scalar(&sums.positive), scalar(&sums.negative)), (6.0, -2.0));
    assert_eq!(sums.calls.read().unwrap().to_scalar::<i32>().unwrap(), 2);
}

#[test]
fn gradients_go_through_the_state() {
    let mut sums = Sums::new(3.0).unwrap();
    let x = Tensor::from([1.0f32, -2.0]);
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    sums.add(&x).unwrap();
    let y = sums.positive.square().unwrap();
    let slope = tape.gradient(&y, &x).unwrap().unwrap();
    assert_eq!(slope.to_vec::<f32>().unwrap(), [18.0, 0.0]);
}

#[test]
fn an_object_whose_call_failed_is_what_it_was() {
    let mut sums = Sums::new(1.0).unwrap();
    let error = sums.fail(&Tensor::from([-1.0f32])).unwrap_err();
    assert!(error.to_string().contains("the sum is not positive"), "{error}");
    assert_eq!(scalar(&sums.positive), 0.0);
    sums.fail(&Tensor::from([1.0f32])).unwrap();
    assert_eq!(sums.positive.to_vec::<f32>().unwrap(), [1.0]);
}

#[test]
fn numbers_of_rust_do_not_change() {
    let mut sums = Sums::new(1.5).unwrap();
    let error = sums.rescale(&Tensor::from([1.0f32])).unwrap_err();
    let Error::ChangedObject { method, part, before, after } = &error else { panic!("{error}") };
    assert_eq!([method, part, before, after], ["rescale", "self.scale", "1.5", "3.0"]);
    assert_eq!(sums.scale, 1.5);
}

/// A window over the last values, of any structure.
#[derive(Nest, Clone)]
struct Window<T> {
    items: Vec<T>,
}

impl<T: Nest + Clone + 'static> Window<T> {
    #[function]
    fn push(&mut self, item: &Tensor, most: i64) -> Result<Tensor>
    where
        T: From<Tensor>,
    {
        self.items.push(item.clone().into());
        if self.items.len() as i64 > most {
            self.items.remove(0);
        }
        Ok(item.clone())
    }
}

#[test]
fn structures_change_by_code_of_rust() {
    let mut window = Window::<Tensor> { items: Vec::new() };
    for value in [1.0f32, 2.0, 3.0, 4.0] {
        window.push(&Tensor::from(value), 2).unwrap();
    }
    let found: Vec<f32> = window.items.iter().map(scalar).collect();
    assert_eq!(found, [3.0, 4.0]);
    assert_eq!(Window::<Tensor>::push_function().concrete_functions().len(), 3);
}

/// A state machine that returns from within branches and loops.
#[derive(Nest, Clone)]
struct Machine {
    state: Tensor,
}

impl Machine {
    #[function]
    fn step(&mut self, x: &Tensor) -> Result<Tensor> {
        if x.lt(0)? {
            self.state = x.clone();
            return Ok(Tensor::from(-1));
        }
        for i in range(x) {
            self.state += i;
            if self.state.gt(10)? {
                self.state = Tensor::from(100);
                return x * 2;
            }
        }
        let double = |x: &Tensor| -> Result<Tensor> { return x + x };
        self.state = double(&self.state)?;
        Ok(x.clone())
    }
}

#[test]
fn the_state_is_that_where_the_method_returned() {
    let mut machine = Machine { state: Tensor::from(0) };
    let mut step = |x: i32| {
        let y = machine.step(&Tensor::from(x)).unwrap().to_scalar::<i32>().unwrap();
        (y, machine.state.to_scalar::<i32>().unwrap())
    };
    assert_eq!(step(3), (3, 6));
    assert_eq!(step(4), (8, 100));
    assert_eq!(step(-7), (-1, -7));
    assert_eq!(step(0), (0, -14));
    assert_eq!(Machine::step_function().tracing_count(), 1);
}
