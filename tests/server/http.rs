//! What isn't any protocol's: paths, methods, sizes, keys, origins, small endpoints.

use super::*;

#[test]
fn a_wrong_path_or_method_is_told_in_the_routes_own_words() {
    run(async {
        let app = app();
        for (path, pointer, kind) in [
            ("/v1/chat/nothing", "/error/type", "invalid_request_error"),
            ("/nothing", "/error/type", "invalid_request_error"),
            ("/v1/messages/nothing", "/error/type", "not_found_error"),
        ] {
            let answer = get(&app, path).await;
            assert_eq!(
                (answer.status.as_u16(), answer.json().pointer(pointer)),
                (404, Some(&json!(kind))),
                "{path}"
            );
        }
        assert_eq!(
            get(&app, "/api/nothing").await.json(),
            json!({"error": "there is no \"/api/nothing\" here"})
        );
        for (path, allow) in [
            ("/v1/chat/completions", "POST"),
            ("/v1/completions", "POST"),
            ("/v1/messages", "POST"),
            ("/v1/messages/count_tokens", "POST"),
            ("/api/chat", "POST"),
            ("/tokenize", "POST"),
        ] {
            let answer = get(&app, path).await;
            assert_eq!(
                (answer.status.as_u16(), answer.headers["allow"].to_str().unwrap()),
                (405, allow),
                "{path}"
            );
            assert!(answer.json().get("error").is_some());
        }
        let answer = post(&app, "/v1/models", &json!({})).await;
        assert_eq!((answer.status.as_u16(), answer.headers["allow"].to_str().unwrap()), (405, "GET,HEAD"));
        let answer = post(&app, "/v1/responses/x", &json!({})).await;
        assert_eq!(answer.status, 405);
        assert!(answer.headers["allow"].to_str().unwrap().contains("DELETE"));
    });
}

#[test]
fn a_body_too_large_is_413() {
    run(async {
        let app = app_with(Access::default(), ServerOptions { body_bytes: 1000, ..ServerOptions::default() });
        for (path, pointer) in [
            ("/v1/chat/completions", "/error/message"),
            ("/v1/messages", "/error/message"),
            ("/api/chat", "/error"),
        ] {
            let answer = post_text(&app, path, format!("{{\"model\": \"{}\"}}", "x".repeat(2000))).await;
            assert_eq!(answer.status, 413, "{path}");
            let body = answer.json();
            assert!(body.pointer(pointer).unwrap().as_str().unwrap().contains("limit of 1000 bytes"));
            assert!(path != "/v1/messages" || body["error"]["type"] == "request_too_large");
        }
    });
}

#[test]
fn a_key_is_needed_everywhere_but_at_health() {
    run(async {
        let app =
            app_with(Access { api_key: Some("k".into()), ..Access::default() }, ServerOptions::default());
        assert_eq!(get(&app, "/health").await.status, 200);
        for (path, kind) in [
            ("/metrics", "authentication_error"),
            ("/v1/models", "authentication_error"),
            ("/v1/messages", "authentication_error"),
        ] {
            let answer = get(&app, path).await;
            assert_eq!(
                (answer.status.as_u16(), &answer.json()["error"]["type"]),
                (401, &json!(kind)),
                "{path}"
            );
            assert!(!answer.text.contains("\"k\""));
        }
        assert_eq!(get(&app, "/v1/models").await.json()["error"]["code"], "invalid_api_key");
        let with = |name: &str, value: &str| {
            Request::get("/v1/models").header(name, value).body(Body::empty()).unwrap()
        };
        assert_eq!(send(&app, with("authorization", "Bearer k")).await.status, 200);
        assert_eq!(send(&app, with("x-api-key", "k")).await.status, 200);
        assert_eq!(send(&app, with("x-api-key", "K")).await.status, 401);
    });
}

