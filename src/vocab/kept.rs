//! Vocabularies kept on disk, so that the next start needn't read them out of a large JSON file again.
//!
//! A file is named by what can be told at once of all that went into it: the length of the tokenizer's file and its ends,
//! the hint, the version. It holds digests of its contents and of the tokenizer's file, is written beside its place and
//! moved there whole, and the folder holds [`MOST`] of them. Whatever is wrong with a kept file is a reason to make it
//! anew, never an error and never believed.
//!
//! What isn't kept is the trie, which the engine's library can only make from words.

use std::{
    fs,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::SystemTime,
};

use sha2::{Digest, Sha256};

use super::{SpecialsHint, VocabError, Vocabulary, hf, packed};

/// Files in the folder; the least recently used goes first.
const MOST: usize = 8;
/// Bytes at either end of a tokenizer's file that its kept file is named by.
const END: usize = 64 << 10;
/// Bytes of a file that are read at a time.
const PIECE: usize = 256 << 10;
/// Changes with the layout of [`packed`] and with what is read out of a `tokenizer.json`.
const VERSION: &str = concat!("maskwright vocabulary 3, ", env!("CARGO_PKG_VERSION"), "\n");
const EXTENSION: &str = "vocabulary";

/// The vocabulary of a file, kept or read.
pub(super) fn read(json: &[u8], hint: &SpecialsHint, folder: &Path) -> Result<Arc<Vocabulary>, VocabError> {
    let place = Place { folder, name: name(json.len() as u64, ends(json), hint) };
    let whole = || Some(Sha256::digest(json).into());
    if let Some(vocab) = place.load().as_deref().and_then(|bytes| unpack(bytes, whole)) {
        return Ok(vocab);
    }
    let mut encoder = None;
    let vocab = hf::read(json, hint, |parts| encoder = packed::write_encoder(parts))?;
    if let (Some(encoder), Some(whole)) = (encoder, whole()) {
        // Without it the next start is as slow as this one.
        let _ = place.save(&pack(whole, &packed::write_vocabulary(&vocab), &encoder));
    }
    Ok(vocab)
}

