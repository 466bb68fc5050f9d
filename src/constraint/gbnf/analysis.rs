//! A grammar's rules as expressions, and what can be said of them: which are reached from `root`, which can ever
//! end, which refer back to themselves.
//!
//! A [`System`] holds only rules that `root` reaches, callees before callers where there is no cycle.

use std::collections::{HashMap, HashSet};

use super::ast::{Alternatives, Gbnf, Item, TokenItem};
use super::chars::CharSet;
use super::error::{GbnfError, GbnfErrorKind, Place};
use super::expr::{Expr, Node, Pool};
use crate::limits::Limits;

/// Rules and the expressions they stand for.
#[derive(Debug)]
pub(super) struct System {
    pub(super) pool: Pool,
    pub(super) rules: Vec<Equation>,
    /// The number of rule `root`.
    pub(super) root: usize,
    /// Token items, each once, with the place of the first.
    pub(super) tokens: Vec<(TokenItem, Place)>,
    /// Names of rules that `root` doesn't reach, in the order of the text.
    pub(super) unused: Vec<String>,
}

/// A rule: what its name stands for.
#[derive(Debug)]
pub(super) struct Equation {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) body: Expr,
    /// Whether any text matches it.
    pub(super) productive: bool,
}

impl System {
    /// The rules that `root` reaches, as expressions, without alternatives that can never end.
    pub(super) fn new(grammar: &Gbnf, limits: &Limits) -> Result<Self, GbnfError> {
        let order = reached(grammar);
        let numbers: HashMap<&str, usize> =
            order.iter().enumerate().map(|(number, &at)| (grammar.rules[at].name.as_str(), number)).collect();
        let mut builder =
            Builder { pool: Pool::default(), numbers: &numbers, tokens: Vec::new(), ids: HashMap::new() };
        let mut rules = Vec::with_capacity(order.len());
        for &at in &order {
            let rule = &grammar.rules[at];
            let body = builder.alternatives(&rule.body);
            check_weight(&builder.pool, limits.grammar_symbols)?;
            rules.push(Equation { name: rule.name.clone(), place: rule.place, body, productive: true });
        }
        let Builder { pool, tokens, .. } = builder;
        let unused = grammar
            .rules
            .iter()
            .filter(|rule| !numbers.contains_key(rule.name.as_str()))
            .map(|rule| rule.name.clone())
            .collect();
        let root = rules.len() - 1;
        let mut system = Self { pool, rules, root, tokens, unused };
        system.prune()?;
        Ok(system)
    }

    /// Takes out what can never end: the engine would offer the way into it.
    fn prune(&mut self) -> Result<(), GbnfError> {
        let ends = productive(&self.pool, self.rules.iter().map(|rule| rule.body));
        for rule in &mut self.rules {
            rule.productive = ends[rule.body.index()];
        }
        if !self.rules[self.root].productive {
            return Err(GbnfError::new(self.rules[self.root].place, GbnfErrorKind::EmptyLanguage));
        }
        if self.rules.iter().all(|rule| rule.productive) {
            return Ok(());
        }
        let never = self.pool.never();
        let mut rewrite = Rewrite::default();
        for (number, rule) in self.rules.iter().enumerate() {
            if !rule.productive {
                rewrite.replace(number, never);
            }
        }
        for rule in &mut self.rules {
            rule.body = rewrite.apply(&mut self.pool, rule.body);
        }
        Ok(())
    }

