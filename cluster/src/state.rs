//! State that the services of a task share: buffers that others fetch, and the tasks known to its
//! leader.

use crate::messages::{
    CompleteGroupRequest, CompleteInstanceRequest, CoordinatedTask, DeviceAttributes,
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::{Duration, Instant},
};
use tokio::sync::Notify;
use tonic::Status;

/// The time that a task may be silent before the leader aborts it.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

/// The state of a task.
#[derive(Debug)]
pub(crate) struct WorkerState {
    pub(crate) device: DeviceAttributes,
    /// The number of tasks.
    pub(crate) tasks: usize,
    table: Mutex<Table>,
    changed: Notify,
}

/// A buffer that another task fetches.
#[derive(Debug)]
pub(crate) struct CallBuffer {
    pub(crate) bytes: Bytes,
    /// The call that it is of.
    pub(crate) signature: String,
}

#[derive(Debug, Default)]
struct Table {
    /// Buffers by key, in the order in which they were put there.
    buffers: HashMap<String, VecDeque<CallBuffer>>,
    /// The devices of tasks that have come.
    devices: BTreeMap<i32, Vec<DeviceAttributes>>,
    /// When tasks were heard last, and their incarnations.
    heard: BTreeMap<i32, (Instant, u64)>,
    groups: BTreeMap<i32, PendingGroup>,
    /// The devices that send, by the keys of broadcasts.
    sources: HashMap<(i32, i32), String>,
    /// The tasks that have ended in order.
    done: BTreeSet<i32>,
    /// Why the cluster is no more.
    failure: Option<TaskFailure>,
}

/// A task that is gone.
#[derive(Debug, Clone)]
pub(crate) struct TaskFailure {
    pub(crate) task: String,
    pub(crate) reason: String,
}

#[derive(Debug, Default)]
struct PendingGroup {
    size: i32,
    members: Vec<DeviceAttributes>,
}

impl WorkerState {
    pub(crate) fn new(device: DeviceAttributes, tasks: usize) -> WorkerState {
        WorkerState { device, tasks, table: Mutex::default(), changed: Notify::new() }
    }

