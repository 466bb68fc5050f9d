//! tiktoken's ranks as a `tokenizer.json`: the same tokens, and the merges that its ranks imply.

use std::collections::HashMap;

use maskwright::TokenId;
use serde_json::{Value, json};

/// The text of a `tokenizer.json` that encodes as tiktoken does.
///
/// # Errors
/// A single byte that has no rank, or a token that no two others make.
pub(crate) fn tokenizer_json(
    ranks: &[(&[u8], TokenId)],
    pattern: &str,
    specials: &[(String, TokenId)],
) -> Result<String, String> {
    let by_bytes: HashMap<&[u8], TokenId> = ranks.iter().copied().collect();
    if let Some(byte) = (0..=u8::MAX).find(|byte| !by_bytes.contains_key(&[*byte][..])) {
        return Err(format!("the ranks have no token for the byte 0x{byte:02x}"));
    }
    let letters = letters();
    let spell = |bytes: &[u8]| -> String { bytes.iter().map(|&byte| letters[usize::from(byte)]).collect() };
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable_by_key(|(_, rank)| *rank);
    let mut merges = Vec::new();
    for &(bytes, rank) in sorted.iter().filter(|(bytes, _)| bytes.len() > 1) {
        // Tokens that no merge leads to are only found whole, which `ignore_merges` sees to.
        if let Some((left, right)) = halves(bytes, rank, &by_bytes) {
            merges.push(json!([spell(left), spell(right)]));
        }
    }
    let vocab: serde_json::Map<String, Value> =
        sorted.iter().map(|(bytes, rank)| (spell(bytes), (*rank).into())).collect();
    let added: Vec<Value> = specials
        .iter()
        .map(|(text, id)| {
            json!({"id": id, "content": text, "special": true, "normalized": false, "single_word": false,
                   "lstrip": false, "rstrip": false})
        })
        .collect();
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        ]},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        "model": {"type": "BPE", "byte_fallback": false, "ignore_merges": true, "vocab": vocab, "merges": merges},
    });
    Ok(tokenizer.to_string())
}

/// The two tokens that merge into this one when only lower ranks have merged.
fn halves<'b>(
    bytes: &'b [u8],
    rank: TokenId,
    ranks: &HashMap<&[u8], TokenId>,
) -> Option<(&'b [u8], &'b [u8])> {
    // Where parts end.
    let mut ends: Vec<usize> = (0..=bytes.len()).collect();
    while ends.len() > 3 {
        let pairs = ends.windows(3).enumerate();
        let best = pairs
            .filter_map(|(index, ends)| {
                let merged = *ranks.get(&bytes[ends[0]..ends[2]])?;
                (merged < rank).then_some((merged, index))
            })
            .min()?;
        ends.remove(best.1 + 1);
    }
    Some(bytes.split_at(ends[1]))
}

/// The letter that stands for each byte in byte-level vocabularies: itself where it is printable, else the next one
/// from U+0100 on.
fn letters() -> Vec<char> {
    let mut others = (0x100_u32..).filter_map(char::from_u32);
    (0..=u8::MAX)
        .map(|byte| match byte {
            b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
            _ => others.next().unwrap_or(char::REPLACEMENT_CHARACTER),
        })
        .collect()
}
