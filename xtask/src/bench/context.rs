//! `cargo xtask bench context`: how the time of a token grows with what stands before it, and what threads do about it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::plot::{Line, lines};
use super::{options, peers};
use crate::error::Error;
use crate::setup;

/// Tokens before the first that is timed.
const CONTEXTS: [usize; 4] = [32, 512, 4096, 16_384];

/// What `bench context` is asked to do.
struct Options {
    rounds: usize,
    tokens: usize,
    config: String,
    bits: usize,
    oxmlx: Option<PathBuf>,
    svg: Option<PathBuf>,
    json: bool,
}

/// One line of the table.
struct Row {
    threads: usize,
    context: usize,
    report: Value,
}

impl Row {
    fn tokens_per_second(&self) -> f64 {
        self.report["decode_tps"].as_f64().unwrap_or(0.0)
    }

    fn ms(&self) -> f64 {
        1e3 / self.tokens_per_second()
    }
}

pub(super) fn run(arguments: &[String]) -> Result<(), Error> {
    let options = parse(arguments)?;
    if options.oxmlx.is_none() {
        setup::ready(false)?;
    }
    let oxmlx = super::command::binary(options.oxmlx.as_ref())?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut threads = vec![1, 2, processors];
    threads.retain(|&n| n <= processors);
    threads.dedup();
    let mut rows = Vec::new();
    for &threads in &threads {
        for context in CONTEXTS {
            let mut command = Command::new(&oxmlx);
            command.args([
                "bench",
                "decode",
                "--json",
                "--config",
                &options.config,
                "--bits",
                &options.bits.to_string(),
            ]);
            for (flag, number) in [
                ("--prompt-tokens", context),
                ("--threads", threads),
                ("--tokens", options.tokens),
                ("--rounds", options.rounds),
            ] {
                command.args([flag, &number.to_string()]);
            }
            let report: Value = peers::parse("oxmlx bench", &peers::output("oxmlx bench", &mut command, "")?)?;
            let row = Row { threads, context, report };
            eprintln!("{threads} threads, {context} tokens before: {:.1}/s", row.tokens_per_second());
            rows.push(row);
        }
    }
    let title = format!("{}, {} bits: time of a token", options.config, options.bits);
    if let Some(path) = &options.svg {
        std::fs::write(path, plot(&title, &rows)).map_err(Error::io("writing", path))?;
    }
    if options.json {
        let runs: Vec<&Value> = rows.iter().map(|row| &row.report).collect();
        println!("{}", json!({ "config": options.config, "bits": options.bits, "runs": runs }));
    } else {
        print!("{}", table(&title, &rows));
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options, Error> {
    let mut parsed = Options {
        rounds: 5,
        tokens: 32,
        config: "smollm2-135m".to_owned(),
        bits: 4,
        oxmlx: None,
        svg: None,
        json: false,
    };
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| Error::Usage(format!("{option} needs a value")));
        match option.as_str() {
            "--rounds" => parsed.rounds = options::number(option, value()?, 1..=1000)?,
            "--tokens" => parsed.tokens = options::number(option, value()?, 2..=4096)?,
            "--config" => parsed.config = value()?.clone(),
            "--bits" => parsed.bits = options::number(option, value()?, 4..=16)?,
            "--oxmlx" => parsed.oxmlx = Some(options::path(value()?)?),
            "--svg" => parsed.svg = Some(options::path(value()?)?),
            "--json" => parsed.json = true,
            _ => Error::unexpected(std::slice::from_ref(option))?,
        }
    }
    Ok(parsed)
}

fn table(title: &str, rows: &[Row]) -> String {
    let mut text =
        format!("{title}\n\n| threads | tokens before | tokens/s | ms a token |\n| --: | --: | --: | --: |\n");
    for row in rows {
        let (threads, context) = (row.threads, row.context);
        text += &format!("| {threads} | {context} | {:.1} | {:.2} |\n", row.tokens_per_second(), row.ms());
    }
    text
}

fn plot(title: &str, rows: &[Row]) -> String {
    let mut threads: Vec<usize> = rows.iter().map(|row| row.threads).collect();
    threads.dedup();
    let line = |threads: usize| Line {
        name: if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") },
        points: rows.iter().filter(|row| row.threads == threads).map(|row| [row.context as f64, row.ms()]).collect(),
    };
    let drawn: Vec<Line> = threads.into_iter().map(line).collect();
    lines(title, ["tokens before it", "ms"], &drawn)
}

#[cfg(test)]
mod tests {
    use super::{Row, parse, plot, table};
    use serde_json::json;

    #[test]
    fn times_are_the_inverse_of_rates() {
        let rows = [(1, 32, 100.0), (1, 512, 50.0), (2, 32, 200.0)].map(|(threads, context, tps)| Row {
            threads,
            context,
            report: json!({ "decode_tps": tps }),
        });
        assert!(table("x", &rows).contains("| 1 | 512 | 50.0 | 20.00 |\n"));
        let svg = plot("x", &rows);
        assert!(svg.contains("1 thread<") && svg.contains("2 threads<") && svg.matches("<circle").count() == 3);
    }

    #[test]
    fn options_that_measure_nothing_are_refused() {
        for line in ["--rounds 0", "--tokens 1", "--svg", "--bits x", "--what"] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert!(parse(&words).is_err(), "{line}");
        }
    }
}
