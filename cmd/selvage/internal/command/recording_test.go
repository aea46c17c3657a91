package command

import (
	"testing"
	"time"
)

// TestFormatLength shows how short and long durations are printed for people.
func TestFormatLength(t *testing.T) {
	tests := []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"},
		{4 * time.Millisecond, "0.004s"},
		{62 * time.Millisecond, "0.06s"},
		{996 * time.Millisecond, "1s"},
		{7213 * time.Millisecond, "7.2s"},
		{90 * time.Second, "1m30s"},
	}
	for _, tt := range tests {
		if got := formatLength(tt.d); got != tt.want {
			t.Errorf("formatLength(%v) = %q, want %q", tt.d, got, tt.want)
		}
	}
}

// TestRejection shows how the number of rejected files is reported.
func TestRejection(t *testing.T) {
	tests := []struct {
		rejects, files int
		want           string
	}{
		{1, 1, "the file was rejected; nothing is stored"},
		{2, 2, "all 2 files were rejected; nothing is stored"},
		{1, 3, "1 of 3 files was rejected; the others are stored"},
		{2, 3, "2 of 3 files were rejected; the others are stored"},
	}
	for _, tt := range tests {
		if got := rejection(tt.rejects, tt.files); got.Error() != tt.want {
			t.Errorf("rejection(%d, %d) = %q, want %q", tt.rejects, tt.files, got, tt.want)
		}
	}

	if err := rejection(0, 3); err != nil {
		t.Errorf("rejection(0, 3) = %v, want nil", err)
	}
}
