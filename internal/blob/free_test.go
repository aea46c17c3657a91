package blob

import (
	"errors"
	"math"
	"testing"

	"github.com/selvage/selvage/internal/problem"
)

// TestReserve shows that nothing is written while less space is free than is reserved.
func TestReserve(t *testing.T) {
	d, path := open(t)
	free, err := d.Free()
	if err != nil || free <= 0 {
		t.Fatalf("Free = %d, %v, want more than 0", free, err)
	}

	d.Reserve(math.MaxInt64)
	wrote := false
	write := func(File) (map[string][]byte, error) {
		wrote = true
		return nil, nil
	}
	err = d.Put(newKey(t), write, keeping(true, nil))
	if !errors.Is(err, problem.Unavailable) {
		t.Fatalf("Put without free space: %v, want problem.Unavailable", err)
	}
	if code := problem.First(err).Code; code != "no_space" {
		t.Errorf("Put without free space: code %q, want no_space", code)
	}
	if wrote {
		t.Error("Put without free space calls the write function")
	}
	if left := files(t, path); len(left) != 0 {
		t.Errorf("remaining files: %q, want none", left)
	}

	d.Reserve(1)
	if err := d.Put(newKey(t), filling("x"), keeping(true, nil)); err != nil {
		t.Errorf("Put with free space: %v, want success", err)
	}
}
