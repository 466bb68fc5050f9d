//! `GET /v1/models`: one reply that OpenAI's client and Anthropic's read alike.

use axum::{
    Json,
    extract::{Path, State as AxumState},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::server::{
    fault::Protocol,
    state::{Served, State},
    time::rfc3339,
};

pub(in crate::server) async fn models(AxumState(state): AxumState<State>) -> Response {
    let data: Vec<Value> = state.models().iter().map(|served| shown(served)).collect();
    let id = |served: Option<&std::sync::Arc<Served>>| served.map(|served| served.name().to_owned());
    Json(json!({
        "object": "list",
        "data": data,
        "has_more": false,
        "first_id": id(state.models().first()),
        "last_id": id(state.models().last()),
    }))
    .into_response()
}

pub(in crate::server) async fn model(
    AxumState(state): AxumState<State>,
    Path(name): Path<String>,
) -> Response {
    match state.model(&name) {
        Ok(served) => Json(shown(&served)).into_response(),
        Err(refusal) => refusal.response(Protocol::OpenAi),
    }
}

fn shown(served: &Served) -> Value {
    json!({
        "id": served.name(),
        "object": "model",
        "created": served.created(),
        "owned_by": "maskwright",
        "type": "model",
        "display_name": served.name(),
        "created_at": rfc3339(served.created()),
    })
}
