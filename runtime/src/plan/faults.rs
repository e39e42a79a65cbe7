//! Faults that tests plant in the planner, to see that validation finds them.

/// A rule of planning that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanFault {
    /// Steps write over operands that are read later.
    DonateLive,
    /// Bodies of loops take values that the next round reads.
    TakeInvariant,
    /// Loop variables are assigned one after the other.
    AssignInOrder,
    /// Values are computed in the memory of loop variables that are read later.
    CoalesceLive,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<PlanFault>> = const { std::cell::Cell::new(None) };
}

/// Whether a rule is broken on this thread.
#[cfg(test)]
pub(super) fn is_planted(fault: PlanFault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Whether a rule is broken: never, outside of tests.
#[cfg(not(test))]
pub(super) const fn is_planted(_: PlanFault) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Context, context::ContextOptions, optimize::optimize, placement::PlacementRequest,
        plan::plan, scope::OwnedScope,
    };
    use ferroflow_ir::{
        AttrValue, Attrs, DType, FunctionDef, FunctionLibrary, HostTensor, NameAttrList, Outlet,
        PartialShape, Shape, ValueType, build::GraphBuilder, pass::specialize::Argument,
    };
    use std::sync::Arc;

    fn function(
        name: &str,
        args: &[(&str, ValueType)],
        build: impl FnOnce(&mut GraphBuilder, &[Outlet]) -> ferroflow_ir::Result<Vec<Outlet>>,
    ) -> FunctionDef {
        let mut b = GraphBuilder::new();
        let args: Vec<Outlet> =
            args.iter().map(|(name, ty)| b.arg(name, ty.clone()).unwrap()).collect();
        let results = build(&mut b, &args).unwrap();
        let names: Vec<String> = (0..results.len()).map(|index| format!("r{index}")).collect();
        let named: Vec<(&str, Outlet)> = names.iter().map(String::as_str).zip(results).collect();
        b.finish_function(name, &named)
    }

    /// The error of planning a function while a rule is broken, or nothing.
    fn planned(
        fault: Option<PlanFault>,
        main: &FunctionDef,
        library: &[FunctionDef],
        types: &[ValueType],
    ) -> Result<(), String> {
        let mut options = ContextOptions::default();
        options.compile.verify = true;
        let context = Context::with_options(options);
        let functions = FunctionLibrary::new();
        library.iter().for_each(|def| drop(functions.insert(def.clone()).unwrap()));
        let resources = context.resources().clone();
        let library = Arc::new(functions);
        let scope = OwnedScope { context: context.clone(), library, resources };
        let args: Vec<Argument> = types.iter().cloned().map(Argument::from).collect();
        let request = PlacementRequest { device: None, args: Vec::new() };
        let placed = optimize(&scope, main, &args, &[], &request).unwrap();
        PLANTED.set(fault);
        let program = plan(&context, &placed, Vec::new());
        PLANTED.set(None);
        program.map(drop).map_err(|error| error.to_string())
    }

    fn matrix() -> ValueType {
        ValueType::new(DType::F32, Shape::new([2, 2]).unwrap())
    }

    #[test]
    fn a_step_over_a_live_view_is_found() {
        let args = [("x", matrix()), ("w", matrix())];
        let main = function("main", &args, |b, args| {
            let y = b.call("MatMul", "y", args)?[0];
            let begin = b.constant("begin", HostTensor::vector(&[0i32, 0])?)?;
            let size = b.constant("size", HostTensor::vector(&[1i32, 2])?)?;
            let v = b.call("Slice", "v", &[y, begin, size])?[0];
            let e = b.call("Exp", "e", &[y])?[0];
            let m = b.call("MatMul", "m", &[e, args[1]])?[0];
            Ok(vec![b.call("MatMul", "vw", &[v, args[1]])?[0], m])
        });
        let types = [matrix(), matrix()];
        assert_eq!(planned(None, &main, &[], &types), Ok(()));
        let error = planned(Some(PlanFault::DonateLive), &main, &[], &types).unwrap_err();
        assert!(error.contains("node `vw` (MatMul): reads `v:0`"), "{error}");
    }

    /// A loop of three rounds over `(i, x, y)`, with this body.
    fn repeated(
        ty: &ValueType,
        body: fn(&mut GraphBuilder, &[Outlet]) -> ferroflow_ir::Result<Vec<Outlet>>,
    ) -> (FunctionDef, Vec<FunctionDef>) {
        let int = || ValueType::new(DType::I32, Shape::scalar());
        let args = [("i", int()), ("x", ty.clone()), ("y", ty.clone())];
        let below = function("below", &args, |b, args| {
            let three = b.constant("three", HostTensor::scalar(3i32))?;
            b.call("Less", "less", &[args[0], three])
        });
        let body = function("body", &args, |b, args| {
            let one = b.constant("one", HostTensor::scalar(1i32))?;
            let mut results = vec![b.call("AddV2", "next", &[args[0], one])?[0]];
            results.extend(body(b, &args[1..])?);
            Ok(results)
        });
        let main = function("main", &args[1..], |b, args| {
            let zero = b.constant("zero", HostTensor::scalar(0i32))?;
            let func = |name: &str| AttrValue::Func(NameAttrList::new(name));
            let attrs = Attrs::new()
                .with("T", vec![DType::I32, DType::F32, DType::F32])
                .with("cond", func("below"))
                .with("body", func("body"));
            let inputs = [zero, args[0], args[1]];
            Ok(b.call_with("StatelessWhile", "loop", attrs, &inputs)?[1..].to_vec())
        });
        (main, vec![below, body])
    }

    #[test]
    fn taking_an_invariant_of_a_loop_is_found() {
        let ty = ValueType::new(DType::F32, PartialShape::of_rank(1));
        let (main, library) = repeated(&ty, |b, args| {
            let axis = b.constant("axis", HostTensor::scalar(0i32))?;
            let attrs = Attrs::new().with("N", 2i64);
            Ok(vec![
                b.call_with("ConcatV2", "longer", attrs, &[args[0], args[1], axis])?[0],
                args[1],
            ])
        });
        let types = [ty.clone(), ty];
        assert_eq!(planned(None, &main, &library, &types), Ok(()));
        let error = planned(Some(PlanFault::TakeInvariant), &main, &library, &types).unwrap_err();
        assert!(
            error.contains("function `body`, node `longer` (ConcatV2): reads `y:0`"),
            "{error}"
        );
    }

    #[test]
    fn assigning_variables_in_order_is_found() {
        let (main, library) = repeated(&matrix(), |b, args| {
            Ok(vec![b.call("AddV2", "sum", &[args[0], args[1]])?[0], args[0]])
        });
        let types = [matrix(), matrix()];
        assert_eq!(planned(None, &main, &library, &types), Ok(()));
        let error = planned(Some(PlanFault::AssignInOrder), &main, &library, &types).unwrap_err();
        assert!(error.contains("(AddV2): reads `y:0`"), "{error}");
    }

    #[test]
    fn a_value_in_the_memory_of_a_variable_that_is_read_later_is_found() {
        let (main, library) = repeated(&matrix(), |b, args| {
            let e = b.call("Exp", "e", &[args[0]])?[0];
            Ok(vec![e, b.call("MatMul", "product", &[e, args[0]])?[0]])
        });
        let types = [matrix(), matrix()];
        assert_eq!(planned(None, &main, &library, &types), Ok(()));
        let error = planned(Some(PlanFault::CoalesceLive), &main, &library, &types).unwrap_err();
        assert!(error.contains("node `product` (MatMul): reads `x:0`"), "{error}");
    }
}
