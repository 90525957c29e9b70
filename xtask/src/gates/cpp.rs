//! What gates ask of C++ sources: the functions in them with what they call, and the closures that they hand on.

use crate::codegen::lexer::{self, Token};

/// A function with its body's tokens.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    /// The class that it stands in or is qualified by.
    pub(super) class: Option<String>,
    pub(super) is_noexcept: bool,
    pub(super) body: Vec<Token>,
}

/// A class and what it is derived from.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) bases: Vec<String>,
}

/// The functions and classes of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) functions: Vec<Function>,
    pub(super) classes: Vec<Class>,
}

/// Words that stand before a bracket and are no function's name.
const KEYWORDS: [&str; 11] =
    ["if", "for", "while", "switch", "catch", "return", "sizeof", "alignas", "decltype", "static_assert", "noexcept"];

impl Source {
    /// Reads a file.
    ///
    /// # Errors
    /// What the lexer says.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let tokens = lexer::tokens(text).map_err(|e| format!("{name}: {e}"))?;
        let mut source = Self { name: name.to_owned(), ..Self::default() };
        source.scan(&tokens, None);
        Ok(source)
    }

    /// Declarations at one level, outside any function.
    fn scan(&mut self, tokens: &[Token], class: Option<&str>) {
        let mut i = 0;
        while i < tokens.len() {
            let rest = &tokens[i..];
            if rest[0].is("namespace")
                && let Some(open) = until(rest, &["{", ";"]).filter(|&at| rest[at].is("{"))
            {
                i += open + 1;
            } else if (rest[0].is("class") || rest[0].is("struct"))
                && let Some(open) = until(rest, &["{", ";", "(", ")", ">"]).filter(|&at| rest[at].is("{"))
            {
                let name = rest.get(1).map(|token| token.text().to_owned()).unwrap_or_default();
                let bases = rest[..open].iter().skip(2).filter(|token| matches!(token, Token::Word(_)));
                self.classes
                    .push(Class { name: name.clone(), bases: bases.map(|base| base.text().to_owned()).collect() });
                let end = closing(rest, open);
                self.scan(&rest[open + 1..end], Some(&name));
                i += end + 1;
            } else if let Some((function, used)) = function(tokens, i, class) {
                self.functions.push(function);
                i += used;
            } else if rest[0].is("{") {
                // An initializer.
                i += closing(rest, 0) + 1;
            } else {
                i += 1;
            }
        }
    }
}

/// The function whose name stands at `at`, and how many tokens it takes from there.
fn function(tokens: &[Token], at: usize, class: Option<&str>) -> Option<(Function, usize)> {
    let rest = &tokens[at..];
    let Token::Word(name) = &rest[0] else { return None };
    if KEYWORDS.contains(&name.as_str()) || !rest.get(1)?.is("(") {
        return None;
    }
    let parameters = closing(rest, 1);
    let mut i = parameters + 1;
    // `const noexcept override -> T`, and the initializers of a constructor.
    let mut is_noexcept = false;
    let mut initializing = false;
    loop {
        let token = rest.get(i)?;
        is_noexcept |= token.is("noexcept");
        if token.is("{") {
            // `member{value}` in a list of initializers is followed by more of it or by the body.
            let end = closing(rest, i);
            let more = initializing && rest.get(end + 1).is_some_and(|next| next.is(",") || next.is("{"));
            if !more {
                break;
            }
            i = end + 1;
        } else if token.is("(") {
            i = closing(rest, i) + 1;
        } else if token.is(";") || token.is("=") || token.is(")") || token.is("}") || (token.is(",") && !initializing) {
            return None;
        } else {
            initializing |= token.is(":");
            i += 1;
        }
    }
    let qualified = (at >= 2 && tokens[at - 1].is("::")).then(|| tokens[at - 2].text().to_owned());
    let end = closing(rest, i);
    let body = rest[i + 1..end].to_vec();
    Some((Function { name: name.clone(), class: qualified.or(class.map(str::to_owned)), is_noexcept, body }, end + 1))
}

fn until(tokens: &[Token], signs: &[&str]) -> Option<usize> {
    tokens.iter().position(|token| signs.iter().any(|sign| token.is(sign)))
}

/// Where the bracket that opens at `open` closes.
pub(super) fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        if ["(", "{", "["].iter().any(|sign| token.is(sign)) {
            depth += 1;
        } else if [")", "}", "]"].iter().any(|sign| token.is(sign)) {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return i;
            }
        }
    }
    tokens.len().saturating_sub(1)
}

/// The names that are called in these tokens: a word before `(`, or before template arguments and `(`; `data<>` then for `data`.
pub(super) fn calls(tokens: &[Token]) -> Vec<String> {
    let mut found = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let Token::Word(name) = token else { continue };
        if KEYWORDS.contains(&name.as_str()) {
            continue;
        }
        let is_open = |at: usize| tokens.get(at).is_some_and(|next| next.is("("));
        if is_open(i + 1) {
            found.push(name.clone());
        } else if tokens.get(i + 1).is_some_and(|next| next.is("<")) {
            let arguments = tokens[i + 1..].iter().take(12).position(|token| token.is(">"));
            if arguments.is_some_and(|length| is_open(i + 2 + length)) {
                found.push(name.clone());
                found.push(format!("{name}<>"));
            }
        }
    }
    found
}

/// The arguments of every call of `name` in these tokens.
pub(super) fn arguments<'t>(tokens: &'t [Token], name: &str) -> Vec<&'t [Token]> {
    let called = |i: &usize| tokens[*i].is(name) && tokens.get(i + 1).is_some_and(|next| next.is("("));
    (0..tokens.len()).filter(called).map(|i| &tokens[i + 2..closing(tokens, i + 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::{Source, arguments, calls};

    const TEXT: &str = "
        namespace a::b {
        const int table[] = {1, f(2)};
        class Node : public mx::Primitive {
         public:
          explicit Node(int x) : Primitive(x), name_{1} { start(); }
          void eval_cpu(const std::vector<int>& in) override { go([x] { later<int>(x); }, 1); }
          const char* name() const noexcept { return n_; }
          void declared(int);
        };
        std::pair<int, int> Node::size(int a) const { if (a) { return {count(a), 2}; } }
        }";

    #[test]
    fn functions_are_found_with_their_class_and_body() {
        let source = Source::parse("x.cpp", TEXT).unwrap();
        let found: Vec<_> =
            source.functions.iter().map(|f| (f.class.as_deref(), f.name.as_str(), f.is_noexcept)).collect();
        let of = Some("Node");
        assert_eq!(found, [(of, "Node", false), (of, "eval_cpu", false), (of, "name", true), (of, "size", false)]);
        assert_eq!(source.classes[0].bases, ["public", "mx", "Primitive"]);
        assert_eq!(calls(&source.functions[3].body), ["count"]);
    }

    #[test]
    fn a_closure_is_among_the_arguments_of_the_call() {
        let source = Source::parse("x.cpp", TEXT).unwrap();
        let handed = arguments(&source.functions[1].body, "go");
        assert_eq!(calls(handed[0]), ["later", "later<>"]);
    }
}
