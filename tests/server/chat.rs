//! `/v1/chat/completions` and `/v1/completions`.

use super::*;

const PATH: &str = "/v1/chat/completions";

/// Puts the chunks of a stream together as a client does.
fn folded(chunks: &[Value], index: u64) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    let mut calls: Vec<Value> = Vec::new();
    let mut reason = Value::Null;
    let add =
        |value: &mut Value, text: &str| *value = format!("{}{text}", value.as_str().unwrap_or("")).into();
    for chunk in chunks {
        let Some(choice) =
            chunk["choices"].as_array().unwrap().iter().find(|choice| choice["index"] == index)
        else {
            continue;
        };
        let delta = &choice["delta"];
        for field in ["content", "reasoning_content"] {
            if let Some(text) = delta[field].as_str() {
                add(&mut message[field], text);
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let place = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if call.get("id").is_some() {
                assert_eq!(place, calls.len(), "a call opens once");
                let mut call = call.clone();
                call.as_object_mut().unwrap().remove("index");
                calls.push(call);
            } else if let Some(text) = call["custom"]["input"].as_str() {
                add(&mut calls[place]["custom"]["input"], text);
            } else {
                assert!(call["function"].get("name").is_none() && call.get("type").is_none());
                add(
                    &mut calls[place]["function"]["arguments"],
                    call["function"]["arguments"].as_str().unwrap(),
                );
            }
        }
        if !choice["finish_reason"].is_null() {
            assert!(reason.is_null(), "one end");
            reason = choice["finish_reason"].clone();
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({"message": message, "finish_reason": reason})
}

/// The whole reply and the streamed one, which must be the same but for ids.
async fn both(request: Value) -> (Answer, Value) {
    let app = app();
    let whole = post(&app, PATH, &request).await;
    assert_eq!(whole.status, 200, "{}", whole.text);
    let mut streamed = request;
    merge(&mut streamed, json!({"stream": true, "stream_options": {"include_usage": true}}));
    let stream = post(&app, PATH, &streamed).await;
    assert_eq!(stream.status, 200, "{}", stream.text);
    let chunks = stream.data();
    assert_eq!(stream.events().last().unwrap().1, "[DONE]");
    let last = chunks.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(lasting(last["usage"].clone()), lasting(whole.json()["usage"].clone()));
    let choices = whole.json()["choices"].as_array().unwrap().clone();
    for choice in &choices {
        let mut parts = folded(&chunks, choice["index"].as_u64().unwrap());
        let mut expected = json!({"message": choice["message"], "finish_reason": choice["finish_reason"]});
        expected["message"].as_object_mut().unwrap().remove("refusal");
        // A stream has no piece for an empty text.
        if expected["message"]["content"] == "" {
            expected["message"]["content"] = Value::Null;
        }
        for message in [&mut parts, &mut expected] {
            for call in message["message"]["tool_calls"].as_array_mut().into_iter().flatten() {
                assert!(call["id"].as_str().is_some_and(|id| !id.is_empty()));
                call["id"] = Value::Null;
            }
        }
        assert_eq!(parts, expected);
    }
    let choice = choices[0].clone();
    (whole, choice)
}

#[test]
fn r5_a_text_is_answered_whole_and_streamed_alike() {
    run(async {
        let (answer, choice) = both(chat_request("hello there", json!({}))).await;
        assert_eq!(choice["message"]["content"], "hello there");
        assert_eq!(choice["finish_reason"], "stop");
        let body = answer.json();
        assert_eq!((&body["object"], &body["model"]), (&json!("chat.completion"), &json!("talker")));
        let usage = &body["usage"];
        assert_eq!(usage["completion_tokens"], 12, "eleven bytes and the stop token");
        assert!(!answer.headers.contains_key("x-maskwright-constraint"));
    });
}

#[test]
fn r5_s2_every_form_of_constraint_holds_and_is_told_in_a_header() {
    run(async {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
            "additionalProperties": false});
        let content = json!({"type": "json_schema", "json_schema": {"type": "integer", "minimum": 0}});
        let number = json!({"type": "tag", "begin": "<n>", "content": content, "end": "</n>"});
        let tag = json!({"type": "structural_tag", "format": number});
        let calls = json!({"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<n"],
            "tags": [number], "at_least_one": true, "stop_after_first": true}});
        for (constraint, kind, pattern) in [
            (json!({"response_format": {"type": "json_object"}}), "json_object", r"^\{"),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}),
                "json_schema",
                r#"^\{"n":\d+\}$"#,
            ),
            (
                json!({"response_format": {"type": "json_object", "schema": schema}}),
                "json_schema",
                r#"^\{"n":\d+\}$"#,
            ),
            (json!({"structured_outputs": {"json": schema}}), "json_schema", r#"^\{"n":\d+\}$"#),
            (json!({"structured_outputs": {"json": schema.to_string()}}), "json_schema", r#"^\{"n":\d+\}$"#),
            (json!({"structured_outputs": {"regex": "[0-9]{3}"}}), "regex", "^[0-9]{3}$"),
            (json!({"structured_outputs": {"choice": ["yes", "no"]}}), "choice", "^(yes|no)$"),
            (json!({"structured_outputs": {"grammar": "root ::= \"a\" [0-9]"}}), "gbnf", "^a[0-9]$"),
            (json!({"structured_outputs": {"grammar": "start: /b[0-9]/"}}), "lark", "^b[0-9]$"),
            (json!({"structured_outputs": {"json_object": true}}), "json_object", r"^\{"),
            (
                json!({"structured_outputs": {"structural_tag": tag.to_string()}}),
                "structural_tag",
                r"^<n>\d+</n>$",
            ),
            (json!({"structured_outputs": {"structural_tag": tag}}), "structural_tag", r"^<n>\d+</n>$"),
            (json!({"structural_tag": tag.to_string()}), "structural_tag", r"^<n>\d+</n>$"),
            (json!({"response_format": tag}), "structural_tag", r"^<n>\d+</n>$"),
            (json!({"response_format": calls}), "structural_tag", r"^<n>\d+</n>$"),
            (json!({"guided_json": schema}), "json_schema", r#"^\{"n":\d+\}$"#),
            (json!({"guided_regex": "[0-9]{3}"}), "regex", "^[0-9]{3}$"),
            (json!({"guided_choice": ["yes", "no"]}), "choice", "^(yes|no)$"),
            (json!({"guided_grammar": "root ::= \"a\" [0-9]"}), "gbnf", "^a[0-9]$"),
            (json!({"grammar": "root ::= \"a\" [0-9]"}), "gbnf", "^a[0-9]$"),
            (json!({"json_schema": schema}), "json_schema", r#"^\{"n":\d+\}$"#),
            (json!({"lark": "start: /b[0-9]/"}), "lark", "^b[0-9]$"),
            (json!({"regex": "[0-9]{3}"}), "regex", "^[0-9]{3}$"),
            (json!({"ebnf": "root ::= \"a\" [0-9]"}), "gbnf", "^a[0-9]$"),
        ] {
            // It wants to say something else, and closes what it must open.
            let (answer, choice) = both(chat_request("no way 17}", constraint.clone())).await;
            let text = choice["message"]["content"].as_str().unwrap();
            assert!(jsonschema::is_valid(&json!({"pattern": pattern}), &text.into()), "{constraint}: {text}");
            let told = answer.headers["x-maskwright-constraint"].to_str().unwrap();
            let (name, digest) = told.split_once(";digest=").unwrap();
            assert_eq!((name, digest.len()), (kind, 16), "{constraint}");
        }
    });
}

