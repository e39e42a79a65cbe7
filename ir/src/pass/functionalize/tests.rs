use super::*;
use crate::{
    Attrs, DType, Outlet, PartialShape, TensorSpec, ValueType, build::GraphBuilder,
    host_tensor::HostTensor,
};

fn scalar(dtype: DType) -> ValueType {
    ValueType::new(dtype, PartialShape::scalar())
}

/// A graph in the making; values are called by their nodes' names.
struct Source {
    builder: GraphBuilder,
}

impl Source {
    fn new(args: &[(&str, DType)]) -> Source {
        let mut builder = GraphBuilder::new();
        for &(name, dtype) in args {
            builder.arg(name, scalar(dtype)).unwrap();
        }
        Source { builder }
    }

    fn outlet(&self, name: &str) -> Outlet {
        crate::tensor_name::find(self.builder.graph(), name).unwrap()
    }

    fn call(&mut self, op: &str, name: &str, inputs: &[&str]) -> &mut Source {
        self.call_with(op, name, Attrs::new(), inputs)
    }

    fn call_with(&mut self, op: &str, name: &str, attrs: Attrs, inputs: &[&str]) -> &mut Source {
        let inputs: Vec<Outlet> = inputs.iter().map(|input| self.outlet(input)).collect();
        self.builder.call_with(op, name, attrs, &inputs).unwrap();
        self
    }

    fn enter(&mut self, name: &str, frame: &str, constant: bool, input: &str) -> &mut Source {
        let attrs = Attrs::new().with("frame_name", frame).with("is_constant", constant);
        self.call_with("Enter", name, attrs, &[input])
    }

    fn constant(&mut self, name: &str, value: HostTensor) -> &mut Source {
        self.builder.constant(name, value).unwrap();
        self
    }

    /// The function with these results; `edges` adds inputs to nodes, of which those that begin
    /// with `^` are control inputs.
    fn finish(self, results: &[&str], edges: &[(&str, &[&str])]) -> FunctionDef {
        let results: Vec<(&str, Outlet)> =
            results.iter().map(|name| (*name, self.outlet(name))).collect();
        let mut function = self.builder.finish_function("f", &results);
        let graph = &mut function.graph;
        for (node, sources) in edges {
            let id = graph.find(node).unwrap();
            let mut inputs = graph[id].inputs().to_vec();
            let mut controls = graph[id].controls().to_vec();
            for source in *sources {
                match source.strip_prefix('^') {
                    Some(name) => controls.push(graph.find(name).unwrap()),
                    None => {
                        inputs.pop();
                        inputs.push(crate::tensor_name::find(graph, source).unwrap());
                    }
                }
            }
            graph.connect(id, inputs, controls).unwrap();
        }
        function
    }
}

/// The function and all that it calls, as text; or what is wrong.
fn text(function: FunctionDef) -> String {
    text_within(function, &Limits::default())
}

fn text_within(function: FunctionDef, limits: &Limits) -> String {
    let library = FunctionLibrary::new();
    match functionalize(function, &library, limits) {
        Ok(function) => {
            crate::verify::verify_function(&function).unwrap();
            let mut text = function.to_string();
            for name in library.names() {
                let function = library.get(&name).unwrap();
                crate::verify::verify_function(&function).unwrap();
                text += &function.to_string();
            }
            text
        }
        Err(error) => error.to_string(),
    }
}

fn check(function: FunctionDef, expected: expect_test::Expect) {
    expected.assert_eq(&text(function));
}

/// `if p { x + 1 } else { -x }`, with the pivots that TensorFlow writes.
fn choice() -> Source {
    let mut source = Source::new(&[("p", DType::Bool), ("x", DType::F32)]);
    source
        .call("Switch", "pivot", &["p", "p"])
        .call("Identity", "yes", &["pivot:1"])
        .call("Identity", "no", &["pivot:0"])
        .call("Identity", "pred", &["p"])
        .call("Switch", "x_in", &["x", "pred"])
        .constant("one", HostTensor::scalar(1.0f32))
        .call("AddV2", "sum", &["x_in:1", "one"])
        .call("Neg", "minus", &["x_in:0"])
        .call("Merge", "y", &["minus", "sum"]);
    source
}

