//! Families of graphs, as text: each makes a graph of about so many nodes.

use std::fmt::Write as _;

/// A graph as text, and what of it is fed, fetched and run.
#[derive(Default)]
pub(super) struct GraphText {
    nodes: String,
    functions: String,
    pub(super) feeds: Vec<String>,
    pub(super) fetches: Vec<String>,
    pub(super) targets: Vec<String>,
}

pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) write: fn(usize) -> GraphText,
}

macro_rules! families {
    ($($name:ident)*) => { &[$(Family { name: stringify!($name), write: $name }),*] };
}

pub(super) const FAMILIES: &[Family] = families! {
    chain tree fibonacci fan_out duplicates constants shapes views read_views aliases transposes concat_of_split
    args results matmuls controls one_control prints variables assignments strings lists
    switches loops loop_variables loop_variables_v1 invariants branches calls functions nested
    convolutions reductions broadcasts casts stacked
};

const F: (&str, &str) = ("T", "type: DT_FLOAT");

impl GraphText {
    pub(super) fn text(&self) -> String {
        let GraphText { nodes, functions, .. } = self;
        format!("{nodes}library {{ {functions} }}\nversions {{ producer: 2000 }}\n")
    }

    fn node(&mut self, name: &str, op: &str, inputs: &[&str], attrs: &[(&str, &str)]) -> String {
        self.nodes.push_str(&node("node", name, op, inputs, attrs));
        name.to_string()
    }

    /// A placeholder that is fed.
    fn placeholder(&mut self, name: &str, shape: &str) -> String {
        let shape = format!("shape {{ {shape} }}");
        let name =
            self.node(name, "Placeholder", &[], &[("dtype", "type: DT_FLOAT"), ("shape", &shape)]);
        self.feeds.push(format!("{name}:0"));
        name
    }

    fn vector(&mut self) -> String {
        self.placeholder("x", "dim { size: 4 }")
    }

    fn float(&mut self, name: &str, value: f32) -> String {
        let tensor = format!("tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: {value} }}");
        self.node(name, "Const", &[], &[("dtype", "type: DT_FLOAT"), ("value", &tensor)])
    }

    fn ints(&mut self, name: &str, values: &[usize]) -> String {
        let numbers: String = values.iter().map(|value| format!("int_val: {value} ")).collect();
        let len = values.len();
        let tensor = format!(
            "tensor {{ dtype: DT_INT32 tensor_shape {{ dim {{ size: {len} }} }} {numbers} }}"
        );
        self.node(name, "Const", &[], &[("dtype", "type: DT_INT32"), ("value", &tensor)])
    }

    fn int(&mut self, name: &str, value: usize) -> String {
        let tensor = format!("tensor {{ dtype: DT_INT32 tensor_shape {{ }} int_val: {value} }}");
        self.node(name, "Const", &[], &[("dtype", "type: DT_INT32"), ("value", &tensor)])
    }

    fn fetch(mut self, name: &str) -> GraphText {
        self.fetches.push(if name.contains(':') { name.into() } else { format!("{name}:0") });
        self
    }

    fn function(&mut self, name: &str, args: &[&str], results: &[&str], ty: &str, body: &str) {
        let arg = |kind: &str, name: &str| format!("{kind} {{ name: \"{name}\" type: {ty} }} ");
        let ins: String = args.iter().map(|name| arg("input_arg", name)).collect();
        let outs: String =
            (0..results.len()).map(|index| arg("output_arg", &format!("out{index}"))).collect();
        let rets: String = results
            .iter()
            .enumerate()
            .map(|(index, value)| format!("ret {{ key: \"out{index}\" value: \"{value}\" }} "))
            .collect();
        let _ = writeln!(
            self.functions,
            "function {{ signature {{ name: \"{name}\" {ins} {outs} }} {body} {rets} }}"
        );
    }
}

fn node(field: &str, name: &str, op: &str, inputs: &[&str], attrs: &[(&str, &str)]) -> String {
    let mut text = format!("{field} {{ name: \"{name}\" op: \"{op}\"");
    for input in inputs {
        let _ = write!(text, " input: \"{input}\"");
    }
    for (key, value) in attrs {
        let _ = write!(text, " attr {{ key: \"{key}\" value {{ {value} }} }}");
    }
    text.push_str(" }\n");
    text
}

