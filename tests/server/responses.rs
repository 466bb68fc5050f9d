//! `/v1/responses`.

use super::*;

const PATH: &str = "/v1/responses";

fn request(said: &str, more: Value) -> Value {
    let mut request = json!({"model": "talker", "input": format!("{SAY}{said}"), "temperature": 0, "max_output_tokens": 300});
    merge(&mut request, more);
    request
}

fn tool() -> Value {
    json!({"type": "function", "name": "add", "strict": true, "parameters": {"type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"], "additionalProperties": false}})
}

/// Ids and times differ between two responses to the same request.
fn without_ids(mut response: Value) -> Value {
    response["id"] = Value::Null;
    response["created_at"] = Value::Null;
    response["usage"] = lasting(response["usage"].clone());
    for item in response["output"].as_array_mut().unwrap() {
        item["id"] = Value::Null;
        if item.get("call_id").is_some() {
            item["call_id"] = Value::Null;
        }
    }
    response
}

/// The whole response, after the streamed one was seen to end in the same.
async fn both(request: Value) -> Value {
    let app = app();
    let answer = post(&app, PATH, &request).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let mut streamed = request;
    merge(&mut streamed, json!({"stream": true}));
    let stream = post(&app, PATH, &streamed).await;
    let events = stream.data();
    for (number, ((name, _), event)) in stream.events().iter().zip(&events).enumerate() {
        assert_eq!(event["sequence_number"], number);
        assert_eq!(event["type"], *name.as_ref().unwrap().as_str());
    }
    assert_eq!(
        (&events[0]["type"], &events[1]["type"]),
        (&json!("response.created"), &json!("response.in_progress"))
    );
    let last = events.last().unwrap();
    let kind =
        if answer.json()["status"] == "completed" { "response.completed" } else { "response.incomplete" };
    assert_eq!(last["type"], kind);
    assert_eq!(without_ids(last["response"].clone()), without_ids(answer.json()));
    // Deltas add up to what their items end as.
    for (index, item) in last["response"]["output"].as_array().unwrap().iter().enumerate() {
        let deltas =
            events.iter().filter(|event| event["output_index"] == index && event["delta"].is_string());
        let joined: String = deltas.map(|event| event["delta"].as_str().unwrap()).collect();
        let whole = match item["type"].as_str().unwrap() {
            "function_call" => &item["arguments"],
            "custom_tool_call" => &item["input"],
            _ => &item["content"][0]["text"],
        };
        assert_eq!(joined, whole.as_str().unwrap());
        let done = events
            .iter()
            .find(|event| event["type"] == "response.output_item.done" && event["output_index"] == index);
        assert_eq!(done.unwrap()["item"], *item);
    }
    answer.json()
}

#[test]
fn a_text_is_a_message_and_a_schema_holds() {
    run(async {
        let response = both(request("hello", json!({}))).await;
        assert_eq!(
            (&response["status"], &response["output"][0]["content"][0]["text"]),
            (&json!("completed"), &json!("hello"))
        );
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        let format = json!({"text": {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": true}}});
        let response = both(request("it is 17}", format.clone())).await;
        let text = response["output"][0]["content"][0]["text"].as_str().unwrap();
        assert!(jsonschema::is_valid(&schema, &serde_json::from_str(text).unwrap()), "{text}");
        assert_eq!(response["text"], format["text"]);
        let response = both(request("no }", json!({"text": {"format": {"type": "json_object"}}}))).await;
        assert!(response["output"][0]["content"][0]["text"].as_str().unwrap().starts_with('{'));
    });
}

#[test]
fn calls_thoughts_and_texts_are_items() {
    run(async {
        let text = format!("<think>\nhm\n</think>\n\nSo:\n{}", add_call(1, 2));
        let response = both(request(&text, json!({"tools": [tool()]}))).await;
        let kinds: Vec<&str> = response["output"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["type"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["reasoning", "message", "function_call"]);
        let call = &response["output"][2];
        assert_ne!(call["id"], call["call_id"]);
        assert_eq!(
            serde_json::from_str::<Value>(call["arguments"].as_str().unwrap()).unwrap(),
            json!({"a": 1, "b": 2})
        );
        let custom = json!({"type": "custom", "name": "sql", "format": {"type": "grammar", "syntax": "regex", "definition": "SELECT [a-z]+"}});
        let response =
            both(request("no", json!({"tools": [custom], "tool_choice": {"type": "custom", "name": "sql"}, "reasoning": {"effort": "none"}})))
                .await;
        assert_eq!(response["output"][0]["type"], "custom_tool_call");
        assert!(response["output"][0]["input"].as_str().unwrap().starts_with("SELECT "));
    });
}

#[test]
fn a_response_that_is_cut_off_is_incomplete() {
    run(async {
        let response = both(request("a long text", json!({"max_output_tokens": 3}))).await;
        assert_eq!(
            (&response["status"], &response["incomplete_details"]["reason"]),
            (&json!("incomplete"), &json!("max_output_tokens"))
        );
        assert_eq!(response["output"][0]["status"], "incomplete");
    });
}

#[test]
fn a_response_goes_on_from_a_stored_one() {
    run(async {
        let app = app();
        let first = post(&app, PATH, &request(&add_call(1, 2), json!({"tools": [tool()]}))).await.json();
        let (id, call) = (first["id"].as_str().unwrap(), first["output"][0]["call_id"].clone());
        let next = json!({"previous_response_id": id, "tools": [tool()], "input": [
            {"type": "function_call_output", "call_id": call, "output": "3"},
            {"role": "user", "content": "say: three"}]});
        let second = post(&app, PATH, &request("", next)).await;
        assert_eq!(second.status, 200, "{}", second.text);
        assert_eq!(second.json()["output"][0]["content"][0]["text"], "three");

        let path = format!("{PATH}/{id}");
        assert_eq!(get(&app, &path).await.json(), first);
        assert_eq!(
            get(&app, &format!("{path}/input_items")).await.json()["data"].as_array().unwrap().len(),
            1
        );
        assert_eq!(post(&app, &format!("{path}/cancel"), &json!({})).await.status, 400);
        let delete = || Request::delete(&path).body(Body::empty()).unwrap();
        assert_eq!(send(&app, delete()).await.json()["deleted"], true);
        assert_eq!(send(&app, delete()).await.status, 404);
        assert_eq!(get(&app, &path).await.status, 404);
        let unstored = post(&app, PATH, &request("x", json!({"store": false}))).await.json();
        assert_eq!(get(&app, &format!("{PATH}/{}", unstored["id"].as_str().unwrap())).await.status, 404);
    });
}
