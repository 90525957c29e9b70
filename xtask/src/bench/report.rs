//! Medians, ratios, and how they are shown.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::options::Options;
use super::peers::{Peer, Run};
use super::plot::Bar;

/// All runs of a comparison. The first program is the one that the ratios speak of.
pub(super) struct Report {
    prompt_tokens: usize,
    tokens: usize,
    threads: usize,
    machine: String,
    load: Option<f64>,
    names: Vec<&'static str>,
    runs: Vec<Vec<Run>>,
}

impl Report {
    /// An empty report; notes how busy the machine is before the first run.
    pub(super) fn new(options: &Options, peers: &[Peer]) -> Self {
        Self {
            prompt_tokens: options.prompt_tokens,
            tokens: options.tokens,
            threads: options.threads,
            machine: machine(),
            load: load(),
            names: peers.iter().map(Peer::name).collect(),
            runs: peers.iter().map(|_| Vec::new()).collect(),
        }
    }

    /// Adds a run of program number `which`.
    pub(super) fn add(&mut self, which: usize, run: Run) {
        self.runs[which].push(run);
    }

    /// The report for people.
    pub(super) fn table(&self) -> String {
        let load = self.load.map_or_else(String::new, |load| format!(", load {load:.1} at the start"));
        let mut text = format!(
            "{}{load}\n{} prompt tokens, {} tokens, {} threads, {} rounds; medians, lowest and highest in brackets\n\n",
            self.machine,
            self.prompt_tokens,
            self.tokens,
            self.threads,
            self.runs[0].len()
        );
        let _ =
            writeln!(text, "| program | prefill, tokens/s | oxmlx is | decode, tokens/s | oxmlx is | same tokens |");
        let _ = writeln!(text, "| --- | --: | --: | --: | --: | --: |");
        for which in 0..self.names.len() {
            let (prefill, decode) = (Spread::of(&self.runs[which], prefill), Spread::of(&self.runs[which], decode));
            let (faster_prefill, faster_decode) = if which == 0 {
                (String::new(), String::new())
            } else {
                (format!("{:.2}x", self.ratio(which, prefill_of)), format!("{:.2}x", self.ratio(which, decode_of)))
            };
            let _ = writeln!(
                text,
                "| {} | {prefill} | {faster_prefill} | {decode} | {faster_decode} | {} |",
                self.label(which),
                self.same(which)
            );
        }
        if !self.steady() {
            text.push_str("\nThe runs of one program differ by more than half: the machine was busy, measure again.\n");
        }
        text
    }

    /// Whether no program's fastest run is more than half again as fast as its slowest.
    fn steady(&self) -> bool {
        let even = |spread: Spread| spread.high <= 1.5 * spread.low;
        self.runs.iter().all(|runs| even(Spread::of(runs, prefill)) && even(Spread::of(runs, decode)))
    }

    /// The report for programs: medians, ratios and every run.
    pub(super) fn json(&self) -> Value {
        let mut programs = Map::new();
        for which in 0..self.names.len() {
            let runs = &self.runs[which];
            let mut entry = json!({
                "version": self.label(which),
                "prefill_tps": prefill_of(runs),
                "decode_tps": decode_of(runs),
                "prefill_runs": runs.iter().map(prefill).collect::<Vec<_>>(),
                "decode_runs": runs.iter().map(decode).collect::<Vec<_>>(),
                "same_tokens": self.same(which),
            });
            if which > 0 {
                entry["oxmlx_prefill_ratio"] = json!(self.ratio(which, prefill_of));
                entry["oxmlx_decode_ratio"] = json!(self.ratio(which, decode_of));
            }
            programs.insert(self.names[which].to_owned(), entry);
        }
        json!({
            "machine": self.machine, "load": self.load, "prompt_tokens": self.prompt_tokens, "tokens": self.tokens,
            "threads": self.threads, "steady": self.steady(), "rounds": self.runs[0].len(), "programs": programs,
        })
    }

    /// The medians and spreads as bars.
    pub(super) fn plot(&self) -> String {
        let bars = |figure: fn(&Run) -> f64| -> Vec<Bar> {
            let bar = |(name, runs): (&&'static str, &Vec<Run>)| {
                let spread = Spread::of(runs, figure);
                Bar { name: (*name).to_owned(), height: spread.median, spread: [spread.low, spread.high] }
            };
            self.names.iter().zip(&self.runs).map(bar).collect()
        };
        let title = format!("{} prompt tokens, {} tokens, {} threads", self.prompt_tokens, self.tokens, self.threads);
        super::plot::bars(&title, "tokens/s", &[("prefill", bars(prefill)), ("decode", bars(decode))])
    }