fn refs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn count(n: usize) -> String {
    format!("i: {n}")
}

fn types(n: usize, ty: &str) -> String {
    let types: String = (0..n).map(|_| format!("type: {ty} ")).collect();
    format!("list {{ {types} }}")
}

/// `each` applied again and again.
fn repeated(n: usize, mut each: impl FnMut(&mut GraphText, usize, &str) -> String) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.vector();
    for index in 0..n {
        at = each(&mut graph, index, &at);
    }
    graph.fetch(&at)
}

/// Products of a vector and constants.
fn products(graph: &mut GraphText, n: usize) -> Vec<String> {
    let x = graph.vector();
    let product = |index| {
        let value = graph.float(&format!("c{index}"), index as f32);
        graph.node(&format!("m{index}"), "Mul", &[&x, &value], &[F])
    };
    (0..n).map(product).collect()
}

fn sum(graph: &mut GraphText, values: &[String]) -> String {
    graph.node("sum", "AddN", &refs(values), &[F, ("N", &count(values.len()))])
}

fn chain(n: usize) -> GraphText {
    repeated(n, |graph, index, at| graph.node(&format!("n{index}"), "Sin", &[at], &[F]))
}

fn tree(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut level = products(&mut graph, n / 2);
    let mut depth = 0;
    while level.len() > 1 {
        let pairs = level.chunks(2).enumerate().map(|(index, pair)| match pair {
            [a, b] => graph.node(&format!("s{depth}_{index}"), "AddV2", &[a, b], &[F]),
            rest => rest[0].clone(),
        });
        level = pairs.collect();
        depth += 1;
    }
    graph.fetch(&level[0])
}

fn fibonacci(n: usize) -> GraphText {
    let mut before = "x".to_string();
    repeated(n, |graph, index, at| {
        let sum = graph.node(&format!("n{index}"), "Maximum", &[at, &before], &[F]);
        before = at.to_string();
        sum
    })
}

fn fan_out(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let values = products(&mut graph, n / 2);
    let sum = sum(&mut graph, &values);
    graph.fetch(&sum)
}

fn duplicates(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.vector();
    let values: Vec<String> =
        (0..n).map(|index| graph.node(&format!("m{index}"), "Mul", &[&x, &x], &[F])).collect();
    let sum = sum(&mut graph, &values);
    graph.fetch(&sum)
}

fn constants(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let values: Vec<String> =
        (0..n).map(|index| graph.float(&format!("c{index}"), index as f32)).collect();
    let attrs = [F, ("N", &*count(n)), ("axis", "i: 0")];
    let pack = graph.node("pack", "Pack", &refs(&values), &attrs);
    let x = graph.placeholder("x", "");
    let y = graph.node("y", "AddV2", &[&pack, &x], &[F]);
    graph.fetch(&y)
}

/// Shapes are computed from shapes.
fn shapes(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.placeholder("x", "dim { size: -1 } dim { size: 4 }");
    for index in 0..n / 2 {
        let attrs = [F, ("out_type", "type: DT_INT32")];
        let shape = graph.node(&format!("s{index}"), "Shape", &[&at], &attrs);
        let attrs = [F, ("Tshape", "type: DT_INT32")];
        at = graph.node(&format!("r{index}"), "Reshape", &[&at, &shape], &attrs);
    }
    graph.fetch(&at)
}

fn views(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.placeholder("x", &format!("dim {{ size: {} }}", n + 4));
    let begin = graph.ints("begin", &[1]);
    let mut values = Vec::new();
    for index in 0..n / 2 {
        let size = graph.ints(&format!("z{index}"), &[n + 3 - index]);
        let attrs = [F, ("Index", "type: DT_INT32")];
        at = graph.node(&format!("v{index}"), "Slice", &[&at, &begin, &size], &attrs);
        values.push(at.clone());
    }
    let last = graph.node("last", "Sin", &[&at], &[F]);
    graph.fetch(&last)
}

