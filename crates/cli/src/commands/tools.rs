use std::path::PathBuf;

use anygram::tools::{Family, ToolsOptions, tag};
use anyhow::{Context, Result};

use crate::input;

/// Print what a model that has tools may write, as a structural tag.
///
/// The tools are OpenAI's `tools`, a JSON list; the tag is a grammar for all other commands (`.tag.json`).
/// docs/structural-tags.md says how each family of models writes calls.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// How the model writes calls: llama, hermes (qwen), qwen-coder, mistral, mistral-args, mistral-list,
    /// deepseek-v3, deepseek-v3.1, deepseek-v3.2, gpt-oss, glm, kimi, minimax, minimax-m3, gemma or cohere.
    #[arg(long, value_name = "NAME", value_parser = |name: &str| Family::by_name(name))]
    family: Family,
    /// OpenAI's tool_choice: auto, none, required, the name of a function, or JSON.
    #[arg(long, value_name = "CHOICE", default_value = "auto")]
    tool_choice: String,
    /// At most one call.
    #[arg(long)]
    single: bool,
    /// A marker that is a special token of the vocabulary (repeatable): the tag names it as a token.
    #[arg(long, value_name = "NAME")]
    special_token: Vec<String>,
    /// The tools; `-` is standard input.
    #[arg(value_name = "FILE")]
    tools: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  anygram tools --family hermes tools.json > calls.tag.json
  anygram check --grammar calls.tag.json answer.txt
  anygram tools --family llama --tool-choice get_weather tools.json
  anygram tools --family kimi --special-token '<|tool_call_begin|>' tools.json";

pub fn run(args: &Args) -> Result<bool> {
    let tool_choice = match &*args.tool_choice {
        choice if choice.starts_with(['{', '"']) => choice.to_owned(),
        word @ ("auto" | "none" | "required") => serde_json::json!(word).to_string(),
        name => serde_json::json!({"type": "function", "function": {"name": name}}).to_string(),
    };
    let mut options = ToolsOptions::new(args.family);
    options.tool_choice = tool_choice;
    options.parallel_tool_calls = !args.single;
    options.special_tokens = args.special_token.clone();
    let name = args.tools.display();
    let tools = String::from_utf8(input::read_or_stdin(&args.tools)?).with_context(|| name.to_string())?;
    println!("{}", tag(&tools, &options).with_context(|| name.to_string())?);
    Ok(true)
}
