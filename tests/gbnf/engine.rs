//! The engine beside the tests: lowered grammars over small vocabularies.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use maskwright::Limits;
use maskwright::constraint::gbnf::{self, GbnfError, Lowered, TokenNames, TokenRole};
use toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};

/// A vocabulary of the 256 bytes, some longer tokens, some special ones, and one that ends a text, the last.
pub struct Words {
    tokens: Vec<Vec<u8>>,
    specials: Vec<String>,
    factory: ParserFactory,
}

impl Words {
    /// `longer` are ordinary tokens; `specials` come after them.
    pub fn new(longer: &[&str], specials: &[&str]) -> Self {
        let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        tokens.extend(longer.iter().map(|text| text.as_bytes().to_vec()));
        let special = |text: &str| [b"\xFF", text.as_bytes()].concat();
        tokens.extend(specials.iter().map(|text| special(text)));
        tokens.push(special("<|end|>"));
        let specials = specials.iter().map(|text| (*text).to_owned()).collect();
        let stop = tokens.len() - 1;
        Self::of(tokens, specials, stop)
    }

    fn of(tokens: Vec<Vec<u8>>, specials: Vec<String>, stop: usize) -> Self {
        let stop = u32::try_from(stop).unwrap();
        let trie = TokTrie::from(&TokRxInfo::new(u32::try_from(tokens.len()).unwrap(), stop), &tokens);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&env).unwrap();
        factory.quiet();
        // Random grammars are more ambiguous than any that people write; what is asked is whether masks are right.
        factory.limits_mut().step_max_items *= 10;
        Self { tokens, specials, factory }
    }

    /// The vocabulary the token cases of the data folder state: `<eos>` is 256.
    pub fn of_token_cases() -> Self {
        let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        let specials = ["<eos>", "<think>", "</think>", "<tool>", "<pad>"];
        tokens.extend(specials.map(|text| [b"\xFF", text.as_bytes()].concat()));
        tokens.extend([b"ab".to_vec(), b"foo".to_vec()]);
        Self::of(tokens, specials.map(str::to_owned).to_vec(), 256)
    }

    pub fn tokens(&self) -> &[Vec<u8>] {
        &self.tokens
    }

    pub fn stop(&self) -> u32 {
        self.factory.tok_env().eos_token()
    }

    /// A matcher whose masks hold every token that may come, not only the forced one.
    pub fn matcher(&self, lowered: &Lowered) -> Result<Matcher, String> {
        let lark = lowered.resolve(self).map_err(|error| error.to_string())?;
        let exact = format!("%llguidance {{ \"no_forcing\": true }}\n{lark}");
        let parser =
            self.factory.create_parser(TopLevelGrammar::from_lark(exact)).map_err(|e| e.to_string())?;
        Ok(Matcher::new(Ok(parser)))
    }

    /// Whether a text, byte by byte, is complete.
    pub fn accepts(&self, lowered: &Lowered, text: &str) -> bool {
        let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
        self.accepts_tokens(lowered, &bytes)
    }

    pub fn accepts_tokens(&self, lowered: &Lowered, ids: &[u32]) -> bool {
        let mut matcher = self.matcher(lowered).unwrap();
        advance(&mut matcher, ids) == ids.len() && may_end(&mut matcher)
    }
}

/// How many of the tokens can be consumed.
pub fn advance(matcher: &mut Matcher, ids: &[u32]) -> usize {
    for (count, &id) in ids.iter().enumerate() {
        if matcher.is_stopped() || matcher.try_consume_tokens(&[id]).unwrap() == 0 {
            return count;
        }
    }
    ids.len()
}

pub fn may_end(matcher: &mut Matcher) -> bool {
    matcher.is_stopped() || matcher.is_accepting().unwrap()
}

/// Reads and lowers a grammar.
pub fn lower(text: &str) -> Result<Lowered, GbnfError> {
    let limits = Limits::default();
    gbnf::parse(text, &limits)?.to_lark(&limits)
}

impl TokenNames for Words {
    fn size(&self) -> u32 {
        u32::try_from(self.tokens.len()).unwrap()
    }

    fn id(&self, text: &str) -> Option<u32> {
        let at = self.specials.iter().position(|special| special == text)?;
        let bytes = [b"\xFF", self.specials[at].as_bytes()].concat();
        let id = self.tokens.iter().position(|token| *token == bytes)?;
        u32::try_from(id).ok()
    }

    fn role(&self, id: u32) -> TokenRole {
        if id == self.stop() {
            TokenRole::Stop
        } else if self.tokens[usize::try_from(id).unwrap()].first() == Some(&0xFF) && id != 255 {
            TokenRole::Special
        } else {
            TokenRole::Text
        }
    }
}
