//! The engine: a model, sequences with their caches, and one way to decode. A single sequence is a batch of one.
//!
//! A sequence is opened with what it wants ([`SequenceSpec`]), its prompt is fed in the pieces of a [`PrefillPlan`], and then each step feeds one
//! token of each row. [`submit`](Engine::submit) starts a step and [`finish_rows`](Engine::finish_rows) reads its tokens, so that the
//! next forward pass can be on the device before the host looks at this one's token ([`advance`](Engine::advance) does that).
//! A row that fails ends alone. [`DirectEngine`] is the client for one sequence at a time.
//!
//! ```no_run
//! use oxmlx_lm::engine::{Engine, PrefillOptions, PrefillStep, SequenceSpec, StepBatch};
//! # fn main() -> Result<(), oxmlx_lm::Error> {
//! # let model: Box<dyn oxmlx_lm::LanguageModel> = unimplemented!();
//! let mut engine = Engine::new(model);
//! let row = engine.open(SequenceSpec::new(32))?;
//! let plan = engine.begin(row, &[1, 2, 3], PrefillOptions::default())?;
//! for piece in plan.pieces() {
//!     engine.prefill(PrefillStep::new(row, piece))?;
//! }
//! let mut outcome = engine.complete_prefill(row)?;
//! while outcome.finish.is_none() {
//!     println!("{:?}", outcome.token);
//!     outcome = engine.step(&StepBatch::new(&[row]))?.remove(0);
//! }
//! engine.close(row);
//! # Ok(())
//! # }
//! ```

mod batch;
mod choose;
mod direct;
mod finish;
mod plan;
mod policy;
mod pool;
mod prefill;
mod prefix;
mod saved;
mod sequence;
mod step;
mod verify;

use std::collections::{HashMap, VecDeque};

use crate::{Error, ErrorKind, LanguageModel, Result};

pub use direct::{DirectEngine, Generation, PrefillProgress, Request};
pub use finish::{FinishReason, RepetitionLoop, StopRule};
pub use plan::{Piece, PlanSpec, PrefillPlan};
pub use policy::GenerationPolicy;
pub use pool::{CachePolicy, CachePool};
pub use prefill::{PrefillOptions, PrefillStep};
pub use prefix::Prefix;
pub use sequence::{SequenceId, SequenceSpec};
pub use step::{RowOutcome, StepBatch};
pub use verify::{DraftedRow, RoundOutcome};

use sequence::Row;
use step::Flight;

/// A model with the sequences that decode with it.
pub struct Engine<M = Box<dyn LanguageModel>> {
    model: M,
    pool: CachePool,
    rows: HashMap<SequenceId, Row>,
    next: u64,
    /// Steps that were submitted and not read, oldest first.
    flights: VecDeque<Flight>,
    /// Rows that could not be fed, to be told of.
    failed: Vec<(SequenceId, Error)>,
    lookahead: bool,
}

impl<M: LanguageModel> Engine<M> {
    /// An engine on this model, with plain caches. `OXMLX_FORCE_SYNC=1` in the environment turns lookahead off.
    pub fn new(model: M) -> Self {
        Self::with_pool(model, CachePool::default())
    }

    /// An engine whose sequences get their caches from `pool`, unless they say otherwise.
    pub fn with_pool(model: M, pool: CachePool) -> Self {
        let lookahead = !force_sync();
        Self { model, pool, rows: HashMap::new(), next: 0, flights: VecDeque::new(), failed: Vec::new(), lookahead }
    }

    /// Whether [`advance`](Self::advance) submits a step before it reads the one before.
    #[must_use]
    pub fn lookahead(mut self, lookahead: bool) -> Self {
        self.lookahead = lookahead && !force_sync();
        self
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Where caches come from.
    pub fn pool(&self) -> &CachePool {
        &self.pool
    }

    /// How many sequences are open.
    pub fn open_rows(&self) -> usize {
        self.rows.len()
    }
}

/// Checks the environment variable that the engine reads (`OXMLX_FORCE_SYNC`). Without this call a value that it does not know counts as
/// not set.
///
/// # Errors
/// [`ErrorKind::Config`], naming the variable and the values it takes.
pub fn check_environment() -> Result<()> {
    setting().map(drop)
}

/// Whether the environment asks for one step at a time.
fn force_sync() -> bool {
    setting().unwrap_or(false)
}

fn setting() -> Result<bool> {
    const NAME: &str = "OXMLX_FORCE_SYNC";
    match std::env::var(NAME).as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("" | "off" | "0") => Ok(false),
        Ok("on" | "1") => Ok(true),
        other => {
            let what = format!("{:?} is none of on, off, 1, 0", other.unwrap_or("not UTF-8"));
            Err(Error::new(ErrorKind::Config, what).at_field(NAME))
        }
    }
}
