/* Types of FMI 3.0 that an FMU needs; what all FMUs of polybody have in common. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef enum { OK = 0, WARNING = 1, DISCARD = 2, ERROR_ = 3, FATAL = 4 } Status;
typedef uint32_t Reference;
typedef void (*Log)(void *environment, Status status, const char *category, const char *message);
