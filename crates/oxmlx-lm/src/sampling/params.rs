//! What a sampler is told, checked once.

use super::check::check;
use super::dry::Dry;
use super::frequency::FrequencyPresence;
use super::grammar::Grammar;
use super::language_bias::LanguageBias;
use super::logit_bias::LogitBias;
use super::mirostat::Mirostat;
use super::order::{Order, Stage};
use super::repetition::Repetition;
use super::suppression::Suppression;
use super::temperature::DynamicTemperature;
use super::xtc::Xtc;
use crate::{Error, ErrorKind, Result};

/// Sampling parameters that have been checked; made by [`SamplingParams::builder`] or [`SamplingParams::greedy`].
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    pub(super) logit_bias: LogitBias,
    pub(super) language_bias: Option<LanguageBias>,
    pub(super) suppression: Suppression,
    pub(super) grammar: Option<Grammar>,
    pub(super) repetition: Option<Repetition>,
    pub(super) dry: Option<Dry>,
    pub(super) frequency_presence: Option<FrequencyPresence>,
    pub(super) top_n_sigma: f32,
    top_k: usize,
    pub(super) typical_p: f32,
    top_p: f32,
    min_p: f32,
    pub(super) xtc: Option<Xtc>,
    temperature: f32,
    pub(super) dynamic: Option<DynamicTemperature>,
    pub(super) mirostat: Option<Mirostat>,
    order: Order,
    seed: Option<u64>,
}

impl SamplingParams {
    /// Always the most probable token.
    pub fn greedy() -> Self {
        Self {
            logit_bias: LogitBias::default(),
            language_bias: None,
            suppression: Suppression::default(),
            grammar: None,
            repetition: None,
            dry: None,
            frequency_presence: None,
            top_n_sigma: 0.0,
            top_k: 0,
            typical_p: 1.0,
            top_p: 1.0,
            min_p: 0.0,
            xtc: None,
            temperature: 0.0,
            dynamic: None,
            mirostat: None,
            order: Order::default(),
            seed: None,
        }
    }

    /// Starts from: temperature 1, no filter, no penalty, the default order, a seed that differs every time.
    pub fn builder() -> SamplingParamsBuilder {
        SamplingParamsBuilder(Self { temperature: 1.0, ..Self::greedy() })
    }

    /// The temperature; 0 is greedy.
    pub fn temperature(&self) -> f32 {
        self.temperature
    }

    /// How many of the most probable tokens are kept; 0 for all.
    pub fn top_k(&self) -> usize {
        self.top_k
    }

    /// The probability that the kept tokens have together at least; 1 for no filter.
    pub fn top_p(&self) -> f32 {
        self.top_p
    }

    /// The probability, relative to the most probable token's, that kept tokens have at least; 0 for no filter.
    pub fn min_p(&self) -> f32 {
        self.min_p
    }

    /// The seed, if one was set.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The order of the stages.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// Whether the token is always the row's largest logit as the model gives it: no chance, no bias, penalty or grammar.
    pub fn is_greedy(&self) -> bool {
        self.chooses_best() && !self.edits()
    }

    /// Whether Mirostat is in the filters' place.
    pub(crate) fn has_mirostat(&self) -> bool {
        self.mirostat.is_some()
    }

    /// Whether the choice is no matter of chance; it may still depend on biases, penalties and a grammar.
    pub(super) fn chooses_best(&self) -> bool {
        self.temperature == 0.0
    }

    /// Whether logits are changed before the choice, other than by the temperature and by filters.
    pub(super) fn edits(&self) -> bool {
        use Stage::*;
        self.rules_out()
            || [LogitBias, LanguageBias, Repetition, Dry, FrequencyPresence].into_iter().any(|s| self.is_set(s))
    }

    /// Whether tokens are ruled out before the first stage.
    pub(super) fn rules_out(&self) -> bool {
        !self.suppression.is_empty() || self.grammar.is_some()
    }

    /// Whether the stage does anything.
    pub(super) fn is_set(&self, stage: Stage) -> bool {
        match stage {
            Stage::LogitBias => !self.logit_bias.is_empty(),
            Stage::LanguageBias => self.language_bias.is_some(),
            Stage::Repetition => self.repetition.is_some_and(|r| !r.is_off()),
            Stage::Dry => self.dry.as_ref().is_some_and(|d| !d.is_off()),
            Stage::FrequencyPresence => self.frequency_presence.is_some_and(|f| !f.is_off()),
            Stage::TopNSigma => self.top_n_sigma > 0.0,
            Stage::TopK => self.top_k > 0,
            Stage::TypicalP => self.typical_p < 1.0,
            Stage::TopP => self.top_p < 1.0,
            Stage::MinP => self.min_p > 0.0,
            Stage::Xtc => self.xtc.as_ref().is_some_and(|x| !x.is_off()),
            Stage::Temperature => self.temperature != 1.0 || self.dynamic.is_some_and(|d| !d.is_off()),
        }
    }

