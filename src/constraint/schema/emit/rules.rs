//! The grammar under construction: terminals, rules, and its text in llguidance's Lark.
//!
//! Rules that derive no text are taken out together with every alternative that needs one, so that nothing a model
//! may begin is without an end.

use std::{
    fmt::{self, Write as _},
    hash::{Hash, Hasher},
};

use ahash::HashMap;

use crate::constraint::schema::regular::Regular;

/// A terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TerminalId(pub(super) usize);

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RuleId(pub(super) usize);

/// What stands on the right side of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Symbol {
    Terminal(TerminalId),
    Rule(RuleId),
    /// A rule with a parameter.
    With(RuleId, Parameter),
    /// Symbols again and again.
    Repeat(Vec<Symbol>, u64, Option<u64>),
}

/// One right side.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Alternative {
    pub(super) symbols: Vec<Symbol>,
    /// A condition on the rule's parameter.
    pub(super) condition: Option<Condition>,
}

/// The parameter that a rule is given, from that of the rule it stands in. A parameter is 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Parameter {
    /// This one.
    Is(u64),
    /// The same.
    Same,
    /// With these bits set.
    Set(u64),
    /// One more in the field of these bits, which stops at its greatest value.
    OneMore(Field),
}

/// Bits of a parameter, from the first to before the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Field(pub(super) usize, pub(super) usize);

/// A condition on a rule's parameter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Condition {
    /// A bit isn't set, or is.
    Bit(usize, bool),
    /// All bits of a field are set.
    Ones(Field),
    /// The number in a field is at least so much, or less.
    AtLeast(Field, u64),
    Below(Field, u64),
    /// The number of bits set in a field is at least so much, less, or at most.
    BitsAtLeast(Field, u64),
    BitsBelow(Field, u64),
    BitsAtMost(Field, u64),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

impl Condition {
    pub(super) fn and(self, other: Self) -> Self {
        Self::And(Box::new(self), Box::new(other))
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self::Or(Box::new(self), Box::new(other))
    }
}

impl Field {
    /// The whole parameter.
    pub(super) const ALL: Self = Self(0, 64);
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}:{}]", self.0, self.1)
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(value) => write!(f, "{value}"),
            Self::Same => f.write_str("_"),
            Self::Set(bits) => write!(f, "bit_or({bits})"),
            Self::OneMore(field) => write!(f, "incr({field})"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bit(bit, false) => write!(f, "bit_clear({bit})"),
            Self::Bit(bit, true) => write!(f, "bit_set({bit})"),
            Self::Ones(field) => write!(f, "is_ones({field})"),
            Self::AtLeast(field, least) => write!(f, "ge({field}, {least})"),
            Self::Below(field, bound) => write!(f, "lt({field}, {bound})"),
            Self::BitsAtLeast(field, least) => write!(f, "bit_count_ge({field}, {least})"),
            Self::BitsBelow(field, bound) => write!(f, "bit_count_lt({field}, {bound})"),
            Self::BitsAtMost(field, most) => write!(f, "bit_count_le({field}, {most})"),
            Self::And(one, other) => write!(f, "and({one}, {other})"),
            Self::Or(one, other) => write!(f, "or({one}, {other})"),
        }
    }
}

#[derive(Debug, Hash, Default)]
pub(super) struct Rule {
    pub(super) parametric: bool,
    pub(super) alternatives: Vec<Alternative>,
}

/// Terminals and rules.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) terminals: Vec<Regular>,
    terminal_ids: HashMap<Regular, TerminalId>,
    pub(super) rules: Vec<Rule>,
}

/// Terminals and rules tell all.
impl Hash for Rules {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.terminals, &self.rules).hash(hasher);
    }
}

impl Alternative {
    pub(super) fn new(symbols: impl IntoIterator<Item = Symbol>) -> Self {
        Self { symbols: symbols.into_iter().collect(), condition: None }
    }

    /// Only where the rule's parameter meets all the conditions.
    pub(super) fn when(mut self, conditions: impl IntoIterator<Item = Condition>) -> Self {
        self.condition = conditions.into_iter().reduce(Condition::and);
        self
    }
}

impl Rules {
    /// The terminal of a language.
    pub(super) fn terminal(&mut self, language: Regular) -> Symbol {
        let next = TerminalId(self.terminals.len());
        let id = *self.terminal_ids.entry(language.clone()).or_insert(next);
        if id == next {
            self.terminals.push(language);
        }
        Symbol::Terminal(id)
    }

    /// A rule to be given its alternatives later.
    pub(super) fn declare(&mut self, parametric: bool) -> RuleId {
        self.rules.push(Rule { parametric, alternatives: Vec::new() });
        RuleId(self.rules.len() - 1)
    }

    /// Gives a declared rule its alternatives.
    pub(super) fn define(&mut self, rule: RuleId, alternatives: Vec<Alternative>) {
        self.rules[rule.0].alternatives = alternatives;
    }

    /// A rule of these alternatives.
    pub(super) fn rule(&mut self, alternatives: Vec<Alternative>) -> RuleId {
        let rule = self.declare(false);
        self.define(rule, alternatives);
        rule
    }

