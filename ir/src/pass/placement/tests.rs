//! Where nodes run, and what is copied for them.

use super::*;
use crate::{
    PartialShape, Shape,
    build::GraphBuilder,
    graph::NodeId,
    hash::FastMap,
    host_tensor::HostTensor,
    pass::{
        infer_types::infer_types,
        verify::{verify, verify_devices},
    },
};
use expect_test::{Expect, expect};

/// A device of `float32` and `bool` that has kernels for all but a few ops.
struct Mock {
    is_default: bool,
}

const DEVICE: DeviceId = DeviceId(0);

impl Targets for Mock {
    fn default_device(&self) -> Option<DeviceId> {
        self.is_default.then_some(DEVICE)
    }

    fn find(&self, name: &str) -> Option<DeviceId> {
        name.ends_with("X:0").then_some(DEVICE)
    }

    fn name(&self, _: DeviceId) -> &str {
        "X:0"
    }

    fn supports_dtype(&self, _: DeviceId, dtype: DType) -> bool {
        matches!(dtype, DType::F32 | DType::Bool | DType::I32)
    }

    fn same_layout(&self, _: DeviceId, from: DType, to: DType) -> bool {
        from == to
    }

    fn supports(&self, device: DeviceId, graph: &Graph, node: &NodeDef) -> bool {
        let inputs = node.inputs().iter().filter_map(|&input| graph.ty(input));
        let is_held = inputs.chain(node.outputs()).all(|ty| self.supports_dtype(device, ty.dtype));
        is_held && !["Cholesky", "Erfinv"].contains(&node.op.name())
    }

    fn takes_any_device(&self, op: &'static OpDef) -> bool {
        ["ReadVariableOp", "AssignVariableOp", "ResourceApplyGradientDescent"].contains(&op.name)
    }

    fn optimizer(
        &self,
        op: &'static OpDef,
        attrs: &Attrs,
        dtypes: &[DType],
    ) -> Result<Option<Vec<Assignment>>> {
        if op.name != "ResourceApplyGradientDescent" {
            return Ok(None);
        }
        let expr = Expr::build(attrs, dtypes, DType::F32, |s| s.x(0) - s.x(1) * s.x(2))?;
        Ok(Some(vec![Assignment { position: 0, expr }]))
    }
}

fn matrix() -> ValueType {
    ValueType::new(DType::F32, Shape::new([2, 2]).unwrap())
}

fn specialized(builder: GraphBuilder, args: Vec<Outlet>, results: Vec<Outlet>) -> Specialized {
    let mut graph = builder.finish();
    infer_types(&mut graph).unwrap();
    Specialized {
        graph,
        args,
        results,
        nested: FastMap::default(),
        failure: None,
        dropped: Vec::new(),
        reasons: FastMap::default(),
    }
}

/// The lines of a body's graph, with devices, locations and reasons.
fn text(function: &Specialized) -> String {
    let mut lines = String::new();
    for (id, node) in function.graph.iter() {
        let input = |x: &Outlet| match x.index {
            0 => function.graph[x.node].name.to_string(),
            index => format!("{}:{index}", function.graph[x.node].name),
        };
        let inputs: Vec<String> = node.inputs().iter().map(input).collect();
        let at: Vec<&str> =
            (0..node.outputs().len()).map(|index| own_location(node, index)).collect();
        let reason = function.reasons.get(&id).map(|reason| format!("  ({reason})"));
        lines += &format!(
            "[{}] {} = {}({}){}{}\n",
            node.device,
            node.name,
            node.op.name(),
            inputs.join(", "),
            if at.iter().all(|at| *at == &*node.device) {
                String::new()
            } else {
                format!(" at {at:?}")
            },
            reason.unwrap_or_default(),
        );
        for body in function.nested.get(&id).into_iter().flatten() {
            lines += &text(body).lines().map(|line| format!("    {line}\n")).collect::<String>();
        }
    }
    lines
}

fn check(mut function: Specialized, args: &[PlacedArgument], targets: &Mock, expected: &Expect) {
    assign_devices(&mut function, args, targets).unwrap();
    verify(&function, "placement").unwrap();
    verify_devices(&function, "placement").unwrap();
    expected.assert_eq(&text(&function));
}

