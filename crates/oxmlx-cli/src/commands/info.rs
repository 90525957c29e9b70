//! `oxmlx info`: what MLX this is, on what machine, what it can do there, and what does not fit.

use std::io::Write;
use std::process::ExitCode;

use oxmlx::claim::Claim;
use oxmlx::distributed::Backend;
use oxmlx::probe::{Identity, capabilities};
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
    // A library of another release: what every other command would say.
    Device::current()?;
    Ok(ExitCode::SUCCESS)
}

fn gather() -> Result<Value, Failure> {
    let identity = Identity::of_this_process();
    let mut facts = library(&identity);
    // A library of another release is told of, and not entered.
    if identity.version_compiled == identity.version_loaded
        && let (Value::Object(facts), Value::Object(more)) = (&mut facts, machine()?)
    {
        facts.extend(more);
    }
    Ok(facts)
}

/// What can be told without entering MLX.
fn library(identity: &Identity) -> Value {
    json!({
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
        "host_class": identity.host_class(),
        "complaints": identity.complaints(),
    })
}

/// What MLX tells.
fn machine() -> Result<Value, Failure> {
    let current = Device::current()?;
    let mut devices = Map::new();
    for (name, device) in [("cpu", Device::Cpu), ("gpu", Device::Gpu)] {
        let count = device.count()?;
        let mut facts = Map::from_iter([("count".to_owned(), json!(count))]);
        if count > 0 {
            facts.extend(device.info()?.into_iter().map(|(key, value)| (key, Value::String(value))));
            let tried =
                capabilities(device)?.into_iter().map(|(c, outcome)| (c.name().to_owned(), json!(outcome.to_string())));
            facts.insert("capabilities".to_owned(), Value::Object(tried.collect()));
            facts.insert(
                "claimed_by_process".to_owned(),
                json!(Claim::holder(device).ok().flatten().map_or("none".to_owned(), |pid| pid.to_string())),
            );
        }
        devices.insert(name.to_owned(), Value::Object(facts));
    }
    let backends = [("ring", Backend::Ring), ("mpi", Backend::Mpi), ("nccl", Backend::Nccl), ("jaccl", Backend::Jaccl)];
    let mut distributed = Map::new();
    for (name, backend) in backends {
        distributed.insert(name.to_owned(), json!(backend.is_available()?));
    }
    Ok(json!({
        "distributed_backends": distributed,
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
            Value::Array(lines) if lines.is_empty() => writeln!(out, "{label:28} none")?,
            Value::Array(lines) => {
                writeln!(out, "{label}")?;
                for line in lines {
                    writeln!(out, "  {}", line.as_str().unwrap_or_default())?;
                }
            }
            Value::Null => writeln!(out, "{label:28} unknown")?,
            other => writeln!(out, "{label:28} {other}")?,
        }
    }
    Ok(())
}
