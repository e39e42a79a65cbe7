//! Values that a session keeps between runs, and the end of a run.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    budget::KeptTensors,
    eager_tensor::Results,
    error::{Error, Result},
    resource::{Resource, ResourceHandle},
    sync::Mutex,
};
use ferroflow_ir::{Code, Error as IrError, HostTensor};
use std::{collections::HashMap, sync::Arc};

/// The values that are kept under handles.
#[derive(Debug, Default)]
struct SessionTensors(Mutex<SessionState>);

#[derive(Debug, Default)]
struct SessionState {
    last: u64,
    values: HashMap<String, KeptTensors<HostTensor>>,
}

impl Resource for SessionTensors {
    fn kind(&self) -> &'static str {
        "the values of a session"
    }
}

/// No container of a program has a name like this.
const CONTAINER: &str = "/session";

fn session(call: &RuntimeCall<'_>) -> Result<Arc<SessionTensors>> {
    let make = || Ok(Arc::<SessionTensors>::default() as Arc<dyn Resource>);
    let found = call.scope.resources.find_or_create(CONTAINER, "tensors", make)?;
    ResourceHandle::owning("tensors", found).downcast("the values of a session")
}

/// Keeps a value; its handle as TensorFlow writes it: the node, a number, the device.
fn kept(call: &mut RuntimeCall<'_>) -> Result<(String, Arc<SessionTensors>)> {
    let value = KeptTensors::new(call.taken(0)?, 1)?;
    let (session, op) = (session(call)?, call.op.name);
    let mut state = session.0.lock();
    let name = format!("{op};{};/job:localhost/replica:0/task:0/device:CPU:0", state.last);
    state.last += 1;
    state.values.insert(name.clone(), value);
    drop(state);
    Ok((name, session))
}

fn keep(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar_string(kept(call)?.0))
}

fn keep_as_resource(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (name, session) = kept(call)?;
    one(ResourceHandle::owning(name, session).to_tensor())
}

fn handle_text(call: &RuntimeCall<'_>) -> Result<String> {
    let handle = call.host(0)?;
    match handle.strings()? {
        [text] => Ok(String::from_utf8_lossy(text).into_owned()),
        _ => {
            let found = handle.shape();
            Err(IrError::argument(call.op.name, "handle", "a scalar", found).into())
        }
    }
}

fn absent(name: &str) -> Error {
    let message = format!("no value of the session has the handle `{name}`");
    Error::Status { code: Code::InvalidArgument, message }
}

fn value(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let name = handle_text(call)?;
    let session = session(call)?;
    let state = session.0.lock();
    let value = state.values.get(&name).ok_or_else(|| absent(&name))?.value.clone();
    value.check(call.attrs.dtype("dtype")?)?;
    one(value)
}

fn forget(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let name = handle_text(call)?;
    let found = session(call)?.0.lock().values.remove(&name);
    found.ok_or_else(|| absent(&name))?;
    none()
}

/// The process goes on, whatever the program wants: it is the program that ends.
fn abort(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let message = match call.attrs.string("error_msg")? {
        "" => "the program ends itself".to_string(),
        text => text.to_string(),
    };
    let op = call.op.name.into();
    Err(IrError::Status { code: Code::Aborted, op, detail: message }.into())
}

fn synchronize(_: &mut RuntimeCall<'_>) -> Result<Results> {
    none()
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("Abort", abort),
    ("DeleteSessionTensor", forget),
    ("GetSessionHandle", keep),
    ("GetSessionHandleV2", keep_as_resource),
    ("GetSessionTensor", value),
    ("SyncDevice", synchronize),
];
