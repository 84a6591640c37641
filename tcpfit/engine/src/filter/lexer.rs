//! Words and signs of a filter, each with its place.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    /// Characters before it.
    pub position: usize,
}

/// Splits at blanks and at signs; `&&` and `||` are signs of two characters.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut position = 0;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            blank if blank.is_whitespace() => blank.len_utf8(),
            '&' if rest.starts_with("&&") => 2,
            '|' if rest.starts_with("||") => 2,
            '(' | ')' | '!' | '&' | '|' | '=' | '<' | '>' | '[' | ']' => 1,
            _ => rest
                .find(|c: char| c.is_whitespace() || "()!&|=<>[]".contains(c))
                .unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        if !first.is_whitespace() {
            tokens.push(Token { text: token, position });
        }
        position += token.chars().count();
        rest = after;
    }
    tokens
}
