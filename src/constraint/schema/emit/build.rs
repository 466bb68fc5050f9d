//! The grammar in the engine's own structures, without a detour through text: reading Lark costs the engine most of a
//! millisecond however short the text.

use std::sync::{Mutex, PoisonError};

use ahash::{HashMap, HashMapExt as _};
use llguidance::{
    api::{GrammarInit, SkipSpec},
    derivre::RegexAst,
    earley::{
        Grammar, ParamCond, ParamExpr, ParamRef, ParamValue, SlicedBiasComputer, SymIdx, SymbolProps,
        lexerspec::{LexemeClass, LexerSpec},
    },
};

use super::rules::{Condition, Field, Parameter, RuleId, Rules, Symbol};
use crate::constraint::reader::Reader;

/// Bounds on what is built.
#[derive(Debug, Clone, Copy)]
pub(in crate::constraint) struct BuildLimits {
    /// Work on regular expressions.
    pub(in crate::constraint) fuel: u64,
    /// Symbols.
    pub(in crate::constraint) symbols: usize,
}

/// The engine numbers symbols in 16 bits, and panics at more than this.
const MOST_SYMBOLS: usize = u16::MAX as usize - 11;

/// The grammar of `rules`. `skip` is white space that may stand between terminals, once.
pub(super) fn build(
    rules: &Rules,
    start: RuleId,
    skip: Option<&'static str>,
    limits: BuildLimits,
) -> Result<(GrammarInit, Lexemes), String> {
    let message = |error: &dyn std::fmt::Display| error.to_string();
    let Beginning { mut lexer, class, mut reader } = Beginning::of(skip)?;
    let mut expressions = vec![None; rules.terminals.len()];
    let (reached, used) = rules.reached(start);
    let inlined = rules.inlined(start, &reached);
    for (index, language) in rules.terminals.iter().enumerate().filter(|(index, _)| used[*index]) {
        expressions[index] = Some(reader.expression(language)?);
        if reader.builder.exprset().cost() > limits.fuel {
            return Err(format!("its patterns take more work than the limit of {}", limits.fuel));
        }
    }
    lexer.regex_builder = reader.builder;
    let props = || SymbolProps { grammar_id: class, ..SymbolProps::default() };
    let mut grammar = Grammar::new(None);
    // The first symbol is the start.
    let root = grammar.fresh_symbol_ext("start", props());
    grammar.sym_props_mut(root).is_start = true;
    let mut symbols = vec![None; rules.rules.len()];
    let kept = || rules.rules.iter().enumerate().filter(|(index, _)| reached[*index] && !inlined[*index]);
    for (index, rule) in kept() {
        let symbol = grammar.fresh_symbol_ext(&format!("r{index}"), props());
        if rule.parametric {
            grammar.make_parametric(symbol).map_err(|error| message(&error))?;
        }
        symbols[index] = Some(symbol);
    }
    let mut terminals = vec![None; rules.terminals.len()];
    let mut lexemes = vec![None; rules.terminals.len()];
    for (index, expression) in expressions.into_iter().enumerate() {
        let Some(expression) = expression else { continue };
        let name = format!("T{index}");
        let ast = RegexAst::ExprRef(expression);
        let lexeme = lexer
            .add_greedy_lexeme(name.clone(), ast, false, None, usize::MAX)
            .map_err(|error| message(&error))?;
        let symbol = grammar.fresh_symbol_ext(&name, props());
        grammar.make_terminal(symbol, lexeme, &lexer).map_err(|error| message(&error))?;
        terminals[index] = Some(symbol);
        lexemes[index] = Some(lexeme.as_usize());
        if lexer.cost() > limits.fuel {
            return Err(format!("its patterns take more work than the limit of {}", limits.fuel));
        }
    }
    lexer.num_extra_lexemes = lexer.lexemes.len() - Beginning::FIRST_SLICE;
    let repeats = HashMap::new();
    let mut builder =
        Builder { rules, inlined: &inlined, grammar, props: props(), symbols, terminals, repeats };
    for (index, rule) in kept() {
        let Some(symbol) = builder.symbols[index] else { continue };
        for alternative in &rule.alternatives {
            let right = builder.right(&alternative.symbols)?;
            let condition = alternative.condition.as_ref().map_or(ParamCond::True, condition);
            builder.grammar.add_rule_ext(symbol, condition, right).map_err(|error| message(&error))?;
        }
        let most = limits.symbols.min(MOST_SYMBOLS);
        if builder.grammar.num_symbols() > most {
            return Err(format!("it takes more symbols than the limit of {most}"));
        }
    }
    if let Some(first) = builder.symbols[start.0] {
        builder.add(root, vec![(first, ParamExpr::Null)])?;
    }
    Ok((GrammarInit::Internal(builder.grammar, lexer), Lexemes(lexemes)))
}

