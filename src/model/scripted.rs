//! A model that wants to say a given text: for tests and demonstrations, without weights.
//!
//! Its logits favour the tokens of its script, then a stop token. When it is kept from saying something (by a grammar,
//! say) it tries what comes next in the script, so that a script which breaks a grammar ends up as close to it as the
//! grammar allows. It is not a language model, and no model for [`super::contract`] to be lenient with: it passes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    Model, ModelCard, ModelError, SequenceId, Session,
    step::{Bounds, check, unknown},
};
use crate::{
    logits::Logits,
    token::TokenId,
    vocab::{ParseSpecials, Vocabulary},
};

/// How far ahead in the script it looks for something it is allowed to say, in bytes.
const WINDOW: usize = 96;
/// Longest token it looks up, in bytes.
const LONGEST: usize = 48;

/// What a [`Scripted`] model wants to say.
#[derive(Clone)]
pub struct Script(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl Script {
    /// A script that depends on the prompt, given as text with special tokens in it.
    pub fn reply(reply: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(reply))
    }
}

impl From<String> for Script {
    fn from(text: String) -> Self {
        Self::reply(move |_| text.clone())
    }
}

impl From<&str> for Script {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Script")
    }
}

/// What a [`Scripted`] model was asked to do, counted over all its sessions.
#[derive(Debug, Default)]
pub struct Counts {
    passes: AtomicUsize,
    tokens: AtomicUsize,
}

impl Counts {
    /// Forward passes: steps, whatever the number of sequences and tokens in each.
    #[must_use]
    pub fn passes(&self) -> usize {
        self.passes.load(Ordering::Relaxed)
    }

    /// Tokens fed.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens.load(Ordering::Relaxed)
    }
}

/// A model that wants to say its script.
///
/// The prompt is what a sequence is fed first; see [`Self::prompt`] and [`Self::prompt_until`] for when that isn't so. Columns past the
/// vocabulary have the highest logits, so that whoever forgets them is found out.
///
/// ```
/// use maskwright::{Vocabulary, model::{Model, scripted::Scripted}};
/// let model = Scripted::new(Vocabulary::single_bytes(), "hi");
/// let mut decoder = model.open()?;
/// let row = decoder.feed(&[u32::from(b'?')])?.to_host().unwrap().into_owned();
/// assert!(row.iter().all(|&logit| logit <= row[usize::from(b'h')]));
/// # Ok::<(), maskwright::model::ModelError>(())
/// ```
#[derive(Debug)]
pub struct Scripted {
    card: ModelCard,
    vocabulary: Arc<Vocabulary>,
    script: Script,
    prompt: Option<usize>,
    mark: Option<Vec<u8>>,
    noise: Option<u64>,
    counts: Arc<Counts>,
    /// Tokens by their bytes; the lowest id where several have the same.
    by_bytes: HashMap<Vec<u8>, TokenId>,
}

impl Scripted {
    /// A model as wide as the vocabulary, with a context of 8,192 tokens and no noise.
    #[must_use]
    pub fn new(vocabulary: Arc<Vocabulary>, script: impl Into<Script>) -> Self {
        let mut by_bytes = HashMap::new();
        for id in (0..).take(vocabulary.size()) {
            let bytes = vocabulary.bytes(id);
            if !bytes.is_empty() && bytes.len() <= LONGEST {
                by_bytes.entry(bytes.to_vec()).or_insert(id);
            }
        }
        let card = ModelCard {
            name: "scripted".into(),
            architecture: "scripted".into(),
            context: 8192,
            width: vocabulary.size(),
            device: "none".into(),
            template: None,
            tool_template: None,
        };
        Self {
            card,
            vocabulary,
            script: script.into(),
            prompt: None,
            mark: None,
            noise: None,
            counts: Arc::default(),
            by_bytes,
        }
    }

    /// Rows of this many logits, more or fewer than there are tokens in the vocabulary.
    #[must_use]
    pub fn width(mut self, width: usize) -> Self {
        self.card.width = width;
        self
    }

    /// Longest sequence, in tokens.
    #[must_use]
    pub fn context(mut self, context: usize) -> Self {
        self.card.context = context;
        self
    }

    /// The chat template it says it has.
    #[must_use]
    pub fn template(mut self, template: impl Into<String>) -> Self {
        self.card.template = Some(template.into());
        self
    }

    /// The first `tokens` of every sequence are its prompt, however they are fed.
    ///
    /// Without this, what is fed to an empty sequence is its prompt: handy, but something no real model could know,
    /// and against the contract that only tokens count.
    #[must_use]
    pub fn prompt(mut self, tokens: usize) -> Self {
        self.prompt = Some(tokens);
        self
    }

    /// A prompt ends where this text stands last, however it is fed: for conversations, the opening of a turn of the
    /// assistant. Before the text came there is nothing that the model wants to say.
    #[must_use]
    pub fn prompt_until(mut self, mark: impl Into<Vec<u8>>) -> Self {
        self.mark = Some(mark.into());
        self
    }

