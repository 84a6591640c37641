//! Recursive descent over the tokens.

use super::lexer::{tokens, Token};
use super::{address, Expression, FilterError, Side};

/// Nested deeper than this no filter is meant; the parser must not run out of stack.
const DEEPEST: usize = 64;

pub fn parse(text: &str) -> Result<Expression, FilterError> {
    let mut parser = Parser {
        tokens: tokens(text),
        next: 0,
        end: text.chars().count(),
        depth: 0,
        last: Qualifiers::default(),
    };
    if parser.tokens.is_empty() {
        return Ok(Expression::Constant(true));
    }
    let expression = parser.expression()?;
    match parser.peek() {
        None => Ok(expression),
        Some(_) => Err(parser.expected("'and', 'or' or the end")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Host,
    Net,
    Port,
    PortRange,
}

/// What stands before a value: `[ip] [src] host`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Qualifiers {
    version4: Option<bool>,
    /// The protocol is TCP or was not named.
    tcp: bool,
    side: Side,
    what: Option<What>,
}

impl Default for Qualifiers {
    fn default() -> Self {
        Self {
            version4: None,
            tcp: true,
            side: Side::Either,
            what: None,
        }
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    end: usize,
    depth: usize,
    last: Qualifiers,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.next).map(|token| token.text)
    }

    fn accept(&mut self, words: &[&str]) -> bool {
        let found = self.peek().is_some_and(|text| words.contains(&text));
        self.next += usize::from(found);
        found
    }

    /// The error that the next token makes.
    fn expected(&self, expected: &str) -> FilterError {
        let (position, found) = match self.tokens.get(self.next) {
            Some(token) => (token.position, format!("{:?}", token.text)),
            None => (self.end, "the end".to_owned()),
        };
        FilterError {
            position,
            expected: expected.to_owned(),
            found,
        }
    }

    /// `and` and `or` alike, from the left.
    fn expression(&mut self) -> Result<Expression, FilterError> {
        let mut left = self.factor()?;
        loop {
            if self.accept(&["and", "&&"]) {
                left = Expression::And(Box::new(left), Box::new(self.factor()?));
            } else if self.accept(&["or", "||"]) {
                left = Expression::Or(Box::new(left), Box::new(self.factor()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn factor(&mut self) -> Result<Expression, FilterError> {
        if self.depth == DEEPEST {
            return Err(self.expected(&format!("at most {DEEPEST} levels of 'not' and parentheses")));
        }
        self.depth += 1;
        let factor = if self.accept(&["not", "!"]) {
            Expression::Not(Box::new(self.factor()?))
        } else if self.accept(&["("]) {
            let inner = self.expression()?;
            if !self.accept(&[")"]) {
                return Err(self.expected("')', 'and' or 'or'"));
            }
            inner
        } else {
            self.primitive()?
        };
        self.depth -= 1;
        Ok(factor)
    }

    fn primitive(&mut self) -> Result<Expression, FilterError> {
        const PRIMITIVE: &str = "a primitive such as 'host 10.0.0.1', 'net 10.0.0.0/8', 'port 80' or 'tcp'";
        if self.accept(&["less"]) {
            return self.number("a length in bytes").map(Expression::ShorterOrEqual);
        }
        if self.accept(&["greater"]) {
            return self.number("a length in bytes").map(Expression::LongerOrEqual);
        }
        let start = self.next;
        let mut qualifiers = Qualifiers::default();
        self.protocol(&mut qualifiers);
        let sided = self.side(&mut qualifiers)?;
        qualifiers.what = self.what();
        let named = self.next > start;
        let before_value = matches!(self.peek(), Some(text) if !is_reserved(text));
        if named && !sided && qualifiers.what.is_none() && !before_value {
            return Ok(with_protocol(&qualifiers, Expression::Constant(true)));
        }
        if !before_value {
            let what = match qualifiers.what {
                Some(what) => value_of(what),
                None if sided => "'host', 'net', 'port', 'portrange' or an address",
                None => PRIMITIVE,
            };
            return Err(self.expected(what));
        }
        let (what, wanted) = match (named, qualifiers.what) {
            (_, Some(what)) => (what, value_of(what)),
            // without a keyword: those of the primitive before, or an address
            (false, None) if self.last.what.is_some() => {
                qualifiers = self.last;
                let what = qualifiers.what.unwrap_or(What::Host);
                (what, value_of(what))
            }
            (true, None) => (
                What::Host,
                "'host', 'net', 'port', 'portrange', 'and', 'or' or an address",
            ),
            (false, None) => (What::Host, PRIMITIVE),
        };
        self.last = Qualifiers {
            what: Some(what),
            ..qualifiers
        };
        let value = self.value(what, qualifiers.side, wanted)?;
        Ok(with_protocol(&qualifiers, value))
    }

    fn protocol(&mut self, qualifiers: &mut Qualifiers) {
        match self.peek() {
            Some("ip") => qualifiers.version4 = Some(true),
            Some("ip6") => qualifiers.version4 = Some(false),
            Some("tcp") => {}
            // they match no TCP segment, so that filters written for tcpdump mean the same here
            Some("udp" | "icmp" | "icmp6" | "arp" | "sctp") => qualifiers.tcp = false,
            _ => return,
        }
        self.next += 1;
    }

    fn side(&mut self, qualifiers: &mut Qualifiers) -> Result<bool, FilterError> {
        let (first, second, one, other) = match self.peek() {
            Some("src") => ("src", "dst", Side::Source, Side::Destination),
            Some("dst") => ("dst", "src", Side::Destination, Side::Source),
            _ => return Ok(false),
        };
        debug_assert_ne!(one, other);
        self.accept(&[first]);
        qualifiers.side = one;
        // `src or dst` and `src and dst`, but not the beginning of another primitive (`src 10.0.0.1 or dst ...`)
        if self.tokens.get(self.next + 1).is_some_and(|token| token.text == second) {
            if self.accept(&["or", "||"]) {
                qualifiers.side = Side::Either;
            } else if self.accept(&["and", "&&"]) {
                qualifiers.side = Side::Both;
            } else {
                return Ok(true);
            }
            self.accept(&[second]);
        }
        Ok(true)
    }

    fn what(&mut self) -> Option<What> {
        let what = match self.peek()? {
            "host" => What::Host,
            "net" => What::Net,
            "port" => What::Port,
            "portrange" => What::PortRange,
            _ => return None,
        };
        self.next += 1;
        Some(what)
    }

    fn value(&mut self, what: What, side: Side, wanted: &str) -> Result<Expression, FilterError> {
        let text = self.peek().unwrap_or_default();
        let parsed = match what {
            What::Host => address::host(text).map(|net| Expression::Net(side, net)),
            What::Net if self.tokens.get(self.next + 1).is_some_and(|token| token.text == "mask") => {
                let mask = self.tokens.get(self.next + 2).map_or("", |token| token.text);
                let Some(net) = address::masked(text, mask) else {
                    return Err(self.expected("a network and its mask, such as 'net 10.0.0.0 mask 255.0.0.0'"));
                };
                self.next += 2;
                Some(Expression::Net(side, net))
            }
            What::Net => address::net(text).map(|net| Expression::Net(side, net)),
            What::Port => text.parse().ok().map(|port| Expression::Ports(side, port, port)),
            What::PortRange => text.split_once('-').and_then(|(low, high)| {
                let (low, high): (u16, u16) = (low.parse().ok()?, high.parse().ok()?);
                Some(Expression::Ports(side, low.min(high), low.max(high)))
            }),
        };
        let parsed = parsed.ok_or_else(|| self.expected(wanted))?;
        self.next += 1;
        Ok(parsed)
    }

    fn number(&mut self, wanted: &str) -> Result<u32, FilterError> {
        let number = self
            .peek()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.expected(wanted))?;
        self.next += 1;
        Ok(number)
    }
}

fn with_protocol(qualifiers: &Qualifiers, expression: Expression) -> Expression {
    let expression = match qualifiers.version4 {
        None => expression,
        Some(v4) => Expression::And(Box::new(Expression::Version4(v4)), Box::new(expression)),
    };
    match qualifiers.tcp {
        true => expression,
        false => Expression::Constant(false),
    }
}

fn value_of(what: What) -> &'static str {
    match what {
        What::Host => "an IPv4 or IPv6 address (names are not looked up)",
        What::Net => "a network such as 10.0.0.0/8",
        What::Port => "a port number from 0 to 65535",
        What::PortRange => "a range of ports such as 6000-6008",
    }
}

/// Words that cannot be a value.
fn is_reserved(text: &str) -> bool {
    matches!(
        text,
        "and" | "or" | "not" | "&&" | "||" | "!" | "(" | ")" | "&" | "|" | "=" | "<" | ">" | "[" | "]"
    )
}