    /// The stages that do something, in order; Mirostat takes the filters' place.
    pub(super) fn plan(&self) -> Vec<Stage> {
        let wanted = |stage: &Stage| self.is_set(*stage) && !(self.mirostat.is_some() && stage.is_filter());
        self.order.stages().iter().copied().filter(wanted).collect()
    }
}

/// Collects sampling parameters; [`build`](SamplingParamsBuilder::build) checks them.
#[derive(Clone, Debug)]
#[must_use]
pub struct SamplingParamsBuilder(SamplingParams);

impl SamplingParamsBuilder {
    /// Adds numbers to chosen tokens' logits.
    pub fn logit_bias(mut self, bias: LogitBias) -> Self {
        self.0.logit_bias = bias;
        self
    }

    /// Adds a number to the logits of some languages' tokens.
    pub fn language_bias(mut self, bias: LanguageBias) -> Self {
        self.0.language_bias = Some(bias);
        self
    }

    /// Rules tokens out for good.
    pub fn suppress(mut self, tokens: Suppression) -> Self {
        self.0.suppression = tokens;
        self
    }

    /// Lets only texts of a grammar come.
    pub fn grammar(mut self, grammar: Grammar) -> Self {
        self.0.grammar = Some(grammar);
        self
    }

    /// Penalises tokens that came before.
    pub fn repetition(mut self, penalty: Repetition) -> Self {
        self.0.repetition = Some(penalty);
        self
    }

    /// Penalises sequences that came before.
    pub fn dry(mut self, dry: Dry) -> Self {
        self.0.dry = Some(dry);
        self
    }

    /// Penalises tokens by how often they came before.
    pub fn frequency_presence(mut self, penalty: FrequencyPresence) -> Self {
        self.0.frequency_presence = Some(penalty);
        self
    }

    /// Keeps the tokens whose logit is at most `n` standard deviations under the largest; 0 keeps all.
    pub fn top_n_sigma(mut self, n: f32) -> Self {
        self.0.top_n_sigma = n;
        self
    }

    /// Keeps the `k` most probable tokens; 0 keeps all. Of equally probable ones those with lower ids are kept.
    pub fn top_k(mut self, k: usize) -> Self {
        self.0.top_k = k;
        self
    }

    /// Keeps the tokens nearest to the expected surprise that sum up to `p`; 1 keeps all.
    pub fn typical_p(mut self, p: f32) -> Self {
        self.0.typical_p = p;
        self
    }

    /// Keeps the fewest of the most probable tokens whose probabilities sum up to `p` at least; 1 keeps all.
    pub fn top_p(mut self, p: f32) -> Self {
        self.0.top_p = p;
        self
    }

    /// Keeps the tokens that are at least `p` times as probable as the most probable one; 0 keeps all.
    pub fn min_p(mut self, p: f32) -> Self {
        self.0.min_p = p;
        self
    }

    /// Now and then excludes the top choices.
    pub fn xtc(mut self, xtc: Xtc) -> Self {
        self.0.xtc = Some(xtc);
        self
    }

