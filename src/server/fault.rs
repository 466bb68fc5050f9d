//! What a refusal looks like from outside: the one table from errors to statuses, and the three envelopes.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use serde_json::{Value, json};

use crate::{
    backend::BackendError, chat::ToolError, constraint::ConstraintError, engine::CompileError, fault::Fault,
    generate::GenerateError, model::ModelError, sample::SampleError,
};

/// Whose words an answer is given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// OpenAI's, and that of paths which are nobody's.
    OpenAi,
    /// Anthropic's.
    Anthropic,
    /// Ollama's.
    Ollama,
}

impl Protocol {
    /// The one a path belongs to.
    pub(crate) fn of(path: &str) -> Self {
        if path == "/v1/messages" || path.starts_with("/v1/messages/") {
            Self::Anthropic
        } else if path == "/api" || path.starts_with("/api/") {
            Self::Ollama
        } else {
            Self::OpenAi
        }
    }
}

/// A request that is refused, or that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// The field of the request it is about.
    pub(crate) param: Option<String>,
    /// OpenAI's word for it, where there is one.
    pub(crate) code: Option<&'static str>,
    /// Seconds after which asking again may help.
    pub(crate) retry_after: Option<u64>,
}

/// Where a request's parts came from, so that a refusal can name the field.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// The field that holds the constraint.
    pub(crate) constraint: Option<String>,
    /// Names of the tools, in the order of the request.
    pub(crate) tools: Vec<String>,
    /// Where a tool keeps the schema of its arguments, and its name.
    pub(crate) tool_schema: &'static str,
    pub(crate) tool_name: &'static str,
    /// What the request calls its conversation.
    pub(crate) messages: &'static str,
    /// What it calls stop strings.
    pub(crate) stop: &'static str,
}

impl Places {
    fn tool(&self, name: &str, field: &str) -> Option<String> {
        let index = self.tools.iter().position(|tool| tool == name)?;
        Some(format!("tools[{index}].{field}"))
    }

    /// The tool that a part of a composed grammar belongs to.
    fn part(&self, part: &str) -> Option<String> {
        let index = self.tools.iter().position(|tool| part.contains(&format!("\"{tool}\"")))?;
        Some(format!("tools[{index}].{}", self.tool_schema))
    }
}

impl ApiError {
    /// A refusal of that status.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None, retry_after: None }
    }

    /// 400, about a field.
    pub(crate) fn field(param: impl Into<String>, message: impl std::fmt::Display) -> Self {
        let param = param.into();
        Self {
            param: Some(param.clone()),
            ..Self::new(StatusCode::BAD_REQUEST, format!("{param}: {message}"))
        }
    }

    /// The same with a code.
    pub(crate) fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// No model of that name.
    pub(crate) fn no_model(name: &str) -> Self {
        Self {
            param: Some("model".into()),
            code: Some("model_not_found"),
            ..Self::new(StatusCode::NOT_FOUND, format!("there is no model {name:?} here"))
        }
    }

    /// An error of the backend, as the caller of a request with these places needs it.
    pub(crate) fn from_backend(error: &BackendError, places: &Places) -> Self {
        let message = error.to_string();
        let status = match error.fault() {
            Fault::Client | Fault::Limit | Fault::Unsupported => StatusCode::BAD_REQUEST,
            Fault::NotFound => StatusCode::NOT_FOUND,
            Fault::Busy => StatusCode::TOO_MANY_REQUESTS,
            // Nobody is there to read it.
            Fault::Cancelled => StatusCode::REQUEST_TIMEOUT,
            Fault::Server => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut refusal = Self::new(status, message);
        match error {
            BackendError::Busy { retry_after, .. } => {
                refusal.retry_after = Some(retry_after.as_secs().max(1));
                refusal.code = Some("rate_limit_exceeded");
            }
            BackendError::Deadline { what, .. } if !what.contains("compil") => {
                refusal.status = StatusCode::GATEWAY_TIMEOUT;
                refusal.code = Some("timeout");
            }
            BackendError::Deadline { .. } => {
                refusal.param.clone_from(&places.constraint);
                refusal.code = Some("compile_timeout");
            }
            BackendError::ShuttingDown => {
                refusal.status = StatusCode::SERVICE_UNAVAILABLE;
                refusal.retry_after = Some(5);
            }
            BackendError::Constraint(error) => refusal.blame_constraint(error, places),
            BackendError::Compile(CompileError::Constraint(error)) => refusal.blame_constraint(error, places),
            BackendError::Tool(error) => refusal.blame_tool(error, places),
            BackendError::PromptTooLarge { .. } => {
                refusal.param = Some(places.messages.into());
                refusal.code = Some("context_length_exceeded");
            }
            BackendError::Template(_) => refusal.param = Some(places.messages.into()),
            BackendError::Sample(error) => refusal.param = sampling_field(error),
            BackendError::Model(ModelError::ContextFull { .. })
            | BackendError::Generate(GenerateError::Model(ModelError::ContextFull { .. })) => {
                refusal.param = Some(places.messages.into());
                refusal.code = Some("context_length_exceeded");
            }
            BackendError::Generate(
                GenerateError::StopUnderConstraint
                | GenerateError::EmptyStopString
                | GenerateError::TooLarge { .. },
            ) => refusal.param = Some(places.stop.into()),
            BackendError::Generate(GenerateError::EmptyPrompt) => {
                refusal.param = Some(places.messages.into());
            }
            _ => {}
        }
        if error.fault() == Fault::Server {
            // What failed on our side may hold what others wrote, so that only a log which asks for it has it.
            tracing::error!("a request failed on the server's side");
            tracing::debug!(error = %error, "why");
            refusal.message = "the request failed on the server's side".into();
        } else if let Some(param) = &refusal.param
            && !refusal.message.starts_with(param.as_str())
        {
            refusal.message = format!("{param}: {}", refusal.message);
        }
        refusal
    }

    fn blame_constraint(&mut self, error: &ConstraintError, places: &Places) {
        if let ConstraintError::Within { part, .. } = error
            && let Some(place) = places.part(part)
        {
            self.param = Some(place);
        } else {
            self.param.clone_from(&places.constraint);
        }
        self.code = Some(innermost_code(error));
    }

    fn blame_tool(&mut self, error: &ToolError, places: &Places) {
        let (param, code) = match error {
            ToolError::Arguments { tool, .. } => {
                (places.tool(tool, places.tool_schema), "invalid_json_schema")
            }
            ToolError::Name { name } | ToolError::Duplicate { name } => {
                (places.tool(name, places.tool_name), "invalid_tool")
            }
            ToolError::NoTools | ToolError::Unknown { .. } => {
                (Some("tool_choice".into()), "invalid_tool_choice")
            }
            ToolError::NoTemplate => (Some("tools".into()), "unsupported_input"),
            ToolError::Constraint(error) => {
                self.blame_constraint(error, places);
                return;
            }
            _ => (Some("tools".into()), "invalid_tool"),
        };
        self.param = param.or_else(|| Some("tools".into()));
        self.code = Some(code);
    }

    /// The body, in the words of `protocol`.
    pub(crate) fn body(&self, protocol: Protocol) -> Value {
        let Self { status, message, param, code, .. } = self;
        match protocol {
            Protocol::OpenAi => {
                json!({"error": {"message": message, "type": openai_type(*status), "param": param, "code": code}})
            }
            Protocol::Anthropic => {
                json!({"type": "error", "error": {"type": anthropic_type(*status), "message": message}})
            }
            Protocol::Ollama => json!({"error": message}),
        }
    }

    /// The answer, in the words of `protocol`.
    pub(crate) fn response(&self, protocol: Protocol) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body(protocol).to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The code of what is wrong inside a constraint.
fn innermost_code(error: &ConstraintError) -> &'static str {
    match error {
        ConstraintError::Within { error, .. } => innermost_code(error),
        ConstraintError::SchemaSyntax { .. } | ConstraintError::Schema { .. } => "invalid_json_schema",
        ConstraintError::StructuralTag { .. } => "invalid_structural_tag",
        ConstraintError::TooLarge { .. } => "constraint_too_large",
        _ => "invalid_grammar",
    }
}

