#include "textflag.h"

DATA ·constants<>+0(SB)/1, $0x0f
DATA ·constants<>+1(SB)/1, $0x1b
DATA ·constants<>+2(SB)/1, $0x5c
DATA ·constants<>+3(SB)/1, $0x25
DATA ·constants<>+4(SB)/1, $0xc0
GLOBL ·constants<>(SB), RODATA|NOPTR, $5

// LOOK takes the 32 bytes at place, and leaves in Y13 for each the groups that
// it fits by its halves in the tables lo and hi.
#define LOOK(place, lo, hi) \
	VMOVDQU place, Y13       \
	VPAND   Y8, Y13, Y14     \
	VPSRLW  $4, Y13, Y13     \
	VPAND   Y8, Y13, Y13     \
	VPSHUFB Y14, lo, Y14     \
	VPSHUFB Y13, hi, Y13     \
	VPAND   Y13, Y14, Y13

// func lookAVX2(v *vector, p *byte, n int, found *uint32)
TEXT ·lookAVX2(SB), NOSPLIT, $0-32
	MOVQ v+0(FP), AX
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ found+24(FP), DI
	ADDQ SI, CX

	VBROADCASTI128 0(AX), Y0   // lo[0]
	VBROADCASTI128 16(AX), Y1  // lo[1]
	VBROADCASTI128 32(AX), Y2  // lo[2]
	VBROADCASTI128 48(AX), Y3  // hi[0]
	VBROADCASTI128 64(AX), Y4  // hi[1]
	VBROADCASTI128 80(AX), Y5  // hi[2]
	VBROADCASTI128 96(AX), Y6  // solidLo
	VBROADCASTI128 112(AX), Y7 // solidHi
	VPBROADCASTB ·constants<>+0(SB), Y8  // a half
	VPBROADCASTB ·constants<>+1(SB), Y9  // ESC
	VPBROADCASTB ·constants<>+2(SB), Y10 // a backslash
	VPBROADCASTB ·constants<>+3(SB), Y11 // a percent sign
	VPBROADCASTB ·constants<>+4(SB), Y12 // the groups that need no boundary

loop:
	LOOK(0(SI), Y0, Y3)
	VMOVDQA Y13, Y15
	LOOK(1(SI), Y1, Y4)
	VPAND   Y13, Y15, Y15
	LOOK(2(SI), Y2, Y5)
	VPAND   Y13, Y15, Y15

	// Where a word may start: no letter or digit before, or a backslash or a
	// percent sign where an escape that ends here would have it.
	LOOK(-1(SI), Y6, Y7)
	VPXOR    Y14, Y14, Y14
	VPCMPEQB Y14, Y13, Y13
	VPCMPEQB -2(SI), Y10, Y14
	VPOR     Y14, Y13, Y13
	VPCMPEQB -3(SI), Y11, Y14
	VPOR     Y14, Y13, Y13
	VPCMPEQB -4(SI), Y10, Y14
	VPOR     Y14, Y13, Y13
	VPCMPEQB -6(SI), Y10, Y14
	VPOR     Y14, Y13, Y13
	VPOR     Y12, Y13, Y13
	VPAND    Y13, Y15, Y15

	// An escape may stand within any head.
	VPCMPEQB 1(SI), Y9, Y13
	VPOR     Y13, Y15, Y15
	VPCMPEQB 2(SI), Y9, Y13
	VPOR     Y13, Y15, Y15

	VPXOR     Y14, Y14, Y14
	VPCMPEQB  Y14, Y15, Y15
	VPMOVMSKB Y15, BX
	NOTL      BX
	MOVL      BX, (DI)
	ADDQ      $4, DI
	ADDQ      $32, SI
	CMPQ      SI, CX
	JLT       loop

	VZEROUPPER
	RET
