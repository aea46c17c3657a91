//go:build !purego

#include "textflag.h"

// The compression function G of RFC 9106, section 3.5, on registers of four words of 64 bits.

// rotate24 and rotate16 list the bytes of two words in the order that rotates each word right by 24
// or 16 bits.
DATA ·rotate24<>+0(SB)/8, $0x0201000706050403
DATA ·rotate24<>+8(SB)/8, $0x0a09080f0e0d0c0b
DATA ·rotate24<>+16(SB)/8, $0x0201000706050403
DATA ·rotate24<>+24(SB)/8, $0x0a09080f0e0d0c0b
GLOBL ·rotate24<>(SB), RODATA|NOPTR, $32

DATA ·rotate16<>+0(SB)/8, $0x0100070605040302
DATA ·rotate16<>+8(SB)/8, $0x09080f0e0d0c0b0a
DATA ·rotate16<>+16(SB)/8, $0x0100070605040302
DATA ·rotate16<>+24(SB)/8, $0x09080f0e0d0c0b0a
GLOBL ·rotate16<>(SB), RODATA|NOPTR, $32

// ADDMUL sets x to x + y + 2 * low(x) * low(y) in each word, where low is the lower half of a word.
#define ADDMUL(x, y, t) \
	VPMULUDQ y, x, t; \
	VPADDQ   y, x, x; \
	VPADDQ   t, t, t; \
	VPADDQ   t, x, x

// GB is the function GB of section 3.6, on two independent sets of four quadruples. It overwrites Y8
// and Y9. Y14 and Y15 contain rotate24 and rotate16.
#define GB(a0, b0, c0, d0, a1, b1, c1, d1) \
	ADDMUL(a0, b0, Y8); \
	ADDMUL(a1, b1, Y9); \
	VPXOR   a0, d0, d0; \
	VPXOR   a1, d1, d1; \
	VPSHUFD $0xB1, d0, d0; \
	VPSHUFD $0xB1, d1, d1; \
	ADDMUL(c0, d0, Y8); \
	ADDMUL(c1, d1, Y9); \
	VPXOR   c0, b0, b0; \
	VPXOR   c1, b1, b1; \
	VPSHUFB Y14, b0, b0; \
	VPSHUFB Y14, b1, b1; \
	ADDMUL(a0, b0, Y8); \
	ADDMUL(a1, b1, Y9); \
	VPXOR   a0, d0, d0; \
	VPXOR   a1, d1, d1; \
	VPSHUFB Y15, d0, d0; \
	VPSHUFB Y15, d1, d1; \
	ADDMUL(c0, d0, Y8); \
	ADDMUL(c1, d1, Y9); \
	VPXOR   c0, b0, b0; \
	VPXOR   c1, b1, b1; \
	VPADDQ  b0, b0, Y8; \
	VPADDQ  b1, b1, Y9; \
	VPSRLQ  $63, b0, b0; \
	VPSRLQ  $63, b1, b1; \
	VPXOR   Y8, b0, b0; \
	VPXOR   Y9, b1, b1

// LOAD sets y to the XOR of prev (SI) and ref (DX) at an offset from AX.
#define LOAD(offset, y) \
	VMOVDQU offset(SI)(AX*1), y; \
	VPXOR   offset(DX)(AX*1), y, y

// FINISH stores the XOR of y, prev and ref in out (DI).
#define FINISH(offset, y) \
	VPXOR   offset(SI)(AX*1), y, y; \
	VPXOR   offset(DX)(AX*1), y, y; \
	VMOVDQU y, offset(DI)(AX*1)

// MIX sets y to the XOR of y and out.
#define MIX(offset, y) \
	VPXOR offset(DI)(AX*1), y, y

