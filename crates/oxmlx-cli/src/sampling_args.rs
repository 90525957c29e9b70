//! How tokens are chosen, as the command line says it. The flags are named as the parameters in the engine's messages.

use clap::{Args as ClapArgs, ValueEnum};
use oxmlx_lm::sampling::{
    Dry, DynamicTemperature, FrequencyPresence, Grammar, LanguageBias, LogitBias, Mirostat, Order, Repetition,
    SamplingParamsBuilder, Script, Suppression, Window, Xtc,
};
use oxmlx_lm::{SamplingParams, Tokenizer};

use crate::failure::Failure;

/// Where DRY's sequences end unless told otherwise.
const BREAKERS: [&str; 4] = ["\n", ":", "\"", "*"];

#[derive(ClapArgs)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Temperature; 0 takes the most likely token
    #[arg(long, visible_alias = "temperature", value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    temp: f32,
    /// Choose among the K most likely tokens; 0 for all
    #[arg(long, value_name = "K", default_value_t = 0, allow_negative_numbers = true)]
    top_k: usize,
    /// Choose among the most likely tokens that have this share together; 1 for all
    #[arg(long, value_name = "P", default_value_t = 1.0, allow_negative_numbers = true)]
    top_p: f32,
    /// Choose among tokens at least this times as likely as the best; 0 for all
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    min_p: f32,
    /// Choose among the least surprisingly surprising tokens that have this share together; 1 for all
    #[arg(long, value_name = "P", default_value_t = 1.0, allow_negative_numbers = true)]
    typical_p: f32,
    /// Choose among tokens within N standard deviations of the best logit; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0.0, allow_negative_numbers = true)]
    top_n_sigma: f32,
    /// How likely it is that XTC takes the top choices out
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    xtc_probability: f32,
    /// The share from which on a token is a top choice of XTC
    #[arg(long, value_name = "P", default_value_t = 0.1, allow_negative_numbers = true)]
    xtc_threshold: f32,
    /// Let the temperature move by so much, up and down, with the model's entropy; 0 for a plain one
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    dynamic_temperature_range: f32,
    /// The power of the entropy's share that places the temperature in its range
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    dynamic_temperature_exponent: f32,
    /// Divide the logits of tokens that came before; 1 is off
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    repetition_penalty: f32,
    /// Take so much off a token's logit for each time that it came before
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    frequency_penalty: f32,
    /// Take so much off the logit of every token that came before
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    presence_penalty: f32,
    /// How many tokens back these three penalties look, the prompt included; 0 for off, -1 for all
    #[arg(long, value_name = "N", default_value = "64", allow_negative_numbers = true, value_parser = window)]
    penalty_window: Window,
    /// Penalise what would prolong a repeated sequence; 0 is off
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    dry_multiplier: f32,
    /// The factor of DRY's penalty for each further token
    #[arg(long, value_name = "X", default_value_t = 1.75, allow_negative_numbers = true)]
    dry_base: f32,
    /// The length of a repetition from which on DRY penalises
    #[arg(long, value_name = "N", default_value_t = 2, allow_negative_numbers = true)]
    dry_allowed_length: usize,
    /// How many tokens back DRY looks; 0 for off, -1 for all
    #[arg(long, value_name = "N", default_value = "-1", allow_negative_numbers = true, value_parser = window)]
    dry_window: Window,
    /// Text that ends DRY's sequences, in place of line break, colon, quote and star; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    dry_breakers: Vec<String>,
    /// Mirostat's target surprise in bits; it takes the place of all filters
    #[arg(long, value_name = "BITS", allow_negative_numbers = true)]
    mirostat_tau: Option<f32>,
    /// Mirostat's learning rate
    #[arg(long, value_name = "X", default_value_t = 0.1, allow_negative_numbers = true)]
    mirostat_eta: f32,
    /// Add B to a token's logit; may be given several times
    #[arg(long, value_name = "ID=B", allow_hyphen_values = true, value_parser = bias)]
    logit_bias: Vec<(i64, f32)>,
    /// Add B to the logits of tokens with letters of these scripts: latin, cyrillic, han ...
    #[arg(long, value_name = "SCRIPT,..=B", allow_hyphen_values = true, value_parser = script_bias)]
    language_bias: Option<ScriptBias>,
    /// A token that never comes; may be given several times
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    suppress: Vec<i64>,
    /// The order of the stages
    #[arg(long, value_enum, default_value_t = SamplingOrder::Default)]
    sampling_order: SamplingOrder,
    /// Let only JSON of this schema come
    #[arg(long, value_name = "JSON", conflicts_with = "regex")]
    json_schema: Option<String>,
    /// Let only text come that matches as a whole
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    regex: Option<String>,
    /// Seed of the draws; a new one each run when not given
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seed: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum SamplingOrder {
    /// Biases, penalties, filters, temperature
    Default,
    /// Temperature, biases, filters, penalties
    TemperatureFirst,
}

