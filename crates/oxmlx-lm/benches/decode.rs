//! What decoding costs: one sequence and a batch of eight, one that copies its prompt with and without lookup, and the host's share of a step.
//!
//!     cargo bench -p oxmlx-lm --bench decode -- MODEL.gguf
//!
//! Prints medians; sequences are 48 to 104 tokens long when the clock starts.

use std::time::{Duration, Instant};

use oxmlx::Array;
use oxmlx_lm::engine::{Engine, PrefillOptions, PrefillStep, SequenceId, SequenceSpec};
use oxmlx_lm::speculative::PromptLookupDrafter;
use oxmlx_lm::{DirectEngine, LanguageModel, Logits, ModelFiles, Request, models};

type Model = Box<dyn LanguageModel>;

const STEPS: usize = 48;

fn main() -> Result<(), oxmlx_lm::Error> {
    let Some(path) = std::env::args().skip(1).find(|a| !a.starts_with("--")) else {
        println!("give a model: cargo bench -p oxmlx-lm --bench decode -- MODEL.gguf");
        return Ok(());
    };
    let model = models::load(&ModelFiles::open(&path)?, &mut |_| ())?;
    let mut ratios = Vec::new();
    for round in 0..5 {
        let one = batch(&model, 1)?;
        let eight = batch(&model, 8)?;
        ratios.push(eight / one);
        println!("round {round}: one sequence {one:.1} tokens/s, eight {eight:.1} tokens/s, {:.2}x", eight / one);
    }
    ratios.sort_by(f64::total_cmp);
    println!("eight sequences decode {:.2}x as many tokens as one", ratios[ratios.len() / 2]);
    lookup(&model)?;
    host(&model)
}

/// One sequence that copies what stands in its prompt, plain and with drafts looked up there.
fn lookup(model: &Model) -> Result<(), oxmlx_lm::Error> {
    const MADE: usize = 96;
    let generate = |prompt: &[u32], lookup: bool| -> Result<(Vec<u32>, f64), oxmlx_lm::Error> {
        let mut engine = DirectEngine::new(model);
        let mut request = Request::new(MADE, &[]);
        if lookup {
            request = request.speculate(PromptLookupDrafter::new(3, 1)?, 7, None);
        }
        let mut generation = engine.generate(prompt, request, &mut |_| true)?;
        let mut tokens: Vec<u32> = generation.next().transpose()?.into_iter().collect();
        let began = Instant::now();
        for token in generation.by_ref() {
            tokens.push(token?);
        }
        Ok((tokens, (MADE - 1) as f64 / began.elapsed().as_secs_f64()))
    };
    let passage = generate(&prompt(model, 0), false)?.0;
    let copied: Vec<u32> = [&passage[..], &passage[..], &passage[..16]].concat();
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let ((plain, slow), (drafted, fast)) = (generate(&copied, false)?, generate(&copied, true)?);
        println!("copying: plain {slow:.1} tokens/s, with lookup {fast:.1}, the same tokens: {}", plain == drafted);
        ratios.push(fast / slow);
    }
    ratios.sort_by(f64::total_cmp);
    println!("lookup decodes {:.2}x as fast", ratios[ratios.len() / 2]);
    Ok(())
}

fn prompt(model: &Model, row: usize) -> Vec<u32> {
    (0..48 + 8 * row as u32).map(|t| (t * 97 + row as u32 * 31) % model.vocab_size() as u32).collect()
}

fn start(engine: &mut Engine<&Model>, model: &Model, row: usize) -> Result<SequenceId, oxmlx_lm::Error> {
    let id = engine.open(SequenceSpec::new(STEPS + 8))?;
    let plan = engine.begin(id, &prompt(model, row), PrefillOptions::default())?;
    for piece in plan.pieces() {
        engine.prefill(PrefillStep::new(id, piece))?;
    }
    engine.complete_prefill(id)?;
    Ok(id)
}

/// Tokens a second of `rows` sequences together.
fn batch(model: &Model, rows: usize) -> Result<f64, oxmlx_lm::Error> {
    let mut engine = Engine::new(model);
    for row in 0..rows {
        start(&mut engine, model, row)?;
    }
    let batch = engine.decoding();
    for _ in 0..4 {
        engine.advance(&batch)?;
    }
    let began = Instant::now();
    let mut tokens = 0;
    for _ in 0..STEPS {
        tokens += engine.advance(&batch)?.iter().filter(|outcome| outcome.token.is_some()).count();
    }
    Ok(tokens as f64 / began.elapsed().as_secs_f64())
}

/// The host's share of a step, with the device idle meanwhile.
fn host(model: &Model) -> Result<(), oxmlx_lm::Error> {
    let mut caches = model.make_caches();
    let row = |tokens: &[u32]| Array::from_slice(tokens, (1, tokens.len() as i32));
    model.forward(&row(&prompt(model, 0))?, &mut caches, Logits::Last)?.eval()?;
    let (mut build, mut submit) = (Vec::new(), Vec::new());
    for token in 0..101 {
        let began = Instant::now();
        let logits = model.forward(&row(&[token])?, &mut caches, Logits::Last)?;
        let next = oxmlx::ops::argmax_axis(&logits, -1, false)?;
        build.push(began.elapsed());
        let began = Instant::now();
        oxmlx::async_eval(std::slice::from_ref(&next))?;
        submit.push(began.elapsed());
        next.item::<u32>()?;
    }
    let mut engine = Engine::new(model).lookahead(false);
    let id = start(&mut engine, model, 0)?;
    let batch = engine.decoding();
    let (mut submitted, mut read) = (Vec::new(), Vec::new());
    for _ in 0..STEPS {
        let began = Instant::now();
        engine.submit(&batch)?;
        submitted.push(began.elapsed());
        // The device is done long before the clock for reading starts.
        std::thread::sleep(Duration::from_millis(60));
        let began = Instant::now();
        engine.finish_rows()?;
        read.push(began.elapsed());
    }
    engine.close(id);
    println!("graph of one step: {:?}; MLX's dispatch of it: {:?}", median(build), median(submit));
    println!("Engine::submit, dispatch included: {:?}; Engine::finish_rows: {:?}", median(submitted), median(read));
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
