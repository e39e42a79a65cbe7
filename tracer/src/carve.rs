//! Functions made of a part of another's graph.

use crate::{
    capture::Capture,
    concrete_function::ConcreteFunction,
    error::{Error, Result},
    from_def::result_types,
    func_graph::unique_id,
};
use ferroflow_ir::{
    Graph, NodeId, Outlet, TraceType,
    pass::carve::{Feed, OtherEffects, Subgraph},
    tensor_name,
};

impl ConcreteFunction {
    /// The part of the function between these tensors, as a function of its own: `inputs` are fed,
    /// `outputs` are given, by names such as `Square:0`. An output without a number, such as
    /// `Square`, is an operation: it runs, and gives no value. What effects lie between them stays.
    ///
    /// ```
    /// use ferroflow_ir::DType;
    /// use ferroflow_tracer::{Tensor, function, spec};
    /// # fn main() -> ferroflow_tracer::Result<()> {
    /// let f = function(|x: Tensor| x.square()?.square());
    /// let f = f.concrete_for([spec(DType::F32, [])])?;
    /// let part = f.prune(&["Square:0"], &["Square_1:0"])?;
    /// assert_eq!(part.call_flat(&[2.0f32.into()])?[0].to_scalar::<f32>()?, 4.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When there is no such tensor, or the part needs an argument that is not fed.
    pub fn prune(&self, inputs: &[&str], outputs: &[&str]) -> Result<ConcreteFunction> {
        self.carve(inputs, outputs, OtherEffects::Drop)
    }

    /// As [`prune`](ConcreteFunction::prune), but says what becomes of the effects that do not lie
    /// between the tensors.
    ///
    /// # Errors
    ///
    /// As [`prune`](ConcreteFunction::prune).
    pub fn carve(
        &self,
        inputs: &[&str],
        outputs: &[&str],
        effects: OtherEffects,
    ) -> Result<ConcreteFunction> {
        let def = self.def();
        let mut part = part(&def.graph, inputs, outputs)?;
        if effects == OtherEffects::Keep {
            part.targets.extend(self.library().effectful_nodes(&def.graph));
        }
        let needed = part.nodes(&def.graph);
        let is_needed = |arg: &&NodeId| needed.contains(*arg);
        let (args, captured) = def.args.split_at(self.n_args());
        if let Some(&missing) = args.iter().find(is_needed) {
            let found = format!("argument `{}`, which is not fed", def.graph[missing].name);
            let expected = format!("inputs that `{}` can be computed from", outputs.join("`, `"));
            return Err(Error::Conversion { expected, found });
        }
        let mut captures: Vec<Capture> = Vec::new();
        for (arg, capture) in captured.iter().zip(self.captures()) {
            if is_needed(&arg) {
                captures.push(capture.clone());
                part.feeds.push(feed(&def.graph, (*arg).into())?);
            }
        }
        let name = format!("__pruned_{}_{}", self.rust_name(), unique_id());
        let carved = part.carve(&def.graph, name)?;
        let mut tensors = result_types(&carved)?.into_iter();
        let types = outputs.iter().map(|name| match def.graph.find(name) {
            Some(_) => TraceType::None,
            None => tensors.next().expect("every output is a tensor or an operation"),
        });
        let types = types.collect();
        self.with_def(carved, captures, types)
    }
}

fn part(graph: &Graph, inputs: &[&str], outputs: &[&str]) -> Result<Subgraph> {
    let mut part = Subgraph::default();
    for name in inputs {
        part.feeds.push(feed(graph, tensor_name::find(graph, name)?)?);
    }
    for name in outputs {
        match graph.find(name) {
            Some(operation) => part.targets.push(operation),
            None => {
                let tensor = tensor_name::find(graph, name)?;
                part.results.push((name.replace(':', "_"), tensor));
            }
        }
    }
    Ok(part)
}

fn feed(graph: &Graph, outlet: Outlet) -> Result<Feed> {
    let ty = graph.ty(outlet).cloned().ok_or_else(|| Error::Conversion {
        expected: "a tensor of known type".into(),
        found: format!("`{}`", tensor_name::of(graph, outlet)),
    })?;
    Ok(Feed { outlet, ty })
}
