//! How many masks a device would leave in doubt on real texts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write;
use std::path::PathBuf;

use anygram::{Language, TokenId, Vocabulary};
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::sequences::{Rows, Sequences};
use anygram_left_to_right::tokens::MASK_BITS;
use anygram_lexer::transducer::Place;
use anyhow::{Context, Result};

use crate::input::{GrammarArgs, VocabArgs};
use crate::texts::{texts, tokens};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    grammar: GrammarArgs,
    #[command(flatten)]
    vocab: VocabArgs,
    /// Only the first N texts of each file.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Only the first N tokens of each text.
    #[arg(long, value_name = "N", default_value_t = 200)]
    tokens: usize,
    /// The texts.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Tokens that are named in the answer.
const NAMED: usize = 5;

/// What was counted.
#[derive(Default)]
struct Tally {
    n_masks: usize,
    n_doubtful: usize,
    /// Texts that end where a token may not come next.
    n_stopped: usize,
    /// Of each token how many masks leave it in doubt.
    tokens: HashMap<usize, usize>,
}

pub fn run(args: &Args, output: &mut dyn Write) -> Result<()> {
    let (language, vocabulary) = (args.grammar.language()?, args.vocab.vocabulary()?);
    let mut counter = Counter::new(&language, &vocabulary)?;
    let mut tally = Tally::default();
    for file in &args.files {
        for text in texts(file)?.iter().take(args.first.unwrap_or(usize::MAX)) {
            let place = || format!("{} line {}", file.display(), text.line);
            let tokens = tokens(&vocabulary, text).with_context(place)?;
            counter.read(&tokens[..tokens.len().min(args.tokens)], &mut tally).with_context(place)?;
        }
    }
    let Tally { n_masks, n_doubtful, n_stopped, tokens } = tally;
    let stopped =
        if n_stopped > 0 { format!("; {n_stopped} texts stop before their end") } else { String::new() };
    writeln!(output, "{n_doubtful} of {n_masks} masks are in doubt{stopped}")?;
    let mut tokens: Vec<(usize, usize)> = tokens.into_iter().collect();
    tokens.sort_by_key(|&(token, n)| (std::cmp::Reverse(n), token));
    for &(token, n) in tokens.iter().take(NAMED) {
        let bytes = vocabulary.bytes(TokenId::new(token)).unwrap_or_default();
        writeln!(output, "  token {token}, {:?}, in {n} of them", String::from_utf8_lossy(bytes))?;
    }
    Ok(())
}

/// Reads texts, and knows the trees that it met.
struct Counter<'a> {
    language: &'a Language,
    vocabulary: &'a Vocabulary,
    stepper: Stepper,
    trees: HashMap<Place, Sequences>,
}

impl<'a> Counter<'a> {
    fn new(language: &'a Language, vocabulary: &'a Vocabulary) -> Result<Self> {
        Ok(Self { language, vocabulary, stepper: Stepper::new(language)?, trees: HashMap::new() })
    }

    /// Counts the masks before each token and after the last, as far as the text can be read.
    fn read(&mut self, tokens: &[TokenId], tally: &mut Tally) -> Result<()> {
        let mark = self.stepper.mark();
        let mut frontier = self.stepper.start(self.language)?.unwrap_or_default();
        self.count(&frontier, tally)?;
        for &token in tokens {
            self.stepper.begin(self.language);
            for &byte in self.vocabulary.bytes(token).unwrap_or_default() {
                let mut next = Frontier::new();
                self.stepper.step(self.language, &frontier, byte, &mut next)?;
                frontier = next;
            }
            if !self.stepper.is_viable(self.language, &frontier)? {
                tally.n_stopped += 1;
                break;
            }
            self.count(&frontier, tally)?;
        }
        self.stepper.release(mark);
        Ok(())
    }

    fn count(&mut self, frontier: &Frontier, tally: &mut Tally) -> Result<()> {
        let n_words = self.vocabulary.len().div_ceil(MASK_BITS);
        let (mut allowed, mut doubts) = (vec![0; n_words], vec![0; n_words]);
        for config in frontier {
            self.stepper.begin(self.language);
            let place = self.stepper.transducer().place(config.lexeme);
            let tree = match self.trees.entry(place) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(fresh) => {
                    let (trie, lexeme) = (self.vocabulary.trie(), config.lexeme);
                    fresh.insert(Sequences::new(&mut self.stepper, self.language, trie, lexeme, n_words)?)
                }
            };
            let rows = &mut Rows { allowed: &mut allowed, doubts: &mut doubts };
            tree.add_tokens(&mut self.stepper, config.state, 1, rows)?;
        }
        tally.n_masks += 1;
        let open: Vec<u32> = allowed.iter().zip(&doubts).map(|(allowed, doubts)| doubts & !allowed).collect();
        tally.n_doubtful += usize::from(open.iter().any(|&word| word != 0));
        for token in
            (0..self.vocabulary.len()).filter(|token| open[token / MASK_BITS] >> (token % MASK_BITS) & 1 == 1)
        {
            *tally.tokens.entry(token).or_default() += 1;
        }
        Ok(())
    }
}
