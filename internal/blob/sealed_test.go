package blob

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path"
	"testing"

	"github.com/selvage/selvage/internal/problem"
)

// TestSealedKeys shows that the files of sealed blobs are unreadable, that sealed and plain blobs
// stay readable after a rotation of the secret, and that no blob can replace another.
func TestSealedKeys(t *testing.T) {
	d, root := open(t)
	old, latest := sha256.Sum256([]byte("old")), sha256.Sum256([]byte("new"))
	newSealed := func(seal bool, secrets ...[sha256.Size]byte) Store {
		return NewSealed(d, seal, func() [][sha256.Size]byte { return secrets })
	}

	blobs := []struct {
		name     string
		key      string
		store    Store
		readable bool // whether the file contains the bytes of the blob
	}{
		{name: "sealed with the old secret", key: newKey(t), store: newSealed(true, old)},
		{name: "sealed with the new secret", key: newKey(t), store: newSealed(true, latest, old)},
		{name: "plain", key: newKey(t), store: newSealed(false, latest), readable: true},
	}
	want := bytes.Repeat([]byte("secret audio "), 10_000)
	for _, blob := range blobs {
		if err := blob.store.Put(blob.key, storing(want), keeping(true, nil)); err != nil {
			t.Fatal(err)
		}
	}

	for _, blob := range blobs {
		t.Run(blob.name, func(t *testing.T) {
			checkRanges(t, newSealed(true, latest, old), blob.key, want)
			checkRanges(t, newSealed(false, latest, old), blob.key, want)
			file, err := os.ReadFile(path.Join(root, Name(blob.key)))
			if err != nil {
				t.Fatal(err)
			}
			if readable := bytes.Contains(file, []byte("secret")); readable != blob.readable {
				t.Errorf("the file contains readable audio: %t, want %t", readable, blob.readable)
			}
		})
	}

	oldKey, plainKey := blobs[0].key, blobs[2].key
	if _, err := newSealed(true, latest).Open(oldKey); err == nil {
		t.Error("Open without the blob's secret = nil, want an error")
	}

	if err := os.Rename(path.Join(root, Name(oldKey)), path.Join(root, Name(plainKey))); err != nil {
		t.Fatal(err)
	}
	f, err := newSealed(true, latest, old).Open(plainKey)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := f.Read(make([]byte, 10)); err == nil {
		t.Errorf("a blob under the name of another returns %d bytes, want an error", n)
	}
}

// TestSealedMarkRefused shows that an upload cannot pose as a sealed blob.
func TestSealedMarkRefused(t *testing.T) {
	d, root := open(t)
	s := NewSealed(d, false, func() [][sha256.Size]byte { return nil })
	err := s.Put(newKey(t), storing([]byte(sealedMark+"and something else")), keeping(true, nil))
	if !errors.Is(err, problem.Unsupported) {
		t.Errorf("Put returns %v, want problem.Unsupported", err)
	}
	if left := files(t, root); len(left) > 0 {
		t.Errorf("remaining files: %q, want none", left)
	}
}