/// The vocabulary of a file, where it's kept. The file is looked through piece by piece while the vocabulary is made.
pub(super) fn find(file: &Path, hint: &SpecialsHint, folder: &Path) -> Option<Arc<Vocabulary>> {
    let length = fs::metadata(file).ok()?.len();
    let end = |from: SeekFrom| {
        let (mut part, mut bytes) = (fs::File::open(file)?, Vec::new());
        part.seek(from)?;
        part.take(END as u64).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    let first = end(SeekFrom::Start(0)).ok()?;
    let last = end(SeekFrom::Start(length.saturating_sub(END as u64))).ok()?;
    let whole = || {
        let mut file = fs::File::open(file).ok()?;
        let (mut piece, mut hash) = (vec![0; PIECE], Sha256::new());
        loop {
            match file.read(&mut piece).ok()? {
                0 => return Some(hash.finalize().into()),
                read => hash.update(&piece[..read]),
            }
        }
    };
    let place = Place { folder, name: name(length, [&first, &last], hint) };
    place.load().as_deref().and_then(|bytes| unpack(bytes, whole))
}

/// The first bytes, and the last.
fn ends(json: &[u8]) -> [&[u8]; 2] {
    let length = json.len();
    [&json[..length.min(END)], &json[length.saturating_sub(END)..]]
}

/// A digest of what can be told at once of what a vocabulary is made from.
fn name(length: u64, ends: [&[u8]; 2], hint: &SpecialsHint) -> String {
    let mut hash = Sha256::new();
    hash.update(VERSION);
    hash.update(length.to_le_bytes());
    ends.iter().for_each(|end| hash.update(end));
    // All its fields, and quoted, so that no two hints are alike.
    hash.update(format!("{hint:?}"));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Digest, that of the file it was read from, length of the first part, both parts.
fn pack(whole: [u8; 32], vocabulary: &[u8], encoder: &[u8]) -> Vec<u8> {
    let length = (vocabulary.len() as u64).to_le_bytes();
    let digest = digest(&whole, &length, vocabulary, encoder);
    [VERSION.as_bytes(), &digest, &whole, &length, vocabulary, encoder].concat()
}

/// The vocabulary, if it was read from the file whose digest `whole` finds: which takes its time, and so does the trie.
fn unpack(bytes: &[u8], whole: impl FnOnce() -> Option<[u8; 32]> + Send) -> Option<Arc<Vocabulary>> {
    let bytes = bytes.strip_prefix(VERSION.as_bytes())?;
    let (written, bytes) = bytes.split_first_chunk::<32>()?;
    let (of, bytes) = bytes.split_first_chunk::<32>()?;
    let (length, bytes) = bytes.split_first_chunk::<8>()?;
    let (vocabulary, encoder) = bytes.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let sound = || digest(of, length, vocabulary, encoder) == *written;
    let (parts, sound) = rayon::join(|| packed::vocabulary(vocabulary), sound);
    let parts = parts.filter(|_| sound)?;
    let (vocab, whole) = rayon::join(|| parts.assemble(|| packed::encoder(encoder)).ok(), whole);
    vocab.filter(|_| whole.as_ref() == Some(of))
}

fn digest(of: &[u8; 32], length: &[u8; 8], vocabulary: &[u8], encoder: &[u8]) -> [u8; 32] {
    Sha256::new()
        .chain_update(of)
        .chain_update(length)
        .chain_update(vocabulary)
        .chain_update(encoder)
        .finalize()
        .into()
}

/// Where a kept vocabulary stands.
struct Place<'a> {
    folder: &'a Path,
    name: String,
}

impl Place<'_> {
    fn path(&self) -> PathBuf {
        self.folder.join(&self.name).with_extension(EXTENSION)
    }

    fn load(&self) -> Option<Vec<u8>> {
        let bytes = fs::read(self.path()).ok()?;
        // Used just now; where that can't be noted it goes earlier.
        let _ = fs::File::options()
            .append(true)
            .open(self.path())
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Whole or not at all.
    fn save(&self, bytes: &[u8]) -> io::Result<()> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        fs::create_dir_all(self.folder)?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.folder.join(format!("{}.{}-{count}", self.name, std::process::id()));
        let written = fs::write(&unfinished, bytes)
            .and_then(|()| fs::File::options().write(true).open(&unfinished)?.sync_all())
            .and_then(|()| fs::rename(&unfinished, self.path()));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        self.make_room();
        written
    }

    /// Deletes the files that were used longest ago, unfinished ones that nobody finished among them.
    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(self.folder) else { return };
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .filter(|(_, path)| path.file_name().and_then(|name| name.to_str()).is_some_and(is_ours))
            .collect();
        files.sort();
        for (_, path) in files.iter().rev().skip(MOST) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether a file of that name may be deleted.
fn is_ours(name: &str) -> bool {
    name.split_once('.')
        .is_some_and(|(stem, _)| stem.len() == 64 && stem.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::ParseSpecials;

    const JSON: &str = r#"{
        "added_tokens": [
            { "id": 5, "content": "</s>", "special": true },
            { "id": 6, "content": "<b>", "lstrip": true, "normalized": true }
        ],
        "normalizer": { "type": "Lowercase" },
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "decoder": { "type": "ByteLevel" },
        "model": {
            "type": "BPE", "ignore_merges": true, "unk_token": "b",
            "vocab": { "a": 0, "b": 1, "ab": 2, "Ġ": 3, "ba": 7 }, "merges": [["a", "b"]]
        }
    }"#;

    fn hint() -> SpecialsHint {
        SpecialsHint { stop_ids: vec![5], bos_text: Some("</s>".into()), ..SpecialsHint::default() }
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all
    }

    fn same(one: &Vocabulary, other: &Vocabulary) {
        assert_eq!(one.fingerprint(), other.fingerprint());
        assert_eq!((one.size(), one.stop_tokens()), (other.size(), other.stop_tokens()));
        assert_eq!((one.bos_token(), one.adds_bos()), (other.bos_token(), other.adds_bos()));
        assert_eq!(one.special("</s>"), other.special("</s>"));
        assert_eq!(one.is_canonical(), other.is_canonical());
        for id in 0..=8 {
            assert_eq!((one.bytes(id), one.is_special(id)), (other.bytes(id), other.is_special(id)));
        }
        for text in ["ab ba", "AB</s> <b>ba", "", "abab"] {
            for specials in [ParseSpecials::Yes, ParseSpecials::No] {
                assert_eq!(one.encode(text, specials).ok(), other.encode(text, specials).ok(), "{text}");
            }
        }
    }

    #[test]
    fn a_kept_vocabulary_is_the_one_that_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let plain = Vocabulary::from_tokenizer_json(JSON.as_bytes(), &hint()).unwrap();
        for _ in 0..2 {
            same(&read(JSON.as_bytes(), &hint(), &folder).unwrap(), &plain);
            assert_eq!(files(&folder).len(), 1);
        }
        let file = folder.with_extension("json");
        assert!(find(&file, &hint(), &folder).is_none());
        fs::write(&file, JSON).unwrap();
        same(&find(&file, &hint(), &folder).unwrap(), &plain);
        assert!(find(&file, &SpecialsHint { bos_text: None, ..hint() }, &folder).is_none());
        fs::write(&file, format!("{JSON} ")).unwrap();
        assert!(find(&file, &hint(), &folder).is_none());
        let bytes = fs::read(&files(&folder)[0]).unwrap();
        let whole = Sha256::digest(JSON).into();
        same(&unpack(&bytes, || Some(whole)).unwrap(), &plain);
        assert!(unpack(&bytes, || None).is_none());
    }

    #[test]
    fn what_is_damaged_is_not_believed_and_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let plain = read(JSON.as_bytes(), &hint(), folder.path()).unwrap();
        let path = files(folder.path()).remove(0);
        let whole = fs::read(&path).unwrap();
        let of = || Some(Sha256::digest(JSON).into());
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            assert!(unpack(&damaged, of).is_none(), "byte {at}");
            assert!(unpack(&whole[..at], of).is_none(), "cut off at {at}");
        }
        for damaged in [&whole[..whole.len() - 1], b"", b"anything"] {
            fs::write(&path, damaged).unwrap();
            same(&read(JSON.as_bytes(), &hint(), folder.path()).unwrap(), &plain);
            assert!(unpack(&fs::read(&path).unwrap(), of).is_some(), "it is whole again");
        }
    }

    #[test]
    fn parts_that_end_early_are_refused_without_a_panic() {
        let vocab = Vocabulary::from_tokenizer_json(JSON.as_bytes(), &hint()).unwrap();
        let bytes = packed::write_vocabulary(&vocab);
        assert!(packed::vocabulary(&bytes).is_some());
        assert!((0..bytes.len()).all(|at| packed::vocabulary(&bytes[..at]).is_none()));
        let mut encoder = None;
        hf::read(JSON.as_bytes(), &hint(), |parts| encoder = packed::write_encoder(parts)).unwrap();
        let encoder = encoder.unwrap();
        assert!(packed::encoder(&encoder).is_ok());
        assert!((0..encoder.len()).all(|at| packed::encoder(&encoder[..at]).is_err()));
    }

    #[test]
    fn another_file_or_hint_is_another_vocabulary() {
        let folder = tempfile::tempdir().unwrap();
        read(JSON.as_bytes(), &hint(), folder.path()).unwrap();
        let other = JSON.replace("\"ba\": 7", "\"ba\": 8");
        let second = read(other.as_bytes(), &hint(), folder.path()).unwrap();
        assert_eq!(second.bytes(8), b"ba");
        let markers = SpecialsHint { markers: vec!["<b>".into()], ..hint() };
        assert!(read(JSON.as_bytes(), &markers, folder.path()).unwrap().is_special(6));
        assert_eq!(files(folder.path()).len(), 3);
    }

    #[test]
    fn a_file_that_differs_in_the_middle_alone_is_another_vocabulary() {
        let folder = tempfile::tempdir().unwrap();
        let padding = " ".repeat(END);
        let long = |id: u32| JSON.replace("\"ba\": 7", &format!("{padding}\"ba\": {id}{padding}"));
        let file = folder.path().join("tokenizer.json");
        for id in [7, 8, 7] {
            fs::write(&file, long(id)).unwrap();
            assert!(find(&file, &hint(), folder.path()).is_none(), "what is kept is of another file");
            let vocab = read(long(id).as_bytes(), &hint(), folder.path()).unwrap();
            assert_eq!(vocab.bytes(id), b"ba");
            assert_eq!(find(&file, &hint(), folder.path()).unwrap().bytes(id), b"ba");
        }
        assert_eq!(files(folder.path()).len(), 2);
    }

    #[test]
    fn the_folder_stays_small_and_others_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = folder.path().join("notes.txt");
        fs::write(&foreign, "mine").unwrap();
        for number in 0..MOST + 3 {
            let json = JSON.replace("\"ba\": 7", &format!("\"ba\": {}", number + 7));
            read(json.as_bytes(), &hint(), folder.path()).unwrap();
        }
        assert_eq!(files(folder.path()).len(), MOST + 1);
        assert!(foreign.exists());
    }

    #[test]
    fn a_folder_that_cant_be_written_to_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a file");
        fs::write(&file, "").unwrap();
        read(JSON.as_bytes(), &hint(), &file).unwrap();
    }

    #[test]
    fn a_file_that_cant_be_read_is_an_error_and_nothing_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(b"{}", &hint(), folder.path()).is_err());
        assert!(files(folder.path()).is_empty());
    }
}
