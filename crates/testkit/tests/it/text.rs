//! [`text`](anygram_testkit::text).

use anygram_testkit::text::*;

#[test]
fn prints_bytes_and_tokens() {
    let mut text = "é\n".symbols();
    text.extend([Sym::Token(7), Sym::Byte(0xc3), Sym::Byte(b'a')]);
    assert_eq!(show(&text).to_string(), r#""é\n<[7]>\xc3a""#);
    assert_eq!(bytes_of(&text), None);
    assert_eq!(bytes_of(&text[..3]), Some("é\n".as_bytes().to_vec()));
}

#[test]
fn tokens_make_texts() {
    let vocab = [Some(b"ab".to_vec()), None];
    assert_eq!(text_of(&vocab, &[0, 1]), [Sym::Byte(b'a'), Sym::Byte(b'b'), Sym::Token(1)]);
}
