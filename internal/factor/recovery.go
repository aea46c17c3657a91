package factor

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// CodeCount is how many recovery codes an owner gets at a time.
const CodeCount = 10

// RecoveryCodes holds how many codes are left, and when the codes were created.
type RecoveryCodes struct {
	Left    int
	Created time.Time
}

// ErrHasCodes is the error of creating recovery codes for an owner who has some.
var ErrHasCodes = errors.New("the owner has recovery codes")

// NewCodes replaces an owner's recovery codes, notifies the owner, and returns the new codes. Only
// their hashes are stored, so they cannot be shown again.
func (f *Factors) NewCodes(ctx context.Context, o Owner) ([]string, error) {
	codes, hashes := f.makeCodes(o)
	if err := f.c.Store.ReplaceRecoveryCodes(ctx, o, hashes, f.now()); err != nil {
		return nil, err
	}
	return codes, nil
}

// FirstCodes returns new recovery codes for an owner with a new factor, or nil if the owner has
// codes. The owner is notified only of the factor.
func (f *Factors) FirstCodes(ctx context.Context, o Owner) ([]string, error) {
	left, err := f.c.Store.FindRecoveryCodes(ctx, o)
	if err != nil || left.Left > 0 {
		return nil, err
	}
	codes, hashes := f.makeCodes(o)
	err = f.c.Store.CreateRecoveryCodes(ctx, o, hashes, f.now())
	if errors.Is(err, ErrHasCodes) { // created by a concurrent request
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return codes, nil
}

// makeCodes returns random codes and the hashes under which they are stored.
func (f *Factors) makeCodes(o Owner) (codes, hashes []string) {
	codes, hashes = make([]string, CodeCount), make([]string, CodeCount)
	for i := range codes {
		text := strings.ToLower(rand.Text()) // base32 has no 0, 1, 8 or 9, which look like letters
		codes[i] = text[:5] + "-" + text[5:10]
		hashes[i] = hashCode(f.c.Ring.Derive(recoveryCodes), o, codes[i])
	}
	return codes, hashes
}

// RecoveryCodes returns how many codes an owner has left.
func (f *Factors) RecoveryCodes(ctx context.Context, o Owner) (RecoveryCodes, error) {
	return f.c.Store.FindRecoveryCodes(ctx, o)
}

// UseCode consumes one of the owner's recovery codes.
func (f *Factors) UseCode(ctx context.Context, o Owner, at Place, code string) error {
	if err := f.countGuess(ctx, o, at); err != nil {
		return err
	}

	err := error(ErrWrong)
	for _, key := range f.c.Ring.DeriveAll(recoveryCodes) {
		err = f.c.Store.TakeRecoveryCode(ctx, o, hashCode(key, o, code))
		if !errors.Is(err, problem.NotFound) {
			break
		}
		err = ErrWrong
	}

	if err != nil {
		return err
	}
	f.resetGuesses(ctx, o, at)
	return nil
}

const recoveryCodes = "recovery codes"

// hashCode returns the hash under which a code is stored. A code has only 50 bits. The master key
// protects it: without that key, an attacker who has the rows cannot find a code by trying all
// possible codes.
func hashCode(key [sha256.Size]byte, o Owner, code string) string {
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(o.String() + " " + strings.ToLower(digits(code))))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
