//! A recogniser to compare with: Earley's algorithm, one code point at a time.
//!
//! No lexer, no cleverness: counts are written out, `*` is left recursion, what can never end is taken out first, so
//! that every place it comes to can be completed.

use std::collections::{HashMap, HashSet};

use super::model::{Model, Part};

type Ranges = Vec<(u32, u32)>;

#[derive(Debug, Clone)]
enum Symbol {
    Chars(Ranges),
    Rule(usize),
}

/// A grammar without postfix operators: rules of alternatives of symbols. Rule 0 is the start.
#[derive(Debug, Default)]
pub struct Grammar {
    rules: Vec<Vec<Vec<Symbol>>>,
    nullable: Vec<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Item {
    rule: usize,
    alternative: usize,
    dot: usize,
    origin: usize,
}

impl Grammar {
    /// Nothing if no text matches the model.
    pub fn new(model: &Model) -> Option<Self> {
        let mut grammar = Self { rules: vec![Vec::new(); model.rules.len()], nullable: Vec::new() };
        for (rule, body) in model.rules.iter().enumerate() {
            grammar.rules[rule] = grammar.choice(body);
        }
        let ends = grammar.fixpoint(|alternative, ends| {
            alternative.iter().all(|symbol| match symbol {
                Symbol::Chars(ranges) => !ranges.is_empty(),
                Symbol::Rule(rule) => ends[*rule],
            })
        });
        for rule in &mut grammar.rules {
            rule.retain(|alternative| {
                alternative.iter().all(|symbol| match symbol {
                    Symbol::Chars(ranges) => !ranges.is_empty(),
                    Symbol::Rule(rule) => ends[*rule],
                })
            });
        }
        grammar.nullable = grammar.fixpoint(|alternative, empty| {
            alternative.iter().all(|symbol| matches!(symbol, Symbol::Rule(rule) if empty[*rule]))
        });
        ends[0].then_some(grammar)
    }

    fn fixpoint(&self, holds: impl Fn(&[Symbol], &[bool]) -> bool) -> Vec<bool> {
        let mut known = vec![false; self.rules.len()];
        loop {
            let next: Vec<bool> = self
                .rules
                .iter()
                .map(|rule| rule.iter().any(|alternative| holds(alternative, &known)))
                .collect();
            if next == known {
                return known;
            }
            known = next;
        }
    }

    fn choice(&mut self, body: &[Vec<Part>]) -> Vec<Vec<Symbol>> {
        body.iter().map(|sequence| sequence.iter().map(|part| self.symbol(part)).collect()).collect()
    }

    fn fresh(&mut self, alternatives: Vec<Vec<Symbol>>) -> Symbol {
        self.rules.push(alternatives);
        Symbol::Rule(self.rules.len() - 1)
    }

    fn symbol(&mut self, part: &Part) -> Symbol {
        match part {
            Part::Literal(text) => {
                let symbols = text.chars().map(|c| Symbol::Chars(vec![(c.into(), c.into())])).collect();
                self.fresh(vec![symbols])
            }
            Part::Class(negated, ranges) => {
                let inside = |code: u32| {
                    ranges.iter().any(|(from, to)| (u32::from(*from)..=u32::from(*to)).contains(&code))
                };
                let mut bounds: Vec<u32> = vec![1, 0xD800, 0xE000, 0x11_0000];
                bounds.extend(ranges.iter().flat_map(|(from, to)| [u32::from(*from), u32::from(*to) + 1]));
                bounds.sort_unstable();
                let held = bounds
                    .windows(2)
                    .filter(|pair| pair[0] < pair[1] && inside(pair[0]) != *negated)
                    .filter(|pair| !(0xD800..0xE000).contains(&pair[0]))
                    .map(|pair| (pair[0], pair[1] - 1));
                Symbol::Chars(held.collect())
            }
            Part::Any => Symbol::Chars(vec![(1, 0xD7FF), (0xE000, 0x10_FFFF)]),
            Part::Rule(rule) => Symbol::Rule(*rule),
            Part::Group(body) => {
                let alternatives = self.choice(body);
                self.fresh(alternatives)
            }
            Part::Repeat(inner, min, max) => {
                let inner = self.symbol(inner);
                let mut sequence = vec![inner.clone(); *min as usize];
                match max {
                    Some(max) => {
                        for _ in *min..*max {
                            let optional = self.fresh(vec![Vec::new(), vec![inner.clone()]]);
                            sequence.push(optional);
                        }
                    }
                    None => {
                        let many = self.fresh(vec![Vec::new()]);
                        if let Symbol::Rule(rule) = many {
                            self.rules[rule].push(vec![many.clone(), inner]);
                        }
                        sequence.push(many);
                    }
                }
                self.fresh(vec![sequence])
            }
        }
    }
}

/// Where a text has come to: a place for each code point, and the bytes of one that isn't complete.
#[derive(Debug, Clone)]
pub struct Recogniser<'a> {
    grammar: &'a Grammar,
    rows: Vec<Vec<Item>>,
    pending: Vec<u8>,
}

impl<'a> Recogniser<'a> {
    pub fn new(grammar: &'a Grammar) -> Self {
        let mut this = Self { grammar, rows: Vec::new(), pending: Vec::new() };
        let start =
            (0..grammar.rules[0].len()).map(|alternative| Item { rule: 0, alternative, dot: 0, origin: 0 });
        this.close(start.collect());
        this
    }

    fn next_symbol(&self, item: Item) -> Option<&Symbol> {
        self.grammar.rules[item.rule][item.alternative].get(item.dot)
    }

