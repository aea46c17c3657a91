//go:build !linux

package password

// standBehind does nothing: only on Linux does each thread have a priority.
func standBehind() {}
