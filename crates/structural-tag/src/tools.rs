//! Tools and the choice among them as a tag: OpenAI's `tools` and `tool_choice`, in the call formats of model
//! families.
//!
//! A family says what stands before and after the arguments of a call. `docs/structural-tags.md` has a table
//! of where each was read. Some markers are special tokens, which have no bytes: those that
//! [`ToolsOptions::special_tokens`] lists, and those of gpt-oss, stand in the tag as tokens.

use std::fmt;
use std::sync::Arc;

use anygram_json_schema::read::read;
use anygram_json_schema::value::Value;

/// A family of models that write calls alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Family {
    /// Llama 3: `{"name": "f", "parameters": {…}}`.
    Llama,
    /// Hermes 2 Pro, Qwen 2.5, Qwen 3: `<tool_call>`, an object with `name` and `arguments`, `</tool_call>`.
    Hermes,
    /// Qwen3-Coder, Qwen 3.5: `<tool_call>`, `<function=f>`, parameters as elements.
    QwenCoder,
    /// Mistral with a tokenizer of version 11 or later: `[TOOL_CALLS]f{…}`.
    Mistral,
    /// Ministral 3, Mistral Large 3: `[TOOL_CALLS]f[ARGS]{…}`.
    MistralArgs,
    /// Mistral before: `[TOOL_CALLS][{"name": "f", "arguments": {…}}]`.
    MistralList,
    /// DeepSeek V3, R1: a block of JSON in each call.
    DeepSeekV3,
    /// DeepSeek V3.1: a name, a separator and JSON.
    DeepSeekV31,
    /// DeepSeek V3.2: invocations with parameters as elements.
    DeepSeekV32,
    /// gpt-oss: messages in channels (Harmony).
    GptOss,
    /// GLM 4.5 and later: `<tool_call>f`, keys and values as elements.
    Glm,
    /// Kimi K2: a section of numbered calls.
    Kimi,
    /// MiniMax M2: invocations with parameters as elements.
    MiniMax,
    /// MiniMax M3: the same with elements at all depths.
    MiniMaxM3,
    /// Gemma 4: `<|tool_call>call:f{…}<tool_call|>`, strings between `<|"|>`.
    Gemma,
    /// Cohere's Command models: numbered calls with values as elements.
    Cohere,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 16] = [
        Self::Llama,
        Self::Hermes,
        Self::QwenCoder,
        Self::Mistral,
        Self::MistralArgs,
        Self::MistralList,
        Self::DeepSeekV3,
        Self::DeepSeekV31,
        Self::DeepSeekV32,
        Self::GptOss,
        Self::Glm,
        Self::Kimi,
        Self::MiniMax,
        Self::MiniMaxM3,
        Self::Gemma,
        Self::Cohere,
    ];

    /// The names, the usual one first.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Llama => &["llama"],
            Self::Hermes => &["hermes", "qwen"],
            Self::QwenCoder => &["qwen-coder"],
            Self::Mistral => &["mistral"],
            Self::MistralArgs => &["mistral-args"],
            Self::MistralList => &["mistral-list"],
            Self::DeepSeekV3 => &["deepseek-v3"],
            Self::DeepSeekV31 => &["deepseek-v3.1"],
            Self::DeepSeekV32 => &["deepseek-v3.2"],
            Self::GptOss => &["gpt-oss"],
            Self::Glm => &["glm"],
            Self::Kimi => &["kimi"],
            Self::MiniMax => &["minimax"],
            Self::MiniMaxM3 => &["minimax-m3"],
            Self::Gemma => &["gemma"],
            Self::Cohere => &["cohere"],
        }
    }

    /// The family of this name.
    ///
    /// # Errors
    /// For other names, with a list of those that there are.
    pub fn by_name(name: &str) -> Result<Self, ToolsError> {
        let found = Self::ALL.into_iter().find(|family| family.names().contains(&name));
        found.ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().flat_map(|family| family.names()).copied().collect();
            ToolsError(format!("no family of models `{name}`; there are {}", known.join(", ")))
        })
    }
}

/// What a tag of tools is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolsOptions {
    /// How calls are written.
    pub family: Family,
    /// OpenAI's `tool_choice` as JSON: `"auto"`, `"none"`, `"required"`, one function, or allowed tools.
    pub tool_choice: String,
    /// Whether there may be more than one call.
    pub parallel_tool_calls: bool,
    /// The markers that are special tokens of the vocabulary, which have no bytes: the tag names them as
    /// tokens.
    pub special_tokens: Vec<String>,
}

