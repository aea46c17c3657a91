package factor

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A TOTP is an owner's authenticator app, which shares a secret with the server.
type TOTP struct {
	ID      string
	Owner   Owner
	Sealed  string // the secret, sealed with the master key
	Step    int64  // the time step of the last accepted code; only later codes are accepted
	Created time.Time
	Used    time.Time // zero if never used
}

// period is the length of a time step in seconds, which all authenticator apps support (RFC 6238,
// section 4).
const period = 30

// skew is how many steps the clock of an app may be ahead or behind (RFC 6238, section 5.2).
const skew = 1

// pictureSize is the width and the height of a QR code in pixels.
const pictureSize = 280

// enrolFor is how long setting up an authenticator app may take.
const enrolFor = 20 * time.Minute

// An Enrollment is an authenticator app that is being set up.
type Enrollment struct {
	Secret string // in base32, for manual entry
	URL    string // otpauth://…
	PNG    []byte // the URL as a QR code
}

// pending is the stored part of an Enrollment.
type pending struct {
	Owner  Owner
	Sealed string
}

// BeginTOTP starts setting up an authenticator app for o. flow identifies what the setup belongs to, such
// as a login. The caller must pass the same flow to ConfirmTOTP. If a setup is pending in this flow,
// BeginTOTP returns the same Enrollment again. The app shows issuer and account.
func (f *Factors) BeginTOTP(ctx context.Context, o Owner, flow, issuer, account string) (Enrollment, error) {
	p, err := f.pendingTOTP(ctx, o, flow)
	if errors.Is(err, problem.NotFound) {
		p, err = f.newTOTP(ctx, o, flow)
	}
	if err != nil {
		return Enrollment{}, err
	}

	secret, err := f.c.Ring.OpenSecret(TOTPSecretName(o), p.Sealed)
	if err != nil {
		return Enrollment{}, err
	}

	key, err := totp.Generate(totp.GenerateOpts{
		Issuer:      strings.ReplaceAll(issuer, ":", " "),
		AccountName: account,
		Period:      period,
		Secret:      secret,
	})
	if err != nil {
		return Enrollment{}, fmt.Errorf("creating otpauth URL: %w", err)
	}

	picture, err := key.Image(pictureSize, pictureSize)
	if err != nil {
		return Enrollment{}, fmt.Errorf("drawing QR code: %w", err)
	}

	var body bytes.Buffer
	if err := png.Encode(&body, picture); err != nil {
		return Enrollment{}, fmt.Errorf("encoding QR code: %w", err)
	}
	return Enrollment{Secret: key.Secret(), URL: key.URL(), PNG: body.Bytes()}, nil
}

// DataURL returns the QR code as a data URL.
func (e Enrollment) DataURL() string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(e.PNG)
}

func totpKey(flow string) session.Key {
	return session.Key{Kind: "totp_enrolment", ID: session.Digest(flow)}
}

// TOTPSecretName returns the name under which the secret of an authenticator app is sealed.
func TOTPSecretName(o Owner) string { return "totp:" + o.String() }

func (f *Factors) newTOTP(ctx context.Context, o Owner, flow string) (p pending, err error) {
	var secret [20]byte
	rand.Read(secret[:])
	p.Owner = o
	if p.Sealed, err = f.c.Ring.SealSecret(TOTPSecretName(o), secret[:]); err != nil {
		return p, fmt.Errorf("encrypting secret: %w", err)
	}

	value, err := json.Marshal(p)
	if err != nil {
		return p, fmt.Errorf("storing enrollment: %w", err)
	}
	if err := f.c.Sessions.Put(ctx, totpKey(flow), value, enrolFor); err != nil {
		return p, fmt.Errorf("storing enrollment: %w", err)
	}
	return p, nil
}

func (f *Factors) pendingTOTP(ctx context.Context, o Owner, flow string) (p pending, err error) {
	value, err := f.c.Sessions.Get(ctx, totpKey(flow))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(value, &p); err != nil {
		return p, fmt.Errorf("reading enrollment: %w", err)
	}
	if p.Owner != o {
		return p, problem.NoSuch("enrollment")
	}
	return p, nil
}

// ConfirmTOTP completes the setup of an authenticator app with one of its codes, which cannot be
// used again.
//
// Callers set first if the owner has not proved a second factor. If first is set and the owner already
// has a factor, ConfirmTOTP returns ErrNotFirst.
func (f *Factors) ConfirmTOTP(ctx context.Context, o Owner, first bool, flow, code string) error {
	p, err := f.pendingTOTP(ctx, o, flow)
	if errors.Is(err, problem.NotFound) {
		return ErrPending
	}
	if err != nil {
		return err
	}

	at := Place("set-up " + flow)
	if err := f.countGuess(ctx, o, at); err != nil {
		return err
	}

	t := TOTP{ID: uuid.Must(uuid.NewV7()).String(), Owner: o, Sealed: p.Sealed, Created: f.now()}
	if t.Step, err = f.step(t, code); err != nil {
		return err
	}

	if err := f.c.Store.CreateTOTP(ctx, t, first); err != nil {
		return conflict(err, ErrEnrolled)
	}

	f.resetGuesses(ctx, o, at)
	_ = f.c.Sessions.Delete(ctx, totpKey(flow)) // if this fails, the setup expires by itself
	return nil
}

// CheckTOTP checks a code from the owner's authenticator app. Each code is accepted only once, and
// never after a later code (RFC 6238, section 5.2).
func (f *Factors) CheckTOTP(ctx context.Context, o Owner, at Place, code string) error {
	if err := f.countGuess(ctx, o, at); err != nil {
		return err
	}

	t, err := f.c.Store.FindTOTP(ctx, o)
	if errors.Is(err, problem.NotFound) {
		return ErrWrong
	}
	if err != nil {
		return err
	}

	if t.Step, err = f.step(t, code); err != nil {
		return err
	}

	t.Used = f.now()
	if err := f.c.Store.UseTOTP(ctx, t); err != nil {
		return conflict(err, ErrUsed)
	}

	f.resetGuesses(ctx, o, at)
	return nil
}

// step returns the time step of code if the code is correct, recent, and later than t.Step.
func (f *Factors) step(t TOTP, code string) (int64, error) {
	secret, err := f.c.Ring.OpenSecret(TOTPSecretName(t.Owner), t.Sealed)
	if err != nil {
		return 0, err
	}

	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
	code = digits(code)
	now, isUsed := f.c.Now().Unix()/period, false

	for step := now - skew; step <= now+skew; step++ {
		want, err := hotp.GenerateCodeCustom(text, uint64(step),
			hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err != nil {
			return 0, fmt.Errorf("computing code: %w", err)
		}
		switch isRight := subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1; {
		case isRight && step > t.Step:
			return step, nil
		case isRight:
			isUsed = true
		}
	}

	if isUsed {
		return 0, ErrUsed
	}
	return 0, ErrWrong
}

// digits removes spaces and hyphens from a code, because apps display them and users type them.
func digits(code string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '\u00a0' {
			return -1
		}
		return r
	}, code)
}
