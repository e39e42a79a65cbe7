//! A rank that computes with the others by each kind of collective, and checks the results.
//!
//! ```text
//! mpirun -n 4 cargo run --example collectives [leave | differ | late]
//! ```
//!
//! With a word, the last rank does something wrong instead, and every rank prints the error that it gets.

use ferroflow_ir::{Attrs, DType, HostTensor, Shape};
use ferroflow_mpi::MpiEngine;
use ferroflow_runtime::{
    Context, Error as RuntimeError,
    collective::{Broadcast, CollectiveCall, Engine, Group, InstanceKey, Reduction, WORLD},
    execute,
};
use std::{error::Error, sync::Arc, time::Duration};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Rank 0 and so on of one group.
struct Peer {
    context: Context,
    engine: Arc<MpiEngine>,
}

fn main() -> Outcome {
    let peer = Peer { context: Context::new(), engine: MpiEngine::initialize()? };
    match std::env::args().nth(1).as_deref() {
        None => peer.compute(),
        Some(fault) => peer.fail(fault),
    }
}

impl Peer {
    fn call<'a>(&'a self, op: &'a str, key: i32, seconds: u64) -> CollectiveCall<'a> {
        let call = CollectiveCall::new(&self.context, op, InstanceKey::Number(key));
        call.within(Duration::from_secs(seconds))
    }

    fn world(&self) -> Outcome<Arc<dyn Group>> {
        let call = self.call("resolve", 0, 30);
        Ok(self.engine.resolve(WORLD, self.engine.size(), &call)?)
    }

    fn compute(&self) -> Outcome {
        let (world, size) = (self.world()?, self.engine.size());
        self.reductions(&*world)?;
        self.exchanges(&*world)?;
        if size > 1 {
            self.parts(&*world)?;
        }
        world.barrier(&self.call("barrier", 90, 30))?;
        if world.rank() == 0 {
            println!("{size} ranks agree");
        }
        Ok(())
    }

    /// Small integers that differ among ranks, in any dtype.
    fn numbers(&self, dtype: DType, len: usize, rank: usize) -> Outcome<HostTensor> {
        let values: Vec<f64> = (0..len).map(|i| ((i * 7 + rank * 13) % 23) as f64 + 1.0).collect();
        let attrs = Attrs::new().with("DstT", dtype);
        let values = HostTensor::vector(&values)?;
        Ok(execute(&self.context, "Cast", attrs, &[values.into()])?.remove(0).into_host()?)
    }

    fn reductions(&self, group: &dyn Group) -> Outcome {
        use DType::*;
        let mut key = 100;
        for dtype in [F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64, C64] {
            for len in [0, 1, 15, 16, 17, 70_001] {
                let named = |name| Reduction::named(name).ok_or("a reduction");
                let all = [Reduction::SUM, Reduction::MEAN, named("Max")?, named("Min")?];
                for reduction in all {
                    let compares = reduction != Reduction::SUM && reduction != Reduction::MEAN;
                    if dtype == C64 && compares {
                        continue;
                    }
                    key += 1;
                    let call = self.call("CollectiveReduceV2", key, 30);
                    let mine = self.numbers(dtype, len, group.rank())?;
                    let found = group.all_reduce(&call, mine, reduction)?;
                    let parts = (0..group.size()).map(|rank| self.numbers(dtype, len, rank));
                    let parts = parts.collect::<Outcome<Vec<_>>>()?;
                    let expected = reduction.reduce(&self.context, &parts)?.ok_or("members")?;
                    let same =
                        found.bytes() == expected.bytes() && found.shape() == expected.shape();
                    check(same, &format!("{reduction:?} of {dtype}[{len}]"))?;
                }
            }
        }
        // NaN stays, whichever rank has it.
        for (number, name) in ["Max", "Min", "Add"].into_iter().enumerate() {
            for odd in 0..group.size() {
                let own = if odd == group.rank() { f32::NAN } else { 1.0 };
                let reduction = Reduction::named(name).ok_or("a reduction")?;
                let call = self.call("CollectiveReduceV2", 50 + number as i32, 30);
                let found = group.all_reduce(&call, HostTensor::vector(&[own, 2.0])?, reduction)?;
                check(found.as_slice::<f32>()?[0].is_nan(), "NaN among others")?;
            }
        }
        Ok(())
    }

