//go:build !amd64 || purego

package argon2

// fast reports whether compress can be used on this processor.
const fast = false

func compress(out, prev, ref *block, mix bool) {
	panic("argon2: compress needs AVX2")
}
