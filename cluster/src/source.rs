//! The member that sends in a broadcast: the leader of the cluster tells the others.

use crate::{
    engine::LONGEST,
    group::ClusterGroup,
    messages::{BROADCAST, CompleteInstanceRequest, CompleteInstanceResponse},
};
use ferroflow_ir::PartialShape;
use ferroflow_runtime::{
    Result,
    collective::{Broadcast, CollectiveCall, CollectiveError},
};

impl ClusterGroup {
    /// The rank of the member that sends in a broadcast, as the leader knows it.
    pub(crate) fn source(
        &self,
        call: &CollectiveCall<'_>,
        instance: i32,
        sent: &Broadcast,
    ) -> Result<usize> {
        let is_source = matches!(sent, Broadcast::Send(_));
        let shared = &*self.shared;
        let known = shared.sources.lock().get(&(self.key, instance)).copied();
        let source = match known {
            Some(source) => source,
            None => self.ask_source(call, instance, sent, is_source)?,
        };
        if is_source != (source == self.rank) {
            let found = self.members.get(source).map_or("none", |member| member.name.as_str());
            let expected = if is_source { "this member" } else { "another member" };
            return Err(CollectiveError::Group {
                group: self.key,
                what: "the member that sends",
                expected: expected.into(),
                found: found.into(),
            }
            .into());
        }
        Ok(source)
    }

    fn ask_source(
        &self,
        call: &CollectiveCall<'_>,
        instance: i32,
        sent: &Broadcast,
        is_source: bool,
    ) -> Result<usize> {
        let shared = &*self.shared;
        let (dtype, shape) = match sent {
            Broadcast::Send(tensor) => (tensor.dtype(), PartialShape::from(tensor.shape())),
            Broadcast::Receive(dtype, shape) => (*dtype, shape.clone()),
        };
        let request = CompleteInstanceRequest {
            name: call.op.into(),
            r#type: BROADCAST,
            data_type: dtype.number(),
            shape: Some(ferroflow_format::convert::partial_shape_message(&shape)),
            group_key: self.key,
            group_size: self.members.len() as i32,
            instance_key: instance,
            device_type: "CPU".into(),
            device: shared.state.device.name.clone(),
            is_source,
        };
        let method = "/tensorflow.WorkerService/CompleteInstance";
        let missing = || vec!["the member that sends".into()];
        let answer = shared.peers[0].call::<_, CompleteInstanceResponse>(method, request, LONGEST);
        let rank = shared.wait(call, self.key, &missing, answer)?.source_rank;
        let source = usize::try_from(rank).ok().filter(|rank| *rank < self.members.len());
        let source = source.ok_or_else(|| CollectiveError::Group {
            group: self.key,
            what: "the rank of the member that sends",
            expected: format!("below {}", self.members.len()),
            found: rank.to_string(),
        })?;
        shared.sources.lock().insert((self.key, instance), source);
        Ok(source)
    }
}