/// Views of views, each of which is read.
fn read_views(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.placeholder("x", &format!("dim {{ size: {} }}", n + 4));
    let (begin, size) = (graph.ints("begin", &[0]), graph.ints("size", &[2]));
    let mut values = Vec::new();
    for index in 0..n / 3 {
        let rest = graph.ints(&format!("z{index}"), &[n + 3 - index]);
        let attrs = [F, ("Index", "type: DT_INT32")];
        at = graph.node(&format!("v{index}"), "Slice", &[&at, &begin, &rest], &attrs);
        values.push(graph.node(&format!("r{index}"), "Slice", &[&at, &begin, &size], &attrs));
    }
    let sum = sum(&mut graph, &values);
    graph.fetch(&sum)
}

/// Names of names, each of which an op reads.
fn aliases(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.vector();
    let mut at = graph.node("text", "AsString", &[&x], &[F]);
    let mut values = Vec::new();
    for index in 0..n / 3 {
        let text = ("T", "type: DT_STRING");
        at = match index % 2 {
            0 => {
                let zero = if index == 0 { graph.int("zero", 0) } else { "zero".into() };
                let attrs = [text, ("Tdim", "type: DT_INT32")];
                graph.node(&format!("v{index}"), "ExpandDims", &[&at, &zero], &attrs)
            }
            _ => {
                let attrs = [text, ("squeeze_dims", "list { i: 0 }")];
                graph.node(&format!("v{index}"), "Squeeze", &[&at], &attrs)
            }
        };
        if index % 2 == 1 {
            values.push(graph.node(&format!("r{index}"), "StringLower", &[&at], &[]));
        }
    }
    let all = count(values.len());
    let join = graph.node("join", "StringJoin", &refs(&values), &[("N", &*all)]);
    graph.fetch(&join)
}

fn transposes(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.placeholder("x", "dim { size: 3 } dim { size: 4 }");
    let perm = graph.ints("perm", &[1, 0]);
    for index in 0..n / 2 {
        let attrs = [F, ("Tperm", "type: DT_INT32")];
        let turned = graph.node(&format!("t{index}"), "Transpose", &[&at, &perm], &attrs);
        at = graph.node(&format!("e{index}"), "Tanh", &[&turned], &[F]);
    }
    graph.fetch(&at)
}

fn concat_of_split(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.placeholder("x", &format!("dim {{ size: {n} }}"));
    let axis = graph.int("axis", 0);
    let attrs = [F, ("num_split", &*count(n))];
    let split = graph.node("split", "Split", &[&axis, &x], &attrs);
    let parts: Vec<String> = (0..n)
        .rev()
        .map(|index| {
            let part = format!("{split}:{index}");
            graph.node(&format!("p{index}"), "Sin", &[&part], &[F])
        })
        .collect();
    let mut inputs = refs(&parts);
    inputs.push(&axis);
    let attrs = [F, ("N", &*count(n)), ("Tidx", "type: DT_INT32")];
    let all = graph.node("concat", "ConcatV2", &inputs, &attrs);
    graph.fetch(&all)
}

fn args(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let values: Vec<String> =
        (0..n).map(|index| graph.placeholder(&format!("x{index}"), "dim { size: 2 }")).collect();
    let sum = sum(&mut graph, &values);
    graph.fetch(&sum)
}

fn results(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let values = products(&mut graph, n / 2);
    graph.fetches.extend(values.iter().map(|name| format!("{name}:0")));
    graph
}

fn matmuls(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.placeholder("x", "dim { size: -1 } dim { size: 2 }");
    let w = graph.placeholder("w", "dim { size: 2 } dim { size: 2 }");
    let bias = graph.placeholder("b", "dim { size: 2 }");
    for index in 0..n / 3 {
        let dot = graph.node(&format!("m{index}"), "MatMul", &[&at, &w], &[F]);
        let add = graph.node(&format!("b{index}"), "BiasAdd", &[&dot, &bias], &[F]);
        at = graph.node(&format!("r{index}"), "Relu", &[&add], &[F]);
    }
    graph.fetch(&at)
}

