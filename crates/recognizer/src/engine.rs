//! Which engine does the work.
//!
//! An [`Engine`] is what somebody asks for, a [`Choice`] what comes of it for one grammar. Nobody else tells
//! engines apart: what one of them has and others lack is asked of the engine itself
//! ([`Recognizer::shared_states`]).

use std::sync::Arc;

use anygram_grammar::cfg::Cfg;

use crate::earley::Earley;
use crate::probe::Probe;
use crate::reference::Reference;
use crate::valiant::Valiant;
use crate::{Recognizer, RecognizerError, RecognizerLimits};

/// Which recognizer does the work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Engine {
    /// The one that suits the grammar.
    #[default]
    Auto,
    /// The definition; slow.
    Reference,
    /// Earley over shared states; see [`crate::earley`].
    Earley,
    /// The incremental Valiant recognizer; see [`crate::valiant`].
    Valiant,
}

impl Engine {
    /// The engines that can be asked for by name, `auto` first.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Reference, Self::Earley, Self::Valiant];

    /// The name by which the engine is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Reference => "reference",
            Self::Earley => "earley",
            Self::Valiant => "valiant",
        }
    }
}

/// The engine of one grammar, and why it is that.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Choice {
    /// Never [`Engine::Auto`].
    engine: Engine,
    /// What it was chosen by, unless it was asked for by name.
    probe: Option<Probe>,
}

impl Choice {
    /// What is asked for, or what suits a reduced grammar: Earley, if automata give some of its rules. Cost
    /// otherwise: that of [`Probe::new`].
    pub fn new(asked: Engine, cfg: &Cfg) -> Self {
        if asked != Engine::Auto {
            return Self { engine: asked, probe: None };
        }
        if !cfg.automata.is_empty() {
            return Self { engine: Engine::Earley, probe: None };
        }
        let probe = Probe::new(cfg);
        let engine = if probe.is_ambiguous() { Engine::Valiant } else { Engine::Earley };
        Self { engine, probe: Some(probe) }
    }

    /// The engine; never [`Engine::Auto`].
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// What it was chosen by, if it was chosen.
    pub fn probe(&self) -> Option<&Probe> {
        self.probe.as_ref()
    }

    /// The choice for texts whose states turn out heavy ([`Earley::is_heavy`]); `None` if the engine was
    /// asked for by name, or none suits such texts better.
    pub fn for_heavy(&self) -> Option<Self> {
        let can_switch = self.probe.is_some() && self.engine == Engine::Earley;
        can_switch.then_some(Self { engine: Engine::Valiant, probe: None })
    }

    /// A fresh recognizer of a grammar.
    pub fn recognizer(
        &self,
        cfg: Arc<Cfg>,
        limits: RecognizerLimits,
    ) -> Result<Box<dyn Recognizer>, RecognizerError> {
        match self.engine {
            Engine::Reference => Ok(Box::new(Reference::new(cfg, limits)?)),
            Engine::Valiant => Ok(Box::new(Valiant::new(cfg, limits)?)),
            Engine::Auto | Engine::Earley => Ok(Box::new(Earley::new(cfg, limits)?)),
        }
    }

    /// A new recognizer in which equal states are one state, however they were reached, and merged states are
    /// small. Searches need this, because they reach the same state on many paths. It is the reference if
    /// that was chosen, else one that answers the same as the one chosen.
    pub fn interning_recognizer(
        &self,
        cfg: Arc<Cfg>,
        limits: RecognizerLimits,
    ) -> Result<Box<dyn Recognizer>, RecognizerError> {
        match self.engine {
            Engine::Reference => self.recognizer(cfg, limits),
            Engine::Valiant if !cfg.automata.is_empty() => self.recognizer(cfg, limits),
            Engine::Auto | Engine::Valiant | Engine::Earley => {
                Ok(Box::new(Earley::new(cfg, limits)?.sharing_origins()))
            }
        }
    }
}
