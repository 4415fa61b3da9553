/* What callers do wrong is an error, and never a crash. */
#define _POSIX_C_SOURCE 200809L
#include <anygram.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static anygram_error error = {.struct_size = sizeof error};

#define EXPECT(code, call)                                                                                    \
    do {                                                                                                      \
        anygram_code got = (call);                                                                            \
        if (got != (code)) {                                                                                  \
            printf("line %d: code %d, not %d: %s\n", __LINE__, (int)got, (int)(code), error.message);         \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)

#define EXPECT_MESSAGE(text)                                                                                  \
    do {                                                                                                      \
        if (strstr(error.message, text) == NULL) {                                                            \
            printf("line %d: \"%s\" is not in \"%s\"\n", __LINE__, text, error.message);                      \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)

static anygram_code compile(const char *source, const anygram_option *options, size_t n,
                            anygram_language **language) {
    return anygram_compile("lark", (const uint8_t *)source, strlen(source), options, n, NULL, language, &error);
}

static anygram_constraint *constraint;

/* Makes outputs, writes to them and frees them; and one that all threads share. */
static void *work(void *shared) {
    uint32_t mask[128];
    for (int round = 0; round < 200; round++) {
        anygram_matcher *matcher;
        if (anygram_matcher_new(constraint, &matcher, NULL) != ANYGRAM_OK) return "new";
        if (anygram_matcher_mask(matcher, mask, 128, NULL) != ANYGRAM_OK) return "mask";
        if (anygram_matcher_mask(shared, mask, 128, NULL) != ANYGRAM_OK) return "shared";
        if (anygram_matcher_free(matcher, NULL) != ANYGRAM_OK) return "free";
        if (anygram_matcher_free(matcher, NULL) != ANYGRAM_BAD_HANDLE) return "freed";
    }
    return NULL;
}

int main(void) {
    anygram_vocabulary *vocabulary;
    anygram_language *language;
    anygram_matcher *matcher, *copy;
    anygram_solver *solver;
    uint32_t mask[256];
    size_t length;

    /* Grammars: the place, the limit, the option. */
    EXPECT(ANYGRAM_SYNTAX, compile("start: \"x\" y\n", NULL, 0, &language));
    if (error.line != 1 || error.column != 12) return printf("place %u:%u\n", error.line, error.column);
    EXPECT(ANYGRAM_UNSATISFIABLE, compile("start: \"x\" start", NULL, 0, &language));
    anygram_option small = {"dfa_states", "10"}, unknown = {"dfa_sates", "10"}, bad = {"dfa_states", "ten"};
    EXPECT(ANYGRAM_LIMIT, compile("start: /[ab]*a[ab]{9}c/", &small, 1, &language));
    if (strcmp(error.limit_name, "dfa_states") != 0 || error.limit_value != 10) return printf("limit\n");
    EXPECT(ANYGRAM_INVALID_ARGUMENT, compile("start: \"x\"", &unknown, 1, &language));
    EXPECT_MESSAGE("there are start, lexer");
    EXPECT(ANYGRAM_INVALID_ARGUMENT, compile("start: \"x\"", &bad, 1, &language));
    EXPECT(ANYGRAM_INVALID_ARGUMENT, compile("start: \"\xff\"", NULL, 0, &language));
    EXPECT(ANYGRAM_INVALID_ARGUMENT, compile("start: \"x\"", NULL, 1, &language));
    EXPECT_MESSAGE("options is NULL");
    EXPECT(ANYGRAM_INVALID_ARGUMENT, compile("start: \"x\"", NULL, 0, NULL));
    EXPECT(ANYGRAM_OK, compile("start: \"(\" start \")\" | \"x\"", NULL, 0, &language));
    if (error.code != ANYGRAM_OK) return printf("code\n");

    /* Errors of older headers, and none at all. */
    anygram_error old = {.struct_size = sizeof(size_t)};
    old.line = 77;
    if (anygram_matcher_new(NULL, &matcher, &old) != ANYGRAM_BAD_HANDLE || old.line != 77) return printf("old\n");
    if (anygram_matcher_new(NULL, &matcher, NULL) != ANYGRAM_BAD_HANDLE) return printf("no error\n");

    /* Vocabularies. */
    const size_t offsets[] = {0, 2, 1};
    EXPECT(ANYGRAM_INVALID_ARGUMENT,
           anygram_vocabulary_from_tokens((const uint8_t *)"ab", offsets, 2, NULL, &vocabulary, &error));
    EXPECT(ANYGRAM_INVALID_ARGUMENT,
           anygram_vocabulary_from_tokens(NULL, NULL, SIZE_MAX, NULL, &vocabulary, &error));
    anygram_special special = {0};
    EXPECT(ANYGRAM_INVALID_ARGUMENT,
           anygram_vocabulary_from_tokens((const uint8_t *)"ab", offsets, 1, &special, &vocabulary, &error));
    EXPECT_MESSAGE("struct_size");
    EXPECT(ANYGRAM_IO, anygram_vocabulary_from_file("no such file.json", NULL, &vocabulary, &error));
    EXPECT(ANYGRAM_OK, anygram_vocabulary_builtin(&vocabulary, &error));

    /* Nothing but time depends on it. */
    EXPECT(ANYGRAM_OK, anygram_vocabulary_prepare(vocabulary, &error));
    EXPECT(ANYGRAM_BAD_HANDLE, anygram_vocabulary_prepare(NULL, &error));

    /* Saved vocabularies: what was saved, cut off, altered. */
    char saved[64];
    snprintf(saved, sizeof saved, "/tmp/anygram-misuse-%ld.anyvocab", (long)getpid());
    EXPECT(ANYGRAM_OK, anygram_vocabulary_save(vocabulary, saved, &error));
    anygram_vocabulary *again;
    size_t n_tokens, n_again;
    EXPECT(ANYGRAM_OK, anygram_vocabulary_from_file(saved, NULL, &again, &error));
    EXPECT(ANYGRAM_OK, anygram_vocabulary_size(vocabulary, &n_tokens, &error));
    EXPECT(ANYGRAM_OK, anygram_vocabulary_size(again, &n_again, &error));
    if (n_tokens != n_again) return printf("saved %zu, read %zu\n", n_tokens, n_again);
    FILE *file = fopen(saved, "r+b");
    if (file == NULL || fseek(file, 1000, SEEK_SET) != 0 || fputc('!', file) == EOF) return printf("file\n");
    fclose(file);
    EXPECT(ANYGRAM_SYNTAX, anygram_vocabulary_from_file(saved, NULL, &again, &error));
    EXPECT_MESSAGE("damaged");
    if (truncate(saved, 1000) != 0) return printf("truncate\n");
    EXPECT(ANYGRAM_SYNTAX, anygram_vocabulary_from_file(saved, NULL, &again, &error));
    EXPECT_MESSAGE("1000 bytes");
    EXPECT(ANYGRAM_OK, anygram_vocabulary_free(again, &error));
    EXPECT(ANYGRAM_BAD_HANDLE, anygram_vocabulary_save(again, saved, &error));
    EXPECT(ANYGRAM_IO, anygram_vocabulary_save(vocabulary, "/no such folder/v", &error));
    remove(saved);

    /* Handles: of another kind, freed, made up. */
    EXPECT(ANYGRAM_BAD_HANDLE, anygram_constraint_new((anygram_language *)vocabulary, vocabulary, &constraint, &error));
    EXPECT(ANYGRAM_OK, anygram_constraint_new(language, vocabulary, &constraint, &error));
    EXPECT(ANYGRAM_OK, anygram_language_free(language, &error));
    EXPECT(ANYGRAM_BAD_HANDLE, anygram_language_free(language, &error));
    EXPECT_MESSAGE("freed");
    EXPECT(ANYGRAM_BAD_HANDLE, anygram_language_free(NULL, &error));
    EXPECT_MESSAGE("NULL");
    EXPECT(ANYGRAM_BAD_HANDLE, anygram_matcher_free((anygram_matcher *)(uintptr_t)0xdeadbeef, &error));
    EXPECT(ANYGRAM_BAD_HANDLE, anygram_matcher_free((anygram_matcher *)&error, &error));

    /* Outputs go on after what they were made of is freed, and are as they were after a refusal. */
    EXPECT(ANYGRAM_OK, anygram_matcher_new(constraint, &matcher, &error));
    const uint8_t text[] = "((x)";
    uint32_t tokens[8];
    EXPECT(ANYGRAM_BUFFER_TOO_SMALL,
           anygram_vocabulary_encode(vocabulary, text, 4, tokens, 0, &length, &error));
    if (length == 0 || length > 4) return printf("length %zu\n", length);
    EXPECT(ANYGRAM_OK, anygram_vocabulary_encode(vocabulary, text, 4, tokens, 8, &length, &error));
    EXPECT(ANYGRAM_OK, anygram_matcher_advance_all(matcher, tokens, length, &error));
    EXPECT(ANYGRAM_REFUSED, anygram_matcher_advance(matcher, tokens[0], &error));
    if (error.offset != 4) return printf("offset %d\n", (int)error.offset);
    EXPECT(ANYGRAM_UNKNOWN_TOKEN, anygram_matcher_advance(matcher, UINT32_MAX, &error));
    EXPECT(ANYGRAM_INVALID_ARGUMENT, anygram_matcher_rollback(matcher, 99, &error));
    EXPECT(ANYGRAM_INVALID_ARGUMENT, anygram_matcher_mask(matcher, NULL, 128, &error));
    EXPECT(ANYGRAM_INVALID_ARGUMENT, anygram_matcher_mask(matcher, (uint32_t *)((char *)mask + 1), 128, &error));
    EXPECT_MESSAGE("aligned");
    EXPECT(ANYGRAM_OK, anygram_matcher_fork(matcher, &copy, &error));
    EXPECT(ANYGRAM_OK, anygram_matcher_rollback(copy, 1, &error));

    /* Batches. */
    anygram_matcher *both[] = {matcher, copy}, *twice[] = {copy, copy};
    anygram_code codes[2];
    EXPECT(ANYGRAM_OK, anygram_batch_masks(both, 2, mask, 128, 128, codes, &error));
    if (codes[0] != ANYGRAM_OK || codes[1] != ANYGRAM_OK) return printf("codes\n");
    uint32_t single[128];
    for (int i = 0; i < 2; i++) {
        EXPECT(ANYGRAM_OK, anygram_matcher_mask(both[i], single, 128, &error));
        if (memcmp(single, mask + 128 * i, sizeof single) != 0) return printf("row %d\n", i);
    }
    EXPECT(ANYGRAM_INVALID_ARGUMENT, anygram_batch_masks(twice, 2, mask, 128, 128, codes, &error));
    EXPECT_MESSAGE("twice");
    EXPECT(ANYGRAM_INVALID_ARGUMENT, anygram_batch_masks(both, 2, mask, 64, 128, codes, &error));
    EXPECT(ANYGRAM_INVALID_ARGUMENT, anygram_batch_masks(both, 2, mask, SIZE_MAX / 2, 128, codes, &error));
    EXPECT(ANYGRAM_OK, anygram_batch_masks(NULL, 0, NULL, 0, 0, NULL, &error));
    EXPECT(ANYGRAM_OK, anygram_matcher_free(copy, &error));
    EXPECT(ANYGRAM_BAD_HANDLE, anygram_batch_masks(both, 2, mask, 128, 128, codes, &error));

    /* Canvases. */
    const int64_t slots[] = {ANYGRAM_GAP, -7};
    anygram_canvas canvas = {sizeof canvas, slots, 2, ANYGRAM_SENTENCE, -1};
    int8_t answer = 9;
    EXPECT(ANYGRAM_OK, anygram_solver_new(constraint, &solver, &error));
    EXPECT(ANYGRAM_INVALID_ARGUMENT,
           anygram_solver_completable(solver, &canvas, &answer, NULL, 0, NULL, &error));
    EXPECT_MESSAGE("slots[1] is -7");
    canvas.n_slots = 1;
    canvas.end = 5;
    EXPECT(ANYGRAM_INVALID_ARGUMENT,
           anygram_solver_completable(solver, &canvas, &answer, NULL, 0, NULL, &error));
    canvas.end = ANYGRAM_SENTENCE;
    EXPECT(ANYGRAM_OK, anygram_solver_completable(solver, &canvas, &answer, NULL, 0, &length, &error));
    if (answer != ANYGRAM_YES || length == 0) return printf("answer %d, length %zu\n", answer, length);
    EXPECT(ANYGRAM_INVALID_ARGUMENT,
           anygram_solver_admissible(solver, &canvas, mask, 1, 128, 128, NULL, &error));
    EXPECT_MESSAGE("for 0 holes");
    EXPECT(ANYGRAM_OK, anygram_solver_free(solver, &error));

    /* A cancelled compilation, and threads. */
    anygram_cancel *cancel;
    EXPECT(ANYGRAM_OK, anygram_cancel_new(&cancel, &error));
    EXPECT(ANYGRAM_OK, anygram_cancel_set(cancel, &error));
    EXPECT(ANYGRAM_CANCELLED, anygram_compile("regex", (const uint8_t *)"a*", 2, NULL, 0, cancel, &language, &error));
    EXPECT(ANYGRAM_OK, anygram_cancel_free(cancel, &error));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, matcher);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong != NULL) return printf("thread: %s\n", (char *)wrong);
    }
    EXPECT(ANYGRAM_OK, anygram_matcher_free(matcher, &error));
    EXPECT(ANYGRAM_OK, anygram_constraint_free(constraint, &error));
    EXPECT(ANYGRAM_OK, anygram_vocabulary_free(vocabulary, &error));
    puts("ok");
    return 0;
}
