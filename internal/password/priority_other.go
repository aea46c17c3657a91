//go:build !linux

package password

// standBehind does nothing, because only Linux has separate priorities for threads.
func standBehind() {}
