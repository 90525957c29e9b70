//! `oxmlx chat`: a conversation that keeps its history, and the cache of it, between turns.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use oxmlx_lm::{ErrorKind, FinishReason, Message, Request};

use super::answer::answer;
use crate::args::ChatArgs;
use crate::cancel;
use crate::failure::{Failure, hint, report, say};
use crate::model::Loaded;

const HELP: &str = "/reset starts anew, /exit or Ctrl-D ends, Ctrl-C ends an answer";

pub(crate) fn run(args: ChatArgs) -> Result<ExitCode, Failure> {
    args.model.check()?;
    args.model.stops()?;
    let mut loaded = Loaded::open(&args.model.model)?;
    let sampling = args.model.sampling.params(&loaded.tokenizer, loaded.policy.eos())?;
    let drafts = args.model.drafts.load(&sampling, &loaded.tokenizer)?;
    let template = loaded.template()?;
    let system = args.model.system.as_deref().map(Message::system);
    let mut messages: Vec<Message> = system.iter().cloned().collect();
    let terminal = std::io::stdin().is_terminal();
    if terminal {
        say(HELP);
    }
    let mut lines = std::io::stdin().lock().lines();
    loop {
        if terminal {
            hint("> ");
        }
        let Some(line) = lines.next() else {
            if terminal {
                hint("\n");
            }
            break;
        };
        let line = line.map_err(|e| Failure::Io("standard input", e))?;
        match line.trim() {
            "" => continue,
            "/exit" | "/quit" => break,
            "/help" => {
                say(HELP);
                continue;
            }
            "/reset" => {
                messages = system.iter().cloned().collect();
                continue;
            }
            text => messages.push(Message::user(text)),
        }
        cancel::begin_answer();
        let request = Request::of(loaded.policy.spec(args.model.max_tokens, sampling.clone()))
            .prefill_chunk(args.model.prefill_chunk);
        let request = drafts.iter().fold(request, |request, drafts| drafts.of(request));
        let mut out = std::io::stdout().lock();
        let turn = loaded.conversation(&template, &messages).and_then(|prompt| {
            answer(&mut loaded, &prompt, request, args.model.stops()?, &mut |piece| {
                out.write_all(piece.as_bytes()).and_then(|()| out.flush()).map_err(Failure::output)
            })
        });
        cancel::end_answer();
        match turn {
            Ok(answer) => {
                writeln!(out).map_err(Failure::output)?;
                if answer.reason == FinishReason::Context {
                    say("oxmlx: the model's context is full: /reset starts anew");
                }
                if args.stats {
                    say(&format!("[{}]", answer.summary()));
                }
                if answer.reason == FinishReason::Cancelled && answer.tokens.is_empty() {
                    // The turn did not take place.
                    messages.pop();
                    continue;
                }
                messages.push(Message::assistant(answer.text));
            }
            Err(Failure::Engine(error)) if error.kind() == ErrorKind::Context => {
                // Nor did this one; the conversation can go on.
                messages.pop();
                report(&Failure::Engine(error));
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(ExitCode::SUCCESS)
}