impl ToolsOptions {
    /// Any number of calls, if the model wants to call, and markers that have bytes.
    pub fn new(family: Family) -> Self {
        let special_tokens = Vec::new();
        Self { family, tool_choice: "\"auto\"".to_owned(), parallel_tool_calls: true, special_tokens }
    }
}

/// Why tools are refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolsError(String);

impl fmt::Display for ToolsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ToolsError {}

impl ToolsError {
    /// [`ErrorKind::InvalidArgument`](anygram_bits::ErrorKind::InvalidArgument).
    pub fn kind(&self) -> anygram_bits::ErrorKind {
        anygram_bits::ErrorKind::InvalidArgument
    }
}

type Result<T, E = ToolsError> = std::result::Result<T, E>;

/// A tool: its name and the schema of its arguments.
struct Tool {
    name: Arc<str>,
    parameters: Value,
}

/// How many calls there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// None.
    Never,
    /// Any number, in free text.
    Auto,
    /// At least one.
    Required,
    /// Exactly one.
    Forced,
}

/// The structural tag, as JSON, of what a model may write that has these tools (OpenAI's `tools`, as JSON).
///
/// ```
/// use anygram_structural_tag::tools::{Family, ToolsOptions, tag};
///
/// let tools = r#"[{"type":"function","function":{"name":"now","parameters":{"type":"object"}}}]"#;
/// let tag = tag(tools, &ToolsOptions::new(Family::Hermes))?;
/// assert!(tag.contains("triggered_tags"));
/// # Ok::<(), anygram_structural_tag::tools::ToolsError>(())
/// ```
///
/// # Errors
/// If the tools or the choice are not what OpenAI's interface takes.
pub fn tag(tools: &str, options: &ToolsOptions) -> Result<String> {
    let tools = read_tools(tools)?;
    let (tools, choice) = chosen(tools, &options.tool_choice)?;
    let writer = Writer { options, tools, choice };
    let format = if options.family == Family::GptOss { writer.harmony() } else { writer.calls() };
    Ok(object([("type", text("structural_tag")), ("format", format)]).to_string())
}

fn read_tools(tools: &str) -> Result<Vec<Tool>> {
    let tools = read(tools).map_err(|error| ToolsError(format!("the tools are no JSON: {error}")))?;
    let tools = tools.items().ok_or_else(|| ToolsError("the tools are a list".to_owned()))?;
    let mut read: Vec<Tool> = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        let error = |message: &str| ToolsError(format!("/{at}: {message}"));
        if tool.get("type").is_some_and(|name| name.text().is_none_or(|name| &**name != "function")) {
            return Err(error("only tools of the type \"function\" are written by models"));
        }
        // The older interface nests the function, the newer one does not.
        let function = tool.get("function").unwrap_or(tool);
        let name =
            function.get("name").and_then(Value::text).ok_or_else(|| error("a function has a name"))?;
        let is_named = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || !name.chars().all(is_named) {
            return Err(error("a name has letters, digits, `_`, `-` and `.`"));
        }
        if read.iter().any(|tool| tool.name == *name) {
            return Err(error("another tool has this name"));
        }
        let any = || object([("type", text("object"))]);
        let parameters = match (function.get("parameters"), function.get("strict")) {
            (None | Some(Value::Null), _) | (_, Some(Value::Bool(false))) => any(),
            (Some(parameters), _) => parameters.clone(),
        };
        read.push(Tool { name: name.clone(), parameters });
    }
    Ok(read)
}

