//! The hub's protocol, played by a small server on this machine.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Instant,
};

use sha2::{Digest, Sha256};

use super::*;

/// What the server has.
struct Repository {
    body: Vec<u8>,
    etag: String,
    listing: &'static str,
}

fn hex(body: &[u8]) -> String {
    Sha256::digest(body).iter().map(|b| format!("{b:02x}")).collect()
}

/// Serves one repository on this machine; the address.
fn serve(repository: Repository) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let repository = Arc::new(repository);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let repository = Arc::clone(&repository);
            thread::spawn(move || answer(stream, &repository));
        }
    });
    address
}

fn answer(mut stream: TcpStream, repository: &Repository) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let request = lines.next()?.ok()?;
    let mut start = None;
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            let (from, to) = range.split_once('-')?;
            start = Some((from.parse::<usize>().ok()?, to.parse::<usize>().ok()));
        }
    }
    let path = request.split(' ').nth(1)?;
    let (status, headers, body) = if path.starts_with("/api/models/owner/name/") {
        ("200 OK", String::new(), repository.listing.as_bytes().to_vec())
    } else if path.starts_with("/owner/name/resolve/") && path.ends_with("/m.gguf") {
        let (from, to) = start?;
        let to = to.map_or(repository.body.len(), |to| to + 1);
        let headers = format!(
            "ETag: \"{}\"\r\nX-Repo-Commit: abc\r\nContent-Range: bytes {from}-{}/{}\r\n",
            repository.etag,
            to - 1,
            repository.body.len()
        );
        ("206 Partial Content", headers, repository.body[from..to].to_vec())
    } else {
        ("404 Not Found", String::new(), Vec::new())
    };
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}

fn hub(endpoint: String, file: Option<&str>) -> Hub {
    Hub {
        endpoint: Some(endpoint),
        token: None,
        repo: "owner/name".into(),
        revision: None,
        file: file.map(str::to_owned),
        progress: false,
        patience: Duration::from_secs(2),
    }
}

const ONE: &str = r#"{"sha": "abc", "siblings": [{"rfilename": "README.md"}, {"rfilename": "m.gguf"}]}"#;

#[test]
fn a_file_is_fetched_and_checked_against_the_hubs_own_digest() {
    let body = vec![7; 300_000];
    let address = serve(Repository { etag: hex(&body), body: body.clone(), listing: ONE });
    for file in [Some("m.gguf"), None] {
        let scratch = tempfile::tempdir().unwrap();
        let got = hub(address.clone(), file).get(scratch.path()).unwrap();
        assert_eq!((got.name.as_str(), got.sha256), ("m.gguf", hex(&body)));
        assert_eq!(fs::read(got.path).unwrap(), body);
    }
}

#[test]
fn a_file_that_isnt_what_the_hub_says_is_refused() {
    let cases = [(hex(b"another"), "is damaged"), ("0123abcd".into(), "no SHA-256")];
    for (etag, reason) in cases {
        let address = serve(Repository { body: b"body".to_vec(), etag, listing: ONE });
        let scratch = tempfile::tempdir().unwrap();
        let error = hub(address, Some("m.gguf")).get(scratch.path()).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn what_isnt_there_is_said_to_be_missing() {
    let address = serve(Repository { body: b"body".to_vec(), etag: hex(b"body"), listing: ONE });
    let scratch = tempfile::tempdir().unwrap();
    let error = hub(address, Some("other.gguf")).get(scratch.path()).unwrap_err();
    assert_eq!(error, "there is no such file or repository");
}

#[test]
fn the_only_gguf_is_chosen_and_several_are_listed() {
    let files = |names: &[&str]| choose(names.iter().map(|&name| name.to_owned()).collect());
    assert_eq!(files(&["README.md", "a.gguf"]).unwrap(), "a.gguf");
    assert_eq!(files(&["README.md"]).unwrap_err(), "the repository has no .gguf file");
    let error = files(&["b.gguf", "a.gguf"]).unwrap_err();
    assert!(error.contains("has 2 .gguf files") && error.ends_with("a.gguf, b.gguf"), "{error}");
    assert!(files(&["../a.gguf"]).unwrap_err().contains("can't be used"));
}

#[test]
fn a_hub_that_refuses_or_says_nothing_fails_within_seconds() {
    let started = Instant::now();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let error = hub(format!("http://{closed}"), Some("m.gguf")).get(scratch.path()).unwrap_err();
    assert!(!error.contains("http"), "{error}");
    // Takes the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let error = hub(address, Some("m.gguf")).get(scratch.path()).unwrap_err();
    assert_eq!(error, "no answer for 2 seconds");
    assert!(started.elapsed() < Duration::from_secs(15));
}
