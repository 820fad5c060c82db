// The three kinds of check. Any thread.
//   RW_ASSERT    a proven invariant; on in every build but NDEBUG
//   RW_CHECK     cheap and always on
//   RW_VALIDATE  deep; only in validate builds (-Dvalidate=true)
// Wire input is never checked by these: it is validated at the border and answered.
#pragma once

// Prints where and what, then aborts.
_Noreturn void rw_check_failed(const char* file, int line, const char* expression);

#define RW_CHECK(expression)                                                                       \
    ((expression) ? (void)0 : rw_check_failed(__FILE__, __LINE__, #expression))

#ifdef NDEBUG
#define RW_ASSERT(expression) ((void)sizeof(expression))
#else
#define RW_ASSERT(expression) RW_CHECK(expression)
#endif

#ifdef RW_VALIDATE_BUILD
#define RW_VALIDATE(expression) RW_CHECK(expression)
#else
#define RW_VALIDATE(expression) ((void)0) // what it calls exists in validate builds only
#endif

#define RW_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