#[test]
fn pages_of_others_and_rebound_names_are_kept_out() {
    run(async {
        let access = Access {
            hosts: Some(Access::loopback_hosts()),
            origins: vec!["http://localhost:3000".into()],
            ..Access::default()
        };
        let app = app_with(access, ServerOptions::default());
        let request = |method: &str, headers: &[(&str, &str)]| {
            let builder = Request::builder().method(method).uri("/v1/models");
            let builder =
                headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
            builder.body(Body::empty()).unwrap()
        };
        let local = ("host", "localhost:8080");
        assert_eq!(send(&app, request("GET", &[local])).await.status, 200);
        assert_eq!(send(&app, request("GET", &[("host", "evil.example")])).await.status, 403);
        for origin in ["null", "https://evil.example"] {
            let answer = send(&app, request("GET", &[local, ("origin", origin)])).await;
            assert_eq!(answer.status, 403);
            assert!(!answer.headers.contains_key("access-control-allow-origin"), "no CORS for {origin}");
        }
        let origin = ("origin", "http://localhost:3000");
        let answer = send(&app, request("GET", &[local, origin])).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.headers["access-control-allow-origin"]),
            (200, &"http://localhost:3000".parse().unwrap())
        );
        let preflight =
            send(&app, request("OPTIONS", &[local, origin, ("access-control-request-method", "POST")])).await;
        assert_eq!(preflight.status, 204);
        assert!(preflight.headers["access-control-allow-methods"].to_str().unwrap().contains("POST"));
    });
}

#[test]
fn one_list_of_models_serves_both_clients() {
    run(async {
        let app = app();
        let list = get(&app, "/v1/models").await.json();
        assert_eq!(
            (&list["object"], &list["has_more"], &list["first_id"]),
            (&json!("list"), &json!(false), &json!("talker"))
        );
        let one = get(&app, "/v1/models/plain").await.json();
        assert_eq!(one, list["data"][1]);
        assert_eq!(
            (&one["object"], &one["type"], &one["id"]),
            (&json!("model"), &json!("model"), &json!("plain"))
        );
        assert_eq!(get(&app, "/v1/models/../../etc/passwd").await.status, 404);
        assert_eq!(get(&app, "/v1/models/none").await.json()["error"]["code"], "model_not_found");
    });
}

#[test]
fn tokens_are_shown_and_spelled() {
    run(async {
        let app = app();
        let answer = post(&app, "/tokenize", &json!({"content": "hi"})).await.json();
        assert_eq!((&answer["tokens"], &answer["count"]), (&json!([104, 105]), &json!(2)));
        let answer = post(&app, "/tokenize", &json!({"model": "plain", "prompt": "hi"})).await.json();
        assert_eq!(answer["max_model_len"], 8192);
        let answer = post(&app, "/detokenize", &json!({"tokens": [104, 105]})).await.json();
        assert_eq!(answer["content"], "hi");
        assert_eq!(
            post(&app, "/detokenize", &json!({"tokens": [999_999]})).await.json()["error"]["param"],
            "tokens"
        );
    });
}

#[test]
fn metrics_count_what_happened() {
    run(async {
        let app = app();
        for said in ["a", "b"] {
            post(&app, "/v1/chat/completions", &chat_request(said, json!({"regex": "[a-z] forced"}))).await;
        }
        let text = get(&app, "/metrics").await.text;
        let value = |name: &str| -> f64 {
            let line = text
                .lines()
                .find(|line| line.starts_with(&format!("maskwright_{name}{{model=\"talker\"")))
                .unwrap();
            line.rsplit_once(' ').unwrap().1.parse().unwrap()
        };
        assert_eq!((value("requests_total"), value("finished_total"), value("running")), (2.0, 2.0, 0.0));
        assert!(value("forced_tokens_total") >= 14.0);
        assert_eq!(value("first_token_seconds_count"), 2.0);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(
                line.starts_with("maskwright_") && line.rsplit_once(' ').unwrap().1.parse::<f64>().is_ok(),
                "{line}"
            );
        }
    });
}
