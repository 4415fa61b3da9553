//! Properties of Unicode, `\p{…}`, as ECMA-262 names them (22.2.2.9, tables 67 to 69): the exact names and
//! aliases, while the tables are those of `regex-syntax`, which would be lenient about names.

use regex_syntax::hir::ClassUnicode;

use super::classes;

/// What is behind a name.
pub(super) enum Property {
    /// The set.
    Class(ClassUnicode),
    /// ECMA-262 has the name, `regex-syntax` has no table.
    NoTable,
    /// ECMA-262 has no such name.
    Unknown,
}

/// The property that stands between the braces: `name=value`, or a general category or binary property alone.
pub(super) fn property(text: &str) -> Property {
    let (known, query) = match text.split_once('=') {
        Some(("General_Category" | "gc", value)) => (is_in(CATEGORIES, value), format!("gc={value}")),
        Some(("Script" | "sc", value)) => (is_in(SCRIPTS, value), format!("sc={value}")),
        Some(("Script_Extensions" | "scx", value)) => (is_in(SCRIPTS, value), format!("scx={value}")),
        Some(_) => return Property::Unknown,
        None if is_in(CATEGORIES, text) => (true, format!("gc={text}")),
        None => (is_in(BINARY, text), text.to_owned()),
    };
    match (known, query.as_str()) {
        (false, _) => Property::Unknown,
        // No text that we see has surrogates.
        (true, "gc=Cs" | "gc=Surrogate") => Property::Class(ClassUnicode::empty()),
        (true, query) => {
            classes::of_regex(&format!("\\p{{{query}}}")).map_or(Property::NoTable, Property::Class)
        }
    }
}

