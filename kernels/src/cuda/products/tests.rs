//! What can be seen of the library without a device: it takes what it is told.

use super::{
    library::{Plan, is_present},
    problem::{Element, Epilogue, Factor, Problem},
};
use crate::shader::tests::is_required;

#[test]
fn the_library_knows_every_kind_of_problem() {
    if !is_present() {
        assert!(!is_required("cublaslt"), "cuBLASLt was not found");
        eprintln!("skipped: cuBLASLt was not found");
        return;
    }
    let epilogues = [Epilogue::None, Epilogue::Bias, Epilogue::BiasRelu, Epilogue::BiasGelu];
    for element in [Element::F32, Element::F16, Element::BF16] {
        for epilogue in epilogues {
            for kind in 0..16 {
                let is = |bit: u32| kind >> bit & 1 == 1;
                let factor = |bit| Factor { is_transposed: is(bit), is_shared: is(2) && is(bit) };
                let problem = Problem {
                    element,
                    is_full: is(3),
                    rows: 60,
                    columns: 50,
                    depth: 40,
                    batch: if is(2) { 3 } else { 1 },
                    first: factor(0),
                    second: factor(1),
                    epilogue,
                };
                assert!(Plan::new(&problem).is_ok(), "{problem:?}");
            }
        }
    }
}