    /// Adds noise to all logits, below what sets the script's tokens apart; the same for the same seed, place and id.
    #[must_use]
    pub fn noise(mut self, seed: u64) -> Self {
        self.noise = Some(seed);
        self
    }

    /// Its counters, which go on counting wherever the model is moved to.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }
}

impl Model for Scripted {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, ModelError> {
        Ok(Box::new(ScriptedSession { model: self, sequences: BTreeMap::new(), next: 0, rows: Vec::new() }))
    }
}

struct ScriptedSession<'m> {
    model: &'m Scripted,
    sequences: BTreeMap<usize, Sequence>,
    next: usize,
    rows: Vec<Vec<f32>>,
}

#[derive(Debug, Default, Clone)]
struct Sequence {
    tokens: Vec<TokenId>,
    /// How many of the tokens are the prompt; not known before there are so many.
    prompt: usize,
    /// What it wants to say after its prompt.
    text: Vec<u8>,
    /// How much of it was said after each token that follows the prompt, and before the first.
    said: Vec<usize>,
}

impl Session for ScriptedSession<'_> {
    fn add(&mut self) -> Result<SequenceId, ModelError> {
        let id = self.next;
        self.next += 1;
        self.sequences.insert(id, Sequence::default());
        Ok(SequenceId(id))
    }

    fn fork(&mut self, sequence: SequenceId, len: usize) -> Result<SequenceId, ModelError> {
        let mut copy = self.sequences.get(&sequence.0).ok_or_else(|| unknown(sequence))?.clone();
        copy.truncate(len);
        let id = self.add()?;
        self.sequences.insert(id.0, copy);
        Ok(id)
    }

    fn remove(&mut self, sequence: SequenceId) {
        self.sequences.remove(&sequence.0);
    }

    fn feed(&mut self, work: &[(SequenceId, &[TokenId])]) -> Result<Vec<Logits<'_>>, ModelError> {
        let card = &self.model.card;
        let bounds = Bounds { context: card.context, width: card.width };
        check(work, bounds, |id| self.sequences.get(&id.0).map(|sequence| sequence.tokens.len()))?;
        if work.is_empty() {
            return Ok(Vec::new());
        }
        self.model.counts.passes.fetch_add(1, Ordering::Relaxed);
        self.rows.clear();
        for &(id, tokens) in work {
            self.model.counts.tokens.fetch_add(tokens.len(), Ordering::Relaxed);
            if let Some(sequence) = self.sequences.get_mut(&id.0) {
                sequence.feed(self.model, tokens);
                self.rows.push(self.model.row(sequence));
            }
        }
        Ok(self.rows.iter().map(|row| Logits::Host(row)).collect())
    }

    fn len(&self, sequence: SequenceId) -> usize {
        self.sequences.get(&sequence.0).map_or(0, |sequence| sequence.tokens.len())
    }

    fn truncate(&mut self, sequence: SequenceId, len: usize) -> Result<(), ModelError> {
        if let Some(sequence) = self.sequences.get_mut(&sequence.0) {
            sequence.truncate(len);
        }
        Ok(())
    }
}

impl Sequence {
    fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        if self.tokens.len() < self.prompt {
            self.said.clear();
        }
        self.said.truncate((self.tokens.len() + 1).saturating_sub(self.prompt));
    }

    fn feed(&mut self, model: &Scripted, tokens: &[TokenId]) {
        self.tokens.extend_from_slice(tokens);
        let prompt = match &model.mark {
            Some(mark) => self.tokens_until(mark, model),
            None if self.said.is_empty() => Some(model.prompt.unwrap_or(self.tokens.len())),
            None => Some(self.prompt),
        };
        let Some(prompt) = prompt.filter(|&prompt| prompt <= self.tokens.len()) else {
            self.said.clear();
            self.text.clear();
            return;
        };
        if self.said.is_empty() || prompt != self.prompt {
            self.begin(model, prompt);
        }
        for &id in &self.tokens[self.prompt + self.said.len() - 1..] {
            let said = self.said.last().copied().unwrap_or(0);
            let next = if model.vocabulary.stop_tokens().contains(&id) {
                self.text.len()
            } else {
                advance(&self.text, said, model.vocabulary.bytes(id))
            };
            self.said.push(next);
        }
    }

    /// Takes the first `prompt` tokens for the prompt.
    fn begin(&mut self, model: &Scripted, prompt: usize) {
        self.prompt = prompt;
        let prompt: Vec<u8> =
            self.tokens[..prompt].iter().flat_map(|&id| model.vocabulary.bytes(id)).copied().collect();
        self.text = (model.script.0)(&String::from_utf8_lossy(&prompt)).into_bytes();
        // Tokens that a grammar forces at the start come with the prompt.
        let start = (0..=self.text.len()).rev().find(|&n| prompt.ends_with(&self.text[..n])).unwrap_or(0);
        self.said = vec![start];
    }

    /// How many tokens there are up to the last `mark`.
    fn tokens_until(&self, mark: &[u8], model: &Scripted) -> Option<usize> {
        let mut bytes = Vec::new();
        let mut found = None;
        for (index, &id) in self.tokens.iter().enumerate() {
            let from = (bytes.len() + 1).saturating_sub(mark.len());
            bytes.extend_from_slice(model.vocabulary.bytes(id));
            if bytes[from..].windows(mark.len().max(1)).any(|window| window == mark) {
                found = Some(index + 1);
            }
        }
        found
    }
}