/// Nodes that wait for the one before by a control edge.
fn controls(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.vector();
    let mut last = graph.node("a0", "Print", &[&x], &[F, ("U", "list { }")]);
    for index in 1..n {
        let control = format!("^{last}");
        last = graph.node(
            &format!("a{index}"),
            "Print",
            &[&x, &control],
            &[F, ("U", "list { }"), ("message", &format!("s: \"{index}\""))],
        );
    }
    graph.fetch(&last)
}

/// A node that waits for all.
fn one_control(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.vector();
    let prints: Vec<String> = (0..n)
        .map(|index| {
            let message = format!("s: \"{index}\"");
            let attrs = [F, ("U", "list { }"), ("message", &*message)];
            format!("^{}", graph.node(&format!("a{index}"), "Print", &[&x], &attrs))
        })
        .collect();
    let all = graph.node("all", "NoOp", &refs(&prints), &[]);
    let control = format!("^{all}");
    let y = graph.node("y", "Identity", &[&x, &control], &[F]);
    graph.fetch(&y)
}

/// Ops with effects, none of which waits for another.
fn prints(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.vector();
    for index in 0..n {
        let message = format!("s: \"{index}\"");
        let attrs = [F, ("U", "list { }"), ("message", &*message)];
        let name = graph.node(&format!("a{index}"), "Print", &[&x], &attrs);
        graph.targets.push(name);
    }
    graph.fetch(&x)
}

fn handle(graph: &mut GraphText, index: usize) -> String {
    let name = format!("s: \"v{index}\"");
    let attrs = [
        ("dtype", "type: DT_FLOAT"),
        ("shape", "shape { dim { size: 4 } }"),
        ("shared_name", &*name),
    ];
    graph.node(&format!("h{index}"), "VarHandleOp", &[], &attrs)
}

const DTYPE: (&str, &str) = ("dtype", "type: DT_FLOAT");

fn variables(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.vector();
    let values: Vec<String> = (0..n / 3)
        .map(|index| {
            let handle = handle(&mut graph, index);
            let set =
                graph.node(&format!("w{index}"), "AssignVariableOp", &[&handle, &x], &[DTYPE]);
            let control = format!("^{set}");
            graph.node(&format!("r{index}"), "ReadVariableOp", &[&handle, &control], &[DTYPE])
        })
        .collect();
    let sum = sum(&mut graph, &values);
    graph.fetch(&sum)
}

/// Changes of a variable, one after the other.
fn assignments(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.vector();
    let handle = handle(&mut graph, 0);
    let mut last = graph.node("set", "AssignVariableOp", &[&handle, &x], &[DTYPE]);
    for index in 0..n / 2 {
        let control = format!("^{last}");
        let read =
            graph.node(&format!("r{index}"), "ReadVariableOp", &[&handle, &control], &[DTYPE]);
        last = graph.node(
            &format!("w{index}"),
            "AssignAddVariableOp",
            &[&handle, &read, &control],
            &[DTYPE],
        );
    }
    let control = format!("^{last}");
    let read = graph.node("read", "ReadVariableOp", &[&handle, &control], &[DTYPE]);
    graph.fetch(&read)
}

fn strings(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.vector();
    let mut at = graph.node("text", "AsString", &[&x], &[F]);
    for index in 0..n {
        at = graph.node(&format!("n{index}"), "StringLower", &[&at], &[]);
    }
    graph.fetch(&at)
}

fn lists(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.vector();
    let shape = graph.ints("shape", &[4]);
    let most = graph.int("most", n);
    let of = ("element_dtype", "type: DT_FLOAT");
    let kind = ("shape_type", "type: DT_INT32");
    let mut list = graph.node("list", "EmptyTensorList", &[&shape, &most], &[of, kind]);
    for index in 0..n {
        list = graph.node(&format!("p{index}"), "TensorListPushBack", &[&list, &x], &[of]);
    }
    let all = graph.node("all", "TensorListStack", &[&list, &shape], &[of]);
    graph.fetch(&all)
}

fn predicate(graph: &mut GraphText) -> String {
    let attrs = [("dtype", "type: DT_BOOL"), ("shape", "shape { }")];
    let name = graph.node("p", "Placeholder", &[], &attrs);
    graph.feeds.push(format!("{name}:0"));
    name
}

