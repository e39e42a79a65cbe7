//! NVRTC: texts become libraries of the host, by its C++ compiler (`CXX`, else `c++`).
//!
//! The code of a text is the path of its library. Libraries are kept by a hash of their whole text.

#![expect(unsafe_code, reason = "these are the functions of a C library")]

use cudarc::nvrtc::sys::{nvrtcProgram, nvrtcResult};
use std::{
    env,
    ffi::{CStr, c_char, c_int},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    ptr, slice,
};

/// Magic number of code: as all code does, and what says that it is a path.
pub(crate) const CODE: &[u8] = b"\x7fELFsimulated:";

/// Definitions that a program finds, and the source after it.
const DEFINITIONS: &str = include_str!("device.hpp");

struct Program {
    text: String,
    log: String,
    code: Vec<u8>,
}

fn folder() -> PathBuf {
    let named = env::var_os("FERROFLOW_SIMULATOR_DIR").map(PathBuf::from);
    named.unwrap_or_else(|| env::temp_dir().join("ferroflow-simulator"))
}

/// The library of a text, made unless it is there.
fn build(text: &str) -> Result<PathBuf, String> {
    // Nothing else makes invocations wait for each other to any purpose.
    let groups = i32::from(text.contains("__shared__") || text.contains("__shfl"));
    let (before, after) = DEFINITIONS.split_once("// The program.\n").unwrap_or((DEFINITIONS, ""));
    let whole = format!("#define GROUPS {groups}\n{before}\n#line 1 \"program\"\n{text}\n{after}");
    let mut hash = DefaultHasher::new();
    whole.hash(&mut hash);
    let library = folder().join(format!("{:016x}.so", hash.finish()));
    if library.exists() {
        return Ok(library);
    }
    fs::create_dir_all(folder()).map_err(|error| error.to_string())?;
    let part = library.with_extension(format!("{}.part", process::id()));
    compile(&whole, &part)?;
    fs::rename(&part, &library).map_err(|error| error.to_string())?;
    Ok(library)
}

fn compile(text: &str, to: &Path) -> Result<(), String> {
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".into());
    let mut command = Command::new(compiler);
    // Products and sums are contracted, as NVRTC does.
    command.args(["-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=fast"]);
    #[cfg(target_arch = "x86_64")]
    command.args(["-mfma", "-mf16c"]);
    // Of libraries, texts need that of functions of numbers alone.
    command.args(["-x", "c++", "-", "-nostdlib", "-lm", "-o"]).arg(to);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that ends early tells why.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// # Safety
///
/// `program` was made by [`nvrtcCreateProgram`] and not destroyed.
unsafe fn program<'a>(program: nvrtcProgram) -> &'a mut Program {
    // SAFETY: the caller says so; a program is used by one thread at a time.
    unsafe { &mut *program.cast::<Program>() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcCreateProgram(
    to: *mut nvrtcProgram,
    text: *const c_char,
    _: *const c_char,
    n_headers: c_int,
    _: *const *const c_char,
    _: *const *const c_char,
) -> nvrtcResult {
    if n_headers != 0 {
        return nvrtcResult::NVRTC_ERROR_INVALID_INPUT;
    }
    // SAFETY: the caller gives a text that ends with a zero, and a place for the result.
    unsafe {
        let text = CStr::from_ptr(text).to_string_lossy().into_owned();
        let made = Box::new(Program { text, log: String::new(), code: Vec::new() });
        to.write(Box::into_raw(made).cast());
    }
    nvrtcResult::NVRTC_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcCompileProgram(
    made: nvrtcProgram,
    n_options: c_int,
    options: *const *const c_char,
) -> nvrtcResult {
    // SAFETY: the caller gives a program, and as many options as it says, which end with zeros.
    let (program, options) = unsafe {
        let options = match n_options {
            0 => &[][..],
            n => slice::from_raw_parts(options, n as usize),
        };
        let text = |&option: &*const c_char| CStr::from_ptr(option).to_string_lossy().into_owned();
        (program(made), options.iter().map(text).collect::<Vec<String>>())
    };
    for option in &options {
        let known = match option.strip_prefix("--gpu-architecture=sm_") {
            Some(generation) => matches!(generation, "80" | "86" | "89" | "90" | "100" | "120"),
            None => option.starts_with("--std="),
        };
        if !known {
            program.log = format!("the simulator does not know the option {option}");
            return nvrtcResult::NVRTC_ERROR_INVALID_OPTION;
        }
    }
    match build(&program.text) {
        Ok(library) => {
            program.code = [CODE, library.to_string_lossy().as_bytes(), b"\0"].concat();
            nvrtcResult::NVRTC_SUCCESS
        }
        Err(log) => {
            program.log = log;
            nvrtcResult::NVRTC_ERROR_COMPILATION
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetProgramLogSize(made: nvrtcProgram, to: *mut usize) -> nvrtcResult {
    // SAFETY: the caller gives a program and a place for the result.
    unsafe { to.write(program(made).log.len() + 1) };
    nvrtcResult::NVRTC_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetProgramLog(made: nvrtcProgram, to: *mut c_char) -> nvrtcResult {
    // SAFETY: the caller gives a program and the room that it was told.
    unsafe {
        let log = &program(made).log;
        ptr::copy(log.as_ptr(), to.cast(), log.len());
        to.add(log.len()).write(0);
    }
    nvrtcResult::NVRTC_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetCUBINSize(made: nvrtcProgram, to: *mut usize) -> nvrtcResult {
    // SAFETY: the caller gives a program and a place for the result.
    unsafe { to.write(program(made).code.len()) };
    nvrtcResult::NVRTC_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetCUBIN(made: nvrtcProgram, to: *mut c_char) -> nvrtcResult {
    // SAFETY: the caller gives a program and the room that it was told.
    unsafe {
        let code = &program(made).code;
        ptr::copy(code.as_ptr(), to.cast(), code.len());
    }
    nvrtcResult::NVRTC_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcDestroyProgram(made: *mut nvrtcProgram) -> nvrtcResult {
    // SAFETY: the caller gives a program that nobody uses any more.
    unsafe { drop(Box::from_raw((*made).cast::<Program>())) };
    nvrtcResult::NVRTC_SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetErrorString(_: nvrtcResult) -> *const c_char {
    c"an error of the simulated compiler".as_ptr()
}