#[test]
fn sides_of_a_switch_become_branches() {
    check(
        choice().finish(&["y", "y:1"], &[("one", &["^yes"])]),
        expect_test::expect![[r#"
        function @f(%p: bool[], %x: float32[]) {
          %pred = Identity(%p) {T: bool} : bool[]
          %y_1 = If(%p, %x, %p) {Tcond: bool, Tin: [float32, bool], Tout: [float32, int32], else_branch: @f/branch_0, output_shapes: [], then_branch: @f/branch_1} : float32<unknown>, int32<unknown>
          return y = %y_1, y:1 = %y_1:1
        }
        function @f/branch_0(%x: float32<unknown>, %p: bool<unknown>) {
          %minus = Neg(%x) {T: float32} : float32<unknown>
          %constant = Const() {dtype: int32, value: int32[] [0]} : int32[]
          return result_0 = %minus, result_1 = %constant
        }
        function @f/branch_1(%x: float32<unknown>, %p: bool<unknown>) {
          %yes = Identity(%p) {T: bool} : bool<unknown>
          %one = Const(^yes) {dtype: float32, value: float32[] [1.0]} : float32[]
          %sum = AddV2(%x, %one) {T: float32} : float32<unknown>
          %constant = Const() {dtype: int32, value: int32[] [1]} : int32[]
          return result_0 = %sum, result_1 = %constant
        }
    "#]],
    );
}

#[test]
fn effects_run_in_their_branch() {
    let mut source = choice();
    source.constant("message", HostTensor::scalar_string("no")).call(
        "PrintV2",
        "print",
        &["message"],
    );
    let edges: &[(&str, &[&str])] = &[("one", &["^yes"]), ("message", &["^no"])];
    check(
        source.finish(&["y"], edges),
        expect_test::expect![[r#"
        function @f(%p: bool[], %x: float32[]) {
          %pred = Identity(%p) {T: bool} : bool[]
          %y_1 = If(%p, %p, %x) {Tcond: bool, Tin: [bool, float32], Tout: [float32, int32], else_branch: @f/branch_0, output_shapes: [], then_branch: @f/branch_1} : float32<unknown>, int32<unknown>
          return y = %y_1
        }
        function @f/branch_0(%p: bool<unknown>, %x: float32<unknown>) {
          %no = Identity(%p) {T: bool} : bool<unknown>
          %message = Const(^no) {dtype: string, value: string[] ["no"]} : string[]
          %print = PrintV2(%message) {end: "\n", output_stream: "stderr"}
          %minus = Neg(%x) {T: float32} : float32<unknown>
          %constant = Const() {dtype: int32, value: int32[] [0]} : int32[]
          return result_0 = %minus, result_1 = %constant
        }
        function @f/branch_1(%p: bool<unknown>, %x: float32<unknown>) {
          %yes = Identity(%p) {T: bool} : bool<unknown>
          %one = Const(^yes) {dtype: float32, value: float32[] [1.0]} : float32[]
          %sum = AddV2(%x, %one) {T: float32} : float32<unknown>
          %constant = Const() {dtype: int32, value: int32[] [1]} : int32[]
          return result_0 = %sum, result_1 = %constant
        }
    "#]],
    );
}

/// `while i < n { i += 1; acc *= 2 }`.
fn counting() -> Source {
    let mut source = Source::new(&[("n", DType::I32), ("x", DType::F32)]);
    source
        .constant("zero", HostTensor::scalar(0i32))
        .enter("i_in", "loop", false, "zero")
        .enter("x_in", "loop", false, "x")
        .enter("n_in", "loop", true, "n")
        .call("Merge", "i", &["i_in", "i_in"])
        .call("Merge", "acc", &["x_in", "x_in"])
        .call("Less", "less", &["i", "n_in"])
        .call("LoopCond", "goes_on", &["less"])
        .call("Switch", "i_switch", &["i", "goes_on"])
        .call("Switch", "acc_switch", &["acc", "goes_on"])
        .call("Identity", "i_body", &["i_switch:1"])
        .constant("one", HostTensor::scalar(1i32))
        .constant("two", HostTensor::scalar(2.0f32))
        .call("AddV2", "i_sum", &["i_body", "one"])
        .call("Mul", "product", &["acc_switch:1", "two"])
        .call("NextIteration", "i_next", &["i_sum"])
        .call("NextIteration", "acc_next", &["product"])
        .call("Exit", "i_out", &["i_switch:0"])
        .call("Exit", "acc_out", &["acc_switch:0"]);
    source
}

const BACK: &[(&str, &[&str])] =
    &[("i", &["i_next"]), ("acc", &["acc_next"]), ("one", &["^i_body"]), ("two", &["^i_body"])];

#[test]
fn frames_become_loops() {
    check(
        counting().finish(&["acc_out", "i_out"], BACK),
        expect_test::expect![[r#"
            function @f(%n: int32[], %x: float32[]) {
              %zero = Const() {dtype: int32, value: int32[] [0]} : int32[]
              %loop = While(%zero, %x, %n) {T: [int32, float32, int32], body: @f/loop/body, cond: @f/loop/cond, output_shapes: [], parallel_iterations: 10} : int32<unknown>, float32<unknown>, int32<unknown>
              return acc_out = %loop:1, i_out = %loop
            }
            function @f/loop/body(%i: int32<unknown>, %acc: float32<unknown>, %n_in: int32<unknown>) {
              %i_body = Identity(%i) {T: int32} : int32<unknown>
              %one = Const(^i_body) {dtype: int32, value: int32[] [1]} : int32[]
              %two = Const(^i_body) {dtype: float32, value: float32[] [2.0]} : float32[]
              %i_sum = AddV2(%i_body, %one) {T: int32} : int32<unknown>
              %product = Mul(%acc, %two) {T: float32} : float32<unknown>
              return result_0 = %i_sum, result_1 = %product, result_2 = %n_in
            }
            function @f/loop/cond(%i: int32<unknown>, %acc: float32<unknown>, %n_in: int32<unknown>) {
              %less = Less(%i, %n_in) {T: int32} : bool<unknown>
              %less/predicate = EnsureShape(%less) {T: bool, shape: []} : bool[]
              return result_0 = %less/predicate
            }
        "#]],
    );
}

#[test]
fn frames_without_a_condition_run_once() {
    let mut source = Source::new(&[("x", DType::F32)]);
    source.enter("in", "loop", false, "x").call("Neg", "minus", &["in"]).call(
        "Exit",
        "out",
        &["minus"],
    );
    check(
        source.finish(&["out"], &[]),
        expect_test::expect![[r#"
        function @f(%x: float32[]) {
          %minus = Neg(%x) {T: float32} : float32<unknown>
          return out = %minus
        }
    "#]],
    );
}

#[test]
fn branches_that_use_each_other_come_one_after_the_other() {
    let mut source = choice();
    source.call("Switch", "y_in", &["y", "p"]).call("Square", "square", &["y_in:1"]).call(
        "Merge",
        "z",
        &["y_in:0", "square"],
    );
    check(
        source.finish(&["z"], &[("one", &["^yes"])]),
        expect_test::expect![[r#"
        function @f(%p: bool[], %x: float32[]) {
          %pred = Identity(%p) {T: bool} : bool[]
          %y_1 = If(%p, %x, %p) {Tcond: bool, Tin: [float32, bool], Tout: [float32, int32], else_branch: @f/branch_0, output_shapes: [], then_branch: @f/branch_1} : float32<unknown>, int32<unknown>
          %z_1 = If(%p, %y_1) {Tcond: bool, Tin: [float32], Tout: [float32, int32], else_branch: @f/branch_0_1, output_shapes: [], then_branch: @f/branch_1_1} : float32<unknown>, int32<unknown>
          return z = %z_1
        }
        function @f/branch_0(%x: float32<unknown>, %p: bool<unknown>) {
          %minus = Neg(%x) {T: float32} : float32<unknown>
          %constant = Const() {dtype: int32, value: int32[] [0]} : int32[]
          return result_0 = %minus, result_1 = %constant
        }
        function @f/branch_0_1(%y_1: float32<unknown>) {
          %constant = Const() {dtype: int32, value: int32[] [0]} : int32[]
          return result_0 = %y_1, result_1 = %constant
        }
        function @f/branch_1(%x: float32<unknown>, %p: bool<unknown>) {
          %yes = Identity(%p) {T: bool} : bool<unknown>
          %one = Const(^yes) {dtype: float32, value: float32[] [1.0]} : float32[]
          %sum = AddV2(%x, %one) {T: float32} : float32<unknown>
          %constant = Const() {dtype: int32, value: int32[] [1]} : int32[]
          return result_0 = %sum, result_1 = %constant
        }
        function @f/branch_1_1(%y_1: float32<unknown>) {
          %square = Square(%y_1) {T: float32} : float32<unknown>
          %constant = Const() {dtype: int32, value: int32[] [1]} : int32[]
          return result_0 = %square, result_1 = %constant
        }
    "#]],
    );
}

#[test]
fn a_side_may_be_asked_for() {
    let function = text(choice().finish(&["sum"], &[("one", &["^yes"])]));
    assert!(function.contains("the value of sum is dead"), "{function}");
    assert!(function.contains("_Require("), "{function}");
}

#[test]
fn what_makes_no_sense_is_named() {
    let mut unrelated = Source::new(&[("p", DType::Bool), ("q", DType::Bool), ("x", DType::F32)]);
    unrelated.call("Switch", "a", &["x", "p"]).call("Switch", "b", &["x", "q"]).call(
        "Merge",
        "y",
        &["a:1", "b:0"],
    );
    check(
        unrelated.finish(&["y"], &[]),
        expect_test::expect![
            "Merge is not supported: it merges values that are not the sides of one choice (node `y`, op Merge)"
        ],
    );

    let mut exit = Source::new(&[("x", DType::F32)]);
    exit.call("Exit", "out", &["x"]);
    check(
        exit.finish(&["out"], &[]),
        expect_test::expect![
            "Exit: data must be a value of a loop, found one of no loop (node `out`, op Exit)"
        ],
    );

    let mut mixed = Source::new(&[("x", DType::F32)]);
    mixed
        .enter("a", "one", false, "x")
        .enter("b", "two", false, "x")
        .call("AddV2", "sum", &["a", "b"])
        .call("Exit", "out", &["sum"]);
    check(
        mixed.finish(&["out"], &[]),
        expect_test::expect![
            "AddV2: inputs must be values of one loop, found values of loop `one` and of loop `two` (node `sum`, op AddV2)"
        ],
    );

    check(
        counting().finish(&["product"], BACK),
        expect_test::expect![
            "Mul is not supported: its value is inside a loop or branch and not given out (node `product`, op Mul)"
        ],
    );

    let mut endless = Source::new(&[("x", DType::F32)]);
    endless
        .enter("in", "loop", false, "x")
        .call("Merge", "merge", &["in", "in"])
        .call("NextIteration", "next", &["merge"])
        .call("Exit", "out", &["merge"]);
    check(
        endless.finish(&["out"], &[("merge", &["next"])]),
        expect_test::expect![
            "NextIteration is not supported: a loop without a condition would not end (node `next`, op NextIteration)"
        ],
    );

    let circle = choice().finish(&["y"], &[("one", &["^yes", "^sum"])]);
    check(
        circle,
        expect_test::expect![
            "malformed graph at `one`: no node depends on its own result, but in a loop"
        ],
    );

    let mut never = choice();
    never.call("AddV2", "both", &["minus", "sum"]);
    check(
        never.finish(&["both"], &[("one", &["^yes"])]),
        expect_test::expect![
            "AddV2 is not supported: it is never alive, whatever is chosen (node `both`, op AddV2)"
        ],
    );
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| {
        let mut source = Source::new(&[("p", DType::Bool), ("x", DType::F32)]);
        let (mut pred, mut x) = ("p".to_string(), "x".to_string());
        for level in 0..depth {
            let (name, chooser) = (format!("s{level}"), format!("p{level}"));
            source.call("Switch", &name, &[&x, &pred]).call("Switch", &chooser, &[&pred, &pred]);
            (x, pred) = (format!("{name}:1"), format!("{chooser}:1"));
        }
        source.call("Neg", "y", &[&x]);
        for level in (0..depth).rev() {
            let inner = if level + 1 == depth { "y".into() } else { format!("m{}", level + 1) };
            source.call("Merge", &format!("m{level}"), &[&format!("s{level}"), &inner]);
        }
        source.finish(&["m0"], &[])
    };
    let limits = Limits { call_depth: 30, ..Limits::default() };
    assert!(text_within(nested(30), &limits).starts_with("function @f"));
    let message = text_within(nested(31), &limits);
    assert!(message.contains("loops and branches inside each other needs 31 levels"), "{message}");
}

#[test]
fn order_leaves_out_the_way_back() {
    let function = counting().finish(&["acc_out"], BACK);
    let order = order(&function.graph).unwrap();
    let at = |name: &str| order.iter().position(|id| &*function.graph[*id].name == name).unwrap();
    assert!(at("i_in") < at("i") && at("i") < at("i_next"));
    assert_eq!(order.len(), function.graph.len());
}

#[test]
fn handles_keep_what_is_known_of_them() {
    let mut builder = GraphBuilder::new();
    let variable = TensorSpec::new(DType::F32, PartialShape::scalar());
    let p = builder.arg("p", scalar(DType::Bool)).unwrap();
    let v = builder.arg("v", ValueType::handle(DType::Resource, variable)).unwrap();
    let x = builder.arg("x", scalar(DType::F32)).unwrap();
    let v_in = builder.call("Switch", "v_in", &[v, p]).unwrap();
    let x_in = builder.call("Switch", "x_in", &[x, p]).unwrap();
    builder.call("AssignVariableOp", "assign", &[v_in[1], x_in[1]]).unwrap();
    let y = builder.call("Merge", "y", &x_in).unwrap()[0];
    let function = builder.finish_function("f", &[("y", y)]);
    check(
        function,
        expect_test::expect![[r#"
        function @f(%p: bool[], %v: resource[]<float32[]>, %x: float32[]) {
          %y_1 = If(%p, %x, %v) {Tcond: bool, Tin: [float32, resource], Tout: [float32, int32], else_branch: @f/branch_0, output_shapes: [], then_branch: @f/branch_1} : float32<unknown>, int32<unknown>
          return y = %y_1
        }
        function @f/branch_0(%x: float32<unknown>, %v: resource<unknown><float32[]>) {
          %constant = Const() {dtype: int32, value: int32[] [0]} : int32[]
          return result_0 = %x, result_1 = %constant
        }
        function @f/branch_1(%x: float32<unknown>, %v: resource<unknown><float32[]>) {
          %assign = AssignVariableOp(%v, %x) {dtype: float32, validate_shape: false}
          %constant = Const() {dtype: int32, value: int32[] [1]} : int32[]
          return result_0 = %x, result_1 = %constant
        }
    "#]],
    );
}
