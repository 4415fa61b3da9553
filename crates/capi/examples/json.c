/* A sampler writes JSON by a schema: masks, tokens, what is forced, what is refused.
 *
 *   cc -std=c99 -I ../include json.c -lanygram_c && ./a.out
 *
 * The "model" draws from a fixed sequence of numbers. A server would mask the logits of a model. */
#include <anygram.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static anygram_error error = {.struct_size = sizeof error};

/* Ends the program with a message where something did not work. */
static void check(anygram_code code, const char *what) {
    if (code != ANYGRAM_OK) {
        fprintf(stderr, "%s: code %d: %s\n", what, (int)code, error.message);
        exit(1);
    }
}

/* One of the tokens of a mask. */
static uint32_t draw(const uint32_t *mask, size_t n_words, uint64_t *state) {
    size_t n_allowed = 0;
    for (size_t id = 0; id < 32 * n_words; id++) n_allowed += mask[id / 32] >> (id % 32) & 1;
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    size_t chosen = (size_t)(*state >> 33) % n_allowed;
    for (size_t id = 0;; id++)
        if (mask[id / 32] >> (id % 32) & 1 && chosen-- == 0) return (uint32_t)id;
}

int main(void) {
    const char *schema = "{\"type\":\"object\",\"properties\":{\"name\":{\"enum\":[\"Ada\",\"Alan\"]},"
                         "\"year\":{\"type\":\"integer\",\"minimum\":1800,\"maximum\":1999}},"
                         "\"required\":[\"name\",\"year\"],\"additionalProperties\":false}";
    const anygram_option options[] = {{"whitespace", "\"compact\""}, {"escapes", "\"needed\""}};

    anygram_vocabulary *vocabulary;
    anygram_language *language;
    anygram_constraint *constraint;
    anygram_matcher *matcher;
    check(anygram_vocabulary_builtin(&vocabulary, &error), "vocabulary");
    check(anygram_compile("json-schema", (const uint8_t *)schema, strlen(schema), options, 2, NULL, &language,
                          &error),
          "schema");
    check(anygram_constraint_new(language, vocabulary, &constraint, &error), "constraint");
    check(anygram_matcher_new(constraint, &matcher, &error), "matcher");

    size_t n_words;
    check(anygram_constraint_mask_words(constraint, &n_words, &error), "mask words");
    uint32_t *mask = malloc(n_words * sizeof *mask);
    uint32_t tokens[256];
    size_t n_tokens = 0;
    uint64_t state = 7;
    bool has_ended = false;
    while (!has_ended && n_tokens < 200) {
        size_t n_forced;
        check(anygram_matcher_forced(matcher, tokens + n_tokens, 256 - n_tokens, &n_forced, &error), "forced");
        if (n_forced > 0) {
            check(anygram_matcher_advance_all(matcher, tokens + n_tokens, n_forced, &error), "advance");
            n_tokens += n_forced;
            continue;
        }
        check(anygram_matcher_mask_with_budget(matcher, 60, mask, n_words, &error), "mask");
        tokens[n_tokens] = draw(mask, n_words, &state);
        check(anygram_matcher_advance(matcher, tokens[n_tokens++], &error), "advance");
        check(anygram_matcher_state(matcher, NULL, &has_ended, NULL, &error), "state");
    }

    uint8_t text[1024];
    size_t n_bytes;
    check(anygram_vocabulary_decode(vocabulary, tokens, n_tokens, text, sizeof text, &n_bytes, &error), "text");
    printf("written: %.*s\n", (int)n_bytes, (const char *)text);
    bool is_sentence;
    check(anygram_language_read(language, text, n_bytes, &is_sentence, NULL, NULL, &error), "read");

    /* What is refused says where and why. */
    const char *wrong = "{\"name\":\"Eve\"";
    size_t n_viable;
    check(anygram_language_read(language, (const uint8_t *)wrong, strlen(wrong), NULL, NULL, &n_viable, &error),
          "read");
    printf("%s is viable up to byte %zu\n", wrong, n_viable);
    anygram_code code = anygram_matcher_advance(matcher, 0, &error);
    printf("one more token: code %d: %s\n", (int)code, error.message);

    free(mask);
    anygram_matcher_free(matcher, NULL);
    anygram_constraint_free(constraint, NULL);
    anygram_language_free(language, NULL);
    anygram_vocabulary_free(vocabulary, NULL);
    return has_ended && is_sentence && code == ANYGRAM_REFUSED ? 0 : 1;
}
