//! The examples of this crate run to their end; what they promise they assert themselves.

macro_rules! programs {
    ($($name:ident: $path:literal;)*) => {$(
        #[path = $path]
        mod $name;
    )*

    mod run {
        $(#[test]
        fn $name() {
            super::$name::main().unwrap();
        })*
    }};
}

programs! {
    batch_server: "../../examples/batch_server.rs";
    debug_grammar: "../../examples/debug_grammar.rs";
    diffusion_block: "../../examples/diffusion_block.rs";
    infilling: "../../examples/infilling.rs";
    json_answer: "../../examples/json_answer.rs";
    speculative_decoding: "../../examples/speculative_decoding.rs";
}
