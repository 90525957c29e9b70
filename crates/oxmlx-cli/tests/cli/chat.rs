//! `oxmlx chat`.

use crate::support::{Tiny, oxmlx, run, run_with};

#[test]
fn history_is_kept_and_not_read_again() {
    let tiny = Tiny::new();
    let args = ["chat", "--model", tiny.path(), "--max-tokens", "4", "--stats"];
    let ran = run_with(args, b"w1 w2\n\n/help\nw5\n/reset\nw1 w2\n/exit\nw9\n");
    let stats: Vec<_> = ran.err.lines().filter(|line| line.starts_with('[')).map(str::to_owned).collect();
    let answers = ran.done();
    let answers: Vec<_> = answers.lines().collect();
    assert_eq!((answers.len(), stats.len()), (3, 3), "{answers:?} {stats:?}");
    // w1 w2 w300; the same, 4 tokens of the answer, w5 w300, of which the last token of the answer and two more are new.
    assert!(stats[0].starts_with("[3 prompt tokens (3 read)"), "{}", stats[0]);
    assert!(stats[1].starts_with("[9 prompt tokens (3 read)"), "{}", stats[1]);
    assert!(stats[2].starts_with("[3 prompt tokens (1 read)"), "{}", stats[2]);
    assert_eq!(answers[0], answers[2], "after /reset");

    // The second answer is what the whole history gives without a cache.
    let history = format!("w1 w2 w300{} w5 w300", answers[0]);
    let args = ["generate", "--model", tiny.path(), "--raw", "--prompt", &history, "--max-tokens", "4"];
    assert_eq!(run(args).done(), format!("{}\n", answers[1]));
}

#[test]
fn system_message_stays_after_a_reset() {
    let tiny = Tiny::new();
    let args = ["chat", "--model", tiny.path(), "--max-tokens", "2", "--system", "w7", "--stats"];
    let ran = run_with(args, b"w1\n/reset\nw1\n");
    assert_eq!(ran.err.matches("[3 prompt tokens").count(), 2, "{}", ran.err);
    let answers = ran.done();
    assert_eq!(answers.lines().next(), answers.lines().nth(1));
}

#[test]
fn too_long_a_turn_is_told_and_the_conversation_goes_on() {
    let tiny = Tiny::new();
    let input = format!("{}\nw1\n", "w2 ".repeat(100));
    let ran = run_with(["chat", "--model", tiny.path(), "--max-tokens", "2"], input.as_bytes());
    assert!(ran.err.contains("101 tokens") && ran.err.lines().count() == 1, "{}", ran.err);
    assert_eq!(ran.done().lines().count(), 1);
}

#[test]
fn end_of_input_and_closed_output_end_well() {
    let tiny = Tiny::new();
    assert_eq!(run(["chat", "--model", tiny.path()]).done(), "");
    let mut child = oxmlx(["chat", "--model", tiny.path()]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"w1\nw2\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
}
