//! A grammar to the engine's Lark text, with its language kept exactly.
//!
//! Not a translation rule by rule: see the module's own page for why that would lose strings. The order of work is
//! `analysis` (expressions, dead ends out), `solve` (repetition for recursion), then one terminal if nothing
//! recursive is left, else `cut` and `prove` in turns until nothing is in conflict.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;

use super::analysis::{System, check_weight, reachable};
use super::ast::Gbnf;
use super::automaton::Meetings;
use super::cut::{Cutter, Split};
use super::error::{GbnfError, GbnfErrorKind, Place};
use super::explain::{Explanation, RuleFate, RuleNote, SplitNote, TerminalNote};
use super::expr::{Expr, Node, Pool};
use super::factor::factor;
use super::prove::{Conflict, Plan, prove};
use super::regex::{Terminals, postfix, regex};
use super::solve::solve;
use super::stack::stack_needed;
use super::tokens::{TokenNames, TokenUse, definitions};
use crate::limits::Limits;

/// A grammar without recursion is one terminal up to this size, written out.
const WHOLE_SIZE: u64 = 200_000;
/// Parentheses within parentheses in one rule; the engine's reader refuses about 30.
const PARENTHESES: usize = 6;
/// Rounds of splitting and proving; past it every terminal is one code point.
const ROUNDS: usize = 200;
/// Stack for the engine's compiler, in KiB; threads have 2 MiB where nobody asks for more.
const STACK: usize = 1_200;
/// Rounds in which a stretch is split only where another ends in it; past it, into all its parts.
const FINE_ROUNDS: usize = 12;
/// A regular expression in an explanation, in bytes.
const SHOWN: usize = 2_000;

/// A grammar in the engine's words.
#[derive(Debug, Clone)]
pub struct Lowered {
    /// Lark text. With token items it lacks their definitions, which [`Lowered::resolve`] adds.
    pub lark: String,
    /// Token items; item `n` is rule `tn` of the Lark text.
    pub tokens: Vec<TokenUse>,
    /// How the grammar was lowered.
    pub explanation: Explanation,
}

impl Lowered {
    /// The complete Lark text for one vocabulary.
    ///
    /// # Errors
    /// A token the vocabulary hasn't, a token that ends a text, or one of ordinary text at a place where text may
    /// stand too: the engine can't follow both readings, so the grammar is refused.
    pub fn resolve(&self, names: &dyn TokenNames) -> Result<String, GbnfError> {
        Ok(self.lark.clone() + &definitions(&self.tokens, names)?)
    }
}

impl Gbnf {
    /// Writes the grammar for the engine.
    ///
    /// ```
    /// use maskwright::{Limits, constraint::gbnf};
    /// let limits = Limits::default();
    /// let grammar = gbnf::parse("root ::= \"a\" root | \"b\"\n", &limits)?;
    /// assert_eq!(grammar.to_lark(&limits)?.lark, "start: T0\nT0: /a*b/\n");
    /// # Ok::<(), gbnf::GbnfError>(())
    /// ```
    ///
    /// # Errors
    /// No text matches the grammar, it is too large once expanded, or a negated token stands where text may.
    pub fn to_lark(&self, limits: &Limits) -> Result<Lowered, GbnfError> {
        let mut system = System::new(self, limits)?;
        solve(&mut system, limits)?;
        factor(&mut system);
        let body = system.rules[system.root].body;
        let facts = system.pool.facts(body);
        let whole = facts.regular && facts.size <= WHOLE_SIZE;
        let mut outcome = if whole {
            let plan = Plan {
                rules: BTreeMap::from([(system.root, system.pool.terminal(body))]),
                root: system.root,
            };
            Outcome { plan, splits: Vec::new(), tokens_at_text: Vec::new(), unproved: false }
        } else {
            settle(&mut system, limits)?
        };
        outcome.tokens_at_text.sort_unstable();
        let tokens: Vec<TokenUse> = system
            .tokens
            .iter()
            .enumerate()
            .map(|(number, (item, place))| TokenUse {
                item: item.clone(),
                place: *place,
                at_text: outcome.unproved || outcome.tokens_at_text.binary_search(&number).is_ok(),
            })
            .collect();
        if let Some(token) = tokens.iter().find(|token| token.at_text && token.item.negated) {
            let kind = GbnfErrorKind::TokenOverlap(token.item.to_string());
            return Err(GbnfError::new(token.place, kind));
        }
        let (lark, terminals) = Writer::new(&system.pool, &outcome.plan).write()?;
        let limit = limits.grammar_symbols.saturating_mul(16);
        if lark.len() > limit {
            return Err(too_large(lark.len() / 16, limits.grammar_symbols));
        }
        let lark = tokens.iter().enumerate().fold(lark, |mut text, (number, token)| {
            // Tells apart grammars that differ in tokens only. Writing to a string can't fail.
            let _ = writeln!(text, "// t{number} is {:?}", token.item.to_string());
            text
        });
        let stack = stack_needed(&lark);
        if stack > STACK {
            let kind = GbnfErrorKind::ChainTooLong { given: stack, limit: STACK };
            return Err(GbnfError::new(system.rules[system.root].place, kind));
        }
        let explanation = explain(&system, &outcome, whole, &terminals);
        Ok(Lowered { lark, tokens, explanation })
    }
}

