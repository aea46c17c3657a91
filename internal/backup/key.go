package backup

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// A Key authenticates backups. It is derived from the master key, so knowing the recipients is not
// enough to make a backup that is accepted.
type Key struct {
	Secret    [sha256.Size]byte
	MasterKey string // the fingerprint of the master key
}

// code returns the authentication code for a digest of covered texts.
func (k Key) code(sum []byte) []byte {
	mac := hmac.New(sha256.New, k.Secret[:])
	mac.Write(sum)
	return mac.Sum(nil)
}

// covered computes the digest of the texts that an authentication code covers: the header and the
// manifest. The manifest contains the checksums of everything else.
type covered struct{ sum hash.Hash }

func newCovered() covered { return covered{sha256.New()} }

func (c covered) add(text []byte) {
	c.sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
	c.sum.Write(text)
}

// ErrForged is the error for a backup whose authentication code was not made with the expected key.
var ErrForged = errors.New("the backup was not made with this master key: its authentication code is wrong")

// Check returns [ErrForged] if the backup that contains the manifest was not made with the key.
func (m Manifest) Check(k Key) error {
	if !hmac.Equal(m.code, k.code(m.covered)) {
		return ErrForged
	}
	return nil
}

// readCode reads the authentication code of the archive.
func (r *reader) readCode() ([]byte, error) {
	if r.entry == nil || r.entry.Name != codeName {
		return nil, fmt.Errorf("the archive is not complete: %s is missing", codeName)
	}
	text, err := io.ReadAll(io.LimitReader(r.tar, 2*sha256.Size+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", codeName, err)
	}
	code, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", codeName, err)
	}
	return code, r.advance()
}
