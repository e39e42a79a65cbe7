//! Normal forms: `CaseFoldUTF8`, `NormalizeUTF8`, `NormalizeUTF8WithOffsetsMap`.

use super::{
    normal::{Edits, NormalForm, normalize},
    shared::SharedTexts,
};
use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Handle, HostTensor};
use std::{any::Any, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("CaseFoldUTF8", case_fold),
    ("NormalizeUTF8", normalize_texts),
    ("NormalizeUTF8WithOffsetsMap", normalize_with_map),
];

/// Changes of a normalization in a single text; a value of dtype variant.
#[derive(Debug)]
pub(super) struct OffsetsMap(pub(super) Edits);

impl Handle for OffsetsMap {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn normal_form(call: &OpCall<'_>) -> Result<NormalForm> {
    let name = call.attrs.string("normalization_form")?;
    Ok(match name.to_ascii_uppercase().as_str() {
        "NFC" => NormalForm::Nfc,
        "NFD" => NormalForm::Nfd,
        "NFKC" => NormalForm::Nfkc,
        "NFKD" => NormalForm::Nfkd,
        _ => return Err(call.wrong("normalization_form", "NFC, NFD, NFKC or NFKD", name)),
    })
}

fn case_fold(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    map(call, NormalForm::Fold)
}

fn normalize_texts(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    map(call, normal_form(call)?)
}

fn map(call: &OpCall<'_>, form: NormalForm) -> Result<Option<Arc<dyn Kernel>>> {
    let shape = call.shape(0).clone();
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let inputs = io.strings(0)?;
        let mut texts = SharedTexts::with_room(inputs.len())?;
        for text in inputs {
            match normalize(form, text, &mut texts.buffer, None) {
                true => texts.push_written(),
                false => texts.push(text.clone()),
            }
        }
        io.put(0, HostTensor::from_strings(shape.clone(), texts.finish())?)
    })))
}

fn normalize_with_map(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (shape, form) = (call.shape(0).clone(), normal_form(call)?);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (mut texts, mut maps) = (SharedTexts::with_room(io.strings(0)?.len())?, Vec::new());
        for text in io.strings(0)? {
            let mut edits = Edits::default();
            match normalize(form, text, &mut texts.buffer, Some(&mut edits)) {
                true => texts.push_written(),
                false => texts.push(text.clone()),
            }
            maps.push(Arc::new(OffsetsMap(edits)) as Arc<dyn Handle>);
        }
        io.put(0, HostTensor::from_strings(shape.clone(), texts.finish())?)?;
        <Arc<dyn Handle>>::write(io, 1, DType::Variant, &shape, |out| {
            out.clone_from_slice(&maps);
            Ok(())
        })
    })))
}
