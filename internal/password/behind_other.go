//go:build !linux

package password

// standBehind is for kernels on which threads have priorities of their own.
func standBehind() {}
