package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/operator"
)

// Each of these types parses itself from text. If the text is invalid, the error says which values are
// valid.
type (
	masterKey string // base64 of 32 bytes, or empty
	fileName  string
	texts     []string

	ageRecipients []string

	connections    int
	limit          int // a limit; 0 means no limit
	passwordLength int
	score          int
	size           int64 // a size in bytes

	lifetime  time.Duration // lifetime of a token, which limits how long revocations are remembered
	Period    time.Duration // a period for a login, a key or a recording
	patience  time.Duration // a time to wait, which may be 0
	ringing   time.Duration // how long a call rings, at most maxRinging
	retention time.Duration // how long historical data is kept; 0 means forever
	toneEvery time.Duration // time between two tones, at least minTone; 0 means no tones

	logLevel     slog.Level
	LogFormat    string // auto, text or json
	factorPolicy string // yes, no, auto, owners or admins
	offloading   string // off or the name of a header

	bucketServing string // how files in an object store reach clients
	headerName    string // an HTTP header in canonical form
)

// These are the values of recordings.offload and s3.serve. Except for off, each value of
// recordings.offload is a header that makes the reverse proxy send whole recordings.
const (
	offloadOff  offloading = "off"
	OffloadXAR  offloading = "x-accel-redirect"
	OffloadSend offloading = "x-sendfile"

	ServeStream   bucketServing = "stream"
	ServeRedirect bucketServing = "redirect"
	ServeCache    bucketServing = "cache"
)

func (k *masterKey) UnmarshalText(text []byte) error {
	*k = masterKey(text)
	if len(text) == 0 {
		return nil
	}
	if _, err := keys.ParseMaster(string(text)); err != nil {
		return errors.New("needs the base64 of 32 bytes, as printed by `openssl rand -base64 32`")
	}
	return nil
}

func (f *fileName) UnmarshalText(text []byte) error {
	*f = fileName(text)
	if strings.ContainsAny(string(text), "\n\r") {
		return errors.New("needs the name of a file, not its content")
	}
	return nil
}

func (t *texts) UnmarshalText(text []byte) error {
	*t = split(string(text))
	return nil
}

func (r *ageRecipients) UnmarshalText(text []byte) error {
	*r = split(string(text))
	_, err := backup.ParseRecipients(*r)
	return err
}

// split splits a list at its commas. It removes spaces around the parts, and drops empty parts.
func split(text string) []string {
	var parts []string
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// parseNumber sets n to a number from smallest to largest. Its error ends with hint.
func parseNumber[T ~int](n *T, text []byte, smallest, largest int, hint string) error {
	parsed, err := strconv.Atoi(string(text))
	if err != nil || parsed < smallest || parsed > largest {
		return fmt.Errorf("needs a number from %d to %d%s", smallest, largest, hint)
	}
	*n = T(parsed)
	return nil
}

func (n *connections) UnmarshalText(text []byte) error { return parseNumber(n, text, 1, 10_000, "") }

func (n *score) UnmarshalText(text []byte) error { return parseNumber(n, text, 0, 4, "") }

func (n *passwordLength) UnmarshalText(text []byte) error {
	return parseNumber(n, text, password.MinLength, password.MaxLength, "")
}

func (n *limit) UnmarshalText(text []byte) error {
	return parseNumber(n, text, 0, 1_000_000, "; 0 is no limit")
}

// OrNegative returns the limit, or -1 for no limit.
func (n limit) OrNegative() int {
	if n == 0 {
		return -1
	}
	return int(n)
}

func (s *size) UnmarshalText(text []byte) error {
	number, shift := string(text), 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number, shift = strings.TrimSpace(rest), 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > 1<<62>>shift {
		return errors.New("needs a number of bytes, such as 500MiB or 2GiB")
	}
	*s = size(n << shift)
	return nil
}

func (s size) String() string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if shift := 40 - 10*i; s>>shift > 0 && s>>shift<<shift == s {
			return strconv.FormatInt(int64(s)>>shift, 10) + unit
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

const (
	maxPeriod   = 10 * 365 * 24 * time.Hour
	maxPatience = 24 * time.Hour   // maximum time to wait on shutdown
	maxRinging  = 10 * time.Minute // maximum time that a call rings
	minTone     = 5 * time.Second  // minimum time between two tones

	// History is kept for at least minRetention and at most maxRetention, unless it is kept forever.
	minRetention = 30 * span.Day
	maxRetention = 100 * 365 * span.Day
)

func (l *logLevel) UnmarshalText(text []byte) error {
	if err := (*slog.Level)(l).UnmarshalText(text); err != nil {
		return errors.New("needs debug, info, warn or error")
	}
	return nil
}

func (l logLevel) String() string { return strings.ToLower(slog.Level(l).String()) }

func (f *LogFormat) UnmarshalText(text []byte) error {
	switch *f = LogFormat(text); *f {
	case "auto", "text", "json":
		return nil
	}
	return errors.New("needs auto, text or json")
}

func (o *offloading) UnmarshalText(text []byte) error {
	switch *o = offloading(text); *o {
	case offloadOff, OffloadXAR, OffloadSend:
		return nil
	}
	return errors.New("needs off, x-accel-redirect or x-sendfile")
}

func (b *bucketServing) UnmarshalText(text []byte) error {
	switch *b = bucketServing(text); *b {
	case ServeStream, ServeRedirect, ServeCache:
		return nil
	}
	return errors.New("needs stream, redirect or cache")
}

func (h *headerName) UnmarshalText(text []byte) error {
	*h = headerName(textproto.CanonicalMIMEHeaderKey(string(text)))
	const allowed = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if strings.Trim(string(text), allowed) != "" {
		return errors.New("needs the name of a header, such as Client-Cert")
	}
	return nil
}

func (p *factorPolicy) UnmarshalText(text []byte) error {
	switch *p = factorPolicy(text); *p {
	case "true":
		*p = "yes"
	case "false":
		*p = "no"
	case "yes", "no", "auto", "owners", "admins":
	default:
		return errors.New("needs yes, no, auto, owners or admins")
	}
	return nil
}

// Roles returns the roles that need a second factor. local reports whether only this machine can
// reach the server.
func (p factorPolicy) Roles(local bool) []operator.Role {
	switch {
	case p == "owners":
		return []operator.Role{operator.Owner}
	case p == "admins":
		return []operator.Role{operator.Owner, operator.Admin}
	case p == "yes", p != "no" && !local:
		return operator.Roles()
	}
	return nil
}
