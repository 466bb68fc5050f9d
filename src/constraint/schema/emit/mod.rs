//! From states to a grammar: one rule for each state that isn't a single terminal.
//!
//! Punctuation and the name of a property are one terminal (`,"name":`) wherever white space is fixed: fewer terminals
//! make fewer steps for the parser, and more of them are forced.

mod array;
mod build;
mod object;
mod open;
mod productive;
mod rules;
mod uniqueness;
mod watch;

use ahash::{HashMap, HashMapExt as _};

pub(in crate::constraint) use build::{BuildLimits, Lexemes};
use llguidance::api::GrammarInit;
pub(crate) use open::OpenText;
use rules::{Alternative, Condition, Field, Parameter, RuleId, Rules, Symbol};

use super::{
    NumberForms, PropertyOrder, SchemaOptions, Whitespace,
    analysis::{Analysis, StateId},
    array::ArrayShape,
    document::{Draft, at},
    number::{Automaton, NumberSet, NumberSpelling, NumberText},
    object::ObjectShape,
    regular::{Answer, Regular},
    shape::Shape,
    string,
};
use crate::constraint::{ConstraintError, Watch};
use productive::Productive;

/// Builds the grammar of a state and of all states its values have inside.
pub(super) struct Emitter<'e, 'a> {
    analysis: &'e mut Analysis<'a>,
    options: &'e SchemaOptions,
    productive: Productive,
    rules: Rules,
    /// How deep the value is that rules are made for, where white space depends on that; else always 0.
    depth: usize,
    values: HashMap<(StateId, usize), Symbol>,
    pending: Vec<(StateId, usize, RuleId)>,
    arrays: HashMap<(ArrayShape, usize), RuleId>,
    objects: HashMap<(ObjectShape, usize), RuleId>,
    numbers: HashMap<NumberSet, Symbol>,
    /// Numbers of a set that can run out have one spelling: else a repeated one could be put off by zeros until
    /// there is no way on.
    spell_once: bool,
    /// More rules than this are refused.
    most_rules: usize,
}

/// The grammar of a schema.
#[derive(Debug, Hash)]
pub(in crate::constraint) struct SchemaGrammar {
    rules: Rules,
    start: RuleId,
    skip: Option<&'static str>,
}

impl SchemaGrammar {
    /// As text, in llguidance's Lark.
    pub(in crate::constraint) fn to_lark(&self) -> String {
        let settings = match self.skip {
            Some(skip) => format!("%llguidance {{\"ignore_once\": true}}\n%ignore /{skip}/\n"),
            None => String::new(),
        };
        self.rules.to_lark(self.start, &settings)
    }

    /// Memory it holds, and what the engine makes of it, in bytes, about.
    pub(in crate::constraint) fn bytes(&self) -> usize {
        self.rules.bytes()
    }

    /// In the engine's own structures, and which lexemes its terminals are.
    pub(in crate::constraint) fn build(&self, limits: BuildLimits) -> Result<(GrammarInit, Lexemes), String> {
        build::build(&self.rules, self.start, self.skip, limits)
    }

    /// What a lexeme is open to.
    pub(in crate::constraint) fn open_text(&self, lexemes: &Lexemes, lexeme: usize) -> Option<OpenText> {
        let found = open::open_text(&self.rules.terminals, lexemes.terminal(lexeme)?)?;
        let with = found.with.iter().map(|&terminal| lexemes.lexeme(terminal));
        Some(OpenText { with: with.collect::<Option<_>>()?, ..found })
    }
}

/// Sets of more numbers than this are spelled as any.
const MOST_SPELLED_ONCE: usize = 1_000;