/// Branches of TensorFlow 1, one after the other.
fn switches(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.vector();
    let predicate = predicate(&mut graph);
    for index in 0..n / 4 {
        let switch = graph.node(&format!("s{index}"), "Switch", &[&at, &predicate], &[F]);
        let yes = graph.node(&format!("y{index}"), "Sin", &[&format!("{switch}:1")], &[F]);
        let no = graph.node(&format!("n{index}"), "Cos", &[&switch], &[F]);
        at = graph.node(&format!("m{index}"), "Merge", &[&no, &yes], &[F, ("N", "i: 2")]);
    }
    graph.fetch(&at)
}

/// A loop of TensorFlow 1 over some values, the first of which is its condition.
fn loop_v1(graph: &mut GraphText, name: &str, values: &[String]) -> Vec<String> {
    let frame = format!("s: \"{name}\"");
    let zero = graph.int(&format!("{name}_zero"), 0);
    let attrs = [("T", "type: DT_INT32"), ("frame_name", &*frame)];
    graph.node(&format!("{name}_ie"), "Enter", &[&zero], &attrs);
    let merge = [("T", "type: DT_INT32"), ("N", "i: 2")];
    let (enter, next) = (format!("{name}_ie"), format!("{name}_in"));
    let counter = graph.node(&format!("{name}_im"), "Merge", &[&enter, &next], &merge);
    let control = format!("^{counter}");
    let value = "tensor { dtype: DT_INT32 tensor_shape { } int_val: 2 }";
    let dtype = ("dtype", "type: DT_INT32");
    let most =
        graph.node(&format!("{name}_most"), "Const", &[&control], &[dtype, ("value", value)]);
    let int = ("T", "type: DT_INT32");
    let less = graph.node(&format!("{name}_less"), "Less", &[&counter, &most], &[int]);
    let go = graph.node(&format!("{name}_go"), "LoopCond", &[&less], &[]);
    let switch = graph.node(&format!("{name}_is"), "Switch", &[&counter, &go], &[int]);
    let inside = graph.node(&format!("{name}_ii"), "Identity", &[&format!("{switch}:1")], &[int]);
    let value = "tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 }";
    let control = format!("^{inside}");
    let one = graph.node(&format!("{name}_one"), "Const", &[&control], &[dtype, ("value", value)]);
    let more = graph.node(&format!("{name}_more"), "Add", &[&inside, &one], &[int]);
    graph.node(&next, "NextIteration", &[&more], &[int]);
    let mut exits = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let part = |part: &str| format!("{name}_{part}{index}");
        let enter = graph.node(&part("e"), "Enter", &[value], &[F, ("frame_name", &frame)]);
        let merge = graph.node(&part("m"), "Merge", &[&enter, &part("n")], &[F, ("N", "i: 2")]);
        let switch = graph.node(&part("s"), "Switch", &[&merge, &go], &[F]);
        let inside = graph.node(&part("b"), "Sin", &[&format!("{switch}:1")], &[F]);
        graph.node(&part("n"), "NextIteration", &[&inside], &[F]);
        exits.push(graph.node(&part("x"), "Exit", &[&switch], &[F]));
    }
    exits
}

fn loops(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.vector();
    for index in 0..n / 20 {
        at = loop_v1(&mut graph, &format!("loop{index}"), &[at]).swap_remove(0);
    }
    graph.fetch(&at)
}

fn loop_variables_v1(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let values = products(&mut graph, n / 7);
    let exits = loop_v1(&mut graph, "loop", &values);
    let sum = sum(&mut graph, &exits);
    graph.fetch(&sum)
}

