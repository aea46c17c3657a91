package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/session/redis"
	"github.com/selvage/selvage/internal/suggest"
)

// The URLs of what is kept elsewhere or in a file.
type (
	DatabaseURL string // sqlite:FILE or postgres://…
	SessionsURL string // those, or redis://… and its kin
)

var (
	databaseSchemes = []string{"sqlite", "postgres", "postgresql"}
	redisSchemes    = []string{"redis", "rediss", "redis-cluster", "rediss-cluster", "redis-sentinel",
		"rediss-sentinel"}
	sessionsSchemes = slices.Concat(databaseSchemes, redisSchemes)
)

// otherSchemes are what else people call the same.
var otherSchemes = map[string]string{
	"pg": "postgres", "pgsql": "postgres", "pgx": "postgres", "jdbc": "postgres", "sqlite3": "sqlite",
	"file":   "sqlite",
	"valkey": "redis", "valkeys": "rediss", "redis+tls": "rediss", "redis+ssl": "rediss",
	"cluster": "redis-cluster", "redis+cluster": "redis-cluster",
	"rediss+cluster": "rediss-cluster", "sentinel": "redis-sentinel", "redis+sentinel": "redis-sentinel",
	"rediss+sentinel": "rediss-sentinel",
}

func (u *DatabaseURL) UnmarshalText(text []byte) error {
	*u = DatabaseURL(text)
	if slices.Contains(redisSchemes, schemeOf(string(text))) {
		return errors.New("needs sqlite:FILE or postgres://USER@HOST/NAME; Redis can hold sessions, not rows")
	}
	return checkURL(string(text), databaseSchemes, "needs sqlite:FILE or postgres://USER@HOST/NAME")
}

func (u *SessionsURL) UnmarshalText(text []byte) error {
	*u = SessionsURL(text)
	return checkURL(string(text), sessionsSchemes,
		"needs sqlite:FILE, postgres://USER@HOST/NAME, redis://HOST:6379, "+
			"redis-cluster://HOST:6379,HOST:6379 or redis-sentinel://MASTER@HOST:26379,HOST:26379")
}

// Shared reports whether other nodes can keep their rows there too.
func (u DatabaseURL) Shared() bool { return schemeOf(string(u)) != "sqlite" }

// Shared reports whether other nodes can keep their sessions there too.
func (u SessionsURL) Shared() bool { return u != "" && schemeOf(string(u)) != "sqlite" }

// Redis reports whether sessions are kept in Redis.
func (u SessionsURL) Redis() bool { return slices.Contains(redisSchemes, schemeOf(string(u))) }

func schemeOf(raw string) string {
	scheme, _, _ := strings.Cut(raw, ":")
	return scheme
}

// checkURL finds what is wrong with a URL; needs tells what would be right.
func checkURL(raw string, schemes []string, needs string) error {
	scheme, rest, ok := strings.Cut(raw, ":")
	switch {
	case !ok || rest == "":
		return errors.New(needs)
	case !slices.Contains(schemes, scheme):
		return errors.New(needs + otherScheme(strings.ToLower(scheme), schemes))
	case slices.Contains(redisSchemes, scheme):
		return unusable(redis.Check(raw))
	case scheme != "sqlite" && !strings.HasPrefix(rest, "//"):
		return fmt.Errorf("needs %s:// with two slashes", scheme)
	case scheme != "sqlite":
		return unusable(database.Check(raw))
	case strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "///"):
		return errors.New("needs sqlite:FILE without slashes before it, such as sqlite:selvage.db or sqlite:/srv/selvage.db")
	}
	return nil
}

func unusable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot be used: %w", err)
}

// otherScheme tells which scheme was meant, if that can be guessed.
func otherScheme(scheme string, schemes []string) string {
	if meant := otherSchemes[scheme]; slices.Contains(schemes, meant) {
		return fmt.Sprintf("; did you mean %q?", meant+":")
	}
	return strings.Replace(suggest.Meant(scheme, schemes), `"?`, `:"?`, 1)
}

// Redact hides the passwords of a URL: the one before its hosts and those among
// its parameters. Where it is malformed, rather too much is hidden.
func Redact(raw string) string {
	if head, params, ok := strings.Cut(raw, "?"); ok {
		all := strings.Split(params, "&")
		for i, param := range all {
			name, secret, _ := strings.Cut(param, "=")
			if strings.Contains(strings.ToLower(name), "password") && secret != "" {
				all[i] = name + "=" + hidden
			}
		}
		raw = head + "?" + strings.Join(all, "&")
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	at := strings.LastIndex(rest, "@")
	if !ok || at < 0 {
		return raw
	}
	user, secret, _ := strings.Cut(rest[:at], ":")
	if secret == "" {
		return raw
	}
	return scheme + "://" + user + ":" + hidden + rest[at:]
}

// hidden stands where a password was, as in what net/url redacts.
const hidden = "xxxxx"