/// The grammar of a state, and what is to be watched beside it.
///
/// # Errors
///
/// What can't be enforced, is unsatisfiable, or too large.
pub(super) fn emit(
    analysis: &mut Analysis<'_>,
    options: &SchemaOptions,
    start: StateId,
    most_rules: usize,
) -> Result<(SchemaGrammar, Option<Watch>), ConstraintError> {
    let productive = Productive::explore(analysis, start, most_rules)?;
    analysis.refused()?;
    if !productive.has(start) {
        let place = productive.blame(analysis, start)?;
        return Err(at(&analysis.pointer(place), "no value meets all its demands"));
    }
    let mut emitter = Emitter {
        analysis,
        options,
        productive,
        rules: Rules::default(),
        depth: 0,
        values: HashMap::new(),
        pending: Vec::new(),
        arrays: HashMap::new(),
        objects: HashMap::new(),
        numbers: HashMap::new(),
        spell_once: false,
        most_rules,
    };
    emitter.spell_once = emitter.is_watched()?;
    let root = emitter.value_at(start, 0)?;
    while let Some((state, depth, rule)) = emitter.pending.pop() {
        emitter.depth = depth;
        let shape = emitter.analysis.shape(state)?;
        let alternatives = emitter.alternatives(state, &shape)?;
        emitter.rules.define(rule, alternatives);
        if emitter.rules.len() > most_rules {
            return Err(ConstraintError::TooLarge {
                what: "rules of the schema's grammar",
                given: emitter.rules.len(),
                limit: most_rules,
            });
        }
    }
    let start_rule = emitter.rules.rule(vec![Alternative::new([root])]);
    if !emitter.rules.prune(start_rule) {
        return Err(at(&emitter.analysis.pointer(start), "no value meets all its demands"));
    }
    let watch = emitter.watch(start)?;
    let grammar = SchemaGrammar { rules: emitter.rules, start: start_rule, skip: options.whitespace.skip() };
    Ok((grammar, watch))
}

impl Emitter<'_, '_> {
    /// The symbol of a value in a state, inside the value that rules are being made for.
    fn value(&mut self, state: StateId) -> Result<Symbol, ConstraintError> {
        let depth = if self.options.whitespace.indent().is_some() { self.depth + 1 } else { 0 };
        self.value_at(state, depth)
    }

    fn value_at(&mut self, state: StateId, depth: usize) -> Result<Symbol, ConstraintError> {
        if let Some(known) = self.values.get(&(state, depth)) {
            return Ok(known.clone());
        }
        let shape = self.analysis.shape(state)?;
        // A single terminal needs no rule around it.
        let symbol = match self.scalars(state, &shape)?.as_slice() {
            [only] if shape.arrays.is_empty() && shape.objects.is_empty() => only.clone(),
            _ => {
                let rule = self.rules.declare(false);
                // Deeper than that there is no rule, so nothing that leads there is offered.
                if depth <= Whitespace::DEEPEST {
                    self.pending.push((state, depth, rule));
                }
                Symbol::Rule(rule)
            }
        };
        self.values.insert((state, depth), symbol.clone());
        Ok(symbol)
    }

    fn alternatives(&mut self, state: StateId, shape: &Shape) -> Result<Vec<Alternative>, ConstraintError> {
        let mut alternatives: Vec<_> =
            self.scalars(state, shape)?.into_iter().map(|symbol| Alternative::new([symbol])).collect();
        let pointer = self.analysis.pointer(state);
        for array in shape.arrays.iter().filter(|array| self.productive.has_array(array)).collect::<Vec<_>>()
        {
            let key = (array.clone(), self.depth);
            let rule = match self.arrays.get(&key) {
                Some(known) => *known,
                None => {
                    let rule = self.array(array, state)?;
                    self.arrays.insert(key, rule);
                    rule
                }
            };
            alternatives.push(Alternative::new([Symbol::Rule(rule)]));
        }
        for object in
            shape.objects.iter().filter(|object| self.productive.has_object(object)).collect::<Vec<_>>()
        {
            let key = (object.clone(), self.depth);
            let rule = match self.objects.get(&key) {
                Some(known) => *known,
                None => {
                    let rule = self.object(object, &pointer)?;
                    self.objects.insert(key, rule);
                    rule
                }
            };
            alternatives.push(Alternative::new([Symbol::Rule(rule)]));
        }
        Ok(alternatives)
    }

    /// The terminals of a state's values that have no parts.
    fn scalars(&mut self, state: StateId, shape: &Shape) -> Result<Vec<Symbol>, ConstraintError> {
        let mut symbols = Vec::new();
        let words = [(shape.null, "null"), (shape.truth[1], "true"), (shape.truth[0], "false")];
        let words: Vec<_> =
            words.iter().filter(|(there, _)| *there).map(|(_, word)| Regular::literal(*word)).collect();
        if !words.is_empty() {
            symbols.push(self.rules.terminal(Regular::or(words)));
        }
        if let Some(set) = &shape.numbers {
            symbols.push(self.number(set, state)?);
        }
        if let Some(bodies) = &shape.texts {
            let bodies = self.capped(bodies);
            symbols.push(self.rules.terminal(Regular::between("\"", &bodies, "\"")));
        }
        Ok(symbols)
    }

