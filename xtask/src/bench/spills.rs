//! Loops of kernels that store their sums on the stack in every round.
//!
//! The sums of a tile are to stay in registers. Where the compiler does not see that they can (another
//! function reaches them through memory, or a loop over them is not unrolled), each product is followed by a
//! store, which takes two thirds of the speed and changes no result. No test sees it, and a bench only on the
//! instruction set of the machine; the program has the kernels of all.

use anyhow::{Context, Result, ensure};
use std::{
    collections::{BTreeSet, HashMap},
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

/// Instructions of a round from which on a loop is more than a kernel's steps.
const MOST_INSTRUCTIONS: usize = 400;

/// Our functions in a program with loops that store their sums; `None` where there is no `objdump`.
pub(super) fn find(program: &Path) -> Result<Option<BTreeSet<String>>> {
    let mut command = Command::new("objdump");
    command.args(["--disassemble", "--demangle", "--no-show-raw-insn"]).arg(program);
    let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
        return Ok(None);
    };
    let listing = BufReader::new(child.stdout.take().context("the output of objdump")?);
    let found = functions(listing.lines().map_while(Result::ok));
    let status = child.wait()?;
    ensure!(status.success(), "objdump of {}: {status}", program.display());
    Ok(Some(found))
}

/// The functions of a listing with such loops.
fn functions(lines: impl Iterator<Item = String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut function = Function::default();
    for line in lines {
        if let Some(name) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            function.finish(&mut found);
            function = Function { name: name.1.to_owned(), instructions: Vec::new() };
        } else if let Some((address, text)) = line.split_once(':')
            && let Ok(address) = u64::from_str_radix(address.trim(), 16)
        {
            function.instructions.push((address, text.trim().to_owned()));
        }
    }
    function.finish(&mut found);
    found
}

/// A function of a listing, and its instructions with their addresses.
#[derive(Default)]
struct Function {
    name: String,
    instructions: Vec<(u64, String)>,
}

impl Function {
    /// Adds the function to those found if it is one of ours and has such a loop.
    fn finish(&self, found: &mut BTreeSet<String>) {
        if self.name.contains("ferroflow") && self.loops().any(stores_sums) {
            found.insert(self.name.clone());
        }
    }

    /// The rounds of the loops without loops in them.
    fn loops(&self) -> impl Iterator<Item = &[(u64, String)]> {
        let at: HashMap<u64, usize> =
            self.instructions.iter().enumerate().map(|(at, (address, _))| (*address, at)).collect();
        let jump = |(last, (_, text)): (usize, &(u64, String))| {
            let (name, target) = text.split_once(' ')?;
            let target = target.split_whitespace().next()?;
            let first = *at.get(&u64::from_str_radix(target, 16).ok()?)?;
            let is_round = name.starts_with('j') && first <= last;
            (is_round && last - first < MOST_INSTRUCTIONS).then_some((first, last))
        };
        let rounds: Vec<(usize, usize)> =
            self.instructions.iter().enumerate().filter_map(jump).collect();
        let inner = rounds.clone().into_iter().filter(move |outer| {
            let is_inside = |other: &&(usize, usize)| outer.0 <= other.0 && other.1 <= outer.1;
            rounds.iter().filter(is_inside).all(|other| other == outer)
        });
        inner.map(|(first, last)| &self.instructions[first..=last])
    }
}

/// Whether a round of a loop multiplies and adds vectors, and stores at least half as many on the stack.
fn stores_sums(round: &[(u64, String)]) -> bool {
    let is_product = |text: &str| {
        ["vfmadd", "vfnmadd", "vpdp", "vpmadd"].iter().any(|name| text.starts_with(name))
    };
    let is_store = |text: &str| {
        let operands = text.strip_prefix("vmov").and_then(|text| text.split_once(' '));
        let operands = operands.and_then(|(_, operands)| operands.trim().split_once(','));
        operands.is_some_and(|(from, to)| {
            let is_vector = ["%xmm", "%ymm", "%zmm"].iter().any(|name| from.starts_with(name));
            is_vector && (to.contains("(%rsp") || to.contains("(%rbp"))
        })
    };
    let count = |holds: &dyn Fn(&str) -> bool| round.iter().filter(|(_, text)| holds(text)).count();
    let (products, stores) = (count(&is_product), count(&is_store));
    products >= 2 && 2 * stores >= products
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of this name, whose only loop has these instructions before its jump.
    fn listing(name: &str, round: &[&str]) -> Vec<String> {
        let mut lines =
            vec![format!("0000000000001000 <{name}>:"), "    1000:\tpush   %rbp".into()];
        let instructions = round.iter().enumerate();
        lines.extend(instructions.map(|(at, text)| format!("    {:x}:\t{text}", 0x1001 + at)));
        lines.push(format!("    {:x}:\tjne    1001 <{name}+0x1>", 0x1001 + round.len()));
        lines
    }

    #[test]
    fn sums_on_the_stack_are_found() {
        let product = "vfmadd231ps %ymm14,%ymm12,%ymm2";
        let kept = listing("ferroflow::kept", &[product, product, "vmovups %ymm2,(%rdi)"]);
        let stored = listing("ferroflow::stored", &[product, product, "vmovaps %ymm2,0x120(%rsp)"]);
        // What is stored once, behind the loop, may be.
        let mut after = listing("ferroflow::after", &[product, product]);
        after.push("    2000:\tvmovaps %ymm2,0x120(%rsp)".into());
        let others = listing("gemm::stored", &[product, product, "vmovaps %ymm2,0x120(%rsp)"]);
        let lines = [kept, stored, after, others].concat();
        let found: Vec<String> = functions(lines.into_iter()).into_iter().collect();
        assert_eq!(found, ["ferroflow::stored"]);
    }
}
