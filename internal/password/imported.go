package password

import (
	"bytes"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	stdhash "hash"
	"strings"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"
)

// Limits on the cost of imported hashes. The most expensive permitted hash takes about a second of
// CPU time.
const (
	maxBcrypt = 13
	maxScrypt = maxMemory / 128 // limits N·r, which determines the memory, and N·r·p, which determines the work
	maxPBKDF2 = 1_500_000
)

// readBcrypt reads the modular form of bcrypt. Since bcrypt ignores everything after 72 bytes, a
// longer password never matches. Checking it takes as long as any other check.
func readBcrypt(text string) (hash, error) {
	const hashLength, maxPassword = 60, 72
	cost, err := bcrypt.Cost([]byte(text))
	if err != nil || len(text) != hashLength {
		return hash{}, errors.New("it is not a valid bcrypt hash")
	}
	if cost > maxBcrypt {
		return hash{}, fmt.Errorf("it is too expensive to check: its bcrypt cost is %d, and at most %d is allowed",
			cost, maxBcrypt)
	}

	right := []byte{1}
	return hash{
		derive: func(password []byte) ([]byte, error) {
			err := bcrypt.CompareHashAndPassword([]byte(text), password)
			if err != nil || len(password) > maxPassword {
				return []byte{0}, nil
			}
			return right, nil
		},
		want: right,
		work: work{"bcrypt", 1 << cost},
	}, nil
}

// readScryptPHC reads $scrypt$ln=15,r=8,p=1$salt$key, the form that PHC specifies and passlib
// writes.
func readScryptPHC(text string) (hash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 5 {
		return hash{}, errors.New("it is not a valid scrypt hash")
	}

	p, err := parameters(parts[2], "ln", "r", "p")
	if err != nil {
		return hash{}, err
	}

	if p[0] > 20 { // N would exceed maxScrypt
		return hash{}, errScrypt
	}
	salt, want, err := saltAndKey(parts[3], parts[4])
	if err != nil {
		return hash{}, err
	}
	return newScrypt(1<<p[0], p[1], p[2], salt, want)
}

// readScryptWerkzeug reads scrypt:32768:8:1$salt$key, with the salt unencoded and the key in
// hexadecimal.
func readScryptWerkzeug(text string) (hash, error) {
	method, rest, _ := strings.Cut(text, "$")
	saltText, keyText, _ := strings.Cut(rest, "$")
	parts := strings.Split(method, ":")
	if len(parts) != 4 {
		return hash{}, errors.New("it is not a valid scrypt hash")
	}

	p, err := numbers(parts[1:])
	if err != nil {
		return hash{}, err
	}

	key, err := hex.DecodeString(keyText)
	if err != nil {
		return hash{}, errSaltOrKey
	}
	return newScrypt(p[0], p[1], p[2], []byte(saltText), key)
}

// readScryptDjango reads scrypt$salt$N$r$p$key, with the salt unencoded and the key in base64.
func readScryptDjango(text string) (hash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 {
		return hash{}, errors.New("it is not a valid scrypt hash")
	}
	salt := []byte(parts[1])
	if len(parts[2]) == 0 {
		return hash{}, errors.New("it is not a valid scrypt hash")
	}

	p, err := numbers(parts[2:5])
	if err != nil {
		return hash{}, err
	}

	key, err := base64.StdEncoding.DecodeString(parts[5])
	if err != nil {
		return hash{}, errSaltOrKey
	}
	return newScrypt(p[0], p[1], p[2], salt, key)
}

var errScrypt = errors.New("it is too expensive to check: scrypt may use at most 64 MiB, with one pass")

func newScrypt(n, r, p int, salt, want []byte) (hash, error) {
	if err := checkLengths(salt, want); err != nil {
		return hash{}, err
	}
	if n > maxScrypt || r > maxScrypt || p > maxScrypt || n*r > maxScrypt || n*r*p > maxScrypt {
		return hash{}, errScrypt
	}
	if n < 2 || n&(n-1) != 0 {
		return hash{}, errors.New("its N is not a power of two")
	}

	return hash{
		derive: padded(func(password []byte) ([]byte, error) {
			return scrypt.Key(password, salt, n, r, p, len(want))
		}),
		want: want,
		work: work{"scrypt", n * r * p},
	}, nil
}

