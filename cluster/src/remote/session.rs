//! The session of a client on a server: its tensors, its functions, and the state of its ops.

use super::{
    handoff::{TensorHandoff, rendezvous_key},
    messages::{
        QueueItemKind, QueueResponse, RegisterFunctionOp, RemoteInput, RemoteInputKind,
        RemoteOperation, RemoteTensorHandle, SendTensorOp,
    },
};
use crate::status::status;
use ferroflow_format::{
    convert::{Definitions, add_functions, attr_value, shape_message, tensor},
    proto::{self, AttrValue, FunctionDefLibrary, attr_value::Value},
};
use ferroflow_ir::{Attrs, Error as IrError, FunctionLibrary, HostTensor};
use ferroflow_runtime::{CallableFunction, Context, EagerTensor, execute};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tonic::Status;

/// The context of a client.
#[derive(Debug)]
pub(super) struct EagerSession {
    id: u64,
    device: String,
    context: Context,
    handoff: Arc<TensorHandoff>,
    /// By op and output, as the client names them.
    tensors: Mutex<HashMap<(i64, i32), EagerTensor>>,
    functions: Mutex<SessionFunctions>,
}

#[derive(Debug, Default)]
struct SessionFunctions {
    definitions: BTreeMap<String, proto::FunctionDef>,
    /// The definitions as a library, until another one comes.
    library: Option<Arc<FunctionLibrary>>,
    callable: HashMap<String, CallableFunction>,
}

impl EagerSession {
    pub(super) fn new(
        id: u64,
        device: &str,
        context: Context,
        handoff: Arc<TensorHandoff>,
    ) -> EagerSession {
        let (tensors, functions) = (Mutex::default(), Mutex::default());
        EagerSession { id, device: device.into(), context, handoff, tensors, functions }
    }

    /// Does what an item of a queue asks for.
    pub(super) fn run(&self, item: QueueItemKind) -> Result<QueueResponse, Status> {
        match item {
            QueueItemKind::Operation(operation) => return self.operation(&operation),
            QueueItemKind::SendTensor(sent) => self.receive(sent)?,
            QueueItemKind::RegisterFunction(function) => self.register(*function),
            QueueItemKind::RemoveFunction(function) => self.remove(&function.function_name),
            QueueItemKind::Decref(handle) => {
                self.tensors.lock().remove(&(handle.op_id, handle.output_num));
            }
            // What this asks for has been done: items are worked on in their order.
            QueueItemKind::SyncExecutor(_) | QueueItemKind::CleanupFunction(_) => {}
            QueueItemKind::SendPackedHandle(_) => {
                return Err(Status::unimplemented("packed handles of several devices"));
            }
        }
        Ok(QueueResponse::default())
    }

    fn receive(&self, sent: SendTensorOp) -> Result<(), Status> {
        for (index, message) in sent.tensors.iter().enumerate() {
            let value = tensor(message, self.context.limits()).map_err(of_ir)?;
            self.tensors.lock().insert((sent.op_id, index as i32), value.into());
        }
        Ok(())
    }

    fn operation(&self, operation: &RemoteOperation) -> Result<QueueResponse, Status> {
        let inputs: Vec<EagerTensor> =
            operation.op_inputs.iter().map(|input| self.input(input)).collect::<Result<_, _>>()?;
        if operation.is_component_function {
            return Err(Status::unimplemented("components of functions on several devices"));
        }
        let outputs = match operation.name.as_str() {
            "_Send" => {
                self.send(operation, &inputs)?;
                Vec::new()
            }
            name if operation.is_function => {
                {
                    // TensorFlow does not hold arguments against the shapes that functions were traced for.
                    self.function(name)?.call_with_any_shapes(&inputs).map_err(of_runtime)?
                }
            }
            name => {
                let attrs = self.attrs(name, &operation.attrs)?;
                execute(&self.context, name, attrs, &inputs).map_err(of_runtime)?.into_vec()
            }
        };
        let mut response = QueueResponse::default();
        let mut tensors = self.tensors.lock();
        for (index, output) in outputs.into_iter().enumerate() {
            response.shape.push(shape_message(output.shape()));
            // Clients know where ops run, but not what functions return.
            if operation.is_function {
                response.device.push(self.device.clone());
            }
            tensors.insert((operation.id, index as i32), output);
        }
        Ok(response)
    }