#[derive(Clone)]
struct ScriptBias {
    scripts: Vec<Script>,
    bias: f32,
}

impl SamplingArgs {
    /// Refuses what no model could be asked, and gives the rest: what needs no tokenizer.
    pub(crate) fn check(&self) -> Result<SamplingParams, Failure> {
        self.settings().and_then(SamplingParamsBuilder::build).map_err(Failure::Flag)
    }

    /// The parameters, for a model with this tokenizer and these end tokens.
    pub(crate) fn params(&self, tokenizer: &Tokenizer, eos: &[u32]) -> Result<SamplingParams, Failure> {
        self.for_tokenizer(tokenizer, eos).map_err(Failure::Flag)
    }

    fn for_tokenizer(&self, tokenizer: &Tokenizer, eos: &[u32]) -> oxmlx_lm::Result<SamplingParams> {
        let mut settings = self.settings()?;
        if self.dry_multiplier > 0.0 {
            let own: Vec<&str> = self.dry_breakers.iter().map(String::as_str).collect();
            let texts = if own.is_empty() { &BREAKERS[..] } else { &own };
            settings = settings.dry(self.dry()?.breaker_texts(tokenizer, texts)?);
        }
        if self.xtc_probability > 0.0 {
            let breaks = tokenizer.encode("\n")?;
            settings = settings.xtc(self.xtc()?.special(eos.iter().chain(&breaks).map(|&id| i64::from(id)))?);
        }
        if let Some(ScriptBias { scripts, bias }) = &self.language_bias {
            settings = settings.language_bias(LanguageBias::towards(tokenizer, scripts, *bias)?);
        }
        if let Some(schema) = &self.json_schema {
            settings = settings.grammar(Grammar::json_schema(tokenizer, eos, schema)?);
        }
        if let Some(regex) = &self.regex {
            settings = settings.grammar(Grammar::regex(tokenizer, eos, regex)?);
        }
        settings.build()
    }

    /// All that needs no tokenizer.
    fn settings(&self) -> oxmlx_lm::Result<SamplingParamsBuilder> {
        let dynamic = DynamicTemperature::new(self.dynamic_temperature_range, self.dynamic_temperature_exponent)?;
        let order = match self.sampling_order {
            SamplingOrder::Default => Order::default(),
            SamplingOrder::TemperatureFirst => Order::temperature_first(),
        };
        let window = self.penalty_window;
        let mut settings = SamplingParams::builder()
            .logit_bias(LogitBias::new(self.logit_bias.iter().copied())?)
            .suppress(Suppression::new(self.suppress.iter().copied())?)
            .repetition(Repetition::new(self.repetition_penalty, window)?)
            .frequency_presence(FrequencyPresence::new(self.frequency_penalty, self.presence_penalty, window)?)
            .dry(self.dry()?)
            .top_n_sigma(self.top_n_sigma)
            .top_k(self.top_k)
            .typical_p(self.typical_p)
            .top_p(self.top_p)
            .min_p(self.min_p)
            .xtc(self.xtc()?)
            .temperature(self.temp)
            .dynamic_temperature(dynamic)
            .order(order);
        if let Some(target) = self.mirostat_tau {
            settings = settings.mirostat(Mirostat::new(target, self.mirostat_eta)?);
        }
        Ok(match self.seed {
            Some(seed) => settings.seed(seed),
            None => settings,
        })
    }

    fn dry(&self) -> oxmlx_lm::Result<Dry> {
        let dry = Dry::new(self.dry_multiplier)?.base(self.dry_base)?.allowed_length(self.dry_allowed_length)?;
        Ok(dry.window(self.dry_window))
    }

    fn xtc(&self) -> oxmlx_lm::Result<Xtc> {
        Xtc::new(self.xtc_probability, self.xtc_threshold)
    }
}

fn window(text: &str) -> Result<Window, String> {
    let tokens: i64 = text.parse().map_err(|_| "not a whole number".to_owned())?;
    Window::of(tokens).map_err(|e| e.to_string())
}

fn bias(text: &str) -> Result<(i64, f32), String> {
    let (id, bias) = text.split_once('=').ok_or("wanted ID=B")?;
    let id = id.parse().map_err(|_| format!("{id:?} is no token id"))?;
    Ok((id, bias.parse().map_err(|_| format!("{bias:?} is no number"))?))
}

fn script_bias(text: &str) -> Result<ScriptBias, String> {
    let (names, bias) = text.split_once('=').ok_or("wanted SCRIPT,..=B")?;
    let named = |name: &str| {
        Script::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| {
            let known: Vec<String> = Script::ALL.into_iter().map(Script::name).collect();
            format!("{name:?} is none of {}", known.join(", "))
        })
    };
    let scripts = names.split(',').map(named).collect::<Result<_, _>>()?;
    Ok(ScriptBias { scripts, bias: bias.parse().map_err(|_| format!("{bias:?} is no number"))? })
}