// func compressAVX2(out, prev, ref *block, mix bool)
TEXT ·compressAVX2(SB), 0, $1024-25
	MOVQ    out+0(FP), DI
	MOVQ    prev+8(FP), SI
	MOVQ    ref+16(FP), DX
	MOVBLZX mix+24(FP), CX
	VMOVDQU ·rotate24<>(SB), Y14
	VMOVDQU ·rotate16<>(SB), Y15

	// Permute each row, two rows at a time. A row has 16 words, in four registers.
	XORQ AX, AX

rows:
	LOAD(0, Y0)
	LOAD(32, Y1)
	LOAD(64, Y2)
	LOAD(96, Y3)
	LOAD(128, Y4)
	LOAD(160, Y5)
	LOAD(192, Y6)
	LOAD(224, Y7)

	GB(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7)

	// Turn diagonals into columns.
	VPERMQ $0x39, Y1, Y1
	VPERMQ $0x39, Y5, Y5
	VPERMQ $0x4E, Y2, Y2
	VPERMQ $0x4E, Y6, Y6
	VPERMQ $0x93, Y3, Y3
	VPERMQ $0x93, Y7, Y7

	GB(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7)

	VPERMQ $0x93, Y1, Y1
	VPERMQ $0x93, Y5, Y5
	VPERMQ $0x4E, Y2, Y2
	VPERMQ $0x4E, Y6, Y6
	VPERMQ $0x39, Y3, Y3
	VPERMQ $0x39, Y7, Y7

	VMOVDQU Y0, z-1024(SP)(AX*1)
	VMOVDQU Y1, z-992(SP)(AX*1)
	VMOVDQU Y2, z-960(SP)(AX*1)
	VMOVDQU Y3, z-928(SP)(AX*1)
	VMOVDQU Y4, z-896(SP)(AX*1)
	VMOVDQU Y5, z-864(SP)(AX*1)
	VMOVDQU Y6, z-832(SP)(AX*1)
	VMOVDQU Y7, z-800(SP)(AX*1)

	ADDQ $256, AX
	CMPQ AX, $1024
	JB   rows

	// Permute each column, two columns at a time. A column has two words of each row; a register
	// contains those of both columns.
	XORQ AX, AX

columns:
	VMOVDQU z-1024(SP)(AX*1), Y0
	VMOVDQU z-896(SP)(AX*1), Y1
	VMOVDQU z-768(SP)(AX*1), Y2
	VMOVDQU z-640(SP)(AX*1), Y3
	VMOVDQU z-512(SP)(AX*1), Y4
	VMOVDQU z-384(SP)(AX*1), Y5
	VMOVDQU z-256(SP)(AX*1), Y6
	VMOVDQU z-128(SP)(AX*1), Y7

	GB(Y0, Y2, Y4, Y6, Y1, Y3, Y5, Y7)

	// Turn diagonals into columns. The third quadruples change places.
	VPALIGNR $8, Y2, Y3, Y10
	VPALIGNR $8, Y3, Y2, Y11
	VPALIGNR $8, Y7, Y6, Y12
	VPALIGNR $8, Y6, Y7, Y13

	GB(Y0, Y10, Y5, Y12, Y1, Y11, Y4, Y13)

	VPALIGNR $8, Y11, Y10, Y2
	VPALIGNR $8, Y10, Y11, Y3
	VPALIGNR $8, Y12, Y13, Y6
	VPALIGNR $8, Y13, Y12, Y7

	TESTL CX, CX
	JZ    finish
	MIX(0, Y0)
	MIX(128, Y1)
	MIX(256, Y2)
	MIX(384, Y3)
	MIX(512, Y4)
	MIX(640, Y5)
	MIX(768, Y6)
	MIX(896, Y7)

finish:
	FINISH(0, Y0)
	FINISH(128, Y1)
	FINISH(256, Y2)
	FINISH(384, Y3)
	FINISH(512, Y4)
	FINISH(640, Y5)
	FINISH(768, Y6)
	FINISH(896, Y7)

	ADDQ $32, AX
	CMPQ AX, $128
	JB   columns

	VZEROUPPER
	RET
