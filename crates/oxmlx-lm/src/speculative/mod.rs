//! Speculative decoding: a cheap [`Drafter`] proposes several tokens, the model looks at all of them in one pass, and an [`Acceptance`] rule
//! says how many stand. What comes out is what the model alone would have said; only faster, where drafts are good.
//!
//! A round is: [`Drafter::draft`], then [`verify`] with the model's caches, which afterwards hold exactly the tokens that stand.
//! [`check_rewind`] says beforehand whether caches can forget rejected tokens.
//!
//! ```
//! use oxmlx_lm::speculative::{Drafter, PromptLookupDrafter};
//! # fn main() -> Result<(), oxmlx_lm::Error> {
//! let mut drafter = PromptLookupDrafter::new(3, 1)?;
//! // The text's last two tokens stood before, and 7 8 came after them.
//! let draft = drafter.draft(&[5, 6, 7, 8, 9, 5, 6], 2)?;
//! assert_eq!(draft.tokens(), [7, 8]);
//! # Ok(())
//! # }
//! ```

mod acceptance;
mod draft;
mod full_model;
mod prompt_lookup;
mod stats;
mod verify;

pub use acceptance::{Acceptance, Verdict};
pub use draft::{Draft, Drafter};
pub use full_model::FullModelDrafter;
pub use prompt_lookup::PromptLookupDrafter;
pub use stats::DraftStats;
pub use verify::{check_rewind, verify};
