//! `Vocabulary`: the tokens of a model, from the files or objects that know them.

use std::{path::PathBuf, sync::Arc};

use maskwright::{
    TokenId,
    chat::ChatFormat,
    vocab::{ParseSpecials, SpecialsHint},
};
use pyo3::{
    prelude::*,
    pybacked::{PyBackedBytes, PyBackedStr},
    types::PyBytes,
};

use crate::{
    error::{Failure, Result},
    tiktoken,
};

/// The tokens of a model: their bytes, which of them are special, and how text becomes tokens.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct Vocabulary(pub(crate) Arc<maskwright::Vocabulary>);

/// Text of a file, decoded or not.
#[derive(FromPyObject)]
pub(crate) enum Text {
    Str(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl Text {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Str(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

#[pymethods]
impl Vocabulary {
    /// Reads the text of a `tokenizer.json`.
    ///
    /// What it doesn't say comes beside it: the texts of `generation_config.json` and `tokenizer_config.json`, stop
    /// tokens by id or by text, and the chat template, whose family knows further markers and stop tokens.
    #[staticmethod]
    #[pyo3(signature = (json, *, generation_config=None, tokenizer_config=None, stop_ids=vec![], stop_texts=vec![],
                        chat_template=None, bos_text=None))]
    #[allow(clippy::too_many_arguments)]
    fn from_tokenizer_json(
        py: Python<'_>,
        json: Text,
        generation_config: Option<Text>,
        tokenizer_config: Option<Text>,
        stop_ids: Vec<TokenId>,
        stop_texts: Vec<String>,
        chat_template: Option<String>,
        bos_text: Option<String>,
    ) -> Result<Self> {
        py.detach(|| {
            let bytes = |text: &Option<Text>| text.as_ref().map(|text| text.as_bytes().to_vec());
            let (generation, tokenizer) = (bytes(&generation_config), bytes(&tokenizer_config));
            let mut hint = SpecialsHint::from_configs(generation.as_deref(), tokenizer.as_deref())?;
            hint.stop_ids.extend(stop_ids);
            hint.stop_texts.extend(stop_texts);
            hint.bos_text = bos_text.or(hint.bos_text);
            if let Some(template) = chat_template {
                ChatFormat::written(&template).add_hints(&mut hint);
            }
            Ok(Self(maskwright::Vocabulary::from_tokenizer_json(json.as_bytes(), &hint)?))
        })
    }

    /// Reads the metadata of a GGUF file.
    #[staticmethod]
    fn from_gguf(py: Python<'_>, path: PathBuf) -> Result<Self> {
        py.detach(|| {
            let metadata = maskwright::model::candle::read_metadata(&path)?;
            Ok(Self(maskwright::Vocabulary::from_gguf(&metadata)?))
        })
    }

    /// The vocabulary of a fast tokenizer of `transformers`.
    #[staticmethod]
    #[pyo3(signature = (tokenizer, *, generation_config=None, stop_ids=vec![]))]
    fn from_transformers<'py>(
        tokenizer: &Bound<'py, PyAny>,
        generation_config: Option<&Bound<'py, PyAny>>,
        stop_ids: Vec<TokenId>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let module = tokenizer.py().import("maskwright._tokenizers")?;
        module.call_method1("from_transformers", (tokenizer, generation_config, stop_ids))
    }

    /// A vocabulary of tiktoken's: ranks of byte strings, the pattern that cuts text into pieces, special tokens by
    /// text, and which of those end a text.
    #[staticmethod]
    #[pyo3(signature = (ranks, pattern, special_tokens, *, stop_texts=vec![], chat_template=None))]
    fn from_tiktoken(
        py: Python<'_>,
        ranks: Vec<(PyBackedBytes, TokenId)>,
        pattern: &str,
        special_tokens: Vec<(String, TokenId)>,
        stop_texts: Vec<String>,
        chat_template: Option<String>,
    ) -> Result<Self> {
        py.detach(|| {
            let ranks: Vec<(&[u8], TokenId)> = ranks.iter().map(|(bytes, rank)| (&**bytes, *rank)).collect();
            let json =
                tiktoken::tokenizer_json(&ranks, pattern, &special_tokens).map_err(Failure::request)?;
            let mut hint = SpecialsHint { stop_texts, ..SpecialsHint::default() };
            if let Some(template) = chat_template {
                ChatFormat::written(&template).add_hints(&mut hint);
            }
            Ok(Self(maskwright::Vocabulary::from_tokenizer_json(json.as_bytes(), &hint)?))
        })
    }

    /// The 256 single bytes and one special token, `<|end|>`, which ends a text: for tests.
    #[staticmethod]
    fn single_bytes() -> Self {
        Self(maskwright::Vocabulary::single_bytes())
    }

    /// Number of tokens. Not the width of a model's logits.
    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    /// The tokens that end a text or a turn.
    #[getter]
    fn stop_tokens(&self) -> Vec<TokenId> {
        self.0.stop_tokens().to_vec()
    }

    /// The token a prompt starts with.
    #[getter]
    fn bos_token(&self) -> Option<TokenId> {
        self.0.bos_token()
    }

    /// Whether encoding is the model's own, so that forced bytes are forced tokens.
    #[getter]
    fn is_canonical(&self) -> bool {
        self.0.is_canonical()
    }

    /// Equal for equal vocabularies.
    #[getter]
    fn fingerprint<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.fingerprint())
    }

    /// Text to tokens, as the model's own tokenizer makes them but without a begin-of-text token. With `specials`, the
    /// texts of special tokens stand for those tokens.
    #[pyo3(signature = (text, *, specials=false))]
    fn encode(&self, py: Python<'_>, text: &str, specials: bool) -> Result<Vec<TokenId>> {
        let specials = if specials { ParseSpecials::Yes } else { ParseSpecials::No };
        py.detach(|| Ok(self.0.encode(text, specials)?))
    }

    /// The bytes of many tokens, special ones left out.
    fn decode<'py>(&self, py: Python<'py>, ids: Vec<TokenId>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.decode(&ids))
    }

    /// The bytes of one token; its text for a special one, nothing past the vocabulary.
    fn token<'py>(&self, py: Python<'py>, id: TokenId) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.bytes(id))
    }

    /// The special token of that text.
    fn special(&self, text: &str) -> Option<TokenId> {
        self.0.special(text)
    }

    /// Whether a token is special.
    fn is_special(&self, id: TokenId) -> bool {
        self.0.is_special(id)
    }

    fn __repr__(&self) -> String {
        format!("Vocabulary(size={}, stop_tokens={:?})", self.0.size(), self.0.stop_tokens())
    }
}