fn too_large(given: usize, limit: usize) -> GbnfError {
    GbnfError::new(Place::START, GbnfErrorKind::TooLarge { given, limit })
}

struct Outcome {
    plan: Plan,
    splits: Vec<(Expr, Expr, u8)>,
    tokens_at_text: Vec<usize>,
    unproved: bool,
}

/// Cuts and proves until nothing is in conflict.
fn settle(system: &mut System, limits: &Limits) -> Result<Outcome, GbnfError> {
    let mut cutter = Cutter::default();
    let mut meetings = Meetings::default();
    let mut splits = Vec::new();
    for round in 0..ROUNDS {
        let plan = plan(system, &mut cutter);
        check_weight(&system.pool, limits.grammar_symbols.saturating_mul(8))?;
        let Some(proof) = prove(&system.pool, &plan, &system.tokens, &mut meetings) else { break };
        if proof.conflicts.is_empty() {
            return Ok(Outcome { plan, splits, tokens_at_text: proof.tokens_at_text, unproved: false });
        }
        let mut seen = HashSet::new();
        for conflict in proof.conflicts {
            let how = if round < FINE_ROUNDS {
                split(&system.pool, &mut meetings, &conflict)
            } else {
                Split::Apart
            };
            cutter.split(conflict.goes_on, how);
            if seen.insert(conflict.goes_on) {
                splits.push((conflict.goes_on, conflict.ends, conflict.bytes.first().unwrap_or_default()));
            }
        }
    }
    cutter.split_everything();
    let plan = plan(system, &mut cutter);
    check_weight(&system.pool, limits.grammar_symbols.saturating_mul(8))?;
    Ok(Outcome { plan, splits, tokens_at_text: Vec::new(), unproved: true })
}

/// The gentlest way to take apart what goes on over an end: only where that end is.
fn split(pool: &Pool, meetings: &mut Meetings, conflict: &Conflict) -> Split {
    match pool.node(conflict.goes_on) {
        Node::Concat(parts) => {
            let Some(places) = meetings.places(conflict.ends, conflict.goes_on) else {
                return Split::Apart;
            };
            let mut before = BTreeSet::new();
            for (&at, _) in places.iter().filter(|(_, bytes)| !bytes.common(conflict.bytes).is_empty()) {
                // A part that is more than one code point has the end somewhere inside.
                if !matches!(pool.node(parts[at]), Node::Set(_)) {
                    before.insert(at);
                }
                before.insert(at + 1);
            }
            before.retain(|&at| 0 < at && at < parts.len());
            if before.is_empty() { Split::Apart } else { Split::Before(before) }
        }
        Node::Repeat(part, 0 | 1, None) => match pool.node(*part) {
            Node::Alt(parts) => {
                let out: BTreeSet<Expr> = parts
                    .iter()
                    .copied()
                    .filter(|&part| !meetings.starts(pool, part).common(conflict.bytes).is_empty())
                    .collect();
                if out.is_empty() || out.len() == parts.len() { Split::Apart } else { Split::Out(out) }
            }
            _ => Split::Apart,
        },
        _ => Split::Apart,
    }
}

fn plan(system: &mut System, cutter: &mut Cutter) -> Plan {
    let mut rules = BTreeMap::new();
    let mut work = vec![system.root];
    while let Some(rule) = work.pop() {
        if rules.contains_key(&rule) {
            continue;
        }
        let body = cutter.cut(&mut system.pool, system.rules[rule].body);
        rules.insert(rule, body);
        work.extend(system.references(body));
    }
    Plan { rules, root: system.root }
}

/// Writes a plan as Lark text.
struct Writer<'a> {
    pool: &'a Pool,
    plan: &'a Plan,
    terminals: Terminals,
    /// Expressions that get a rule of their own, as they stand at several places.
    shared: HashSet<Expr>,
    helpers: HashMap<Expr, String>,
    todo: Vec<(String, Expr)>,
}

impl<'a> Writer<'a> {
    fn new(pool: &'a Pool, plan: &'a Plan) -> Self {
        let mut uses: HashMap<Expr, usize> = HashMap::new();
        for expr in reachable(pool, plan.rules.values().copied()) {
            match pool.node(expr) {
                Node::Concat(parts) | Node::Alt(parts) => {
                    parts.iter().for_each(|part| *uses.entry(*part).or_default() += 1);
                }
                Node::Repeat(part, ..) => *uses.entry(*part).or_default() += 1,
                _ => {}
            }
        }
        let composite = |expr: Expr| matches!(pool.node(expr), Node::Concat(_) | Node::Alt(_));
        let shared =
            uses.into_iter().filter(|&(expr, uses)| uses > 1 && composite(expr)).map(|(expr, _)| expr);
        Self {
            pool,
            plan,
            terminals: Terminals::default(),
            shared: shared.collect(),
            helpers: HashMap::new(),
            todo: Vec::new(),
        }
    }

