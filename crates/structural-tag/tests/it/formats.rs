//! Cases for every format and option, with texts that belong to it and texts that do not; and what is
//! refused, by its place.

use anygram_structural_tag::{Kind, Options, grammar};

use super::{check, language};

#[test]
fn basic_formats() {
    check(r#"{"type":"const_string","value":"a\n\"é"}"#, &["a\n\"é"], &["", "a\n\"", "a\n\"éé"]);
    check(r#"{"type":"const_string","value":""}"#, &[""], &["a"]);
    check(r#"{"type":"regex","pattern":"[a-c]{2,3}|\\d"}"#, &["ab", "abc", "7"], &["", "a", "abcd", "77"]);
    check(
        r#"{"type":"grammar","grammar":"root ::= \"(\" root \")\" | [0-9]+"}"#,
        &["7", "((42))"],
        &["", "(7", "()"],
    );
}

#[test]
fn schemas_stand_in_the_order_of_the_schema() {
    const SCHEMA: &str = r#"{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"string"}},
        "required":["b"],"additionalProperties":false}"#;
    let format = |more: &str| format!(r#"{{"type":"json_schema","json_schema":{SCHEMA}{more}}}"#);
    let (ordered, reversed, spread) = (r#"{"b":1,"a":""}"#, r#"{"a":"","b":1}"#, "{\"b\":   1}");
    check(&format(""), &[ordered, spread, r#"{"b":1}"#], &[reversed, r#"{"a":""}"#, r#"{"b":1,"b":1}"#]);
    check(&format(r#","any_order":true"#), &[ordered, reversed], &[r#"{"a":""}"#, r#"{"b":1,"b":1}"#]);
    check(&format(r#","max_whitespace_cnt":1"#), &[ordered, "{\"b\": 1}"], &[spread]);
    check(&format(r#","style":"json","excludes":[],"max_whitespace_cnt":null"#), &[ordered, spread], &[]);
    check(r#"{"type":"json_schema","json_schema":true}"#, &["1", "[{}]"], &["", "x"]);
    // Keys and items differ, and what is free text may repeat them.
    let unique = r#"{"type":"json_schema","json_schema":{"uniqueItems":true}}"#;
    check(unique, &["[1,2]", r#"{"a":1,"b":1}"#], &["[1,1.0]", "[{},{}]", r#"{"a":1,"a":1}"#]);
    let either = format!(r#"{{"type":"or","elements":[{unique},{{"type":"any_text","excludes":["}}"]}}]}}"#);
    check(&either, &["[1,1]", r#"{"a":1}"#, r#"{"a":1,"a":1"#], &[r#"{"a":1,"a":1}"#]);
    let recursive = r##"{"type":"json_schema","json_schema":{"type":"array","items":{"$ref":"#"}}}"##;
    check(recursive, &["[]", "[[],[[]]]"], &["[1]"]);
}

#[test]
fn free_text() {
    let excludes = r#"{"type":"any_text","excludes":["aba","bb"]}"#;
    check(excludes, &["", "ab", "ba", "a\u{10ffff}"], &["aba", "xabay", "abb"]);
    let short = r#"{"type":"any_text","excludes":["é!"],"max_chars":2}"#;
    check(short, &["", "é", "日本", "!é"], &["é!", "aaa", "é!é"]);
    check(r#"{"type":"any_text","max_chars":0}"#, &[""], &["a"]);
    let many = r#"{"type":"any_text","max_chars":100000}"#;
    check(many, &[&"é".repeat(100_000)], &[&"é".repeat(100_001)]);
}

#[test]
fn bytes_that_are_no_text_are_free_text_unless_characters_are_counted() {
    for (format, expected) in [
        (r#"{"type":"any_text","excludes":["x"]}"#, true),
        (r#"{"type":"any_text","excludes":["x"],"max_chars":9}"#, false),
    ] {
        for text in [b"\xff".as_slice(), b"a\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80"] {
            assert_eq!(super::of_format(format).read(text).unwrap().is_sentence, expected, "{text:?}");
        }
    }
}

#[test]
fn characters_that_cannot_end_do_not_begin() {
    // All characters that begin with the byte 0xc3 are excluded, so that byte is no beginning.
    let all: Vec<String> = ('\u{c0}'..='\u{ff}').map(|c| format!("{c:?}").replace('\'', "\"")).collect();
    let format = format!(r#"{{"type":"any_text","max_chars":5,"excludes":[{}]}}"#, all.join(","));
    let language = super::of_format(&format);
    assert!(!language.read(b"\xc3").unwrap().is_viable && language.read(b"\xc2").unwrap().is_viable);
}

#[test]
fn combinations() {
    let of = |more: &str| format!(r#"{{"type":{more},"content":{{"type":"const_string","value":"ab"}}}}"#);
    check(&of(r#""optional""#), &["", "ab"], &["abab"]);
    check(&of(r#""plus""#), &["ab", "ababab"], &["", "aba"]);
    check(&of(r#""star""#), &["", "abab"], &["aba"]);
    check(&of(r#""repeat","min":2,"max":3"#), &["abab", "ababab"], &["", "ab", "abababab"]);
    check(&of(r#""repeat","min":0,"max":0"#), &[""], &["ab"]);
    check(&of(r#""repeat","min":1,"max":-1"#), &["ab", "abab"], &[""]);
    for (min, max) in [(0, 1), (0, 6), (1, 7), (3, 8), (5, 5), (7, 20), (16, 33), (0, 31), (0, 32)] {
        let format = of(&format!(r#""repeat","min":{min},"max":{max}"#));
        let language = super::of_format(&format);
        for n in 0..40 {
            let is = language.read("ab".repeat(n).as_bytes()).unwrap().is_sentence;
            assert_eq!(is, (min..=max).contains(&n), "{n} times in {min}..={max}");
        }
    }
    let parts = r#"[{"type":"const_string","value":"a"},{"type":"const_string","value":"b"}]"#;
    check(&format!(r#"{{"type":"sequence","elements":{parts}}}"#), &["ab"], &["a", "b", "ba"]);
    check(&format!(r#"{{"type":"or","elements":{parts}}}"#), &["a", "b"], &["", "ab"]);
}

#[test]
fn a_million_times_without_a_million_rules() {
    let format =
        r#"{"type":"repeat","min":1000000,"max":2000000,"content":{"type":"regex","pattern":"[a-z]"}}"#;
    let tag = format!(r#"{{"format":{format}}}"#);
    assert!(grammar(&tag, &Options::default()).unwrap().rules.len() < 200);
}

#[test]
fn tags_end_with_any_of_their_ends() {
    let tag = r#"{"type":"tag","begin":"<a>","content":{"type":"any_text"},"end":["</a>","<b>"]}"#;
    check(tag, &["<a></a>", "<a>x</<b>"], &["<a>", "<a></a></a>", "<a><b></a>", "x<a></a>"]);
    check(
        r#"{"type":"tag","begin":"","content":{"type":"const_string","value":"x"},"end":["","!"]}"#,
        &["x", "x!"],
        &["", "x!!"],
    );
    // The nearest tag counts, also through other formats, and it only.
    let nested = r#"{"type":"tag","begin":"<a>","content":{"type":"sequence","elements":[
        {"type":"tag","begin":"<b>","content":{"type":"any_text"},"end":"</b>"},
        {"type":"any_text"}]},"end":"</a>"}"#;
    check(nested, &["<a><b></a></b>x</a>", "<a><b></b></b></a>"], &["<a><b></b></a></a>"]);
}

const CALLS: &str = r#""triggers":["<f="],"tags":[
    {"begin":"<f=g>","content":{"type":"const_string","value":"1"},"end":"</f>"},
    {"begin":"<f=h>","content":{"type":"const_string","value":"2"},"end":"</f>"}]"#;

#[test]
fn triggered_tags() {
    let of = |more: &str| format!(r#"{{"type":"triggered_tags",{CALLS}{more}}}"#);
    let (g, h, wrong, other) = ("<f=g>1</f>", "<f=h>2</f>", "<f=g>2</f>", "<f=i>1</f>");
    let (two, text) = (format!("x {g}{h} y"), "x <f y");
    check(&of(""), &["", text, g, &two], &[wrong, other, "x <f=", "<f=g>1"]);
    check(&of(r#","stop_after_first":true"#), &["", text, g, &format!("x{g}")], &[&two, &format!("{g} x")]);
    let one = of(r#","at_least_one":true"#);
    check(&one, &[g, &format!("{g} x {h}")], &["", text, &two, &format!("x{g}")]);
    let first = of(r#","at_least_one":true,"stop_after_first":true"#);
    check(&first, &[g, h], &["", &two, &format!("{g}{h}")]);
    check(&of(r#","excludes":["y"]"#), &["x", g], &["y", &two]);
    // The end of the tag around is not free text either.
    let around = format!(r#"{{"type":"tag","begin":"(","content":{},"end":")"}}"#, of(""));
    check(&around, &["()", "(x<f=g>1</f>y)"], &["(x)y)", "(x"]);
}

#[test]
fn triggers_that_overlap() {
    // Free text ends where the first trigger ends; where several do, each of them counts.
    let of = |triggers: &str, begins: [&str; 2]| {
        let tag = |begin| {
            format!(r#"{{"begin":"{begin}","content":{{"type":"const_string","value":""}},"end":"!"}}"#)
        };
        format!(
            r#"{{"type":"triggered_tags","triggers":{triggers},"tags":[{},{}]}}"#,
            tag(begins[0]),
            tag(begins[1])
        )
    };
    // One begins the other.
    check(&of(r#"["<a","<ab"]"#, ["<a.", "<ab."]), &["x<a.!", "<ab.!y", "<b"], &["<a", "<ac.!", "<a.!<ab"]);
    // One ends with the other.
    check(&of(r#"["ab","b"]"#, ["ab1", "b2"]), &["ab1!", "ab2!", "b2!", "xab2!"], &["b1!", "b"]);
    // The beginning of one is the end of the other.
    check(&of(r#"["xa","ab"]"#, ["xa1", "ab2"]), &["xa1!", "ab2!", "yab2!"], &["xab2!"]);
}

#[test]
fn tags_with_separator() {
    const TAGS: &str = r#""separator":", ","tags":[
        {"begin":"<","content":{"type":"regex","pattern":"[ab]"},"end":">"}]"#;
    let of = |more: &str| format!(r#"{{"type":"tags_with_separator",{TAGS}{more}}}"#);
    check(&of(""), &["", "<a>", "<a>, <b>, <a>"], &["<a>,", "<a>, ", "<a><b>", ", <a>"]);
    check(&of(r#","at_least_one":true"#), &["<a>", "<a>, <b>"], &[""]);
    check(&of(r#","stop_after_first":true"#), &["", "<a>"], &["<a>, <b>"]);
    check(&of(r#","at_least_one":true,"stop_after_first":true"#), &["<a>"], &["", "<a>, <b>"]);
}

#[test]
fn dispatch() {
    const RULES: &str = r#""rules":[["<a>",{"type":"const_string","value":"1"}],
        ["<b>",{"type":"const_string","value":"2"}],["<a>",{"type":"const_string","value":"3"}]]"#;
    let of = |more: &str| format!(r#"{{"type":"dispatch",{RULES}{more}}}"#);
    check(&of(""), &["", "x<a>1y<b>2<a>3"], &["<a>2", "<a>", "x<b>"]);
    check(&of(r#","loop":false"#), &["x", "x<a>1", "<a>3"], &["<a>1y", "<a>1<a>1"]);
    check(&of(r#","excludes":["</x>"]"#), &["</x", "<a>1"], &["</x>", "<a>1</x>"]);
    // Of the tag around nothing is known.
    let around = format!(r#"{{"type":"tag","begin":"(","content":{},"end":")"}}"#, of(""));
    check(&around, &["()", "())", "(<a>1))"], &["(x"]);
}

#[test]
fn the_older_notation() {
    const TAG: &str = r#"{"type":"structural_tag","triggers":["<f"],"structures":[
        {"begin":"<f>","schema":{"type":"integer"},"end":"</f>"},
        {"begin":"<fs>","schema":"{\"enum\":[\"a\"]}","end":"</f>"}]}"#;
    let language = super::language(TAG).unwrap();
    for (text, expected) in
        [("so <f>12</f>.", true), ("<fs>\"a\"</f><f>0</f>", true), ("<f>x</f>", false), ("<f", false)]
    {
        assert_eq!(language.read(text.as_bytes()).unwrap().is_sentence, expected, "{text}");
    }
}

#[test]
fn members_between_marks() {
    const SCHEMA: &str = r##"{"type":"object","$defs":{"point":{"type":"object",
        "properties":{"x":{"type":"integer"}},
        "additionalProperties":false}},"properties":{"s":{"type":"string","description":"d"},
        "n":{"type":"integer"},
        "e":{"enum":["u","v",7]},"o":{"anyOf":[{"type":"string","maxLength":2},{"type":"null"}]},
        "p":{"$ref":"#/$defs/point"}},"required":["s"]}"##;
    let of = |style: &str| format!(r#"{{"type":"json_schema","style":"{style}","json_schema":{SCHEMA}}}"#);
    let member = |style: &str, key: &str, value: &str| match style {
        "qwen_xml" => format!("<parameter={key}>{value}</parameter>\n"),
        "minimax_xml" => format!("<parameter name=\"{key}\">{value}</parameter> "),
        "glm_xml" => format!("<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>"),
        "deepseek_xml" | "deepseek_v4_1_xml" => {
            let is_string = matches!(key, "s") || matches!(value, "u" | "v" | "é!" | "123" | "abc");
            let blank = if style == "deepseek_xml" { "" } else { " " };
            let name = format!("｜DSML｜{blank}parameter");
            format!("<{name} name=\"{key}\" string=\"{is_string}\">{value}</{name}>")
        }
        _ => {
            let kind = match (key, value) {
                ("s", _) | (_, "u" | "v" | "é!" | "123" | "abc") => "string",
                (_, "null") => "null",
                ("p", _) => "object",
                _ => "number",
            };
            format!("<|open|>argument key=\"{key}\" type=\"{kind}\"<|sep|>{value}<|close|>argument<|sep|>")
        }
    };
    for style in ["qwen_xml", "minimax_xml", "glm_xml", "deepseek_xml", "deepseek_v4_1_xml", "kimi_k3_xml"] {
        let with = |members: &[(&str, &str)]| -> String {
            members.iter().map(|(key, value)| member(style, key, value)).collect()
        };
        let texts =
            |all: &[&[(&str, &str)]]| -> Vec<String> { all.iter().map(|members| with(members)).collect() };
        let yes = texts(&[
            &[("s", "any \"<text>\"\n")],
            &[("s", "")],
            &[("s", "a"), ("n", " 12 "), ("e", "u"), ("o", "é!"), ("p", "{\"x\": 3}")],
            &[("s", "a"), ("e", "7"), ("o", "null")],
        ]);
        let no = texts(&[
            &[],
            &[("n", "1")],
            &[("s", "a"), ("n", "1.5")],
            &[("s", "a"), ("s", "a")],
            &[("n", "1"), ("s", "a")],
            &[("s", "a"), ("e", "w")],
            &[("s", "a"), ("o", "abc")],
            &[("s", "a"), ("p", "{\"y\":3}")],
            &[("s", "a"), ("q", "1")],
        ]);
        let strs = |texts: &[String]| -> Vec<String> { texts.to_vec() };
        let (yes, no) = (strs(&yes), strs(&no));
        let yes: Vec<&str> = yes.iter().map(String::as_str).collect();
        let no: Vec<&str> = no.iter().map(String::as_str).collect();
        check(&of(style), &yes, &no);
    }
    let any = of("qwen_xml").replace("\"style\"", "\"any_order\":true,\"style\"");
    let (s, n) = ("<parameter=s>x</parameter>", "<parameter=n>1</parameter>");
    let (both, turned) = (format!("{s}{n}"), format!(" {n}\n{s}"));
    check(&any, &[s, &both, &turned], &["", n, &format!("{s}{n}{s}"), &format!("{n}{n}{s}")]);
    let none = any.replace("\"required\":[\"s\"]", "\"required\":[]");
    check(&none, &["", " ", s, n, &turned], &[&format!("{n}{n}")]);
    let old = format!(r#"{{"type":"qwen_xml_parameter","json_schema":{SCHEMA}}}"#);
    check(&old, &["<parameter=s>x</parameter>"], &["<parameter=s>x"]);
    let any = r#"{"type":"json_schema","style":"glm_xml","json_schema":{"type":"object"}}"#;
    check(any, &["", "\n<arg_key>a</arg_key><arg_value>x</arg_value>\n"], &["<arg_key>a</arg_key>"]);
    let none = r#"{"type":"json_schema","style":"glm_xml","json_schema":{"type":"object","properties":{}}}"#;
    check(none, &["", "\n "], &["<arg_key>a</arg_key><arg_value>x</arg_value>"]);
}

#[test]
fn refusals_say_where_and_what() {
    for (format, kind, at, word) in [
        ("7", Kind::Syntax, "/format", "object"),
        ("{}", Kind::Syntax, "/format", "`type`"),
        (r#"{"type":"anytext"}"#, Kind::Syntax, "/format/type", "any_text"),
        (r#"{"type":"any_text","exclude":[]}"#, Kind::Syntax, "/format/exclude", "excludes"),
        (r#"{"type":"any_text","excludes":[""]}"#, Kind::Syntax, "/format/excludes/0", "empty"),
        (r#"{"type":"any_text","max_chars":-1}"#, Kind::Syntax, "/format/max_chars", "count"),
        (r#"{"type":"any_text","max_tokens":"5"}"#, Kind::Syntax, "/format/max_tokens", "count"),
        (r#"{"type":"sequence","elements":[]}"#, Kind::Syntax, "/format/elements", "at least one"),
        (r#"{"type":"regex","pattern":"a("}"#, Kind::Syntax, "/format/pattern", ""),
        (r#"{"type":"regex","pattern":"a(?=b)"}"#, Kind::Unsupported, "/format/pattern", ""),
        (r#"{"type":"grammar","grammar":"root ::= x"}"#, Kind::Syntax, "/format/grammar", "x"),
        (
            r#"{"type":"json_schema","json_schema":{"type":"strin"}}"#,
            Kind::Syntax,
            "/format/json_schema/type",
            "strin",
        ),
        (
            r#"{"type":"json_schema","json_schema":true,"style":"cohere_xml","excludes":["a"]}"#,
            Kind::Unsupported,
            "/format/excludes",
            "",
        ),
        (
            r#"{"type":"json_schema","json_schema":{"type":"object","properties":{"a":{"type":"array",
                "uniqueItems":true}}},"style":"cohere_xml"}"#,
            Kind::Unsupported,
            "/format/json_schema/properties/a/uniqueItems",
            "uniqueItems",
        ),
        (
            r#"{"type":"json_schema","json_schema":{"type":"object","properties":{"a>":{"type":"null"}}},
                "style":"minimax_m3_xml"}"#,
            Kind::Unsupported,
            "/format/json_schema/properties/a>",
            "key",
        ),
        (
            r#"{"type":"json_schema","json_schema":{"type":"object","properties":{"a":{"const":"<|\"|>"}}},
                "style":"gemma"}"#,
            Kind::Unsupported,
            "/format/json_schema/properties/a",
            "mark",
        ),
        (
            r##"{"type":"json_schema","json_schema":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},
                "$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}},"style":"gemma"}"##,
            Kind::Unsupported,
            "/format/json_schema/$defs/a/anyOf/0/$ref",
            "",
        ),
        (
            r#"{"type":"json_schema","json_schema":{"type":"object"},"style":"qwen_xml",
                "special_tokens":["</parameter>"]}"#,
            Kind::Unsupported,
            "/format/json_schema",
            "marks that are texts",
        ),
        (
            r#"{"type":"json_schema","json_schema":true,"special_tokens":["<x>"]}"#,
            Kind::Syntax,
            "/format/special_tokens",
            "",
        ),
        (
            r#"{"type":"json_schema","json_schema":true,"style":"x"}"#,
            Kind::Syntax,
            "/format/style",
            "qwen_xml",
        ),
        (
            r#"{"type":"json_schema","style":"glm_xml","json_schema":{"type":"object",
                "properties":{"a/b":{"type":"string","pattern":"x"}}}}"#,
            Kind::Unsupported,
            "/format/json_schema/properties/a~1b/pattern",
            "pattern",
        ),
        (
            r#"{"type":"json_schema","style":"glm_xml","json_schema":{"type":"object","minProperties":1}}"#,
            Kind::Unsupported,
            "/format/json_schema/minProperties",
            "",
        ),
        (
            r#"{"type":"repeat","min":3,"max":2,"content":{"type":"any_text"}}"#,
            Kind::Syntax,
            "/format/max",
            "3",
        ),
        (r#"{"type":"token","token":"x"}"#, Kind::Unsupported, "", "x"),
        (
            r#"{"type":"triggered_tags","triggers":["<"],"tags":[{"begin":"(",
                "content":{"type":"any_text"},"end":")"}]}"#,
            Kind::Syntax,
            "/format/tags/0/begin",
            "no trigger",
        ),
        (
            r#"{"type":"triggered_tags","triggers":["<"],"tags":[{"begin":{"token":3},
                "content":{"type":"any_text"},"end":")"}]}"#,
            Kind::Syntax,
            "/format/tags/0/begin",
            "token",
        ),
        (
            r#"{"type":"triggered_tags","triggers":["x<y","<"],"tags":[{"begin":"x<y",
                "content":{"type":"any_text"},"end":")"}]}"#,
            Kind::Unsatisfiable,
            "/format/tags/0/begin",
            "x<y",
        ),
        (
            r#"{"type":"triggered_tags","triggers":["x"],"excludes":["x"],"tags":[{"begin":"x",
                "content":{"type":"any_text"},"end":")"}]}"#,
            Kind::Unsatisfiable,
            "/format/tags/0/begin",
            "\"x\"",
        ),
        (
            r#"{"type":"dispatch","rules":[["",{"type":"any_text"}]]}"#,
            Kind::Syntax,
            "/format/rules/0/0",
            "empty",
        ),
        (
            r#"{"type":"dispatch","rules":[["ab",{"type":"any_text"}],["a",{"type":"any_text"}]]}"#,
            Kind::Unsatisfiable,
            "/format/rules",
            "ab",
        ),
    ] {
        let refusal = grammar(&format!(r#"{{"format":{format}}}"#), &Options::default()).unwrap_err();
        assert_eq!((refusal.kind, &*refusal.at), (kind, at), "{format}: {refusal}");
        assert!(refusal.message.contains(word), "{format}: {refusal}");
    }
    for whole in
        ["", "[]", r#"{"type":"x","format":{"type":"any_text"}}"#, r#"{"format":{"type":"any_text"},"x":1}"#]
    {
        assert_eq!(grammar(whole, &Options::default()).unwrap_err().kind, Kind::Syntax, "{whole}");
    }
}

/// `excludes`: no string and no name holds one of the texts, at any depth and however it is spelled.
#[test]
fn texts_are_kept_out_of_strings_and_names() {
    let any = r#"{"type":"json_schema","json_schema":true,"excludes":["<|","a.b"]}"#;
    let yes = [r#""a<b|""#, r#"{"axb": ["a", {"": "b.a"}]}"#, "[12, true]", r#""a\u003c""#];
    let no = [
        r#""x<|y""#,
        r#""x\u003c|""#,
        r#""x\u003C\u007c""#,
        r#"["a.b"]"#,
        r#"{"k": [["a.b"]]}"#,
        r#"{"a.b": 1}"#,
        r#"{"k": {"<|": 1}}"#,
    ];
    check(any, &yes, &no);
    // What the schema says holds too, with its own references.
    let listed = r##"{"type":"json_schema","excludes":["b"],"json_schema":{"$ref":"#/$defs/o","$defs":{
        "o":{"type":"object","properties":{"a":{"enum":["ab","a",7]},"b":{"type":"integer"},
        "c":{"type":"string","pattern":"^[abc]{2}$"}},"required":["a"],"additionalProperties":false}}}}"##;
    check(
        listed,
        &[r#"{"a": "a"}"#, r#"{"a": 7, "c": "ac"}"#],
        &[r#"{"a": "ab"}"#, r#"{"a": "a", "b": 1}"#, r#"{"a": 7, "c": "bc"}"#, r#"{"c": "ac"}"#],
    );
    let styled = r#"{"type":"json_schema","style":"qwen_xml","excludes":["<|","kk"],"json_schema":{
        "type":"object","properties":{"s":{"type":"string"},"kkk":{"type":"string"},
        "e":{"enum":["x<|","y"]},"l":{"type":"array","items":{"type":"string"}}},"required":["s"]}}"#;
    let member = |key: &str, value: &str| format!("<parameter={key}>{value}</parameter>");
    check(
        styled,
        &[
            &member("s", "a<b|"),
            &(member("s", "") + &member("e", "y")),
            &(member("s", "") + &member("l", r#"["<"]"#)),
        ],
        &[
            &member("s", "a<|b"),
            &(member("s", "") + &member("kkk", "")),
            &(member("s", "") + &member("e", "x<|")),
            &(member("s", "") + &member("l", r#"["<|"]"#)),
        ],
    );
    let names =
        r#"{"type":"json_schema","style":"qwen_xml","excludes":["<|","kk"],"json_schema":{"type":"object"}}"#;
    check(
        names,
        &[&member("k", "a"), &(member("k", "<") + &member("kak", "|"))],
        &[&member("akka", "a"), &member("k", "<|"), &(member("k", "") + &member("k", ""))],
    );
    for (tag, at) in [
        (r#"{"type":"json_schema","excludes":["a"],"json_schema":{"const":"xax"}}"#, "/format/json_schema"),
        (
            r#"{"type":"json_schema","style":"qwen_xml","excludes":["a"],"json_schema":
                {"type":"object","properties":{"bab":{"type":"string"}},"required":["bab"]}}"#,
            "/format/json_schema/properties/bab",
        ),
        (
            r#"{"type":"json_schema","excludes":["a"],"json_schema":{"type":"object","minLength":"x"}}"#,
            "/format/json_schema",
        ),
    ] {
        let refusal = language(&format!(r#"{{"format":{tag}}}"#)).unwrap_err();
        assert!(refusal.at.starts_with(at), "{refusal:?}");
    }
}
