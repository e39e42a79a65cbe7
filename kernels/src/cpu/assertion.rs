//! `Assert` and `_Require`.

use super::{Build, string::summary::summary};
use crate::{
    device::{OpCall, OperandSpec},
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{Code, Error, ops::names};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[("Assert", assertion), (names::REQUIRE, assertion)];

fn assertion(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let data: Vec<OperandSpec> = call.inputs[1..].to_vec();
    let shown = call.attrs.int("summarize")?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        if io.bytes(0).first().is_some_and(|&byte| byte != 0) {
            return Ok(());
        }
        let mut detail = "assertion failed:".to_string();
        for (index, spec) in data.iter().enumerate() {
            let text = summary(&io.to_host(index + 1, spec)?, shown);
            detail.push_str(&format!(" [{}]", String::from_utf8_lossy(&text)));
        }
        Err(Error::Status { code: Code::InvalidArgument, op: "Assert".into(), detail }.into())
    })))
}
