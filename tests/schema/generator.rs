//! Random schemas: every keyword of 2020-12 that constrains, nested and recursive, small enough to be met.

use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

pub const KEYS: [&str; 6] = ["a", "b", "c", "ab", "x1", "é \"q\""];
const PATTERNS: [&str; 9] =
    ["^a+$", "^[a-z]{2,4}$", "b", "^x", "[0-9]$", "^(foo|bar)$", "^$", "^[^a]*$", "^\\d{3}(-\\d{2})?$"];
const KEY_PATTERNS: [&str; 5] = ["^a", "b$", "^[a-c]$", "x", "^.{2}$"];
const FORMATS: [&str; 12] = [
    "date",
    "time",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
    "uri",
    "json-pointer",
    "oddity",
];
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Makes schemas, one after the other.
pub struct Generator<'a> {
    pub rng: &'a mut ChaCha8Rng,
    /// How many definitions there are to refer to.
    definitions: usize,
}

impl<'a> Generator<'a> {
    /// A whole document.
    pub fn document(rng: &'a mut ChaCha8Rng) -> Value {
        let definitions = *[0, 0, 1, 2].choose(rng).unwrap();
        let mut generator = Generator { rng, definitions };
        let depth = generator.rng.random_range(1..=3);
        let mut schema = generator.schema(depth);
        if definitions > 0 {
            let bodies: Map<String, Value> =
                (0..definitions).map(|index| (format!("d{index}"), generator.schema(2))).collect();
            if !schema.is_object() {
                schema = json!({"$ref": "#/$defs/d0"});
            }
            schema["$defs"] = Value::Object(bodies);
        }
        schema
    }

    /// For values only.
    pub fn of(rng: &'a mut ChaCha8Rng) -> Self {
        Self { rng, definitions: 0 }
    }

    fn often(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from.choose(self.rng).unwrap()
    }

    fn schema(&mut self, depth: u32) -> Value {
        match self.rng.random_range(0..100) {
            0..4 => return json!(true),
            4..5 => return json!(false),
            5..8 => return json!({}),
            8..14 if self.definitions > 0 => return self.reference(),
            14..22 => return self.listed(),
            _ => {}
        }
        let mut schema = Map::new();
        let typed = self.often(85);
        let kind = self.pick(&TYPES);
        if typed {
            let other = self.pick(&TYPES);
            let types = if self.often(12) && other != kind { json!([kind, other]) } else { json!(kind) };
            schema.insert("type".into(), types);
        }
        if typed || self.often(60) {
            self.keywords(kind, depth, &mut schema);
        }
        if depth > 0 && (self.often(25) || schema.is_empty()) {
            self.combinators(depth, &mut schema);
        }
        Value::Object(schema)
    }

    fn reference(&mut self) -> Value {
        let index = self.rng.random_range(0..self.definitions);
        json!({"$ref": format!("#/$defs/d{index}")})
    }

    fn listed(&mut self) -> Value {
        if self.often(40) {
            return json!({"const": self.value(1)});
        }
        let count = self.rng.random_range(1..5);
        let mut values: Vec<Value> = (0..count).map(|_| self.value(1)).collect();
        let mut seen: Vec<Value> = Vec::new();
        values.retain(|value| {
            let fresh = !seen.contains(value);
            seen.push(value.clone());
            fresh
        });
        json!({"enum": values})
    }

    fn keywords(&mut self, kind: &str, depth: u32, schema: &mut Map<String, Value>) {
        match kind {
            "integer" | "number" => self.number(schema),
            "string" => self.string(schema),
            "array" => self.array(depth, schema),
            "object" => self.object(depth, schema),
            _ => {}
        }
    }

