//! `oxmlx info`.

use serde_json::Value;

use crate::support::run;

#[test]
fn facts_are_those_of_the_machine() {
    let facts: Value = run(["info", "--json"]).json();
    let mlx = &facts["mlx"];
    assert_eq!(facts["oxmlx"], env!("CARGO_PKG_VERSION"));
    assert_eq!(mlx["compiled"], mlx["loaded"]);
    assert!(std::path::Path::new(mlx["library"].as_str().unwrap()).is_file(), "{mlx}");
    assert!(["cpu", "cuda12", "cuda13", "metal"].contains(&mlx["backend"].as_str().unwrap()));
    let gpus = facts["devices"]["gpu"]["count"].as_u64().unwrap();
    assert_eq!(facts["default_device"], if gpus > 0 { "gpu" } else { "cpu" });
    assert_eq!(facts["devices"]["cpu"]["count"], 1);
    assert_eq!(facts["complaints"], serde_json::json!([]));
    let tried = facts["devices"]["cpu"]["capabilities"].as_object().unwrap();
    assert!(tried.len() >= 10 && tried.values().all(|outcome| outcome == "works"), "{tried:?}");
    assert!(facts["distributed_backends"]["ring"].is_boolean());
    if gpus == 0 {
        assert_eq!(facts["host_class"], "cpu");
    }
    let host = &facts["host"];
    assert_eq!(host["architecture"], std::env::consts::ARCH);
    assert_eq!(host["usable_cores"], std::thread::available_parallelism().unwrap().get());
    if cfg!(target_os = "linux") {
        let (total, free) = (host["memory_bytes"].as_u64().unwrap(), host["available_bytes"].as_u64().unwrap());
        let used = facts["memory"]["process_peak_bytes"].as_u64().unwrap();
        assert!(used > 1 << 20 && used < total && free <= total, "{facts}");
    }
}

#[test]
fn text_and_json_tell_the_same() {
    let text = run(["info"]).done();
    let facts: Value = run(["info", "--json"]).json();
    for key in facts.as_object().unwrap().keys() {
        assert!(text.contains(&key.replace('_', " ")), "{key} is not in {text}");
    }
    assert!(text.contains(facts["mlx"]["library"].as_str().unwrap()));
}
