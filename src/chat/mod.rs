//! Conversations: messages and tools, the text that a model's chat template makes of them, and what its replies say.
//!
//! [`ChatTemplate`] renders a prompt; [`ChatFormat`] knows how the model writes calls and thoughts, as a grammar for the
//! reply and as a [`ReplyParser`] that reads it.
//!
//! Floor 4: it knows text, grammars before they are compiled, and which tokens are markers; never a mask.
//!
//! ```
//! use maskwright::chat::{ChatTemplate, Message, RenderOptions};
//!
//! let source = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}";
//! let template = ChatTemplate::new(source, None, None)?.with_specials(&["<|end|>".to_owned()]);
//! let rendered = template.render(&[Message::user("hi <|end|>")], &RenderOptions::default())?;
//! // What the user wrote can't be read as the special token: a guard character stands inside it.
//! let guard = rendered.guard.expect("something was guarded");
//! assert_eq!(rendered.text, format!("<|user|>hi <{guard}|end|><|end|>"));
//! assert_eq!(rendered.plain(), "<|user|>hi <|end|><|end|>");
//! # Ok::<(), maskwright::chat::TemplateError>(())
//! ```

mod call;
mod date;
mod error;
mod format;
mod guard;
mod message;
mod python;
mod reply;
mod sources;
mod tags;
mod template;
mod text;
mod tool;

pub use call::ToolCall;
#[cfg(feature = "server")]
pub(crate) use date::strftime;
pub use error::{TemplateError, ToolError};
pub use format::{ChatFormat, ReplyOptions};
pub use message::{Message, Role};
pub use reply::{Delta, ParsedReply, ReplyParser};
pub use sources::TemplateSources;
pub use template::{ChatTemplate, RenderOptions, Rendered};
pub use text::plain_prompt;
pub use tool::{Tool, ToolChoice};
