//! SmolLM2-135M from its GGUF file: prompt tokens and greedy continuations as mlx-lm has them.

use oxmlx_lm::{DirectEngine, Message, ModelFiles, Request, models};
use serde::Deserialize;

use crate::support::{fixture, smollm2};

/// Where the reference's two best tokens are closer than this, either may come first.
const NEAR_TIE: f32 = 0.02;

#[derive(Deserialize)]
struct Reference {
    system: String,
    eos: u32,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    user: String,
    prompt_ids: Vec<u32>,
    greedy: Vec<u32>,
    margins: Vec<f32>,
}

#[test]
fn smollm2_answers_as_mlx_lm_does() {
    let reference: Reference =
        serde_json::from_str(&std::fs::read_to_string(fixture("smollm2/reference.json")).unwrap()).unwrap();
    let files = ModelFiles::open(smollm2()).unwrap();
    let tokenizer = files.tokenizer().unwrap();
    let template = files.chat_template(&tokenizer).unwrap();
    let mut engine = DirectEngine::new(models::load(&files, &mut |_| ()).unwrap());
    for row in &reference.rows {
        let text = template.render(&[Message::system(&reference.system), Message::user(&row.user)]).unwrap();
        let prompt = tokenizer.encode_prompt(&text).unwrap();
        assert_eq!(prompt, row.prompt_ids, "{}", row.user);

        let request = Request::new(row.margins.len(), &[reference.eos]);
        let tokens: Vec<u32> = engine.generate(&prompt, request, &mut |_| true).unwrap().map(Result::unwrap).collect();
        let decided = row.margins.iter().position(|&m| m < NEAR_TIE).unwrap_or(row.margins.len());
        let compared = decided.min(row.greedy.len());
        assert_eq!(tokens[..compared.min(tokens.len())], row.greedy[..compared], "{}", row.user);
        if decided == row.margins.len() {
            assert_eq!(tokens, row.greedy, "{}", row.user);
        }
    }
}