/// Where the script goes on after `bytes` were said at `at`: whitespace may differ, parts may be left out, and what
/// isn't in the script doesn't count.
fn advance(text: &[u8], at: usize, bytes: &[u8]) -> usize {
    let mut at = at;
    for (i, &byte) in bytes.iter().enumerate() {
        let rest = &text[at..];
        let blank = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        if rest.first() == Some(&byte) {
            at += 1;
        } else if rest.get(blank) == Some(&byte) {
            at += blank + 1;
        } else if !byte.is_ascii_whitespace()
            && let Some(found) = find(rest, &bytes[i..])
        {
            return at + found + bytes.len() - i;
        }
    }
    at
}

fn find(text: &[u8], bytes: &[u8]) -> Option<usize> {
    text.windows(bytes.len()).take(WINDOW).position(|window| window == bytes)
}

impl Scripted {
    fn row(&self, sequence: &Sequence) -> Vec<f32> {
        let mut row = vec![0.0; self.card.width];
        if let Some(seed) = self.noise {
            let place = splitmix(seed ^ sequence.tokens.len() as u64);
            for (id, logit) in (0_u64..).zip(row.iter_mut()) {
                // 16 bits are exact in a float; the sum of them stays below 1.
                #[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
                let bits = splitmix(place ^ id) as u16;
                *logit = f32::from(bits) / 65_536.0;
            }
        }
        let mut set = |id: TokenId, logit: f32| {
            if let Some(slot) = row.get_mut(id as usize) {
                *slot = slot.max(logit);
            }
        };
        let said = sequence.said.last().copied().unwrap_or(0);
        let rest = &sequence.text[said..];
        // To end is what it does when nothing else is left to say.
        for &stop in self.vocabulary.stop_tokens() {
            set(stop, if rest.is_empty() { 20.0 } else { 1.5 });
        }
        for offset in (0..rest.len().min(WINDOW)).rev() {
            for length in 1..=(rest.len() - offset).min(LONGEST) {
                if let Some(&id) = self.by_bytes.get(&rest[offset..offset + length]) {
                    set(id, liking(offset, length));
                }
            }
        }
        if let Some(id) = self.canonical(rest) {
            set(id, 20.0);
        }
        for logit in row.iter_mut().skip(self.vocabulary.size()) {
            *logit = 30.0;
        }
        row
    }

    /// The token the vocabulary would go on with.
    fn canonical(&self, rest: &[u8]) -> Option<TokenId> {
        let text = std::str::from_utf8(rest).ok()?;
        let first = *self.vocabulary.encode(text, ParseSpecials::Yes).ok()?.first()?;
        // Some tokenizers put a space before every text, which isn't in the script.
        rest.starts_with(self.vocabulary.bytes(first)).then_some(first)
    }
}

/// A logit for a token of `length` bytes that is found `offset` bytes ahead: soon before late, long before short,
/// always between noise and the script's own token.
fn liking(offset: usize, length: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "below WINDOW and LONGEST")]
    let (offset, length) = (offset as f32, length as f32);
    let base = if offset == 0.0 { 12.0 } else { 10.0 };
    base - 8.0 * offset / WINDOW as f32 + length / LONGEST as f32 / 16.0
}

/// The output function of SplitMix64 (<https://doi.org/10.1145/2714064.2660195>).
fn splitmix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_follows_what_is_said_as_well_as_it_can() {
        let text = br#"Sure! {"a": 1, "b": [2]}"#;
        for (at, bytes, next) in [
            (0, "Sure", 4),
            (0, "{\"", 8),  // the preamble is left out
            (10, ":1", 13), // whitespace is left out
            (10, ":  1", 13),
            (10, "\n", 10), // whitespace is put in
            (13, ",\"b", 17),
            (13, "xyz", 13), // not in the script
            (24, "}", 24),   // nothing left
        ] {
            assert_eq!(advance(text, at, bytes.as_bytes()), next, "{bytes:?} at {at}");
        }
    }

    #[test]
    fn likings_stay_between_noise_and_the_script_itself() {
        for offset in 0..WINDOW {
            for length in 1..=LONGEST {
                let liking = liking(offset, length);
                assert!(liking > 1.5 && liking < 20.0);
                assert!(liking > self::liking(offset + 1, LONGEST), "sooner is better than longer");
            }
        }
    }
}
