package password

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/argon2"
	"github.com/selvage/selvage/internal/problem"
)

// A hash is a parsed password hash. It consists of a function that derives a key from a password, and
// the key that it derives from the right password.
type hash struct {
	derive func(password []byte) ([]byte, error)
	want   []byte
	cost   params // the parameters of argon2id; zero for other algorithms
	work   work
}

// is reports whether password is the right password for the hash.
func (h hash) is(password string) (bool, error) {
	got, err := h.derive([]byte(password))
	if err != nil {
		return false, fmt.Errorf("checking password hash: %w", err)
	}
	return len(h.want) > 0 && subtle.ConstantTimeCompare(got, h.want) == 1, nil
}

// Limits on imported hashes. Without them, checking a single expensive hash could prevent all other
// users from signing in.
const (
	maxMemory = 64 << 20 // bytes that checking the hash may use
	maxHash   = 512      // length of the hash in bytes
	minKey    = 16       // length of the key in bytes
	maxKey    = 64
	maxSalt   = 64
)

var errForm = errors.New("its format is unknown; known are bcrypt, scrypt, PBKDF2 and argon2id")

// CheckHash returns a problem that names param if a password hash cannot be imported, because its
// form is unknown or invalid, or because checking it is too expensive.
func CheckHash(param, text string) error {
	if _, err := read(text); err != nil {
		return problem.BadParam(param, "%s cannot be used: %v", param, err)
	}
	return nil
}

// read parses a hash in any of the supported forms.
func read(text string) (hash, error) {
	if len(text) > maxHash {
		return hash{}, errForm
	}

	for _, form := range []struct {
		prefix string
		read   func(string) (hash, error)
	}{
		{"$argon2id$", readArgon},
		{"$2a$", readBcrypt},
		{"$2b$", readBcrypt},
		{"$2y$", readBcrypt},
		{"$scrypt$", readScryptPHC},
		{"scrypt:", readScryptWerkzeug},
		{"scrypt$", readScryptDjango},
		{"$pbkdf2", readPBKDF2Modular},
		{"pbkdf2:", readPBKDF2Werkzeug},
		{"pbkdf2_", readPBKDF2Django},
	} {
		if strings.HasPrefix(text, form.prefix) {
			return form.read(text)
		}
	}
	return hash{}, errForm
}

// readArgon parses an argon2id hash in the PHC form. Imported hashes can have any parameters, so
// readArgon rejects those that are too expensive to check.
func readArgon(text string) (hash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return hash{}, errors.New("it is not argon2id version 19")
	}

	p, err := parameters(parts[3], "m", "t", "p")
	if err != nil {
		return hash{}, err
	}

	memory, passes, lanes := p[0], p[1], p[2]
	isExpensive := memory*1024 > maxMemory || passes > 16 || memory*passes > 4*maxMemory/1024
	if isExpensive || lanes > 16 || memory < 8*lanes {
		return hash{}, errors.New(
			"it is too expensive to check: at most 64 MiB of memory and 16 passes (4 with 64 MiB) are allowed")
	}

	salt, want, err := saltAndKey(parts[4], parts[5])
	if err != nil {
		return hash{}, err
	}
	cost := params{memory: uint32(memory), time: uint32(passes), threads: uint8(lanes)}
	derive := func(password []byte) ([]byte, error) { return cost.derive(password, salt, len(want)), nil }
	return hash{derive: derive, want: want, cost: cost, work: cost.work()}, nil
}

// parameters parses NAME=NUMBER pairs that are separated by commas. The pairs must be in the order
// of names. Additional pairs are ignored.
func parameters(text string, names ...string) ([]int, error) {
	parts := strings.Split(text, ",")
	values := make([]int, len(names))
	for i, name := range names {
		if i >= len(parts) {
			return nil, errors.New("it lacks parameters")
		}
		value, ok := strings.CutPrefix(parts[i], name+"=")
		if !ok {
			return nil, errors.New("its parameters are invalid")
		}
		n, err := number(value)
		if err != nil {
			return nil, errors.New("its parameters are invalid")
		}
		values[i] = n
	}
	return values, nil
}

// number parses a parameter of a hash. The parameter must be at least 1.
func number(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, errors.New("it has a parameter that is 0")
	}
	return int(n), nil
}

var errSaltOrKey = errors.New("its salt or key is invalid")

// saltAndKey decodes a salt and a key that are in base64, and checks their lengths.
func saltAndKey(saltText, keyText string) (salt, key []byte, err error) {
	if salt, err = base64.RawStdEncoding.DecodeString(saltText); err != nil {
		return nil, nil, errSaltOrKey
	}
	if key, err = base64.RawStdEncoding.DecodeString(keyText); err != nil {
		return nil, nil, errSaltOrKey
	}
	return salt, key, checkLengths(salt, key)
}

func checkLengths(salt, key []byte) error {
	if len(salt) == 0 || len(salt) > maxSalt || len(key) < minKey || len(key) > maxKey {
		return errSaltOrKey
	}
	return nil
}
