//! What the command line itself can get wrong.

use crate::support::{oxmlx, run};

/// Checked before the model is opened: this one does not exist.
fn generate(args: &[&str]) -> crate::support::Ran {
    run(["generate", "--model", "missing", "--prompt", "hi"].iter().chain(args))
}

#[test]
fn sampling_out_of_range_is_named() {
    for value in ["-1", "nan", "inf", "-inf", "1e99"] {
        generate(&[&format!("--temp={value}")]).failed(&["--temperature: "]);
        generate(&[&format!("--top-n-sigma={value}")]).failed(&["--top-n-sigma: "]);
        generate(&[&format!("--dry-multiplier={value}")]).failed(&["--dry-multiplier: "]);
        generate(&[&format!("--dry-base={value}")]).failed(&["--dry-base: "]);
        generate(&[&format!("--mirostat-tau={value}")]).failed(&["--mirostat-tau: "]);
        generate(&[&format!("--repetition-penalty={value}")]).failed(&["--repetition-penalty: "]);
        generate(&[&format!("--xtc-probability={value}")]).failed(&["--xtc-probability: "]);
        generate(&[&format!("--dynamic-temperature-range={value}")]).failed(&["--dynamic-temperature-range: "]);
    }
    generate(&["--temp", "-1"]).failed(&["temperature", "-1"]);
    for value in ["-0.1", "0", "1.5", "nan"] {
        generate(&["--top-p", value]).failed(&["--top-p: "]);
        generate(&["--typical-p", value]).failed(&["--typical-p: "]);
    }
    for value in ["-0.1", "1.5", "nan"] {
        generate(&["--min-p", value]).failed(&["min-p"]);
    }
    for flag in ["--frequency-penalty", "--presence-penalty"] {
        generate(&[flag, "nan"]).failed(&[&format!("{flag}: ")]);
    }
    generate(&["--mirostat-tau", "5", "--mirostat-eta", "2"]).failed(&["--mirostat-eta: "]);
    generate(&["--dry-allowed-length", "0"]).failed(&["--dry-allowed-length: "]);
    for flag in ["--penalty-window", "--dry-window"] {
        generate(&[flag, "-2"]).failed(&[flag, "-1 is the whole history"]);
        generate(&[flag, "x"]).failed(&[flag, "x"]);
    }
    generate(&["--logit-bias", "-1=3"]).failed(&["--logit-bias: ", "-1"]);
    generate(&["--logit-bias", "5=nan"]).failed(&["--logit-bias: ", "NaN"]);
    generate(&["--logit-bias", "5"]).failed(&["--logit-bias", "ID=B"]);
    generate(&["--suppress", "-1"]).failed(&["--suppress: ", "-1"]);
    generate(&["--language-bias", "elvish=1"]).failed(&["--language-bias", "elvish", "latin"]);
    generate(&["--sampling-order", "random"]).failed(&["--sampling-order", "temperature-first"]);
    generate(&["--json-schema", "{}", "--regex", "a"]).failed(&["--json-schema", "--regex"]);
    generate(&["--stop", ""]).failed(&["stop"]);
    run(["chat", "--model", "missing", "--stop", ""]).failed(&["stop"]);
}

#[test]
fn values_of_the_wrong_kind_are_one_line() {
    for flag in ["--max-tokens", "--top-k", "--seed", "--prefill-chunk"] {
        for value in ["-1", "x", "1.5", "99999999999999999999"] {
            generate(&[flag, value]).failed(&[flag, value]);
        }
    }
    generate(&["--temp", "warm"]).failed(&["--temp", "warm"]);
    for tolerance in ["-1", "nan", "inf", "x"] {
        run(["verify", "a", "b", "--tolerance", tolerance]).failed(&["--tolerance"]);
    }
}

#[test]
fn unknown_and_missing_arguments_are_one_line() {
    generate(&["--bogus"]).failed(&["--bogus", "--help"]);
    generate(&["--max-token", "3"]).failed(&["--max-token", "'--max-tokens'"]);
    generate(&["--raw", "--system", "x"]).failed(&["--raw", "--system"]);
    run(["generate"]).failed(&["--model", "--prompt"]);
    run(["generat"]).failed(&["generat", "'generate'"]);
    run(["verify", "only"]).failed(&["EXPECTED"]);
}

#[test]
fn help_and_version_end_well() {
    assert_eq!(run(["--version"]).done(), concat!("oxmlx ", env!("CARGO_PKG_VERSION"), "\n"));
    for args in [&["--help"][..], &["generate", "--help"], &["help", "chat"]] {
        assert!(run(args).done().contains("Usage: oxmlx"));
    }
    let nothing = run([""; 0]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(2), ""));
    assert!(nothing.err.contains("Usage: oxmlx <COMMAND>"));
}

#[cfg(unix)]
#[test]
fn argument_that_is_no_text_is_one_line() {
    use std::os::unix::ffi::OsStrExt;
    let prompt = std::ffi::OsStr::from_bytes(b"a\xffb");
    let output = oxmlx(["generate", "--model", "missing", "--prompt"]).arg(prompt).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stderr.iter().filter(|&&b| b == b'\n').count(), 1);
}

#[test]
fn an_environment_variable_of_no_known_value_is_named() {
    for name in ["OXMLX_CPU_KERNELS", "OXMLX_FORCE_SYNC"] {
        let output = oxmlx(["info"]).env(name, "maybe").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(name) && said.contains("maybe"), "{said}");
    }
}
