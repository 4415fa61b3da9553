//! Styles: the members of an object between marks instead of as JSON, as some models write arguments.
//!
//! The top level of the schema is an object. Its declared members stand in their order or in any, those that
//! are required always, with blanks around them. A member that is a string is written as it is, without
//! quotes, and ends where the closing mark first stands; every other value is JSON. In Cohere's style, that
//! of MiniMax M3 and Gemma's, objects and lists are written so at all depths.

/// How the values of a schema are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Style {
    /// As JSON.
    #[default]
    Json,
    /// `<parameter=key>value</parameter>`
    Qwen,
    /// `<parameter name="key">value</parameter>`
    MiniMax,
    /// MiniMax M3, whose objects and lists nest as elements.
    MiniMaxM3,
    /// `<｜DSML｜parameter name="key" string="true">value</｜DSML｜parameter>`; `false` where the value is JSON.
    DeepSeek,
    /// The same with a blank behind `｜DSML｜`.
    DeepSeek41,
    /// `<arg_key>key</arg_key><arg_value>value</arg_value>`
    Glm,
    /// Cohere's, whose objects and lists nest as elements.
    Cohere,
    /// `<|open|>argument key="key" type="string"<|sep|>value<|close|>argument<|sep|>`
    Kimi,
    /// Gemma's, whose strings stand between `<|"|>` at all depths.
    Gemma,
}

/// What stands around a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrapper {
    /// What opens the member.
    pub open: String,
    /// What stands between key and value behind blanks, if the style has it.
    pub inner: Option<&'static str>,
    /// What closes it.
    pub close: &'static str,
}

impl Style {
    /// All styles.
    pub const ALL: [Self; 10] = [
        Self::Json,
        Self::Qwen,
        Self::MiniMax,
        Self::MiniMaxM3,
        Self::DeepSeek,
        Self::Glm,
        Self::Cohere,
        Self::Kimi,
        Self::DeepSeek41,
        Self::Gemma,
    ];

    /// The name in tags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Qwen => "qwen_xml",
            Self::MiniMax => "minimax_xml",
            Self::MiniMaxM3 => "minimax_m3_xml",
            Self::DeepSeek => "deepseek_xml",
            Self::Glm => "glm_xml",
            Self::Cohere => "cohere_xml",
            Self::Kimi => "kimi_k3_xml",
            Self::DeepSeek41 => "deepseek_v4_1_xml",
            Self::Gemma => "gemma",
        }
    }

    /// The style of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|style| style.name() == name)
    }

    /// What stands around the value of a key, of a type of JSON; `None` where members are not written so.
    pub fn wrapper(self, key: &str, value_type: &str) -> Option<Wrapper> {
        let is_string = value_type == "string";
        let (open, inner, close) = match self {
            Self::Json | Self::MiniMaxM3 | Self::Cohere | Self::Gemma => return None,
            Self::Qwen => (format!("<parameter={key}>"), None, "</parameter>"),
            Self::MiniMax => (format!("<parameter name=\"{key}\">"), None, "</parameter>"),
            Self::DeepSeek => (
                format!("<｜DSML｜parameter name=\"{key}\" string=\"{is_string}\">"),
                None,
                "</｜DSML｜parameter>",
            ),
            Self::DeepSeek41 => (
                format!("<｜DSML｜ parameter name=\"{key}\" string=\"{is_string}\">"),
                None,
                "</｜DSML｜ parameter>",
            ),
            Self::Glm => (format!("<arg_key>{key}</arg_key>"), Some("<arg_value>"), "</arg_value>"),
            Self::Kimi => {
                let key = key.replace('&', "&amp;").replace('"', "&quot;");
                let open = format!("<|open|>argument key=\"{key}\" type=\"{value_type}\"<|sep|>");
                (open, None, "<|close|>argument<|sep|>")
            }
        };
        Some(Wrapper { open, inner, close })
    }
}
