//! NVRTC, NVIDIA's compiler in a library.

#![expect(unsafe_code, reason = "the library is called through pointers")]

use cudarc::nvrtc::{result, sys};
use std::{ffi::CString, fmt, sync::OnceLock};

/// A generation of devices: its compute capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Architecture {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.major, self.minor)
    }
}

/// Whether the library was found. Nothing else here may be called where it was not.
pub(crate) fn is_present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: looking for NVIDIA's library runs its initialisers, as loading it does.
    *PRESENT.get_or_init(|| unsafe { sys::is_culib_present() })
}

/// Machine code of a text for one generation of devices: an ELF file.
///
/// # Errors
///
/// What the compiler reported, as text.
pub(crate) fn compile(text: &str, architecture: Architecture) -> Result<Vec<u8>, String> {
    if !is_present() {
        return Err("NVRTC was not found".into());
    }
    let program = Program::new(text)?;
    let architecture = format!("--gpu-architecture={architecture}");
    program.compile(&[&architecture, "--std=c++20"])?;
    program.code()
}

/// A program of the compiler, freed when it is dropped.
struct Program(sys::nvrtcProgram);

impl Program {
    fn new(text: &str) -> Result<Program, String> {
        let text = CString::new(text).map_err(|error| error.to_string())?;
        result::create_program(&text, None).map(Program).map_err(|error| error.to_string())
    }

    fn compile(&self, options: &[&str]) -> Result<(), String> {
        // SAFETY: the program was created and is not given back yet.
        unsafe { result::compile_program(self.0, options) }.map_err(|error| {
            // SAFETY: as above.
            let log = unsafe { result::get_program_log(self.0) }.unwrap_or_default();
            let log: Vec<u8> = log.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
            format!("{error}: {}", String::from_utf8_lossy(&log).trim())
        })
    }

    fn code(&self) -> Result<Vec<u8>, String> {
        let mut size = 0;
        // SAFETY: the program is compiled, and `size` may be written to.
        unsafe { sys::nvrtcGetCUBINSize(self.0, &mut size) }
            .result()
            .map_err(|error| error.to_string())?;
        let mut code = vec![0u8; size];
        // SAFETY: as above, and `code` has the room that was asked for.
        unsafe { sys::nvrtcGetCUBIN(self.0, code.as_mut_ptr().cast()) }
            .result()
            .map_err(|error| error.to_string())?;
        Ok(code)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it was created, and nobody else gives it back. What the compiler says to that
        // changes nothing.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}
