package server

import "testing"

// TestMemoryLimit shows the limit for several amounts of memory in use.
func TestMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	tests := []struct{ inUse, want uint64 }{
		{0, 192 * mib},
		{100 * mib, 192 * mib},
		{184 * mib, 256 * mib}, // (184 MiB + 16 MiB) and a quarter more, in steps of 8
		{1000 * mib, 1272 * mib},
	}
	for _, tt := range tests {
		if got := memoryLimit(tt.inUse); got != tt.want {
			t.Errorf("memoryLimit(%d MiB) = %d MiB, want %d", tt.inUse/mib, got/mib, tt.want/mib)
		}
	}
}
