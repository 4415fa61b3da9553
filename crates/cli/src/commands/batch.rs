mod canvas;
mod failure;
mod grammar;
mod mask;
mod replay;
mod shown;
mod subject;
mod text;
mod tokens;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use anygram::{Constraint, TokenId, Vocabulary};
use anyhow::{Context, Result, anyhow, bail};
use cpu_time::ThreadTime;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::decoder::Decoder;
use crate::input::{GrammarArgs, ReadingArgs, VocabArgs};
use failure::Failure;
use subject::{Origin, Subject, Subjects};

/// Answer questions in JSON Lines
///
/// Questions come on standard input. Answers go to standard output, in the same order, with the same
/// "id" (any JSON value, returned as it was written). A bad line gets an "error", and the next line is
/// still answered. Every answer has "us", the CPU microseconds that it took. Each answer is written
/// before the next question is read. Blank lines are skipped.
///
///   {"id":1,"op":"text","text":"…"}
///    -> {"id":1,"sentence":false,"viable":true,"us":…}
///   {"id":2,"op":"mask","tokens":[…]}
///    -> {"id":2,"allowed":[…],"eos":false,"us":…}
///   {"id":3,"op":"canvas","slots":[17,null,"*"],"end":"sentence",
///    "want":["completable","admissible","witness","minimum"]}
///    -> {"id":3,"completable":true,"proven":true,"admissible":[[…]],…}
///   {"id":4,"op":"canvas",…,"proposals":[[1,17]],"want":["compatible"]}
///    -> {"id":4,"compatible":[true],"us":…}
///   {"id":5,"op":"canvas",…,"log_probs":[[[17,-0.1],[4,-2.3]],…],"seed":1,"count":100,
///    "want":["best","sample"]}
///    -> {"id":5,"best":{"tokens":[…],"log_prob":-3.2,"widened":false},"samples":[[…],…],"us":…}
///   {"id":6,"op":"canvas",…,"method":"intersection"}
///    -> {"id":6,"completable":true,"proven":false,"us":…}
///   {"id":7,"op":"text","schema":{…},"text":"…"}
///    -> {"id":7,"sentence":true,"viable":true,"compile_us":310,"us":…}
///   {"id":8,"op":"replay","ids":[…]}
///    -> {"id":8,"steps":57,"rejected_at":null,"sentence":true,"mask_us":[…],"advance_us":[…],"us":…}
///   {"id":9,"op":"grammar","want":["warnings","hints","facts","examples"],"count":3,"seed":1}
///    -> {"id":9,"warnings":[{"message":…}],"hints":[…],"facts":[[…,…]],"examples":["…"],"us":…}
///   {"id":10,"op":"tokens","text":"…"}
///    -> {"id":10,"size":4096,"eos_ids":[0],"pad_id":1,"tokens":[…],"shown":["…"],"us":…}
///
/// A question of any op may bring its own grammar, and then --grammar is not needed:
///
///   "schema":{…}                    a JSON schema, with "options" and "documents" if you like:
///   "options":{"key_order":"schema","whitespace":{"indent":2},…}
///                                   the options of JSON schemas below, with `_` in their names
///   "documents":{"http://…":{…}}    what references point into, by address; nothing is fetched
///   "grammar":"…","format":"lark"   a grammar, with "start" and "lexer" if you like; it imports no files
///
/// "compile_us" are the CPU microseconds of compiling. Whoever asks about the same grammar again in the
/// next question finds it compiled, and warm; no more than one is kept. A refusal to compile is an
/// "error" with "kind" (unsupported, unsatisfiable, limit or syntax), "at" and "message"; so is a limit
/// that an answer reached. "at" is a JSON pointer into the schema, or {"line":…,"column":…} in a grammar;
/// "span" is the place in bytes, and "help" and "label" (a second place) say more, where they are known.
///
/// "replay" reads tokens as `anygram replay` does: at each step it computes the mask, looks whether the
/// true token is in it, and advances. At the first that is not it stops: "rejected_at" is the index of
/// that token, and "steps" the number of those before it. "mask_us" and "advance_us" have the CPU
/// microseconds of each step; the mask that rejected is the last. "want":["captures"] adds which rules are
/// entered and left while it is read, as `anygram check --tree=events` tells them:
/// {"at":…,"enter":…,"start":…} and {"at":…,"leave":…,"start":…,"end":…}, where "at" counts the tokens by
/// which it is certain.
///
/// "allowed" lists the tokens that may come next, in ascending order and without EOS: "eos" says
/// whether the output may end here. Tokens that are not a prefix of any sentence are an error. More
/// fields of the op mask:
///
///   "budget":32                     allow only tokens after which a sentence is still reachable within
///                                   32 tokens in all, this one included and EOS not counted
///   "want":["minimum","forced"]     adds "minimum":3, the fewest tokens that make a sentence (null: the
///                                   vocabulary cannot), and "forced":{"text":"…","bytes":"…",
///                                   "tokens":[…]}, with which every continuation begins ("bytes" in
///                                   hexadecimal). The mask is left out unless you want "allowed" too
///
/// A mask can be asked after "text" in place of "tokens"; then "want":["counts"] adds how many tokens may
/// follow each beginning of the text: "counts":[[0,17],[1,4],…], by bytes.
///
/// "show":{"most":50,"order":"id","search":"…"} is for people: in place of the tokens of a mask, or of a
/// hole, the answer has "count", "found" (how many have the searched text) and "shown", pairs of a token and
/// its text. The order is id, shortest, longest or varied (the shortest of each first byte).
///
/// More wants of the op text: "explain" says where the text stops ("at", a byte, "line" and "column"), what
/// is expected there, in the words of the grammar, and what the text is in the middle of; in the value of a
/// JSON schema also the JSON pointer there ("pointer"), and which schema it is ("schema") if there is more
/// than one. "tree" lists the nodes of the parse tree, each before those below it, or is null if the text is
/// not a sentence; "captures" lists the rules that its viable beginning enters and leaves, "at" counting
/// bytes.
///
/// A slot of a canvas is a token, null (a hole: one token) or "*" (a gap: any number of tokens). "end"
/// is "sentence", the default, or "prefix", with an optional "remaining": at most so many more tokens
/// must make a sentence. "want" is ["completable"] by default. "admissible" lists the tokens of each
/// hole, EOS and PAD included; a row that was not wholly decided is null, and then "admissible_at_least"
/// lists the tokens of each hole that are certain. "witness" lists what stands in each slot, for a gap a
/// list. null means "not decided" (or "there is none"), and then "why" says why.
///
/// "log_probs" has a row for each hole, in order: pairs [token, log-probability], or one number for
/// each token of the vocabulary (null: excluded). Tokens that are not listed get "floor": a number,
/// "none" (excluded), or by default the lowest listed value less 10. "widened" says that the best
/// completion needed such a token. "tail":"free" leaves the holes after the first EOS out of the
/// weight. Samples come from the exact distribution: "count" of them (1), equal for equal "seed" (0).
///
/// "method" is exact, or one of the published methods intersection, lookahead, forced-sequential and
/// none. They answer "completable", "witness" and "compatible"; "proven" says whether the answer is
/// certain. lookahead draws "fillings" (10) from "log_probs", or without them from masks, by "seed"
/// (0). With "counts_room":false it asks as published: is the text up to the last token viable?
#[derive(clap::Args)]
#[command(verbatim_doc_comment, after_help = EXAMPLES)]
pub struct Args {
    /// The grammar of questions that bring none: a file as the other commands read it.
    #[arg(short, long, value_name = "FILE")]
    grammar: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    vocab: VocabArgs,
}