    fn write(mut self) -> Result<(String, Vec<(String, Expr)>), GbnfError> {
        let mut text = String::new();
        let recursive = self.plan.rules.values().any(|&body| {
            reachable(self.pool, [body])
                .iter()
                .any(|&expr| *self.pool.node(expr) == Node::Rule(self.plan.root))
        });
        for (&rule, &body) in self.plan.rules.iter().rev() {
            let name =
                if rule == self.plan.root && !recursive { "start".to_owned() } else { format!("r{rule}") };
            self.todo.push((name, body));
        }
        // The last one pushed is written first, so that a rule's helpers stand behind it.
        self.todo.reverse();
        if recursive {
            let _ = writeln!(text, "start: r{}", self.plan.root);
        }
        while let Some((name, body)) = self.todo.pop() {
            let body = self.alternatives(body, 0);
            // Writing to a string can't fail.
            let _ = writeln!(text, "{name}: {body}");
        }
        let (lines, terminals) = self.terminals.finish();
        text += &lines;
        Ok((text, terminals))
    }

    fn alternatives(&mut self, expr: Expr, depth: usize) -> String {
        match self.pool.node(expr) {
            Node::Alt(parts) => {
                let parts: Vec<String> = parts.iter().map(|&part| self.sequence(part, depth)).collect();
                parts.join(" | ")
            }
            _ => self.sequence(expr, depth),
        }
    }

    fn sequence(&mut self, expr: Expr, depth: usize) -> String {
        match self.pool.node(expr) {
            Node::Concat(parts) if !self.shared.contains(&expr) || depth == 0 => {
                let parts: Vec<String> = parts.iter().map(|&part| self.factor(part, depth)).collect();
                parts.join(" ")
            }
            _ => self.factor(expr, depth),
        }
    }

    fn factor(&mut self, expr: Expr, depth: usize) -> String {
        match *self.pool.node(expr) {
            Node::Repeat(..) if depth >= PARENTHESES => self.helper(expr),
            Node::Repeat(part, min, max) => {
                let atom = match self.pool.node(part) {
                    // One postfix an item.
                    Node::Repeat(..) => format!("({})", self.factor(part, depth + 1)),
                    _ => self.factor(part, depth),
                };
                atom + &postfix(min, max)
            }
            Node::Rule(rule) => format!("r{rule}"),
            Node::Token(number) => format!("t{number}"),
            Node::Terminal(inner) => self.terminals.name(self.pool, inner),
            Node::Concat(_) | Node::Alt(_) if depth >= PARENTHESES || self.shared.contains(&expr) => {
                self.helper(expr)
            }
            Node::Concat(_) | Node::Alt(_) => format!("({})", self.alternatives(expr, depth + 1)),
            // A plan has no sets, and what matches nothing has been taken out.
            Node::Empty | Node::Never | Node::Set(_) => "\"\"".to_owned(),
        }
    }

    fn helper(&mut self, expr: Expr) -> String {
        if let Some(name) = self.helpers.get(&expr) {
            return name.clone();
        }
        let name = format!("g{}", self.helpers.len());
        self.helpers.insert(expr, name.clone());
        self.todo.push((name.clone(), expr));
        name
    }
}

fn explain(system: &System, outcome: &Outcome, whole: bool, terminals: &[(String, Expr)]) -> Explanation {
    let pool = &system.pool;
    let rules = system.rules.iter().enumerate().map(|(number, rule)| {
        let fate = if !rule.productive {
            RuleFate::Dead
        } else if pool.facts(rule.body).regular {
            RuleFate::Regular(shown(pool, rule.body))
        } else if outcome.plan.rules.contains_key(&number) {
            RuleFate::Rule(format!("r{number}"))
        } else {
            RuleFate::Inlined
        };
        RuleNote { name: rule.name.clone(), fate }
    });
    let unused = system.unused.iter().map(|name| RuleNote { name: name.clone(), fate: RuleFate::Unused });
    Explanation {
        whole,
        terminals: terminals
            .iter()
            .map(|(name, expr)| TerminalNote {
                name: name.clone(),
                regex: shown(pool, *expr),
                one_code_point: matches!(pool.node(*expr), Node::Set(_)),
            })
            .collect(),
        rules: rules.chain(unused).collect(),
        splits: outcome
            .splits
            .iter()
            .map(|&(goes_on, ends, byte)| SplitNote {
                regex: shown(pool, goes_on),
                over: shown(pool, ends),
                byte,
            })
            .collect(),
        unproved: outcome.unproved,
    }
}

/// A regular expression for people: whole if it isn't too long.
fn shown(pool: &Pool, expr: Expr) -> String {
    if pool.facts(expr).size > SHOWN as u64 {
        return format!("a regular expression of {} parts", pool.facts(expr).size);
    }
    format!("/{}/", regex(pool, expr))
}
