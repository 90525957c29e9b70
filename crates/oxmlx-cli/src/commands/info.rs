//! `oxmlx info`: what MLX this is, on what machine.

use std::io::Write;
use std::process::ExitCode;

use oxmlx::{Device, build_info, memory, runtime};
use serde_json::{Map, Value, json};

use crate::args::InfoArgs;
use crate::failure::Failure;
use crate::stats;

pub(crate) fn run(args: InfoArgs) -> Result<ExitCode, Failure> {
    let facts = gather()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{facts}").map_err(Failure::output)?;
    } else {
        print(&mut out, &facts, 0).map_err(Failure::output)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn gather() -> Result<Value, Failure> {
    // The first call that enters MLX also checks that the library is of the right release.
    let current = Device::current()?;
    let mut devices = Map::new();
    for (name, device) in [("cpu", Device::Cpu), ("gpu", Device::Gpu)] {
        let count = device.count()?;
        let mut facts = Map::from_iter([("count".to_owned(), json!(count))]);
        if count > 0 {
            facts.extend(device.info()?.into_iter().map(|(key, value)| (key, Value::String(value))));
        }
        devices.insert(name.to_owned(), Value::Object(facts));
    }
    Ok(json!({
        "oxmlx": env!("CARGO_PKG_VERSION"),
        "mlx": {
            "pinned": build_info::PINNED_VERSION,
            "compiled": runtime::version_compiled(),
            "loaded": runtime::version_loaded(),
            "library": build_info::loaded_library().map(|path| path.display().to_string()),
            "backend": build_info::BACKEND,
        },
        "host": {
            "system": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
            "usable_cores": std::thread::available_parallelism().ok().map(std::num::NonZero::get),
            "memory_bytes": stats::total_memory(),
            "available_bytes": stats::available_memory(),
        },
        "neural_accelerator_kernels": {
            "built": build_info::NAX_BUILT,
            "loaded": build_info::nax_loaded(),
        },
        "default_device": if current == Device::Gpu { "gpu" } else { "cpu" },
        "devices": devices,
        "memory": {
            "active_bytes": memory::active()?,
            "peak_bytes": memory::peak()?,
            "cached_bytes": memory::cached()?,
            "process_peak_bytes": stats::resident_peak(),
        },
    }))
}

fn print(out: &mut impl Write, value: &Value, depth: usize) -> std::io::Result<()> {
    let Value::Object(fields) = value else { return Ok(()) };
    for (key, value) in fields {
        let label = format!("{:indent$}{}", "", key.replace('_', " "), indent = 2 * depth);
        match value {
            Value::Object(_) => {
                writeln!(out, "{label}")?;
                print(out, value, depth + 1)?;
            }
            Value::String(text) => writeln!(out, "{label:28} {text}")?,
            Value::Null => writeln!(out, "{label:28} unknown")?,
            other => writeln!(out, "{label:28} {other}")?,
        }
    }
    Ok(())
}
