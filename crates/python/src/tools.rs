//! Tools and the choice among them as a structural tag.

use anygram::tools::{Family, ToolsOptions, tag};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::compiler::text_of;
use crate::error::invalid;

/// A structural tag of what a model may write that has tools: free text, and calls.
///
/// >>> import anygram
/// >>> tools = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]
/// >>> tag = anygram.tool_tag(tools, "hermes")
/// >>> language = anygram.Compiler().compile(tag, "structural-tag")
/// >>> language.read('<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>').is_sentence
/// True
///
/// Args:
///     tools: OpenAI's `tools`, as a list of dicts or as JSON.
///     family: how the model writes calls: `"llama"`, `"hermes"` (`"qwen"`), `"qwen-coder"`, `"mistral"`,
///         `"mistral-args"`, `"mistral-list"`, `"deepseek-v3"`, `"deepseek-v3.1"`, `"deepseek-v3.2"`,
///         `"gpt-oss"`, `"glm"`, `"kimi"`, `"minimax"`, `"minimax-m3"`, `"gemma"` or `"cohere"`.
///     tool_choice: OpenAI's `tool_choice`: `"auto"`, `"none"`, `"required"`, or a dict.
///     parallel_tool_calls: whether there may be more than one call.
///     special_tokens: the markers that are special tokens of the vocabulary.
///
/// Returns:
///     The tag as JSON, for `Compiler.compile(…, "structural-tag")`.
///
/// Raises:
///     ValueError: the tools or the choice are not what OpenAI's interface takes, or no family has the name.
#[pyfunction]
#[pyo3(signature = (
    tools, family, *, tool_choice = None, parallel_tool_calls = true, special_tokens = Vec::new()
))]
pub fn tool_tag(
    tools: &Bound<'_, PyAny>,
    family: &str,
    tool_choice: Option<&Bound<'_, PyAny>>,
    parallel_tool_calls: bool,
    special_tokens: Vec<String>,
) -> PyResult<String> {
    let py = tools.py();
    let family = Family::by_name(family).map_err(|error| invalid(py, error.to_string()))?;
    let tool_choice = match tool_choice {
        Some(choice) => text_of(choice)?,
        None => ToolsOptions::new(family).tool_choice,
    };
    let tools = match tools.cast::<PyString>() {
        Ok(text) => text.to_cow()?.into_owned(),
        Err(_) => text_of(tools)?,
    };
    let options = ToolsOptions { family, tool_choice, parallel_tool_calls, special_tokens };
    tag(&tools, &options).map_err(|error| invalid(py, error.to_string()))
}
