//! OpenAI's API.
//!
//! | file | part |
//! |---|---|
//! | `chat.rs` | `/v1/chat/completions` |
//! | `completions.rs` | `/v1/completions` |
//! | `responses.rs`, `items.rs`, `output.rs`, `store.rs` | `/v1/responses`, its input and output, responses that later ones go on from |
//! | `messages.rs` | messages as they are sent |
//! | `tools.rs`, `custom.rs` | tools and the choice among them; tools whose input is a text |
//! | `logprobs.rs` | tokens and their log-probabilities |
//! | `models.rs` | `/v1/models`, for Anthropic's client, too |

mod chat;
mod completions;
mod custom;
mod items;
mod logprobs;
mod messages;
mod models;
mod output;
mod responses;
mod store;
mod tools;

pub(super) use chat::chat;
pub(super) use chat::effort;
pub(super) use completions::completions;
pub(super) use logprobs::entry as logprobs_entry;
pub(super) use messages::check_arguments;
pub(super) use models::{model, models};
pub(super) use responses::{cancel, delete, input_items, responses, retrieve};
pub(super) use store::Store;