#[test]
fn copies_come_before_the_first_reader() {
    let mut b = GraphBuilder::new();
    let x = b.arg("x", matrix()).unwrap();
    let one = b.constant("one", HostTensor::scalar(1.0f32)).unwrap();
    let y = b.call("AddV2", "y", &[x, one]).unwrap()[0];
    let root = b.call("Cholesky", "root", &[y]).unwrap()[0];
    let sum = b.call("AddV2", "sum", &[root, y]).unwrap()[0];
    let inverse = b.call("Erfinv", "inverse", &[sum]).unwrap()[0];
    let both = b.call("Mul", "both", &[sum, one]).unwrap()[0];
    let function = specialized(b, vec![x], vec![inverse, both]);
    check(
        function,
        &[PlacedArgument::default()],
        &Mock { is_default: true },
        &expect![[r#"
            [] x = _Arg()
            [] one = Const()
            [X:0] x/copy = _Copy(x)
            [X:0] one/copy = Const()
            [X:0] y = AddV2(x/copy, one/copy)  (asked for)
            [] y/copy = _Copy(y)
            [] root = Cholesky(y/copy)  (a kernel of the host: linear algebra is long chains of small steps)
            [X:0] root/copy = _Copy(root)
            [X:0] sum = AddV2(root/copy, y)  (asked for)
            [] sum/copy = _Copy(sum)
            [] inverse = Erfinv(sum/copy)  (no kernel on the device)
            [X:0] both = Mul(sum, one/copy)  (asked for)
        "#]],
    );
}

#[test]
fn inputs_and_names_place_nodes_where_there_is_no_default() {
    let mut b = GraphBuilder::new();
    let x = b.arg("x", matrix()).unwrap();
    let y = b.arg("y", matrix()).unwrap();
    let there = b.call("Relu", "there", &[x]).unwrap()[0];
    let here = b.call("Relu", "here", &[y]).unwrap()[0];
    let named = b.call("Neg", "named", &[here]).unwrap()[0];
    let host = b.call("Neg", "host", &[there]).unwrap()[0];
    let mut function = specialized(b, vec![x, y], vec![named, host]);
    *function.graph.node_mut(named.node).device = "/device:X:0".into();
    *function.graph.node_mut(host.node).device = "/device:CPU:0".into();
    let there = PlacedArgument { device: Some(DEVICE), variable: None };
    let args = [there, PlacedArgument::default()];
    check(
        function,
        &args,
        &Mock { is_default: false },
        &expect![[r#"
        [X:0] x = _Arg()
        [] y = _Arg()
        [X:0] there = Relu(x)  (asked for)
        [] here = Relu(y)  (default)
        [X:0] here/copy = _Copy(here)
        [X:0] named = Neg(here/copy)  (asked for)
        [] there/copy = _Copy(there)
        [] host = Neg(there/copy)  (default)
    "#]],
    );
}

/// A loop over a counter, a sum and a value that stays.
fn repeated() -> Specialized {
    let counter = ValueType::new(DType::I32, PartialShape::scalar());
    let types = [counter, matrix(), matrix()];
    let body = |is_condition: bool| {
        let mut b = GraphBuilder::new();
        let args: Vec<Outlet> = types
            .iter()
            .enumerate()
            .map(|(index, ty)| b.arg(&format!("v{index}"), ty.clone()).unwrap())
            .collect();
        let results = if is_condition {
            let limit = b.constant("limit", HostTensor::scalar(3i32)).unwrap();
            b.call("Less", "go", &[args[0], limit]).unwrap()
        } else {
            let one = b.constant("one", HostTensor::scalar(1i32)).unwrap();
            let next = b.call("AddV2", "next", &[args[0], one]).unwrap()[0];
            let root = b.call("Erfinv", "host", &[args[2]]).unwrap()[0];
            let sum = b.call("AddV2", "sum", &[args[1], root]).unwrap()[0];
            vec![next, sum, args[2]]
        };
        specialized(b, args, results)
    };
    let mut b = GraphBuilder::new();
    let args: Vec<Outlet> = types
        .iter()
        .enumerate()
        .map(|(index, ty)| b.arg(&format!("a{index}"), ty.clone()).unwrap())
        .collect();
    let op = crate::registry::find("StatelessWhile").unwrap();
    let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
    let node = NodeDef::new("loop", op, Attrs::new().with("T", dtypes))
        .with_inputs(args.clone())
        .with_outputs(types.clone());
    let mut function = specialized(b, args, Vec::new());
    let id: NodeId = function.graph.add(node).unwrap();
    function.results = vec![Outlet::new(id, 0), Outlet::new(id, 1)];
    function.nested.insert(id, vec![body(true), body(false)]);
    function
}

#[test]
fn loops_carry_floats_on_the_device_and_counters_on_the_host() {
    let args = [PlacedArgument::default(), PlacedArgument::default(), PlacedArgument::default()];
    check(
        repeated(),
        &args,
        &Mock { is_default: true },
        &expect![[r#"
        [] a0 = _Arg()
        [] a1 = _Arg()
        [] a2 = _Arg()
        [X:0] a1/copy = _Copy(a1)
        [X:0] a2/copy = _Copy(a2)
        [] loop = StatelessWhile(a0, a1/copy, a2/copy) at ["", "X:0", "X:0"]  (control flow)
            [] v0 = _Arg()
            [X:0] v1 = _Arg()
            [X:0] v2 = _Arg()
            [] limit = Const()
            [] go = Less(v0, limit)  (steers a loop)
            [] v0 = _Arg()
            [X:0] v1 = _Arg()
            [X:0] v2 = _Arg()
            [] one = Const()
            [] next = AddV2(v0, one)  (steers a loop)
            [] v2/copy = _Copy(v2)
            [] host = Erfinv(v2/copy)  (no kernel on the device)
            [X:0] host/copy = _Copy(host)
            [X:0] sum = AddV2(v1, host/copy)  (asked for)
    "#]],
    );
}

#[test]
fn a_step_of_an_optimizer_is_read_computed_and_assigned() {
    let mut b = GraphBuilder::new();
    let handle = ValueType::new(DType::Resource, PartialShape::scalar());
    let w = b.arg("w", handle).unwrap();
    let grad = b.arg("grad", matrix()).unwrap();
    let rate = b.constant("rate", HostTensor::scalar(0.5f32)).unwrap();
    let attrs = Attrs::new().with("T", DType::F32);
    b.call_with("ResourceApplyGradientDescent", "step", attrs, &[w, rate, grad]).unwrap();
    let function = specialized(b, vec![w, grad], Vec::new());
    let variable = PlacedArgument { device: None, variable: Some((DEVICE, matrix())) };
    let args = [variable, PlacedArgument::default()];
    check(
        function,
        &args,
        &Mock { is_default: false },
        &expect![[r#"
        [] w = _Arg()
        [] grad = _Arg()
        [] rate = Const()
        [X:0] step = ReadVariableOp(w)  (asked for)
        [X:0] rate/copy = Const()
        [X:0] grad/copy = _Copy(grad)
        [X:0] step_1 = _FusedElementwise(step, rate/copy, grad/copy)  (asked for)
        [X:0] step_2 = AssignVariableOp(w, step_1)  (asked for)
    "#]],
    );
}

#[test]
fn locations_that_a_file_brings_along_are_dropped() {
    let targets = Mock { is_default: true };
    for on_host in [true, false] {
        let mut b = GraphBuilder::new();
        let x = b.arg("x", matrix()).unwrap();
        let y = b.call("Erfinv", "y", &[x]).unwrap()[0];
        let mut function = specialized(b, vec![x], vec![y]);
        let attrs = (*function.graph[y.node].attrs).clone().with(LOCATIONS, &["X:0"][..]);
        *function.graph.node_mut(y.node).attrs = attrs.into();
        match on_host {
            true => assign_host(&mut function),
            false => assign_devices(&mut function, &[PlacedArgument::default()], &targets).unwrap(),
        }
        verify_devices(&function, "placement").unwrap();
        assert_eq!(location(&function.graph, function.results[0]), "");
    }
}
