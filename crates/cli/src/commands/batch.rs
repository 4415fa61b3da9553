use std::io::{BufRead, Write};

use anygram::{Constraint, MatchError, Matcher, TokenId, get_bit};
use anyhow::{Context, Result, anyhow, bail};
use cpu_time::ThreadTime;
use serde_json::{Map, Value, json};

use crate::input::{self, GrammarArgs, VocabArgs};

/// Answer JSON questions, one a line.
///
/// Questions come on standard input, answers go to standard output in the same order with the same "id"; a bad line gets an "error"
/// and the next is still answered. Every answer has "us", the CPU microseconds that it took.
///
///   {"id":1,"op":"text","text":"…"}
///     -> {"id":1,"sentence":false,"viable":true,"us":…}
///   {"id":2,"op":"mask","tokens":[…]}
///     -> {"id":2,"allowed":[…],"eos":false,"us":…}
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    grammar: GrammarArgs,
    #[command(flatten)]
    vocab: VocabArgs,
}

pub fn run(args: &Args) -> Result<bool> {
    let constraint = input::constraint(&args.grammar, args.grammar.language()?, args.vocab.vocabulary()?)?;
    let mut matcher = constraint.matcher()?;
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line.context("standard input")?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let start = ThreadTime::now();
        let question: Result<Value, _> = serde_json::from_slice(&line);
        let id = question.as_ref().ok().and_then(|question| question.get("id")).cloned().unwrap_or(Value::Null);
        let answer = question.map_err(anyhow::Error::from).and_then(|question| answer(&constraint, &mut matcher, &question));
        matcher.reset();
        let mut reply = Map::from_iter([("id".to_owned(), id)]);
        match answer {
            Ok(fields) => reply.extend(fields),
            Err(error) => reply.extend([("error".to_owned(), Value::from(format!("{error:#}")))]),
        }
        let us = start.elapsed().as_secs_f64() * 1e6;
        reply.insert("us".to_owned(), json!((us * 10.0).round() / 10.0));
        serde_json::to_writer(&mut output, &reply)?;
        writeln!(output)?;
        output.flush()?;
    }
    Ok(true)
}

fn answer(constraint: &Constraint, matcher: &mut Matcher, question: &Value) -> Result<Map<String, Value>> {
    if !question.is_object() {
        bail!("a question is a JSON object");
    }
    match question.get("op").and_then(Value::as_str) {
        Some("text") => text(constraint, question),
        Some("mask") => mask(constraint, matcher, question),
        Some(other) => bail!("unknown op `{other}`; known: text, mask"),
        None => bail!("no string \"op\"; known: text, mask"),
    }
}

fn text(constraint: &Constraint, question: &Value) -> Result<Map<String, Value>> {
    let Some(text) = question.get("text").and_then(Value::as_str) else { bail!("no string \"text\"") };
    let reading = constraint.language().read(text.as_bytes())?;
    Ok(object(json!({"sentence": reading.is_sentence, "viable": reading.is_viable})))
}

fn mask(constraint: &Constraint, matcher: &mut Matcher, question: &Value) -> Result<Map<String, Value>> {
    if question.get("budget").is_some_and(|budget| !budget.is_null()) {
        bail!("\"budget\" is not supported yet; leave it out for the mask without a budget");
    }
    for (at, token) in token_ids(question, "tokens")?.into_iter().enumerate() {
        matcher.advance(token).map_err(|error| match error {
            MatchError::Refused(_) => anyhow!("tokens[{at}]: not viable: {error}"),
            error => anyhow!("tokens[{at}]: {error}"),
        })?;
    }
    let words = matcher.mask()?;
    let vocabulary = constraint.vocabulary();
    let is_eos = |id: usize| vocabulary.eos().iter().any(|eos| eos.index() == id);
    let allowed: Vec<usize> = (0..vocabulary.len()).filter(|&id| get_bit(&words, id) && !is_eos(id)).collect();
    Ok(object(json!({"allowed": allowed, "eos": matcher.is_sentence()})))
}

fn token_ids(question: &Value, field: &str) -> Result<Vec<TokenId>> {
    let Some(tokens) = question.get(field).and_then(Value::as_array) else { bail!("no array \"{field}\"") };
    let id = |(at, token): (usize, &Value)| {
        let id = token.as_u64().and_then(|id| u32::try_from(id).ok());
        id.map(TokenId).ok_or_else(|| anyhow!("{field}[{at}]: {token} is no token id"))
    };
    tokens.iter().enumerate().map(id).collect()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => Map::from_iter([("answer".to_owned(), other)]),
    }
}