fn is_in(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

const CATEGORIES: &str = "\
    C Other Cc Control cntrl Cf Format Cn Unassigned Co Private_Use Cs Surrogate \
    L Letter LC Cased_Letter Ll Lowercase_Letter Lm Modifier_Letter Lo Other_Letter Lt Titlecase_Letter \
    Lu Uppercase_Letter M Mark Combining_Mark Mc Spacing_Mark Me Enclosing_Mark Mn Nonspacing_Mark \
    N Number Nd Decimal_Number digit Nl Letter_Number No Other_Number \
    P Punctuation punct Pc Connector_Punctuation Pd Dash_Punctuation Pe Close_Punctuation \
    Pf Final_Punctuation Pi Initial_Punctuation Po Other_Punctuation Ps Open_Punctuation \
    S Symbol Sc Currency_Symbol Sk Modifier_Symbol Sm Math_Symbol So Other_Symbol \
    Z Separator Zl Line_Separator Zp Paragraph_Separator Zs Space_Separator";

const BINARY: &str = "\
    ASCII ASCII_Hex_Digit AHex Alphabetic Alpha Any Assigned Bidi_Control Bidi_C Bidi_Mirrored Bidi_M \
    Case_Ignorable CI Cased Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM \
    Changes_When_Lowercased CWL Changes_When_NFKC_Casefolded CWKCF Changes_When_Titlecased CWT \
    Changes_When_Uppercased CWU Dash Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia \
    Emoji Emoji_Component EComp Emoji_Modifier EMod Emoji_Modifier_Base EBase Emoji_Presentation EPres \
    Extended_Pictographic ExtPict Extender Ext Grapheme_Base Gr_Base Grapheme_Extend Gr_Ext Hex_Digit Hex \
    IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS Ideographic Ideo \
    Join_Control Join_C Logical_Order_Exception LOE Lowercase Lower Math Noncharacter_Code_Point NChar \
    Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical Regional_Indicator RI \
    Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo \
    Uppercase Upper Variation_Selector VS White_Space space XID_Continue XIDC XID_Start XIDS";

const SCRIPTS: &str = "\
    Adlam Adlm Aghb Ahom Anatolian_Hieroglyphs Arab Arabic Armenian Armi Armn Avestan Avst Bali Balinese \
    Bamu Bamum Bass Bassa_Vah Batak Batk Beng Bengali Bhaiksuki Bhks Bopo Bopomofo Brah Brahmi Brai \
    Braille Bugi Buginese Buhd Buhid Cakm Canadian_Aboriginal Cans Cari Carian Caucasian_Albanian Chakma \
    Cham Cher Cherokee Chorasmian Chrs Common Copt Coptic Cpmn Cprt Cuneiform Cypriot Cypro_Minoan \
    Cyrillic Cyrl Deseret Deva Devanagari Diak Dives_Akuru Dogr Dogra Dsrt Dupl Duployan Egyp \
    Egyptian_Hieroglyphs Elba Elbasan Elym Elymaic Ethi Ethiopic Gara Garay Geor Georgian Glag \
    Glagolitic Gong Gonm Goth Gothic Gran Grantha Greek Grek Gujarati Gujr Gukh Gunjala_Gondi Gurmukhi \
    Guru Gurung_Khema Han Hang Hangul Hani Hanifi_Rohingya Hano Hanunoo Hatr Hatran Hebr Hebrew Hira \
    Hiragana Hluw Hmng Hmnp Hrkt Hung Imperial_Aramaic Inherited Inscriptional_Pahlavi \
    Inscriptional_Parthian Ital Java Javanese Kaithi Kali Kana Kannada Katakana Katakana_Or_Hiragana \
    Kawi Kayah_Li Khar Kharoshthi Khitan_Small_Script Khmer Khmr Khoj Khojki Khudawadi Kirat_Rai Kits \
    Knda Krai Kthi Lana Lao Laoo Latin Latn Lepc Lepcha Limb Limbu Lina Linb Linear_A Linear_B Lisu Lyci \
    Lycian Lydi Lydian Mahajani Mahj Maka Makasar Malayalam Mand Mandaic Mani Manichaean Marc Marchen \
    Masaram_Gondi Medefaidrin Medf Meetei_Mayek Mend Mende_Kikakui Merc Mero Meroitic_Cursive \
    Meroitic_Hieroglyphs Miao Mlym Modi Mong Mongolian Mro Mroo Mtei Mult Multani Myanmar Mymr Nabataean \
    Nag_Mundari Nagm Nand Nandinagari Narb Nbat New_Tai_Lue Newa Nko Nkoo Nshu Nushu \
    Nyiakeng_Puachue_Hmong Ogam Ogham Ol_Chiki Ol_Onal Olck Old_Hungarian Old_Italic Old_North_Arabian \
    Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Onao Oriya Orkh Orya \
    Osage Osge Osma Osmanya Ougr Pahawh_Hmong Palm Palmyrene Pau_Cin_Hau Pauc Perm Phag Phags_Pa Phli \
    Phlp Phnx Phoenician Plrd Prti Psalter_Pahlavi Qaac Qaai Rejang Rjng Rohg Runic Runr Samaritan Samr \
    Sarb Saur Saurashtra Sgnw Sharada Shavian Shaw Shrd Sidd Siddham SignWriting Sind Sinh Sinhala Sogd \
    Sogdian Sogo Sora Sora_Sompeng Soyo Soyombo Sund Sundanese Sunu Sunuwar Sylo Syloti_Nagri Syrc \
    Syriac Tagalog Tagb Tagbanwa Tai_Le Tai_Tham Tai_Viet Takr Takri Tale Talu Tamil Taml Tang Tangsa \
    Tangut Tavt Telu Telugu Tfng Tglg Thaa Thaana Thai Tibetan Tibt Tifinagh Tirh Tirhuta Tnsa Todhri \
    Todr Toto Tulu_Tigalari Tutg Ugar Ugaritic Unknown Vai Vaii Vith Vithkuqi Wancho Wara Warang_Citi \
    Wcho Xpeo Xsux Yezi Yezidi Yi Yiii Zanabazar_Square Zanb Zinh Zyyy Zzzz";

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that have no table here, the scripts among them not in `regress` either.
    const NO_TABLE: [&str; 10] = [
        "CWKCF",
        "Changes_When_NFKC_Casefolded",
        "sc=Hrkt",
        "sc=Katakana_Or_Hiragana",
        "sc=Unknown",
        "sc=Zzzz",
        "scx=Hrkt",
        "scx=Katakana_Or_Hiragana",
        "scx=Unknown",
        "scx=Zzzz",
    ];

    fn theirs(text: &str) -> Option<regress::Regex> {
        regress::Regex::with_flags(&format!("^\\p{{{text}}}$"), "u").ok()
    }

    #[test]
    fn names_are_those_that_regress_knows() {
        let scripts = |prefix: &'static str| SCRIPTS.split(' ').map(move |name| format!("{prefix}={name}"));
        let categories = CATEGORIES.split(' ').flat_map(|name| [name.to_owned(), format!("gc={name}")]);
        let binary = BINARY.split(' ').map(str::to_owned);
        let Property::Class(assigned) = property("Assigned") else { panic!() };
        let sample: Vec<char> = (0..0x3_2000).step_by(37).filter_map(char::from_u32).collect();
        let mut without = Vec::new();
        for name in binary.chain(categories).chain(scripts("sc")).chain(scripts("scx")) {
            let (Some(theirs), Property::Class(class)) = (theirs(&name), property(&name)) else {
                without.push(name);
                continue;
            };
            let is_in = |c: char| theirs.find(c.encode_utf8(&mut [0; 4])).is_some();
            // The tables of `regress` are of a later version of Unicode.
            let differs =
                |c: &&char| classes::contains(&assigned, **c) && is_in(**c) != classes::contains(&class, **c);
            let n = sample.iter().filter(differs).count();
            assert!(n <= 1 || matches!(name.as_str(), "ExtPict" | "Extended_Pictographic"), "{name}: {n}");
        }
        without.sort();
        assert_eq!(without, NO_TABLE);
    }

    #[test]
    fn other_spellings_are_unknown() {
        for name in [
            "lu",
            "greek",
            "Script=greek",
            "script=Greek",
            "Is_Greek",
            "Greek",
            "gc=Greek",
            "sc=Lu",
            "",
            "=",
            "L_",
        ] {
            assert!(matches!(property(name), Property::Unknown) && theirs(name).is_none(), "{name}");
        }
    }
}
