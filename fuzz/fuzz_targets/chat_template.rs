//! A chat template: parsed, and rendered over a conversation with a tool call.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxmlx_lm::{ChatTemplate, Message};

fuzz_target!(|source: &str| {
    let Ok(template) = ChatTemplate::new(source) else { return };
    let call = Message::assistant("").with("tool_calls", vec!["f".to_owned()]);
    let _ =
        template.render(&[Message::system("be brief"), Message::user("é\n{{ x }}"), call, Message::new("tool", "7")]);
});