    fn exchanges(&self, group: &dyn Group) -> Outcome {
        let (rank, size) = (group.rank(), group.size());
        let of = |rank: usize, len: usize| -> Outcome<HostTensor> {
            Ok(HostTensor::vector(&(0..len).map(|i| (1000 * rank + i) as i32).collect::<Vec<_>>())?)
        };
        let ints =
            |tensor: &HostTensor| -> Outcome<Vec<i32>> { Ok(tensor.as_slice::<i32>()?.to_vec()) };
        let gathered = group.all_gather(&self.call("gather", 1, 30), of(rank, 5)?)?;
        let mut expected = Vec::new();
        for rank in 0..size {
            expected.extend(ints(&of(rank, 5)?)?);
        }
        check(ints(&gathered)? == expected, "a gather")?;
        for source in 0..size {
            let sent = match rank == source {
                true => Broadcast::Send(of(source, 7)?),
                false => Broadcast::Receive(DType::I32, (&Shape::new([7])?).into()),
            };
            let call = self.call("broadcast", 10 + source as i32, 30);
            check(ints(&group.broadcast(&call, sent)?)? == ints(&of(source, 7)?)?, "a broadcast")?;
        }
        let exchanged = group.all_to_all(&self.call("exchange", 2, 30), of(rank, 2 * size)?)?;
        let mut expected = Vec::new();
        for from in 0..size {
            expected.extend([2 * rank, 2 * rank + 1].map(|i| (1000 * from + i) as i32));
        }
        check(ints(&exchanged)? == expected, "an exchange")?;
        let scattered =
            group.reduce_scatter(&self.call("scatter", 3, 30), of(0, 2 * size)?, Reduction::SUM)?;
        let expected = [2 * rank, 2 * rank + 1].map(|i| (size * i) as i32);
        check(ints(&scattered)? == expected, "a part of a reduction")?;
        // Around the ring, but the first gets nothing.
        let pairs: Vec<(usize, usize)> = (1..size).map(|to| (to - 1, to)).collect();
        let moved = group.permute(&self.call("permute", 4, 30), of(rank, 3)?, &pairs)?;
        let expected = if rank == 0 { vec![0; 3] } else { ints(&of(rank - 1, 3)?)? };
        check(ints(&moved)? == expected, "a permutation")
    }

    /// Groups of even and of odd ranks, by parts of a group and by keys.
    fn parts(&self, group: &dyn Group) -> Outcome {
        let members: Vec<usize> = (group.rank() % 2..group.size()).step_by(2).collect();
        let by_key = self.engine.resolve(
            7 + (group.rank() % 2) as i32,
            members.len(),
            &self.call("resolve", 200, 30),
        )?;
        for number in 0..2 {
            let part = group.part(&self.call("part", 20 + number, 30), &members)?;
            for own in [&part, &by_key] {
                let mine = HostTensor::scalar(1i32 << group.rank());
                let sum =
                    own.all_reduce(&self.call("reduce", 30 + number, 30), mine, Reduction::SUM)?;
                let expected: i32 = members.iter().map(|member| 1 << member).sum();
                check(sum.as_scalar::<i32>()? == expected, "a sum of a part")?;
            }
        }
        Ok(())
    }

    /// The last rank fails in one way: the others learn of it in time.
    fn fail(&self, fault: &str) -> Outcome {
        let (world, mine) = (self.world()?, HostTensor::vector(&[1.0f32; 100])?);
        let is_last = world.rank() + 1 == world.size();
        world.barrier(&self.call("barrier", 1, 30))?;
        let reduce = |key, seconds, mine| {
            world.all_reduce(&self.call("reduce", key, seconds), mine, Reduction::SUM)
        };
        let outcome = match (fault, is_last) {
            ("leave", true) => return Ok(()),
            ("differ", true) => reduce(2, 30, HostTensor::vector(&[1.0f64; 99])?),
            ("late", true) => {
                std::thread::sleep(Duration::from_secs(3));
                reduce(2, 30, mine)
            }
            ("late", false) => reduce(2, 1, mine),
            _ => reduce(2, 30, mine),
        };
        let text = |error: RuntimeError| format!("rank {}: {error}", world.rank());
        println!("{}", outcome.map_or_else(text, |_| "no error".into()));
        // Whatever comes after is an error, too, and does not hang.
        let next = world.barrier(&self.call("barrier", 3, 30));
        check(next.is_err(), "nothing is called any more")
    }
}

fn check(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(format!("{what} is wrong").into()) }
}
