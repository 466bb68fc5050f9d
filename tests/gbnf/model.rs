//! Random grammars, as a model that knows nothing of the code under test, and the GBNF text of each.

use std::fmt::Write;

use proptest::prelude::*;

/// Characters of random grammars: `é` and `è` share their first byte, `あ` and `い` their first two.
pub const ALPHABET: [char; 7] = ['a', 'b', 'c', 'é', 'è', 'あ', 'い'];

/// Names that would collide if they were only lowered in case or stripped.
const NAMES: [&str; 6] = ["root", "a-b", "aB", "a_b", "9", "start"];

#[derive(Debug, Clone)]
pub enum Part {
    Literal(String),
    /// Negated or not, with ranges.
    Class(bool, Vec<(char, char)>),
    Any,
    Rule(usize),
    Group(Vec<Vec<Part>>),
    Repeat(Box<Part>, u32, Option<u32>),
}

/// Rules, each a choice of sequences; the first is the start.
#[derive(Debug, Clone)]
pub struct Model {
    pub rules: Vec<Vec<Vec<Part>>>,
}

impl Model {
    pub fn text(&self) -> String {
        let mut text = String::new();
        // The start comes last: references may precede definitions, and it isn't special where it stands.
        for (rule, body) in self.rules.iter().enumerate().rev() {
            write!(text, "{} ::= ", NAMES[rule]).unwrap();
            choice(&mut text, body);
            text.push('\n');
        }
        text
    }
}

fn choice(text: &mut String, body: &[Vec<Part>]) {
    for (at, sequence) in body.iter().enumerate() {
        if at > 0 {
            text.push_str(" | ");
        }
        if sequence.is_empty() {
            text.push_str("\"\"");
        }
        for part in sequence {
            item(text, part);
            text.push(' ');
        }
    }
}

fn item(text: &mut String, part: &Part) {
    match part {
        Part::Literal(literal) => write!(text, "\"{literal}\"").unwrap(),
        Part::Class(negated, ranges) => {
            text.push_str(if *negated { "[^" } else { "[" });
            for (from, to) in ranges {
                if from == to { text.push(*from) } else { write!(text, "{from}-{to}").unwrap() }
            }
            text.push(']');
        }
        Part::Any => text.push('.'),
        Part::Rule(rule) => text.push_str(NAMES[*rule]),
        Part::Group(body) => {
            text.push('(');
            choice(text, body);
            text.push(')');
        }
        Part::Repeat(inner, min, max) => {
            item(text, inner);
            match (min, max) {
                (0, None) => text.push('*'),
                (1, None) => text.push('+'),
                (0, Some(1)) => text.push('?'),
                (min, None) => write!(text, "{{{min},}}").unwrap(),
                (min, Some(max)) => write!(text, "{{{min},{max}}}").unwrap(),
            }
        }
    }
}

/// Random grammars of one to four rules.
pub fn models() -> impl Strategy<Value = Model> {
    (1usize..=4).prop_flat_map(|count| {
        proptest::collection::vec(body(count), count).prop_map(|rules| Model { rules })
    })
}

fn letter() -> impl Strategy<Value = char> {
    proptest::sample::select(&ALPHABET[..])
}

fn body(rules: usize) -> impl Strategy<Value = Vec<Vec<Part>>> {
    proptest::collection::vec(proptest::collection::vec(part(rules), 0..=4), 1..=3)
}

fn part(rules: usize) -> impl Strategy<Value = Part> {
    let range = (letter(), letter()).prop_map(|(a, b)| if a <= b { (a, b) } else { (b, a) });
    let leaf = prop_oneof![
        5 => proptest::collection::vec(letter(), 1..=3).prop_map(|text| Part::Literal(text.into_iter().collect())),
        3 => proptest::collection::vec(
            prop_oneof![letter().prop_map(|c| (c, c)), range], 1..=2
        ).prop_map(|ranges| Part::Class(false, ranges)),
        1 => proptest::collection::vec(letter().prop_map(|c| (c, c)), 1..=3)
            .prop_map(|ranges| Part::Class(true, ranges)),
        1 => Just(Part::Any),
        3 => (0..rules).prop_map(Part::Rule),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let counts = prop_oneof![
            3 => Just((0, None)),
            3 => Just((1, None)),
            3 => Just((0, Some(1))),
            1 => (0u32..=2).prop_map(|min| (min, None)),
            2 => (0u32..=2, 1u32..=2).prop_map(|(min, more)| (min, Some(min + more))),
        ];
        let group = proptest::collection::vec(proptest::collection::vec(inner.clone(), 0..=3), 1..=3);
        prop_oneof![
            2 => (inner, counts).prop_map(|(part, (min, max))| Part::Repeat(Box::new(part), min, max)),
            1 => group.prop_map(Part::Group),
        ]
    })
}
