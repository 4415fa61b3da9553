//! Laws that hold of every schema and value, on random ones.

use anygram_schema_oracle::generate::{Generator, KEYWORDS};
use anygram_schema_oracle::{Formats, Options, Registry, Undecided, Value};

const N_SCHEMAS: u64 = 3_000;
const N_VALUES: usize = 8;

fn valid(schema: &Value, value: &Value) -> Result<bool, Undecided> {
    let mut registry = Registry::default();
    registry.add("test:schema", schema.clone());
    registry.schema("test:schema")?.is_valid(value, Options { formats: Formats::Assert })
}

/// A schema of one keyword around others, with the definitions of the first.
fn around(keyword: &str, schemas: &[&Value], one: bool) -> Value {
    let schemas: Vec<Value> = schemas.iter().map(|schema| (*schema).clone()).collect();
    let definitions = schemas[0].get("$defs").cloned().unwrap_or(Value::Object(Vec::new()));
    let below = if one { schemas[0].clone() } else { Value::Array(schemas) };
    Value::Object(vec![(keyword.to_owned(), below), ("$defs".to_owned(), definitions)])
}

fn for_all(seed: u64, keywords: &[&str], law: impl Fn(&Value, &Value, bool, &mut Generator)) {
    let (mut counts, mut n_undecided) = ([0, 0], 0);
    for number in 0..N_SCHEMAS {
        let mut generator = Generator::new(seed + number).with_keywords(keywords);
        let schema = generator.schema(3);
        for _ in 0..N_VALUES {
            let value = generator.value_for(&schema, 3);
            match valid(&schema, &value) {
                Ok(answer) => {
                    counts[usize::from(answer)] += 1;
                    law(&schema, &value, answer, &mut generator);
                }
                Err(Undecided::InfiniteReference) => n_undecided += 1,
                Err(error) => panic!("{error}: {schema:?}"),
            }
        }
    }
    let n_all = N_SCHEMAS as usize * N_VALUES;
    eprintln!("invalid and valid: {counts:?}, undecided: {n_undecided}");
    assert!(counts.iter().all(|n| n * 5 > n_all) && n_undecided * 5 < n_all, "{counts:?} {n_undecided}");
}

#[test]
fn spellings_mean_the_same() {
    for_all(1, KEYWORDS, |schema, value, answer, generator| {
        let text = generator.spell(value);
        let read: Value = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(read, *value, "{text}");
        let schema_text = generator.spell(schema);
        assert_eq!(valid(&schema_text.parse().unwrap(), &read), Ok(answer), "{schema_text} {text}");
    });
}

/// References to `#` would mean another schema inside of another one: there are none.
#[test]
fn logic_is_logic() {
    let keywords: Vec<&str> = KEYWORDS.iter().copied().filter(|keyword| *keyword != "$ref").collect();
    for_all(100_000, &keywords, |schema, value, answer, generator| {
        let other = generator.schema(1);
        let second = valid(&other, value).unwrap();
        for (keyword, one, expected) in [
            ("not", true, !answer),
            ("allOf", false, answer && second),
            ("anyOf", false, answer || second),
            ("oneOf", false, answer != second),
        ] {
            assert_eq!(valid(&around(keyword, &[schema, &other], one), value), Ok(expected), "{keyword}");
        }
        let parts = |names: [&str; 3], schemas: [&Value; 3]| {
            Value::Object(
                names.iter().zip(schemas).map(|(name, part)| (name.to_string(), part.clone())).collect(),
            )
        };
        let condition = parts(["if", "then", "else"], [schema, &other, &Value::Bool(false)]);
        assert_eq!(valid(&condition, value), Ok(answer && second));
        let item = Value::Array(vec![value.clone(), value.clone()]);
        assert_eq!(valid(&around("items", &[schema], true), &item), Ok(answer));
        assert_eq!(valid(&around("contains", &[schema], true), &item), Ok(answer));
        assert_eq!(valid(&around("uniqueItems", &[&Value::Bool(true)], true), &item), Ok(false));
        let member = Value::Object(vec![("a".to_owned(), value.clone())]);
        assert_eq!(valid(&around("additionalProperties", &[schema], true), &member), Ok(answer));
        assert_eq!(valid(&around("unevaluatedProperties", &[schema], true), &member), Ok(answer));
    });
}

/// A reference means what it refers to.
#[test]
fn references_are_transparent() {
    let keywords: Vec<&str> = KEYWORDS.iter().copied().filter(|keyword| *keyword != "$ref").collect();
    for_all(200_000, &keywords, |schema, value, answer, _| {
        let definitions = Value::Object(vec![("a".to_owned(), schema.clone())]);
        let reference = Value::String("#/$defs/a".to_owned());
        let referring = vec![("$ref".to_owned(), reference), ("$defs".to_owned(), definitions)];
        assert_eq!(valid(&Value::Object(referring), value), Ok(answer));
    });
}
