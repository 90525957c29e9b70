//! Thousands of damaged files: never a panic, never more memory than the file justifies.
//!
//! A binary of its own, since it watches the whole process's memory.

use std::sync::Arc;

use oxmlx_lm::gguf::Gguf;
use oxmlx_lm::{ChatTemplate, Checkpoint, LlamaConfig, Mapped, Tokenizer};
use peak_alloc::PeakAlloc;

#[path = "../../oxmlx/tests/support/child.rs"]
mod child;
#[allow(dead_code, reason = "shared with the other tests, which use the rest")]
#[path = "data/gguf_writer.rs"]
mod gguf_writer;
#[path = "robustness/mutated.rs"]
mod mutated;
#[path = "data/random.rs"]
mod random;
#[path = "data/small_model.rs"]
mod small_model;

use random::Lcg;
use small_model::small_model;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Everything that a program does with the file.
fn use_all(bytes: Vec<u8>) -> usize {
    let mut reached = 0;
    let file = Arc::new(Mapped::from_vec("mutated.gguf", bytes));
    let Ok(gguf) = Gguf::parse(&file) else { return reached };
    reached += 1;
    for tensor in gguf.tensors() {
        let _ = tensor.values();
    }
    reached += usize::from(LlamaConfig::from_gguf(&gguf).is_ok());
    if let Ok(checkpoint) = Checkpoint::from_gguf(&gguf, &file) {
        for name in checkpoint.names().map(str::to_owned).collect::<Vec<_>>() {
            let _ = checkpoint.tensor(&name);
            let _ = checkpoint.matrix(name.trim_end_matches(".weight"), 64, 64);
        }
    }
    if let Ok(tokenizer) = Tokenizer::from_gguf(&gguf) {
        reached += 1;
        let _ = tokenizer.encode("ab ba").and_then(|ids| tokenizer.decode(&ids));
        let template = ChatTemplate::from_gguf(&gguf, &tokenizer);
        reached += usize::from(template.and_then(|t| t.render(&[oxmlx_lm::Message::user("x")])).is_ok());
    }
    reached
}

#[test]
fn damaged_gguf_files_never_panic_nor_take_memory_beyond_their_size() {
    let sound = small_model();
    assert_eq!(use_all(sound.clone()), 4);
    // What the sound file takes, with room for other shapes of the same amount of data.
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    use_all(sound.clone());
    let allowed = 4 * (MEMORY.peak_usage() - before) + (1 << 20);

    // Where headers, metadata and tensor descriptions are; the data behind need no damage.
    let directory = sound.len() - 303 * 68 - 64 * 36 - 4 * 40 - 512;
    let mut random = Lcg(77);
    let mut outcomes = [0; 5];
    for round in 0..4000 {
        let mut bytes = sound.clone();
        for _ in 0..1 + random.below(2) {
            let at = random.below(if round % 3 == 0 { 700 } else { directory });
            match random.below(12) {
                0..4 => bytes[at] = random.next() as u8,
                4..8 => bytes[at] ^= 1 << random.below(8),
                8 => bytes[at] = 255,
                9 => bytes.truncate(at.max(1).min(bytes.len())),
                10 => {
                    let value = [0u64, 1, 255, u64::MAX, 1 << 22, 1 << 40, 1 << 63, 303][random.below(8)].to_le_bytes();
                    if let Some(slot) = bytes.get_mut(at..at + 8) {
                        slot.copy_from_slice(&value);
                    }
                }
                _ => {
                    let at = at.min(bytes.len());
                    let end = (at + random.below(40)).min(bytes.len());
                    bytes.drain(at..end);
                }
            }
            bytes.resize(bytes.len().max(directory), 0);
        }
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        outcomes[use_all(bytes)] += 1;
        let taken = MEMORY.peak_usage() - before;
        assert!(taken <= allowed, "round {round} took {taken} bytes, {allowed} allowed");
    }
    // The damage reaches every stage.
    assert!(outcomes.iter().all(|&n| n > 10), "{outcomes:?}");
}

#[test]
fn damaged_safetensors_files_never_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.safetensors");
    let header = r#"{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b.weight":{"dtype":"U32","shape":[2],"data_offsets":[16,24]}}"#;
    let mut sound = (header.len() as u64).to_le_bytes().to_vec();
    sound.extend(header.as_bytes());
    sound.extend([0; 24]);
    let mut random = Lcg(78);
    for _ in 0..1000 {
        let mut bytes = sound.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = if random.below(2) == 0 { random.next() as u8 } else { b"019,:{}[]\"-e"[random.below(12)] };
        }
        bytes.truncate(if random.below(5) == 0 { random.below(bytes.len()) } else { bytes.len() });
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(checkpoint) = Checkpoint::open(&path) {
            for name in checkpoint.names() {
                checkpoint.tensor(name).unwrap();
            }
        }
    }
}