/// Which of the engine's lexemes terminals are. Terminals of the same expression share one.
#[derive(Debug)]
pub(in crate::constraint) struct Lexemes(Vec<Option<usize>>);

impl Lexemes {
    pub(super) fn terminal(&self, lexeme: usize) -> Option<usize> {
        self.0.iter().position(|&own| own == Some(lexeme))
    }

    pub(super) fn lexeme(&self, terminal: usize) -> Option<usize> {
        self.0[terminal]
    }
}

/// A lexer of no terminals yet, but the engine's slices, and what they and common expressions were read into: to copy it
/// takes less time than to make it.
#[derive(Clone)]
struct Beginning {
    lexer: LexerSpec,
    class: LexemeClass,
    reader: Reader,
}

impl Beginning {
    /// The first lexeme is the white space, then come the slices. The engine takes them for the last and counts back from
    /// the end as many as it's told there are; told that all but the white space are slices, it counts back to here.
    const FIRST_SLICE: usize = 1;

    fn of(skip: Option<&'static str>) -> Result<Self, String> {
        static MADE: Mutex<Vec<(Option<&str>, Beginning)>> = Mutex::new(Vec::new());
        // Only whole ones are put in.
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = made.iter().find(|(of, _)| *of == skip) {
            return Ok(known.clone());
        }
        let new = Self::make(skip)?;
        made.push((skip, new.clone()));
        Ok(new)
    }

    fn make(skip: Option<&str>) -> Result<Self, String> {
        let mut reader = Reader::new();
        let mut lexer = LexerSpec::new().map_err(|error| error.to_string())?;
        lexer.regex_builder = reader.builder;
        let skip = match skip {
            Some(pattern) => SkipSpec::once(RegexAst::Regex(pattern.to_owned())),
            None => SkipSpec::unbounded(RegexAst::NoMatch),
        };
        let class = lexer.setup_lexeme_class_with_skip(skip).map_err(|error| error.to_string())?;
        assert_eq!(lexer.lexemes.len(), Self::FIRST_SLICE, "white space is one lexeme");
        lexer.add_extra_lexemes(&SlicedBiasComputer::general_slices());
        reader.builder = std::mem::take(&mut lexer.regex_builder);
        Ok(Self { lexer, class, reader })
    }
}

type Right = Vec<(SymIdx, ParamExpr)>;

struct Builder<'r> {
    rules: &'r Rules,
    inlined: &'r [bool],
    grammar: Grammar,
    props: SymbolProps,
    symbols: Vec<Option<SymIdx>>,
    terminals: Vec<Option<SymIdx>>,
    /// Rules for an item so many times, or up to so many.
    repeats: HashMap<(SymIdx, Times), SymIdx>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Times {
    Exactly(u64),
    AtMost(u64),
    Any,
}

