//go:build !purego

package argon2

import "golang.org/x/sys/cpu"

// fast reports whether compress can be used on this processor.
var fast = cpu.X86.HasAVX2

// compress stores G(prev, ref) in out (RFC 9106, section 3.5). With mix, it stores the XOR of the
// previous out and G(prev, ref).
func compress(out, prev, ref *block, mix bool) { compressAVX2(out, prev, ref, mix) }

//go:noescape
func compressAVX2(out, prev, ref *block, mix bool)
