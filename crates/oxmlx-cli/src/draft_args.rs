//! Speculative decoding, as the command line says it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use clap::{Args as ClapArgs, ValueEnum, value_parser};
use oxmlx_lm::speculative::{Acceptance, Drafter, FullModelDrafter, PromptLookupDrafter};
use oxmlx_lm::{Request, Sampler, SamplingParams, Tokenizer};

use crate::failure::Failure;
use crate::model::{load_model, open_files};

/// The runs of tokens that a lookup goes by, the longest and the shortest.
const RUNS: (usize, usize) = (3, 1);

/// How many tokens are proposed unless told otherwise.
const MOST: u16 = 6;

#[derive(ClapArgs)]
#[command(next_help_heading = "Speculative decoding")]
pub(crate) struct DraftArgs {
    /// A smaller model of the same vocabulary that proposes tokens
    #[arg(long, value_name = "PATH", group = "drafter")]
    draft_model: Option<PathBuf>,
    /// Propose what followed the last tokens where they stood in the text before
    #[arg(long, group = "drafter")]
    draft_lookup: bool,
    /// The most tokens that are proposed at a time [default: 6]
    #[arg(long, value_name = "N", requires = "drafter", allow_negative_numbers = true,
        value_parser = value_parser!(u16).range(1..=256))]
    draft_tokens: Option<u16>,
    /// Which proposed tokens stand [default: greedy at temperature 0, sampler-match else]
    #[arg(long, value_enum, requires = "drafter")]
    acceptance: Option<Rule>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Rule {
    /// Those that greedy decoding gives
    Greedy,
    /// Those that the sampler draws
    SamplerMatch,
    /// By chance, so that the distribution stays
    Rejection,
}

/// Who proposes, for all answers of a run.
pub(crate) struct Drafts {
    drafter: Arc<Mutex<dyn Drafter>>,
    most: usize,
    rule: Acceptance,
}

impl DraftArgs {
    /// Refuses a rule that does not go with the sampling.
    pub(crate) fn check(&self, sampling: &SamplingParams) -> Result<(), Failure> {
        self.rule(sampling).map(drop)
    }

    /// What proposes, if anything does; a draft model is loaded.
    pub(crate) fn load(&self, sampling: &SamplingParams, tokenizer: &Tokenizer) -> Result<Option<Drafts>, Failure> {
        let rule = self.rule(sampling)?;
        let drafter: Arc<Mutex<dyn Drafter>> = match &self.draft_model {
            Some(path) => {
                let files = open_files(path)?;
                let (own, wanted) = (files.tokenizer()?.vocab_size(), tokenizer.vocab_size());
                if own != wanted {
                    let what = format!("its tokenizer has {own} tokens, the model's {wanted}: the models don't fit");
                    return Err(Failure::Usage(format!("--draft-model {}: {what}", path.display())));
                }
                let drafter = FullModelDrafter::new(load_model(&files)?)?;
                // Only rejection gains by drafts that were drawn.
                let drawn = rule == Acceptance::Rejection;
                Arc::new(Mutex::new(if drawn { drafter.sampling(sampling.clone()) } else { drafter }))
            }
            None if self.draft_lookup => Arc::new(Mutex::new(PromptLookupDrafter::new(RUNS.0, RUNS.1)?)),
            None => return Ok(None),
        };
        Ok(Some(Drafts { drafter, most: self.draft_tokens.unwrap_or(MOST).into(), rule }))
    }

    fn rule(&self, sampling: &SamplingParams) -> Result<Acceptance, Failure> {
        let sampler = Sampler::new(sampling.clone());
        let rule = match self.acceptance {
            None => Acceptance::default_for(&sampler),
            Some(Rule::Greedy) => Acceptance::Greedy,
            Some(Rule::SamplerMatch) => Acceptance::SamplerMatch,
            Some(Rule::Rejection) => Acceptance::Rejection,
        };
        rule.check(&sampler).map_err(Failure::Flag)?;
        Ok(rule)
    }
}

impl Drafts {
    /// The request, with drafts.
    pub(crate) fn of(&self, request: Request) -> Request {
        request.speculate(self.drafter.clone(), self.most, Some(self.rule))
    }
}
