//! The smallest schema, near one that fails, that still fails.

use serde_json::{Value, json};

/// Tries removals and replacements as long as `fails` holds.
pub fn shrink(value: &Value, fails: &mut dyn FnMut(&Value) -> bool) -> Value {
    let mut best = value.clone();
    'again: loop {
        for candidate in smaller(&best) {
            if fails(&candidate) {
                best = candidate;
                continue 'again;
            }
        }
        return best;
    }
}

/// Values with one thing less, the boldest first.
fn smaller(value: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match value {
        Value::Object(members) => {
            found.extend(members.values().filter(|inner| inner.is_object()).cloned());
            for key in members.keys() {
                let mut less = members.clone();
                less.shift_remove(key);
                found.push(Value::Object(less));
            }
            for (key, inner) in members {
                for inner in smaller(inner) {
                    let mut less = members.clone();
                    less.insert(key.clone(), inner);
                    found.push(Value::Object(less));
                }
            }
            if members.len() > 1 || members.values().any(|inner| !inner.is_boolean()) {
                found.push(json!(true));
                found.push(json!({}));
            }
        }
        Value::Array(items) => {
            for index in 0..items.len() {
                let mut less = items.clone();
                less.remove(index);
                found.push(Value::Array(less));
            }
            for (index, inner) in items.iter().enumerate() {
                for inner in smaller(inner) {
                    let mut less = items.clone();
                    less[index] = inner;
                    found.push(Value::Array(less));
                }
            }
        }
        _ => {}
    }
    found
}