    /// Completes a row from the items it starts with.
    fn close(&mut self, start: Vec<Item>) {
        let here = self.rows.len();
        let mut seen: HashSet<Item> = start.iter().copied().collect();
        let mut row = start;
        let mut at = 0;
        while at < row.len() {
            let item = row[at];
            at += 1;
            let mut add = |item: Item| {
                if seen.insert(item) {
                    row.push(item);
                }
            };
            match self.next_symbol(item) {
                Some(Symbol::Chars(_)) => {}
                Some(Symbol::Rule(rule)) => {
                    for alternative in 0..self.grammar.rules[*rule].len() {
                        add(Item { rule: *rule, alternative, dot: 0, origin: here });
                    }
                    // What may be empty is stepped over at once, so that the order of work doesn't matter.
                    if self.grammar.nullable[*rule] {
                        add(Item { dot: item.dot + 1, ..item });
                    }
                }
                None if item.origin < here => {
                    for &waiting in &self.rows[item.origin] {
                        if matches!(self.next_symbol(waiting), Some(Symbol::Rule(rule)) if *rule == item.rule)
                        {
                            add(Item { dot: waiting.dot + 1, ..waiting });
                        }
                    }
                }
                None => {}
            }
        }
        self.rows.push(row);
    }

    fn row(&self) -> &[Item] {
        self.rows.last().unwrap()
    }

    fn next_ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.row()
            .iter()
            .filter_map(|&item| self.next_symbol(item))
            .flat_map(|symbol| match symbol {
                Symbol::Chars(ranges) => ranges.as_slice(),
                Symbol::Rule(_) => &[],
            })
            .copied()
    }

    /// Whether the text may end here.
    pub fn accepts(&self) -> bool {
        self.pending.is_empty()
            && self
                .row()
                .iter()
                .any(|&item| item.rule == 0 && item.origin == 0 && self.next_symbol(item).is_none())
    }

    /// Whether anything may come here.
    pub fn goes_on(&self) -> bool {
        !self.pending.is_empty() || self.next_ranges().next().is_some()
    }

    /// Reads one byte; says whether the text can still be completed. If not, it must not be used any more.
    pub fn read(&mut self, byte: u8) -> bool {
        self.pending.push(byte);
        match std::str::from_utf8(&self.pending) {
            Ok(text) => {
                let code = u32::from(text.chars().next().unwrap());
                self.pending.clear();
                let next: Vec<Item> = self
                    .row()
                    .iter()
                    .filter(|&&item| self.takes(item, code))
                    .map(|&item| Item { dot: item.dot + 1, ..item })
                    .collect();
                let any = !next.is_empty();
                if any {
                    self.close(next);
                }
                any
            }
            Err(_) => self.could_read(None),
        }
    }

    fn takes(&self, item: Item, code: u32) -> bool {
        match self.next_symbol(item) {
            Some(Symbol::Chars(ranges)) => ranges.iter().any(|&(from, to)| from <= code && code <= to),
            _ => false,
        }
    }

    /// Whether the incomplete code point, with one more byte if there is one, can still become one that may come.
    fn could_read(&self, byte: Option<u8>) -> bool {
        let bytes: Vec<u8> = self.pending.iter().copied().chain(byte).collect();
        match std::str::from_utf8(&bytes) {
            Ok(text) => {
                let code = u32::from(text.chars().next().unwrap());
                self.row().iter().any(|&item| self.takes(item, code))
            }
            Err(error) if error.error_len().is_some() => false,
            Err(_) => {
                let (low, high) = completions(&bytes);
                self.next_ranges().any(|(from, to)| from <= high && low <= to)
            }
        }
    }

    /// Which of the tokens may come, in their order. `tree` groups them by their bytes.
    pub fn mask(&self, tree: &Tree) -> Vec<bool> {
        let mut mask = vec![false; tree.tokens];
        self.clone().walk(tree, 0, &mut mask);
        mask
    }

    fn walk(&mut self, tree: &Tree, node: usize, mask: &mut [bool]) {
        for (&byte, &child) in &tree.nodes[node].children {
            if !self.could_read(Some(byte)) {
                continue;
            }
            for &token in &tree.nodes[child].tokens {
                mask[token] = true;
            }
            if !tree.nodes[child].children.is_empty() {
                let (pending, rows) = (self.pending.clone(), self.rows.len());
                assert!(self.read(byte));
                self.walk(tree, child, mask);
                self.rows.truncate(rows);
                self.pending = pending;
            }
        }
    }
}

/// The code points whose UTF-8 starts with these bytes, which are no whole code point.
fn completions(bytes: &[u8]) -> (u32, u32) {
    let length = match bytes[0] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    };
    let fill = |with: u8| {
        let lead = u32::from(bytes[0]) & (0x7F >> length);
        (1..length)
            .fold(lead, |code, at| code << 6 | u32::from(bytes.get(at).copied().unwrap_or(with) & 0x3F))
    };
    let shortest = [0, 0, 0x80, 0x800, 0x1_0000][length];
    (fill(0x80).max(shortest), fill(0xBF).min(0x10_FFFF))
}

/// Tokens by their bytes.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Branch>,
    tokens: usize,
}

#[derive(Debug, Default)]
struct Branch {
    children: HashMap<u8, usize>,
    tokens: Vec<usize>,
}

impl Tree {
    pub fn new(tokens: &[Vec<u8>]) -> Self {
        let mut tree = Self { nodes: vec![Branch::default()], tokens: tokens.len() };
        for (token, bytes) in tokens.iter().enumerate() {
            let mut node = 0;
            for &byte in bytes {
                let next = tree.nodes.len();
                node = *tree.nodes[node].children.entry(byte).or_insert(next);
                if node == next {
                    tree.nodes.push(Branch::default());
                }
            }
            tree.nodes[node].tokens.push(token);
        }
        tree
    }
}
