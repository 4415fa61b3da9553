//! Tools in the call formats of all families: what models write belongs to the tag, and what they should not
//! write does not.

use std::sync::Arc;

use anygram_left_to_right::Language;
use anygram_structural_tag::tools::{Family, ToolsOptions, tag};

use super::language;

const TOOLS: &str = r#"[
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties":
        {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"],
        "additionalProperties": false}}},
    {"type": "function", "function": {"name": "now"}}
]"#;

fn of_tools(options: &ToolsOptions) -> Arc<Language> {
    let tag = tag(TOOLS, options).unwrap();
    language(&tag).unwrap_or_else(|refusal| panic!("{refusal}: {tag}"))
}

fn is_sentence(language: &Language, text: &str) -> bool {
    language.read(text.as_bytes()).unwrap().is_sentence
}

/// A call of `weather` with these arguments, one of `weather` with a wrong type, and what stands around.
fn calls(family: Family) -> (String, String) {
    let call = |days: &str| match family {
        Family::Llama => {
            format!(r#"{{"name": "weather", "parameters": {{"city": "Oslo", "days": {days}}}}}"#)
        }
        Family::Hermes => format!(
            "<tool_call>\n{{\"name\": \"weather\", \"arguments\": {{\"city\": \"Oslo\", \
             \"days\": {days}}}}}\n</tool_call>"
        ),
        Family::QwenCoder => format!(
            "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n\
             {days}\n</parameter>\n</function>\n</tool_call>"
        ),
        Family::Mistral => format!(r#"[TOOL_CALLS]weather{{"city": "Oslo", "days": {days}}}"#),
        Family::MistralArgs => format!(r#"[TOOL_CALLS]weather[ARGS]{{"city": "Oslo", "days": {days}}}"#),
        Family::MistralList => {
            format!(r#"[TOOL_CALLS][{{"name": "weather", "arguments": {{"city": "Oslo", "days": {days}}}}}]"#)
        }
        Family::DeepSeekV3 => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n\
             {{\"city\": \"Oslo\", \"days\": {days}}}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        Family::DeepSeekV31 => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>\
             {{\"city\": \"Oslo\", \"days\": {days}}}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        Family::DeepSeekV32 => format!(
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n\
             <｜DSML｜parameter name=\"city\" string=\"true\">Oslo</｜DSML｜parameter>\n\
             <｜DSML｜parameter name=\"days\" string=\"false\">{days}</｜DSML｜parameter>\n\
             </｜DSML｜invoke>\n</｜DSML｜function_calls>"
        ),
        Family::Glm => format!(
            "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n\
             <arg_key>days</arg_key>\n<arg_value>{days}</arg_value>\n</tool_call>"
        ),
        Family::Kimi => format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>\
             {{\"city\": \"Oslo\", \"days\": {days}}}<|tool_call_end|><|tool_calls_section_end|>"
        ),
        Family::MiniMax => format!(
            "<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Oslo</parameter>\n\
             <parameter name=\"days\">{days}</parameter>\n</invoke>\n</minimax:tool_call>"
        ),
        Family::MiniMaxM3 => {
            let m3 = "]<]minimax[>[";
            format!(
                "{m3}<tool_call>\n{m3}<invoke name=\"weather\">{m3}<city>Oslo{m3}</city>\
                 {m3}<days>{days}{m3}</days>\
                 {m3}</invoke>\n{m3}</tool_call>"
            )
        }
        Family::Gemma => {
            format!("<|tool_call>call:weather{{city:<|\"|>Oslo<|\"|>,days:{days}}}<tool_call|>")
        }
        Family::Cohere => format!(
            "<cofl:tool_calls><cofl:tool_call id=\"0\" name=\"weather\">\
             <cofl:value name=\"city\" type=\"raw\">Oslo</cofl:value>\
             <cofl:value name=\"days\" type=\"json\">{days}</cofl:value></cofl:tool_call></cofl:tool_calls>"
        ),
        other => panic!("{other:?} has no call here"),
    };
    (call("3"), call("true"))
}

fn families() -> impl Iterator<Item = Family> {
    Family::ALL.into_iter().filter(|&family| family != Family::GptOss)
}

#[test]
fn calls_stand_in_free_text() {
    for family in families() {
        let (call, wrong) = calls(family);
        let language = of_tools(&ToolsOptions::new(family));
        for (text, expected) in [
            (String::new(), true),
            ("It rains.".to_owned(), true),
            (call.clone(), true),
            (format!("Let me look. {call}"), true),
            (format!("{call}\n{call}\nDone."), true),
            (wrong.clone(), false),
            (format!("Let me look. {wrong}"), false),
            (call[..call.len() - 1].to_owned(), false),
            (call.replace("weather", "wether"), false),
        ] {
            assert_eq!(is_sentence(&language, &text), expected, "{family:?}: {text}");
        }
    }
}

#[test]
fn the_choice_says_how_many_calls_there_are() {
    for family in families() {
        let (call, _) = calls(family);
        let with = |tool_choice: &str, parallel_tool_calls: bool| {
            let tool_choice = tool_choice.to_owned();
            of_tools(&ToolsOptions { tool_choice, parallel_tool_calls, ..ToolsOptions::new(family) })
        };
        let two = format!("{call}{call}");
        let one = r#"{"type":"function","function":{"name":"weather"}}"#;
        let other = r#"{"type":"function","function":{"name":"now"}}"#;
        let allowed = r#"{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[
            {"type":"function","function":{"name":"now"}}]}}"#;
        for (choice, parallel, text, expected) in [
            ("\"none\"", true, "It rains.", true),
            ("\"none\"", true, &*call, false),
            ("\"required\"", true, "It rains.", false),
            ("\"required\"", true, &*call, true),
            ("\"required\"", false, &*call, true),
            ("\"required\"", false, &*two, false),
            ("\"auto\"", false, &*call, true),
            ("\"auto\"", false, &*two, false),
            (one, true, &*call, true),
            (one, true, &*two, false),
            (other, true, &*call, false),
            (allowed, true, &*call, false),
            (allowed, true, "It rains.", true),
        ] {
            let is = is_sentence(&with(choice, parallel), text);
            assert_eq!(is, expected, "{family:?}, {choice}, {parallel}: {text}");
        }
    }
}

#[test]
fn names_and_choices_that_there_are_not() {
    let error = |tools: &str, choice: &str| {
        let tool_choice = choice.to_owned();
        let options = ToolsOptions { tool_choice, ..ToolsOptions::new(Family::Llama) };
        tag(tools, &options).unwrap_err().to_string()
    };
    assert_eq!(
        error(TOOLS, r#"{"type":"function","function":{"name":"x"}}"#),
        "tool_choice names `x`, and there is no such tool"
    );
    assert_eq!(error("[]", "\"required\""), "a call is required, and there is no tool");
    assert!(error("{}", "\"auto\"").contains("a list"));
    assert!(error(r#"[{"type":"web_search"}]"#, "\"auto\"").starts_with("/0: "));
    assert!(error(r#"[{"name":"a b"}]"#, "\"auto\"").starts_with("/0: "));
    assert!(error(r#"[{"name":"a"},{"name":"a"}]"#, "\"auto\"").starts_with("/1: "));
    assert!(error(TOOLS, "\"sometimes\"").contains("\"sometimes\""));
    assert!(Family::by_name("lama").unwrap_err().to_string().contains("llama, hermes, qwen"));
    for family in Family::ALL {
        assert!(family.names().iter().all(|name| Family::by_name(name) == Ok(family)));
    }
}
