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
	d, where := open(t)
	old, latest := sha256.Sum256([]byte("old")), sha256.Sum256([]byte("new"))
	use := func(secrets ...[sha256.Size]byte) Store {
		return NewSealed(d, true, func() [][sha256.Size]byte { return secrets })
	}
	plain := NewSealed(d, false, func() [][sha256.Size]byte { return [][sha256.Size]byte{latest} })
	want := bytes.Repeat([]byte("secret audio "), 10_000)
	keys := map[string]string{"old": newKey(t), "new": newKey(t), "plain": newKey(t)}
	for name, s := range map[string]Store{"old": use(old), "new": use(latest, old), "plain": plain} {
		if err := s.Put(keys[name], storing(want), keeping(true, nil)); err != nil {
			t.Fatal(err)
		}
	}

	for name, key := range keys {
		readRanges(t, use(latest, old), key, want)
		both := func() [][sha256.Size]byte { return [][sha256.Size]byte{latest, old} }
		readRanges(t, NewSealed(d, false, both), key, want)
		file, err := os.ReadFile(path.Join(where, Name(key)))
		if err != nil || bytes.Contains(file, []byte("secret")) != (name == "plain") {
			t.Errorf("the file of %s has readable audio: %v, %v, want it only in the plain blob",
				name, bytes.Contains(file, []byte("secret")), err)
		}
	}
	if _, err := use(latest).Open(keys["old"]); err == nil {
		t.Error("a blob is opened without its secret")
	}

	if err := os.Rename(path.Join(where, Name(keys["old"])), path.Join(where, Name(keys["plain"]))); err != nil {
		t.Fatal(err)
	}
	f, err := use(latest, old).Open(keys["plain"])
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
	d, where := open(t)
	s := NewSealed(d, false, func() [][sha256.Size]byte { return nil })
	err := s.Put(newKey(t), storing([]byte(sealedMark+"and something else")), keeping(true, nil))
	if !errors.Is(err, problem.Unsupported) {
		t.Errorf("Put returns %v, want problem.Unsupported", err)
	}
	if found := files(t, where); len(found) > 0 {
		t.Errorf("remaining files: %q, want none", found)
	}
}
