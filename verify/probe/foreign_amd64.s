//go:build linux

#include "textflag.h"

// func int80(number uintptr) int32
// A system call of the i386 kind, which a filter of the processor's own kind
// does not see unless it looks at the kind.
TEXT ·int80(SB), NOSPLIT, $0-12
	MOVQ	number+0(FP), AX
	INT	$0x80
	MOVL	AX, ret+8(FP)
	RET
