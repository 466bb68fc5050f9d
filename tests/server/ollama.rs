//! `/api/chat`, `/api/generate` and what else Ollama's clients ask for.

use super::*;

fn request(said: &str, more: Value) -> Value {
    let mut request = json!({
        "model": "talker",
        "messages": [{"role": "user", "content": format!("{SAY}{said}")}],
        "options": {"temperature": 0, "num_predict": 300},
    });
    merge(&mut request, more);
    request
}

/// The whole reply and the streamed one, put together.
async fn both(path: &str, request: Value) -> Value {
    let app = app();
    let lines = post(&app, path, &request).await.lines();
    let mut whole = request;
    merge(&mut whole, json!({"stream": false}));
    let answer = post(&app, path, &whole).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let whole = answer.json();
    let text = |record: &Value| {
        let message = record.get("message").unwrap_or(record);
        message.get("content").or(message.get("response")).and_then(Value::as_str).unwrap().to_owned()
    };
    assert_eq!(lines.iter().map(text).collect::<String>(), text(&whole));
    let calls: Vec<Value> = lines
        .iter()
        .flat_map(|line| line["message"]["tool_calls"].as_array().cloned().unwrap_or_default())
        .collect();
    let functions = |calls: &[Value]| calls.iter().map(|call| call["function"].clone()).collect::<Vec<_>>();
    let expected = whole["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
    assert_eq!(functions(&calls), functions(&expected));
    let last = lines.last().unwrap();
    assert_eq!((&last["done"], &last["done_reason"]), (&json!(true), &whole["done_reason"]));
    assert!(lines[..lines.len() - 1].iter().all(|line| line["done"] == false));
    for field in ["total_duration", "prompt_eval_count", "eval_count", "eval_duration"] {
        assert!(last[field].is_u64(), "{field}");
    }
    whole
}

#[test]
fn s4_format_is_json_or_a_schema() {
    run(async {
        let reply = both("/api/chat", request("plain words", json!({}))).await;
        assert_eq!(
            (&reply["message"]["content"], &reply["done_reason"]),
            (&json!("plain words"), &json!("stop"))
        );
        let reply = both("/api/chat", request("no }", json!({"format": "json"}))).await;
        assert!(reply["message"]["content"].as_str().unwrap().starts_with('{'));
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        let reply = both("/api/chat", request("it is 17}", json!({"format": schema}))).await;
        let content = serde_json::from_str(reply["message"]["content"].as_str().unwrap()).unwrap();
        assert!(jsonschema::is_valid(&schema, &content), "{content}");
    });
}

#[test]
fn calls_are_objects_without_a_choice() {
    run(async {
        let reply = both("/api/chat", request(&add_call(1, 2), json!({"tools": [add_tool()]}))).await;
        assert_eq!(
            reply["message"]["tool_calls"][0]["function"],
            json!({"index": 0, "name": "add", "arguments": {"a": 1, "b": 2}})
        );
        let history = json!({"messages": [
            {"role": "user", "content": "add"},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1, "b": 2}}}]},
            {"role": "tool", "tool_name": "add", "content": "3"},
            {"role": "user", "content": "say: three"},
        ], "tools": [add_tool()]});
        let reply = both("/api/chat", request("", history)).await;
        assert_eq!(reply["message"]["content"], "three");
    });
}

#[test]
fn a_prompt_is_generated_from_with_or_without_the_template() {
    run(async {
        let generate = |more: Value| {
            let mut request = json!({"model": "talker:latest", "prompt": "say: on<|im_start|>assistant\n", "options": {"temperature": 0}});
            merge(&mut request, more);
            request
        };
        assert_eq!(both("/api/generate", generate(json!({"system": "be brief"}))).await["response"], "on");
        assert_eq!(both("/api/generate", generate(json!({"raw": true}))).await["response"], "on");
        let reply = both("/api/generate", generate(json!({"format": {"enum": [1, 2]}}))).await;
        assert!(["1", "2"].contains(&reply["response"].as_str().unwrap()));
        let loaded = post(&app(), "/api/generate", &json!({"model": "talker"})).await.json();
        assert_eq!((&loaded["done"], &loaded["done_reason"]), (&json!(true), &json!("load")));
    });
}

#[test]
fn a_reply_that_is_cut_off_says_so_and_holds_no_half_call() {
    run(async {
        let options = json!({"tools": [add_tool()], "options": {"temperature": 0, "num_predict": 60}});
        let reply = both("/api/chat", request(&add_call(1, 2), options)).await;
        assert_eq!(reply["done_reason"], "length");
        assert!(reply["message"].get("tool_calls").is_none(), "{reply}");
    });
}

#[test]
fn models_are_listed_and_shown() {
    run(async {
        let app = app();
        let tags = get(&app, "/api/tags").await.json();
        assert_eq!(tags["models"][0]["name"], "talker");
        assert!(get(&app, "/api/version").await.json()["version"].is_string());
        assert_eq!(get(&app, "/api/ps").await.json()["models"][1]["context_length"], 8192);
        let shown = post(&app, "/api/show", &json!({"model": "talker"})).await.json();
        assert_eq!(shown["capabilities"], json!(["completion", "tools"]));
        let shown = post(&app, "/api/show", &json!({"name": "plain"})).await.json();
        assert_eq!(shown["capabilities"], json!(["completion"]));
    });
}