    /// Memory held by what they and the grammar made of them tell of, in bytes, about.
    pub(super) fn bytes(&self) -> usize {
        let mut symbols = 0;
        for alternative in self.rules.iter().flat_map(|rule| &rule.alternatives) {
            symbols += 2;
            visit(&alternative.symbols, &mut |_| symbols += 1);
        }
        128 * (self.rules.len() + symbols) + 4 * self.terminals.iter().map(Regular::bytes).sum::<usize>()
    }

    /// How many rules there are.
    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Takes out what derives no text. Whether the start still derives one.
    pub(super) fn prune(&mut self, start: RuleId) -> bool {
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); self.rules.len()];
        for (index, rule) in self.rules.iter().enumerate() {
            for alternative in &rule.alternatives {
                needed(&alternative.symbols, &mut |used| users[used.0].push(index));
            }
        }
        let mut productive = vec![false; self.rules.len()];
        let mut pending: Vec<usize> = (0..self.rules.len()).collect();
        while let Some(index) = pending.pop() {
            let derives = |alternative: &Alternative| {
                let mut all = true;
                needed(&alternative.symbols, &mut |used| all &= productive[used.0]);
                all
            };
            if !productive[index] && self.rules[index].alternatives.iter().any(derives) {
                productive[index] = true;
                pending.append(&mut users[index].clone());
            }
        }
        for rule in &mut self.rules {
            rule.alternatives.retain(|alternative| {
                let mut all = true;
                needed(&alternative.symbols, &mut |used| all &= productive[used.0]);
                all
            });
            for alternative in &mut rule.alternatives {
                // What may be repeated no times at all isn't needed, but it may not be there either.
                alternative.symbols.retain(|symbol| match symbol {
                    Symbol::Repeat(inner, ..) => {
                        let mut all = true;
                        needed(inner, &mut |used| all &= productive[used.0]);
                        all
                    }
                    _ => true,
                });
            }
        }
        productive[start.0]
    }

    /// The rules and the terminals that the start leads to.
    pub(super) fn reached(&self, start: RuleId) -> (Vec<bool>, Vec<bool>) {
        let mut reached = vec![false; self.rules.len()];
        let mut used = vec![false; self.terminals.len()];
        let mut pending = vec![start.0];
        reached[start.0] = true;
        while let Some(index) = pending.pop() {
            for alternative in &self.rules[index].alternatives {
                visit(&alternative.symbols, &mut |symbol| match symbol {
                    Symbol::Terminal(terminal) => used[terminal.0] = true,
                    Symbol::Rule(rule) | Symbol::With(rule, _) => {
                        if !reached[rule.0] {
                            reached[rule.0] = true;
                            pending.push(rule.0);
                        }
                    }
                    Symbol::Repeat(..) => {}
                });
            }
        }
        (reached, used)
    }

    /// Rules that aren't worth a step of the parser, and are put in where they are used: those of a single alternative that
    /// is one symbol or none, or that is used once. What is repeated stays a rule.
    pub(super) fn inlined(&self, start: RuleId, reached: &[bool]) -> Vec<bool> {
        let rules = || self.rules.iter().enumerate().filter(|(index, _)| reached[*index]);
        let mut stays: Vec<bool> = self.rules.iter().map(|rule| rule.parametric).collect();
        stays[start.0] = true;
        for (_, rule) in rules() {
            for symbol in rule.alternatives.iter().flat_map(|alternative| &alternative.symbols) {
                match symbol {
                    Symbol::With(rule, _) => stays[rule.0] = true,
                    Symbol::Repeat(inner, ..) => visit(inner, &mut |symbol| {
                        if let Symbol::Rule(rule) | Symbol::With(rule, _) = symbol {
                            stays[rule.0] = true;
                        }
                    }),
                    Symbol::Terminal(_) | Symbol::Rule(_) => {}
                }
            }
        }
        let only = |index: usize| match &self.rules[index].alternatives[..] {
            [Alternative { symbols, condition: None }] if !stays[index] => Some(&symbols[..]),
            _ => None,
        };
        // A rule that stands for another is used as often as both are: else what is used once would be written many times.
        let stands_for = |mut index: usize| {
            while let Some([Symbol::Rule(rule)]) = only(index) {
                index = rule.0;
            }
            index
        };
        let mut uses = vec![0_u32; self.rules.len()];
        for (index, rule) in rules() {
            if matches!(only(index), Some([Symbol::Rule(_)])) {
                continue;
            }
            for symbol in rule.alternatives.iter().flat_map(|alternative| &alternative.symbols) {
                if let Symbol::Rule(rule) = symbol {
                    uses[stands_for(rule.0)] += 1;
                }
            }
        }
        (0..self.rules.len())
            .map(|index| match only(index) {
                Some([] | [Symbol::Terminal(_) | Symbol::Rule(_)]) => true,
                Some(_) => uses[index] == 1,
                None => false,
            })
            .collect()
    }

    /// The grammar as text; `settings` come first.
    pub(super) fn to_lark(&self, start: RuleId, settings: &str) -> String {
        let (reached, used) = self.reached(start);
        let mut text = String::from(settings);
        let _ = writeln!(text, "start: r{}", start.0);
        for (index, rule) in self.rules.iter().enumerate().filter(|(index, _)| reached[*index]) {
            let _ = write!(text, "r{index}{}: ", if rule.parametric { "::_" } else { "" });
            for (position, alternative) in rule.alternatives.iter().enumerate() {
                if position > 0 {
                    text.push_str("\n  | ");
                }
                if alternative.symbols.is_empty() {
                    text.push_str("\"\"");
                }
                write_symbols(&mut text, &alternative.symbols);
                if let Some(condition) = &alternative.condition {
                    let _ = write!(text, " %if {condition}");
                }
            }
            text.push('\n');
        }
        for (index, language) in self.terminals.iter().enumerate().filter(|(index, _)| used[*index]) {
            let _ = writeln!(text, "T{index}: {}", language.to_lark());
        }
        text
    }
}

