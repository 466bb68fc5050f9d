//! Our matcher and the independent validator, asked the same question.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, OnceLock},
};

use maskwright::{
    Compiler, Constraint, Limits, Matcher, TokenId, Vocabulary,
    constraint::{ConstraintError, JsonSchema, PropertyOrder, SchemaOptions},
    engine::{CompileError, CompiledConstraint, MatchError},
};
use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// A schema that we compile.
pub struct Subject {
    compiled: Arc<CompiledConstraint>,
    validator: jsonschema::Validator,
}

/// How a walk under the masks ended.
pub enum Walk {
    /// With a whole text.
    Done(String),
    /// It was given up for its length.
    Long,
    /// A mask cost more than is allowed.
    Costly,
    /// There was no way on, and the text may not end.
    Dead(String),
}

fn compiler() -> Arc<Compiler> {
    static COMPILER: OnceLock<Arc<Compiler>> = OnceLock::new();
    let make = || Arc::new(Compiler::new(Vocabulary::single_bytes(), Limits::default()).unwrap());
    Arc::clone(COMPILER.get_or_init(make))
}

pub fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    let options = jsonschema::draft202012::options().should_validate_formats(true);
    options.build(schema).map_err(|error| error.to_string())
}

impl Subject {
    pub fn new(schema: &Value, order: PropertyOrder) -> Result<Self, CompileError> {
        let options = SchemaOptions { order, ..SchemaOptions::default() };
        let constraint = Constraint::JsonSchema(JsonSchema::from(schema.clone()).with_options(options));
        let compiler = compiler();
        let compiled = compiler.compile(&constraint.to_grammar(compiler.limits())?)?;
        let validator = validator(schema).expect("the generator makes schemas by the standard");
        Ok(Self { compiled, validator })
    }

    pub fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// Whether our masks allow the text, to its end.
    pub fn allows(&self, text: &str) -> Result<bool, MatchError> {
        let ids: Vec<TokenId> = text.bytes().map(TokenId::from).collect();
        let mut matcher = self.compiled.matcher();
        if matcher.accepts(&ids)? < ids.len() {
            return Ok(false);
        }
        matcher.commit(&ids)?;
        matcher.is_accepting()
    }

    /// A random text under the masks: evenly from what is allowed, but for a bias to the end.
    pub fn walk(&self, rng: &mut ChaCha8Rng) -> Walk {
        let mut matcher: Matcher = self.compiled.matcher();
        let mut text: Vec<u8> = Vec::new();
        let lossy = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        for step in 0..600_u32 {
            let mask = match matcher.mask() {
                Ok(mask) => mask,
                Err(MatchError::DeadEnd) => return Walk::Dead(lossy(&text)),
                Err(MatchError::TooComplex(_)) => return Walk::Costly,
                Err(error) => panic!("{error} after {}", lossy(&text)),
            };
            let allowed: Vec<TokenId> = mask.iter().collect();
            let stops: &[TokenId] = self.compiled.vocabulary().stop_tokens();
            let may_end = allowed.iter().any(|id| stops.contains(id));
            if may_end && (allowed.len() == stops.len() || rng.random_range(0..600) < 250 + step) {
                return Walk::Done(String::from_utf8(text).expect("whole texts are UTF-8"));
            }
            let bytes: Vec<u8> = allowed.iter().filter_map(|&id| u8::try_from(id).ok()).collect();
            if bytes.is_empty() {
                return Walk::Dead(lossy(&text));
            }
            let closing: Vec<u8> = bytes.iter().copied().filter(|byte| b"\"]}".contains(byte)).collect();
            let plain: Vec<u8> = bytes
                .iter()
                .copied()
                .filter(|byte| b"abcfox01\"{[\\".contains(byte) || *byte == 0xc3)
                .collect();
            // Opening another string isn't an end, but leads to one sooner than a number does.
            let pool = if !closing.is_empty() && rng.random_range(0..300) < 60 + step {
                &closing
            } else if !plain.is_empty() && rng.random_range(0..100) < 40 {
                &plain
            } else {
                &bytes
            };
            let byte = *pool.choose(rng).unwrap();
            matcher.commit(&[TokenId::from(byte)]).expect("the mask allows it");
            text.push(byte);
        }
        Walk::Long
    }
}

/// Where a refusal points, if it does.
pub fn place(error: &CompileError) -> Option<&str> {
    match error {
        CompileError::Constraint(ConstraintError::Schema { pointer, .. }) => Some(pointer),
        _ => None,
    }
}

/// A value as our texts spell it: no white space, integers without a fraction.
pub fn spell(value: &Value) -> String {
    fn plain(value: &Value) -> Value {
        match value {
            // All numbers here are small.
            Value::Number(number) => match number.as_f64() {
                Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => format!("{float:.0}")
                    .replace("-0", "0")
                    .parse::<i64>()
                    .map_or_else(|_| value.clone(), Value::from),
                _ => value.clone(),
            },
            Value::Array(items) => items.iter().map(plain).collect(),
            Value::Object(members) => {
                Value::Object(members.iter().map(|(key, value)| (key.clone(), plain(value))).collect())
            }
            other => other.clone(),
        }
    }
    plain(value).to_string()
}

/// Whether some number in the text has more digits than a double keeps, so that the validator can't tell.
pub fn is_beyond_doubles(text: &str) -> bool {
    let number = |char: char| matches!(char, '0'..='9' | '.' | '-' | '+' | 'e' | 'E');
    text.split(|char| !number(char)).any(|part| {
        part.bytes().filter(u8::is_ascii_digit).count() > 15
            || part.parse::<f64>().is_ok_and(|value| value.abs() >= 1e15)
    })
}

/// Whether an object in the text has two members of one name.
pub fn repeats_a_key(text: &str) -> bool {
    struct Unique;

    impl<'de> Deserialize<'de> for Unique {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Unique)
        }
    }

    impl<'de> Visitor<'de> for Unique {
        type Value = Self;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("JSON without repeated keys")
        }

        fn visit_unit<E>(self) -> Result<Self, E> {
            Ok(Self)
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
            Ok(Self)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
            Ok(Self)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
            Ok(Self)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
            Ok(Self)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self, E> {
            Ok(Self)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
            while items.next_element::<Self>()?.is_some() {}
            Ok(self)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
            let mut seen = HashSet::new();
            while let Some((key, _)) = members.next_entry::<String, Self>()? {
                if !seen.insert(key) {
                    return Err(A::Error::custom("repeated"));
                }
            }
            Ok(self)
        }
    }

    serde_json::from_str::<Unique>(text).is_err_and(|error| error.is_data())
}
