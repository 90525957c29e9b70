//! Speculative decoding on the command line.

use serde_json::Value;

use crate::support::{Ran, Tiny, run_with};

const GREEDY: &[&str] = &["--temp", "0"];
const WARM: &[&str] = &["--temp", "1", "--top-k", "20", "--seed", "3"];

fn json(tiny: &Tiny, args: &[&[&str]]) -> Value {
    tiny.generate(&[&["--json", "--max-tokens", "20"], args.concat().as_slice()].concat()).json()
}

#[test]
fn drafts_change_the_speed_and_not_the_tokens() {
    let tiny = Tiny::new();
    for sampling in [GREEDY, WARM] {
        let plain = json(&tiny, &[sampling]);
        assert_eq!(plain.get("drafts"), None);
        let drafts = [
            &["--draft-lookup"][..],
            &["--draft-model", tiny.path()],
            &["--draft-lookup", "--draft-tokens", "1"],
            &["--draft-model", tiny.path(), "--acceptance", "sampler-match", "--draft-tokens", "9"],
        ];
        for draft in drafts {
            let drafted = json(&tiny, &[sampling, draft]);
            for key in ["tokens", "text", "finish_reason"] {
                assert_eq!(drafted[key], plain[key], "{draft:?}");
            }
        }
    }
}

#[test]
fn statistics_of_drafts_are_told() {
    let tiny = Tiny::new();
    // A model that drafts for itself is always right: rounds of 4 and the token after, from the second token on.
    let stats = json(&tiny, &[&["--draft-model", tiny.path(), "--draft-tokens", "4"]])["drafts"].clone();
    let count = |key: &str| stats[key].as_u64().unwrap();
    assert_eq!((count("rounds"), count("tokens")), (4, 19), "{stats}");
    assert_eq!((count("accepted"), count("tested")), (15, 15), "{stats}");
    assert_eq!((&stats["accepted_of_tested"], &stats["tokens_per_round"]), (&1.0.into(), &4.75.into()));
    assert!(stats["proposed"].is_u64() && stats["accepted_of_proposed"].is_f64(), "{stats}");
    let told = tiny.generate(&["--max-tokens", "20", "--draft-model", tiny.path(), "--draft-tokens", "4"]);
    assert!(told.err.contains("4.75 a pass (100 % of the drafts that were looked at stood)"), "{}", told.err);
}

#[test]
fn rejection_draws_and_repeats_with_its_seed() {
    let tiny = Tiny::new();
    let draw = || json(&tiny, &[WARM, &["--draft-model", tiny.path(), "--acceptance", "rejection"]]);
    let drawn = draw();
    assert_eq!(drawn["tokens"].as_array().unwrap().len(), 20);
    assert_eq!(drawn["tokens"], draw()["tokens"]);
    assert!(drawn["drafts"]["accepted"].as_u64().unwrap() > 0);
}

#[test]
fn a_chat_shares_one_drafter_over_its_turns() {
    let tiny = Tiny::new();
    let talk = |more: &[&str]| -> Ran {
        let args = [&["chat", "--model", tiny.path(), "--max-tokens", "8", "--stats"], more].concat();
        run_with(args, b"w1 w2\nw5\n/reset\nw1 w2\n")
    };
    let plain = talk(&[]).done();
    for draft in [&["--draft-lookup"][..], &["--draft-model", tiny.path()]] {
        let ran = talk(draft);
        assert_eq!(ran.err.matches(" a pass (").count(), 3, "{}", ran.err);
        assert_eq!(ran.done(), plain, "{draft:?}");
    }
}

#[test]
fn drafts_that_can_not_be_are_refused_in_one_line() {
    let tiny = Tiny::new();
    let refused = |args: &[&str], says: &[&str]| tiny.generate(args).failed(says);
    refused(&["--temp", "1", "--draft-lookup", "--acceptance", "greedy"], &["--acceptance: ", "sampler-match"]);
    let mirostat = ["--temp", "1", "--mirostat-tau", "5", "--draft-lookup", "--acceptance", "rejection"];
    refused(&mirostat, &["--acceptance: ", "mirostat"]);
    refused(&["--draft-lookup", "--draft-model", "x"], &["--draft-lookup", "--draft-model"]);
    refused(&["--draft-tokens", "3"], &["--draft-model", "--draft-lookup"]);
    for number in ["0", "-1", "x", "257"] {
        refused(&["--draft-lookup", "--draft-tokens", number], &["--draft-tokens", number]);
    }
    refused(&["--draft-lookup", "--acceptance", "hope"], &["--acceptance", "rejection"]);
    refused(&["--draft-model", "no/such"], &["no/such", "not found"]);
    let other = Tiny::new();
    let tokenizer = std::fs::read_to_string(other.file("tokenizer.json")).unwrap();
    other.write("tokenizer.json", &tokenizer.replace("\"w319\":319", "\"w319\":319,\"x\":320"));
    refused(&["--draft-model", other.path()], &["--draft-model ", "321 tokens", "320", "don't fit"]);
}