    fn input(&self, input: &RemoteInput) -> Result<EagerTensor, Status> {
        match &input.item {
            Some(RemoteInputKind::Tensor(message)) => {
                Ok(tensor(message, self.context.limits()).map_err(of_ir)?.into())
            }
            Some(RemoteInputKind::Handle(handle)) => self.tensor(handle),
            None => Err(Status::invalid_argument("an input without a value")),
        }
    }

    fn tensor(&self, handle: &RemoteTensorHandle) -> Result<EagerTensor, Status> {
        let RemoteTensorHandle { op_id, output_num, .. } = handle;
        let found = self.tensors.lock().get(&(*op_id, *output_num)).cloned();
        found.ok_or_else(|| {
            let of = &handle.op_device;
            Status::invalid_argument(format!(
                "there is no output {output_num} of op {op_id} ({of})"
            ))
        })
    }

    /// Leaves a tensor for the client.
    fn send(&self, operation: &RemoteOperation, inputs: &[EagerTensor]) -> Result<(), Status> {
        let text = |name: &str| match operation.attrs.get(name).and_then(|a| a.value.as_ref()) {
            Some(Value::S(text)) => Ok(String::from_utf8_lossy(text).into_owned()),
            _ => Err(Status::invalid_argument(format!("_Send without `{name}`"))),
        };
        let incarnation = match operation.attrs.get("send_device_incarnation") {
            Some(AttrValue { value: Some(Value::I(number)) }) => *number as u64,
            _ => 0,
        };
        let (from, to) = (text("send_device")?, text("recv_device")?);
        let key = rendezvous_key(&from, incarnation, &to, &text("tensor_name")?);
        let value = inputs.first().ok_or_else(|| Status::invalid_argument("_Send of nothing"))?;
        let value: HostTensor = value.host().map_err(of_runtime)?.clone();
        self.handoff.put(self.id, key, value);
        Ok(())
    }

    /// The attributes of a call; those that the op does not know are annotations.
    fn attrs(&self, op: &str, messages: &HashMap<String, AttrValue>) -> Result<Attrs, Status> {
        let unknown = || of_ir(IrError::NotFound { kind: "op", name: op.into() });
        let record = self.context.registry().find(op).ok_or_else(unknown)?;
        let mut attrs = Attrs::new();
        for (name, message) in messages {
            let Some(def) = record.attr(name) else { continue };
            let value =
                attr_value(message, Some(def.kind), self.context.limits()).map_err(of_ir)?;
            if let Some(value) = value {
                attrs.set(name.as_str(), value);
            }
        }
        Ok(attrs)
    }

    fn register(&self, function: RegisterFunctionOp) {
        let mut functions = self.functions.lock();
        let library = function.library.map(|library| library.function).unwrap_or_default();
        for def in function.function_def.into_iter().chain(library) {
            let name = def.signature.as_ref().map(|s| s.name.clone()).unwrap_or_default();
            functions.definitions.insert(name, def);
        }
        functions.library = None;
    }

    fn remove(&self, name: &str) {
        let mut functions = self.functions.lock();
        functions.definitions.remove(name);
        functions.callable.remove(name);
        functions.library = None;
    }

    fn function(&self, name: &str) -> Result<CallableFunction, Status> {
        let mut functions = self.functions.lock();
        if let Some(found) = functions.callable.get(name) {
            return Ok(found.clone());
        }
        let library = self.library(&mut functions).map_err(of_ir)?;
        let def = library.get(name).map_err(of_ir)?;
        let resources = self.context.resources().clone();
        let made =
            CallableFunction::with_captures(&self.context, def, library, resources, Vec::new());
        functions.callable.insert(name.into(), made.clone());
        Ok(made)
    }

    fn library(&self, functions: &mut SessionFunctions) -> Result<Arc<FunctionLibrary>, IrError> {
        if let Some(library) = &functions.library {
            return Ok(library.clone());
        }
        let function = functions.definitions.values().cloned().collect();
        let messages = FunctionDefLibrary { function, ..FunctionDefLibrary::default() };
        let (registry, limits) = (self.context.registry().clone(), self.context.limits().clone());
        let definitions = Arc::new(Definitions::new(messages, registry, limits)?);
        let library = Arc::new(FunctionLibrary::new());
        add_functions(&library, &definitions)?;
        functions.library = Some(library.clone());
        Ok(library)
    }
}

