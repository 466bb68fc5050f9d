//! Responses that later ones may go on from: in memory, the oldest dropped first.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::chat::Message;

/// A response and what led to it.
#[derive(Debug, Clone)]
pub(in crate::server) struct Stored {
    /// The conversation up to and with the response, without instructions.
    pub(super) messages: Vec<Message>,
    /// The request's input, as items.
    pub(super) input: Value,
    /// The response.
    pub(super) response: Value,
}

/// Stored responses, by id.
#[derive(Debug)]
pub(in crate::server) struct Store {
    stored: HashMap<String, (Stored, usize)>,
    order: VecDeque<String>,
    most: usize,
    most_bytes: usize,
    bytes: usize,
}

impl Store {
    /// Room for so many, and so many bytes of JSON.
    pub(in crate::server) fn new(most: usize, most_bytes: usize) -> Self {
        Self { stored: HashMap::new(), order: VecDeque::new(), most, most_bytes, bytes: 0 }
    }

    pub(super) fn get(&self, id: &str) -> Option<&Stored> {
        self.stored.get(id).map(|(stored, _)| stored)
    }

    pub(super) fn insert(&mut self, id: String, stored: Stored) {
        let text = |message: &Message| {
            let calls = message.tool_calls.iter().map(|call| call.arguments.len() + 64).sum::<usize>();
            message.content.len() + message.reasoning.as_ref().map_or(0, String::len) + calls + 128
        };
        let bytes = stored.messages.iter().map(text).sum::<usize>()
            + stored.input.to_string().len()
            + stored.response.to_string().len();
        if bytes > self.most_bytes || self.most == 0 {
            return;
        }
        while self.bytes + bytes > self.most_bytes || self.order.len() >= self.most {
            let Some(oldest) = self.order.pop_front() else { break };
            self.forget(&oldest);
        }
        self.bytes += bytes;
        self.order.push_back(id.clone());
        self.stored.insert(id, (stored, bytes));
    }

    /// Whether there was one.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        self.order.retain(|other| other != id);
        self.forget(id)
    }

    fn forget(&mut self, id: &str) -> bool {
        let Some((_, bytes)) = self.stored.remove(id) else { return false };
        self.bytes -= bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(bytes: usize) -> Stored {
        Stored { messages: vec![Message::user("x".repeat(bytes))], input: Value::Null, response: Value::Null }
    }

    #[test]
    fn the_oldest_make_room() {
        let mut store = Store::new(2, 10_000);
        for id in ["a", "b", "c"] {
            store.insert(id.into(), stored(10));
        }
        assert!(store.get("a").is_none() && store.get("b").is_some() && store.get("c").is_some());
        store.insert("d".into(), stored(9_800));
        assert!(store.get("b").is_none() && store.get("c").is_none() && store.get("d").is_some());
        store.insert("e".into(), stored(20_000));
        assert!(store.get("e").is_none() && store.get("d").is_some(), "one too large is not kept");
        assert!(store.remove("d") && !store.remove("d"));
        assert_eq!((store.bytes, store.order.len()), (0, 0));
    }
}