/// The field that a sampling error names, in the words that all APIs share.
fn sampling_field(error: &SampleError) -> Option<String> {
    match error {
        SampleError::OutOfRange { field, .. } => Some(field.to_string()),
        SampleError::TooManyAlternatives { .. } => Some("top_logprobs".into()),
        error => error.to_string().starts_with("logit_bias").then(|| "logit_bias".into()),
    }
}

fn openai_type(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

fn anthropic_type(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            constraint: Some("response_format.json_schema.schema".into()),
            tools: vec!["add".into(), "sub".into()],
            tool_schema: "function.parameters",
            tool_name: "function.name",
            messages: "messages",
            stop: "stop",
        }
    }

    #[test]
    fn a_refusal_names_the_field_and_the_place_in_it() {
        let schema = ConstraintError::Schema { pointer: "/properties/a".into(), reason: "is wrong".into() };
        let cases: [(BackendError, u16, &str, &str); 6] = [
            (schema.clone().into(), 400, "response_format.json_schema.schema", "at /properties/a: is wrong"),
            (
                ToolError::from(schema.within("tool \"sub\"")).into(),
                400,
                "tools[1].function.parameters",
                "at /properties/a: is wrong",
            ),
            (ToolError::Unknown { name: "mul".into() }.into(), 400, "tool_choice", "\"mul\""),
            (ToolError::Duplicate { name: "add".into() }.into(), 400, "tools[0].function.name", "unique"),
            (ModelError::ContextFull { given: 9, limit: 8 }.into(), 400, "messages", "context of 8"),
            (GenerateError::EmptyStopString.into(), 400, "stop", "empty"),
        ];
        for (error, status, param, message) in cases {
            let refusal = ApiError::from_backend(&error, &places());
            assert_eq!(refusal.status.as_u16(), status, "{error}");
            assert_eq!(refusal.param.as_deref(), Some(param), "{error}");
            assert!(
                refusal.message.starts_with(param) && refusal.message.contains(message),
                "{}",
                refusal.message
            );
        }
    }

    #[test]
    fn what_fails_on_our_side_is_not_told() {
        let error = BackendError::from(ModelError::Device("secret".into()));
        let refusal = ApiError::from_backend(&error, &places());
        assert_eq!(refusal.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!refusal.message.contains("secret"));
    }

    #[test]
    fn each_protocol_has_its_envelope() {
        let refusal = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too large").with_code("x");
        assert_eq!(
            refusal.body(Protocol::OpenAi),
            json!({"error": {"message": "too large", "type": "invalid_request_error", "param": null, "code": "x"}})
        );
        assert_eq!(
            refusal.body(Protocol::Anthropic),
            json!({"type": "error", "error": {"type": "request_too_large", "message": "too large"}})
        );
        assert_eq!(refusal.body(Protocol::Ollama), json!({"error": "too large"}));
        for (path, protocol) in [
            ("/v1/messages", Protocol::Anthropic),
            ("/v1/messages/count_tokens", Protocol::Anthropic),
            ("/v1/messagesx", Protocol::OpenAi),
            ("/api/chat", Protocol::Ollama),
            ("/apix", Protocol::OpenAi),
            ("/v1/chat/completions", Protocol::OpenAi),
        ] {
            assert_eq!(Protocol::of(path), protocol, "{path}");
        }
    }
}