    /// Sets the temperature: 0 for greedy, under 1 for surer, over 1 for more varied text. Greedy takes the most probable token after
    /// biases, penalties and grammar; no filter, no XTC and no Mirostat changes that.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.0.temperature = temperature;
        self
    }

    /// Lets the temperature go with the model's entropy.
    pub fn dynamic_temperature(mut self, dynamic: DynamicTemperature) -> Self {
        self.0.dynamic = Some(dynamic);
        self
    }

    /// Puts Mirostat in the place of all filters.
    pub fn mirostat(mut self, mirostat: Mirostat) -> Self {
        self.0.mirostat = Some(mirostat);
        self
    }

    /// Sets the order of the stages.
    pub fn order(mut self, order: Order) -> Self {
        self.0.order = order;
        self
    }

    /// Makes the draws repeatable.
    pub fn seed(mut self, seed: u64) -> Self {
        self.0.seed = Some(seed);
        self
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`], naming the parameter: a temperature or top-n-sigma that is negative, infinite or NaN; a top-p or typical-p
    /// outside `0 < p <= 1`; a min-p outside `0 <= p <= 1`; a stage that is set and has no place in the order.
    pub fn build(self) -> Result<SamplingParams> {
        let p = &self.0;
        let from_zero = |x: f32| x.is_finite() && x >= 0.0;
        let share = |x: f32| x > 0.0 && x <= 1.0;
        let (t, sigma) = (p.temperature, p.top_n_sigma);
        check(from_zero(t), "temperature", t, "a finite number from 0 up (0 is greedy)")?;
        check(from_zero(sigma), "top-n-sigma", sigma, "a finite number from 0 up (0 turns it off)")?;
        check(share(p.typical_p), "typical-p", p.typical_p, "above 0 and at most 1 (1 turns it off)")?;
        check(share(p.top_p), "top-p", p.top_p, "above 0 and at most 1 (1 turns it off)")?;
        check((0.0..=1.0).contains(&p.min_p), "min-p", p.min_p, "from 0 to 1 (0 turns it off)")?;
        let placed = |stage: &Stage| p.order.stages().contains(stage);
        if let Some(stage) = Order::default().stages().iter().find(|&stage| p.is_set(*stage) && !placed(stage)) {
            let what = "set, but it has no place in the sampling order";
            return Err(Error::new(ErrorKind::Sampling, what).at_field(stage.name()));
        }
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Window;

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let b = SamplingParams::builder;
        let bad = [
            ("temperature", b().temperature(-1.0)),
            ("temperature", b().temperature(f32::NAN)),
            ("temperature", b().temperature(f32::INFINITY)),
            ("top-n-sigma", b().top_n_sigma(-1.0)),
            ("top-n-sigma", b().top_n_sigma(f32::NAN)),
            ("typical-p", b().typical_p(0.0)),
            ("typical-p", b().typical_p(f32::NAN)),
            ("top-p", b().top_p(0.0)),
            ("top-p", b().top_p(1.1)),
            ("top-p", b().top_p(f32::NAN)),
            ("min-p", b().min_p(-0.1)),
            ("min-p", b().min_p(1.5)),
            ("min-p", b().min_p(f32::NAN)),
        ];
        for (field, builder) in bad {
            let error = builder.clone().build().unwrap_err();
            assert_eq!((error.kind(), error.field()), (ErrorKind::Sampling, Some(field)), "{builder:?}");
        }
    }

    #[test]
    fn stages_with_values_of_their_own_refuse_what_is_out_of_range() {
        #[track_caller]
        fn refused<T: std::fmt::Debug>(field: &str, made: Result<T>) {
            let error = made.unwrap_err();
            assert_eq!((error.kind(), error.field()), (ErrorKind::Sampling, Some(field)));
        }
        let (whole, nan, inf) = (Window::WHOLE, f32::NAN, f32::INFINITY);
        for x in [0.0, -1.0, nan, inf] {
            refused("repetition-penalty", Repetition::new(x, whole));
            refused("dynamic-temperature-exponent", DynamicTemperature::new(1.0, x));
        }
        for x in [nan, inf, -inf] {
            refused("frequency-penalty", FrequencyPresence::new(x, 0.0, whole));
            refused("presence-penalty", FrequencyPresence::new(0.0, x, whole));
        }
        for x in [-1.0, nan, inf] {
            refused("dry-multiplier", Dry::new(x));
            refused("dry-base", Dry::new(1.0).unwrap().base(x));
            refused("dynamic-temperature-range", DynamicTemperature::new(x, 1.0));
            refused("mirostat-tau", Mirostat::new(x, 0.1));
            refused("mirostat-eta", Mirostat::new(5.0, x));
            refused("xtc-probability", Xtc::new(x, 0.1));
            refused("xtc-threshold", Xtc::new(0.5, x));
        }
        refused("dry-allowed-length", Dry::new(1.0).unwrap().allowed_length(0));
        refused("dry-breakers", Dry::new(1.0).unwrap().breakers([-1]));
        refused("xtc-special", Xtc::new(0.5, 0.1).unwrap().special([1 << 40]));
        refused("logit-bias", LogitBias::new([(5, nan)]));
        refused("logit-bias", LogitBias::new([(5, inf)]));
        refused("suppress", Suppression::new([-5]));
        refused("window", Window::of(-2));
    }

    #[test]
    fn the_ends_of_the_ranges_are_fine() {
        let b = SamplingParams::builder;
        for builder in
            [b().temperature(0.0), b().temperature(-0.0), b().temperature(1e-40), b().top_p(1e-8), b().min_p(1.0)]
        {
            builder.build().unwrap();
        }
        assert!(b().temperature(-0.0).build().unwrap().is_greedy());
    }

    #[test]
    fn a_stage_that_is_set_and_not_in_the_order_is_named() {
        let order = Order::new(&[Stage::TopK, Stage::Temperature]).unwrap();
        let error = SamplingParams::builder().top_p(0.5).order(order.clone()).build().unwrap_err();
        assert_eq!(error.field(), Some("top-p"));
        SamplingParams::builder().top_k(5).temperature(0.5).order(order).build().unwrap();
        assert!(Order::new(&[Stage::TopK, Stage::TopK]).is_err());
    }

    #[test]
    fn greedy_with_a_bias_is_not_the_rows_own_best() {
        let b = || SamplingParams::builder().temperature(0.0);
        assert!(b().top_k(5).build().unwrap().is_greedy());
        assert!(!b().suppress(Suppression::new([3]).unwrap()).build().unwrap().is_greedy());
        assert!(!b().repetition(Repetition::new(1.1, Window::WHOLE).unwrap()).build().unwrap().is_greedy());
        assert!(b().repetition(Repetition::new(1.1, Window::last(0)).unwrap()).build().unwrap().is_greedy());
    }
}
