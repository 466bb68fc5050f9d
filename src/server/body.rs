//! Reading a request's body: size, JSON, and the path of whatever in it isn't as its type has it.

use axum::{body::Body, extract::Request, http::StatusCode};
use serde::de::DeserializeOwned;

use super::fault::ApiError;

/// Reads a body of at most `limit` bytes.
pub(super) async fn read<T: DeserializeOwned>(request: Request<Body>, limit: usize) -> Result<T, ApiError> {
    let bytes = axum::body::to_bytes(request.into_body(), limit).await.map_err(|error| {
        let source = std::error::Error::source(&error);
        if source.is_some_and(|source| source.is::<http_body_util::LengthLimitError>()) {
            let message = format!("the body is larger than the limit of {limit} bytes");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        } else {
            ApiError::new(StatusCode::BAD_REQUEST, "the body broke off")
        }
    })?;
    parse(&bytes)
}

/// Reads JSON text.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if inner.is_syntax() || inner.is_eof() || inner.is_io() {
            return ApiError::new(StatusCode::BAD_REQUEST, format!("the body isn't JSON: {inner}"));
        }
        explain(&path, &inner.to_string())
    })?;
    deserializer
        .end()
        .map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, format!("the body isn't JSON: {error}")))?;
    Ok(value)
}

/// A value that doesn't fit its type: serde's message, with the place as the protocols write it.
fn explain(path: &str, message: &str) -> ApiError {
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    let inside = |field: &str| match path {
        "." | "?" => field.to_owned(),
        path if path.ends_with(&format!(".{field}")) || path == field => path.to_owned(),
        path => format!("{path}.{field}"),
    };
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field")
        && let Some(field) = quoted.next()
    {
        let nearest = nearest(field, quoted);
        let hint = nearest.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
        let code = "unknown_parameter";
        return ApiError::field(inside(field), format!("there is no such field{hint}")).with_code(code);
    }
    if message.starts_with("missing field")
        && let Some(field) = quoted.next()
    {
        return ApiError::field(inside(field), "is required").with_code("missing_required_parameter");
    }
    if message.starts_with("isn't offered") {
        return ApiError::field(path, message).with_code("unsupported_parameter");
    }
    if matches!(path, "." | "?") {
        return ApiError::new(StatusCode::BAD_REQUEST, message).with_code("invalid_type");
    }
    ApiError::field(path, message).with_code("invalid_type")
}

/// The known name that `field` is most like, if any is like it.
fn nearest<'n>(field: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    known
        .map(|name| (strsim::damerau_levenshtein(field, name), name))
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::openai::chat::ChatRequest;

    fn refusal(text: &str) -> ApiError {
        parse::<ChatRequest>(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_path() {
        for (text, param, message) in [
            (
                r#"{"model": "m", "messages": [], "respose_format": {}}"#,
                "respose_format",
                "did you mean \"response_format\"?",
            ),
            (r#"{"model": "m"}"#, "messages", "is required"),
            (r#"{"model": "m", "messages": [{"role": 1}]}"#, "messages[0].role", "expected a string"),
            (r#"{"model": "m", "messages": [], "audio": {}}"#, "audio", "isn't offered here"),
            (
                r#"{"model": "m", "messages": [], "response_format": {"type": "json_schema"}}"#,
                "response_format.json_schema",
                "is required",
            ),
            (r#"{"model": "m", "messages": [], "temperature": "hot"}"#, "temperature", "expected f32"),
            (r#"{"model": "m", "messages": [], "stop": 3}"#, "stop", "a text or a list of texts"),
        ] {
            let refusal = refusal(text);
            assert_eq!(refusal.param.as_deref(), Some(param), "{text}: {}", refusal.message);
            assert!(refusal.message.contains(message), "{}", refusal.message);
        }
        assert_eq!(refusal("{").param, None);
        assert!(refusal(r#"{"model": "m", "messages": []} x"#).message.contains("isn't JSON"));
        assert!(refusal("[]").message.contains("invalid length 0") || refusal("[]").param.is_none());
    }
}