const EXAMPLES: &str = "\
Examples:
  echo '{\"id\":1,\"op\":\"text\",\"text\":\"SELECT name\"}' | anygram batch -g sql.lark -v builtin
  anygram batch -g sql.lark -v tokenizer.json --eos 2 < questions.jsonl > answers.jsonl
  echo '{\"op\":\"text\",\"schema\":{\"type\":\"integer\"},\"text\":\"17\"}' | anygram batch";

/// An answer as it is written: the `id`, then what was asked for or an error, then `us`.
#[derive(Serialize)]
struct Reply<'q> {
    id: &'q RawValue,
    #[serde(flatten)]
    answer: Answer,
    /// What compiling the question's own grammar took.
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_us: Option<f64>,
    us: f64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Text(text::Answers),
    Mask(mask::Answers),
    Canvas(canvas::Answers),
    Replay(replay::Replayed),
    Grammar(grammar::Answers),
    Tokens(tokens::Answers),
    Error { error: Failure },
}

/// The fields of a question, each read when it is needed.
pub(crate) struct Question<'q>(BTreeMap<Cow<'q, str>, &'q RawValue>);

pub fn run(args: Args) -> Result<bool> {
    let Args { grammar, reading, vocab } = args;
    let mut questions;
    if let Some(grammar) = grammar {
        let grammar = GrammarArgs { grammar, reading };
        let (source, format) = grammar.source()?;
        let language = grammar.compile(format, &source)?;
        let constraint = grammar.constraint(language, vocab.vocabulary()?)?;
        let device = grammar.is_for_device().then(|| Decoder::new(&grammar, &constraint, 1)).transpose()?;
        questions = Questions::new(&grammar.reading, constraint.vocabulary().clone())?;
        let mut subject = Subject::new(constraint, device)?;
        subject.origin = Origin { source, schema: grammar.schema()? };
        questions.subjects.given = Some(subject);
    } else {
        questions = Questions::new(&reading, vocab.vocabulary()?)?;
    }
    questions.respond_all()?;
    let device = questions.subjects.given.and_then(|given| given.device);
    if let Some(notice) = device.and_then(|device| device.on_device()?.notice()) {
        let _ = writeln!(anstream::stderr(), "{notice}");
    }
    Ok(true)
}