    /// Waits until `look` finds what it looks for.
    ///
    /// # Errors
    ///
    /// Its errors, and that of a cluster that is no more.
    async fn wait<R>(
        &self,
        mut look: impl FnMut(&mut Table) -> Result<Option<R>, Status>,
    ) -> Result<R, Status> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut table = self.table.lock();
                if let Some(found) = look(&mut table)? {
                    return Ok(found);
                }
                if let Some(TaskFailure { task, reason }) = &table.failure {
                    return Err(Status::unavailable(format!("{task} is gone: {reason}")));
                }
            }
            changed.await;
        }
    }

    /// Ends all that waits.
    pub(crate) fn fail(&self, task: &str, reason: &str) {
        let failure = TaskFailure { task: task.into(), reason: reason.into() };
        self.table.lock().failure.get_or_insert(failure);
        self.changed.notify_waiters();
    }

    /// Why the cluster is no more.
    pub(crate) fn failure(&self) -> Option<TaskFailure> {
        self.table.lock().failure.clone()
    }

    /// Puts a buffer where another task fetches it.
    pub(crate) fn put(&self, key: String, buffer: CallBuffer) {
        self.table.lock().buffers.entry(key).or_default().push_back(buffer);
        self.changed.notify_waiters();
    }

    /// The next buffer of a key.
    pub(crate) async fn take(&self, key: &str) -> Result<CallBuffer, Status> {
        let taken = self.wait(|table| {
            let Some(buffers) = table.buffers.get_mut(key) else { return Ok(None) };
            let next = buffers.pop_front();
            if buffers.is_empty() {
                table.buffers.remove(key);
            }
            Ok(next)
        });
        let taken = taken.await;
        self.changed.notify_waiters();
        taken
    }

    /// Returns when others have fetched all buffers.
    pub(crate) async fn drained(&self) -> Result<(), Status> {
        self.wait(|table| Ok(table.buffers.is_empty().then_some(()))).await
    }

    /// Notes that a task ends in order.
    pub(crate) fn shut_down(&self, task: &CoordinatedTask) -> Result<(), Status> {
        self.check_task(task)?;
        self.table.lock().done.insert(task.task_id);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Returns when all tasks but the leader have ended in order.
    pub(crate) async fn all_done(&self) -> Result<(), Status> {
        self.wait(|table| Ok((table.done.len() + 1 >= self.tasks).then_some(()))).await
    }

    /// Notes that a task has come, or has come again as another process.
    pub(crate) fn register(&self, task: &CoordinatedTask, incarnation: u64) -> Result<(), Status> {
        self.check_task(task)?;
        let mut table = self.table.lock();
        match table.heard.get(&task.task_id) {
            Some((_, known)) if *known != incarnation => Err(Status::aborted(format!(
                "task {} has come again as another process",
                task.task_id
            ))),
            Some(_) | None => {
                table.heard.insert(task.task_id, (Instant::now(), incarnation));
                Ok(())
            }
        }
    }

    fn check_task(&self, task: &CoordinatedTask) -> Result<(), Status> {
        let is_known = usize::try_from(task.task_id).is_ok_and(|id| id < self.tasks);
        if is_known {
            return Ok(());
        }
        let message = format!("task {} of a cluster of {}", task.task_id, self.tasks);
        Err(Status::invalid_argument(message))
    }

    /// Notes that a task lives.
    pub(crate) fn hear(&self, task: &CoordinatedTask, incarnation: u64) -> Result<(), Status> {
        self.register(task, incarnation)?;
        match self.failure() {
            Some(TaskFailure { task, reason }) => {
                Err(Status::unavailable(format!("{task} is gone: {reason}")))
            }
            None => Ok(()),
        }
    }

    /// The tasks that were heard once and are silent now.
    pub(crate) fn silent(&self) -> Option<i32> {
        let table = self.table.lock();
        let mut heard = table.heard.iter().filter(|(task, _)| !table.done.contains(task));
        heard.find(|(_, heard)| heard.0.elapsed() > SILENCE).map(|(task, _)| *task)
    }

    /// Notes the devices of a task, and waits until all tasks have come. All devices, in the order
    /// of the tasks.
    pub(crate) async fn all_devices(
        &self,
        task: i32,
        devices: Vec<DeviceAttributes>,
    ) -> Result<Vec<DeviceAttributes>, Status> {
        self.table.lock().devices.insert(task, devices);
        self.changed.notify_waiters();
        self.wait(|table| {
            let is_complete = table.devices.len() == self.tasks;
            Ok(is_complete.then(|| table.devices.values().flatten().cloned().collect()))
        })
        .await
    }

    /// Adds a member to a group, and waits until it is complete. The members are in the order of
    /// their names, which is that of the tasks.
    pub(crate) async fn complete_group(
        &self,
        request: &CompleteGroupRequest,
    ) -> Result<Vec<DeviceAttributes>, Status> {
        let wrong = |message: String| Status::invalid_argument(message);
        let member = request.device_attributes.clone();
        let member = member.ok_or_else(|| wrong("a member without a device".into()))?;
        let (key, size) = (request.group_key, request.group_size);
        if usize::try_from(size).map_or(true, |size| size == 0 || size > self.tasks) {
            return Err(wrong(format!("group {key} of {size} members in {} tasks", self.tasks)));
        }
        {
            let mut table = self.table.lock();
            let group = table.groups.entry(key).or_default();
            if group.size == 0 {
                group.size = size;
            }
            if group.size != size {
                let known = group.size;
                return Err(wrong(format!("group {key} has {known} members, not {size}")));
            }
            if !group.members.iter().any(|known| known.name == member.name) {
                if group.members.len() as i32 == size {
                    return Err(wrong(format!("group {key} is complete without {}", member.name)));
                }
                group.members.push(member);
                group.members.sort_by_key(|member| task_of(&member.name));
            }
        }
        self.changed.notify_waiters();
        self.wait(|table| {
            let group = table.groups.get(&key);
            let complete = group.filter(|group| group.members.len() as i32 == group.size);
            Ok(complete.map(|group| group.members.clone()))
        })
        .await
    }

    /// Notes that a member of a group has come to a broadcast, and waits for the one that sends. Its rank.
    pub(crate) async fn complete_broadcast(
        &self,
        request: &CompleteInstanceRequest,
    ) -> Result<i32, Status> {
        let (group, key) = (request.group_key, (request.group_key, request.instance_key));
        if request.is_source {
            let mut table = self.table.lock();
            let known = table.sources.entry(key).or_insert_with(|| request.device.clone());
            if *known != request.device {
                let message = format!("{known} and {} send in {}", request.device, request.name);
                return Err(Status::invalid_argument(message));
            }
        }
        self.changed.notify_waiters();
        self.wait(|table| {
            let members = table.groups.get(&group).map_or(&[][..], |group| &group.members);
            let Some(source) = table.sources.get(&key) else { return Ok(None) };
            let rank = members.iter().position(|member| member.name == *source);
            let absent = || format!("{source} is no member of group {group}");
            Ok(Some(rank.ok_or_else(|| Status::failed_precondition(absent()))? as i32))
        })
        .await
    }
}

/// The number of the task in the name of a device.
pub(crate) fn task_of(device: &str) -> Option<u32> {
    let name: ferroflow_ir::device_name::DeviceName = device.parse().ok()?;
    name.task
}
