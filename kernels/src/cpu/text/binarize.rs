//! The bits of characters: `TFText>Utf8Binarize`.

use super::utf8;
use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::DType;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("TFText>Utf8Binarize", binarize)];

fn binarize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let shape = call.output_shape(0)?;
    let (length, bits) = (call.attrs.int("word_length")?, call.attrs.int("bits_per_char")?);
    let replacement = call.attrs.int("replacement_char")? as i32;
    let (length, bits) = (length as usize, bits as usize);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let words = io.strings(0)?;
        f32::write(io, 0, DType::F32, &shape, |out| {
            out.fill(0.0);
            if bits == 0 || length == 0 {
                return Ok(());
            }
            for (out, word) in out.chunks_mut(length * bits).zip(words) {
                for (out, (character, _)) in out.chunks_mut(bits).zip(utf8::characters(word)) {
                    let code = character.map_or(replacement, |character| character as i32);
                    for (place, out) in out.iter_mut().enumerate() {
                        *out = f32::from((code >> place.min(31) & 1) as u8);
                    }
                }
            }
            Ok(())
        })
    })))
}