    /// The rules an expression refers to, in order.
    pub(super) fn references(&self, expr: Expr) -> Vec<usize> {
        let mut found: Vec<usize> = reachable(&self.pool, [expr])
            .into_iter()
            .filter_map(|expr| match *self.pool.node(expr) {
                Node::Rule(number) => Some(number),
                _ => None,
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The rules in groups that refer to one another, callees before callers.
    pub(super) fn components(&self) -> Vec<Vec<usize>> {
        let edges: Vec<Vec<usize>> = self.rules.iter().map(|rule| self.references(rule.body)).collect();
        components(&edges)
    }
}

/// An error once a pool is over a limit.
pub(super) fn check_weight(pool: &Pool, limit: usize) -> Result<(), GbnfError> {
    if pool.weight() > limit {
        let kind = GbnfErrorKind::TooLarge { given: pool.weight(), limit };
        return Err(GbnfError::new(Place::START, kind));
    }
    Ok(())
}

/// The expressions from which `roots` are made, children before parents.
pub(super) fn reachable(pool: &Pool, roots: impl IntoIterator<Item = Expr>) -> Vec<Expr> {
    let mut seen = HashSet::new();
    let mut stack: Vec<Expr> = roots.into_iter().collect();
    while let Some(expr) = stack.pop() {
        if seen.insert(expr) {
            match pool.node(expr) {
                Node::Concat(parts) | Node::Alt(parts) => stack.extend_from_slice(parts),
                Node::Repeat(part, ..) => stack.push(*part),
                _ => {}
            }
        }
    }
    let mut found: Vec<Expr> = seen.into_iter().collect();
    found.sort_unstable();
    found
}

/// Puts other expressions where rules stand.
#[derive(Debug, Default)]
pub(super) struct Rewrite {
    rules: HashMap<usize, Expr>,
    done: HashMap<Expr, Expr>,
}

impl Rewrite {
    /// From here on `expr` stands for the rule. Expressions that hold the rule must not have been rewritten before.
    pub(super) fn replace(&mut self, rule: usize, expr: Expr) {
        self.rules.insert(rule, expr);
    }

    pub(super) fn apply(&mut self, pool: &mut Pool, expr: Expr) -> Expr {
        for expr in reachable(pool, [expr]) {
            if self.done.contains_key(&expr) {
                continue;
            }
            let node = pool.node(expr).clone();
            let new = match node {
                Node::Rule(number) => self.rules.get(&number).copied().unwrap_or(expr),
                Node::Concat(parts) => pool.concat(parts.iter().map(|part| self.done[part])),
                Node::Alt(parts) => pool.alt(parts.iter().map(|part| self.done[part])),
                Node::Repeat(part, min, max) => pool.repeat(self.done[&part], min, max),
                _ => expr,
            };
            self.done.insert(expr, new);
        }
        self.done[&expr]
    }
}

struct Builder<'a> {
    pool: Pool,
    numbers: &'a HashMap<&'a str, usize>,
    tokens: Vec<(TokenItem, Place)>,
    ids: HashMap<TokenItem, usize>,
}

impl Builder<'_> {
    // Recursion is bounded: the parser refuses text that nests too deep.
    fn alternatives(&mut self, sequences: &Alternatives) -> Expr {
        let parts: Vec<Expr> = sequences
            .iter()
            .map(|items| {
                let parts: Vec<Expr> = items.iter().map(|item| self.item(item)).collect();
                self.pool.concat(parts)
            })
            .collect();
        self.pool.alt(parts)
    }

    fn item(&mut self, item: &Item) -> Expr {
        match item {
            Item::Literal(text) => {
                let parts: Vec<Expr> = text.chars().map(|c| self.pool.set(CharSet::one(c))).collect();
                self.pool.concat(parts)
            }
            Item::Class(class) => {
                let set = CharSet::new(class.ranges.iter().map(|&(from, to)| (from.into(), to.into())));
                self.pool.set(if class.negated { set.complement() } else { set })
            }
            Item::Any => self.pool.set(CharSet::any()),
            // The parser has checked that the rule is there.
            Item::Reference(name, _) => match self.numbers.get(name.as_str()) {
                Some(&number) => self.pool.rule(number),
                None => self.pool.never(),
            },
            Item::Token(token, place) => {
                let number = *self.ids.entry(token.clone()).or_insert_with(|| {
                    self.tokens.push((token.clone(), *place));
                    self.tokens.len() - 1
                });
                self.pool.token(number)
            }
            Item::Group(inner) => self.alternatives(inner),
            Item::Repeat(inner, count) => {
                let part = self.item(inner);
                self.pool.repeat(part, count.min, count.max)
            }
        }
    }
}

/// The rules that `root` reaches, callees first, `root` last, as places in `grammar.rules`.
fn reached(grammar: &Gbnf) -> Vec<usize> {
    let at: HashMap<&str, usize> =
        grammar.rules.iter().enumerate().map(|(at, rule)| (rule.name.as_str(), at)).collect();
    let callees = |rule: usize| {
        let mut names = Vec::new();
        names_in(&grammar.rules[rule].body, &mut names);
        names.into_iter().filter_map(|name| at.get(name).copied()).collect::<Vec<_>>()
    };
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    let mut stack: Vec<(usize, std::vec::IntoIter<usize>)> = Vec::new();
    if let Some(&root) = at.get("root") {
        seen.insert(root);
        stack.push((root, callees(root).into_iter()));
    }
    while let Some((rule, rest)) = stack.last_mut() {
        match rest.next() {
            Some(callee) => {
                if seen.insert(callee) {
                    stack.push((callee, callees(callee).into_iter()));
                }
            }
            None => {
                order.push(*rule);
                stack.pop();
            }
        }
    }
    order
}

fn names_in<'a>(body: &'a Alternatives, names: &mut Vec<&'a str>) {
    for mut item in body.iter().flatten() {
        while let Item::Repeat(inner, _) = item {
            item = inner;
        }
        match item {
            Item::Reference(name, _) => names.push(name),
            Item::Group(inner) => names_in(inner, names),
            _ => {}
        }
    }
}

/// Which expressions some text matches, by index.
fn productive(pool: &Pool, bodies: impl Iterator<Item = Expr>) -> Vec<bool> {
    let bodies: Vec<Expr> = bodies.collect();
    let mut ends = vec![false; pool.len()];
    loop {
        let mut changed = false;
        for expr in pool.all().filter(|expr| pool.node(*expr) != &Node::Never) {
            let now = match pool.node(expr) {
                Node::Concat(parts) => parts.iter().all(|part| ends[part.index()]),
                Node::Alt(parts) => parts.iter().any(|part| ends[part.index()]),
                Node::Repeat(part, min, _) => *min == 0 || ends[part.index()],
                Node::Rule(number) => ends[bodies[*number].index()],
                _ => true,
            };
            if now && !ends[expr.index()] {
                ends[expr.index()] = true;
                changed = true;
            }
        }
        if !changed {
            return ends;
        }
    }
}

/// Strongly connected components (Tarjan), callees before callers.
fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut index = vec![NEW; edges.len()];
    let mut low = vec![0; edges.len()];
    let mut on_stack = vec![false; edges.len()];
    let (mut next, mut stack, mut found) = (0, Vec::new(), Vec::new());
    for start in 0..edges.len() {
        if index[start] != NEW {
            continue;
        }
        let mut work = vec![(start, 0)];
        while let Some(&mut (node, ref mut edge)) = work.last_mut() {
            if *edge == 0 {
                index[node] = next;
                low[node] = next;
                next += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(&callee) = edges[node].get(*edge) {
                *edge += 1;
                if index[callee] == NEW {
                    work.push((callee, 0));
                } else if on_stack[callee] {
                    low[node] = low[node].min(index[callee]);
                }
                continue;
            }
            work.pop();
            if let Some(&(caller, _)) = work.last() {
                low[caller] = low[caller].min(low[node]);
            }
            if low[node] == index[node] {
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    component.push(member);
                    if member == node {
                        break;
                    }
                }
                component.sort_unstable();
                found.push(component);
            }
        }
    }
    found
}