/// The rules that have to derive a text for the symbols to derive one.
fn needed(symbols: &[Symbol], see: &mut impl FnMut(RuleId)) {
    for symbol in symbols {
        match symbol {
            Symbol::Terminal(_) | Symbol::Repeat(_, 0, _) => {}
            Symbol::Rule(rule) | Symbol::With(rule, _) => see(*rule),
            Symbol::Repeat(inner, ..) => needed(inner, see),
        }
    }
}

fn visit(symbols: &[Symbol], see: &mut impl FnMut(&Symbol)) {
    for symbol in symbols {
        see(symbol);
        if let Symbol::Repeat(inner, ..) = symbol {
            visit(inner, see);
        }
    }
}

fn write_symbols(text: &mut String, symbols: &[Symbol]) {
    for (index, symbol) in symbols.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        let _ = match symbol {
            Symbol::Terminal(terminal) => write!(text, "T{}", terminal.0),
            Symbol::Rule(rule) => write!(text, "r{}", rule.0),
            Symbol::With(rule, parameter) => write!(text, "r{}::{parameter}", rule.0),
            Symbol::Repeat(inner, min, max) => {
                text.push('(');
                write_symbols(text, inner);
                match (min, max) {
                    (0, None) => write!(text, ")*"),
                    (min, None) => write!(text, "){{{min},}}"),
                    (min, Some(max)) => write!(text, "){{{min},{max}}}"),
                }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_derives_no_text_is_taken_out() {
        let mut rules = Rules::default();
        let open = rules.terminal(Regular::literal("("));
        let endless = rules.declare(false);
        rules.define(endless, vec![Alternative::new([open.clone(), Symbol::Rule(endless)])]);
        let start = rules.rule(vec![
            Alternative::new([Symbol::Rule(endless)]),
            Alternative::new([open, Symbol::Repeat(vec![Symbol::Rule(endless)], 0, None)]),
        ]);
        assert!(rules.prune(start));
        assert_eq!(rules.to_lark(start, ""), "start: r1\nr1: T0\nT0: \"(\"\n");
        assert!(!rules.prune(endless));
    }

    #[test]
    fn what_is_used_often_under_another_name_stays_a_rule() {
        let mut rules = Rules::default();
        let (open, close) = (rules.terminal(Regular::literal("(")), rules.terminal(Regular::literal(")")));
        // Each is two of the one before, which has a rule that stands for it.
        let mut last = rules.rule(vec![Alternative::new([open.clone()])]);
        let mut names = vec![last];
        for _ in 0..10 {
            let two = Alternative::new([open.clone(), Symbol::Rule(last), Symbol::Rule(last), close.clone()]);
            let body = rules.rule(vec![two]);
            last = rules.rule(vec![Alternative::new([Symbol::Rule(body)])]);
            names.extend([body, last]);
        }
        let start = rules.rule(vec![Alternative::new([Symbol::Rule(last)])]);
        let inlined = rules.inlined(start, &vec![true; rules.len()]);
        let inlined: Vec<bool> = names.iter().map(|name| inlined[name.0]).collect();
        // The outermost is used once.
        let expected = [true].into_iter().chain([false, true].repeat(9)).chain([true, true]);
        assert_eq!(inlined, expected.collect::<Vec<_>>());
    }

    #[test]
    fn conditions_and_parameters_are_written_as_lark_has_them() {
        let mut rules = Rules::default();
        let a = rules.terminal(Regular::literal("a"));
        let many = rules.declare(true);
        rules.define(
            many,
            vec![
                Alternative::default().when([Condition::Ones(Field(0, 1))]),
                Alternative::new([a, Symbol::With(many, Parameter::Set(1))])
                    .when([Condition::Bit(0, false), Condition::Below(Field(1, 3), 2)]),
            ],
        );
        let start = rules.rule(vec![Alternative::new([Symbol::With(many, Parameter::Is(0))])]);
        assert_eq!(
            rules.to_lark(start, ""),
            "start: r1\nr0::_: \"\" %if is_ones([0:1])\n  | T0 r0::bit_or(1) %if and(bit_clear(0), lt([1:3], 2))\n\
             r1: r0::0\nT0: \"a\"\n"
        );
    }
}
