//! Constrained decoding with SmolLM2's vocabulary: whatever the logits want, the text fits.

use std::sync::LazyLock;

use oxmlx_lm::sampling::{Grammar, Suppression};
use oxmlx_lm::{ErrorKind, ModelFiles, Sampler, SamplingParams, Tokenizer};
use serde_json::Value;

use crate::random::Lcg;
use crate::reference::row;
use crate::support::{smollm2, smollm2_is_left_out};

const SCHEMA: &str = r##"{
    "$defs": { "tag": { "enum": ["red", "grün"] } },
    "type": "object",
    "properties": {
        "name": { "type": "string", "maxLength": 12 },
        "age": { "type": "integer", "minimum": 0, "maximum": 150 },
        "tags": { "type": "array", "items": { "$ref": "#/$defs/tag" }, "maxItems": 2 }
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": false
}"##;

fn tokenizer() -> Tokenizer {
    static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| ModelFiles::open(smollm2()).unwrap().tokenizer().unwrap());
    TOKENIZER.clone()
}

/// The text that random logits make of a grammar, until an end token.
fn text(tokenizer: &Tokenizer, grammar: &Grammar, seed: u64, temperature: f32) -> String {
    let params = SamplingParams::builder().grammar(grammar.clone()).seed(seed).temperature(temperature);
    let mut sampler = Sampler::new(params.build().unwrap());
    sampler.begin(&[1, 2, 3]);
    let mut random = Lcg(seed);
    // Cheaper than fresh rows, and every step has another best token.
    let logits = row(&mut random, tokenizer.vocab_size(), 4.0);
    let mut made = Vec::new();
    for step in 0..400 {
        let mut logits = logits.clone();
        logits.rotate_left(step * 37);
        let token = sampler.sample(&logits).unwrap();
        if tokenizer.eos_ids().contains(&token) {
            // Nothing but an end can follow an end.
            assert!(tokenizer.eos_ids().contains(&sampler.sample(&logits).unwrap()));
            return tokenizer.decode(&made).unwrap();
        }
        made.push(token);
    }
    panic!("no end in {}", tokenizer.decode(&made).unwrap());
}

#[test]
fn text_fits_its_json_schema() {
    if smollm2_is_left_out() {
        return;
    }
    let tokenizer = tokenizer();
    let grammar = Grammar::json_schema(&tokenizer, tokenizer.eos_ids(), SCHEMA).unwrap();
    for (seed, temperature) in [(1, 0.0), (2, 1.0), (3, 1.0), (4, 2.0)] {
        let text = text(&tokenizer, &grammar, seed, temperature);
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e} in {text}"));
        assert!(value["name"].as_str().unwrap().chars().count() <= 12, "{text}");
        assert!(value["age"].as_u64().unwrap() <= 150, "{text}");
        let tags = value["tags"].as_array().unwrap();
        assert!(tags.len() <= 2 && tags.iter().all(|t| t == "red" || t == "grün"), "{text}");
        assert_eq!(value.as_object().unwrap().len(), 3, "{text}");
    }
}

#[test]
fn json_may_be_written_over_several_lines_and_not_with_spaces_for_ever() {
    if smollm2_is_left_out() {
        return;
    }
    let tokenizer = tokenizer();
    let grammar = Grammar::json_schema(&tokenizer, tokenizer.eos_ids(), SCHEMA).unwrap();
    let fits = |text: &str| {
        let mut sampler = Sampler::new(SamplingParams::builder().grammar(grammar.clone()).build().unwrap());
        tokenizer.encode(text).unwrap().into_iter().all(|token| sampler.push(token).is_ok())
    };
    assert!(fits("{\n    \"name\": \"Ada\",\n    \"age\": 36,\n    \"tags\": [\"red\"]\n}"));
    assert!(fits("{\"name\":\"Ada\",\"age\":36,\"tags\":[]}"));
    assert!(!fits(&format!("{{{}", " ".repeat(40))));
    assert!(!fits("{\"age\""), "properties come in the schema's order");
}

#[test]
fn text_fits_its_regular_expression() {
    if smollm2_is_left_out() {
        return;
    }
    let tokenizer = tokenizer();
    let grammar = Grammar::regex(&tokenizer, tokenizer.eos_ids(), r"(yes|no|é+), [0-9]{3}-[A-F]{2}").unwrap();
    for seed in 0..6 {
        let text = text(&tokenizer, &grammar, seed, 1.0);
        let (word, rest) = text.split_once(", ").unwrap();
        assert!(word == "yes" || word == "no" || (!word.is_empty() && word.chars().all(|c| c == 'é')), "{text}");
        let (digits, letters) = rest.split_once('-').unwrap();
        assert!(digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit()), "{text}");
        assert!(letters.len() == 2 && letters.bytes().all(|b| (b'A'..=b'F').contains(&b)), "{text}");
    }
}

#[test]
fn a_grammar_goes_on_by_tokens_chosen_elsewhere_and_refuses_those_that_do_not_fit() {
    if smollm2_is_left_out() {
        return;
    }
    let tokenizer = tokenizer();
    let grammar = Grammar::regex(&tokenizer, tokenizer.eos_ids(), "abc").unwrap();
    let mut sampler = Sampler::new(SamplingParams::builder().temperature(0.0).grammar(grammar).build().unwrap());
    let id = |text: &str| tokenizer.id_of(text).unwrap();
    assert_eq!(sampler.push(id("b")).unwrap_err().field(), Some("grammar"));
    sampler.push(id("a")).unwrap();
    let allowed = sampler.distribution(&vec![0.0; tokenizer.vocab_size()]).unwrap();
    assert_eq!(allowed.len(), 1);
    assert!([id("b"), id("bc")].contains(&allowed[0].0));
    assert_eq!(sampler.history(), [id("a")]);
    sampler.begin(&[]);
    sampler.push(id("abc")).unwrap();
    assert!(tokenizer.eos_ids().contains(&sampler.sample(&vec![0.0; tokenizer.vocab_size()]).unwrap()));
}

#[test]
fn suppression_wins_over_a_grammar() {
    if smollm2_is_left_out() {
        return;
    }
    let tokenizer = tokenizer();
    let grammar = Grammar::regex(&tokenizer, tokenizer.eos_ids(), "x").unwrap();
    let x = i64::from(tokenizer.id_of("x").unwrap());
    let params = SamplingParams::builder().grammar(grammar).suppress(Suppression::new([x]).unwrap());
    let mut sampler = Sampler::new(params.build().unwrap());
    let error = sampler.sample(&vec![0.0; tokenizer.vocab_size()]).unwrap_err();
    assert!(error.to_string().contains("every token is ruled out"), "{error}");
}

#[test]
fn grammars_that_can_not_be_are_named() {
    if smollm2_is_left_out() {
        return;
    }
    let tokenizer = tokenizer();
    let eos = tokenizer.eos_ids();
    for schema in ["{", r#"{"type": "strin"}"#, r##"{"$ref": "#/nowhere"}"##] {
        let error = Grammar::json_schema(&tokenizer, eos, schema).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Sampling, Some("json-schema")), "{schema}");
    }
    for regex in ["(", "[z-a]", "a{5,2}"] {
        let error = Grammar::regex(&tokenizer, eos, regex).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Sampling, Some("regex")), "{regex}");
    }
    assert!(Grammar::regex(&tokenizer, &[], "a").unwrap_err().to_string().contains("ends a text"));
}
