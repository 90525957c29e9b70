//! `oxmlx generate`: answer one prompt.

use std::io::Write;
use std::process::ExitCode;

use oxmlx_lm::{Message, Request};
use serde_json::json;

use super::answer::{Answer, answer};
use crate::args::GenerateArgs;
use crate::failure::{Failure, say};
use crate::model::Loaded;
use crate::{cancel, stats};

pub(crate) fn run(args: GenerateArgs) -> Result<ExitCode, Failure> {
    // What the command line says is checked before a model is loaded for it.
    args.model.check()?;
    let stops = args.model.stops()?;
    let prompt = read_prompt(&args)?;
    cancel::begin_answer();
    let mut loaded = Loaded::open(&args.model.model)?;
    let sampling = args.model.sampling.params(&loaded.tokenizer, loaded.policy.eos())?;
    let drafts = args.model.drafts.load(&sampling, &loaded.tokenizer)?;
    let tokens = if args.raw {
        loaded.tokenizer.encode_prompt(&prompt)?
    } else {
        let system = args.model.system.as_deref().map(Message::system);
        let messages: Vec<Message> = system.into_iter().chain([Message::user(prompt)]).collect();
        loaded.conversation(&loaded.template()?, &messages)?
    };
    let request =
        Request::of(loaded.policy.spec(args.model.max_tokens, sampling)).prefill_chunk(args.model.prefill_chunk);
    let request = drafts.iter().fold(request, |request, drafts| drafts.of(request));
    let mut out = std::io::stdout().lock();
    let answer = answer(&mut loaded, &tokens, request, stops, &mut |piece| {
        if args.json {
            return Ok(());
        }
        out.write_all(piece.as_bytes()).and_then(|()| out.flush()).map_err(Failure::output)
    })?;
    if args.json {
        writeln!(out, "{}", as_json(&answer, &loaded)).map_err(Failure::output)?;
    } else {
        if !answer.text.is_empty() && !answer.text.ends_with('\n') {
            writeln!(out).map_err(Failure::output)?;
        }
        out.flush().map_err(Failure::output)?;
        let load = loaded.took.as_secs_f64();
        say(&format!("[{}, loaded in {load:.2} s]", answer.summary()));
    }
    Ok(ExitCode::SUCCESS)
}

fn read_prompt(args: &GenerateArgs) -> Result<String, Failure> {
    let (mut text, place) = match args.prompt.as_str() {
        "-" => {
            (std::io::read_to_string(std::io::stdin()).map_err(|e| Failure::Io("standard input", e))?, "standard input")
        }
        text => (text.to_owned(), "--prompt"),
    };
    if args.prompt == "-" && !args.raw && text.ends_with('\n') {
        text.truncate(text.len() - if text.ends_with("\r\n") { 2 } else { 1 });
    }
    if text.is_empty() {
        return Err(Failure::Usage(format!("{place}: the prompt is empty: give some text")));
    }
    Ok(text)
}

fn as_json(answer: &Answer, loaded: &Loaded) -> serde_json::Value {
    let watch = &answer.stopwatch;
    let mut object = json!({
        "text": answer.text,
        "tokens": answer.tokens,
        "prompt_tokens": watch.prompt_tokens,
        "load_ms": loaded.took.as_secs_f64() * 1e3,
        "prefill_tps": watch.prefill_tps(),
        "decode_tps": watch.decode_tps(),
        "peak_bytes": stats::peak_bytes(),
        "finish_reason": answer.reason.as_str(),
    });
    if let Some(drafts) = &answer.drafts {
        object["drafts"] = json!({
            "rounds": drafts.rounds,
            "proposed": drafts.proposed,
            "tested": drafts.tested,
            "accepted": drafts.accepted,
            "tokens": drafts.tokens,
            "accepted_of_tested": drafts.accepted_of_tested(),
            "accepted_of_proposed": drafts.accepted_of_proposed(),
            "tokens_per_round": drafts.tokens_per_round(),
        });
    }
    object
}
