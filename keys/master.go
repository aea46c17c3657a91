package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/internal/durable"
)

// ErrMaster is the error for a key in the ring that was sealed with a different master key.
var ErrMaster = errors.New("it is encrypted with a different master key")

// Fingerprint returns a name for a master key that reveals nothing else about the key.
func Fingerprint(key []byte) string {
	sum, err := hkdf.Key(sha256.New, key, nil, "selvage master key fingerprint", 8)
	if err != nil {
		panic(err) // cannot happen: HKDF rejects only much longer results
	}
	return hex.EncodeToString(sum)
}

// A vault seals ring keys and other secrets with a key derived from a master key. Each sealed
// secret is bound to a name, such as the kid of a ring key.
type vault struct{ aead cipher.AEAD }

func newVault(master []byte) (*vault, error) {
	if len(master) != 32 {
		return nil, fmt.Errorf("opening key ring: the master key has %d bytes, not 32", len(master))
	}
	key, err := hkdf.Key(sha256.New, master, nil, "selvage key ring", 32)
	if err != nil {
		return nil, fmt.Errorf("deriving key: %w", err)
	}

	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("preparing vault: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("preparing vault: %w", err)
	}
	return &vault{aead}, nil
}

func (v *vault) seal(secret []byte, name string) (string, error) {
	return base64.RawStdEncoding.EncodeToString(v.aead.Seal(nil, nil, secret, []byte(name))), nil
}

func (v *vault) open(sealed, name string) ([]byte, error) {
	raw, err := base64.RawStdEncoding.DecodeString(sealed)
	if err != nil {
		return nil, fmt.Errorf("reading encrypted key: %w", err)
	}
	return v.aead.Open(nil, nil, raw, []byte(name))
}

// ReadMaster reads the master key from a file that contains 32 bytes in base64. If the file does
// not exist, ReadMaster creates it, with a new key and mode 0600.
func ReadMaster(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeMaster(file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading master key: %w", err)
	}

	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf(
			"reading master key: others can read %s (mode %o); chmod 600 it, and replace the key if "+
				"others have read it",
			file, info.Mode().Perm())
	}

	key, err := ParseMaster(string(text))
	if err != nil {
		return nil, fmt.Errorf("%w, in %s; restore it from your copy", err, file)
	}
	return key, nil
}

// ParseMaster decodes a master key from base64.
func ParseMaster(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != 32 {
		return nil, errors.New("reading master key: not the base64 of 32 bytes")
	}
	return key, nil
}

// makeMaster writes a new key to a temporary file in the same directory, and then links it to its
// final name. So other processes find either the whole file or none.
func makeMaster(file string) ([]byte, error) {
	key := make([]byte, 32)
	rand.Read(key)

	tmp, err := os.CreateTemp(filepath.Dir(file), ".master-*")
	if err != nil {
		return nil, fmt.Errorf("creating master key: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // the link to it remains

	_, err = fmt.Fprintln(tmp, base64.StdEncoding.EncodeToString(key))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return nil, fmt.Errorf("creating master key: %w", err)
	}

	err = os.Link(tmp.Name(), file)
	if errors.Is(err, fs.ErrExist) {
		return ReadMaster(file) // another process was faster
	}
	if err != nil {
		return nil, fmt.Errorf("creating master key: %w", err)
	}
	if err := durable.SyncDir(filepath.Dir(file)); err != nil {
		return nil, fmt.Errorf("creating master key: %w", err)
	}
	return key, nil
}