#[test]
fn r6_r7_tools_are_called_in_all_modes() {
    run(async {
        let more = |more: Value| {
            let mut request = json!({"tools": [add_tool()]});
            merge(&mut request, more);
            request
        };
        let call = add_call(1, 2);
        for choice in [
            json!("auto"),
            json!("required"),
            json!({"type": "function", "function": {"name": "add"}}),
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "required",
                "tools": [{"type": "function", "function": {"name": "add"}}]}}),
        ] {
            let (answer, choice) = both(chat_request(&call, more(json!({"tool_choice": choice})))).await;
            let message = &choice["message"];
            assert_eq!(message["content"], Value::Null);
            assert_eq!(message["tool_calls"][0]["function"]["name"], "add");
            let arguments: Value =
                serde_json::from_str(message["tool_calls"][0]["function"]["arguments"].as_str().unwrap())
                    .unwrap();
            assert_eq!(arguments, json!({"a": 1, "b": 2}));
            assert_eq!(choice["finish_reason"], "tool_calls");
            assert!(answer.headers["x-maskwright-constraint"].to_str().unwrap().starts_with("tools;digest="));
        }
        let (_, choice) = both(chat_request(&call, more(json!({"tool_choice": "none"})))).await;
        assert!(choice["message"].get("tool_calls").is_none(), "not shown, not called");
        let (_, choice) = both(chat_request("just text", more(json!({})))).await;
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!("just text"), &json!("stop"))
        );
        let two = format!("{}\n{}", add_call(1, 2), add_call(3, 4));
        let (_, choice) = both(chat_request(&two, more(json!({})))).await;
        assert_eq!(choice["message"]["tool_calls"].as_array().unwrap().len(), 2);
        let (_, choice) = both(chat_request(&two, more(json!({"parallel_tool_calls": false})))).await;
        assert_eq!(choice["message"]["tool_calls"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn s6_tools_and_a_schema_go_together_under_auto() {
    run(async {
        let schema = json!({"type": "object", "properties": {"n": {"const": 7}}, "required": ["n"], "additionalProperties": false});
        let more = json!({"tools": [add_tool()], "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}});
        let (answer, choice) = both(chat_request("{\"n\": 8}", more.clone())).await;
        assert_eq!(choice["message"]["content"], "{\"n\":7}");
        assert!(
            answer.headers["x-maskwright-constraint"].to_str().unwrap().starts_with("tools,json_schema;")
        );
        let (_, choice) = both(chat_request(&add_call(1, 2), more.clone())).await;
        assert_eq!(choice["finish_reason"], "tool_calls");
        let mut required = more;
        merge(&mut required, json!({"tool_choice": "required"}));
        let (answer, choice) = both(chat_request(&add_call(1, 2), required)).await;
        assert_eq!(choice["finish_reason"], "tool_calls", "a required call wins");
        assert!(answer.headers["x-maskwright-constraint"].to_str().unwrap().starts_with("tools;"));
    });
}

#[test]
fn a_custom_tool_takes_a_text_of_its_grammar() {
    run(async {
        let wish = "<tool_call>\n{\"name\": \"sql\", \"arguments\": {\"input\": \"SELECT \\\"abc\\\" FROM x\"}}\n</tool_call>";
        for (syntax, definition) in [
            ("regex", "SELECT \"[a-z]+\""),
            ("lark", "start: \"SELECT \" quoted\nquoted: \"\\\"\" /[a-z]+/ \"\\\"\""),
        ] {
            let grammar = json!({"syntax": syntax, "definition": definition});
            let tool = json!({"type": "custom", "custom": {"name": "sql", "format": {"type": "grammar", "grammar": grammar}}});
            let (_, choice) =
                both(chat_request(wish, json!({"tools": [tool], "tool_choice": "required"}))).await;
            let call = &choice["message"]["tool_calls"][0];
            assert_eq!(call["type"], "custom");
            assert_eq!(call["custom"], json!({"name": "sql", "input": "SELECT \"abc\""}), "{syntax}");
        }
    });
}

#[test]
fn arguments_stream_piece_by_piece() {
    run(async {
        let request = chat_request(&add_call(123, 456), json!({"tools": [add_tool()], "stream": true}));
        let chunks = post(&app(), PATH, &request).await.data();
        let calls: Vec<&Value> =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0)).collect();
        assert_eq!(
            calls[0]["function"],
            json!({"name": "add", "arguments": ""}),
            "opened with the name alone"
        );
        assert!(calls.len() > 6, "{calls:?}");
    });
}

#[test]
fn thoughts_are_told_apart() {
    run(async {
        let (answer, choice) = both(chat_request("<think>\nhm\n</think>\n\nyes", json!({}))).await;
        assert_eq!(
            (&choice["message"]["reasoning_content"], &choice["message"]["content"]),
            (&json!("hm"), &json!("yes"))
        );
        let details = &answer.json()["usage"]["completion_tokens_details"];
        assert!(details["reasoning_tokens"].as_u64().unwrap() > 0, "{details}");
    });
}

#[test]
fn log_probabilities_cover_the_text() {
    run(async {
        let more = json!({"logprobs": true, "top_logprobs": 2});
        let (_, choice) = both(chat_request("ab", more.clone())).await;
        let content = choice["logprobs"]["content"].as_array().unwrap();
        let tokens: Vec<&str> = content.iter().map(|entry| entry["token"].as_str().unwrap()).collect();
        assert_eq!(tokens, ["a", "b"]);
        assert_eq!(content[0]["top_logprobs"].as_array().unwrap().len(), 2);
        assert_eq!(content[0]["bytes"], json!([97]));
        let mut streamed = chat_request("ab", more);
        merge(&mut streamed, json!({"stream": true}));
        let chunks = post(&app(), PATH, &streamed).await.data();
        let streamed: Vec<Value> = chunks
            .iter()
            .flat_map(|chunk| {
                chunk["choices"][0]["logprobs"]["content"].as_array().cloned().unwrap_or_default()
            })
            .collect();
        assert_eq!(&streamed, content);
    });
}

#[test]
fn several_replies_differ_and_are_repeatable() {
    run(async {
        let request = |more: Value| {
            let mut request = json!({"n": 3, "seed": 5, "temperature": 1, "regex": "[a-z]{12}"});
            merge(&mut request, more);
            chat_request("x", request)
        };
        let app = app();
        let texts = |answer: &Answer| -> Vec<String> {
            let choices = answer.json()["choices"].as_array().unwrap().clone();
            choices.iter().map(|choice| choice["message"]["content"].as_str().unwrap().to_owned()).collect()
        };
        let first = texts(&post(&app, PATH, &request(json!({}))).await);
        assert_eq!(first, texts(&post(&app, PATH, &request(json!({}))).await));
        assert_eq!(first.len(), 3);
        let stream = post(&app, PATH, &request(json!({"stream": true}))).await.data();
        for (index, text) in first.iter().enumerate() {
            assert_eq!(folded(&stream, index as u64)["message"]["content"], **text);
        }
    });
}

#[test]
fn a_reply_that_is_cut_off_says_so() {
    run(async {
        let (_, choice) = both(chat_request("a long text", json!({"max_tokens": 3}))).await;
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!("a l"), &json!("length"))
        );
        let (_, choice) = both(chat_request("one. two. three", json!({"stop": [". t"]}))).await;
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!("one"), &json!("stop"))
        );
    });
}