impl Builder<'_> {
    fn add(&mut self, left: SymIdx, right: Right) -> Result<(), String> {
        self.grammar.add_rule_ext(left, ParamCond::True, right).map_err(|error| error.to_string())
    }

    fn fresh(&mut self) -> SymIdx {
        self.grammar.fresh_symbol_ext("repeat", self.props.clone())
    }

    fn right(&mut self, symbols: &[Symbol]) -> Result<Right, String> {
        let rules = self.rules;
        let mut right = Vec::with_capacity(symbols.len());
        // Chains of rules are thousands long.
        let mut open = vec![symbols.iter()];
        while let Some(innermost) = open.last_mut() {
            let Some(symbol) = innermost.next() else {
                open.pop();
                continue;
            };
            let found = match symbol {
                Symbol::Rule(rule) if self.inlined[rule.0] => {
                    open.push(rules.rules[rule.0].alternatives[0].symbols.iter());
                    None
                }
                Symbol::Terminal(terminal) => {
                    self.terminals[terminal.0].map(|symbol| (symbol, ParamExpr::Null))
                }
                Symbol::Rule(rule) => self.symbols[rule.0].map(|symbol| (symbol, ParamExpr::Null)),
                Symbol::With(rule, parameter) => {
                    self.symbols[rule.0].map(|symbol| (symbol, expression_of(*parameter)))
                }
                Symbol::Repeat(inner, 0, None) => Some((self.any(inner)?, ParamExpr::Null)),
                Symbol::Repeat(inner, min, max) => {
                    let item = self.item(inner)?;
                    if *min > 0 {
                        right.push((self.repeat(item, Times::Exactly(*min))?, ParamExpr::Null));
                    }
                    let rest = max.map_or(Times::Any, |max| Times::AtMost(max.saturating_sub(*min)));
                    (rest != Times::AtMost(0))
                        .then(|| self.repeat(item, rest))
                        .transpose()?
                        .map(|symbol| (symbol, ParamExpr::Null))
                }
            };
            right.extend(found);
        }
        Ok(right)
    }

    /// Symbols any number of times.
    fn any(&mut self, symbols: &[Symbol]) -> Result<SymIdx, String> {
        let item = self.right(symbols)?;
        let left = self.fresh();
        self.add(left, Vec::new())?;
        self.add(left, [(left, ParamExpr::Null)].into_iter().chain(item).collect())?;
        Ok(left)
    }

    /// One symbol for several.
    fn item(&mut self, symbols: &[Symbol]) -> Result<SymIdx, String> {
        let right = self.right(symbols)?;
        if let [(only, ParamExpr::Null)] = right[..] {
            return Ok(only);
        }
        let item = self.fresh();
        self.add(item, right)?;
        Ok(item)
    }

    /// An item so many times: a number of rules that grows with the number's digits.
    fn repeat(&mut self, item: SymIdx, times: Times) -> Result<SymIdx, String> {
        match times {
            Times::Exactly(1) => return Ok(item),
            _ if self.repeats.contains_key(&(item, times)) => return Ok(self.repeats[&(item, times)]),
            _ => {}
        }
        let left = self.fresh();
        self.repeats.insert((item, times), left);
        let null = |symbol| (symbol, ParamExpr::Null);
        match times {
            Times::Any => {
                self.add(left, Vec::new())?;
                self.add(left, vec![null(left), null(item)])?;
            }
            Times::Exactly(times) => {
                const FEW: u64 = 4;
                let right = if times <= FEW {
                    (0..times).map(|_| null(item)).collect()
                } else {
                    let half = self.repeat(item, Times::Exactly(times / 2))?;
                    let odd = (times % 2 == 1).then_some(null(item));
                    [null(half), null(half)].into_iter().chain(odd).collect()
                };
                self.add(left, right)?;
            }
            Times::AtMost(0) => self.add(left, Vec::new())?,
            Times::AtMost(1) => {
                self.add(left, Vec::new())?;
                self.add(left, vec![null(item)])?;
            }
            Times::AtMost(most) => {
                // Fewer than half, or half of them and up to the rest.
                let half = most.div_ceil(2);
                let fewer = self.repeat(item, Times::AtMost(half - 1))?;
                let first = self.repeat(item, Times::Exactly(half))?;
                let rest = self.repeat(item, Times::AtMost(most - half))?;
                self.add(left, vec![null(fewer)])?;
                self.add(left, vec![null(first), null(rest)])?;
            }
        }
        Ok(left)
    }
}

/// The index of a bit; a parameter has 64.
fn bit(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}

fn field(field: Field) -> ParamRef {
    ParamRef::new(bit(field.0), bit(field.1))
}

fn expression_of(parameter: Parameter) -> ParamExpr {
    match parameter {
        Parameter::Is(value) => ParamExpr::Const(ParamValue(value)),
        Parameter::Same => ParamExpr::SelfRef,
        Parameter::Set(bits) => ParamExpr::BitOr(ParamValue(bits)),
        Parameter::OneMore(of) => ParamExpr::Incr(field(of)),
    }
}

fn condition(condition: &Condition) -> ParamCond {
    let both = |one: &Condition, other: &Condition| {
        (Box::new(self::condition(one)), Box::new(self::condition(other)))
    };
    let bits = |number: u64| u8::try_from(number).unwrap_or(u8::MAX);
    match condition {
        Condition::Bit(index, set) => {
            ParamCond::EQ(ParamRef::single_bit(bit(*index)), ParamValue(u64::from(*set)))
        }
        Condition::Ones(of) => {
            let of = field(*of);
            ParamCond::EQ(of, ParamValue(of.mask() >> of.start()))
        }
        Condition::AtLeast(of, least) => ParamCond::GE(field(*of), ParamValue(*least)),
        Condition::Below(of, bound) => ParamCond::LT(field(*of), ParamValue(*bound)),
        Condition::BitsAtLeast(of, least) => ParamCond::BitCountGE(field(*of), bits(*least)),
        Condition::BitsBelow(of, bound) => ParamCond::BitCountLT(field(*of), bits(*bound)),
        Condition::BitsAtMost(of, most) => ParamCond::BitCountLE(field(*of), bits(*most)),
        Condition::And(one, other) => {
            let (one, other) = both(one, other);
            ParamCond::And(one, other)
        }
        Condition::Or(one, other) => {
            let (one, other) = both(one, other);
            ParamCond::Or(one, other)
        }
    }
}
