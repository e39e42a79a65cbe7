//! NVIDIA's compiler makes code of every text, for two generations of devices. It needs none of
//! them, nor a driver. What devices compute is tested with those of other kinds, and where there
//! are some: real ones, or those of `cargo xtask simulated`.

use super::{
    CAPS, CudaDevice,
    compile::{Architecture, compile, is_present},
    devices, probe,
};
use crate::{
    Buffer, Device, DeviceBuffer, Error, Kernel, OpCall, OperandSpec, Threads,
    kernel_graph::{KernelGraphPlan, KernelLaunch, PlanValue},
    shader::{
        ShaderDialect,
        tests::{is_required, programs},
    },
};
use ferroflow_ir::{Attrs, DType, HostTensor, Shape, registry};
use rayon::prelude::*;
use std::sync::Arc;

const ARCHITECTURES: [Architecture; 2] =
    [Architecture { major: 8, minor: 0 }, Architecture { major: 9, minor: 0 }];

#[test]
fn every_text_becomes_code() {
    if !is_present() {
        assert!(!is_required("nvrtc"), "NVRTC was not found");
        eprintln!("skipped: NVRTC was not found");
        return;
    }
    let programs = programs(ShaderDialect::Cuda, CAPS);
    // What the older architecture has, the newer one has too: of its compiler a sample is enough.
    let [older, newer] = ARCHITECTURES;
    let tasks: Vec<_> = programs
        .iter()
        .map(|program| (program, older))
        .chain(programs.iter().step_by(8).map(|program| (program, newer)))
        .collect();
    let wrong: Vec<String> = tasks
        .par_iter()
        .filter_map(|&((text, name), architecture)| match compile(text, architecture) {
            Ok(code) => (!code.starts_with(b"\x7fELF")).then(|| format!("{name}: no code")),
            Err(error) => Some(format!("{name}: {error}\n{text}")),
        })
        .collect();
    let (n, first) = (wrong.len(), wrong.first());
    assert!(
        wrong.is_empty(),
        "{n} of {}, first {}",
        programs.len(),
        first.unwrap_or(&String::new())
    );
    assert!(programs.len() > 500, "{} texts were compiled", programs.len());
}

#[test]
fn without_a_device_there_is_a_reason() {
    match probe() {
        Ok(count) => assert_eq!(devices().len(), count as usize, "every device is connected to"),
        Err(reason) => {
            assert!(!is_required("cuda"), "{reason}");
            assert!(devices().is_empty());
            assert!(!reason.to_string().is_empty());
        }
    }
}

#[test]
fn what_does_not_compile_is_refused() {
    let [architecture, _] = ARCHITECTURES;
    let unknown = Architecture { major: 1, minor: 7 };
    let program = "extern \"C\" __global__ void entry() {}";
    for (text, architecture) in
        [("not a program", architecture), ("\0", architecture), (program, unknown)]
    {
        assert!(compile(text, architecture).is_err(), "{text}");
    }
    assert_eq!(compile(program, architecture).is_ok(), is_present());
}

const N: usize = 1000;

fn shape() -> Shape {
    Shape::new([N]).unwrap()
}

/// The kernel that adds two vectors.
fn addition(device: &CudaDevice) -> Arc<dyn Kernel> {
    let op = registry::find("AddV2").unwrap();
    let attrs = Attrs::new().with("T", DType::F32);
    let inputs = [0, 1].map(|_| OperandSpec::new(DType::F32, shape()));
    let call = OpCall::new(op, &attrs, &inputs, None).unwrap();
    device.kernel(&call).unwrap().unwrap()
}

/// `n` rounds of sums: each adds two earlier values, and the last are the outputs.
fn sums(device: &CudaDevice, reads: &[(usize, usize)], outputs: &[usize]) -> KernelGraphPlan {
    let mut plan = KernelGraphPlan::default();
    plan.values.extend([PlanValue::Input(0), PlanValue::Input(1)]);
    for (at, &(a, b)) in reads.iter().enumerate() {
        let sources = [Some(a), Some(b)].into_iter().collect();
        let sinks = [at + 2].into_iter().collect();
        plan.calls.push(KernelLaunch { kernel: addition(device), sources, sinks });
        let output = outputs.iter().position(|&output| output == at + 2);
        plan.values.push(output.map_or(PlanValue::Inner(DType::F32, shape()), PlanValue::Output));
    }
    plan
}

fn vector(device: &CudaDevice, value: f32) -> DeviceBuffer {
    let tensor = HostTensor::vector(&[value; N]).unwrap();
    let Buffer::Device(buffer) = device.upload(&tensor.into()).unwrap() else {
        panic!("not there")
    };
    buffer
}

fn first(buffer: &DeviceBuffer) -> f32 {
    let host = buffer.host().unwrap().as_slice::<f32>().unwrap().to_vec();
    assert!(host.iter().all(|&x| x == host[0]));
    host[0]
}

#[test]
fn sequences_give_what_their_calls_do() {
    let Some(device) = devices().first() else { return };
    // Two chains that meet, one value of which is a result too.
    let reads = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 5), (2, 6), (7, 1)];
    let sequence = device.kernel_graph(sums(device, &reads, &[8, 5])).unwrap();
    let threads = Threads::single();
    let run = |a: f32, b: f32, outputs: &[DeviceBuffer]| {
        let inputs = [vector(device, a), vector(device, b)];
        sequence.run(&inputs, outputs, &threads, usize::MAX).map_err(|error| error.1).unwrap();
    };
    // Inputs come and go in the same places, so that graphs are made, and used again.
    for round in 0..6 {
        let (a, b) = (round as f32, 0.5);
        let outputs = [vector(device, 0.0), vector(device, 0.0)];
        run(a, b, &outputs);
        assert_eq!([first(&outputs[0]), first(&outputs[1])], [6.0 * a + 5.0 * b, 4.0 * b]);
    }
    let told = format!("{sequence:?}");
    assert!(told.contains("refused: false") && !told.contains("graphs: 0"), "{told}");
    let shared = [vector(device, 0.0), vector(device, 0.0)];
    let inputs = [vector(device, 2.0), vector(device, 3.0)];
    let again = || {
        for _ in 0..5 {
            sequence.run(&inputs, &shared, &threads, usize::MAX).map_err(|error| error.1).unwrap();
        }
    };
    rayon::join(again, again);
    assert_eq!([first(&shared[0]), first(&shared[1])], [27.0, 12.0]);
}

#[test]
fn devices_send_to_each_other() {
    let [one, other, ..] = devices() else { return };
    let here = vector(one, 7.0);
    let Buffer::Device(there) = other.upload(&Buffer::Device(here.clone())).unwrap() else {
        panic!("not sent")
    };
    drop(here);
    let _ = vector(one, 8.0);
    assert_eq!((&*there.device, first(&there)), (other.name(), 7.0));
    assert!(matches!(
        sums(other, &[(0, 0)], &[2]).calls[0].kernel.run(&mut crate::Io::new(
            [crate::Operand::Device(&vector(one, 1.0)), crate::Operand::Device(&there)],
            [crate::Target::Device(&there)],
            &Threads::single(),
            usize::MAX,
        )),
        Err(Error::WrongDevice { .. })
    ));
}