/// What answers the lines of `anygram batch`; warm from one to the next.
pub struct Questions {
    subjects: Subjects,
}

impl Questions {
    /// Questions that bring their own grammars, which are read by these options where they name no others.
    pub(super) fn new(reading: &ReadingArgs, vocabulary: Vocabulary) -> Result<Self> {
        Ok(Self { subjects: Subjects::new(reading, vocabulary)? })
    }

    /// Questions about one constraint, where they do not bring their own grammars.
    pub fn about(constraint: &Constraint) -> Result<Self> {
        let mut questions = Self::new(&ReadingArgs::default(), constraint.vocabulary().clone())?;
        questions.subjects.given = Some(Subject::new(constraint.clone(), None)?);
        Ok(questions)
    }

    /// Answers the lines of standard input until it ends.
    pub(super) fn respond_all(&mut self) -> Result<()> {
        let mut input = std::io::stdin().lock();
        let mut output = std::io::stdout().lock();
        let (mut line, mut reply) = (Vec::new(), Vec::new());
        while input.read_until(b'\n', &mut line).context("standard input")? > 0 {
            if !line.trim_ascii().is_empty() {
                reply.clear();
                self.respond(&line, &mut reply)?;
                output.write_all(&reply)?;
                output.flush()?;
            }
            line.clear();
        }
        Ok(())
    }

    /// Answers one line, whatever it is: appends a line of JSON.
    pub fn respond(&mut self, line: &[u8], reply: &mut Vec<u8>) -> Result<()> {
        let start = ThreadTime::now();
        let question = Question::parse(line);
        let id = question
            .as_ref()
            .ok()
            .and_then(|question| question.0.get("id").copied())
            .unwrap_or(RawValue::NULL);
        let answer = question
            .as_ref()
            .map_err(|error| anyhow!("{error:#}"))
            .and_then(|question| self.answer(question));
        let (answer, compile_us) =
            answer.unwrap_or_else(|error| (Answer::Error { error: Failure::new(&error) }, None));
        serde_json::to_writer(&mut *reply, &Reply { id, answer, compile_us, us: us(start) })?;
        reply.push(b'\n');
        Ok(())
    }

    fn answer(&mut self, question: &Question) -> Result<(Answer, Option<f64>)> {
        const KNOWN: &str = "known: text, mask, canvas, replay, grammar, tokens";
        let op = question.string("op").context(KNOWN)?;
        if op == "tokens" {
            // The only question that is about no grammar.
            let answers = tokens::answer(self.subjects.vocabulary(), question)?;
            return Ok((Answer::Tokens(answers), None));
        }
        let answer: fn(&mut Subject, &Question<'_>) -> Result<Answer> = match &*op {
            "text" => |subject, question| text::answer(subject, question).map(Answer::Text),
            "mask" => |subject, question| mask::answer(subject, question).map(Answer::Mask),
            "canvas" => |subject, question| canvas::answer(subject, question).map(Answer::Canvas),
            "replay" => |subject, question| replay::answer(subject, question).map(Answer::Replay),
            "grammar" => |subject, question| grammar::answer(subject, question).map(Answer::Grammar),
            other => bail!("unknown op `{other}`; {KNOWN}"),
        };
        let subject = self.subjects.of(question)?;
        let answer = answer(subject, question);
        subject.matcher.reset();
        Ok((answer?, subject.compile_us))
    }
}

