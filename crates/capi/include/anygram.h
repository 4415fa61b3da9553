/* Anygram: constrained decoding for any context-free grammar, left to right and on canvases.
 *
 * docs/c-api.md has the promises: threads, ownership, versions. Every function returns an `anygram_code`, and
 * tells more in an `anygram_error` of the caller, or nothing where that is NULL. A buffer comes with its
 * capacity, and its length is written; if it is too small, only that. */

#ifndef ANYGRAM_H
#define ANYGRAM_H

/* Written by `cargo xtask header`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Grows when a function, a field or a constant is added. What there was stays as it was.
#define ANYGRAM_C_VERSION 1

// Bytes of a message, with the zero at its end.
#define ANYGRAM_MESSAGE_SIZE 1024

// Bytes of the name of a limit, with the zero at its end.
#define ANYGRAM_NAME_SIZE 32

// No token: of `pad` and `mask`.
#define ANYGRAM_NO_TOKEN UINT32_MAX

// A hole: exactly one token, which may be EOS or PAD.
#define ANYGRAM_HOLE -1

// A gap: any number of text tokens, also none.
#define ANYGRAM_GAP -2

// The text before the first EOS has to be a sentence.
#define ANYGRAM_SENTENCE 0

// Without EOS it has to be the beginning of one.
#define ANYGRAM_PREFIX 1

// An answer: no.
#define ANYGRAM_NO 0

// An answer: yes.
#define ANYGRAM_YES 1

// An answer: not decided, at a limit.
#define ANYGRAM_UNKNOWN -1

// What a function returns.
typedef enum {
    // It worked.
    ANYGRAM_OK = 0,
    // A grammar or a file is not written in its format, or contradicts itself.
    ANYGRAM_SYNTAX = 1,
    // Valid, but Anygram does not have it.
    ANYGRAM_UNSUPPORTED = 2,
    // No text is a sentence of the grammar.
    ANYGRAM_UNSATISFIABLE = 3,
    // A limit was reached; the error names it.
    ANYGRAM_LIMIT = 4,
    // Neither yes nor no was shown.
    ANYGRAM_UNDECIDED = 5,
    // Another thread asked to stop.
    ANYGRAM_CANCELLED = 6,
    // The grammar does not allow the token here.
    ANYGRAM_REFUSED = 7,
    // A token is not in the vocabulary.
    ANYGRAM_UNKNOWN_TOKEN = 8,
    // No tokens spell the text.
    ANYGRAM_CANNOT_ENCODE = 9,
    // An argument does not fit.
    ANYGRAM_INVALID_ARGUMENT = 10,
    // A file could not be read, or may not be.
    ANYGRAM_IO = 11,
    // A model failed.
    ANYGRAM_MODEL = 12,
    // A device failed.
    ANYGRAM_DEVICE = 13,
    // A handle is none that was given, was freed, or is of another kind.
    ANYGRAM_BAD_HANDLE = 14,
    // A buffer is too small. The length that it takes was written; nothing else happened.
    ANYGRAM_BUFFER_TOO_SMALL = 15,
    // A defect of the library: please report it. The object may be freed, and should not be used otherwise.
    ANYGRAM_PANIC = 16,
} anygram_code;

// Lets one thread stop what another compiles.
typedef struct anygram_cancel anygram_cancel;

// A language and a vocabulary. Immutable; all threads may use one at once.
typedef struct anygram_constraint anygram_constraint;

// A compiled grammar or schema. Immutable; all threads may use one at once.
typedef struct anygram_language anygram_language;

// The state of one output: its tokens, and which may follow. Threads that share one take turns.
typedef struct anygram_matcher anygram_matcher;

// Answers questions about canvases of one constraint. Its tables make later questions faster. Threads
// that share one take turns; one for each thread is faster.
typedef struct anygram_solver anygram_solver;

// The tokens of a model. Immutable; all threads may use one at once.
typedef struct anygram_vocabulary anygram_vocabulary;

// What a special token is called, such as "<|call|>"; grammars name it so.
typedef struct {
    // The token.
    uint32_t id;
    // Its name.
    const char *name;
} anygram_name;

// Which tokens are special.
typedef struct {
    // `sizeof(anygram_special)`.
    size_t struct_size;
    // The tokens that end an output.
    const uint32_t *eos;
    // How many.
    size_t n_eos;
    // The token that fills a row behind EOS, or ANYGRAM_NO_TOKEN.
    uint32_t pad;
    // The token that a diffusion model reads where nothing is decided yet, or ANYGRAM_NO_TOKEN.
    uint32_t mask;
    // What special tokens are called.
    const anygram_name *names;
    // How many names there are.
    size_t n_names;
} anygram_special;

// What went wrong. It belongs to the caller, who sets `struct_size` and passes it, or NULL, to any function.
// On success only `code` is written.
typedef struct {
    // `sizeof(anygram_error)`.
    size_t struct_size;
    // What the function returned.
    anygram_code code;
    // Of a grammar, the line of the place, from 1; 0 if there is none.
    uint32_t line;
    // The column, in characters, from 1.
    uint32_t column;
    // Of ANYGRAM_REFUSED, the offset in the text of the byte that is refused.
    uint64_t offset;
    // Of ANYGRAM_LIMIT, the value of the limit.
    uint64_t limit_value;
    // The name of the limit, to be raised by an option of that name; empty if there is none.
    char limit_name[ANYGRAM_NAME_SIZE];
    // Bytes of the whole message. Where it is longer than `message` has room for, that ends in "...".
    size_t message_length;
    // What is wrong, where, and what to do: UTF-8 that ends with a zero.
    char message[ANYGRAM_MESSAGE_SIZE];
} anygram_error;

// An option by its name: `start`, `lexer`, `ties`, `engine`, `imports`; those of JSON schemas, whose values
// are JSON (`key_order`, `whitespace`, `formats`, `escapes`, `extra_keys`, and `documents`, an object of
// texts or schemas by address); and every limit, whose value is a number.
typedef struct {
    // The name.
    const char *name;
    // The value.
    const char *value;
} anygram_option;

// A row of slots that is filled in any order, and how it has to end.
typedef struct {
    // `sizeof(anygram_canvas)`.
    size_t struct_size;
    // For each slot a token id, ANYGRAM_HOLE or ANYGRAM_GAP.
    const int64_t *slots;
    // How many.
    size_t n_slots;
    // ANYGRAM_SENTENCE or ANYGRAM_PREFIX.
    uint32_t end;
    // Of ANYGRAM_PREFIX: so many more text tokens at most must make a sentence of it; -1 for any number.
    int64_t remaining;
} anygram_canvas;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// `ANYGRAM_C_VERSION` of the library that runs: at least that of the header that was compiled.
uint32_t anygram_c_version(void);

// The version of the library as text, such as "0.1.0"; never freed.
const char *anygram_version(void);

// The vocabulary of some tokens, in the order of their ids.
//
// `bytes` are those of all tokens one after the other. Those of token `i` begin at `offsets[i]` and end at
// `offsets[i + 1]`, so there are `n_tokens + 1` offsets. A special token, such as EOS, has none. Everything
// is copied. `special` may be NULL.
anygram_code anygram_vocabulary_from_tokens(const uint8_t *bytes,
                                            const size_t *offsets,
                                            size_t n_tokens,
                                            const anygram_special *special,
                                            anygram_vocabulary **vocabulary,
                                            anygram_error *error);

// Reads a tokenizer file: `tokenizer.json`, `.tiktoken`, a SentencePiece `.model` or a JSON array; each may
// have `.gz`; or what `anygram_vocabulary_save` wrote. `special` may be NULL where the file says which
// tokens end an output.
anygram_code anygram_vocabulary_from_file(const char *path,
                                          const anygram_special *special,
                                          anygram_vocabulary **vocabulary,
                                          anygram_error *error);

// Saves a vocabulary, with its special tokens, for processes that start often:
// `anygram_vocabulary_from_file` reads the file without parsing it. The file is replaced in one step.
anygram_code anygram_vocabulary_save(const anygram_vocabulary *vocabulary,
                                     const char *path,
                                     anygram_error *error);

// Finds out ahead what the first JSON schemas of a process would wait for: what the tokens of a vocabulary
// do in strings, in numbers and between values. For servers, when they start; it takes about a quarter of
// the time that loading takes. Masks are the same with and without.
anygram_code anygram_vocabulary_prepare(const anygram_vocabulary *vocabulary, anygram_error *error);

// The small vocabulary of 4,096 tokens that travels with the library, for examples and tests.
anygram_code anygram_vocabulary_builtin(anygram_vocabulary **vocabulary, anygram_error *error);

// How many tokens it has, special ones too.
anygram_code anygram_vocabulary_size(const anygram_vocabulary *vocabulary,
                                     size_t *size,
                                     anygram_error *error);

// The tokens that its encoder makes of a text.
anygram_code anygram_vocabulary_encode(const anygram_vocabulary *vocabulary,
                                       const uint8_t *text,
                                       size_t n_bytes,
                                       uint32_t *tokens,
                                       size_t capacity,
                                       size_t *n_tokens,
                                       anygram_error *error);

// The bytes of some tokens. Special ones have none.
anygram_code anygram_vocabulary_decode(const anygram_vocabulary *vocabulary,
                                       const uint32_t *tokens,
                                       size_t n_tokens,
                                       uint8_t *text,
                                       size_t capacity,
                                       size_t *n_bytes,
                                       anygram_error *error);

// Frees a vocabulary. Constraints that were made of it stay.
anygram_code anygram_vocabulary_free(anygram_vocabulary *vocabulary, anygram_error *error);

// Compiles a grammar or a schema.
//
// `format` is `lark`, `gbnf`, `ebnf`, `regex`, `nltk`, `json-schema` or `structural-tag`; `source` is UTF-8
// of `n_bytes` bytes. `options` may be NULL if there are none, and `cancel` may be NULL.
anygram_code anygram_compile(const char *format,
                             const uint8_t *source,
                             size_t n_bytes,
                             const anygram_option *options,
                             size_t n_options,
                             const anygram_cancel *cancel,
                             anygram_language **language,
                             anygram_error *error);

// Reads a text: whether it is a sentence, whether one begins with it, and how many of its bytes do. Each
// result may be NULL.
anygram_code anygram_language_read(const anygram_language *language,
                                   const uint8_t *text,
                                   size_t n_bytes,
                                   bool *is_sentence,
                                   bool *is_viable,
                                   size_t *n_viable,
                                   anygram_error *error);

// Frees a language. Constraints that were made of it stay.
anygram_code anygram_language_free(anygram_language *language, anygram_error *error);

// Joins a language with a vocabulary.
anygram_code anygram_constraint_new(const anygram_language *language,
                                    const anygram_vocabulary *vocabulary,
                                    anygram_constraint **constraint,
                                    anygram_error *error);

// The 32-bit words of a mask: token `id` is bit `id % 32` of word `id / 32`.
anygram_code anygram_constraint_mask_words(const anygram_constraint *constraint,
                                           size_t *n_words,
                                           anygram_error *error);

// Frees a constraint. Matchers and solvers that were made of it stay.
anygram_code anygram_constraint_free(anygram_constraint *constraint, anygram_error *error);

// Something with which a thread can stop compilations that have it.
anygram_code anygram_cancel_new(anygram_cancel **cancel, anygram_error *error);

// Stops compilations that have it, now and later: they fail as ANYGRAM_CANCELLED.
anygram_code anygram_cancel_set(const anygram_cancel *cancel, anygram_error *error);

// Frees it. Compilations that have it go on.
anygram_code anygram_cancel_free(anygram_cancel *cancel, anygram_error *error);

// A new output, of no tokens.
anygram_code anygram_matcher_new(const anygram_constraint *constraint,
                                 anygram_matcher **matcher,
                                 anygram_error *error);

// Another output with the same tokens, on the same tables.
anygram_code anygram_matcher_fork(const anygram_matcher *matcher,
                                  anygram_matcher **copy,
                                  anygram_error *error);

// Frees an output.
anygram_code anygram_matcher_free(anygram_matcher *matcher, anygram_error *error);

// Appends a token. Where it is refused (ANYGRAM_REFUSED) or a limit is reached, the output is as it was.
anygram_code anygram_matcher_advance(anygram_matcher *matcher, uint32_t token, anygram_error *error);

// Appends some tokens: all of them, or, if one is refused, none.
anygram_code anygram_matcher_advance_all(anygram_matcher *matcher,
                                         const uint32_t *tokens,
                                         size_t n_tokens,
                                         anygram_error *error);

// How many of these tokens could be appended, from the first on. Nothing changes.
anygram_code anygram_matcher_validate(anygram_matcher *matcher,
                                      const uint32_t *tokens,
                                      size_t n_tokens,
                                      size_t *n_valid,
                                      anygram_error *error);

// Takes the last tokens back; EOS counts as one.
anygram_code anygram_matcher_rollback(anygram_matcher *matcher, size_t n_tokens, anygram_error *error);

// Takes all tokens back.
anygram_code anygram_matcher_reset(anygram_matcher *matcher, anygram_error *error);

// Writes the mask of the tokens that may come next, EOS among them where the text is a sentence.
//
// `words` may be wider than a mask, for a model whose output layer is padded: what is left over is cleared.
// If there is no mask (a limit was reached), the row is empty.
anygram_code anygram_matcher_mask(anygram_matcher *matcher,
                                  uint32_t *words,
                                  size_t n_words,
                                  anygram_error *error);

// As `anygram_matcher_mask`, of the tokens with which a sentence can still be made of `budget` tokens more,
// this one counted and EOS not.
anygram_code anygram_matcher_mask_with_budget(anygram_matcher *matcher,
                                              uint32_t budget,
                                              uint32_t *words,
                                              size_t n_words,
                                              anygram_error *error);

// The tokens that must come next, whatever follows: a server appends them without asking the model.
anygram_code anygram_matcher_forced(anygram_matcher *matcher,
                                    uint32_t *tokens,
                                    size_t capacity,
                                    size_t *n_tokens,
                                    anygram_error *error);

// Where an output is: whether its text is a sentence, whether EOS was appended, and how many tokens it has.
// Each may be NULL.
anygram_code anygram_matcher_state(const anygram_matcher *matcher,
                                   bool *is_sentence,
                                   bool *has_ended,
                                   size_t *n_tokens,
                                   anygram_error *error);

// Sets the tokens that end this output, in place of those of the vocabulary.
anygram_code anygram_matcher_set_eos(anygram_matcher *matcher,
                                     const uint32_t *eos,
                                     size_t n_eos,
                                     anygram_error *error);

// Writes the masks of many outputs, on all cores.
//
// Row `i` belongs to output `i`: it begins at `words + i * stride` and has `n_words` words, as for
// `anygram_matcher_mask`. `codes[i]` says how that went; a row that is not made is empty. What `codes` say
// is no error of the function itself. Each output may be there once. Outputs that were forked from another
// share its tables, and are done by one thread. So `words` has `(n_matchers - 1) * stride + n_words` words.
anygram_code anygram_batch_masks(anygram_matcher *const *matchers,
                                 size_t n_matchers,
                                 uint32_t *words,
                                 size_t stride,
                                 size_t n_words,
                                 anygram_code *codes,
                                 anygram_error *error);

// A solver for canvases of a constraint.
anygram_code anygram_solver_new(const anygram_constraint *constraint,
                                anygram_solver **solver,
                                anygram_error *error);

// Frees a solver.
anygram_code anygram_solver_free(anygram_solver *solver, anygram_error *error);

// Whether there is a choice of tokens for all holes and gaps that makes the canvas end as it says.
//
// A yes comes with one: its tokens in the order of the slots (a gap has any number of them), as many as fit
// `capacity`, all or none; `n_tokens` is how many there are. `tokens` and `n_tokens` may be NULL.
anygram_code anygram_solver_completable(anygram_solver *solver,
                                        const anygram_canvas *canvas,
                                        int8_t *answer,
                                        uint32_t *tokens,
                                        size_t capacity,
                                        size_t *n_tokens,
                                        anygram_error *error);

// For every hole, in their order, the mask of the tokens with which the canvas stays completable.
//
// There are as many rows as holes. Row `i` begins at `words + i * stride` and has `n_words` words. At a
// limit tokens of a row may be left undecided: `undecided[i]` is true then, and the row has those that are
// known. `undecided` may be NULL; then a row that is not wholly decided is ANYGRAM_UNDECIDED.
anygram_code anygram_solver_admissible(anygram_solver *solver,
                                       const anygram_canvas *canvas,
                                       uint32_t *words,
                                       size_t n_rows,
                                       size_t stride,
                                       size_t n_words,
                                       bool *undecided,
                                       anygram_error *error);

// Takes proposals for holes in the given order, and keeps each if the canvas with those kept so far and this
// one is completable: `answers[i]` is ANYGRAM_YES then, else ANYGRAM_NO or ANYGRAM_UNKNOWN.
anygram_code anygram_solver_compatible(anygram_solver *solver,
                                       const anygram_canvas *canvas,
                                       const size_t *slots,
                                       const uint32_t *tokens,
                                       size_t n_proposals,
                                       int8_t *answers,
                                       anygram_error *error);

// The fewest text tokens of a completion. ANYGRAM_UNSATISFIABLE if there is none, ANYGRAM_UNDECIDED at a
// limit.
anygram_code anygram_solver_minimum(anygram_solver *solver,
                                    const anygram_canvas *canvas,
                                    size_t *n_tokens,
                                    anygram_error *error);

// The likeliest completion: `log_probs` has a row of `n_columns` for every hole, natural logarithms or
// logits, minus infinity excludes a token. Holes of the tail, behind the last fixed slot, count.
//
// The tokens are written in the order of the slots; ANYGRAM_UNSATISFIABLE if there is no completion,
// ANYGRAM_UNDECIDED at a limit. `log_prob` may be NULL.
anygram_code anygram_solver_best(anygram_solver *solver,
                                 const anygram_canvas *canvas,
                                 const float *log_probs,
                                 size_t n_rows,
                                 size_t n_columns,
                                 uint32_t *tokens,
                                 size_t capacity,
                                 size_t *n_tokens,
                                 double *log_prob,
                                 anygram_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ANYGRAM_H */