fn of_ir(error: IrError) -> Status {
    status(error.code(), error.to_string())
}

fn of_runtime(error: ferroflow_runtime::Error) -> Status {
    status(error.code(), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::messages::{EnqueueRequest, QueueItem};
    use ferroflow_format::{
        convert::{function_message, tensor_message},
        proto::Message,
    };
    use ferroflow_ir::{DType, Limits, Shape, ValueType, build::GraphBuilder};
    use ferroflow_runtime::ContextOptions;

    fn session() -> EagerSession {
        let limits = Limits { tensor_bytes: 1 << 20, ..Limits::default() };
        let context = Context::with_options(ContextOptions { limits, ..ContextOptions::default() });
        EagerSession::new(1, "/job:worker/replica:0/task:0/device:CPU:0", context, Arc::default())
    }

    fn handle(op_id: i64) -> RemoteInput {
        let handle = RemoteTensorHandle { op_id, dtype: 1, ..RemoteTensorHandle::default() };
        RemoteInput { item: Some(RemoteInputKind::Handle(handle)) }
    }

    /// A tensor, an op on it, a function that is called with the result, and a tensor that is let go.
    fn queue() -> Vec<QueueItemKind> {
        let two = HostTensor::vector(&[1.0f32, 2.0]).unwrap();
        let sent = SendTensorOp {
            op_id: 1,
            tensors: vec![tensor_message(&two).unwrap()],
            ..SendTensorOp::default()
        };
        let ty = AttrValue { value: Some(Value::Type(1)) };
        let add = RemoteOperation {
            id: 2,
            name: "AddV2".into(),
            attrs: HashMap::from([("T".to_string(), ty)]),
            op_inputs: vec![handle(1), handle(1)],
            ..RemoteOperation::default()
        };
        let mut builder = GraphBuilder::new();
        let x = builder.arg("x", ValueType::new(DType::F32, Shape::new([2]).unwrap())).unwrap();
        let negative = builder.call("Neg", "negative", &[x]).unwrap()[0];
        let def = builder.finish_function("f", &[("y", negative)]);
        let def = function_message(&def, &FunctionLibrary::new()).unwrap();
        let function =
            RegisterFunctionOp { function_def: Some(def), ..RegisterFunctionOp::default() };
        let call = RemoteOperation {
            id: 3,
            name: "f".into(),
            is_function: true,
            op_inputs: vec![handle(2)],
            ..RemoteOperation::default()
        };
        vec![
            QueueItemKind::SendTensor(sent),
            QueueItemKind::Operation(add),
            QueueItemKind::RegisterFunction(Box::new(function)),
            QueueItemKind::Operation(call),
            QueueItemKind::Decref(RemoteTensorHandle { op_id: 1, ..Default::default() }),
        ]
    }

    #[test]
    fn a_queue_is_worked_on_in_its_order() {
        let session = session();
        for item in queue() {
            session.run(item).unwrap();
        }
        let tensors = session.tensors.lock();
        let negative = tensors[&(3, 0)].host().unwrap().as_slice::<f32>().unwrap();
        assert_eq!(negative, [-2.0, -4.0]);
        assert!(!tensors.contains_key(&(1, 0)));
    }

    #[test]
    fn changed_queues_are_errors_or_other_queues() {
        let items = queue().into_iter().map(|item| QueueItem { item: Some(item) }).collect();
        let bytes = EnqueueRequest { context_id: 1, queue: items }.encode_to_vec();
        let mut random = 1u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        for _ in 0..3000 {
            let mut changed = bytes.clone();
            for _ in 0..1 + next(3) {
                let at = next(changed.len());
                match next(3) {
                    0 => changed[at] = next(256) as u8,
                    1 => changed.truncate(changed.len() - 1 - next(8)),
                    _ => changed.insert(at, next(256) as u8),
                }
            }
            let Ok(request) = EnqueueRequest::decode(&*changed) else { continue };
            let session = session();
            for item in request.queue.into_iter().filter_map(|item| item.item) {
                // What it answers depends on the change.
                let _ = session.run(item);
            }
        }
    }
}
