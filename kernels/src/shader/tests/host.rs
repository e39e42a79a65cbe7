//! CUDA's texts as C++ of the host: what NVIDIA's devices would compute, without one. A page of
//! definitions takes the place of what CUDA knows by itself; invocations run one after the other,
//! so that programs of groups are left out.

use super::{
    super::{Caps, Dialect, Shader, dialect::lies, shader},
    cases::{Case, on_cpu},
    difference, sampled,
};
use ferroflow_ir::{DType, HostTensor, Shape, host_tensor::byte_len};
use std::{
    env,
    fmt::Write,
    fs,
    path::Path,
    process::{Command, Stdio},
};

const DEFINITIONS: &str = r#"
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>
#define __device__
#define __forceinline__ inline
#define __popc __builtin_popcount
using std::abs; using std::ceil; using std::floor; using std::sqrt; using std::trunc;
template <class T> T min(T x, T y) { return y < x ? y : x; }
template <class T> T max(T x, T y) { return x < y ? y : x; }
inline unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
inline float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
static struct { unsigned x; } blockIdx, threadIdx;
static std::vector<char> take(size_t n) {
    std::vector<char> bytes(n + 8);
    if (fread(bytes.data(), 1, n, stdin) != n) { perror("input"); exit(1); }
    return bytes;
}
static void give(const std::vector<char>& bytes) {
    fwrite(bytes.data(), 1, bytes.size() - 8, stdout);
}
"#;

/// A call with its program.
struct Program {
    case: Case,
    shader: Shader,
    outputs: Vec<(DType, Shape)>,
}

fn programs() -> Vec<Program> {
    let mut programs = Vec::new();
    for case in sampled() {
        let found = case.with_call(|call| {
            let shader = shader(call, Caps { int64: true, ..Caps::default() }).unwrap()?;
            let types = call.outputs.iter().enumerate();
            let types = types.map(|(at, ty)| (ty.dtype, call.output_shape(at).unwrap()));
            Some((shader, types.collect()))
        });
        if let Some(Some((shader, outputs))) = found
            && shader.count > 0
        {
            programs.push(Program { case, shader, outputs });
        }
    }
    programs
}

impl Program {
    /// Bytes of each output.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        let outputs = self.outputs.iter().take(self.shader.outputs.len());
        outputs.map(|(dtype, shape)| byte_len(*dtype, shape).unwrap())
    }

    /// The program in a namespace of its own, and the function that runs it.
    fn write(&self, number: usize, text: &mut String) {
        let (before, after) =
            ("extern \"C\" __global__ void __launch_bounds__(256)", "static void");
        let program = Dialect::Cuda.print(&self.shader);
        assert!(program.contains(before));
        let _ = writeln!(text, "namespace p{number} {{\n{}", program.replace(before, after));
        let _ = writeln!(text, "static void run() {{");
        let mut arguments = Vec::new();
        for (at, (position, word)) in self.shader.inputs.iter().enumerate() {
            let input = &self.case.inputs[*position];
            let _ = writeln!(text, "auto i{at} = take({}u);", input.bytes().len());
            let lies = lies(input.dtype()).unwrap_or(word.storage());
            arguments.push(format!("(const {lies}*)i{at}.data()"));
        }
        for (at, table) in self.shader.tables.iter().enumerate() {
            let words: Vec<String> = table.iter().map(|word| format!("{word}u")).collect();
            let _ = writeln!(text, "static const unsigned t{at}[] = {{{}}};", words.join(", "));
            arguments.push(format!("t{at}"));
        }
        for (at, (word, size)) in self.shader.outputs.iter().zip(self.sizes()).enumerate() {
            let _ = writeln!(text, "std::vector<char> o{at}({size}u + 8, 77);");
            let lies = lies(self.outputs[at].0).unwrap_or(word.storage());
            arguments.push(format!("({lies}*)o{at}.data()"));
        }
        let (blocks, rows) = Dialect::Cuda.grid(&self.shader);
        assert_eq!(rows, 1);
        let _ = writeln!(
            text,
            "for (blockIdx.x = 0; blockIdx.x < {blocks}u; blockIdx.x++)\n\
             for (threadIdx.x = 0; threadIdx.x < {}u; threadIdx.x++) entry({});",
            Dialect::Cuda.group(&self.shader),
            arguments.join(", ")
        );
        for at in 0..self.outputs.len() {
            let _ = writeln!(text, "give(o{at});");
        }
        text.push_str("}\n}\n");
    }
}

/// What the programs print, given their inputs one after the other; `None` without a compiler.
fn run(folder: &Path, text: &str, inputs: &[u8]) -> Option<Vec<u8>> {
    let file = |name: &str| folder.join(name);
    fs::write(file("programs.cpp"), text).unwrap();
    fs::write(file("inputs"), inputs).unwrap();
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++20", "-w", "-o"]).arg(file("programs")).arg(file("programs.cpp"));
    let compiled = compiler.output().ok()?;
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let inputs = Stdio::from(fs::File::open(file("inputs")).unwrap());
    let ran = Command::new(file("programs")).stdin(inputs).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(ran.stdout)
}

#[test]
fn texts_of_cuda_compute_on_the_host_what_the_cpu_does() {
    let programs = programs();
    let (mut text, mut inputs) = (DEFINITIONS.to_string(), Vec::new());
    for (number, program) in programs.iter().enumerate() {
        program.write(number, &mut text);
        for (position, _) in &program.shader.inputs {
            inputs.extend_from_slice(program.case.inputs[*position].bytes());
        }
    }
    let calls: Vec<String> =
        (0..programs.len()).map(|number| format!("p{number}::run();")).collect();
    let _ = writeln!(text, "int main() {{ {} }}", calls.join("\n"));
    let folder = env::temp_dir().join(format!("ferroflow-texts-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let printed = run(&folder, &text, &inputs);
    fs::remove_dir_all(&folder).unwrap();
    let Some(printed) = printed else {
        eprintln!("skipped: no compiler of C++ was found");
        return;
    };
    let (mut rest, mut wrong) = (&printed[..], Vec::new());
    for program in &programs {
        let expected = on_cpu(&program.case);
        for (at, ((dtype, shape), size)) in program.outputs.iter().zip(program.sizes()).enumerate()
        {
            let (bytes, others) = rest.split_at(size);
            rest = others;
            let found = HostTensor::from_bytes(*dtype, shape.clone(), bytes).unwrap();
            let difference = expected.as_ref().and_then(|all| difference(&found, &all[at]));
            wrong.extend(difference.map(|what| format!("{}: {what}", program.case.name())));
        }
    }
    assert!(rest.is_empty());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), programs.len(), wrong.join("\n"));
    assert!(programs.len() > 400, "{} programs ran", programs.len());
}
