//! What is refused, and in which words: each row of `refusals.json` is a request and the answer to it.

use super::*;

#[test]
fn s3_s5_r11_every_row_is_refused_in_its_words() {
    run(async {
        let app = app();
        let rows: Vec<Value> = serde_json::from_str(include_str!("refusals.json")).unwrap();
        for row in &rows {
            let name = row["name"].as_str().unwrap();
            let path = row["path"].as_str().unwrap();
            let mut body = match path {
                "/v1/chat/completions" => {
                    json!({"model": "talker", "messages": [{"role": "user", "content": "hi"}]})
                }
                "/v1/completions" => json!({"model": "talker", "prompt": "hi"}),
                "/v1/responses" => json!({"model": "talker", "input": "hi"}),
                "/v1/messages" => {
                    json!({"model": "talker", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9})
                }
                "/api/chat" => json!({"model": "talker", "messages": [{"role": "user", "content": "hi"}]}),
                "/api/generate" => json!({"model": "talker", "prompt": "hi"}),
                other => panic!("{other}"),
            };
            merge(&mut body, row["body"].clone());
            for streamed in [false, true] {
                body["stream"] = streamed.into();
                if !streamed
                    && row["body"].get("stream_options").is_some()
                    && row["code"] == "unknown_parameter"
                {
                    continue;
                }
                let answer = post(&app, path, &body).await;
                let error = answer.json();
                let message =
                    error.pointer("/error/message").or(error.get("error")).and_then(Value::as_str).unwrap();
                assert_eq!(row["status"], answer.status.as_u16(), "{name}: {error}");
                for (field, pointer) in
                    [("type", "/error/type"), ("param", "/error/param"), ("code", "/error/code")]
                {
                    if let Some(expected) = row.get(field) {
                        assert_eq!(error.pointer(pointer), Some(expected), "{name}: {error}");
                    }
                }
                let part = row["message"].as_str().unwrap();
                assert!(message.contains(part), "{name}: {message:?} doesn't hold {part:?}");
            }
        }
        println!("{} rows", rows.len());
    });
}

#[test]
fn a_full_queue_is_429_with_a_time_to_come_back() {
    run(async {
        let local = Local::new(Arc::new(model(Some(hermes()))), Limits::default()).unwrap();
        let service = ServiceOptions { sequences: 1, queue: 0, ..ServiceOptions::default() };
        let served = Served::new("talker", Service::start(local, service).unwrap(), None);
        let app = router(State::new(vec![served], Access::default(), ServerOptions::default()));
        // A reply that nobody reads keeps its place.
        let endless = json!({"stream": true, "max_tokens": 4000, "temperature": 1, "regex": "[a-z]{4000}"});
        let body = chat_request("x", endless).to_string();
        let open = app
            .clone()
            .oneshot(Request::post("/v1/chat/completions").body(Body::from(body)).unwrap())
            .await
            .unwrap();
        assert_eq!(open.status(), 200);
        for (path, kind) in
            [("/v1/chat/completions", "rate_limit_error"), ("/v1/messages", "rate_limit_error")]
        {
            let answer = post(&app, path, &chat_request("x", json!({}))).await;
            assert_eq!((answer.status.as_u16(), &answer.json()["error"]["type"]), (429, &json!(kind)));
            assert!(answer.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
        }
        drop(open);
        // The place is free within a step.
        for _ in 0..100 {
            if post(&app, "/v1/chat/completions", &chat_request("x", json!({}))).await.status == 200 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("the place stays taken");
    });
}