    fn number(&mut self, schema: &mut Map<String, Value>) {
        let numbers =
            [json!(0), json!(1), json!(-3), json!(2.25), json!(10), json!(0.5), json!(100), json!(-1.5)];
        for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
            if self.often(25) {
                schema.insert(keyword.into(), numbers.choose(self.rng).unwrap().clone());
            }
        }
        if self.often(20) {
            let steps =
                [json!(1), json!(2), json!(5), json!(0.5), json!(0.25), json!(3), json!(7), json!(10)];
            schema.insert("multipleOf".into(), steps.choose(self.rng).unwrap().clone());
        }
    }

    /// A lower and an upper count, mostly in order.
    fn counts(&mut self, low: &str, high: &str, schema: &mut Map<String, Value>) {
        let min = self.rng.random_range(0..3);
        if self.often(30) {
            schema.insert(low.into(), json!(min));
        }
        if self.often(30) {
            let max = if self.often(95) { min + self.rng.random_range(0..3) } else { 0 };
            schema.insert(high.into(), json!(max));
        }
    }

    fn string(&mut self, schema: &mut Map<String, Value>) {
        self.counts("minLength", "maxLength", schema);
        if self.often(25) {
            schema.insert("pattern".into(), json!(self.pick(&PATTERNS)));
        }
        if self.often(20) {
            schema.insert("format".into(), json!(self.pick(&FORMATS)));
        }
    }

    fn array(&mut self, depth: u32, schema: &mut Map<String, Value>) {
        self.counts("minItems", "maxItems", schema);
        if self.often(20) {
            schema.insert("uniqueItems".into(), json!(true));
        }
        if depth == 0 {
            return;
        }
        if self.often(30) {
            let count = self.rng.random_range(1..3);
            schema.insert("prefixItems".into(), (0..count).map(|_| self.schema(depth - 1)).collect());
        }
        if self.often(55) {
            schema.insert("items".into(), self.schema(depth - 1));
        }
        if self.often(15) {
            schema.insert("contains".into(), self.schema(depth - 1));
            self.counts("minContains", "maxContains", schema);
        }
        if self.often(5) {
            schema.insert("unevaluatedItems".into(), self.schema(depth - 1));
        }
    }

    fn object(&mut self, depth: u32, schema: &mut Map<String, Value>) {
        if self.often(25) {
            self.counts("minProperties", "maxProperties", schema);
        }
        if self.often(60) {
            let keys = self.keys(3);
            schema.insert("required".into(), json!(keys));
        }
        if self.often(15) {
            let key = self.pick(&KEYS);
            let keys = self.keys(2);
            schema.insert("dependentRequired".into(), json!({key: keys}));
        }
        if depth == 0 {
            return;
        }
        if self.often(85) {
            let properties: Map<String, Value> =
                self.keys(4).into_iter().map(|key| (key.to_owned(), self.schema(depth - 1))).collect();
            schema.insert("properties".into(), Value::Object(properties));
        }
        if self.often(50) {
            let rest = if self.often(60) { json!(false) } else { self.schema(depth - 1) };
            schema.insert("additionalProperties".into(), rest);
        }
        if self.often(15) {
            let key = self.pick(&KEY_PATTERNS);
            schema.insert("patternProperties".into(), json!({key: self.schema(depth - 1)}));
        }
        if self.often(10) {
            let pattern = self.pick(&KEY_PATTERNS);
            let names = if self.often(50) { json!({"pattern": pattern}) } else { json!({"maxLength": 2}) };
            schema.insert("propertyNames".into(), names);
        }
        if self.often(8) {
            let key = self.pick(&KEYS);
            schema.insert("dependentSchemas".into(), json!({key: self.schema(depth - 1)}));
        }
        if self.often(8) {
            let rest = if self.often(60) { json!(false) } else { self.schema(depth - 1) };
            schema.insert("unevaluatedProperties".into(), rest);
        }
    }

    fn keys(&mut self, max: usize) -> Vec<&'static str> {
        let count = self.rng.random_range(0..=max);
        KEYS.choose_multiple(self.rng, count).copied().collect()
    }

    fn combinators(&mut self, depth: u32, schema: &mut Map<String, Value>) {
        let keyword = self.pick(&["allOf", "anyOf", "oneOf", "not", "if", "$ref"]);
        match keyword {
            "not" => {
                schema.insert("not".into(), self.schema(depth - 1));
            }
            "if" => {
                for keyword in ["if", "then", "else"] {
                    if keyword == "if" || self.often(75) {
                        schema.insert(keyword.into(), self.schema(depth - 1));
                    }
                }
            }
            "$ref" if self.definitions > 0 => {
                schema.insert("$ref".into(), self.reference()["$ref"].take());
            }
            "$ref" => {}
            _ => {
                let count = self.rng.random_range(1..4);
                schema.insert(keyword.into(), (0..count).map(|_| self.schema(depth - 1)).collect());
            }
        }
    }

    /// A value that has something to do with the schemas made here.
    pub fn value(&mut self, depth: u32) -> Value {
        let texts = ["", "a", "aa", "foo", "bar", "b1", "é", "x\"y\\z", "2024-02-29", "a@b.example", "123"];
        match self.rng.random_range(0..if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.often(50)),
            2 => json!(self.rng.random_range(-4..12)),
            3 => json!(f64::from(self.rng.random_range(-8..40)) / 4.0),
            4 | 5 => json!(self.pick(&texts)),
            6 => {
                let count = self.rng.random_range(0..4);
                (0..count).map(|_| self.value(depth - 1)).collect()
            }
            _ => {
                let keys = self.keys(3);
                Value::Object(keys.into_iter().map(|key| (key.to_owned(), self.value(depth - 1))).collect())
            }
        }
    }

    /// A value near another: one thing about it is different.
    pub fn near(&mut self, value: &Value) -> Value {
        match value {
            Value::Array(items) if !items.is_empty() && self.often(80) => {
                let mut items = items.clone();
                let index = self.rng.random_range(0..items.len());
                match self.rng.random_range(0..4) {
                    0 => {
                        items.remove(index);
                    }
                    1 => items.insert(index, items[index].clone()),
                    2 => items.push(self.value(1)),
                    _ => items[index] = self.near(&items[index]),
                }
                Value::Array(items)
            }
            Value::Object(members) if !members.is_empty() && self.often(80) => {
                let mut members = members.clone();
                let key = members.keys().nth(self.rng.random_range(0..members.len())).unwrap().clone();
                match self.rng.random_range(0..5) {
                    0 => {
                        members.shift_remove(&key);
                    }
                    1 => {
                        let value = self.value(1);
                        members.insert(self.pick(&KEYS).to_owned(), value);
                    }
                    2 => {
                        // The first becomes the last: another order.
                        if let Some(value) = members.shift_remove(&key) {
                            members.insert(key, value);
                        }
                    }
                    _ => {
                        let near = self.near(&members[&key]);
                        members.insert(key, near);
                    }
                }
                Value::Object(members)
            }
            Value::Number(number) if self.often(70) => {
                let number = number.as_f64().unwrap_or(0.0);
                let steps = [number + 1.0, number - 1.0, -number, number / 2.0, number * 10.0, number + 0.25];
                json!(steps.choose(self.rng).unwrap())
            }
            Value::String(text) if self.often(70) => {
                let mut text: Vec<char> = text.chars().collect();
                match self.rng.random_range(0..3) {
                    0 => {
                        text.pop();
                    }
                    1 => text.push(*['a', 'b', '1', '\u{e9}'].choose(self.rng).unwrap()),
                    _ if text.is_empty() => text.push('x'),
                    _ => {
                        let index = self.rng.random_range(0..text.len());
                        text[index] = 'a';
                    }
                }
                json!(text.into_iter().collect::<String>())
            }
            _ => self.value(1),
        }
    }
}
