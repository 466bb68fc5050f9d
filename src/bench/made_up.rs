//! Engines that behave badly on purpose, for tests of the counting rules.

use std::time::Duration;

use cpu_time::ThreadTime;
use serde_json::Value;

use super::engine::{Engine, Session, Template};
use crate::token::TokenId;

/// Enough for the vocabulary of single bytes.
const WORDS: usize = 9;

/// What such an engine does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Behaviour {
    AcceptAll,
    RejectAll,
    /// Rejects the first text of a schema, accepts the others.
    RejectFirst,
    RefuseSchema,
    /// An error instead of the mask of that step.
    FailAt(usize),
    /// Allows these tokens only, everywhere.
    Only(Vec<TokenId>),
    /// Accepts all, and may end nowhere.
    NeverEnds,
    Panic,
    SlowCompile,
    SlowSteps,
    /// Never comes back from compiling.
    Hang,
    /// Accepts all; these tokens are forced at the start.
    Forces(Vec<TokenId>),
}

/// An engine with a behaviour.
pub(super) struct MadeUp(pub(super) Behaviour);

struct Compiled {
    behaviour: Behaviour,
    opened: usize,
}

struct Running {
    behaviour: Behaviour,
    mask: [u32; WORDS],
    step: usize,
}

/// Uses CPU time.
fn spin(time: Duration) {
    let start = ThreadTime::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

impl Engine for MadeUp {
    fn name(&self) -> &'static str {
        "made-up"
    }

    fn describe(&self) -> String {
        format!("{:?}", self.0)
    }

    fn compile(&self, _schema: Value) -> Result<Box<dyn Template>, String> {
        match self.0 {
            Behaviour::RefuseSchema => return Err("refused on purpose".into()),
            Behaviour::Panic => panic!("on purpose"),
            Behaviour::SlowCompile => spin(Duration::from_millis(20)),
            // Longer than any test waits; the process ends before.
            Behaviour::Hang => std::thread::sleep(Duration::from_secs(600)),
            _ => {}
        }
        Ok(Box::new(Compiled { behaviour: self.0.clone(), opened: 0 }))
    }
}

impl Template for Compiled {
    fn open(&mut self) -> Result<Box<dyn Session>, String> {
        self.opened += 1;
        let behaviour = match &self.behaviour {
            Behaviour::RejectFirst if self.opened == 1 => Behaviour::RejectAll,
            other => other.clone(),
        };
        Ok(Box::new(Running { behaviour, mask: [0; WORDS], step: 0 }))
    }
}

impl Session for Running {
    fn mask(&mut self) -> Result<(), String> {
        self.mask = match &self.behaviour {
            Behaviour::RejectAll => [0; WORDS],
            Behaviour::Only(ids) => {
                let mut mask = [0; WORDS];
                ids.iter().for_each(|id| mask[*id as usize / 32] |= 1 << (id % 32));
                mask
            }
            Behaviour::FailAt(step) if *step == self.step => return Err("failed on purpose".into()),
            _ => [u32::MAX; WORDS],
        };
        if self.behaviour == Behaviour::SlowSteps {
            spin(Duration::from_millis(20));
        }
        Ok(())
    }

    fn words(&self) -> &[u32] {
        &self.mask
    }

    fn commit(&mut self, _token: TokenId) -> Result<(), String> {
        self.step += 1;
        Ok(())
    }

    fn forced(&mut self) -> Result<Vec<TokenId>, String> {
        Ok(match &self.behaviour {
            Behaviour::Forces(ids) if self.step == 0 => ids.clone(),
            _ => Vec::new(),
        })
    }

    fn is_accepting(&mut self) -> Result<bool, String> {
        Ok(self.behaviour != Behaviour::NeverEnds)
    }
}
