//! Files that mutants begin as: those of the tests.

use super::{
    targets::{FOREST_FILES, SeedSource},
    value,
};
use anyhow::{Context as _, Result};
use ferroflow::ir::wire;
use ferroflow::saved_model::{proto, record_file::write_record, write_message};
use flate2::read::GzDecoder;
use prost::Message as _;
use serde_json::Value;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

/// No larger file is mutated: it makes slow mutants, and shows nothing that a small one does not.
const LARGEST: u64 = 1 << 17;

/// The files that a source has, and those of further folders.
pub(super) fn of(source: SeedSource, root: &Path, corpus: &[PathBuf]) -> Result<Vec<Vec<u8>>> {
    let own = ["tests", "saved_model/format/tests", "examples"].map(|folder| root.join(folder));
    let read = |end: &str| -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for folder in own.iter().chain(corpus) {
            collect(folder, end, &mut found)?;
        }
        found.sort();
        Ok(found.iter().map(fs::read).collect::<std::io::Result<_>>()?)
    };
    Ok(match source {
        SeedSource::Files(end) => read(end)?,
        SeedSource::Graphs => models(&read("saved_model.pb")?)
            .filter_map(|graph| graph.meta_graphs.into_iter().next()?.graph_def)
            .map(|graph| graph.encode_to_vec())
            .collect(),
        SeedSource::Texts => {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("saved_model.pbtxt");
            let mut texts = Vec::new();
            for model in models(&read("saved_model.pb")?) {
                write_message(&path, &model)?;
                texts.push(fs::read(&path)?);
            }
            texts.retain(|text| text.len() < LARGEST as usize);
            texts
        }
        SeedSource::Calls(ops) => calls(root, ops)?,
        SeedSource::Tokenizers => tokenizers(root)?,
        SeedSource::Records => {
            let event = proto::Event { wall_time: 1.5, step: 3, ..proto::Event::default() };
            let mut file = Vec::new();
            for text in [&b""[..], b"a record", &event.encode_to_vec()] {
                write_record(&mut file, text)?;
            }
            vec![file]
        }
        SeedSource::Forests => forests(root)?,
        SeedSource::Artifacts => read(".mlirbc")?,
        SeedSource::Archives => {
            let arrays = read(".npy")?;
            arrays.iter().take(6).map(|array| archive(array)).collect()
        }
        SeedSource::Tensors => {
            let header = br#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"I64","shape":[1,1],"data_offsets":[8,16]}}"#;
            let len = (header.len() as u64).to_le_bytes();
            vec![[&len[..], header, &[0; 16]].concat()]
        }
    })
}

fn models(files: &[Vec<u8>]) -> impl Iterator<Item = proto::SavedModel> {
    files.iter().filter_map(|bytes| proto::SavedModel::decode(&bytes[..]).ok())
}

fn collect(folder: &Path, end: &str, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, end, found)?;
        } else if path.to_string_lossy().ends_with(end) && path.metadata()?.len() < LARGEST {
            found.push(path);
        }
    }
    Ok(())
}

fn recorded(root: &Path, op: &str) -> Result<Value> {
    let path = root.join(format!("tests/ops/{op}.json.gz"));
    Ok(serde_json::from_reader(GzDecoder::new(File::open(path)?))?)
}

fn calls(root: &Path, ops: &[&str]) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for op in ops {
        let file = recorded(root, op)?;
        for case in file["cases"].as_array().into_iter().flatten() {
            for input in case["inputs"].as_array().into_iter().flatten() {
                let Ok(tensor) = value::tensor(input) else { continue };
                found.extend(tensor.strings().unwrap_or_default().iter().map(|text| text.to_vec()));
            }
        }
    }
    found.retain(|file| file.len() < LARGEST as usize);
    Ok(found)
}

fn tokenizers(root: &Path) -> Result<Vec<Vec<u8>>> {
    let op = ferroflow::ir::registry::find("SentencepieceOp").context("a record")?;
    let mut found = Vec::new();
    for sequence in
        recorded(root, "SentencepieceTokenizeOp")?["sequences"].as_array().into_iter().flatten()
    {
        let attrs = value::attrs(op, &sequence["steps"][0]["attrs"])?;
        found.push(attrs.bytes("model")?.to_vec());
    }
    Ok(found)
}

/// The files of the forests among the assets of recorded models, those of each as fields of a message.
fn forests(root: &Path) -> Result<Vec<Vec<u8>>> {
    let mut headers = Vec::new();
    collect(&root.join("tests/zoo"), "_spec.pb", &mut headers)?;
    headers.sort();
    let mut found = Vec::new();
    for header in headers {
        let name = header.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let prefix = name.trim_end_matches(FOREST_FILES[1]);
        let read = |name: &str| fs::read(header.with_file_name(format!("{prefix}{name}")));
        let kind = read(FOREST_FILES[2]).or_else(|_| read("random_forest_header.pb"))?;
        let mut message = Vec::new();
        for (field, file) in [(1, read(FOREST_FILES[0])?), (2, fs::read(&header)?), (3, kind)] {
            wire::put_bytes(&mut message, field, &file);
        }
        let nodes = read(FOREST_FILES[3])?;
        let mut rest = match nodes.get(4) {
            Some(0) => &nodes[8..],
            // Packed: a fuzzer would change bytes that cannot be unpacked then.
            _ => continue,
        };
        while let Some((len, behind)) = rest.split_first_chunk::<4>() {
            let (node, behind) = behind.split_at(u32::from_le_bytes(*len) as usize);
            wire::put_bytes(&mut message, 4, node);
            rest = behind;
        }
        found.push(message);
    }
    Ok(found)
}

/// An archive of one array that is stored as it is.
fn archive(array: &[u8]) -> Vec<u8> {
    let name = b"x.npy";
    let crc = {
        let mut crc = flate2::Crc::new();
        crc.update(array);
        crc.sum()
    };
    let len = (array.len() as u32).to_le_bytes();
    let common = [
        &[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..],
        &crc.to_le_bytes(),
        &len,
        &len,
        &(name.len() as u16).to_le_bytes(),
        &[0, 0],
    ]
    .concat();
    let local = [b"PK\x03\x04", &common[..], name, array].concat();
    let start = (local.len() as u32).to_le_bytes();
    let central = [b"PK\x01\x02\x14\x00", &common[..], &[0; 14], name].concat();
    let size = (central.len() as u32).to_le_bytes();
    let end = [b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &size[..], &start, &[0, 0]].concat();
    [local, central, end].concat()
}
