//! What every kind of file is read into, and how a [`Vocabulary`] is put together from it.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::added::AddedToken;
use super::encode::{Encoder, EncoderParts};
use super::env::{self, Env};
use super::merge::Merges;
use super::table::Table;
use super::{VocabError, Vocabulary};
use crate::token::TokenId;

/// All that makes a vocabulary, but for its encoder.
pub(super) struct Parts {
    pub(super) table: Table,
    /// Tokens that end a text or a turn, the one to feed first; repetitions don't matter.
    pub(super) stop: Vec<TokenId>,
    /// Where stop tokens were looked for.
    pub(super) no_stop: String,
    pub(super) bos: Option<TokenId>,
    pub(super) adds_bos: bool,
    /// What [`Vocabulary::fingerprint`] will be, where it's known.
    pub(super) fingerprint: Option<[u8; 32]>,
}

impl Parts {
    /// The parts of [`Vocabulary::single_bytes`].
    pub(super) fn single_bytes() -> (Self, EncoderParts) {
        const END: &str = "<|end|>";
        let mut table = Table::new(257);
        for byte in 0..=255_u8 {
            table.words[usize::from(byte)] = vec![byte];
        }
        table.set_special(256, END, String::new).expect("256 is below 257");
        let end = AddedToken { id: 256, text: END.to_owned(), special: true, ..AddedToken::default() };
        let encoder = EncoderParts {
            added: vec![end],
            added_normalized: Vec::new(),
            normalizer: Value::Null,
            pre_tokenizer: Value::Null,
            merges: Merges::Bytes,
            canonical: true,
        };
        (
            Self {
                table,
                stop: vec![256],
                no_stop: String::new(),
                bos: None,
                adds_bos: false,
                fingerprint: None,
            },
            encoder,
        )
    }

    /// Puts it together. The trie and the encoder take about as long as each other, and are made at the same time.
    ///
    /// # Errors
    /// Those of `encoder`, no stop token, or a step of the encoder of no known kind.
    pub(super) fn assemble(
        self,
        encoder: impl FnOnce() -> Result<EncoderParts, VocabError> + Send,
    ) -> Result<Arc<Vocabulary>, VocabError> {
        let Table { words, special, special_by_text } = self.table;
        let mut stop: Vec<TokenId> = Vec::with_capacity(self.stop.len());
        for id in self.stop {
            if !stop.contains(&id) {
                stop.push(id);
            }
        }
        let (trie, encoder) = rayon::join(
            || {
                let trie = env::trie(&words, &stop, self.bos, &self.no_stop)?;
                let hash = self.fingerprint.is_none().then(|| hash(&words, &special, &stop));
                Ok::<_, VocabError>((trie, hash))
            },
            || {
                let parts = encoder()?;
                let canonical = parts.canonical;
                Encoder::new(parts).map(|encoder| (encoder, canonical))
            },
        );
        // To give back hundreds of thousands of words takes milliseconds, for which nobody need wait.
        rayon::spawn(move || drop(words));
        let (encoder, canonical) = encoder?;
        let (trie, hash) = trie?;
        let made = hash.map(|hash| hash.chain_update([u8::from(canonical)]).finalize().into());
        let fingerprint = self.fingerprint.or(made).expect("it is made where it isn't known");
        let env = Arc::new(Env { trie, encoder, canonical });
        Ok(Arc::new(Vocabulary {
            tok_env: env.clone(),
            env,
            special,
            special_by_text,
            bos: self.bos,
            adds_bos: self.adds_bos,
            fingerprint,
        }))
    }
}

/// What a fingerprint is of. Each part is preceded by its length, so that no two vocabularies are hashed from the same
/// bytes. Whether it is canonical comes last.
fn hash(words: &[Vec<u8>], special: &[bool], stop: &[TokenId]) -> Sha256 {
    let mut hash = Sha256::new();
    hash.update((words.len() as u64).to_le_bytes());
    for (word, &special) in words.iter().zip(special) {
        hash.update((word.len() as u64).to_le_bytes());
        hash.update([u8::from(special)]);
        hash.update(word);
    }
    hash.update((stop.len() as u64).to_le_bytes());
    for id in stop {
        hash.update(id.to_le_bytes());
    }
    hash
}
