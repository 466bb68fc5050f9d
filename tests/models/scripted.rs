//! The scripted model says its script, and as much of it as it may.

use std::sync::Arc;

use maskwright::{
    TokenId, Vocabulary,
    model::{
        Model,
        contract::{self, Agreement},
        scripted::{Script, Scripted},
    },
};

const END: TokenId = 256;

fn bytes(text: &str) -> Vec<TokenId> {
    text.bytes().map(TokenId::from).collect()
}

/// The best token among the allowed ones at each step, until the end or `limit` tokens.
fn say(model: &Scripted, prompt: &str, limit: usize, allowed: impl Fn(&[u8], u8) -> bool) -> String {
    let mut decoder = model.open().unwrap();
    let mut row = decoder.feed(&bytes(prompt)).unwrap().to_host().unwrap().into_owned();
    let mut said = Vec::new();
    while said.len() < limit {
        let best = (0..row.len().min(257))
            .filter(|&id| u8::try_from(id).map_or(true, |byte| allowed(&said, byte)))
            .max_by(|&a, &b| row[a].total_cmp(&row[b]))
            .unwrap();
        let Ok(byte) = u8::try_from(best) else { break };
        said.push(byte);
        row = decoder.feed(&[TokenId::from(byte)]).unwrap().to_host().unwrap().into_owned();
    }
    String::from_utf8(said).unwrap()
}

#[test]
fn scripted_model_keeps_the_contract() {
    let prompt = bytes("Say it: {\"a\": 1");
    let scripted = || Scripted::new(Vocabulary::single_bytes(), "{\"a\": 1, \"b\": 2}").prompt(8).context(64);
    for model in [scripted(), scripted().noise(7), scripted().width(300), scripted().width(200)] {
        contract::all(&model, &prompt, Agreement::Exact).unwrap();
    }
    let marked = Scripted::new(Vocabulary::single_bytes(), "{\"a\": 1, \"b\": 2}").prompt_until(": ");
    contract::all(&marked.context(64), &prompt, Agreement::Exact).unwrap();
}

#[test]
fn unhindered_it_says_its_script_and_stops() {
    let text = "Sure! {\"a\": 1}";
    for model in [Scripted::new(Vocabulary::single_bytes(), text), noisy(text)] {
        assert_eq!(say(&model, "Q: ", 100, |_, _| true), text);
    }
}

fn noisy(text: &str) -> Scripted {
    Scripted::new(Vocabulary::single_bytes(), text).noise(3)
}

#[test]
fn what_is_forced_with_the_prompt_is_not_said_again() {
    let model = noisy("{\"name\": \"Ada\"}");
    assert_eq!(say(&model, "Who?\n{\"name\"", 100, |_, _| true), ": \"Ada\"}");
}

#[test]
fn kept_from_its_preamble_it_goes_on_to_what_it_may_say() {
    let model = noisy("Sure! {\"a\": 1}");
    let only_json = |said: &[u8], byte: u8| !said.is_empty() || byte == b'{';
    assert_eq!(say(&model, "Q: ", 100, only_json), "{\"a\": 1}");
}

#[test]
fn whitespace_that_is_forbidden_is_left_out() {
    let model = noisy("{\"a\": 1, \"b\": 2}");
    assert_eq!(say(&model, "Q: ", 100, |_, byte| byte != b' '), "{\"a\":1,\"b\":2}");
}

#[test]
fn columns_past_the_vocabulary_tempt_most() {
    let vocabulary = Vocabulary::single_bytes();
    let model = Scripted::new(vocabulary, "x").width(300);
    let mut decoder = model.open().unwrap();
    let row = decoder.feed(&bytes("?")).unwrap().to_host().unwrap().into_owned();
    let best = row[..257].iter().copied().fold(f32::MIN, f32::max);
    assert!(row[257..].iter().all(|&logit| logit > best));
    assert!((row[usize::from(b'x')] - best).abs() < f32::EPSILON);
}

#[test]
fn a_script_may_depend_on_the_prompt() {
    let script = Script::reply(|prompt| if prompt.contains("42") { "done".into() } else { "call".into() });
    let model = Scripted::new(Vocabulary::single_bytes(), script);
    assert_eq!(say(&model, "go", 100, |_, _| true), "call");
    assert_eq!(say(&model, "the result is 42", 100, |_, _| true), "done");
}

#[test]
fn a_prompt_may_end_where_a_text_stands_last() {
    let script = Script::reply(|prompt| format!("{} bytes", prompt.len()));
    let model = Scripted::new(Vocabulary::single_bytes(), script).prompt_until("\nA: ");
    let text = "Q: a?\nA: 9 bytes\nQ: b?\nA: ";
    let mut decoder = model.open().unwrap();
    let mut said = String::new();
    for (at, byte) in text.bytes().enumerate() {
        let row = decoder.feed(&[byte.into()]).unwrap().to_host().unwrap().into_owned();
        let best = (0..=255_u8).max_by(|&a, &b| row[usize::from(a)].total_cmp(&row[usize::from(b)])).unwrap();
        if (8..15).contains(&at) || at + 1 == text.len() {
            said.push(char::from(best));
        }
    }
    assert_eq!(said, "9 bytes2");
}

#[test]
fn tokens_fed_together_cost_one_pass() {
    let model = Scripted::new(Vocabulary::single_bytes(), "x");
    let counts = model.counts();
    let mut decoder = model.open().unwrap();
    decoder.feed(&bytes("prompt")).unwrap();
    decoder.feed(&bytes("xyz")).unwrap();
    assert!(decoder.feed(&[]).is_err());
    assert_eq!((counts.passes(), counts.tokens()), (2, 9));
}

#[test]
fn after_the_end_only_stopping_is_left_to_want() {
    let vocabulary: Arc<Vocabulary> = Vocabulary::single_bytes();
    assert_eq!(vocabulary.stop_tokens(), [END]);
    let model = Scripted::new(vocabulary, "");
    assert_eq!(say(&model, "Q", 100, |_, _| true), "");
}
