//! Work that the invocations of a workgroup do together: each has a part, and all get the whole.

use super::{
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    dialect::WORKGROUP,
    scalar_type::ScalarType,
};

/// Invocations of a warp.
pub(super) const WARP: usize = 32;

/// The array in workgroup memory that parts go through.
pub(super) fn parts(k: &KernelBuilder) -> KernelBuffer<'_> {
    k.shared("parts", WORKGROUP)
}

/// Combination of two parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fold {
    Sum,
    /// By a function of the library.
    Function(&'static str),
}

impl Fold {
    /// The combination of two parts.
    pub(super) fn combine<'k>(self, a: KernelValue<'k>, b: KernelValue<'k>) -> KernelValue<'k> {
        match self {
            Fold::Sum => a + b,
            Fold::Function(name) => a.function_with(name, b),
        }
    }

    /// The combination of the parts of so many neighbouring invocations, a power of two that divides
    /// the workgroup. Each of them has it, and all of a workgroup take part.
    pub(super) fn whole<'k>(
        self,
        k: &'k KernelBuilder,
        part: KernelValue<'k>,
        invocations: usize,
    ) -> KernelValue<'k> {
        let caps = k.caps();
        match invocations {
            1 => part,
            WARP if caps.warps => self.of_warp(k, part),
            WORKGROUP if caps.warps => self.of_subgroups(k, self.of_warp(k, part)),
            WORKGROUP if caps.subgroups && self == Fold::Sum => {
                self.of_subgroups(k, k.bind("near", part.function("subgroup_sum_")))
            }
            invocations => self.by_halves(k, part, invocations),
        }
    }

    /// Each of a warp has the whole of it, after as many exchanges as it has halves.
    fn of_warp<'k>(self, k: &'k KernelBuilder, part: KernelValue<'k>) -> KernelValue<'k> {
        let whole = k.variable("near", part);
        let mut far = WARP / 2;
        while far > 0 {
            let other = k.call("subgroup_xor_", ScalarType::F32, [whole, k.index(far)]);
            whole.set(self.combine(whole, other));
            far /= 2;
        }
        whole
    }

    /// The subgroups exchange their results through shared memory.
    fn of_subgroups<'k>(self, k: &'k KernelBuilder, near: KernelValue<'k>) -> KernelValue<'k> {
        let parts = parts(k);
        let first = k.builtin("subgroup_lane").eq(0);
        k.when(first, || parts.set(k.builtin("subgroup"), near));
        k.barrier();
        let whole = k.variable("whole", parts.at(0));
        k.for_range("i", (1, k.builtin("subgroups"), 1), |i| {
            whole.set(self.combine(whole, parts.at(i)));
        });
        k.barrier();
        whole
    }

    fn by_halves<'k>(
        self,
        k: &'k KernelBuilder,
        part: KernelValue<'k>,
        invocations: usize,
    ) -> KernelValue<'k> {
        let (parts, local) = (parts(k), k.local());
        let own = if invocations == WORKGROUP { local } else { local % invocations };
        parts.set(local, part);
        k.barrier();
        k.for_halves("half", invocations, |half| {
            let folded = self.combine(parts.at(local), parts.at(local + half));
            k.when(own.lt(half), || parts.set(local, folded));
            k.barrier();
        });
        let first = if invocations == WORKGROUP { k.index(0) } else { local - own };
        let whole = k.bind("whole", parts.at(first));
        k.barrier();
        whole
    }
}
