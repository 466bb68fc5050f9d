//! Bodies that are wrong in some way: refused as the caller's fault, never our failure, never a hang.

use super::*;

/// Good bodies, one for each endpoint that takes one.
fn good() -> Vec<(&'static str, Value)> {
    let messages = json!([{"role": "user", "content": "say: a"}]);
    vec![
        (
            "/v1/chat/completions",
            json!({"model": "talker", "messages": messages, "max_tokens": 4, "tools": [add_tool()],
                "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
                "logit_bias": {"1": 1}, "stream_options": {"include_usage": true}, "stream": true}),
        ),
        ("/v1/completions", json!({"model": "talker", "prompt": "say: a\n>", "max_tokens": 4, "seed": 3})),
        (
            "/v1/responses",
            json!({"model": "talker", "input": [{"role": "user", "content": "say: a"}], "max_output_tokens": 4,
                "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}}}),
        ),
        (
            "/v1/messages",
            json!({"model": "talker", "messages": messages, "max_tokens": 4, "system": "s",
                "tools": [{"name": "a", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"}}),
        ),
        (
            "/api/chat",
            json!({"model": "talker", "messages": messages, "options": {"num_predict": 4}, "format": {"type": "object"}}),
        ),
        ("/api/generate", json!({"model": "talker", "prompt": "say: a\n>", "options": {"num_predict": 4}})),
        ("/tokenize", json!({"content": "a"})),
        ("/detokenize", json!({"tokens": [1]})),
    ]
}

/// Every place of a value, as JSON Pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| places(member, &format!("{at}/{key}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

/// Schemas say for themselves what is right in them; and anything is an object's member there.
fn inside_a_schema(place: &str) -> bool {
    ["/schema/", "/parameters/", "/input_schema/"].iter().any(|part| place.contains(part))
}

#[test]
fn two_hundred_wrong_bodies_are_the_callers_fault() {
    run(async {
        let app = app();
        let mut seen = 0;
        for (path, body) in good() {
            let answer = post(&app, path, &body).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            let mut wrong: Vec<String> = Vec::new();
            let mut all = Vec::new();
            places(&body, "", &mut all);
            for place in &all {
                // A value of no type that any field takes, a key that no object has, and a list where none stands.
                let mut changed = body.clone();
                *changed.pointer_mut(place).unwrap() = json!([[[{"\u{0}": -1e300}]]]);
                if !inside_a_schema(&format!("{place}/")) || !place.contains("/schema") {
                    wrong.push(changed.to_string());
                }
                let mut changed = body.clone();
                if let Some(Value::Object(members)) = changed.pointer_mut(place)
                    && !inside_a_schema(&format!("{place}/"))
                    && place != "/format"
                    && !place.starts_with("/messages/")
                    && !place.starts_with("/input/")
                {
                    members.insert("no_such_field".into(), 1.into());
                    wrong.push(changed.to_string());
                }
            }
            let text = body.to_string();
            for end in (1..text.len()).step_by(text.len() / 9) {
                wrong.push(text[..end].to_owned());
            }
            wrong.push(format!("{text}}}"));
            wrong.push("[".repeat(100_000));
            wrong.push("null".into());
            wrong.push("\u{feff}{}".into());
            for body in wrong {
                let answer = post_text(&app, path, body.clone()).await;
                assert!(
                    answer.status.is_client_error(),
                    "{path}: {}: {}: {}",
                    answer.status,
                    &body[..body.len().min(600)],
                    answer.text
                );
                assert!(answer.json().get("error").is_some());
                seen += 1;
            }
            let bytes = post_text(&app, path, vec![0xff, 0xfe, 0x00]).await;
            assert_eq!(bytes.status, 400);
        }
        println!("{seen} wrong bodies");
        assert!(seen >= 200, "{seen}");
    });
}
