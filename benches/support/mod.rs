//! What the benches share: the fixtures of the tests, and constraints with texts under them.

#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr, reason = "each bench uses a part")]

use std::{path::PathBuf, sync::Arc};

use maskwright::{
    Compiler, Constraint, Limits, Vocabulary,
    constraint::JsonSchema,
    vocab::{ParseSpecials, SpecialsHint},
};
use serde_json::json;

/// As in the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A file that `make fixtures` fetches; `None`, with a line on stderr, where it is missing.
pub(crate) fn fixture(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("MASKWRIGHT_FIXTURES").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
        Some(cache.or_else(home)?.join("maskwright/fixtures"))
    })?;
    let path = folder.join(name);
    if !path.exists() {
        eprintln!("skipped: {name} is not in {} (run make fixtures)", folder.display());
        return None;
    }
    Some(path)
}

/// A compiler over a real vocabulary.
pub(crate) fn compiler(name: &str, limits: Limits) -> Option<Compiler> {
    Some(Compiler::new(vocabulary(name)?, limits).unwrap())
}

/// A real vocabulary.
pub(crate) fn vocabulary(name: &str) -> Option<Arc<Vocabulary>> {
    let read = |file: &str| Some(std::fs::read(fixture(&format!("tokenizers/{name}/{file}"))?).unwrap());
    let hint = SpecialsHint::from_configs(None, Some(&read("tokenizer_config.json")?)).unwrap();
    Some(Vocabulary::from_tokenizer_json(&read("tokenizer.json")?, &hint).unwrap())
}

/// A constraint, and a text it accepts.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) constraint: Constraint,
    pub(crate) text: &'static str,
}

impl Case {
    /// The text's tokens.
    pub(crate) fn tokens(&self, vocab: &Arc<Vocabulary>) -> Vec<u32> {
        vocab.encode(self.text, ParseSpecials::No).unwrap()
    }
}

/// Constraints as users write them.
pub(crate) fn cases() -> Vec<Case> {
    let schema = |value| Constraint::JsonSchema(JsonSchema::from(value));
    vec![
        Case {
            name: "four fields",
            constraint: schema(four_fields()),
            text: r#"{"first_name":"Ada","family_name":"Lovelace","year_of_birth":1815,"profession":"mathematician"}"#,
        },
        Case {
            name: "nested list",
            constraint: schema(json!({
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "integer"},
                        "title": {"type": "string"},
                        "tags": {"type": "array", "items": {"type": "string"}},
                        "price": {"type": "number", "minimum": 0}
                    },
                    "required": ["id", "title"]
                }
            })),
            text: r#"[{"id":17,"title":"A short history of nearly everything","tags":["science","popular"],"price":12.5},{"id":18,"title":"Catch-22"}]"#,
        },
        Case {
            name: "any object",
            constraint: Constraint::JsonObject(maskwright::constraint::SchemaOptions::default()),
            text: r#"{"the quick brown fox":["jumps",{"over":null}],"lazy":{"dog":[1,2.5,-3e10,true]}}"#,
        },
        Case {
            name: "e-mail regex",
            constraint: Constraint::Regex(r"[a-z0-9._%+-]{1,40}@[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,8}".into()),
            text: "someone.with.a.name+tag@mail.example-domain.org",
        },
        Case {
            name: "arithmetic",
            constraint: Constraint::Lark(
                "start: sum\nsum: product (/[-+]/ product)*\nproduct: atom (/[*\\/]/ atom)*\natom: /[0-9]+/ | \"(\" sum \")\"".into(),
            ),
            text: "(12+3)*4-5/(6+78*(9-1))+1000000-(1+(2+(3+(4+5))))",
        },
    ]
}

/// The schema with four required fields, all of whose keys are forced.
pub(crate) fn four_fields() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "first_name": {"type": "string", "maxLength": 20},
            "family_name": {"type": "string", "maxLength": 20},
            "year_of_birth": {"type": "integer", "minimum": 1000, "maximum": 2030},
            "profession": {"enum": ["mathematician", "physicist", "painter", "poet"]}
        },
        "required": ["first_name", "family_name", "year_of_birth", "profession"],
        "additionalProperties": false
    })
}
