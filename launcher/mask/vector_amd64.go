package mask

import "golang.org/x/sys/cpu"

// fast says whether this processor has the look that takes 32 bytes at a time.
var fast = cpu.X86.HasAVX2

// lookAVX2 looks at the n bytes from p on, n a positive multiple of width, for
// places where a secret may start. It sets one word of found for each width
// bytes, with a bit for each such place in them. The bytes from p-reach to
// p+n+ahead must be there.
//
//go:noescape
func lookAVX2(v *vector, p *byte, n int, found *uint32)