/// The tools that may be called, and how often.
fn chosen(tools: Vec<Tool>, choice: &str) -> Result<(Vec<Tool>, Choice)> {
    let value = read(choice).map_err(|error| ToolsError(format!("the choice is no JSON: {error}")))?;
    let unknown = || {
        ToolsError(format!(
            "tool_choice is \"auto\", \"none\", \"required\", a function or allowed tools, not {value}"
        ))
    };
    let named = |reference: &Value| -> Result<Arc<str>> {
        let function = reference.get("function").unwrap_or(reference);
        function.get("name").and_then(Value::text).cloned().ok_or_else(unknown)
    };
    let only = |names: &[Arc<str>], tools: Vec<Tool>| -> Result<Vec<Tool>> {
        if let Some(name) = names.iter().find(|name| tools.iter().all(|tool| tool.name != **name)) {
            return Err(ToolsError(format!("tool_choice names `{name}`, and there is no such tool")));
        }
        Ok(tools.into_iter().filter(|tool| names.contains(&tool.name)).collect())
    };
    let (tools, choice) = match (value.text().map(|word| &**word), value.get("type").and_then(Value::text)) {
        (Some("auto"), _) => (tools, Choice::Auto),
        (Some("none"), _) => (tools, Choice::Never),
        (Some("required"), _) => (tools, Choice::Required),
        (None, Some(kind)) if &**kind == "function" => (only(&[named(&value)?], tools)?, Choice::Forced),
        (None, Some(kind)) if &**kind == "allowed_tools" => {
            let allowed = value.get("allowed_tools").unwrap_or(&value);
            let names = allowed.get("tools").and_then(Value::items).ok_or_else(unknown)?;
            let names: Vec<Arc<str>> = names.iter().map(named).collect::<Result<_>>()?;
            let choice = match allowed.get("mode").and_then(Value::text).map(|mode| &**mode) {
                Some("auto") | None => Choice::Auto,
                Some("required") => Choice::Required,
                Some(_) => return Err(unknown()),
            };
            (only(&names, tools)?, choice)
        }
        _ => return Err(unknown()),
    };
    if tools.is_empty() && matches!(choice, Choice::Required | Choice::Forced) {
        return Err(ToolsError("a call is required, and there is no tool".to_owned()));
    }
    Ok((tools, choice))
}

