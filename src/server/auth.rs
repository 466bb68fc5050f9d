//! Who may ask: the API key, and the checks of `Host` and `Origin` that keep web pages of others out.
//!
//! A page that a user visits can make the browser send requests to this machine, and with a name that it rebinds to
//! 127.0.0.1 even read the answers. So a server bound to loopback takes no `Host` but names of this machine, and no
//! request with an `Origin` that isn't configured, `null` included.

use axum::{
    body::Body,
    extract::{Request, State as AxumState},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::Response,
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{
    fault::{ApiError, Protocol},
    state::State,
};

/// Who may ask.
#[derive(Clone, Default)]
pub struct Access {
    /// The key that callers must show; none is asked for without one.
    pub api_key: Option<String>,
    /// Names by which this server may be called, without port; `None` takes any (a server that is bound to more than
    /// this machine is called by names it can't know).
    pub hosts: Option<Vec<String>>,
    /// Origins whose pages may call it, such as `http://localhost:3000`; CORS is answered for these alone.
    pub origins: Vec<String>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .finish()
    }
}

impl Access {
    /// Names of this machine, for a server that is bound to it alone.
    #[must_use]
    pub fn loopback_hosts() -> Vec<String> {
        ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec()
    }

    fn check(&self, path: &str, headers: &HeaderMap) -> Result<(), ApiError> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        if let Some(hosts) = &self.hosts {
            let host = text(header::HOST).unwrap_or_default();
            if !hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(without_port(host))) {
                let message =
                    format!("this server isn't called {:?}; allow it with --allow-host", without_port(host));
                return Err(ApiError::new(StatusCode::FORBIDDEN, message).with_code("host_not_allowed"));
            }
        }
        if let Some(origin) = text(header::ORIGIN)
            && !self.origins.iter().any(|allowed| allowed == origin)
        {
            let message =
                format!("pages of {origin:?} may not call this server; allow them with --allow-origin");
            return Err(ApiError::new(StatusCode::FORBIDDEN, message).with_code("origin_not_allowed"));
        }
        let Some(key) = &self.api_key else { return Ok(()) };
        if path == "/health" {
            return Ok(());
        }
        let bearer = text(header::AUTHORIZATION)
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, key)| key.trim());
        let given = bearer.or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok()));
        match given {
            Some(given) if same(given, key) => Ok(()),
            Some(_) => {
                Err(ApiError::new(StatusCode::UNAUTHORIZED, "the API key is wrong")
                    .with_code("invalid_api_key"))
            }
            None => {
                let message = "an API key is needed: `Authorization: Bearer …` or `x-api-key`";
                Err(ApiError::new(StatusCode::UNAUTHORIZED, message).with_code("invalid_api_key"))
            }
        }
    }
}

/// Compares in a time that depends on neither text: digests, so that lengths don't show either.
fn same(a: &str, b: &str) -> bool {
    Sha256::digest(a).as_slice().ct_eq(Sha256::digest(b).as_slice()).into()
}

/// A host without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

/// Lets through what may pass, and answers CORS for origins that may.
pub(super) async fn guard(
    AxumState(state): AxumState<State>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let protocol = Protocol::of(&path);
    let access = state.access();
    let origin = request.headers().get(header::ORIGIN).cloned();
    let preflight = request.method() == Method::OPTIONS && origin.is_some();
    // A preflight carries no key; what it is told is no secret.
    let checked = match access.check(&path, request.headers()) {
        Err(refusal) if preflight && refusal.status == StatusCode::UNAUTHORIZED => Ok(()),
        checked => checked,
    };
    let mut response = match checked {
        Ok(()) if preflight => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            let headers = response.headers_mut();
            headers
                .insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
            headers
                .insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, authorization"));
            response
        }
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.response(protocol),
    };
    if let Some(origin) = origin.filter(|_| response.status() != StatusCode::FORBIDDEN) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        response.headers_mut().append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn a_local_server_answers_to_names_of_this_machine_only() {
        let access = Access { hosts: Some(Access::loopback_hosts()), ..Access::default() };
        for (host, allowed) in [
            ("localhost:8080", true),
            ("LOCALHOST", true),
            ("127.0.0.1:1", true),
            ("[::1]:8080", true),
            ("[::1]", true),
            ("evil.example:8080", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            let checked = access.check("/v1/models", &headers(&[("host", host)]));
            assert_eq!(checked.is_ok(), allowed, "{host}");
        }
    }

    #[test]
    fn pages_of_others_are_kept_out() {
        let access = Access { origins: vec!["http://localhost:3000".into()], ..Access::default() };
        for (origin, allowed) in [
            ("http://localhost:3000", true),
            ("http://localhost:3001", false),
            ("null", false),
            ("https://evil.example", false),
        ] {
            let checked = access.check("/v1/models", &headers(&[("origin", origin)]));
            assert_eq!(checked.is_ok(), allowed, "{origin}");
        }
        assert!(access.check("/v1/models", &headers(&[])).is_ok());
    }

    #[test]
    fn a_key_is_asked_for_everywhere_but_at_health() {
        let access = Access { api_key: Some("k".into()), ..Access::default() };
        let status = |path: &str, list: &[(&'static str, &'static str)]| {
            access.check(path, &headers(list)).err().map(|refusal| refusal.status.as_u16())
        };
        assert_eq!(status("/health", &[]), None);
        assert_eq!(status("/metrics", &[]), Some(401));
        assert_eq!(status("/v1/models", &[("authorization", "Bearer k")]), None);
        assert_eq!(status("/v1/models", &[("authorization", "bearer k")]), None);
        assert_eq!(status("/v1/models", &[("x-api-key", "k")]), None);
        assert_eq!(status("/v1/models", &[("x-api-key", "kk")]), Some(401));
        assert_eq!(status("/v1/models", &[("authorization", "Basic k")]), Some(401));
        assert!(!format!("{access:?}").contains("\"k\""));
    }
}
