//! Styles that nest at all depths: one schema, one value, written as each of them has it.

use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

use super::{check, matcher};

/// A trip: stops with tags, a note, and a trip behind it.
const TRIP: &str = r##"{"type":"object","properties":{
    "name":{"type":"string"},
    "days":{"type":"integer"},
    "stops":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"object","properties":{
        "town":{"type":"string","maxLength":9},"tags":{"type":"array","items":{"enum":["sea","hill",3]}}},
        "required":["town"]}},
    "note":{"anyOf":[{"type":"null"},{"type":"string"}]},
    "next":{"$ref":"#/$defs/trip"}
  },"required":["name","stops"],
  "$defs":{"trip":{"type":"object","properties":{"name":{"type":"string"},"next":{"$ref":"#/$defs/trip"}},
    "required":["name"]}}}"##;

fn style(name: &str, schema: &str) -> String {
    format!(r#"{{"type":"json_schema","style":"{name}","json_schema":{schema}}}"#)
}

#[test]
fn cohere() {
    let value = |name: &str, kind: &str, value: &str| {
        let name = if name.is_empty() { String::new() } else { format!(" name=\"{name}\"") };
        format!("<cofl:value{name} type=\"{kind}\">{value}</cofl:value>")
    };
    let (name, days) = (value("name", "raw", "A \"trip\" <b>"), value("days", "json", "3"));
    let tags = |tags: &str| value("tags", "list", tags);
    let town = value("town", "raw", "Oslo");
    let stop = |tags: &str| value("", "dict", &format!("{town}{tags}"));
    let both = tags(&format!("{}{}", value("", "raw", "sea"), value("", "json", "3")));
    let stops = |stops: &str| value("stops", "list", stops);
    let one = stops(&stop(""));
    let two = stops(&format!("{}\n{}", stop(&both), stop(&tags(""))));
    let next = value("next", "dict", &value("name", "raw", "x"));
    let deep = value("next", "dict", &format!("{}{next}", value("name", "raw", "y")));
    let (null, note) = (value("note", "json", "null"), value("note", "raw", "null"));
    let yes = [
        format!("{name}{one}"),
        format!("{name}\n{days}\n{two}\n"),
        format!("{name}{one}{null}"),
        format!("{name}{one}{note}{deep}"),
    ];
    let no = [
        one.clone(),
        format!("{one}{name}"),
        format!("{name}{}", stops("")),
        format!("{name}{}", stops(&stop("").repeat(3))),
        format!("{name}{}", stops(&value("", "raw", "Oslo"))),
        format!("{name}{}", stops(&value("", "json", r#"{"town":"Oslo"}"#))),
        format!("{name}{}{one}", value("days", "raw", "3")),
        format!("{name}{}{one}", value("days", "json", "x")),
        format!("{name}{one}{}", value("next", "dict", "")),
        format!("{name}{}", one.replace("Oslo", "Longyearbyen")),
        format!("{name}{}", two.replace("sea", "lake")),
        format!("{name}{}", two.replace("\"json\">3", "\"raw\">3")),
    ];
    check(&style("cohere_xml", TRIP), &as_texts(&yes), &as_texts(&no));
    let any = [value("a", "json", r#"{"x":[1]}"#), String::new(), value("a", "json", "\"x\"").repeat(2)];
    check(&style("cohere_xml", r#"{"type":"object"}"#), &as_texts(&any), &[&value("a", "raw", "x")]);
    let any_order = style("cohere_xml", TRIP).replace("\"style\"", "\"any_order\":true,\"style\"");
    check(&any_order, &[&format!("{one}{days}{name}")], &[&format!("{one}{days}{one}{name}")]);
}

fn as_texts(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

#[test]
fn minimax_m3() {
    let element = |name: &str, value: &str| format!("]<]minimax[>[<{name}>{value}]<]minimax[>[</{name}>");
    let name = element("name", "A \"trip\" <b>");
    let stop = |tags: &str| element("item", &format!("{}{tags}", element("town", "Oslo")));
    let tags = element("tags", &(element("item", "sea") + &element("item", "3")));
    let one = element("stops", &stop(""));
    let two = element("stops", &format!("{}\n{}", stop(&tags), stop("")));
    let next = element("next", &(element("name", "y") + &element("next", &element("name", "z"))));
    let yes = [
        format!("{name}{one}"),
        format!("{name}\n{}{two}{}{next}", element("days", "3"), element("note", "null")),
    ];
    let no = [
        name.clone(),
        format!("{name}{}", element("stops", "")),
        format!("{name}{}", element("stops", r#"[{"town":"Oslo"}]"#)),
        format!("{name}{}{one}", element("days", "x")),
        format!("{name}{}", one.replace("</town>", "</tawn>")),
        format!("{}{one}", element("name", &element("b", ""))),
    ];
    check(&style("minimax_m3_xml", TRIP), &as_texts(&yes), &as_texts(&no));
    let any = [element("a", "1") + &element("b", "x y"), String::new()];
    check(&style("minimax_m3_xml", r#"{"type":"object"}"#), &as_texts(&any), &["x"]);
}

#[test]
fn gemma() {
    // The keys are in the order of the alphabet.
    let text = |text: &str| format!("<|\"|>{text}<|\"|>");
    let stop = format!("{{tags:[{},3],town:{}}}", text("sea"), text("Oslo"));
    let bare = format!("{{town:{}}}", text("Oslo"));
    let name = format!("name:{}", text("A \"trip\", {b}"));
    let yes = [
        format!("{{{name},stops:[{bare}]}}"),
        format!("{{days:3,{name},next:{{name:{}}},note:null,stops:[{stop},{bare}]}}", text("")),
        format!("{{{name},note:{},stops:[{{tags:[],town:{}}}]}}", text("null"), text("x")),
    ];
    let no = [
        format!("{{{name}}}"),
        format!("{{{name},}}"),
        format!("{{stops:[{bare}],{name}}}"),
        format!("{{{name},stops:[]}}"),
        format!("{{{name},stops:[{bare},{bare},{bare}]}}"),
        format!("{{\"name\":\"x\",stops:[{bare}]}}"),
        format!("{{,{name},stops:[{bare}]}}"),
        format!("{{{name},stops:[{bare} ]}}"),
        format!("{{{name},stops:[{{town:{}}}]}}", text("Longyearbyen")),
        format!("{{name:{},stops:[{bare}]}}", text("<tool_call|>")),
    ];
    check(&style("gemma", TRIP), &as_texts(&yes), &as_texts(&no));
    let any = [format!("{{a:[1,{},{{}}],b:true}}", text("x")), "{}".to_owned()];
    check(&style("gemma", r#"{"type":"object"}"#), &as_texts(&any), &["{a:x}", "{a:1", "[]"]);
}

#[test]
fn marks_that_are_special_tokens() {
    // Here the mark around strings is one token, which has no bytes.
    let special = SpecialIds { eos: vec![5], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(["{a:", "x", "}", "\"", "", ""], special).unwrap();
    let vocabulary = vocabulary.with_names([(4, "<|\"|>")]).unwrap();
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#;
    let format = style("gemma", schema).replace("\"style\"", "\"special_tokens\":[\"<|\\\"|>\"],\"style\"");
    let mut matcher = matcher(&format, vocabulary);
    for (token, allowed) in
        [(0, &[0][..]), (4, &[4]), (1, &[0, 1, 2, 3, 4]), (4, &[0, 1, 2, 3, 4]), (2, &[2])]
    {
        let mask = matcher.mask().unwrap();
        assert_eq!(mask.iter().map(|token| token.0).collect::<Vec<u32>>(), allowed);
        matcher.advance(TokenId(token)).unwrap();
    }
    assert!(matcher.is_sentence());
}
