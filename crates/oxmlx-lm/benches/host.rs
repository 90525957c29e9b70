//! What opening a model costs.
//!
//!     cargo bench -p oxmlx-lm --bench host -- MODEL.gguf
//!
//! Prints the median of several runs each.

use std::hint::black_box;
use std::time::{Duration, Instant};

use oxmlx_lm::{ModelFiles, StreamDecoder};

fn median(runs: usize, mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[runs / 2]
}

fn main() -> Result<(), oxmlx_lm::Error> {
    match std::env::args().skip(1).find(|a| !a.starts_with("--")) {
        Some(model) => opening(&model),
        None => Ok(()),
    }
}

fn opening(model: &str) -> Result<(), oxmlx_lm::Error> {
    println!("open: configuration and directory   {:>10.1?}", median(5, || drop(black_box(ModelFiles::open(model)))));
    let files = ModelFiles::open(model)?;
    println!("tokenizer                           {:>10.1?}", median(5, || drop(black_box(files.tokenizer()))));
    let checkpoint = files.checkpoint();
    let names: Vec<&str> = checkpoint.names().collect();
    let mut bytes = 0;
    let time =
        median(5, || bytes = names.iter().filter_map(|n| checkpoint.tensor(n).ok()).map(|t| t.data().len()).sum());
    println!("all tensors, {:>6.1} MB               {time:>10.1?}", bytes as f64 / 1e6);
    let tokenizer = files.tokenizer()?;
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(500);
    let ids = tokenizer.encode(&text)?;
    println!(
        "encode {} tokens                  {:>10.1?}",
        ids.len(),
        median(5, || drop(black_box(tokenizer.encode(&text))))
    );
    let time = median(5, || {
        let mut stream = StreamDecoder::new(&tokenizer);
        ids.iter().for_each(|&id| drop(black_box(stream.push(id))));
    });
    println!("stream {} tokens                  {time:>10.1?}", ids.len());
    Ok(())
}