/// A loop whose body applies an op to some of its values and passes the others on.
fn while_loop(graph: &mut GraphText, values: &[String], changed: usize) -> String {
    let n = values.len();
    let names: Vec<String> = (0..n).map(|index| format!("a{index}")).collect();
    let mut body = String::new();
    let results: Vec<String> = (0..n)
        .map(|index| match index < changed {
            true => {
                let own = format!("o{index}");
                let other = &names[n - 1];
                body += &node("node_def", &own, "AddV2", &[&names[index], other], &[F]);
                format!("{own}:z:0")
            }
            false => names[index].clone(),
        })
        .collect();
    graph.function("body", &refs(&names), &refs(&results), "DT_FLOAT", &body);
    let ins: String = names
        .iter()
        .map(|name| format!("input_arg {{ name: \"{name}\" type: DT_FLOAT }} "))
        .collect();
    let limit = "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 3 }";
    let mut test = node("node_def", "most", "Const", &[], &[DTYPE, ("value", limit)]);
    test += &node("node_def", "less", "Less", &[&names[0], "most:output:0"], &[F]);
    let _ = writeln!(
        graph.functions,
        "function {{ signature {{ name: \"test\" {ins} output_arg {{ name: \"go\" type: DT_BOOL }} }} \
         {test} ret {{ key: \"go\" value: \"less:z:0\" }} }}"
    );
    let attrs = [
        ("T", &*types(n, "DT_FLOAT")),
        ("cond", "func { name: \"test\" }"),
        ("body", "func { name: \"body\" }"),
    ];
    graph.node("loop", "StatelessWhile", &refs(values), &attrs)
}

fn scalars(graph: &mut GraphText, n: usize) -> Vec<String> {
    let x = graph.placeholder("x", "");
    let scalar = |index| {
        let value = graph.float(&format!("c{index}"), 1.0);
        graph.node(&format!("v{index}"), "AddV2", &[&x, &value], &[F])
    };
    (0..n).map(scalar).collect()
}

fn loop_variables(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let values = scalars(&mut graph, n / 3);
    let name = while_loop(&mut graph, &values, values.len() - 1);
    let results: Vec<String> = (0..values.len()).map(|index| format!("{name}:{index}")).collect();
    let sum = sum(&mut graph, &results);
    graph.fetch(&sum)
}

fn invariants(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let values = scalars(&mut graph, n / 2);
    let name = while_loop(&mut graph, &values, 1);
    let results: Vec<String> = (0..values.len()).map(|index| format!("{name}:{index}")).collect();
    let sum = sum(&mut graph, &results);
    graph.fetch(&sum)
}

fn branches(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let x = graph.vector();
    let attrs = [("dtype", "type: DT_INT32"), ("shape", "shape { }")];
    let which = graph.node("which", "Placeholder", &[], &attrs);
    graph.feeds.push(format!("{which}:0"));
    let mut list = String::new();
    for index in 0..n / 2 {
        let value = format!("tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: {index} }}");
        let mut body = node("node_def", "c", "Const", &[], &[DTYPE, ("value", &value)]);
        body += &node("node_def", "y", "Mul", &["a", "c:output:0"], &[F]);
        graph.function(&format!("f{index}"), &["a"], &["y:z:0"], "DT_FLOAT", &body);
        let _ = write!(list, "func {{ name: \"f{index}\" }} ");
    }
    let branches = format!("list {{ {list} }}");
    let one = types(1, "DT_FLOAT");
    let attrs = [("Tin", &*one), ("Tout", &*one), ("branches", &*branches)];
    let y = graph.node("y", "StatelessCase", &[&which, &x], &attrs);
    graph.fetch(&y)
}

fn call(graph: &mut GraphText, name: &str, function: &str, input: &str) -> String {
    let one = types(1, "DT_FLOAT");
    let function = format!("func {{ name: \"{function}\" }}");
    let attrs = [("Tin", &*one), ("Tout", &*one), ("f", &*function)];
    graph.node(name, "PartitionedCall", &[input], &attrs)
}

/// Calls of a function, one after the other.
fn calls(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.vector();
    let body = node("node_def", "y", "Sin", &["a"], &[F]);
    graph.function("f", &["a"], &["y:y:0"], "DT_FLOAT", &body);
    for index in 0..n {
        at = call(&mut graph, &format!("n{index}"), "f", &at);
    }
    graph.fetch(&at)
}

/// Calls of many functions, each called once.
fn functions(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.vector();
    for index in 0..n / 2 {
        let body = node("node_def", "y", "Sin", &["a"], &[F]);
        graph.function(&format!("f{index}"), &["a"], &["y:y:0"], "DT_FLOAT", &body);
        at = call(&mut graph, &format!("n{index}"), &format!("f{index}"), &at);
    }
    graph.fetch(&at)
}

