//! Stop strings in a text that comes in pieces.

use crate::{Error, ErrorKind, Result};

/// Finds stop strings across pieces of text and holds back what may be the beginning of one.
///
/// Where the text ends doesn't depend on how it was cut into pieces: the stop string that is complete first wins, of several
/// that are complete at once the longest.
///
/// ```
/// use oxmlx_lm::StopMatcher;
/// # fn main() -> Result<(), oxmlx_lm::Error> {
/// let mut stop = StopMatcher::new(["\nUser:"])?;
/// assert_eq!(stop.push("Paris.\nUs").text, "Paris.");
/// let step = stop.push("er: more");
/// assert_eq!((step.text.as_str(), step.stopped), ("", true));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct StopMatcher {
    stops: Vec<String>,
    held: String,
    stopped: bool,
}

/// What a [`StopMatcher`] lets out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopStep {
    /// Text that is certainly no part of a stop string.
    pub text: String,
    /// Whether a stop string was found: no more text will come.
    pub stopped: bool,
}

impl StopMatcher {
    /// A matcher for any of `stops`; none at all is fine.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] if one is empty.
    pub fn new<S: Into<String>>(stops: impl IntoIterator<Item = S>) -> Result<Self> {
        let stops: Vec<String> = stops.into_iter().map(Into::into).collect();
        if stops.iter().any(String::is_empty) {
            return Err(Error::new(ErrorKind::Sampling, "empty, it would stop before any text").at_field("stop string"));
        }
        Ok(Self { stops, held: String::new(), stopped: false })
    }

    /// Takes the next piece of text; once stopped, it is ignored.
    pub fn push(&mut self, text: &str) -> StopStep {
        if self.stopped {
            return StopStep { text: String::new(), stopped: true };
        }
        self.held.push_str(text);
        // (end, start): the first complete match, the longest of those that end together.
        let found = self.stops.iter().filter_map(|s| self.held.find(s.as_str()).map(|at| (at + s.len(), at))).min();
        if let Some((_, start)) = found {
            self.stopped = true;
            self.held.truncate(start);
            return StopStep { text: std::mem::take(&mut self.held), stopped: true };
        }
        let kept = self.stops.iter().map(|s| self.possible_start(s)).max().unwrap_or(0);
        let kept = self.held.split_off(self.held.len() - kept);
        StopStep { text: std::mem::replace(&mut self.held, kept), stopped: false }
    }

    /// How many bytes at the end of the held text may be the beginning of `stop`.
    fn possible_start(&self, stop: &str) -> usize {
        let held = &self.held;
        let longest = held.len().min(stop.len() - 1);
        let starts = (held.len() - longest..held.len()).filter(|&at| held.is_char_boundary(at));
        starts.map(|at| &held[at..]).find(|end| stop.starts_with(end)).map_or(0, str::len)
    }

    /// The text that was held back, when generation ended for another reason; empty after a stop.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Whether a stop string was found.
    pub fn stopped(&self) -> bool {
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at every prefix of the text: the first that ends with a stop string decides.
    fn reference(stops: &[&str], text: &str) -> (String, bool) {
        for end in (0..=text.len()).filter(|&e| text.is_char_boundary(e)) {
            if let Some(longest) = stops.iter().filter(|s| text[..end].ends_with(**s)).map(|s| s.len()).max() {
                return (text[..end - longest].to_owned(), true);
            }
        }
        (text.to_owned(), false)
    }

    #[test]
    fn cut_is_exact_and_does_not_depend_on_the_pieces() {
        let stops: [&[&str]; 6] = [&["aab"], &["ab", "b"], &["abcd", "bc"], &["éa", "a€"], &["aaa", "aa€"], &[]];
        let alphabet = ['a', 'b', 'c', 'd', 'é', '€'];
        let mut state = 1u32;
        let mut next = |n: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % n
        };
        for round in 0..3000 {
            let stops = stops[round % stops.len()];
            let chars: Vec<char> = (0..next(12)).map(|_| alphabet[next(alphabet.len())]).collect();
            let text: String = chars.iter().collect();
            let mut matcher = StopMatcher::new(stops.iter().copied()).unwrap();
            let mut out = String::new();
            let mut rest = &chars[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(1 + next(rest.len()));
                let step = matcher.push(&piece.iter().collect::<String>());
                assert_eq!(step.stopped, matcher.stopped());
                out.push_str(&step.text);
                rest = after;
            }
            out.push_str(&matcher.finish());
            assert_eq!((out, matcher.stopped()), reference(stops, &text), "{stops:?} in {text:?}");
        }
    }

    #[test]
    fn text_that_can_not_become_a_stop_string_is_let_out_at_once() {
        let mut matcher = StopMatcher::new(["<|end|>"]).unwrap();
        assert_eq!(matcher.push("a <").text, "a ");
        assert_eq!(matcher.push("b").text, "<b");
        assert_eq!(matcher.push("<|").text, "");
        assert_eq!(matcher.finish(), "<|");
    }

    #[test]
    fn an_empty_stop_string_is_refused() {
        assert_eq!(StopMatcher::new([""]).unwrap_err().kind(), ErrorKind::Sampling);
    }
}
