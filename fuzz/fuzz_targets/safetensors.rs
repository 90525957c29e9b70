//! A SafeTensors file: our reader, and MLX's loader behind oxmlx's checks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxmlx_lm::Checkpoint;

fuzz_target!(|data: &[u8]| {
    if let Ok(file) = oxmlx::io::load_safetensors_bytes(data.to_vec()) {
        file.arrays.iter().for_each(|(_, array)| drop(array.eval()));
    }
    let path = std::env::temp_dir().join(format!("oxmlx-fuzz-{}.safetensors", std::process::id()));
    if std::fs::write(&path, data).is_ok()
        && let Ok(checkpoint) = Checkpoint::open(&path)
    {
        checkpoint.names().for_each(|name| drop(checkpoint.tensor(name)));
    }
});