/// What stands around calls.
struct Form {
    /// With which free text ends.
    trigger: &'static str,
    /// What stands around all calls, if anything does, and between every two.
    section: Option<(&'static str, &'static str, &'static str)>,
    /// What stands before the name, and behind it.
    begin: (&'static str, &'static str),
    end: &'static str,
    /// How arguments are written.
    style: &'static str,
}

fn form(family: Family) -> Form {
    let plain = |trigger, begin, end, style| Form { trigger, section: None, begin, end, style };
    match family {
        Family::Llama => plain("{\"name\": ", ("{\"name\": \"", "\", \"parameters\": "), "}", "json"),
        Family::Hermes => {
            let begin = ("<tool_call>\n{\"name\": \"", "\", \"arguments\": ");
            plain("<tool_call>", begin, "}\n</tool_call>", "json")
        }
        Family::QwenCoder => {
            let begin = ("<tool_call>\n<function=", ">\n");
            plain("<tool_call>", begin, "</function>\n</tool_call>", "qwen_xml")
        }
        Family::Mistral => plain("[TOOL_CALLS]", ("[TOOL_CALLS]", ""), "", "json"),
        Family::MistralArgs => plain("[TOOL_CALLS]", ("[TOOL_CALLS]", "[ARGS]"), "", "json"),
        Family::MistralList => Form {
            trigger: "[TOOL_CALLS]",
            section: Some(("[TOOL_CALLS][", "]", ", ")),
            begin: ("{\"name\": \"", "\", \"arguments\": "),
            end: "}",
            style: "json",
        },
        Family::DeepSeekV3 => Form {
            trigger: "<｜tool▁calls▁begin｜>",
            section: Some(("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "\n")),
            begin: ("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n"),
            end: "\n```<｜tool▁call▁end｜>",
            style: "json",
        },
        Family::DeepSeekV31 => Form {
            trigger: "<｜tool▁calls▁begin｜>",
            section: Some(("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "")),
            begin: ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"),
            end: "<｜tool▁call▁end｜>",
            style: "json",
        },
        Family::DeepSeekV32 => Form {
            trigger: "<｜DSML｜function_calls>",
            section: Some(("<｜DSML｜function_calls>\n", "</｜DSML｜function_calls>", "")),
            begin: ("<｜DSML｜invoke name=\"", "\">\n"),
            end: "</｜DSML｜invoke>\n",
            style: "deepseek_xml",
        },
        Family::Glm => plain("<tool_call>", ("<tool_call>", ""), "</tool_call>", "glm_xml"),
        Family::Kimi => Form {
            trigger: "<|tool_calls_section_begin|>",
            section: Some(("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "")),
            begin: ("<|tool_call_begin|>functions.", ":"),
            end: "<|tool_call_end|>",
            style: "json",
        },
        Family::MiniMax => Form {
            trigger: "<minimax:tool_call>",
            section: Some(("<minimax:tool_call>\n", "</minimax:tool_call>", "")),
            begin: ("<invoke name=\"", "\">\n"),
            end: "</invoke>\n",
            style: "minimax_xml",
        },
        Family::MiniMaxM3 => Form {
            trigger: "]<]minimax[>[<tool_call>",
            section: Some(("]<]minimax[>[<tool_call>\n", "]<]minimax[>[</tool_call>", "")),
            begin: ("]<]minimax[>[<invoke name=\"", "\">"),
            end: "]<]minimax[>[</invoke>\n",
            style: "minimax_m3_xml",
        },
        Family::Gemma => plain("<|tool_call>", ("<|tool_call>call:", ""), "<tool_call|>", "gemma"),
        Family::Cohere => Form {
            trigger: "<cofl:tool_calls>",
            section: Some(("<cofl:tool_calls>", "</cofl:tool_calls>", "")),
            // Between the two stands a number.
            begin: ("<cofl:tool_call id=\"", "\" name=\""),
            end: "</cofl:tool_call>",
            style: "cohere_xml",
        },
        // Written by `harmony`.
        Family::GptOss => plain("<|channel|>", ("<|channel|>commentary to=functions.", ""), "", "json"),
    }
}

/// The markers of gpt-oss, all of which are special tokens.
const HARMONY: [&str; 5] = ["<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|start|>"];

struct Writer<'o> {
    options: &'o ToolsOptions,
    tools: Vec<Tool>,
    choice: Choice,
}

impl Writer<'_> {
    /// Free text and calls.
    fn calls(&self) -> Value {
        let form = form(self.options.family);
        let never = || any_text(self.is_text(form.trigger).then_some(form.trigger));
        if self.choice == Choice::Never || self.tools.is_empty() {
            return never();
        }
        let calls: Vec<Value> = self.tools.iter().map(|tool| self.call(&form, tool)).collect();
        let is_single = !self.options.parallel_tool_calls;
        let Some((begin, end, separator)) = form.section else {
            return match self.choice {
                Choice::Forced => either(calls),
                choice => self.free(form.trigger, calls, choice == Choice::Required, is_single),
            };
        };
        let calls = match self.choice == Choice::Forced || is_single {
            true => either(calls),
            false => {
                let other = sequence(self.parts(separator).into_iter().chain([either(calls.clone())]));
                sequence([either(calls), of("star", [("content", other)])])
            }
        };
        let section = self.between(begin, calls, end);
        match self.choice {
            Choice::Auto => self.free(form.trigger, vec![section], false, is_single),
            _ => section,
        }
    }

    fn call(&self, form: &Form, tool: &Tool) -> Value {
        let begin = format!("{}{}{}", form.begin.0, tool.name, form.begin.1);
        let arguments = self.arguments(&tool.parameters, form.style);
        let number = || of("regex", [("pattern", text("[0-9]+"))]);
        let content = match self.options.family {
            Family::Cohere => {
                let name = self.parts(&format!("{}{}\">", form.begin.1, tool.name));
                let content = sequence([number()].into_iter().chain(name).chain([arguments]));
                return self.between(form.begin.0, content, form.end);
            }
            Family::Kimi => {
                let begin = self.parts("<|tool_call_argument_begin|>");
                sequence([number()].into_iter().chain(begin).chain([arguments]))
            }
            _ => arguments,
        };
        self.between(&begin, content, form.end)
    }

    /// Free text in which these begin with the trigger.
    fn free(&self, trigger: &str, calls: Vec<Value>, at_least_one: bool, is_single: bool) -> Value {
        if self.is_text(trigger) {
            let flags = [("at_least_one", at_least_one), ("stop_after_first", is_single)];
            let flags = flags.into_iter().filter(|flag| flag.1).map(|(name, flag)| (name, Value::Bool(flag)));
            let fields = [("triggers", Value::Array(vec![text(trigger)])), ("tags", Value::Array(calls))];
            return of("triggered_tags", fields.into_iter().chain(flags));
        }
        // Free text holds no special token, so it ends before one.
        let call = either(calls);
        let more = sequence([any_text(None), call.clone()]);
        match (at_least_one, is_single) {
            (true, true) => call,
            (true, false) => sequence([call, of("star", [("content", more)]), any_text(None)]),
            (false, true) => sequence([any_text(None), of("optional", [("content", call)])]),
            (false, false) => sequence([of("star", [("content", more)]), any_text(None)]),
        }
    }

    /// Messages in channels. What ends a call or the final message is a stop token of the model.
    fn harmony(&self) -> Value {
        let message = |channel: &str, content: Value| {
            sequence(self.parts(&format!("<|channel|>{channel}<|message|>")).into_iter().chain([content]))
        };
        let text = || any_text(None);
        let next = |channel: &str| {
            let message = message(channel, text());
            sequence([message].into_iter().chain(self.parts("<|end|><|start|>assistant")))
        };
        let before = of("star", [("content", either(vec![next("analysis"), next("commentary")]))]);
        let mut last = Vec::new();
        if self.choice != Choice::Never {
            for tool in &self.tools {
                let arguments = || self.arguments(&tool.parameters, "json");
                let name = &tool.name;
                last.push(message(&format!("commentary to=functions.{name} <|constrain|>json"), arguments()));
                let begin = format!(" to=functions.{name}<|channel|>commentary <|constrain|>json<|message|>");
                last.push(sequence(self.parts(&begin).into_iter().chain([arguments()])));
            }
        }
        if matches!(self.choice, Choice::Auto | Choice::Never) {
            last.push(message("final", text()));
        }
        sequence([before, either(last)])
    }

    /// Arguments in a style, whose marks can have special tokens in them.
    fn arguments(&self, parameters: &Value, style: &str) -> Value {
        let schema = ("json_schema", parameters.clone());
        if style == "json" {
            return of("json_schema", [schema]);
        }
        let special = self.options.special_tokens.iter().filter(|name| !name.is_empty());
        let special: Vec<Value> = special.map(|name| text(name)).collect();
        let special = (!special.is_empty()).then_some(("special_tokens", Value::Array(special)));
        of("json_schema", [schema, ("style", text(style))].into_iter().chain(special))
    }

    fn is_special(&self, name: &str) -> bool {
        self.options.special_tokens.iter().any(|other| other == name)
            || self.options.family == Family::GptOss && HARMONY.contains(&name)
    }

    /// Whether no special token stands in it.
    fn is_text(&self, marker: &str) -> bool {
        self.parts(marker).iter().all(|part| part.get("value").is_some())
    }

    /// A text as formats, special tokens as tokens.
    fn parts(&self, marker: &str) -> Vec<Value> {
        let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
        let names = self.options.special_tokens.iter().map(String::as_str).chain(HARMONY);
        let names: Vec<&str> = names.filter(|name| !name.is_empty() && self.is_special(name)).collect();
        while at < marker.len() {
            let longest =
                names.iter().filter(|name| marker[at..].starts_with(**name)).max_by_key(|n| n.len());
            if let Some(name) = longest {
                parts.extend((from < at).then(|| const_string(&marker[from..at])));
                parts.push(of("token", [("token", text(name))]));
                at += name.len();
                from = at;
            } else {
                at += marker[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
        parts.extend((from < at).then(|| const_string(&marker[from..])));
        parts
    }

    fn between(&self, begin: &str, content: Value, end: &str) -> Value {
        if self.is_text(begin) && self.is_text(end) {
            return of("tag", [("begin", text(begin)), ("content", content), ("end", text(end))]);
        }
        sequence(self.parts(begin).into_iter().chain([content]).chain(self.parts(end)))
    }
}

fn any_text(exclude: Option<&str>) -> Value {
    of("any_text", exclude.map(|exclude| ("excludes", Value::Array(vec![text(exclude)]))))
}

fn const_string(value: &str) -> Value {
    of("const_string", [("value", text(value))])
}

fn either(mut formats: Vec<Value>) -> Value {
    match formats.len() {
        1 => formats.swap_remove(0),
        _ => of("or", [("elements", Value::Array(formats))]),
    }
}

fn sequence(formats: impl IntoIterator<Item = Value>) -> Value {
    of("sequence", [("elements", Value::Array(formats.into_iter().collect()))])
}

fn of<'f>(name: &str, fields: impl IntoIterator<Item = (&'f str, Value)>) -> Value {
    object([("type", text(name))].into_iter().chain(fields))
}

fn object<'f>(fields: impl IntoIterator<Item = (&'f str, Value)>) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}
