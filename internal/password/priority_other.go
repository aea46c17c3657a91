//go:build !linux

package password

// standBehind does nothing: threads have their own priority only on Linux.
func standBehind() {}