/// The answer to a line that nobody could answer: a line of JSON, with why.
pub(super) fn unanswered(line: &[u8], why: Unanswered, took: Duration) -> Result<Vec<u8>> {
    let question = Question::parse(line);
    let id = question.as_ref().ok().and_then(|question| question.0.get("id").copied());
    let error = match why {
        Unanswered::Late(message) => Failure::late(message),
        Unanswered::Broken(message) => Failure::Question(message),
    };
    let us = (took.as_secs_f64() * 1e7).round() / 10.0;
    let id = id.unwrap_or(RawValue::NULL);
    let mut reply = serde_json::to_vec(&Reply { id, answer: Answer::Error { error }, compile_us: None, us })?;
    reply.push(b'\n');
    Ok(reply)
}

/// Why nobody could answer.
pub(super) enum Unanswered {
    /// It would have taken too long.
    Late(String),
    /// Who was to answer is gone.
    Broken(String),
}

/// Microseconds of this thread since then, to a tenth.
fn us(start: ThreadTime) -> f64 {
    (start.elapsed().as_secs_f64() * 1e7).round() / 10.0
}

impl<'q> Question<'q> {
    fn parse(line: &'q [u8]) -> Result<Self> {
        Ok(Self(serde_json::from_slice(line).context("a question is a JSON object")?))
    }

    /// A field that is there and not null.
    fn get(&self, field: &str) -> Option<&'q RawValue> {
        self.0.get(field).copied().filter(|value| value.get() != "null")
    }

    fn string(&self, field: &str) -> Result<Cow<'q, str>> {
        let value = self.get(field).ok_or_else(|| anyhow!("no string \"{field}\""))?;
        let Ok(Value::String(text)) = serde_json::from_str(value.get()) else {
            bail!("\"{field}\" is not a string of Unicode text")
        };
        Ok(text.into())
    }

    /// A number that may be left out; beyond any output it is the largest.
    fn number(&self, field: &str) -> Result<Option<u32>> {
        let number = |value: &RawValue| match value.get().parse::<u64>() {
            Ok(number) => Ok(u32::try_from(number).unwrap_or(mask::LARGEST_BUDGET).min(mask::LARGEST_BUDGET)),
            Err(_) => bail!("\"{field}\" is {}, not a number of tokens", abbreviated(value.get())),
        };
        self.get(field).map(number).transpose()
    }

    /// The names in the array "want", each one of `known`; none if it is left out.
    fn wants(&self, known: &[&str]) -> Result<Vec<String>> {
        let Some(value) = self.get("want") else { return Ok(Vec::new()) };
        let Ok(wants) = serde_json::from_str::<Vec<String>>(value.get()) else {
            bail!("\"want\" is not an array of strings")
        };
        match wants.iter().find(|want| !known.contains(&want.as_str())) {
            Some(unknown) => bail!("unknown want `{}`; known: {}", abbreviated(unknown), known.join(", ")),
            None => Ok(wants),
        }
    }

    /// The members of an object that may be left out.
    fn members(&self, field: &str) -> Result<BTreeMap<String, &'q RawValue>> {
        let members = |value: &'q RawValue| serde_json::from_str(value.get());
        let members = self.get(field).map(members).transpose();
        Ok(members.map_err(|_| anyhow!("\"{field}\" is not an object"))?.unwrap_or_default())
    }

    fn tokens(&self, field: &str) -> Result<Vec<TokenId>> {
        let value = self.get(field).ok_or_else(|| anyhow!("no array \"{field}\""))?;
        let Ok(tokens) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else {
            bail!("\"{field}\" is not an array")
        };
        let id = |(at, token): (usize, &&RawValue)| {
            let id = token.get().parse().map(TokenId);
            id.map_err(|_| anyhow!("{field}[{at}]: {} is no token id", abbreviated(token.get())))
        };
        tokens.iter().enumerate().map(id).collect()
    }
}

/// The beginning of a long text.
fn abbreviated(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
