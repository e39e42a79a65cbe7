//! Compressed bytes: `DecodeCompressed`.

use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error, Shape};
use flate2::{bufread::GzDecoder, read::ZlibDecoder};
use std::{
    io::{ErrorKind, Read},
    sync::Arc,
};

pub(crate) const KERNELS: &[(&str, Build)] = &[("DecodeCompressed", decode)];

#[derive(Debug, Clone, Copy)]
enum Method {
    None,
    Zlib,
    Gzip,
}

fn decode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let method = match call.attrs.string("compression_type")? {
        "" => Method::None,
        "ZLIB" => Method::Zlib,
        "GZIP" => Method::Gzip,
        "ZSTD" => return Ok(None),
        other => return Err(call.wrong("compression_type", "empty, ZLIB, GZIP or ZSTD", other)),
    };
    let shape = call.shape(0).clone();
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let mut decoded = Vec::new();
        for bytes in io.strings(0)? {
            decoded.push(match method {
                Method::None => bytes.clone(),
                Method::Zlib => read_all(io, ZlibDecoder::new(&bytes[..]))?,
                Method::Gzip => members(io, bytes)?,
            });
        }
        Bytes::write(io, 0, DType::String, &shape, |out| {
            out.clone_from_slice(&decoded);
            Ok(())
        })
    })))
}

/// The first bytes of a member of a gzip file.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Contents of the members of a gzip file, one after the other.
fn members(io: &Io<'_>, bytes: &[u8]) -> Result<Bytes> {
    let (mut rest, mut all) = (bytes, Vec::new());
    while !rest.is_empty() {
        if rest.iter().zip(MAGIC).any(|(found, expected)| *found != expected) {
            return Err(data_loss("a member of a gzip file begins otherwise".into()));
        }
        let mut decoder = GzDecoder::new(rest);
        let member = read_all(io, &mut decoder)?;
        io.check_size(DType::U8, &Shape::new([all.len() + member.len()])?)?;
        all.extend_from_slice(&member);
        let left = decoder.into_inner();
        // A member that is cut off may have been read to no end.
        rest = if left.len() < rest.len() { left } else { &[] };
    }
    Ok(all.into())
}

fn data_loss(detail: String) -> crate::Error {
    Error::Status { code: Code::DataLoss, op: "DecodeCompressed".into(), detail }.into()
}

/// All bytes that can be read; bytes that are cut off return what they hold.
fn read_all(io: &Io<'_>, mut from: impl Read) -> Result<Bytes> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 1 << 14]);
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(all.into()),
            Ok(n) => {
                io.check_size(DType::U8, &Shape::new([all.len() + n])?)?;
                all.extend_from_slice(&piece[..n]);
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(all.into()),
            Err(error) => return Err(data_loss(error.to_string())),
        }
    }
}
