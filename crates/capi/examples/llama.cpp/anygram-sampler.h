// A sampler of llama.cpp that lets a model write only sentences of a grammar or texts of a JSON schema.
//
// Copy these two files into a program that has llama.cpp and libanygram_c.
#ifndef ANYGRAM_SAMPLER_H
#define ANYGRAM_SAMPLER_H

#include <anygram.h>
#include <llama.h>

// The tokens of a model. Make it once: it takes about a microsecond a token. NULL, and `error`, if that fails.
anygram_vocabulary *anygram_llama_vocabulary(const llama_vocab *vocab, anygram_error *error);

// A sampler for one output of a constraint. Add it to a chain before samplers that cut the candidates down
// (top-k, top-p), so that those see only what is allowed. The chain frees it. NULL, and `error`, if that
// fails.
//
// With `budget` above 0 the output closes within so many tokens, where its grammar can.
//
// If a token is accepted that the grammar does not allow (a prompt's, or another sampler's), or a limit is
// reached, nothing is allowed but the end: see `anygram_llama_status`.
llama_sampler *anygram_llama_sampler(const anygram_constraint *constraint, const llama_vocab *vocab, uint32_t budget,
                                     anygram_error *error);

// ANYGRAM_OK, or why the sampler has stopped; `error` as of then.
anygram_code anygram_llama_status(const llama_sampler *sampler, anygram_error *error);

#endif