    fn number(&mut self, set: &NumberSet, state: StateId) -> Result<Symbol, ConstraintError> {
        if let Some(known) = self.numbers.get(set) {
            return Ok(known.clone());
        }
        let once = if self.spell_once { set.spelled_once(MOST_SPELLED_ONCE) } else { None };
        let text = match once {
            Some(language) => NumberText::Regular(language),
            None => set.to_text(self.spelling()).map_err(|error| at(&self.analysis.pointer(state), error))?,
        };
        let symbol = match text {
            NumberText::Regular(language) => self.rules.terminal(language),
            NumberText::Automaton(automaton) => Symbol::Rule(self.automaton(&automaton)),
        };
        self.numbers.insert(set.clone(), symbol.clone());
        Ok(symbol)
    }

    /// Strings no longer than the cap, if there is one and the schema leaves it room.
    fn capped(&self, bodies: &Regular) -> Regular {
        let Some(cap) = self.options.string_cap else { return bodies.clone() };
        let short = string::length(0, Some(cap.into()));
        if *bodies == string::universe() {
            return short;
        }
        let capped = Regular::and([bodies.clone(), short]);
        let listed = bodies.texts(usize::MAX, self.analysis.fuel).is_some();
        if listed || capped.is_empty(self.analysis.fuel) != Answer::No { bodies.clone() } else { capped }
    }

    fn spelling(&self) -> NumberSpelling {
        // To draft-04 an integer is one by its spelling: 1.0 isn't.
        let by_spelling = self.analysis.documents.draft() == Some(Draft::D4);
        let forms = if by_spelling { NumberForms::Plain } else { self.options.numbers };
        NumberSpelling { forms, ..NumberSpelling::default() }
    }

    /// A number that is read character by character, a rule for each state of its automaton.
    fn automaton(&mut self, automaton: &Automaton) -> RuleId {
        let rules: Vec<_> = automaton.transitions.iter().map(|_| self.rules.declare(false)).collect();
        for (state, rule) in rules.iter().enumerate() {
            let mut alternatives = Vec::new();
            if automaton.accepting[state] {
                alternatives.push(Alternative::default());
            }
            for transition in &automaton.transitions[state] {
                let character = self.rules.terminal(Regular::pattern(transition.pattern()));
                alternatives.push(Alternative::new([character, Symbol::Rule(rules[transition.to])]));
            }
            self.rules.define(*rule, alternatives);
        }
        rules[automaton.start]
    }

    /// The terminal of a text.
    fn word(&mut self, word: impl Into<String>) -> Symbol {
        self.rules.terminal(Regular::literal(word))
    }

    /// Two brackets with nothing in them.
    fn empty(&mut self, open: &str, close: &str) -> Vec<Symbol> {
        if self.options.whitespace.is_free() {
            vec![self.word(open), self.word(close)]
        } else {
            vec![self.word(format!("{open}{close}"))]
        }
    }

    /// An opening bracket and the white space before what is inside.
    fn opening(&self, bracket: &str) -> String {
        format!("{bracket}{}", self.line(1))
    }

    /// The white space after what is inside, and the closing bracket.
    fn closing(&self, bracket: &str) -> String {
        format!("{}{bracket}", self.line(0))
    }

    fn comma(&self) -> String {
        let space = if self.options.whitespace == Whitespace::Spaced { " " } else { "" };
        format!(",{space}{}", self.line(1))
    }

    fn colon(&self) -> &'static str {
        let space = matches!(self.options.whitespace, Whitespace::Spaced | Whitespace::Pretty(_));
        if space { ": " } else { ":" }
    }

    /// A new line and its indentation, where white space has lines.
    fn line(&self, deeper: usize) -> String {
        match self.options.whitespace.indent() {
            Some(indent) => format!("\n{}", " ".repeat(usize::from(indent) * (self.depth + deeper))),
            None => String::new(),
        }
    }

    fn check_rules(&self) -> Result<(), ConstraintError> {
        ConstraintError::check("rules of the schema's grammar", self.rules.len(), self.most_rules)
    }

    fn any_order(&self) -> bool {
        self.options.order == PropertyOrder::Any
    }
}
