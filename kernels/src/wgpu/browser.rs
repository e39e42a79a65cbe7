//! The adapter of a browser, by WebGPU.
//!
//! `browser.js` has the objects, this module their numbers: so a device may be shared as every other, though
//! objects of JavaScript may not. What the browser answers comes as promises. Nothing in it may wait, so the stack of
//! the call is suspended until they settle (JavaScript Promise Integration): a call that uses a device comes in by an
//! export that may suspend, as those of `web/` do.

#![allow(deprecated, reason = "wasm-bindgen marks suspension as experimental by this")]

use super::AdapterFacts;
use crate::shader::{Caps, Grid, ShaderDialect};
use std::sync::Arc;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

/// Bytes of a buffer beyond which it is worth a wait to know whether there is room for it.
const LARGE: u64 = 1 << 20;

#[wasm_bindgen(module = "/src/wgpu/browser.js")]
extern "C" {
    #[wasm_bindgen(catch, suspending, js_name = connect)]
    fn connect() -> Result<bool, JsValue>;
    #[wasm_bindgen(js_name = adapterName)]
    fn adapter_name() -> String;
    #[wasm_bindgen(js_name = isSoftware)]
    fn is_software() -> bool;
    #[wasm_bindgen(js_name = hasHalves)]
    fn has_halves() -> bool;
    #[wasm_bindgen(js_name = mostBindings)]
    fn most_bindings() -> u32;
    #[wasm_bindgen(js_name = mostBytes)]
    fn most_bytes() -> f64;
    #[wasm_bindgen(js_name = lossReason)]
    fn loss_reason() -> Option<String>;
    #[wasm_bindgen(js_name = takeDefect)]
    fn take_defect() -> Option<String>;
    #[wasm_bindgen(catch, suspending)]
    fn compile(
        label: &str,
        code: &str,
        entry: &str,
        inputs: u32,
        outputs: u32,
    ) -> Result<u32, JsValue>;
    #[wasm_bindgen(catch, suspending)]
    fn allocate(size: f64, is_copy: bool) -> Result<u32, JsValue>;
    #[wasm_bindgen(js_name = allocateSmall)]
    fn allocate_small(size: f64, is_copy: bool) -> u32;
    fn record(pipeline: u32, buffers: &[u32], width: u32, height: u32);
    #[wasm_bindgen(js_name = forgetGroups)]
    fn forget_groups();
    #[wasm_bindgen(js_name = recordCopy)]
    fn record_copy(from: u32, to: u32, size: f64);
    fn send();
    fn write(buffer: u32, bytes: &[u8]);
    #[wasm_bindgen(catch, suspending)]
    fn wait() -> Result<(), JsValue>;
    #[wasm_bindgen(catch, suspending)]
    fn read(buffer: u32, bytes: f64) -> Result<Vec<u8>, JsValue>;
    #[wasm_bindgen(js_name = drop)]
    fn drop_object(object: u32);
}

/// An object of `browser.js`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct BrowserObject(u32);

impl Drop for BrowserObject {
    fn drop(&mut self) {
        drop_object(self.0);
    }
}

/// A compiled text.
#[derive(Clone)]
pub(crate) struct BrowserPipeline(Arc<BrowserObject>);

/// Memory of the device.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BrowserBuffer {
    object: BrowserObject,
    size: u64,
}

impl BrowserBuffer {
    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

/// The device of the adapter, and its queue; `browser.js` has one.
pub(crate) struct BrowserConnection;

/// The text of an exception.
fn text(exception: JsValue) -> String {
    exception.as_string().unwrap_or_else(|| format!("{exception:?}"))
}

impl BrowserConnection {
    /// A connection to the browser's adapter, if it has one.
    pub(super) fn all() -> Vec<(AdapterFacts, BrowserConnection)> {
        if !connect().unwrap_or(false) {
            return Vec::new();
        }
        let caps = Caps {
            tiles: !is_software(),
            halves: has_halves(),
            // WGSL of browsers has no integers of 64 bits.
            ..Caps::default()
        };
        let facts = AdapterFacts {
            name: adapter_name(),
            caps,
            most_bindings: most_bindings() as usize,
            most_bytes: most_bytes() as u64,
        };
        vec![(facts, BrowserConnection)]
    }

    pub(super) fn loss(&self) -> Option<String> {
        loss_reason()
    }

    /// The first defect found since the last look.
    pub(super) fn take_defect(&self) -> Option<String> {
        take_defect()
    }

    /// Compiles a text that reads so many buffers and writes so many.
    pub(super) fn compile(
        &self,
        op: &'static str,
        code: &str,
        (n_inputs, n_outputs): (usize, usize),
    ) -> Result<BrowserPipeline, String> {
        let entry = ShaderDialect::Wgsl.entry();
        let made = compile(op, code, entry, n_inputs as u32, n_outputs as u32);
        made.map(|number| BrowserPipeline(Arc::new(BrowserObject(number)))).map_err(text)
    }

    /// Records a call.
    pub(super) fn record(
        &self,
        pipeline: &BrowserPipeline,
        buffers: &[&BrowserBuffer],
        (width, height): Grid,
    ) {
        let numbers: Vec<u32> = buffers.iter().map(|buffer| buffer.object.0).collect();
        record(pipeline.0.0, &numbers, width, height);
    }

    /// Lets go of bind groups, which keep the memory that they bind.
    pub(super) fn forget_groups(&self) {
        forget_groups();
    }

    /// Records a copy of the first bytes of a buffer.
    pub(super) fn record_copy(&self, from: &BrowserBuffer, to: &BrowserBuffer, size: u64) {
        record_copy(from.object.0, to.object.0, size as f64);
    }

    /// Sends what was recorded.
    pub(super) fn send(&self) {
        send();
    }

    /// Waits for what was sent.
    pub(super) fn wait(&self) -> Result<(), String> {
        wait().map_err(text)
    }

    /// Memory for kernels, if there is so much.
    pub(super) fn allocate(&self, size: u64) -> Option<BrowserBuffer> {
        self.create(size, false)
    }

    /// Memory that [`read`](BrowserConnection::read) reads, if there is so much.
    pub(super) fn allocate_copy(&self, size: u64) -> Option<BrowserBuffer> {
        self.create(size, true)
    }

    fn create(&self, size: u64, is_copy: bool) -> Option<BrowserBuffer> {
        let number = match size < LARGE {
            true => allocate_small(size as f64, is_copy),
            false => allocate(size as f64, is_copy).unwrap_or(0),
        };
        (number > 0).then(|| BrowserBuffer { object: BrowserObject(number), size })
    }

    /// Writes to memory; the length is a multiple of four.
    pub(super) fn write(&self, buffer: &BrowserBuffer, bytes: &[u8]) {
        write(buffer.object.0, bytes);
    }

    /// The first bytes of memory, after what was sent.
    pub(super) fn read(&self, copy: BrowserBuffer, bytes: usize) -> Result<Vec<u8>, String> {
        read(copy.object.0, bytes as f64).map_err(text)
    }
}
