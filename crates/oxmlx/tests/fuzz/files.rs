//! Damaged GGUF, SafeTensors and NPY files.

use std::sync::Arc;

use memmap2::MmapMut;
use oxmlx::io::{self, GgufValue};
use oxmlx::{Array, Dtype, Result, ops};

use crate::draw::Draw;

/// Every tenth call reads a file.
pub(crate) fn is_turn(index: u64) -> bool {
    index % 10 == 9
}

/// The bytes of a good file of one of three formats.
fn good(draw: &mut Draw, format: usize) -> Result<Vec<u8>> {
    let arrays: Vec<Array> = (0..3).map(|_| draw.array()).filter(|a| a.size() < 1 << 16).collect();
    let named: Vec<(&str, Array)> = ["a", "b.weight", "c"].into_iter().zip(arrays).collect();
    match format {
        0 => io::save_safetensors_bytes(&named, &[("by", "fuzz")]),
        1 => {
            let floats = named.into_iter().map(|(name, a)| Ok((name, ops::astype(&a, Dtype::Float32)?)));
            let floats: Vec<(&str, Array)> = floats.collect::<Result<_>>()?;
            io::save_gguf_bytes(&floats, &[("general.name", GgufValue::Text("fuzz".into()))])
        }
        _ => io::save_npy_bytes(&ops::astype(&draw.array(), Dtype::Float32)?),
    }
}

/// Reads a damaged file and computes what it gives.
pub(crate) fn call(seed: u64, index: u64) -> (&'static str, Result<()>) {
    let mut draw = Draw::new(seed, index);
    let format = draw.below(3);
    ("a damaged file", read(&mut draw, format))
}

fn read(draw: &mut Draw, format: usize) -> Result<()> {
    let mut bytes = good(draw, format)?;
    for _ in 0..1 + draw.below(8) {
        let at = draw.below(bytes.len().max(1));
        match draw.below(6) {
            0 => bytes.truncate(at),
            1 if !bytes.is_empty() => drop(bytes.remove(at)),
            2 if at < bytes.len() => bytes.insert(at, draw.below(256) as u8),
            3 if at + 8 <= bytes.len() => {
                let value = draw.one_of(&[u64::MAX, 1 << 63, 1 << 40, 1 << 31, 0]);
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
            // Headers come first.
            4 if bytes.len() > 64 => bytes[draw.below(64)] = draw.below(256) as u8,
            _ if at < bytes.len() => bytes[at] ^= 1 << draw.below(8),
            _ => {}
        }
    }
    let arrays: Vec<Array> = match format {
        0 if draw.flag() => mapped(&bytes)?,
        0 => io::load_safetensors_bytes(bytes)?.arrays.into_iter().map(|(_, a)| a).collect(),
        1 => io::load_gguf_bytes(&bytes)?.arrays.into_iter().map(|(_, a)| a).collect(),
        _ => vec![io::load_npy_bytes(bytes)?],
    };
    oxmlx::eval(&arrays)
}

/// The same file, mapped; and its bytes as an array.
fn mapped(bytes: &[u8]) -> Result<Vec<Array>> {
    let failed = |e: std::io::Error| oxmlx::Error::new(oxmlx::ErrorKind::Io, "fuzz", e.to_string());
    let mut map = MmapMut::map_anon(bytes.len().max(1)).map_err(failed)?;
    map[..bytes.len()].copy_from_slice(bytes);
    let map = Arc::new(map.make_read_only().map_err(failed)?);
    let mut arrays = vec![Array::from_mmap(Arc::clone(&map), 0, [bytes.len() as i32], Dtype::Uint8)?.0];
    arrays.extend(io::map_safetensors(map)?.arrays.into_iter().map(|(_, a, _)| a));
    Ok(arrays)
}
