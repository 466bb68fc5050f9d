//! Chat templates render as transformers renders them.
//!
//! `golden.json` has our conversations and what transformers made of them (`golden.py` wrote it); the templates of
//! well-known models stand in the fixtures, and are skipped where those are absent.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers count as code outside tests

use std::time::{Duration, UNIX_EPOCH};

use maskwright::chat::{ChatTemplate, Message, RenderOptions, TemplateError};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Golden {
    now: u64,
    conversations: Vec<Conversation>,
    renderings: Map<String, Value>,
    values: Value,
    snippets: Vec<Snippet>,
}

#[derive(Deserialize)]
struct Conversation {
    name: String,
    messages: Vec<Message>,
    options: Map<String, Value>,
}

#[derive(Deserialize)]
struct Snippet {
    source: String,
    text: Option<String>,
}

impl Golden {
    fn read() -> Self {
        serde_json::from_str(include_str!("golden.json")).unwrap()
    }

    fn options(&self, conversation: &Conversation) -> RenderOptions {
        let mut options = RenderOptions::default();
        for (name, value) in &conversation.options {
            match name.as_str() {
                "add_generation_prompt" => options.add_generation_prompt = value.as_bool().unwrap(),
                _ => drop(options.kwargs.insert(name.clone(), value.clone())),
            }
        }
        options.now = Some(UNIX_EPOCH + Duration::from_secs(self.now));
        options
    }
}

/// A model's template and the texts of its special tokens.
fn template_of(name: &str) -> Option<(String, Vec<String>)> {
    if name.ends_with(".jinja") {
        let path = format!("{}/tests/chat/templates/{name}", env!("CARGO_MANIFEST_DIR"));
        let specials =
            ["<|im_end|>", "<|end|>", "[INST]", "<think>", "</think>", "<tool_call>", "<|im_start|>"];
        return Some((std::fs::read_to_string(path).unwrap(), specials.map(str::to_owned).to_vec()));
    }
    if name == "smollm2" {
        let specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map(str::to_owned);
        let file = beginning("models/SmolLM2-135M-Instruct.Q4_1.gguf")?;
        return Some((template_in_gguf(&file), specials.to_vec()));
    }
    let text = beginning(&format!("tokenizers/{name}/tokenizer_config.json"))?;
    let config: Value = serde_json::from_slice(&text).unwrap();
    let added = config["added_tokens_decoder"].as_object().cloned().unwrap_or_default();
    let specials = added
        .values()
        .filter(|token| token["special"] == true)
        .filter_map(|token| token["content"].as_str())
        .map(str::to_owned);
    Some((config["chat_template"].as_str().unwrap().to_owned(), specials.collect()))
}

/// The first 8 MiB of a file of the fixtures.
fn beginning(name: &str) -> Option<Vec<u8>> {
    let file = std::fs::File::open(crate::fixtures::fixture(name)?).unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, 8 << 20), &mut bytes).unwrap();
    Some(bytes)
}

/// A GGUF string stands after its key and its type (8) as a length of eight bytes and the text.
fn template_in_gguf(file: &[u8]) -> String {
    let key = b"tokenizer.chat_template\x08\0\0\0";
    let at = file.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    let length = u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    String::from_utf8(file[at + 8..][..usize::try_from(length).unwrap()].to_vec()).unwrap()
}

#[test]
fn well_known_templates_render_as_in_transformers_guarded_or_not() {
    let golden = Golden::read();
    for (name, rendering) in &golden.renderings {
        let Some((source, specials)) = template_of(name) else {
            continue;
        };
        check(&golden, name, rendering, &source, &specials);
    }
}

/// Renders every conversation, with and without guards.
fn check(golden: &Golden, name: &str, rendering: &Value, source: &str, specials: &[String]) {
    let tokens = &rendering["tokens"];
    let (bos, eos) = (tokens["bos_token"].as_str(), tokens["eos_token"].as_str());
    let bare = ChatTemplate::new(source, bos, eos).unwrap();
    let guarding = ChatTemplate::new(source, bos, eos).unwrap().with_specials(specials);
    for conversation in &golden.conversations {
        let place = format!("{name}: {}", conversation.name);
        let expected = rendering["texts"][&conversation.name].as_str();
        let options = golden.options(conversation);
        let rendered = bare.render(&conversation.messages, &options);
        let guarded = guarding.render(&conversation.messages, &options);
        match expected {
            Some(expected) => {
                assert_eq!(rendered.unwrap().text, expected, "{place}");
                assert_eq!(guarded.unwrap().plain(), expected, "{place}, guarded");
            }
            None => {
                assert!(matches!(rendered, Err(TemplateError::Refused { .. })), "{place}");
                assert!(matches!(guarded, Err(TemplateError::Refused { .. })), "{place}, guarded");
            }
        }
    }
}

#[test]
fn guarded_conversations_have_only_the_templates_own_markers() {
    let golden = Golden::read();
    for (name, rendering) in &golden.renderings {
        let Some((source, specials)) = template_of(name) else {
            continue;
        };
        let tokens = &rendering["tokens"];
        let template = ChatTemplate::new(&source, tokens["bos_token"].as_str(), tokens["eos_token"].as_str())
            .unwrap()
            .with_specials(&specials);
        let count = |messages: &[Message]| {
            let text = template.render(messages, &RenderOptions::default()).unwrap().text;
            specials.iter().map(|special| text.matches(special.as_str()).count()).sum::<usize>()
        };
        let marked = golden.conversations.iter().find(|c| c.name == "marker-shaped text").unwrap();
        let harmless: Vec<_> = marked.messages.iter().map(|m| Message::new(m.role, "harmless")).collect();
        assert_eq!(count(&marked.messages), count(&harmless), "{name}");
    }
}

#[test]
fn snippets_render_as_in_transformers() {
    let golden = Golden::read();
    let turns = golden.conversations.iter().find(|c| c.name == "three turns").unwrap();
    let mut options = golden.options(turns);
    options.kwargs.insert("v".into(), golden.values.clone());
    let mut wrong = Vec::new();
    for snippet in &golden.snippets {
        let rendered = ChatTemplate::new(&snippet.source, Some("<s>"), Some("</s>"))
            .and_then(|template| template.render(&turns.messages, &options));
        if rendered.as_ref().ok().map(|r| &r.text) != snippet.text.as_ref() {
            wrong.push(format!("{:?}\n  want {:?}\n  have {rendered:?}", snippet.source, snippet.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