// readPBKDF2Modular reads two forms. The first is $pbkdf2-sha256$29000$salt$key, from passlib,
// which writes "." for "+". If this form does not name a digest, the digest is SHA-1. The second
// form is $pbkdf2-sha256$i=29000,l=32$salt$key.
func readPBKDF2Modular(text string) (hash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 5 {
		return hash{}, errors.New("it is not a valid PBKDF2 hash")
	}

	digest, named := strings.CutPrefix(parts[1], "pbkdf2-")
	if !named {
		digest = "sha1"
	}

	rounds, err := number(parts[2])
	if err != nil {
		values, err := parameters(parts[2], "i")
		if err != nil {
			return hash{}, errors.New("its parameters are invalid")
		}
		rounds = values[0]
	}

	plain := strings.NewReplacer(".", "+", "=", "")
	salt, want, err := saltAndKey(plain.Replace(parts[3]), plain.Replace(parts[4]))
	if err != nil {
		return hash{}, err
	}
	return newPBKDF2(digest, rounds, salt, want)
}

// readPBKDF2Werkzeug reads pbkdf2:sha256:600000$salt$key, with the salt unencoded and the key in
// hexadecimal.
func readPBKDF2Werkzeug(text string) (hash, error) {
	method, rest, _ := strings.Cut(text, "$")
	saltText, keyText, _ := strings.Cut(rest, "$")
	parts := strings.Split(method, ":")
	if len(parts) != 3 {
		return hash{}, errors.New("it is not a valid PBKDF2 hash")
	}

	rounds, err := number(parts[2])
	if err != nil {
		return hash{}, errors.New("its parameters are invalid")
	}

	key, err := hex.DecodeString(keyText)
	if err != nil {
		return hash{}, errSaltOrKey
	}
	return newPBKDF2(parts[1], rounds, []byte(saltText), key)
}

// readPBKDF2Django reads pbkdf2_sha256$600000$salt$key, with the salt unencoded and the key in
// base64.
func readPBKDF2Django(text string) (hash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 4 {
		return hash{}, errors.New("it is not a valid PBKDF2 hash")
	}

	rounds, err := number(parts[1])
	if err != nil {
		return hash{}, errors.New("its parameters are invalid")
	}

	digest := strings.TrimPrefix(parts[0], "pbkdf2_")
	salt := []byte(parts[2])
	key, err := base64.StdEncoding.DecodeString(parts[3])
	if err != nil {
		return hash{}, errSaltOrKey
	}
	return newPBKDF2(digest, rounds, salt, key)
}

// digests has the hash functions that PBKDF2 may use.
var digests = map[string]func() stdhash.Hash{
	"sha1":   sha1.New,
	"sha256": sha256.New,
	"sha512": sha512.New,
}

func newPBKDF2(digest string, rounds int, salt, want []byte) (hash, error) {
	if err := checkLengths(salt, want); err != nil {
		return hash{}, err
	}
	newDigest := digests[digest]
	if newDigest == nil {
		return hash{}, errors.New("it is PBKDF2 with a digest other than SHA-1, SHA-256 or SHA-512")
	}
	if rounds > maxPBKDF2 {
		return hash{}, fmt.Errorf("it is too expensive to check: it has %d PBKDF2 rounds, and at most %d are allowed",
			rounds, maxPBKDF2)
	}

	return hash{
		derive: padded(func(password []byte) ([]byte, error) {
			return pbkdf2.Key(newDigest, string(password), salt, rounds, len(want))
		}),
		want: want,
		work: work{"pbkdf2-" + digest, rounds * blocks(len(want), newDigest().Size())},
	}, nil
}

// blocks returns how many digest-sized blocks make up a key. PBKDF2 runs all rounds for each block.
func blocks(key, digest int) int { return (key + digest - 1) / digest }

// padded prevents a match for passwords that end in NUL. scrypt and PBKDF2 use HMAC, which pads its
// key with NULs, so appending NULs to a password does not change the hash.
func padded(derive func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(password []byte) ([]byte, error) {
		key, err := derive(password)
		if err != nil {
			return nil, err
		}
		if bytes.HasSuffix(password, []byte{0}) {
			return nil, nil
		}
		return key, nil
	}
}

func numbers(texts []string) ([]int, error) {
	values := make([]int, len(texts))
	for i, text := range texts {
		n, err := number(text)
		if err != nil {
			return nil, errors.New("its parameters are invalid")
		}
		values[i] = n
	}
	return values, nil
}