/// Functions that call each other, as deep as is allowed.
fn nested(n: usize) -> GraphText {
    const DEPTH: usize = 40;
    let mut graph = GraphText::default();
    let x = graph.vector();
    for level in 0..DEPTH {
        let mut body = String::new();
        let mut at = "a".to_string();
        for index in 0..n / DEPTH {
            body += &node("node_def", &format!("s{index}"), "Sin", &[&at], &[F]);
            at = format!("s{index}:y:0");
        }
        if level > 0 {
            let one = types(1, "DT_FLOAT");
            let function = format!("func {{ name: \"f{}\" }}", level - 1);
            let attrs = [("Tin", &*one), ("Tout", &*one), ("f", &*function)];
            body += &node("node_def", "call", "PartitionedCall", &[&at], &attrs);
            at = "call:output:0".into();
        }
        graph.function(&format!("f{level}"), &["a"], &[&at], "DT_FLOAT", &body);
    }
    let y = call(&mut graph, "y", &format!("f{}", DEPTH - 1), &x);
    graph.fetch(&y)
}

fn convolutions(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let dims = "dim { size: 1 } dim { size: 4 } dim { size: 4 } dim { size: 2 }";
    let mut at = graph.placeholder("x", dims);
    let dims = "dim { size: 3 } dim { size: 3 } dim { size: 2 } dim { size: 2 }";
    let filter = graph.placeholder("w", dims);
    let bias = graph.placeholder("b", "dim { size: 2 }");
    for index in 0..n / 3 {
        let attrs = [F, ("strides", "list { i: 1 i: 1 i: 1 i: 1 }"), ("padding", "s: \"SAME\"")];
        let conv = graph.node(&format!("c{index}"), "Conv2D", &[&at, &filter], &attrs);
        let add = graph.node(&format!("b{index}"), "BiasAdd", &[&conv, &bias], &[F]);
        at = graph.node(&format!("r{index}"), "Relu", &[&add], &[F]);
    }
    graph.fetch(&at)
}

fn reductions(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let mut at = graph.placeholder("x", "dim { size: 3 } dim { size: 4 }");
    let axis = graph.ints("axis", &[1]);
    for index in 0..n / 2 {
        let attrs = [F, ("Tidx", "type: DT_INT32"), ("keep_dims", "b: true")];
        let mean = graph.node(&format!("m{index}"), "Mean", &[&at, &axis], &attrs);
        at = graph.node(&format!("d{index}"), "Sub", &[&at, &mean], &[F]);
    }
    graph.fetch(&at)
}

fn broadcasts(n: usize) -> GraphText {
    let mut graph = GraphText::default();
    let row = graph.placeholder("x", "dim { size: -1 } dim { size: 1 }");
    let mut at = graph.placeholder("y", "dim { size: 1 } dim { size: -1 }");
    for index in 0..n {
        at = graph.node(&format!("n{index}"), "AddV2", &[&at, &row], &[F]);
    }
    graph.fetch(&at)
}

fn casts(n: usize) -> GraphText {
    repeated(n / 2, |graph, index, at| {
        let attrs = [("SrcT", "type: DT_FLOAT"), ("DstT", "type: DT_INT32")];
        let int = graph.node(&format!("i{index}"), "Cast", &[at], &attrs);
        let attrs = [("SrcT", "type: DT_INT32"), ("DstT", "type: DT_FLOAT")];
        graph.node(&format!("f{index}"), "Cast", &[&int], &attrs)
    })
}

/// Values are stacked and taken apart again.
fn stacked(n: usize) -> GraphText {
    repeated(n / 2, |graph, index, at| {
        let attrs = [F, ("N", "i: 3"), ("axis", "i: 0")];
        let pack = graph.node(&format!("p{index}"), "Pack", &[at, at, at], &attrs);
        let attrs = [F, ("num", "i: 3"), ("axis", "i: 0")];
        let parts = graph.node(&format!("u{index}"), "Unpack", &[&pack], &attrs);
        format!("{parts}:2")
    })
}