    fn label(&self, which: usize) -> &str {
        match self.runs[which].first() {
            Some(run) if !run.version.is_empty() => &run.version,
            _ => self.names[which],
        }
    }

    /// The first program's median over this one's.
    fn ratio(&self, which: usize, median: fn(&[Run]) -> f64) -> f64 {
        median(&self.runs[0]) / median(&self.runs[which])
    }

    /// How many tokens from the start on are those of the first program's first run, in every run.
    fn same(&self, which: usize) -> usize {
        let Some(reference) = self.runs[0].first() else { return 0 };
        let common = |run: &Run| run.tokens.iter().zip(&reference.tokens).take_while(|(a, b)| a == b).count();
        self.runs[which].iter().map(common).min().unwrap_or(0)
    }
}

fn prefill(run: &Run) -> f64 {
    run.prefill_tps
}

fn decode(run: &Run) -> f64 {
    run.decode_tps
}

fn prefill_of(runs: &[Run]) -> f64 {
    Spread::of(runs, prefill).median
}

fn decode_of(runs: &[Run]) -> f64 {
    Spread::of(runs, decode).median
}

/// Median, lowest and highest of some runs.
struct Spread {
    median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    fn of(runs: &[Run], figure: fn(&Run) -> f64) -> Self {
        let mut figures: Vec<f64> = runs.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(f64::NAN);
        let last = figures.len().saturating_sub(1);
        Self { median: f64::midpoint(at(last / 2), at(last.div_ceil(2))), low: at(0), high: at(last) }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ({:.2} to {:.2})", self.median, self.low, self.high)
    }
}

/// System, architecture, and the processor where the system names it.
fn machine() -> String {
    let (system, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{system} {architecture}, {}, {processors} processors", name.unwrap_or("processor unknown"))
}

/// How many processes wanted a processor in the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Options, Peer, Report, Run};

    fn run(prefill: f64, decode: f64, tokens: &[u32]) -> Run {
        let value = json!({"tokens": tokens, "prompt_tokens": 1, "prefill_tps": prefill, "decode_tps": decode});
        match serde_json::from_value(value) {
            Ok(run) => run,
            Err(error) => panic!("{error}"),
        }
    }

    fn report() -> Report {
        let Ok(options) = Options::parse(&[]) else { panic!("no options are fine") };
        let mut report = Report::new(&options, &[Peer::Oxmlx("oxmlx".into()), Peer::MlxLm]);
        for (prefill, decode) in [(10.0, 3.0), (30.0, 1.0), (20.0, 8.0)] {
            report.add(0, run(prefill, decode, &[1, 2, 3]));
            report.add(1, run(prefill / 2.0, decode * 2.0, &[1, 2, 4]));
        }
        report
    }

    #[test]
    fn medians_and_their_ratios_are_reported() {
        let value = report().json();
        let at = |path: &str| value.pointer(path).and_then(Value::as_f64);
        assert_eq!(at("/programs/oxmlx/prefill_tps"), Some(20.0));
        assert_eq!(at("/programs/oxmlx/decode_tps"), Some(3.0));
        assert_eq!(at("/programs/mlx_lm/oxmlx_prefill_ratio"), Some(2.0));
        assert_eq!(at("/programs/mlx_lm/oxmlx_decode_ratio"), Some(0.5));
        assert_eq!(at("/programs/mlx_lm/same_tokens"), Some(2.0));
        assert!(
            report().table().contains("| mlx_lm | 10.00 (5.00 to 15.00) | 2.00x | 6.00 (2.00 to 16.00) | 0.50x | 2 |")
        );
    }

    #[test]
    fn runs_that_differ_by_more_than_half_are_called_out() {
        assert!(report().table().contains("measure again"));
        let Ok(options) = Options::parse(&[]) else { panic!("no options are fine") };
        let mut steady = Report::new(&options, &[Peer::Oxmlx("oxmlx".into())]);
        steady.add(0, run(10.0, 3.0, &[1, 2]));
        steady.add(0, run(14.0, 4.0, &[1, 2]));
        assert!(!steady.table().contains("measure again"));
    }

    #[test]
    fn the_median_of_an_even_number_of_runs_lies_between_the_middle_two() {
        let mut report = report();
        report.add(0, run(40.0, 4.0, &[1, 2, 3]));
        assert_eq!(report.json().pointer("/programs/oxmlx/prefill_tps").and_then(Value::as_f64), Some(25.0));
    }
}