#[test]
fn completions_go_on_without_a_template() {
    run(async {
        let app = app();
        let request =
            json!({"model": "plain", "prompt": "say: on and on\n>", "max_tokens": 40, "temperature": 0});
        let whole = post(&app, "/v1/completions", &request).await.json();
        assert_eq!(
            (&whole["object"], &whole["choices"][0]["text"]),
            (&json!("text_completion"), &json!("on and on"))
        );
        let mut many = request.clone();
        merge(&mut many, json!({"prompt": ["say: a\n>", "say: b\n>"], "echo": true, "n": 2}));
        let many = post(&app, "/v1/completions", &many).await.json();
        let texts: Vec<&Value> =
            many["choices"].as_array().unwrap().iter().map(|choice| &choice["text"]).collect();
        assert_eq!(texts, ["say: a\n>a", "say: a\n>a", "say: b\n>b", "say: b\n>b"]);
        let mut tokens = request.clone();
        merge(&mut tokens, json!({"prompt": b"say: t\n>".to_vec(), "logprobs": 1}));
        let tokens = post(&app, "/v1/completions", &tokens).await.json();
        assert_eq!(tokens["choices"][0]["text"], "t");
        assert_eq!(tokens["choices"][0]["logprobs"]["tokens"], json!(["t"]));
        let mut streamed = request;
        merge(&mut streamed, json!({"stream": true, "regex": "[0-9]{4}"}));
        let stream = post(&app, "/v1/completions", &streamed).await;
        assert!(stream.headers["x-maskwright-constraint"].to_str().unwrap().starts_with("regex;"));
        let text: String = stream
            .data()
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["text"].as_str().map(str::to_owned))
            .collect();
        assert!(text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
    });
}

#[test]
fn stop_strings_end_the_text_beside_tools_but_never_a_call() {
    run(async {
        let more = json!({"tools": [add_tool()], "stop": ["END", "1"]});
        let (_, choice) = both(chat_request("one ENE two END three", more.clone())).await;
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!("one ENE two "), &json!("stop"))
        );
        let (_, choice) = both(chat_request(&format!("EN {}", add_call(1, 2)), more.clone())).await;
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!("EN"), &json!("tool_calls"))
        );
        assert_eq!(choice["message"]["tool_calls"].as_array().unwrap().len(), 1);
        let (_, choice) = both(chat_request("<think>\n1 END\n</think>\n\nE1", more)).await;
        assert_eq!(
            (&choice["message"]["reasoning_content"], &choice["message"]["content"]),
            (&json!("1 END"), &json!("E"))
        );
        let app = app();
        for more in [json!({"regex": "[a-z]+"}), json!({"tools": [add_tool()], "tool_choice": "required"})] {
            let mut request = chat_request("x", more);
            merge(&mut request, json!({"stop": "END"}));
            let answer = post(&app, PATH, &request).await;
            assert_eq!((answer.status.as_u16(), &answer.json()["error"]["param"]), (400, &json!("stop")));
        }
    });
}
