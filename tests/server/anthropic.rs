//! `/v1/messages`.

use super::*;

const PATH: &str = "/v1/messages";

fn request(said: &str, more: Value) -> Value {
    let mut request = json!({
        "model": "talker",
        "max_tokens": 300,
        "messages": [{"role": "user", "content": format!("{SAY}{said}")}],
        "temperature": 0,
    });
    merge(&mut request, more);
    request
}

fn tool() -> Value {
    json!({"name": "add", "input_schema": {"type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}})
}

/// The whole message and the streamed one, which must be the same but for ids.
async fn both(request: Value) -> Value {
    let app = app();
    let answer = post(&app, PATH, &request).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let mut streamed = request;
    merge(&mut streamed, json!({"stream": true}));
    let stream = post(&app, PATH, &streamed).await;
    for (name, data) in stream.events() {
        let data: Value = serde_json::from_str(&data).unwrap();
        assert_eq!(data["type"], *name.unwrap(), "an event's name is its type");
    }
    let (mut parts, mut expected) = (folded(&stream.data()), answer.json());
    for message in [&mut parts, &mut expected] {
        message["id"] = Value::Null;
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("id");
        }
    }
    assert_eq!(parts, expected);
    answer.json()
}

/// Puts a stream together as a client does, and checks its order.
fn folded(events: &[Value]) -> Value {
    assert_eq!(events[0]["type"], "message_start");
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    let mut message = events[0]["message"].clone();
    assert_eq!((&message["content"], &message["stop_reason"]), (&json!([]), &Value::Null));
    let mut open: Option<(Value, String)> = None;
    for event in events {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert!(open.is_none(), "blocks never interleave");
                assert_eq!(event["index"], message["content"].as_array().unwrap().len());
                open = Some((event["content_block"].clone(), String::new()));
            }
            "content_block_delta" => {
                let (block, json) = open.as_mut().expect("a delta is inside a block");
                let delta = &event["delta"];
                let add = |value: &mut Value, text: &Value| {
                    *value = format!("{}{}", value.as_str().unwrap(), text.as_str().unwrap()).into();
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => add(&mut block["text"], &delta["text"]),
                    "thinking_delta" => add(&mut block["thinking"], &delta["thinking"]),
                    "signature_delta" => add(&mut block["signature"], &delta["signature"]),
                    "input_json_delta" => json.push_str(delta["partial_json"].as_str().unwrap()),
                    other => panic!("{other}"),
                }
            }
            "content_block_stop" => {
                let (mut block, json) = open.take().unwrap();
                if !json.is_empty() {
                    block["input"] = serde_json::from_str(&json).unwrap();
                }
                message["content"].as_array_mut().unwrap().push(block);
            }
            "message_delta" => {
                merge(&mut message, event["delta"].clone());
                message["usage"]["output_tokens"] = event["usage"]["output_tokens"].clone();
            }
            _ => {}
        }
    }
    message
}

#[test]
fn r6_r8_calls_are_blocks_whole_and_streamed_alike() {
    run(async {
        let text = format!("Let me see.\n{}\n{}", add_call(1, 2), add_call(3, 4));
        let message = both(request(&text, json!({"tools": [tool()]}))).await;
        let kinds: Vec<&str> = message["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["type"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["text", "tool_use", "tool_use"]);
        assert_eq!(message["content"][2]["input"], json!({"a": 3, "b": 4}));
        assert_eq!(message["stop_reason"], "tool_use");
        assert!(message["usage"]["input_tokens"].as_u64().unwrap() > 10);
    });
}

#[test]
fn r7_every_choice_of_tools_holds() {
    run(async {
        for (choice, calls) in [
            (json!({"type": "auto"}), 0),
            (json!({"type": "none"}), 0),
            (json!({"type": "any", "disable_parallel_tool_use": true}), 1),
            (json!({"type": "tool", "name": "add", "disable_parallel_tool_use": true}), 1),
        ] {
            let message = both(request(
                "no call, 1 2",
                json!({"tools": [tool()], "tool_choice": choice, "thinking": {"type": "disabled"}}),
            ))
            .await;
            let found =
                message["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
            assert_eq!(found.count(), calls, "{choice}: {message}");
        }
    });
}

#[test]
fn s11_output_format_is_enforced() {
    run(async {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        for more in [
            json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}}),
            json!({"output_format": {"type": "json_schema", "schema": schema}}),
        ] {
            let message = both(request("it is 17}", more)).await;
            let text = message["content"][0]["text"].as_str().unwrap();
            assert!(jsonschema::is_valid(&schema, &serde_json::from_str(text).unwrap()), "{text}");
            assert_eq!(message["stop_reason"], "end_turn");
        }
    });
}

#[test]
fn thoughts_stop_sequences_and_limits_are_told() {
    run(async {
        let thinking = json!({"thinking": {"type": "adaptive"}});
        let message = both(request("<think>\nhm\n</think>\n\nyes", thinking)).await;
        assert_eq!(
            (&message["content"][0]["thinking"], &message["content"][1]["text"]),
            (&json!("hm"), &json!("yes"))
        );
        let message = both(request("one. two", json!({"stop_sequences": [". "]}))).await;
        assert_eq!(
            (&message["stop_reason"], &message["stop_sequence"]),
            (&json!("stop_sequence"), &json!(". "))
        );
        let message = both(request("a long text", json!({"max_tokens": 3}))).await;
        assert_eq!(
            (&message["stop_reason"], &message["content"][0]["text"]),
            (&json!("max_tokens"), &json!("a l"))
        );
    });
}

#[test]
fn tokens_are_counted_as_they_are_read() {
    run(async {
        let app = app();
        let mut body = request("hi", json!({"system": "be brief", "tools": [tool()]}));
        let read = post(&app, PATH, &body).await.json()["usage"]["input_tokens"].clone();
        body.as_object_mut().unwrap().remove("max_tokens");
        let counted = post(&app, "/v1/messages/count_tokens", &body).await;
        assert_eq!(counted.json(), json!({"input_tokens": read}));
    });
}
