//! Streams that meet trouble: silence and failure.

use std::time::Duration;

use maskwright::{
    Logits, TokenId,
    model::{Model, ModelCard, ModelError, SequenceId, Session},
};

use super::*;

/// A model whose device takes its time when it reads a tilde, and fails when what it is fed ends with an exclamation mark.
struct Fragile(Scripted);

struct FragileSession<'m>(Box<dyn Session + 'm>);

impl Model for Fragile {
    fn card(&self) -> &ModelCard {
        self.0.card()
    }

    fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.0.vocabulary()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, ModelError> {
        Ok(Box::new(FragileSession(self.0.session()?)))
    }
}

impl Session for FragileSession<'_> {
    fn add(&mut self) -> Result<SequenceId, ModelError> {
        self.0.add()
    }

    fn fork(&mut self, sequence: SequenceId, len: usize) -> Result<SequenceId, ModelError> {
        self.0.fork(sequence, len)
    }

    fn remove(&mut self, sequence: SequenceId) {
        self.0.remove(sequence);
    }

    fn feed(&mut self, work: &[(SequenceId, &[TokenId])]) -> Result<Vec<Logits<'_>>, ModelError> {
        if work.iter().any(|(_, tokens)| tokens.last() == Some(&u32::from(b'!'))) {
            return Err(ModelError::Device("a secret of the device".into()));
        }
        if work.iter().any(|(_, tokens)| *tokens == [u32::from(b'~')]) {
            std::thread::sleep(Duration::from_millis(200));
        }
        self.0.feed(work)
    }

    fn len(&self, sequence: SequenceId) -> usize {
        self.0.len(sequence)
    }

    fn truncate(&mut self, sequence: SequenceId, len: usize) -> Result<(), ModelError> {
        self.0.truncate(sequence, len)
    }
}

fn fragile(options: ServerOptions) -> Router {
    let local = Local::new(Arc::new(Fragile(model(Some(hermes())))), Limits::default()).unwrap();
    let served = Served::new("talker", Service::start(local, ServiceOptions::default()).unwrap(), None);
    router(State::new(vec![served], Access::default(), options))
}

#[test]
fn a_failure_after_the_stream_began_is_the_protocols_own_error() {
    run(async {
        let app = fragile(ServerOptions::default());
        let request = |more: Value| chat_request("before! after", more);
        let whole = post(&app, "/v1/chat/completions", &request(json!({}))).await;
        assert_eq!((whole.status.as_u16(), &whole.json()["error"]["type"]), (500, &json!("server_error")));
        assert!(!whole.text.contains("secret"));

        let stream = post(&app, "/v1/chat/completions", &request(json!({"stream": true}))).await;
        assert_eq!(stream.status, 200);
        let (events, data) = (stream.events(), stream.data());
        assert_eq!(events.last().unwrap().1, "[DONE]");
        assert_eq!(data.last().unwrap()["error"]["type"], "server_error");
        let text: String =
            data.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(text, "before!");
        assert!(!stream.text.contains("secret"));

        let stream = post(&app, "/v1/messages", &request(json!({"stream": true}))).await;
        let (name, data) = stream.events().pop().unwrap();
        assert_eq!(name.as_deref(), Some("error"));
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap()["error"]["type"], "api_error");

        let body =
            json!({"model": "talker", "input": "say: before! after", "temperature": 0, "stream": true});
        let stream = post(&app, "/v1/responses", &body).await;
        let last = stream.data().pop().unwrap();
        assert_eq!(
            (&last["type"], &last["response"]["status"]),
            (&json!("response.failed"), &json!("failed"))
        );

        let body =
            json!({"model": "talker", "messages": [{"role": "user", "content": "say: before! after"}]});
        let lines = post(&app, "/api/chat", &body).await.lines();
        assert!(lines.last().unwrap()["error"].is_string());

        // The one failed, and nothing else.
        let after = post(&app, "/v1/chat/completions", &chat_request("fine", json!({}))).await;
        assert_eq!(after.json()["choices"][0]["message"]["content"], "fine");
    });
}

#[test]
fn silence_is_filled_with_comments() {
    run(async {
        let app =
            fragile(ServerOptions { keep_alive: Duration::from_millis(20), ..ServerOptions::default() });
        let stream =
            post(&app, "/v1/chat/completions", &chat_request("well~ then", json!({"stream": true}))).await;
        let (before, after) = stream.text.split_once(": keep-alive").expect("a comment");
        assert!(before.contains("\"~\"") && !before.contains("then") && after.ends_with("data: [DONE]\n\n"));
        let text: String = stream
            .data()
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
            .collect();
        assert_eq!(text, "well~ then");
    });
}
