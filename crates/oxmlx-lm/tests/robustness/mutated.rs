//! Mutated GGUF and SafeTensors files through every reader there is, MLX's own included, in child processes: no crash, and no more
//! memory than the file's size and 64 MiB.
//!
//! `OXMLX_FUZZ_FILES` and `OXMLX_FUZZ_SEED` set how many of each format and which (`cargo xtask fuzz --files N`). File `n` of a seed
//! depends on nothing but the two numbers.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use memmap2::MmapMut;
use oxmlx::{Array, io};
use oxmlx_lm::Checkpoint;

use crate::child::{self, number};
use crate::random::Lcg;
use crate::small_model::small_model;

/// Beyond the file's size.
const ROOM: u64 = 64 << 20;

/// The sound files of a format, smallest first.
static SOUND: LazyLock<[Vec<Vec<u8>>; 2]> = LazyLock::new(|| {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut safetensors: Vec<PathBuf> = files_below(&fixtures);
    safetensors.sort();
    let mut safetensors: Vec<Vec<u8>> = safetensors.iter().map(|path| std::fs::read(path).unwrap()).collect();
    safetensors.sort_by_key(Vec::len);
    safetensors.truncate(12);
    let mut gguf = vec![small_model()];
    // MLX's writer knows floats and 8 to 32 bit integers.
    for bytes in &safetensors[..4] {
        let arrays = io::load_safetensors_bytes(bytes.clone()).unwrap().arrays;
        let named: Vec<(&str, Array)> = arrays.iter().map(|(name, a)| (name.as_str(), a.clone())).collect();
        let metadata = [("general.name", io::GgufValue::Text("x".into()))];
        gguf.extend(io::save_gguf_bytes(&named, &metadata));
    }
    [gguf, safetensors]
});

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if path.extension().is_some_and(|e| e == "safetensors") {
            found.push(path);
        }
    }
    found
}

/// A sound file with some damage: bits, bytes, lengths, cuts and splices, mostly in the header.
fn mutated(seed: u64, index: u64, format: usize) -> Vec<u8> {
    let mut random = Lcg(seed ^ index.wrapping_mul(0xD1B5_4A32_D192_ED03));
    random.next();
    let sound = &SOUND[format];
    let mut bytes = sound[random.below(sound.len())].clone();
    // Where a SafeTensors header ends is in its first bytes; a GGUF one is some kilobytes.
    let header = if format == 1 { u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize } else { 12_000 };
    for _ in 0..1 + random.below(6) {
        if bytes.len() < 16 {
            break;
        }
        let end = if random.below(4) == 0 { bytes.len() } else { header.clamp(16, bytes.len()) };
        let at = random.below(end - 8);
        match random.below(9) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.next() as u8,
            3 => bytes.truncate(at),
            4 => {
                let value = [u64::MAX, 1 << 63, 1 << 62, 1 << 40, 1 << 32, 1 << 31, (1 << 31) - 1, 0][random.below(8)];
                let width = [4, 8][random.below(2)];
                bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            }
            // A number of a JSON header, made longer.
            5 => {
                if let Some(digit) = (at..end).find(|&i| bytes[i].is_ascii_digit()) {
                    let more = random.below(20);
                    bytes.splice(digit..digit, std::iter::repeat_n(b'9', more));
                }
            }
            6 => {
                let other = &sound[random.below(sound.len())];
                let from = random.below(other.len());
                let part = &other[from..(from + random.below(400)).min(other.len())];
                let until = (at + random.below(400)).min(bytes.len());
                bytes.splice(at..until, part.iter().copied());
            }
            7 => bytes[at] = b"\"\\{}[]:,-e.0\0"[random.below(13)],
            _ => {
                let until = (at + random.below(64)).min(bytes.len());
                bytes.drain(at..until);
            }
        }
    }
    bytes
}

/// Everything that reads such a file. What it says of it does not matter.
fn read(bytes: &[u8], format: usize, path: &Path) {
    std::fs::write(path, bytes).unwrap();
    let arrays: Vec<(String, Array)> = if format == 0 {
        crate::use_all(bytes.to_vec());
        let both = [io::load_gguf(path), io::load_gguf_bytes(bytes)];
        both.into_iter().flatten().flat_map(|file| file.arrays).collect()
    } else {
        if let Ok(checkpoint) = Checkpoint::open(path) {
            for name in checkpoint.names() {
                let _ = checkpoint.tensor(name);
            }
        }
        let mut map = MmapMut::map_anon(bytes.len().max(1)).unwrap();
        map[..bytes.len()].copy_from_slice(bytes);
        let mapped = io::map_safetensors(Arc::new(map.make_read_only().unwrap()));
        let both = [io::load_safetensors(path), io::load_safetensors_bytes(bytes.to_vec())];
        let mapped = mapped.into_iter().flat_map(|file| file.arrays).map(|(name, a, _)| (name, a));
        both.into_iter().flatten().flat_map(|file| file.arrays).chain(mapped).collect()
    };
    // One at a time: the sum over readers is no reader's memory.
    for (_, array) in arrays {
        let _ = array.eval();
    }
    let _ = oxmlx::memory::clear_cache();
}

/// The most memory that the process has held since it last asked, and how much it holds now; nothing where the system does not tell.
fn resident() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    };
    // 5 sets the peak back.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    Some((field("VmHWM:")?, field("VmRSS:")?))
}

#[test]
fn files_of_a_child_process() {
    let path = std::env::temp_dir().join(format!("oxmlx-mutated-{}", std::process::id()));
    let before = LazyLock::new(|| {
        // What reading takes at all: MLX's threads, pages of the program.
        (0..2).for_each(|format| read(&SOUND[format][0], format, &path));
        resident().map(|(_, now)| now)
    });
    child::work(|index, told| {
        let numbers: Vec<u64> = told.split(' ').map(|n| n.parse().unwrap()).collect();
        let before = *before;
        let bytes = mutated(numbers[1], index, numbers[0] as usize);
        read(&bytes, numbers[0] as usize, &path);
        let (Some(before), Some((peak, _))) = (before, resident()) else { return Ok(()) };
        let (taken, size) = (peak.saturating_sub(before), bytes.len() as u64);
        if taken > size + ROOM { Err(format!("takes {taken} bytes for a file of {size}")) } else { Ok(()) }
    });
    let _ = std::fs::remove_file(&path);
}

#[test]
fn mutated_files_are_read_or_refused_in_bounded_memory() {
    let (files, seed) = (number("OXMLX_FUZZ_FILES", 200), number("OXMLX_FUZZ_SEED", 1));
    for (format, name) in ["gguf", "safetensors"].into_iter().enumerate() {
        let found = child::findings("mutated::files_of_a_child_process", &format!("{format} {seed}"), files, 20);
        for (index, _) in &found {
            let path = std::env::temp_dir().join(format!("oxmlx-finding-{seed}-{index}.{name}"));
            std::fs::write(path, mutated(seed, *index, format)).unwrap();
        }
        assert!(found.is_empty(), "{name}, seed {seed} (left in {}): {found:#?}", std::env::temp_dir().display());
    }
}
